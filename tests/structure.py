"""The size of the code, and the way of one ``fit`` through it: ``python -m tests.structure``.

Sizes are counted for the package and for the tests:

lines
    Lines of code; docstrings, comments and blank lines do not count.
functions, classes, protocols
    Definitions, nested ones too.
numbers
    Module constants whose value is a number or a tuple of numbers; each number counts.
repetitions
    Pairs of places that share six or more consecutive lines of code, of 30 tokens or more, that are
    the same or of the same shape: alike except for names, strings and numbers. Imports, lone
    punctuation and short lines of fields or arguments do not count.

One default logistic regression is fitted under ``sys.setprofile``. Every Python function of the
package that is entered counts; lambdas and comprehensions count as the function around them:

files entered, functions entered
    Distinct files and functions of the whole fit.
depth
    Largest number of the package's frames on the stack at once.
switches of file
    Number of times, until the sampler's first step, that the next function entered is in another
    file than the one before it.

Of the class hierarchy: the members of the posterior's base class (Python's own left out), and the
length of the method resolution order of a linear estimator.

No count has a limit: they are a map for a reader. A file is one idea, however long it is.
"""

from __future__ import annotations

import ast
import inspect
import io
import keyword
import os
import sys
import tokenize
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import combinations, pairwise
from pathlib import Path
from types import FrameType
from typing import Any

from sklearn.datasets import make_classification

import skbayes_sgld
from skbayes_sgld import SGLDLinearRegression, SGLDLogisticRegression
from skbayes_sgld.posterior.base import BasePosterior
from skbayes_sgld.sampling import Sampler

PACKAGE = Path(skbayes_sgld.__file__).parent
TESTS = Path(__file__).parent

_RUN, _TOKENS = 6, 30  # lines and tokens of a repetition, at least
_COMMON = 8  # a run in more places than this is the language's or a library's, not the package's
_SIGNS = {tokenize.STRING: "string", tokenize.NUMBER: "number"}
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_NOT_CODE = {
    *(tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE),
    *(tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER),
}


# ---- sizes ----------------------------------------------------------------------------------


def size_of(folder: Path) -> Counter[str]:
    """Counts over the Python files below a folder, by the names of the module's docstring."""
    texts = [path.read_text() for path in sorted(folder.rglob("*.py"))]
    size = sum(map(size_of_source, texts), Counter())
    size["repetitions"] = count_repetitions(texts)
    return size


def size_of_source(text: str) -> Counter[str]:
    """Counts of one file."""
    tree = ast.parse(text)
    nodes = list(ast.walk(tree))
    classes = [node for node in nodes if isinstance(node, ast.ClassDef)]
    return Counter(
        {
            "files": 1,
            "lines": len(lines_of_code(text, tree)),
            "functions": sum(isinstance(node, _FUNCTIONS) for node in nodes),
            "classes": len(classes),
            "protocols": sum("Protocol" in map(name_of, node.bases) for node in classes),
            "numbers": sum(map(count_numbers, tree.body)),
        }
    )


def lines_of_code(text: str, tree: ast.AST) -> set[int]:
    """Numbers of the lines that hold code."""
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in _NOT_CODE:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, *_FUNCTIONS)) and ast.get_docstring(node):
            docstring = node.body[0]
            lines.difference_update(range(docstring.lineno, docstring.end_lineno + 1))
    return lines


def name_of(base: ast.expr) -> str:
    """Name of a base class, without its subscript."""
    return ast.unparse(base.value if isinstance(base, ast.Subscript) else base)


def count_numbers(statement: ast.stmt) -> int:
    """Count of the numbers, or arithmetic of numbers, that a statement assigns."""
    if not isinstance(statement, (ast.Assign, ast.AnnAssign)) or statement.value is None:
        return 0
    value = statement.value
    return sum(is_number(x) for x in (value.elts if isinstance(value, ast.Tuple) else [value]))


def is_number(node: ast.expr) -> bool:
    """Whether an expression is a number, or arithmetic of numbers."""
    if isinstance(node, ast.Constant):
        return isinstance(node.value, (int, float)) and not isinstance(node.value, bool)
    parts = [child for child in ast.iter_child_nodes(node) if isinstance(child, ast.expr)]
    return isinstance(node, (ast.UnaryOp, ast.BinOp)) and all(map(is_number, parts))


def count_repetitions(texts: Sequence[str]) -> int:
    """Number of pairs of places that share consecutive lines of code of the same shape."""
    places: dict[tuple[str, ...], list[tuple[int, int]]] = defaultdict(list)
    for number, text in enumerate(texts):
        shapes = shapes_of(text)
        for first in range(len(shapes) - _RUN + 1):
            run = tuple(shapes[first : first + _RUN])
            if sum(len(shape.split()) for shape in run) >= _TOKENS:
                places[run].append((number, first))
    pairs = {
        pair
        for same in places.values()
        if len(same) <= _COMMON
        for pair in combinations(same, 2)
        if pair[0][0] != pair[1][0] or pair[1][1] - pair[0][1] >= _RUN
    }
    # a longer run is one pair: the one that no pair of lines before it continues
    return sum(((a, i - 1), (b, j - 1)) not in pairs for (a, i), (b, j) in pairs)


def shapes_of(text: str) -> list[str]:
    """Shape of each line of code: its tokens, with one sign each for a name, a string, a number."""
    lines: dict[int, list[str]] = defaultdict(list)
    code = lines_of_code(text, ast.parse(text))
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.start[0] in code and token.type not in _NOT_CODE:
            is_word = token.type == tokenize.NAME and not keyword.iskeyword(token.string)
            sign = "name" if is_word else _SIGNS.get(token.type, token.string)
            lines[token.start[0]].append(sign)
    shapes = [" ".join(tokens) for _, tokens in sorted(lines.items())]
    return [s for s in shapes if any(map(str.isalpha, s)) and not s.startswith(("from", "import"))]


# ---- the way of a fit -----------------------------------------------------------------------


@dataclass(frozen=True)
class Call:
    """One function of the package that was entered."""

    file: str
    name: str  # qualified
    depth: int

    @property
    def function(self) -> tuple[str, str]:
        """File and name, an inner function counted as the one around it."""
        return self.file, self.name.partition(".<locals>")[0]


@dataclass
class Trace:
    """Every call of one fit, in order, and the stack at the sampler's first step."""

    calls: list[Call] = field(default_factory=list)
    stack: list[Call] = field(default_factory=list)  # of the first step, the outermost first
    n_before_step: int = 0

    def enter(self, frame: FrameType, event: str, arg: Any) -> None:
        """Record a call; passed to ``sys.setprofile``."""
        if event != "call" or not is_ours(frame):
            return
        frames = [f for f in outwards(frame) if is_ours(f)]
        self.calls.append(as_call(frame, len(frames)))
        owner = frame.f_locals.get("self")
        if not self.stack and frame.f_code.co_name == "step" and isinstance(owner, Sampler):
            self.stack = [as_call(f, 0) for f in reversed(frames)]
            self.n_before_step = len(self.calls)

    def counts(self) -> dict[str, int]:
        """Counts by the names of the module's docstring."""
        if not self.stack:
            raise RuntimeError("no step of a sampler was seen")
        return {
            "files entered": len({call.file for call in self.calls}),
            "functions entered": len({call.function for call in self.calls}),
            "depth": max(call.depth for call in self.calls),
            "switches of file": changes([c.file for c in self.calls[: self.n_before_step]]),
        }


def is_ours(frame: FrameType) -> bool:
    """Whether the frame runs the package's source."""
    return frame.f_code.co_filename.startswith(f"{PACKAGE}{os.sep}")


def outwards(frame: FrameType | None) -> list[FrameType]:
    """All frames of the stack, the innermost first."""
    frames = []
    while frame is not None:
        frames.append(frame)
        frame = frame.f_back
    return frames


def as_call(frame: FrameType, depth: int) -> Call:
    """The call that a frame runs."""
    file = Path(frame.f_code.co_filename).relative_to(PACKAGE).as_posix()
    return Call(file, frame.f_code.co_qualname, depth)


def changes(items: list[Any]) -> int:
    """Number of neighbours that differ."""
    return sum(a != b for a, b in pairwise(items))


def trace_fit() -> Trace:
    """The calls of one default fit of 1,000 rows and 5 columns."""
    X, y = make_classification(1000, 5, flip_y=0.3, random_state=0)
    model, trace = SGLDLogisticRegression(n_draws=300, random_state=0), Trace()
    before, fit = sys.getprofile(), inspect.unwrap(type(model).fit)  # a decorator is not read
    sys.setprofile(trace.enter)
    try:
        fit(model, X, y)
    finally:
        sys.setprofile(before)
    return trace


def members(cls: type) -> list[str]:
    """Attributes and methods of a class and its bases, but for Python's own."""
    return [name for name in dir(cls) if not (name.startswith("__") and name.endswith("__"))]


# ---- the report -----------------------------------------------------------------------------


def describe(trace: Trace) -> str:
    """Tables of the counts, the files in the order of entry, and the stack of the first step."""
    package, tests = size_of(PACKAGE), size_of(TESTS)
    rows = [f"{'':<36}{'package':>10}{'tests':>10}"]
    rows += [f"{name:<36}{package[name]:>10,}{tests[name]:>10,}" for name in package]
    rows += ["", *(f"{name:<36}{value:>10,}" for name, value in trace.counts().items())]
    rows.append(f"{'members of the posterior base':<36}{len(members(BasePosterior)):>10}")
    rows.append(
        f"{'classes a linear estimator is made of':<36}{len(SGLDLinearRegression.__mro__):>9}"
    )
    rows += ["", "files, in the order of entry, how many functions of each, and what is in them"]
    functions = {call.function for call in trace.calls}
    for file in dict.fromkeys(call.file for call in trace.calls):
        idea = (ast.get_docstring(ast.parse((PACKAGE / file).read_text())) or "").partition("\n")[0]
        rows.append(f"  {file:<34}{sum(f == file for f, _ in functions):>4}  {idea}")
    rows += ["", "the stack at the first step"]
    rows += [f"  {call.name:<52}{call.file}" for call in trace.stack]
    return "\n".join(rows)


if __name__ == "__main__":
    print(describe(trace_fit()))

"""The size of the code, and the way of one ``fit`` through it: ``python -m tests.structure``.

Sizes are counted for the package and for the tests:

lines
    Lines of code; docstrings, comments and blank lines do not count.
functions, classes, protocols
    Definitions, nested ones too.
numbers
    Module constants whose value is a number or a tuple of numbers; each number counts.

One default logistic regression is fitted under ``sys.setprofile``. Every Python function of the
package that is entered counts, lambdas and comprehensions as the function around them:

files entered, functions entered
    Distinct files and functions of the whole fit.
depth
    The most frames of the package that lay on the stack at once.
switches of file
    How often the next function that is entered, until the sampler's first step, stands in another
    file than the one before it.

And of the class hierarchy: the members of the posterior's base class (Python's own left out), and
the length of the method resolution order of a linear estimator.

None of these is limited: they are a map for a reader. A file is one idea, however long it is.
"""

from __future__ import annotations

import ast
import inspect
import io
import os
import sys
import tokenize
from collections import Counter
from dataclasses import dataclass, field
from itertools import pairwise
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

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_NOT_CODE = {
    *(tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE),
    *(tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER),
}


# ---- sizes ----------------------------------------------------------------------------------


def size_of(folder: Path) -> Counter[str]:
    """Counts over the Python files below a folder, by the names of the module's docstring."""
    return sum((size_of_source(path.read_text()) for path in folder.rglob("*.py")), Counter())


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
    """Name of a base class, without what it is subscripted by."""
    return ast.unparse(base.value if isinstance(base, ast.Subscript) else base)


def count_numbers(statement: ast.stmt) -> int:
    """Numbers that a statement of a module assigns as constants: literals and their arithmetic."""
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
    """Every call of one fit, in order, and where the sampler took its first step."""

    calls: list[Call] = field(default_factory=list)
    stack: list[Call] = field(default_factory=list)  # of the first step, the outermost first
    n_before_step: int = 0

    def enter(self, frame: FrameType, event: str, arg: Any) -> None:
        """Note a call: the function that ``sys.setprofile`` takes."""
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
    """How many neighbours differ."""
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

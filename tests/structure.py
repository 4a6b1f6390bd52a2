"""The size of the code, and the way of one ``fit`` through it: ``python -m tests.structure``.

``python -m tests.structure --draw`` draws the way until the first step.

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

One default logistic regression of 569 rows and 30 columns is fitted under ``sys.setprofile``. Every
Python function of the package that is entered counts; lambdas and comprehensions count as the
function around them. Until the sampler's first step:

functions, files
    Distinct functions and files that were entered.
switches of file
    Number of times that the next function entered is in another file than the one before it.
depth
    Largest number of the package's frames on the stack at once.

Of the fit and the credible interval of a prediction:

files entered, their lines
    Distinct files in which a function was entered, and their lines of code.
lines that ran
    Lines inside functions that ran.
lines passed over
    Lines that did not run, of functions that were entered: branches that serve other features.

A feature's files are those whose code, docstrings and comments left out, has one of its words
(``WORDS``).

Of the class hierarchy: the members of the posterior's base class (Python's own left out), the
length of the method resolution order of a linear estimator, and the methods that the estimators'
classes define more than once, with all their definitions.

No count has a limit: they are a map for a reader. A file is one idea, however long it is.
"""

from __future__ import annotations

import ast
import inspect
import io
import keyword
import os
import re
import sys
import tokenize
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations, pairwise
from pathlib import Path
from types import FrameType, FunctionType
from typing import Any

from sklearn.datasets import load_breast_cancer

import skbayes_sgld
from skbayes_sgld import SGLDLinearRegression, SGLDLogisticRegression
from skbayes_sgld.estimators.base import BayesianEstimator
from skbayes_sgld.posterior.base import BasePosterior
from skbayes_sgld.sampling import Sampler

PACKAGE = Path(skbayes_sgld.__file__).parent
TESTS = Path(__file__).parent

_RUN, _TOKENS = 6, 30  # lines and tokens of a repetition, at least
_COMMON = 8  # a run in more places than this is the language's or a library's, not the package's
_SIGNS = {tokenize.STRING: "string", tokenize.NUMBER: "number"}
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
WORDS = {
    "totals": r"totals|n_trials",
    "exposures": r"exposure|exposed",
    "blocks": r"RowSource|RowBlocks|as_source|row_source|from blocks",
    "temperature": r"temperature|tempered|\btau\b",
    "wide rows": r"whitened|collapsed",
    "single precision": r"float32|FLOATS|\.dtype",
    "groups of positions": r"in_groups_of|n_sharing|\.group\b|n_walkers",
    "streams": r"partial_fit|\b_?stream\b|n_batches",
    "overflow": r"[Oo]verflow",
}
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
        before = self.calls[: self.n_before_step]
        return {
            "functions": len({call.function for call in before}),
            "files": len({call.file for call in before}),
            "switches of file": changes([call.file for call in before]),
            "depth": max(call.depth for call in before),
        }


@dataclass
class Coverage:
    """Lines that ran, and functions that were entered, by file; a trace function of Python."""

    ran: dict[str, set[int]] = field(default_factory=lambda: defaultdict(set))
    entered: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))

    def trace(self, frame: FrameType, event: str, arg: Any) -> Any:
        """Record a call or a line; passed to ``sys.settrace``."""
        if not is_ours(frame):
            return None
        call = as_call(frame, 0)
        self.entered[call.file].add(call.function[1])
        self.ran[call.file].add(frame.f_lineno)
        return self._line

    def _line(self, frame: FrameType, event: str, arg: Any) -> Any:
        self.ran[as_call(frame, 0).file].add(frame.f_lineno)
        return self._line

    def counts(self) -> dict[str, int]:
        """Counts by the names of the module's docstring."""
        total = Counter({"files entered": len(self.entered)})
        for file, names in self.entered.items():
            total += count_lines((PACKAGE / file).read_text(), self.ran[file], names)
        return dict(total)


def count_lines(text: str, ran: set[int], entered: set[str]) -> Counter[str]:
    """Lines of a file that has functions that were entered: all, those that ran, others of these.

    A statement ran if one of its lines did. Lines outside functions run at import, and count in the
    first alone.
    """
    tree = ast.parse(text)
    code = lines_of_code(text, tree)
    found: set[int] = set()
    passed: set[int] = set()

    def visit(node: ast.AST, function: str, prefix: str) -> None:
        for child in ast.iter_child_nodes(node):
            name, below = function, prefix
            if isinstance(child, (ast.ClassDef, *_FUNCTIONS)):
                below = f"{prefix}{child.name}."
                if isinstance(child, _FUNCTIONS) and not function:
                    name = below[:-1]
            elif isinstance(child, ast.stmt) and function:
                own = own_lines(child) & code
                if own & ran:
                    found.update(own)
                elif function in entered:
                    passed.update(own)
            visit(child, name, below)

    visit(tree, "", "")
    return Counter(
        {"their lines": len(code), "lines that ran": len(found), "lines passed over": len(passed)}
    )


def own_lines(statement: ast.stmt) -> set[int]:
    """Lines of a statement, without those of the statements inside it."""
    inside = [
        node for node in ast.walk(statement) if isinstance(node, ast.stmt) and node is not statement
    ]
    last = min((node.lineno - 1 for node in inside), default=statement.end_lineno)
    assert last is not None
    return set(range(statement.lineno, max(last, statement.lineno) + 1))


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


def ordinary() -> tuple[SGLDLogisticRegression, Any, Any]:
    """The fit that is followed: its estimator and its rows."""
    X, y = load_breast_cancer(return_X_y=True)
    return SGLDLogisticRegression(random_state=0), X, y


def trace_fit() -> Trace:
    """The calls of one default fit."""
    model, X, y = ordinary()
    trace = Trace()
    before, fit = sys.getprofile(), inspect.unwrap(type(model).fit)  # a decorator is not read
    sys.setprofile(trace.enter)
    try:
        fit(model, X, y)
    finally:
        sys.setprofile(before)
    return trace


def cover_fit() -> Coverage:
    """The lines of one default fit and of a credible interval by it."""
    model, X, y = ordinary()
    coverage, before = Coverage(), sys.gettrace()
    sys.settrace(coverage.trace)
    try:
        model.fit(X, y)
        model.predict_proba_interval(X[:5])
    finally:
        sys.settrace(before)
    return coverage


def files_with(pattern: str) -> list[str]:
    """Files of the package whose code has a word."""
    found = []
    for path in sorted(PACKAGE.rglob("*.py")):
        text = path.read_text()
        code = lines_of_code(text, ast.parse(text))
        lines = [re.sub("#.*", "", text.split("\n")[number - 1]) for number in code]
        if re.search(pattern, "\n".join(lines)):
            found.append(path.relative_to(PACKAGE).as_posix())
    return found


def overridden(base: type) -> Counter[str]:
    """Definitions of each method that classes below a base override, theirs and the base's."""
    classes, waiting = set(), [base]
    while waiting:
        cls = waiting.pop()
        if cls.__module__.startswith(skbayes_sgld.__name__):
            classes.add(cls)
            waiting += cls.__subclasses__()
    definitions: Counter[str] = Counter()
    for cls in classes:
        definitions.update(
            name
            for name, member in vars(cls).items()
            if not name.startswith("__")
            and isinstance(member, (FunctionType, property, classmethod))
        )
    return Counter({name: n for name, n in definitions.items() if n > 1})


def members(cls: type) -> list[str]:
    """Attributes and methods of a class and its bases, but for Python's own."""
    return [name for name in dir(cls) if not (name.startswith("__") and name.endswith("__"))]


# ---- the report -----------------------------------------------------------------------------


def table(title: str, counts: Mapping[str, int]) -> list[str]:
    """Lines of one table."""
    return ["", title, *(f"  {name:<38}{value:>10,}" for name, value in counts.items())]


def describe(trace: Trace, coverage: Coverage) -> str:
    """Tables of the counts, the files in the order of entry, and the stack of the first step."""
    package, tests = size_of(PACKAGE), size_of(TESTS)
    rows = [f"{'':<40}{'package':>10}{'tests':>10}"]
    rows += [f"  {name:<38}{package[name]:>10,}{tests[name]:>10,}" for name in package]
    rows += table("a default fit until its first step", trace.counts())
    rows += table("the fit and a credible interval", coverage.counts())
    rows += table("files that ask about", {name: len(files_with(w)) for name, w in WORDS.items()})
    methods = overridden(BayesianEstimator)
    classes = {
        "members of the posterior base": len(members(BasePosterior)),
        "classes a linear estimator is made of": len(SGLDLinearRegression.__mro__),
        "methods of estimators defined repeatedly": len(methods),
        "their definitions": methods.total(),
    }
    rows += table("classes", classes)
    rows += ["", "files, in the order of entry, how many functions of each, and what is in them"]
    functions = {call.function for call in trace.calls}
    for file in dict.fromkeys(call.file for call in trace.calls):
        idea = (ast.get_docstring(ast.parse((PACKAGE / file).read_text())) or "").partition("\n")[0]
        rows.append(f"  {file:<34}{sum(f == file for f, _ in functions):>4}  {idea}")
    rows += ["", "the stack at the first step"]
    rows += [f"  {call.name:<52}{call.file}" for call in trace.stack]
    return "\n".join(rows)


# ---- the figure -----------------------------------------------------------------------------


def stops(trace: Trace) -> dict[str, list[str]]:
    """Functions of each file that a fit enters before its first step, files in order of entry."""
    found: dict[str, list[str]] = {}
    for file, name in dict.fromkeys(call.function for call in trace.calls[: trace.n_before_step]):
        found.setdefault(file, []).append(name)
    return found


def draw(trace: Trace, path: Path) -> None:
    """Figure of the way until the first step: a column for each folder, a row for each file.

    Folders stand in the order of the data's flow. Modules of the root, which are helpers, are left
    out.
    """
    import matplotlib.pyplot as plt

    found = {file: names for file, names in stops(trace).items() if room_of(file) != ""}
    entered = list(dict.fromkeys(room_of(file) for file in found))
    rooms = [room for room in FLOW if room in entered]
    rooms += [room for room in entered if room not in FLOW]
    at = {file: (rooms.index(room_of(file)), row) for row, file in enumerate(found)}
    with plt.rc_context({"svg.fonttype": "none", "svg.hashsalt": "path", "font.size": 9}):
        figure, axes = plt.subplots(figsize=(2.1 * len(rooms), 0.26 * len(found) + 0.8))
        axes.plot(*zip(*at.values(), strict=True), color="0.6", lw=1.0, zorder=1)
        for number, room in enumerate(rooms):
            own = [row for column, row in at.values() if column == number]
            axes.axvspan(number - 0.06, number + 0.06, color="C0", alpha=0.06)
            axes.text(number, -1.6, room, ha="center", weight="bold")
            axes.plot([number] * len(own), own, "o", ms=4, color="C0")
        for file, (column, row) in at.items():
            name = f"{Path(file).name} ({len(found[file])})"
            box = {"boxstyle": "round,pad=0.15", "fc": "white", "ec": "none", "alpha": 0.8}
            axes.annotate(
                name, (column, row), (6, 0), "data", "offset points", va="center", bbox=box
            )
        axes.set(ylim=(len(found), -2.2), xlim=(-0.4, len(rooms) - 0.1))
        axes.axis("off")
        figure.savefig(path, metadata={"Date": None}, bbox_inches="tight", pad_inches=0.05)
        plt.close(figure)


def room_of(file: str) -> str:
    """Folder of a file, "" of one in the package itself."""
    return Path(file).parent.as_posix().replace(".", "")


FLOW = [
    *("estimators", "rows", "rows/targets", "priors", "likelihoods", "posterior", "inference"),
    *(
        "inference/strategies",
        "inference/planning",
        "sampling/tuning",
        "sampling/gradients",
        "sampling",
    ),
    "sampling/samplers",
]
FIGURE = Path(__file__).parents[1] / "docs" / "figures" / "path_of_a_fit.svg"

if __name__ == "__main__":
    if sys.argv[1:] == ["--draw"]:
        draw(trace_fit(), FIGURE)
    else:
        print(describe(trace_fit(), cover_fit()))

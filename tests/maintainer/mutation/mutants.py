"""Changes of one operator, constant or sign of one line below ``skbayes_sgld``.

A mutant is known by the function it is in, the line's text and the change, so that it stays the
same one while other code moves, to another file too.
"""

from __future__ import annotations

import ast
import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

ROOT = Path(__file__).parents[3]
PACKAGE = "skbayes_sgld"
RESULTS = Path(__file__).with_name("results.json")
PLACES = (
    *("sampling", "posterior", "likelihoods", "priors", "transforms.py", "inference", "prediction"),
    *("diagnostics.py", "optimizers", "own_models", "wide_rows"),
)
NUMBER = 200
# A second, smaller sample is of the other code that a fit runs.
OTHER_PLACES = (
    *("criticism", "estimators", "rows", "blocks", "neural_network", "variational"),
    *("checkpoints.py", "kernels.py"),
)
OTHERS = 40
_OPERATORS = {
    ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: ("*", "/"),
    ast.Div: ("/", "*"),
    ast.Pow: ("**", "*"),
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.And: ("and", "or"),
    ast.Or: ("or", "and"),
}
_LEFT_ALONE = (ast.Raise, ast.Assert, ast.JoinedStr, ast.AnnAssign, ast.arguments)
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


Where = tuple[str, str, int]  # function, digest of its code, line of the statement


@dataclass(frozen=True)
class Mutant:
    """A change of one line."""

    path: str  # from the root
    function: str  # qualified name; "" outside of functions
    first: int  # line of the statement
    line: int
    start: int
    end: int
    old: str
    new: str
    text: str  # of the line
    digest: str  # of the function's code, or the statement's outside of functions
    occurrence: int = 0  # among those with the same function, text and change

    @property
    def key(self) -> str:
        """Identity of the mutant, which stays when other code moves."""
        number = f" #{self.occurrence + 1}" if self.occurrence else ""
        return f"{self.function or 'module'}: {self.text}: {self.old} -> {self.new}{number}"

    def rank(self) -> str:
        """Place in the order from which the first are taken."""
        return hashlib.sha256(f"0 {self.key}".encode()).hexdigest()

    def source(self, text: str) -> str:
        """The file's text with the change in it."""
        lines = text.splitlines(keepends=True)
        at = lines[self.line - 1].encode()
        changed = at[: self.start] + self.new.encode() + at[self.end :]
        lines[self.line - 1] = changed.decode()
        return "".join(lines)

    def changed(self) -> str:
        """The line after the change."""
        text = (ROOT / self.path).read_text()
        return self.source(text).splitlines()[self.line - 1].strip()


def sample_mutants() -> list[Mutant]:
    """``NUMBER`` mutants of PLACES, and ``OTHERS`` of OTHER_PLACES.

    They are the same ones while the lines they change stay.
    """
    return _ranked(PLACES)[:NUMBER] + _ranked(OTHER_PLACES)[:OTHERS]


def _ranked(places: Iterable[str]) -> list[Mutant]:
    found: list[Mutant] = []
    for place in places:
        at = ROOT / PACKAGE / place
        for path in sorted(at.rglob("*.py")) if at.is_dir() else [at]:
            found += find_mutants(path.read_text(), str(path.relative_to(ROOT)))
    return sorted(_numbered(found), key=Mutant.rank)


def _numbered(mutants: Iterable[Mutant]) -> Iterator[Mutant]:
    seen = Counter[str]()
    for mutant in mutants:
        yield replace(mutant, occurrence=seen[mutant.key])
        seen[mutant.key] += 1


def find_mutants(text: str, path: str) -> Iterator[Mutant]:
    """Every mutant of a file; messages, annotations, decorators and defaults are not among them."""
    lines = text.splitlines()

    def mutant(where: Where, line: int, start: int, old: str, new: str) -> Mutant:
        at, (function, digest, first) = lines[line - 1].strip(), where
        return Mutant(path, function, first, line, start, start + len(old), old, new, at, digest)

    def between(
        where: Where, left: ast.expr, right: ast.expr, operator: ast.AST
    ) -> Iterator[Mutant]:
        if type(operator) not in _OPERATORS or left.end_lineno != right.lineno:
            return
        old, new = _OPERATORS[type(operator)]
        gap = lines[right.lineno - 1].encode()[left.end_col_offset : right.col_offset].decode()
        found = re.fullmatch(rf"([\s)]*){re.escape(old)}([\s(]*)", gap)
        if found:
            start = (left.end_col_offset or 0) + len(found[1])
            yield mutant(where, right.lineno, start, old, new)

    def of_node(node: ast.AST, where: Where) -> Iterator[Mutant]:
        if isinstance(node, ast.BinOp):
            yield from between(where, node.left, node.right, node.op)
        elif isinstance(node, ast.Compare):
            pairs = zip([node.left, *node.comparators], node.comparators, node.ops, strict=False)
            for left, right, operator in pairs:
                yield from between(where, left, right, operator)
        elif isinstance(node, ast.BoolOp):
            yield from between(where, node.values[0], node.values[1], node.op)
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.Not):
            old = "-" if isinstance(node.op, ast.USub) else "not"
            yield mutant(where, node.lineno, node.col_offset, old, "")
        elif isinstance(node, ast.Constant) and isinstance(node.value, bool | int | float):
            line = lines[node.lineno - 1].encode()
            old = line[node.col_offset : node.end_col_offset].decode()
            yield mutant(where, node.lineno, node.col_offset, old, _other(node.value))

    def visit(node: ast.AST, scope: tuple[str, ...], where: Where) -> Iterator[Mutant]:
        if isinstance(node, _LEFT_ALONE):
            return
        if isinstance(node, (*FUNCTIONS, ast.ClassDef)):
            scope = (*scope, node.name)
        if isinstance(node, FUNCTIONS):
            where = (".".join(scope), _digest(node), node.lineno)
        elif isinstance(node, ast.stmt):
            where = (where[0], where[1] if where[0] else _digest(node), node.lineno)
        yield from of_node(node, where)
        decorators = getattr(node, "decorator_list", [])
        for child in ast.iter_child_nodes(node):
            if child not in decorators:
                yield from visit(child, scope, where)

    yield from visit(ast.parse(text), (), ("", "", 0))


def _other(value: bool | int | float) -> str:
    if isinstance(value, bool):
        return str(not value)
    return str(value + 1 if isinstance(value, int) else 2.0 * value or 1.0)


def _digest(node: ast.AST) -> str:
    """Of the code alone, not its layout and comments."""
    return hashlib.sha256(ast.unparse(node).encode()).hexdigest()[:12]

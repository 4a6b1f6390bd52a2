"""A copy of the package that holds all mutants at once, each behind a switch.

Where a mutant changes an expression, the copy has ``changed if _on(7) else expression``. Asking
whether mutant 7 is switched on also records that its line was entered. What runs at import is
switched on by the environment, before.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

from tests.mutation.mutants import FUNCTIONS, PACKAGE, Mutant

VARIABLE = "MUTANT"
MODULE = f"{PACKAGE}._switches"
_SOURCE = f'''
import os

mutant = int(os.environ.get("{VARIABLE}", -1))
entered = set()


def on(number):
    entered.add(number)
    return number == mutant
'''


def put_switches(folder: Path, mutants: list[Mutant]) -> None:
    """Rewrite the package in ``folder`` with every mutant behind its switch."""
    (folder / PACKAGE / "_switches.py").write_text(_SOURCE)
    by_path: dict[str, dict[int, Mutant]] = defaultdict(dict)
    names: dict[str, set[int]] = defaultdict(set)
    for number, mutant in enumerate(mutants):
        by_path[mutant.path][number] = mutant
    trees = {path: ast.parse(path.read_text()) for path in (folder / PACKAGE).rglob("*.py")}
    for number, mutant in enumerate(mutants):
        if not mutant.function:
            for name in _names_bound(trees[folder / mutant.path], mutant.line):
                names[name].add(number)
    for path, tree in trees.items():
        if path.name == "_switches.py":
            continue
        changes: dict[int, list[tuple[int, ast.expr]]] = defaultdict(list)
        text = path.read_text()
        for number, mutant in by_path[str(path.relative_to(folder))].items():
            here, there = _difference(tree, ast.parse(mutant.source(text)))
            changes[id(here)].append((number, there))
        _Switches(changes, names).visit(tree)
        future = [
            isinstance(node, ast.ImportFrom) and node.module == "__future__" for node in tree.body
        ]
        at = future.index(True) + 1 if any(future) else _after_docstring(tree.body)
        tree.body[at:at] = ast.parse(f"from {MODULE} import on as _on").body
        path.write_text(ast.unparse(ast.fix_missing_locations(tree)))


def _difference(a: ast.AST, b: ast.AST) -> tuple[ast.expr, ast.expr]:
    """The smallest expression that holds all differences of two trees, and what it becomes."""
    best: tuple[ast.expr, ast.expr] | None = None
    while True:
        if isinstance(a, ast.expr) and isinstance(b, ast.expr):
            best = a, b
        if type(a) is not type(b):
            break
        pairs = list(zip(ast.iter_child_nodes(a), ast.iter_child_nodes(b), strict=False))
        apart = [(x, y) for x, y in pairs if ast.dump(x) != ast.dump(y)]
        if len(apart) != 1:
            break
        a, b = apart[0]
    assert best is not None
    return best


def _names_bound(tree: ast.Module, line: int) -> list[str]:
    """Names that the statement of a module or class on this line binds; else its functions'."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and node.lineno <= line <= (node.end_lineno or line):
            inner = [inner for target in node.targets for inner in ast.walk(target)]
            return [name.id for name in inner if isinstance(name, ast.Name)]
    return [node.name for node in ast.walk(tree) if isinstance(node, FUNCTIONS)]


class _Switches(ast.NodeTransformer):
    """Puts the switches around expressions, and records of values into functions that name them."""

    def __init__(
        self, changes: dict[int, list[tuple[int, ast.expr]]], names: dict[str, set[int]]
    ) -> None:
        self._changes, self._names = changes, names

    def visit(self, node: ast.AST) -> ast.AST:
        """Switch what is inside first."""
        changes = self._changes.get(id(node), ())
        self.generic_visit(node)
        if isinstance(node, FUNCTIONS):
            used = {getattr(inner, "id", getattr(inner, "attr", "")) for inner in ast.walk(node)}
            numbers = {i for name in {*used, node.name} for i in self._names.get(name, ())}
            at = _after_docstring(node.body)
            node.body[at:at] = [ast.Expr(_on(i)) for i in sorted(numbers)]
        for number, there in changes:
            assert isinstance(node, ast.expr)
            node = ast.IfExp(_on(number), there, node)
        return node


def _on(number: int) -> ast.expr:
    return ast.Call(ast.Name("_on", ast.Load()), [ast.Constant(number)], [])


def _after_docstring(body: list[ast.stmt]) -> int:
    first = body[0] if body else None
    return int(isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant))

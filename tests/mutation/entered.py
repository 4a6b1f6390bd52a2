"""Which tests enter the lines of the mutants, and how long they take.

A copy of the package has a probe before each such statement. A value of a module or a class is
entered where a function names it.
"""

from __future__ import annotations

import ast
import json
import tempfile
from collections import defaultdict
from pathlib import Path

from tests.mutation.mutants import FUNCTIONS, PACKAGE, Mutant
from tests.mutation.processes import copy_tree, run_pytest

_RECORD = "ENTERED: set[int] = set()\nenter = ENTERED.add\n"
_PLUGIN = f"""
import json, time
from collections import defaultdict
import pytest
from {PACKAGE}._entered import ENTERED

found, of_fixture = {{}}, defaultdict(set)

@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef, request):
    before = set(ENTERED)
    ENTERED.clear()
    try:
        return (yield)
    finally:
        if fixturedef.scope != "function":
            of_fixture[fixturedef.argname, fixturedef.baseid] |= ENTERED
        ENTERED.update(before)

@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item, nextitem):
    ENTERED.clear()
    start = time.process_time()
    try:
        return (yield)
    finally:
        entered = set(ENTERED)
        for (name, base), more in of_fixture.items():
            if name in item.fixturenames and item.nodeid.startswith(base):
                entered |= more
        found[item.nodeid] = [time.process_time() - start, sorted(entered)]

def pytest_sessionfinish():
    with open("entered.json", "w") as file:
        json.dump(found, file)
"""


Tests = dict[str, float]  # their names and seconds of CPU time


def find_entered(mutants: list[Mutant], tests: str, cpu: float) -> dict[str, Tests]:
    """The tests below a path that enter each mutant's line, from one run with probes."""
    entered: dict[str, Tests] = defaultdict(dict)
    with tempfile.TemporaryDirectory() as place:
        folder = copy_tree(place)
        (folder / PACKAGE / "_entered.py").write_text(_RECORD)
        (folder / "find_entered.py").write_text(_PLUGIN)
        _put_probes(folder, mutants)
        code, text = run_pytest(folder, ["-p", "find_entered"], [tests], cpu)
        if code != 0:
            print(f"{tests}: exit code {code}\n{text[-2000:]}", flush=True)
        for test, (seconds, numbers) in json.loads((folder / "entered.json").read_text()).items():
            for number in numbers:
                entered[mutants[number].key][test] = seconds
    return entered


def choose_tests(mutant: Mutant, tests: Tests, most: float) -> Tests:
    """Those that take so many seconds together, of the nearest and fastest files first."""
    by_file: dict[str, Tests] = defaultdict(dict)
    for test, seconds in tests.items():
        by_file[test.partition("::")[0]][test] = seconds
    own = Path(mutant.path).relative_to(PACKAGE).with_suffix("").parts

    def order(file: str) -> tuple[int, float]:
        parts = Path(file).with_suffix("").parts[1:]
        shared = sum(a == b for a, b in zip(own[:-1], parts[:-1], strict=False))
        return -shared - 2 * (parts[-1] == f"test_{own[-1]}"), sum(by_file[file].values())

    chosen: Tests = {}
    for file in sorted(by_file, key=order):
        more = by_file[file]
        if not chosen or sum((chosen | more).values()) <= most:
            chosen |= more
    return chosen


def _put_probes(folder: Path, mutants: list[Mutant]) -> None:
    trees = {path: ast.parse(path.read_text()) for path in (folder / PACKAGE).rglob("*.py")}
    of_lines: dict[Path, dict[int, set[int]]] = defaultdict(lambda: defaultdict(set))
    of_names: dict[str, set[int]] = defaultdict(set)
    for number, mutant in enumerate(mutants):
        path = folder / mutant.path
        if mutant.function:
            of_lines[path][mutant.line].add(number)
        else:
            for name in _names_set(trees[path], mutant.line):
                of_names[name].add(number)
    for path, tree in trees.items():
        _Probes(of_lines[path], of_names).visit(tree)
        at = sum(
            isinstance(node, ast.ImportFrom) and node.module == "__future__" for node in tree.body
        )
        at += _after_docstring(tree.body)
        tree.body[at:at] = ast.parse(f"from {PACKAGE}._entered import enter as _enter").body
        if path.name != "_entered.py":
            path.write_text(ast.unparse(ast.fix_missing_locations(tree)))


def _names_set(tree: ast.Module, line: int) -> list[str]:
    """Names that the statement of a module or class on this line binds; else its functions'."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and node.lineno <= line <= (node.end_lineno or line):
            return [
                inner.id
                for target in node.targets
                for inner in ast.walk(target)
                if isinstance(inner, ast.Name)
            ]
    return [node.name for node in ast.walk(tree) if isinstance(node, FUNCTIONS)]


class _Probes(ast.NodeTransformer):
    """Puts ``_enter(i)`` before the mutants' statements, and into functions that name a value."""

    def __init__(self, of_lines: dict[int, set[int]], of_names: dict[str, set[int]]) -> None:
        self._of_lines, self._of_names = of_lines, of_names

    def visit(self, node: ast.AST) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node, FUNCTIONS):
            used = {getattr(inner, "id", getattr(inner, "attr", "")) for inner in ast.walk(node)}
            used.add(node.name)
            numbers = {i for name in used for i in self._of_names.get(name, ())}
            at = _after_docstring(node.body)
            node.body[at:at] = [_probe(i) for i in sorted(numbers)]
        if not isinstance(node, ast.Module | ast.ClassDef | ast.Lambda):
            for name in ("body", "orelse", "finalbody"):
                if isinstance(body := getattr(node, name, None), list):
                    setattr(node, name, self._with_probes(body))
        return node

    def _with_probes(self, body: list[ast.stmt]) -> list[ast.stmt]:
        out: list[ast.stmt] = []
        for statement in body:
            if hasattr(statement, "lineno"):  # or it is a probe
                for line in _head(statement):
                    out += [_probe(i) for i in sorted(self._of_lines.get(line, ()))]
            out.append(statement)
        return out


def _after_docstring(body: list[ast.stmt]) -> int:
    first = body[0] if body else None
    return int(isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant))


def _head(statement: ast.stmt) -> range:
    """Lines of a statement without those of its body."""
    inside = [inner.lineno for inner in getattr(statement, "body", ()) if hasattr(inner, "lineno")]
    last = inside[0] - 1 if inside else statement.end_lineno or statement.lineno
    return range(statement.lineno, max(last, statement.lineno) + 1)


def _probe(number: int) -> ast.stmt:
    statement = ast.parse(f"_enter({number})").body[0]
    del statement.lineno
    return statement

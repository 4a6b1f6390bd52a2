"""Deliberate one-line breakages, and whether a test sees them: ``python -m tests.mutation``.

A mutant changes one operator, constant or sign of one line below ``skbayes_sgld``. It is run, in a
copy of the tree, against the tests that enter that line, the most specific first; it is killed by
the first that fails. What survives is printed, to be explained or to get a test.

The tests that enter a line are those of one run of the suite under coverage, which is made first
and kept in ``.coverage.mutation`` (``--map`` makes it anew).
"""

from __future__ import annotations

import argparse
import ast
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from queue import Queue

ROOT = Path(__file__).parents[1]
PACKAGE = "skbayes_sgld"
PLACES = ("sampling", "posterior", "inference", "prediction", "diagnostics.py")
MAP = ROOT / ".coverage.mutation"
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


@dataclass(frozen=True)
class Mutant:
    """A change of one line."""

    path: str  # from the root
    line: int
    start: int
    end: int
    new: str

    def source(self, text: str) -> str:
        """The file's text with the change in it."""
        lines = text.splitlines(keepends=True)
        at = lines[self.line - 1]
        lines[self.line - 1] = at[: self.start] + self.new + at[self.end :]
        return "".join(lines)

    def __str__(self) -> str:
        old = (ROOT / self.path).read_text()
        lines = [text.splitlines()[self.line - 1].strip() for text in (old, self.source(old))]
        return f"{self.path}:{self.line}\n    - {lines[0]}\n    + {lines[1]}"


def find_mutants(path: Path) -> Iterator[Mutant]:
    """Every mutant of a file; messages, annotations and default values are left alone."""
    text = path.read_text()
    lines, name = text.splitlines(), str(path.relative_to(ROOT))

    def between(left: ast.expr, right: ast.expr, operator: ast.AST) -> Iterator[Mutant]:
        if type(operator) not in _OPERATORS or left.end_lineno != right.lineno:
            return
        old, new = _OPERATORS[type(operator)]
        gap = lines[right.lineno - 1][left.end_col_offset : right.col_offset]
        found = re.fullmatch(rf"([\s)]*){re.escape(old)}([\s(]*)", gap)
        if found:
            start = (left.end_col_offset or 0) + len(found[1])
            yield Mutant(name, right.lineno, start, start + len(old), new)

    def visit(node: ast.AST) -> Iterator[Mutant]:
        if isinstance(node, _LEFT_ALONE):
            return
        if isinstance(node, ast.BinOp):
            yield from between(node.left, node.right, node.op)
        elif isinstance(node, ast.Compare):
            for left, right, operator in zip(
                [node.left, *node.comparators], node.comparators, node.ops, strict=False
            ):
                yield from between(left, right, operator)
        elif isinstance(node, ast.BoolOp):
            yield from between(*node.values[:2], node.op)
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.Not):
            width = len("-" if isinstance(node.op, ast.USub) else "not")
            yield Mutant(name, node.lineno, node.col_offset, node.col_offset + width, "")
        elif isinstance(node, ast.Constant) and isinstance(node.value, bool | int | float):
            value = node.value
            if isinstance(value, bool):
                new = str(not value)
            else:
                new = str(value + 1 if isinstance(value, int) else 2.0 * value or 1.0)
            yield Mutant(name, node.lineno, node.col_offset, node.end_col_offset or 0, new)
        for child in ast.iter_child_nodes(node):
            yield from visit(child)

    yield from visit(ast.parse(text))


def run_tests(folder: Path, tests: list[str], *more: str, limit: float | None = None) -> int:
    """Exit code of pytest on some tests in a copy of the tree; 1 where it takes too long."""
    listed = folder / "tests.txt"
    listed.write_text("\n".join(tests))
    environment = os.environ | {
        "PYTHONPATH": str(folder),
        "MPLBACKEND": "Agg",
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
    }
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *more, f"@{listed}"]
    try:
        done = subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, timeout=limit, check=False
        )
    except subprocess.TimeoutExpired:
        return 1
    return done.returncode


def make_map(jobs: int) -> None:
    """Run the suite once under coverage, with the name of the test that enters a line."""
    command = [sys.executable, "-m", "pytest", "-q", "-n", str(jobs), f"--cov={PACKAGE}"]
    environment = os.environ | {"COVERAGE_FILE": str(MAP), "MPLBACKEND": "Agg"}
    more = ["--cov-context=test", "--cov-report=", "-p", "no:cacheprovider"]
    subprocess.run([*command, *more], cwd=ROOT, env=environment, check=False)


class Tests:
    """The tests that enter a line, the most specific first."""

    def __init__(self) -> None:
        from coverage import CoverageData

        self._data = CoverageData(str(MAP))
        self._data.read()
        self._size: Counter[str] = Counter()
        self._by_file: dict[str, dict[int, list[str]]] = {}
        for path in self._data.measured_files():
            by_line = {
                line: [name.partition("|")[0] for name in names if name]
                for line, names in self._data.contexts_by_lineno(path).items()
            }
            self._by_file[str(Path(path).relative_to(ROOT))] = by_line
            for names in by_line.values():
                self._size.update(names)

    def of(self, mutant: Mutant, most: int) -> list[str]:
        """At most so many tests of a mutant's line; of what an import runs, those of its folder."""
        inside = Path(mutant.path).relative_to(PACKAGE)
        folder = "tests" if len(inside.parts) == 1 else f"tests/{inside.parts[0]}"
        names = set(self._by_file.get(mutant.path, {}).get(mutant.line, ()))
        if not names:
            return [folder] if len(inside.parts) > 1 else ["tests/test_diagnostics.py"]
        order = sorted(names, key=lambda name: (not name.startswith(folder), self._size[name]))
        return order[:most]


def main() -> int:
    """Make mutants, run them, and print what survives."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("places", nargs="*", default=PLACES, help=f"below {PACKAGE}/")
    parser.add_argument("--number", type=int, default=200, help="mutants (200)")
    parser.add_argument("--seed", type=int, default=0, help="seed of their choice (0)")
    parser.add_argument("--most", type=int, default=200, help="tests of a mutant (200)")
    parser.add_argument("--limit", type=float, default=300.0, help="seconds of a mutant (300)")
    parser.add_argument("--jobs", type=int, default=2, help="mutants at a time (2)")
    parser.add_argument("--map", action="store_true", help="make the map of tests anew")
    options = parser.parse_args()
    if options.map or not MAP.exists():
        make_map(options.jobs)
    tests, mutants = Tests(), []
    for place in options.places:
        at = ROOT / PACKAGE / place
        for path in sorted(at.rglob("*.py")) if at.is_dir() else [at]:
            mutants += find_mutants(path)
    total = len(mutants)
    mutants = random.Random(options.seed).sample(mutants, min(options.number, total))
    folders: Queue[Path] = Queue()
    with tempfile.TemporaryDirectory() as place:
        for job in range(options.jobs):
            copy = Path(place) / str(job)
            left_out = shutil.ignore_patterns(".git", ".venv", ".*_cache", ".coverage*", "_build")
            shutil.copytree(ROOT, copy, ignore=left_out)
            folders.put(copy)

        def survives(mutant: Mutant) -> bool:
            folder = folders.get()
            target, chosen = folder / mutant.path, tests.of(mutant, options.most)
            before = target.read_text()
            target.write_text(mutant.source(before))
            try:
                return run_tests(folder, chosen, "-x", limit=options.limit) == 0
            finally:
                target.write_text(before)
                folders.put(folder)

        print(f"{len(mutants)} of {total} mutants", flush=True)
        survivors = []
        with ThreadPoolExecutor(options.jobs) as pool:
            for i, (mutant, alive) in enumerate(
                zip(mutants, pool.map(partial(survives), mutants), strict=True), 1
            ):
                if alive:
                    survivors.append(mutant)
                    print(f"{i:>4} survived: {mutant}", flush=True)
                elif i % 10 == 0:
                    print(f"{i:>4} run, {len(survivors)} survived", flush=True)
    killed = len(mutants) - len(survivors)
    print(f"{killed} of {len(mutants)} killed: {killed / len(mutants):.1%}")
    return int(bool(survivors))


if __name__ == "__main__":
    sys.exit(main())

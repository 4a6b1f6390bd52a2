"""Deliberate one-line breakages, and whether a test sees them: ``python -m tests.mutation``.

A mutant changes one operator, constant or sign of one line below ``skbayes_sgld``. It is run, in a
copy of the tree, against the test files that enter that line, its own folder's first and the
fastest first; the first test that fails kills it. What survives is to be explained or to get a
test.

The files that enter a line are those of one run under coverage, which is made first and kept in
``build/mutation`` (``--map`` makes it anew), with the table of the results.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import json
import multiprocessing
import os
import random
import re
import resource
import shutil
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = "skbayes_sgld"
PLACES = ("sampling", "posterior", "inference", "prediction", "diagnostics.py")
TESTS = ("sampling", "posterior", "inference", "prediction", "estimators", "test_diagnostics.py")
RESULTS = ROOT / "build" / "mutation"
MAP = RESULTS / "map.json"
_PRELOADED = (
    "numpy",
    "scipy.stats scipy.optimize scipy.sparse scipy.integrate scipy.linalg scipy.fft scipy.special",
    "pandas",
    "sklearn.linear_model sklearn.model_selection sklearn.pipeline sklearn.datasets",
    "arviz_stats.base pytest",
)
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

    def change(self) -> tuple[str, str]:
        """The line before and after."""
        text = (ROOT / self.path).read_text()
        before, after = (t.splitlines()[self.line - 1].strip() for t in (text, self.source(text)))
        return before, after


def find_mutants(path: Path) -> Iterator[Mutant]:
    """Every mutant of a file; messages, annotations, decorators and defaults are not among them."""
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
            yield from between(node.values[0], node.values[1], node.op)
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
        decorators = getattr(node, "decorator_list", [])
        for child in ast.iter_child_nodes(node):
            if child not in decorators:
                yield from visit(child)

    yield from visit(ast.parse(text))


# ---- pytest, in a process forked from one that has imported the libraries -----------------------


def _child(folder: Path, arguments: list[str], output: Path, cpu: int) -> None:
    os.setpgid(0, 0)
    resource.setrlimit(resource.RLIMIT_CPU, (cpu, cpu + 5))
    os.chdir(folder)
    sys.path[:] = [str(folder), *(p for p in sys.path if Path(p or ".").resolve() != ROOT)]
    os.environ["PYTHONPATH"] = str(folder)
    for name in [name for name in sys.modules if name.partition(".")[0] in ("tests", PACKAGE)]:
        del sys.modules[name]
    with output.open("wb") as stream:
        os.dup2(stream.fileno(), 1)
        os.dup2(stream.fileno(), 2)
    import pytest

    status = pytest.main(["-q", "-p", "no:cacheprovider", "--tb=no", *arguments])
    sys.stdout.flush()
    os._exit(int(status))


def run_pytest(folder: Path, arguments: list[str], cpu: int) -> tuple[int | None, str, float]:
    """Exit code (None: it took longer than its limit), output and seconds of CPU time."""
    output = folder / "output.txt"
    process = multiprocessing.get_context("fork").Process(
        target=_child, args=(folder, arguments, output, cpu)
    )
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    process.start()
    process.join(10.0 * cpu)  # one that waits takes no CPU time
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid or 0, signal.SIGKILL)
    process.join()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    code = process.exitcode
    seconds = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    text = output.read_text(errors="replace") if output.exists() else ""
    return (None if code is None or code < 0 else code), text, seconds


def copy_tree(place: str) -> Path:
    """Copy of what the tests need, in a temporary folder."""
    target = Path(place) / "copy"
    left_out = shutil.ignore_patterns(".*", "_build", "build", "dist", "__pycache__")
    shutil.copytree(ROOT, target, ignore=left_out)
    return target


# ---- which test files enter a line -------------------------------------------------------------


def make_map(limit: int) -> None:
    """Run each test file once under coverage; keep the lines that its tests enter, and its time."""
    from coverage import CoverageData

    RESULTS.mkdir(parents=True, exist_ok=True)
    found: dict[str, dict[str, list[int]]] = {}
    seconds: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as place:
        folder = copy_tree(place)
        data_file = folder / ".coverage"
        os.environ["COVERAGE_FILE"] = str(data_file)
        for test in _test_files():
            more = [f"--cov={PACKAGE}", "--cov-context=test", "--cov-report=", test]
            code, text, seconds[test] = run_pytest(folder, more, limit)
            if code != 0:
                print(f"{test} is left out: {code}\n{text[-500:]}", flush=True)
                continue
            data = CoverageData(str(data_file))
            data.read()
            for path in data.measured_files():
                lines = data.contexts_by_lineno(path).items()
                entered = sorted(line for line, tests in lines if any(tests))
                name = str(Path(path).resolve().relative_to(folder.resolve()))
                found.setdefault(name, {})[test] = entered
            print(f"{seconds[test]:6.1f} s  {test}", flush=True)
            MAP.write_text(json.dumps({"seconds": seconds, "lines": found}))


def _test_files() -> list[str]:
    files: list[Path] = []
    for name in TESTS:
        at = ROOT / "tests" / name
        files += sorted(at.rglob("test_*.py")) if at.is_dir() else [at]
    return [str(file.relative_to(ROOT)) for file in files]


class Map:
    """The test files that enter a line."""

    def __init__(self) -> None:
        kept = json.loads(MAP.read_text())
        self._seconds: dict[str, float] = kept["seconds"]
        self._lines = {
            path: {test: set(lines) for test, lines in by_test.items()}
            for path, by_test in kept["lines"].items()
        }

    def files(self, mutant: Mutant, most: float) -> list[str]:
        """Files that take at most so many seconds together, nearest to the line and fastest first.

        Of a line that runs at import: those that enter anything else of its file.
        """
        by_test = self._lines.get(mutant.path, {})
        names = [test for test, lines in by_test.items() if mutant.line in lines]
        names = names or [test for test, lines in by_test.items() if lines]
        own = Path(mutant.path).relative_to(PACKAGE).with_suffix("").parts

        def order(test: str) -> tuple[int, float]:
            parts = Path(test).with_suffix("").parts[1:]
            shared = len(os.path.commonprefix([own[:-1], parts[:-1]]))
            shared += parts[-1] == f"test_{own[-1]}"
            return -shared, self._seconds[test]

        chosen: list[str] = []
        total = 0.0
        for test in sorted(names, key=order):
            total += self._seconds[test]
            if chosen and total > most:
                break
            chosen.append(test)
        return chosen


# ---- the run ------------------------------------------------------------------------------------


def run_mutant(folder: Path, mutant: Mutant, number: int, files: list[str], cpu: int) -> str:
    """Test that killed a mutant: its name, or "time"; empty where none did."""
    target = folder / mutant.path
    before, times = target.read_text(), target.stat()
    target.write_text(mutant.source(before))
    os.utime(target, (number, number))  # another time for each, or its bytecode would be reused
    try:
        code, text, _ = run_pytest(folder, ["-x", *files], cpu)
    finally:
        target.write_text(before)
        os.utime(target, (times.st_atime, times.st_mtime))
    if code is None:
        return "time"
    failed = re.search(r"^(?:FAILED|ERROR) (\S+)", text, re.MULTILINE)
    return (failed[1] if failed else text[-200:] or "error") if code else ""


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("places", nargs="*", default=PLACES, help=f"below {PACKAGE}/")
    parser.add_argument("--number", type=int, default=200, help="mutants (200)")
    parser.add_argument("--seed", type=int, default=0, help="seed of their choice (0)")
    parser.add_argument("--most", type=float, default=40.0, help="CPU seconds of tests (40)")
    parser.add_argument("--limit", type=int, default=120, help="CPU seconds of a run (120)")
    parser.add_argument("--map", action="store_true", help="make the map of tests anew")
    parser.add_argument("--only", type=int, nargs="+", help="numbers of the mutants to run")
    return parser


def _print_table(rows: list[dict[str, object]]) -> None:
    run, killed = Counter[str](), Counter[str]()
    for row in rows:
        parts = Path(str(row["path"])).parts
        place = parts[1].removesuffix(".py")
        run[place] += 1
        killed[place] += bool(row["killed_by"])
    print("\n| part | mutants | killed | survived |\n|---|---|---|---|")
    for place in [*sorted(run), "all"]:
        a, b = (run[place], killed[place]) if place != "all" else (run.total(), killed.total())
        print(f"| {place} | {a} | {b} | {a - b} |")


def main() -> int:
    """Make mutants, run them, and print what survives."""
    options = _parser().parse_args()
    os.environ |= {"MPLBACKEND": "Agg", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    for name in " ".join(_PRELOADED).split():
        __import__(name)
    if options.map or not MAP.exists():
        make_map(20 * options.limit)
    kept, every = Map(), list[Mutant]()
    for place in options.places:
        at = ROOT / PACKAGE / place
        for path in sorted(at.rglob("*.py")) if at.is_dir() else [at]:
            every += find_mutants(path)
    chosen = random.Random(options.seed).sample(every, min(options.number, len(every)))
    print(f"{len(chosen)} of {len(every)} mutants", flush=True)
    rows: list[dict[str, object]] = []
    with tempfile.TemporaryDirectory() as place:
        folder = copy_tree(place)
        for number, mutant in enumerate(chosen, 1):
            if options.only and number not in options.only:
                continue
            files = kept.files(mutant, options.most)
            by = run_mutant(folder, mutant, number, files, options.limit) if files else ""
            before, after = mutant.change()
            rows.append({"number": number, **asdict(mutant), "before": before, "after": after})
            rows[-1] |= {"files": files, "killed_by": by}
            if by:
                print(f"{number:>4} {mutant.path}:{mutant.line}  {by}", flush=True)
            else:
                print(f"{number:>4} {mutant.path}:{mutant.line}  SURVIVED", flush=True)
                print(f"     - {before}\n     + {after}", flush=True)
            (RESULTS / "results.json").write_text(json.dumps(rows, indent=1))
    _print_table(rows)
    return int(not all(row["killed_by"] for row in rows))


if __name__ == "__main__":
    sys.exit(main())

"""Break lines on purpose, one at a time, and see whether a test fails.

A mutant changes one operator, constant or sign of one line: 200 are of models, sampling,
inference, prediction and diagnostics, and 40 more of rows, estimators, criticism, networks and
checkpoints. It is run in a copy of the tree, against the tests that enter its line, those of the
nearest file first, until one fails and so kills it. Tests that take three times the CPU time of a
clean run have killed it too: it hangs.

Results are kept in ``results.json`` beside this file. A mutant that was killed, or is equivalent
for a reason ("by"), is run again only if its function has changed, or the test that killed it is
gone; all others are run. A first run of all tests under ``coverage`` finds the tests that enter
each line. It is kept in ``build/mutation`` until a file of the package or of the tests changes.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from pathlib import Path
from queue import Queue
from xml.etree import ElementTree

from coverage import CoverageData

from tests.maintainer.mutation.mutants import (
    OTHER_PLACES,
    PACKAGE,
    PLACES,
    RESULTS,
    ROOT,
    Mutant,
    sample_mutants,
)

MAP = ROOT / "build" / "mutation"
PARTS = (*PLACES, *OTHER_PLACES)  # of the table
TESTS = ["tests", "--ignore=tests/maintainer"]
ENVIRONMENT = {"MPLBACKEND": "Agg", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
MOST = 120.0
Result = dict[str, str]
Tests = dict[str, float]  # their names and seconds


def run_pytest(folder: Path, options: Iterable[str], cpu: float | None = None) -> tuple[int, str]:
    """Exit code and output of pytest in a folder; ``cpu`` bounds its seconds."""

    def limit() -> None:
        if cpu is not None:
            resource.setrlimit(resource.RLIMIT_CPU, (int(cpu), int(cpu) + 5))

    try:
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--tb=no", *options],
            cwd=folder,
            env=os.environ | ENVIRONMENT | {"PYTHONPATH": str(folder)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=None if cpu is None else 20.0 * cpu,  # one that waits takes no CPU time
            preexec_fn=limit,
        )
    except subprocess.TimeoutExpired:
        return -1, ""
    return done.returncode, done.stdout


class Map:
    """Tests that enter each line, and their seconds, from one run under coverage."""

    def __init__(self, jobs: int) -> None:
        sources = sorted([*(ROOT / PACKAGE).rglob("*.py"), *(ROOT / "tests").rglob("*.py")])
        digest = sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()
        kept = MAP / "digest"
        if not kept.exists() or kept.read_text() != digest:
            MAP.mkdir(parents=True, exist_ok=True)
            os.environ["COVERAGE_FILE"] = str(MAP / "lines")
            options = [f"--cov={PACKAGE}", "--cov-context=test", "--cov-report=", f"-n{jobs}"]
            run_pytest(ROOT, [*options, f"--junitxml={MAP / 'seconds.xml'}", *TESTS])
            kept.write_text(digest)
        self._data = CoverageData(str(MAP / "lines"))
        self._data.read()
        self._seconds: dict[str, float] = {}
        self._failed: set[str] = set()
        for case in ElementTree.parse(MAP / "seconds.xml").iter("testcase"):
            name = f"{case.get('classname')}.{case.get('name')}"
            self._seconds[name] = float(case.get("time") or 0.0)
            if case.find("failure") is not None or case.find("error") is not None:
                self._failed.add(name)
        self._of_file: dict[str, set[str]] = defaultdict(set)
        for test in {context.rpartition("|")[0] for context in self._data.measured_contexts()}:
            self._of_file[test.partition("::")[0]].add(test)

    def tests(self, mutant: Mutant) -> Tests:
        """Tests that pass and enter a mutant's statement, or its file if it runs at import."""
        lines = self._data.contexts_by_lineno(str(ROOT / mutant.path))
        own = range(mutant.first, mutant.line + 1) if mutant.function else lines
        found: set[str] = set()
        for context in {context for line in own for context in lines.get(line, ()) if context}:
            test, _, phase = context.rpartition("|")  # names of tests have this sign, too
            # a fixture is set up for the first of the tests that share it
            found |= {test} if phase == "run" else self._of_file[test.partition("::")[0]]
        names = {test: _name_in_xml(test) for test in found}
        passed = {test: name for test, name in names.items() if name not in self._failed}
        return {test: self._seconds.get(name, 0.0) for test, name in passed.items()}


def _name_in_xml(test: str) -> str:
    file, _, name = test.partition("::")
    return f"{file.removesuffix('.py').replace('/', '.')}.{name}"


def choose_tests(mutant: Mutant, tests: Tests) -> Tests:
    """Tests that take ``MOST`` seconds together, those of the nearest and fastest files first."""
    by_file: dict[str, Tests] = defaultdict(dict)
    for test, seconds in sorted(tests.items()):
        by_file[test.partition("::")[0]][test] = seconds
    own = Path(mutant.path).relative_to(PACKAGE).with_suffix("").parts

    def order(file: str) -> tuple[int, float]:
        parts = Path(file).with_suffix("").parts[1:]
        shared = sum(a == b for a, b in zip(own[:-1], parts[:-1], strict=False))
        return -shared - 2 * (parts[-1] == f"test_{own[-1]}"), sum(by_file[file].values())

    chosen: Tests = {}
    for file in sorted(by_file, key=order):
        more = by_file[file]
        if not chosen or sum((chosen | more).values()) <= MOST:
            chosen |= more
    return chosen


def first_failure(mutant: Mutant, tests: Tests, folder: Path) -> str:
    """First of the tests that fails under a mutant, "time" if they take too long, or ""."""
    path = folder / mutant.path
    text = path.read_text()
    listed = folder.parent / f"{folder.name}.tests"
    listed.write_text("\n".join(tests))
    path.write_text(mutant.source(text))
    try:
        code, output = run_pytest(folder, ["-x", f"@{listed}"], 3.0 * sum(tests.values()) + 40.0)
    finally:
        path.write_text(text)
    if code < 0:
        return "time"
    if "ERROR: not found" in output:
        raise RuntimeError(output[-2000:])
    failed = re.search(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", output, re.MULTILINE)
    return (failed[1] if failed else "an error at import") if code else ""


def _print_table(mutants: list[Mutant], results: dict[str, Result]) -> int:
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for mutant in mutants:
        known = results.get(mutant.key)
        outcome = known["outcome"] if known and known["digest"] == mutant.digest else "not run"
        for place in (Path(mutant.path).parts[1].removesuffix(".py"), "all"):
            counts[place][outcome] += 1
    print("\n| part | mutants | killed | equivalent | open | not run |\n|---|---|---|---|---|---|")
    for place in sorted(counts, key=lambda name: (name == "all", name)):
        of = counts[place]
        columns = [of.total(), *(of[name] for name in ("killed", "equivalent", "open", "not run"))]
        print(f"| {place} | " + " | ".join(map(str, columns)) + " |")
    return counts["all"]["open"] + counts["all"]["not run"]


def _is_settled(result: Result | None, mutant: Mutant, again: bool) -> bool:
    if result is None or result["digest"] != mutant.digest or result["outcome"] == "open":
        return False
    return result["outcome"] == "equivalent" or not again and _is_there(result["by"])


def _is_there(test: str) -> bool:
    """Whether a test, by its id, still stands in its file."""
    path, _, name = test.partition("::")
    if not name:  # the mutant hung, or the package could not be imported
        return True
    function = name.partition("[")[0].rpartition("::")[2]
    return (ROOT / path).exists() and f"def {function}(" in (ROOT / path).read_text()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tests.maintainer.mutation",
        description=__doc__,
        formatter_class=argparse.RawTextHelpFormatter,
    )
    parser.add_argument("places", nargs="*", help=f"only those in {', '.join(PARTS)}")
    parser.add_argument("--jobs", type=int, default=2, help="processes (2)")
    parser.add_argument("--again", action="store_true", help="run those that were killed too")
    parser.add_argument("--table", action="store_true", help="print the table and run nothing")
    return parser


def main() -> int:
    """Run the mutants that are not settled; the exit code tells whether one is open."""
    options = _parser().parse_args()
    mutants = sample_mutants()
    kept: dict[str, Result] = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    results = {mutant.key: kept[mutant.key] for mutant in mutants if mutant.key in kept}
    wanted = [
        mutant
        for mutant in mutants
        if not options.places or Path(mutant.path).parts[1] in options.places
        if not _is_settled(results.get(mutant.key), mutant, options.again)
    ]
    if options.table or not wanted:
        return int(_print_table(mutants, results) > 0)
    entered = Map(options.jobs)
    chosen = [choose_tests(mutant, entered.tests(mutant)) for mutant in wanted]
    copies: Queue[Path] = Queue()

    def run(mutant: Mutant, tests: Tests) -> str:
        folder = copies.get()
        try:
            return first_failure(mutant, tests, folder) if tests else ""
        finally:
            copies.put(folder)

    with tempfile.TemporaryDirectory() as place, ThreadPoolExecutor(options.jobs) as pool:
        left_out = shutil.ignore_patterns(".*", "_build", "build", "dist", "__pycache__")
        for job in range(options.jobs):
            copies.put(shutil.copytree(ROOT, Path(place) / f"copy{job}", ignore=left_out))
        for mutant, by in zip(wanted, pool.map(run, wanted, chosen), strict=True):
            results[mutant.key] = {
                "path": mutant.path,
                "digest": mutant.digest,
                "outcome": "killed" if by else "open",
                "by": by,
            }
            RESULTS.write_text(json.dumps(results, indent=1, sort_keys=True) + "\n")
            print(f"{mutant.path}:{mutant.line} {by or 'OPEN'}", flush=True)
            if not by:
                print(f"    - {mutant.text}\n    + {mutant.changed()}", flush=True)
    return int(_print_table(mutants, results) > 0)


if __name__ == "__main__":
    sys.exit(main())

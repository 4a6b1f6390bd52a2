"""Break lines on purpose, one at a time, and see whether a test fails.

A mutant changes one operator, constant or sign of one line of sampling, posteriors, inference,
prediction or diagnostics. It is run, in a copy of the tree, against the tests that enter that
line, the nearest file's first; the first test that fails kills it. Tests that take three times
the CPU time of a clean run have been killed too: it hangs.

Results are kept in ``tests/mutation/results.json``. What was killed, or has a reason for being
equivalent ("by"), is run again only where its function has changed; all others are run. Which
tests enter a line is found in a first run of all of them, and kept in ``build/mutation``.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path

from tests.mutation.mutants import PACKAGE, PLACES, ROOT, Mutant, sample_mutants
from tests.mutation.processes import Sessions, copy_tree, preload, start_pytest, stop
from tests.mutation.session import Session
from tests.mutation.switches import VARIABLE, put_switches

MIRRORED = {place: f"test_{place}" if place.endswith(".py") else place for place in PLACES}
FARTHER = ("estimators", "blocks")  # for what no part's own tests kill
RESULTS = Path(__file__).with_name("results.json")
MAP = ROOT / "build" / "mutation" / "entered.json"
Result = dict[str, str]
Tests = dict[str, float]  # their names and seconds of CPU time


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


class Map:
    """Which tests enter the line of a mutant, kept by the contents of the test files."""

    def __init__(self, keys: list[str]) -> None:
        kept = json.loads(MAP.read_text()) if MAP.exists() else {"keys": [], "files": {}}
        self._keys = keys
        self._files = kept["files"] if set(keys) <= set(kept["keys"]) else {}

    def missing(self, files: Sequence[str]) -> list[str]:
        """Files that have changed since, or were never run."""
        return [file for file in files if self._files.get(file, {}).get("digest") != _digest(file)]

    def add(self, file: str, entered: list[tuple[str, float, list[int]]]) -> None:
        """Keep what the tests of a file have entered."""
        tests = {
            test: {"seconds": seconds, "keys": [self._keys[number] for number in numbers]}
            for test, seconds, numbers in entered
        }
        self._files[file] = {"digest": _digest(file), "tests": tests}
        MAP.parent.mkdir(parents=True, exist_ok=True)
        MAP.write_text(json.dumps({"keys": self._keys, "files": self._files}, indent=1))

    def tests(self, mutant: Mutant, files: Sequence[str]) -> Tests:
        """Tests of some files that enter a mutant's line."""
        return {
            test: entry["seconds"]
            for file in files
            for test, entry in self._files[file]["tests"].items()
            if mutant.key in entry["keys"]
        }


def _digest(file: str) -> str:
    return hashlib.sha256((ROOT / file).read_bytes()).hexdigest()[:12]


def _test_files(places: Sequence[str]) -> list[str]:
    found: list[Path] = []
    for name in places:
        at = ROOT / "tests" / name
        found += sorted(at.rglob("test_*.py")) if at.is_dir() else [at]
    return [str(file.relative_to(ROOT)) for file in found]


def _stages(options: argparse.Namespace) -> list[tuple[Sequence[str], list[str]]]:
    """Parts, each with the folders of tests that are run: its own first, then all others."""
    own: list[tuple[Sequence[str], list[str]]]
    own = [([place], [MIRRORED[place]]) for place in options.places or PLACES]
    if options.own:
        return own
    return [*own, (PLACES, [*MIRRORED.values()]), (PLACES, [*FARTHER])]


def _folders(options: argparse.Namespace) -> list[str]:
    return list(dict.fromkeys(name for _, folders in _stages(options) for name in folders))


def _is_settled(result: Result | None, mutant: Mutant) -> bool:
    if result is None or result["digest"] != mutant.digest:
        return False
    return result["outcome"] != "open"


def _run_afresh(folder: Path, number: int, tests: Tests, cpu: float) -> str:
    """Name of the first test that fails where mutant ``number`` is there when all is imported."""
    output = folder.parent / "afresh.txt"
    process = start_pytest(folder, [*tests], output, {VARIABLE: str(number)})
    process.join(20.0 * cpu)
    code = process.exitcode
    stop(process)
    failed = re.search(r"^(?:FAILED|ERROR) (\S+)", output.read_text(errors="replace"), re.MULTILINE)
    if code is None:
        return "time"
    return (failed[1] if failed else "an error at import") if code else ""


def _print_table(mutants: list[Mutant], results: dict[str, Result]) -> int:
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for mutant in mutants:
        outcome = results[mutant.key]["outcome"] if mutant.key in results else "not run"
        for place in (Path(mutant.path).parts[1].removesuffix(".py"), "all"):
            counts[place][outcome] += 1
    print("\n| part | mutants | killed | equivalent | open | not run |\n|---|---|---|---|---|---|")
    for place in sorted(counts, key=lambda name: (name == "all", name)):
        of = counts[place]
        columns = [of.total(), *(of[name] for name in ("killed", "equivalent", "open", "not run"))]
        print(f"| {place} | " + " | ".join(map(str, columns)) + " |")
    return counts["all"]["open"] + counts["all"]["not run"]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tests.mutation",
        description=__doc__,
        formatter_class=argparse.RawTextHelpFormatter,
    )
    parser.add_argument("places", nargs="*", help=f"only those in {', '.join(PLACES)}")
    parser.add_argument("--number", type=int, default=200, help="mutants (200)")
    parser.add_argument("--seed", type=int, default=0, help="seed of their choice (0)")
    parser.add_argument("--most", type=float, default=60.0, help="CPU seconds of tests (60)")
    parser.add_argument("--jobs", type=int, default=2, help="processes (2)")
    parser.add_argument("--own", action="store_true", help="with tests of the same folder alone")
    parser.add_argument("--again", action="store_true", help="run those that were killed too")
    parser.add_argument("--table", action="store_true", help="print the table and run nothing")
    return parser


def main() -> int:
    """Run the mutants that are not settled; the exit code tells whether one is open."""
    options = _parser().parse_args()
    mutants = sample_mutants(options.number, options.seed)
    results: dict[str, Result] = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    wanted = [
        number
        for number, mutant in enumerate(mutants)
        if not options.places or Path(mutant.path).parts[1] in options.places
        if not _is_settled(results.get(mutant.key), mutant)
        or (options.again and results[mutant.key]["outcome"] == "killed")
    ]
    if options.table or not wanted:
        return int(_print_table(mutants, results) > 0)

    def keep(number: int, by: str) -> None:
        mutant = mutants[number]
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

    def killed(number: int) -> bool:
        known = results.get(mutants[number].key)
        return known is not None and _is_settled(known, mutants[number])

    if options.again:
        for number in wanted:
            results.pop(mutants[number].key, None)
    preload()
    seen = Map([mutant.key for mutant in mutants])
    with tempfile.TemporaryDirectory() as place:
        folder = copy_tree(place)
        put_switches(folder, mutants)
        sessions = Sessions(options.jobs, folder, _test_files(_folders(options)), Session)
        try:
            for inside, folders in _stages(options):
                now = [n for n in wanted if Path(mutants[n].path).parts[1] in inside]
                now = [n for n in now if not killed(n)]
                files = _test_files(folders) if now else []
                for (file,), entered in sessions.answers([(f,) for f in seen.missing(files)]):
                    seen.add(file, entered)
                    print(f"{file}: {len(entered)} tests", flush=True)
                tests = {n: seen.tests(mutants[n], files) for n in now}
                tests = {n: choose_tests(mutants[n], tests[n], options.most) for n in now}
                limits = {n: 3.0 * sum(tests[n].values()) + 20.0 for n in now}
                tasks = [(n, [*tests[n]], limits[n]) for n in now if mutants[n].function]
                for (number, *_), by in sessions.answers(tasks):
                    keep(number, by)
                for number in now:
                    if not mutants[number].function:
                        of = tests[number]
                        keep(number, _run_afresh(folder, number, of, limits[number]) if of else "")
        finally:
            sessions.stop()
    return int(_print_table(mutants, results) > 0)


if __name__ == "__main__":
    sys.exit(main())

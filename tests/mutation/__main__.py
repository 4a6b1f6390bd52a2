"""Break lines on purpose, one at a time, and see whether a test fails.

A mutant changes one operator, constant or sign of one line of sampling, posteriors, inference,
prediction or diagnostics. It is run, in a copy of the tree, against the tests that enter that
line, the nearest file's first; the first test that fails kills it. Tests that take three times
the CPU time of a clean run have been killed too: it hangs.

Results are kept in ``tests/mutation/results.json``. What was killed, or has a reason for being
equivalent ("because"), is run again only where its function has changed; all others are run.
The tests that enter a line are those of one run, kept in ``build/mutation`` (``--map``: anew).
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import re
import sys
import tempfile
from collections import Counter, defaultdict
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import partial
from pathlib import Path

from tests.mutation.entered import Tests, choose_tests, find_entered
from tests.mutation.mutants import PLACES, ROOT, Mutant, sample_mutants
from tests.mutation.processes import copy_tree, preload, run_pytest

TESTS = ("estimators", "posterior", "sampling", "inference", "prediction", "test_diagnostics.py")
RESULTS = Path(__file__).with_name("results.json")
MAP = ROOT / "build" / "mutation" / "entered.json"
Result = dict[str, str]


def run_mutant(tests: Tests, mutant: Mutant) -> str:
    """Name of the test that fails; "time" where it takes too long; empty where none fails."""
    with tempfile.TemporaryDirectory() as place:
        folder = copy_tree(place)
        target = folder / mutant.path
        target.write_text(mutant.source(target.read_text()))
        limit = 3.0 * sum(tests.values()) + 20.0
        code, text = run_pytest(folder, ["-x"], list(tests), limit)
    if code is None:
        return "time"
    failed = re.search(r"^(?:FAILED|ERROR) (\S+)", text, re.MULTILINE)
    return (failed[1] if failed else text[-200:] or "error") if code else ""


def _make_map(pool: ProcessPoolExecutor, mutants: list[Mutant]) -> dict[str, Tests]:
    entered: dict[str, Tests] = defaultdict(dict)
    for found in pool.map(
        partial(find_entered, mutants, cpu=3600.0), [f"tests/{name}" for name in TESTS]
    ):
        for key, tests in found.items():
            entered[key] |= tests
    MAP.parent.mkdir(parents=True, exist_ok=True)
    MAP.write_text(json.dumps(entered, indent=1))
    return entered


def _is_settled(result: Result | None, mutant: Mutant) -> bool:
    if result is None or result["digest"] != mutant.digest:
        return False
    return result["outcome"] != "open"


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


def main() -> int:
    """Run the mutants that are not settled; the exit code tells whether one is open."""
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
    parser.add_argument("--map", action="store_true", help="look anew which tests enter a line")
    parser.add_argument("--again", action="store_true", help="run those that are settled too")
    parser.add_argument("--table", action="store_true", help="print the table and run nothing")
    options = parser.parse_args()
    mutants = sample_mutants(options.number, options.seed)
    results: dict[str, Result] = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    if options.table:
        return int(_print_table(mutants, results) > 0)
    preload()
    with ProcessPoolExecutor(options.jobs, multiprocessing.get_context("fork")) as pool:
        if options.map or not MAP.exists():
            _make_map(pool, mutants)
        entered: dict[str, Tests] = json.loads(MAP.read_text())
        runs = {}
        for mutant in mutants:
            inside = not options.places or Path(mutant.path).parts[1] in options.places
            if inside and (options.again or not _is_settled(results.get(mutant.key), mutant)):
                tests = choose_tests(mutant, entered.get(mutant.key, {}), options.most)
                runs[pool.submit(run_mutant, tests, mutant)] = mutant
        print(f"{len(runs)} of {len(mutants)} mutants to run", flush=True)
        for run in as_completed(runs):
            mutant, by = runs[run], run.result()
            results[mutant.key] = {
                "path": mutant.path,
                "changed": mutant.changed(),
                "digest": mutant.digest,
                "outcome": "killed" if by else "open",
                "by": by,
            }
            print(f"{mutant.path}:{mutant.line} {by or 'OPEN'}", flush=True)
            if not by:
                print(f"    - {mutant.text}\n    + {mutant.changed()}", flush=True)
            RESULTS.write_text(json.dumps(results, indent=1, sort_keys=True) + "\n")
    return int(_print_table(mutants, results) > 0)


if __name__ == "__main__":
    sys.exit(main())

"""Measure the rows of the table, or those whose names begin as asked for."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

from benchmarks import _machine
from benchmarks._tools import HEAD, ROWS, as_json, from_json, line, progress, table

ROOT = Path(__file__).parents[1]
RESULTS = Path(__file__).parent / "results"
MODES = {"no-avx512": "without AVX-512", "all-features": "with all features"}


def available() -> list[str]:
    """Conditions that can be measured here: all features, and without AVX-512 if there is any."""
    return ["no-avx512", "all-features"] if _machine.avx512() else ["no-avx512"]


def measure(name: str, rounds: int | None, quick: bool, target: Path) -> None:
    """Measure one row in this process, and write what it found."""
    machine = _machine.describe()  # before a rival sets flags of its own
    from benchmarks import rows  # noqa: F401, PLC0415  (registers them; imports rivals, so late)

    asked = ROWS[name]
    found = asked.measure(rounds or asked.rounds, quick)
    values = {"machine": machine, "found": [as_json(f) for f in found]}
    target.write_text(json.dumps(values))


def run(name: str, mode: str, options: argparse.Namespace) -> dict[str, Any] | None:
    """Result of a row in its own process, None if it fails.

    What one rival sets up for itself is then not to slow the next one down.
    """
    environment = os.environ | (_machine.hidden() if hides(mode) else {})
    if options.base:
        environment["BENCH_BASE"] = options.base
    with TemporaryDirectory() as folder:
        target = Path(folder) / "found.json"
        command = [sys.executable, "-m", "benchmarks", name, "--write", str(target)]
        command += ["--rounds", str(options.rounds)] if options.rounds else []
        command += ["--quick"] if options.quick else []
        code = subprocess.run(command, env=environment, cwd=ROOT).returncode
        return None if code else json.loads(target.read_text())


def hides(mode: str) -> bool:
    """Whether something has to be hidden for a mode."""
    return mode == "no-avx512" and bool(_machine.avx512())


def save(mode: str, name: str, entry: dict[str, Any]) -> None:
    """Merge a row into the results; those of another machine or other versions are dropped."""
    path = RESULTS / f"{mode}.json"
    before = json.loads(path.read_text()) if path.exists() else {"machine": None, "rows": {}}
    machine = entry["machine"]
    rows = before["rows"]
    if not _same(before["machine"], machine):
        print(
            f"{path.name}: what was measured otherwise is dropped: {', '.join(rows) or 'nothing'}"
        )
        rows = {}
    rows[name] = {
        "commit": machine["commit"],
        "seconds": entry["seconds"],
        "found": entry["found"],
    }
    ordered = {known: rows[known] for known in ROWS if known in rows}
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps({"machine": machine, "rows": ordered}, indent=1) + "\n")


def _same(one: dict[str, Any] | None, other: dict[str, Any]) -> bool:
    def kept(machine: dict[str, Any]) -> dict[str, Any]:
        others = {k: v for k, v in machine["versions"].items() if k != "skbayes-sgld"}
        return {k: v for k, v in machine.items() if k != "commit"} | {"versions": others}

    return one is not None and kept(one) == kept(other)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    # no `choices`: argparse would refuse an empty list of names
    parser.add_argument("names", nargs="*", metavar="row", help="beginning of a row's name")
    parser.add_argument("--list", action="store_true", help="say what there is, and stop")
    parser.add_argument("--rounds", type=int, help="instead of each row's own")
    parser.add_argument("--quick", action="store_true", help="small sizes: does it run at all?")
    parser.add_argument("--simd", choices=MODES, help="one of the two, instead of both")
    parser.add_argument("--base", help="commit or folder that a search is compared with")
    parser.add_argument("--save", action="store_true", help="write benchmarks/results/*.json")
    parser.add_argument("--write", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.write:
        measure(options.names[0], options.rounds, options.quick, options.write)
        return 0
    from benchmarks import rows  # noqa: F401, PLC0415  (registers them; imports rivals, so late)

    if options.list:
        width = max(map(len, ROWS))
        print("\n".join(f"{row.name:{width}}  {row.description}" for row in ROWS.values()))
        return 0
    begun = {p: [p] if p in ROWS else [n for n in ROWS if n.startswith(p)] for p in options.names}
    names = [n for n in ROWS if not begun or n in sum(begun.values(), [])]
    unknown = [part for part, found in begun.items() if not found]
    if unknown:
        parser.error(f"no row begins with {', '.join(unknown)}; choose from {', '.join(ROWS)}")
    if options.simd and options.simd not in available():
        parser.error(f"{MODES[options.simd]}: not here; there is {', '.join(available())}")
    if options.quick and options.save:
        parser.error("figures of small sizes are not kept")
    failed = 0
    for mode in [options.simd] if options.simd else available():
        failed += report(mode, names, options)
    return int(failed > 0)


def report(mode: str, names: list[str], options: argparse.Namespace) -> int:
    """Measure and print the rows in one mode; how many failed."""
    print(f"\n{MODES[mode]}\n{'=' * len(MODES[mode])}", flush=True)
    begin, entries = perf_counter(), {}
    for i, name in enumerate(names):
        progress(f"[{i + 1}/{len(names)}] {name}, {perf_counter() - begin:.0f} s so far")
        start, entry = perf_counter(), run(name, mode, options)
        progress("")
        if entry is None:
            print(f"{name}: FAILED", flush=True)
            continue
        entries[name] = entry | {"seconds": round(perf_counter() - start, 1)}
        if options.save:
            save(mode, name, entries[name])
        if len(entries) == 1:
            print(_machine.heading(entry["machine"]) + "\n", flush=True)
        for found in filter(is_figure, entry["found"]):
            cells = dict(zip(HEAD, line(from_json(found)), strict=True))
            kept = {"yes": "met", "NO": "NOT MET", "": ""}[cells["met"]]
            print(f"{cells['work']} | {cells['peer']}: {cells['ratio']} {cells['bound']} {kept}")
            if found["note"]:
                print(f"    {found['note']}", flush=True)
    figures = [from_json(f) for e in entries.values() for f in filter(is_figure, e["found"])]
    if figures:
        print()
        table(HEAD, [line(figure) for figure in figures])
        bounded = [figure for figure in figures if figure.met is not None]
        kept = sum(bool(figure.met) for figure in bounded)
        print(f"{kept} of {len(bounded)} bounds met; {perf_counter() - begin:.0f} s", flush=True)
    return len(names) - len(entries)


def is_figure(found: dict[str, Any]) -> bool:
    """Whether what a row found is a line of the table."""
    return "data" not in found


if __name__ == "__main__":
    sys.exit(main())

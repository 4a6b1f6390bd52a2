"""Make the figures and tables of the documentation from the results: ``python -m benchmarks.page``.

``docs/benchmarks.md`` and ``docs/performance.md`` are written by hand, except what is between
``<!-- begin: NAME -->`` and ``<!-- end: NAME -->``: that is written by the functions of this
program, from ``benchmarks/results/*.json``. ``--check`` says whether the pages are up to date.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.__main__ import MODES, RESULTS, ROOT, is_figure
from benchmarks._tools import Figure, from_json, number

PAGES = ROOT / "docs" / "benchmarks.md", ROOT / "docs" / "performance.md"
FIGURES = ROOT / "docs" / "figures"
_BLOCK = re.compile(r"(<!-- begin: ([\w-]+) -->\n)(.*?)(<!-- end: \2 -->)", re.S)

Results = dict[str, dict[str, Any]]  # by mode


def load(folder: Path = RESULTS) -> Results:
    """Results of every mode that was measured."""
    paths = {mode: folder / f"{mode}.json" for mode in MODES}
    return {mode: json.loads(p.read_text()) for mode, p in paths.items() if p.exists()}


def figures_of(result: dict[str, Any]) -> list[Figure]:
    """All lines of the table of a mode, in order."""
    found = [f for row in result["rows"].values() for f in row["found"]]
    return [from_json(f) for f in filter(is_figure, found)]


def data_of(result: dict[str, Any], name: str) -> Any:
    """Values that a row kept for the pages under a name, None if it was not measured."""
    found = [f for row in result["rows"].values() for f in row["found"] if not is_figure(f)]
    return next((f["values"] for f in found if f["data"] == name), None)


# ---- Markdown ------------------------------------------------------------------------------------


def markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Table whose columns are aligned to the right, but for the first one; without rows, none."""
    if not rows:
        return ""
    rule = ["---", *["--:"] * (len(head) - 1)]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in (head, rule, *rows))


def by_mode(results: Results, write: Callable[[dict[str, Any]], str]) -> str:
    """A section for each mode of which there is something to write."""
    parts = {mode: write(result) for mode, result in results.items()}
    return "\n".join(f"**{_title(mode)}**\n\n{part}" for mode, part in parts.items() if part)


def _title(mode: str) -> str:
    return MODES[mode][0].upper() + MODES[mode][1:]


def machine_block(results: Results) -> str:
    """Machine, versions and SIMD features of every mode."""
    head = ["", *map(_title, results)]
    machines = [result["machine"] for result in results.values()]
    lines: dict[str, Callable[[dict[str, Any]], str]] = {
        "machine": lambda m: f"{m['cpu']}, {m['cores']} cores",
        "NumPy's SIMD features": lambda m: " ".join(m["numpy_simd"]),
        "BLAS": lambda m: f"{m['blas']}, {m['blas_threads']} threads",
        "Python": lambda m: f"{m['python']}, {m['system']}",
    }
    versions: dict[str, None] = dict.fromkeys(k for m in machines for k in m["versions"])
    rows = [[name, *map(write, machines)] for name, write in lines.items()]
    rows += [[name, *(m["versions"].get(name, "") for m in machines)] for name in versions]
    return markdown(head, rows)


def summary_block(results: Results) -> str:
    """Number of bounds that are met, and the names of those that are not."""
    lines = []
    for mode, result in results.items():
        bounded = [figure for figure in figures_of(result) if figure.met is not None]
        missed = [figure for figure in bounded if not figure.met]
        lines.append(f"- {_title(mode)}: {len(bounded) - len(missed)} of {len(bounded)} bounds met")
        lines += [
            f"  - not met: {f.work}{f', beside {f.peer}' if f.peer else ''}: {_value(f)}, "
            f"to be {_bound(f)}"
            for f in missed
        ]
    return "\n".join(lines) + "\n"


def _value(figure: Figure) -> str:
    return number(figure.value) + ("" if figure.what == "ratio" else f" ({figure.what})")


def _bound(figure: Figure) -> str:
    return figure.bound.replace(">=", "at least").replace("<=", "at most")


def table_block(results: Results) -> str:
    """The table of every mode."""
    head = ["work", "beside", "ours", "theirs", "ratio", "of a round", "bound", "met"]

    def cells(figure: Figure) -> list[str]:
        unit = f" {figure.unit}" if figure.unit else ""
        sides = [f"{number(side)}{unit}" for side in (figure.ours, figure.theirs)]
        spread = f"{number(figure.spread[0])} to {number(figure.spread[1])}"
        return [
            *(figure.work, figure.peer.replace("|", "\\|")),
            *(sides if figure.peer else [sides[0], ""]),
            *(_value(figure), spread if figure.rounds > 1 else "", _bound(figure)),
            {True: "yes", False: "**no**", None: ""}[figure.met],
        ]

    return by_mode(results, lambda r: markdown(head, [cells(f) for f in figures_of(r)]))


def notes_block(results: Results) -> str:
    """Notes on the figures: above all, whether the two posteriors agree."""

    def write(result: dict[str, Any]) -> str:
        noted = [figure for figure in figures_of(result) if figure.note]
        return "".join(f"- {figure.work}: {figure.note}\n" for figure in noted)

    return by_mode(results, write)


def rates_block(results: Results) -> str:
    """Rates of the machine, in billions a second."""
    columns = {mode: data_of(result, "machine") for mode, result in results.items()}
    columns = {mode: column for mode, column in columns.items() if column}
    names: dict[str, None] = dict.fromkeys(name for column in columns.values() for name in column)
    rows = [[n, *(number(column[n] / 1e9) for column in columns.values())] for n in names]
    return markdown(["billions a second, all cores", *map(_title, columns)], rows)


def least_seconds(part: dict[str, Any], rates: dict[str, float]) -> float:
    """Shortest time of a part of a fit: reading and arithmetic go on side by side."""
    work = part.get("operations", 0.0) / rates["float64 operations"]
    work += part.get("exp", 0.0) / rates["float64 exp"]
    work += part.get("normal", 0.0) / rates["normal numbers"]
    return max(work, part["bytes"] / rates["bytes"])


def sizes_block(results: Results) -> str:
    """Work of fits of three sizes, its least time on this machine, and the time taken."""
    head = ["", "bytes", "operations", "exp", "normal numbers", "least time", "taken", "ratio"]

    def write(result: dict[str, Any]) -> str:
        rates, rows = data_of(result, "machine"), []
        for fit in data_of(result, "sizes") or []:
            least = sum(least_seconds(part, rates) for part in fit["parts"])
            taken = [f"{number(least)} s", f"{number(fit['seconds'])} s"]
            ratio = number(fit["seconds"] / least)
            rows.append([f"**{fit['size']}**, {fit['settings']['gradient']}", *[""] * 4])
            rows[-1] += [*taken, ratio]
            for part in fit["parts"]:
                moved = [part.get(k, 0.0) for k in ("bytes", "operations", "exp", "normal")]
                cells = [f"{number(value / 1e6)} M" if value else "" for value in moved]
                seconds = f"{number(least_seconds(part, rates))} s"
                rows.append([part["part"], *cells, seconds, "", ""])
        return markdown(head, rows)

    return by_mode(results, write)


def growth_block(results: Results) -> str:
    """Exponents of the growth of the seconds between the two largest sizes."""
    import numpy as np

    def write(result: dict[str, Any]) -> str:
        rows = []
        for name in ("n", "d", "C"):
            grown = data_of(result, f"growth in {name}")
            for model, seconds in (grown["seconds"] if grown else {}).items():
                a, b = grown["values"][-2:]
                power = np.log(seconds[-1] / seconds[-2]) / np.log(b / a)
                ends = f"{number(seconds[0])} s to {number(seconds[-1])} s"
                span = f"{grown['values'][0]:,} to {b:,}"
                rows.append([model, name, span, ends, f"{power:.2f}"])
        return markdown(["model", "grows", "from, to", "seconds", "last power"], rows)

    return by_mode(results, write)


def grid_block(results: Results) -> str:
    """Fits of a grid of sizes, compared with fits of more rows of the same columns."""
    path, rows = RESULTS / "grid.json", []
    known = json.loads(path.read_text())["models"] if path.exists() else {}
    for name, cells in known.items():
        made = [cell for cell in cells if cell["ours"] is not None]
        ratio, d, n, more = jumps(made)[0]
        dearest = max(made, key=lambda cell: cell["ours"])
        sizes = [f"{n:,} x {d:,} beside {more:,} x {d:,}"]
        sizes.append(f"{number(dearest['ours'])} s, {dearest['n']:,} x {dearest['d']:,}")
        rows.append([name, f"{len(made)} of {len(cells)}", number(ratio), *sizes])
    head = [
        "model",
        "fits made",
        "largest ratio to a fit of more rows",
        "rows x columns",
        "dearest",
    ]
    return markdown(head, rows)


def rare_block(results: Results) -> str:
    """Fits with rare categories and outlying rows, a line for each model and kind of table."""
    path = RESULTS / "rare.json"
    cells = json.loads(path.read_text())["cells"] if path.exists() else []
    rows = []
    for key in dict.fromkeys((cell["model"], cell["table"]) for cell in cells):
        own = [cell for cell in cells if (cell["model"], cell["table"]) == key]
        worst = {name: max(cell[name] for cell in own) for name in ("mean", "sd", "times")}
        sizes = ", ".join(f"{cell['n']:,}" for cell in own)
        figures = f"{worst['mean']:.3f}", f"{worst['sd']:.1%}", number(worst["times"])
        rows.append([*key, sizes, *figures, f"{sum(cell['met'] for cell in own)} of {len(own)}"])
    head = ["model", "table", "rows", "mean, in sds", "sd", "times", "met"]
    return markdown(head, rows)


def tables_block(results: Results) -> str:
    """Fits of wide tables, text and tables with the troubles of real ones, a line each."""
    from benchmarks import tables

    kept = json.loads(tables.RESULTS.read_text())["cells"] if tables.RESULTS.exists() else {}
    return markdown(tables.HEAD, tables.lines(kept))


def checks_block(results: Results) -> str:
    """Seconds of checks, effects and displays, a line for each family."""
    path = RESULTS / "checks.json"
    cells = json.loads(path.read_text())["cells"] if path.exists() else []
    names = "check", "remedies", "effects", "dependence", "display"
    rows = [
        [cell["family"], *(f"{number(cell[name])} s" for name in names), str(cell["tried"])]
        for cell in cells
    ]
    head = ["family", "check", "with remedies", "effects", "dependence", "display", "tried"]
    return markdown(head, rows)


def jumps(cells: Sequence[dict[str, Any]]) -> list[tuple[float, int, int, int]]:
    """Times that fits cost what one of the same columns and more rows does, the largest first.

    Each with the columns, its rows and those of the other fit.
    """
    pairs = [
        (one["ours"] / other["ours"], one["d"], one["n"], other["n"])
        for one in cells
        for other in cells
        if other["d"] == one["d"] and other["n"] > one["n"]
    ]
    return sorted(pairs, reverse=True)


def image(name: str, data: str, alternative: str) -> Callable[[Results], str]:
    """Block of a figure, empty while there are no data for it."""

    def write(results: Results) -> str:
        known = any(data_of(result, data) for result in results.values()) or not data
        return f"![{alternative}](figures/benchmark_{name}.png)\n" if known else ""

    return write


BLOCKS: dict[str, Callable[[Results], str]] = {
    "machine": machine_block,
    "summary": summary_block,
    "table": table_block,
    "notes": notes_block,
    "rates": rates_block,
    "sizes": sizes_block,
    "growth": growth_block,
    "grid": grid_block,
    "checks": checks_block,
    "rare": rare_block,
    "tables": tables_block,
    "bounds-figure": image("bounds", "", "Every measurement as a multiple of its bound"),
    "floor-figure": image("floor", "sizes", "Least time and time taken by default logistic fits"),
    "growth-figure": image("growth", "growth in n", "Seconds by rows, columns and chains"),
}


def render(text: str, results: Results) -> str:
    """Page with every block written anew."""

    def write(match: re.Match[str]) -> str:
        return f"{match[1]}\n{BLOCKS[match[2]](results)}\n{match[4]}"

    return _BLOCK.sub(write, text)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.page", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; 1 if out of date")
    options = parser.parse_args()
    results = load()
    if not results:
        parser.error("there are no results: python -m benchmarks --save")
    stale = [page for page in PAGES if render(page.read_text(), results) != page.read_text()]
    if options.check:
        print("\n".join(f"{page.relative_to(ROOT)} is out of date" for page in stale))
        return int(bool(stale))
    for page in stale:
        page.write_text(render(page.read_text(), results))
    from benchmarks import _draw

    drawn = _draw.draw(results, FIGURES)
    for path in (*stale, *drawn):
        print(path.relative_to(ROOT))
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Numbers, tables and figures of the pages, from the scripts that measure them.

    python docs/pages.py                   fill README.md and docs/ from docs/results/*.json
    python docs/pages.py --run             run the scripts in full first, five minutes: all figures
    python docs/pages.py --run plot_cubic  run one
    python docs/pages.py --check           write nothing; exit 1 if a page is out of date

A script has ``main(arguments)``, which takes ``--output DIR`` and ``--quick``, saves its figures in
DIR and returns its numbers: a dictionary, nested as you like, whose ends are ``measured(value,
error, show)`` or plain text. A page quotes a number by its way through that dictionary, and a
dictionary of rows as a table whose columns are the keys of the first row:

    the error is <!-- number: plot_cubic / shift -->0.03<!-- end -->
    the error is <!-- number: plot_cubic / shift as .1f -->0.0<!-- end -->

    <!-- table: plot_lecture_claims / weights -->
    ...
    <!-- end -->

``DOCSTRINGS`` has the sentences of the package that quote a number.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import runpy
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from datetime import date
from importlib.util import find_spec
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
RESULTS, FIGURES, EXAMPLES = HERE / "results", HERE / "figures", ROOT / "examples"
sys.path[:0] = [str(EXAMPLES), str(ROOT)]
from _numbers import Values, disagreements, write  # noqa: E402

# The scripts whose figures and numbers the pages show. `benchmarks.page` has those of speed.
SCRIPTS = {
    path.stem: path
    for path in (
        EXAMPLES / "nba_rookies.py",
        *sorted(EXAMPLES.glob("plot_*.py")),
        *sorted((HERE / "measured").glob("*.py")),
    )
}
# Each takes minutes, and draws nothing: run by name alone.
SLOW = "calibration", "networks", "optimizers", "real_data", "truth_bias"

# Script, the optional package that has data for it, and the figure that is not drawn without.
NEEDS = {"plot_volatility": ("arch", "volatility_sp500.png")}
PAGES = ROOT / "README.md", *sorted(HERE.glob("*.md")), *sorted(HERE.glob("*/*.md"))

# File of the package and a sentence in it: {way through the numbers}.
DOCSTRINGS = [
    (
        "skbayes_sgld/neural_network/estimators.py",
        "they widen {plot_network_gap / Bayes by Backprop} times, those of sampled networks "
        "{plot_network_gap / Langevin dynamics} times",
    ),
    (
        "skbayes_sgld/sampling/samplers/psgld.py",
        "the paper's 0.99 makes variances {auto / psgld / 0.99 at 0.02} too large at a step of "
        "0.02 and {auto / psgld / 0.99 at 0.1} at 0.1; the default makes them "
        "{auto / psgld / 0.999 at 0.02} and {auto / psgld / 0.999 at 0.1}",
    ),
]

_WAY = r"(.+?)(?: as ([±+]*,?(?:\.\d+)?[defg](?: \S+)?))?"  # and the format in which it is shown
_MARK = re.compile(rf"<!-- (number|table): {_WAY} -->(.*?)<!-- end -->", re.S)
_IN_BRACES = re.compile(rf"\{{{_WAY}\}}")


def load(folder: Path = RESULTS) -> dict[str, Values]:
    """Kept results of every script: version, date, figures and values."""
    return {path.stem: json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))}


# ---- numbers -------------------------------------------------------------------------------------


def look_up(results: dict[str, Values], way: str) -> Any:
    """Number, text or rows at the end of a way such as ``plot_cubic / shift``."""
    script, *keys = way.split(" / ")
    if script not in results:
        raise KeyError(f"{way}: no results are kept for {script}; python docs/pages.py --run")
    found = results[script]["values"]
    for key in keys:
        if not isinstance(found, dict) or key not in found:
            raise KeyError(f"{way}: {script} has no {key!r}")
        found = found[key]
    return found


def write_table(rows: dict[str, dict[str, Any]]) -> str:
    """Markdown table, its columns the keys of the first row, numbers to the right."""
    first = next(iter(rows.values()))
    rule = ["---" if isinstance(cell, str) else "--:" for cell in first.values()]
    body = [[write(cell) for cell in row.values()] for row in rows.values()]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in (list(first), rule, *body))


# ---- pages ---------------------------------------------------------------------------------------


def fill(text: str, results: dict[str, Values]) -> str:
    """Page with every marked number and table written anew."""

    def put(mark: re.Match[str]) -> str:
        kind, way, show, _ = mark.groups()
        begin = text.rfind("\n", 0, mark.start()) + 1
        if kind == "number" and not text[begin : mark.start()].strip(" -*>"):
            raise ValueError(f"{way}: Markdown takes a line that begins with <!-- for HTML")
        found = look_up(results, way)
        new = write(found, show) if kind == "number" else f"\n\n{write_table(found)}\n"
        head = f"<!-- {kind}: {way}{f' as {show}' if show else ''} -->"
        return f"{head}{new}<!-- end -->"

    return _MARK.sub(put, text)


def sentence(template: str, results: dict[str, Values]) -> str:
    """Sentence of a docstring with its numbers."""
    return _IN_BRACES.sub(lambda m: write(look_up(results, m[1]), m[2]), template)


# ---- scripts -------------------------------------------------------------------------------------


def rounded(values: Any) -> Any:
    """Values as JSON, to nine digits: more would only differ by machine."""
    if isinstance(values, str):
        return values
    if "value" not in values:
        return {key: rounded(inner) for key, inner in values.items()}
    digits = {k: float(f"{v:.9g}") for k, v in values.items() if k != "show" and v is not None}
    return {"value": digits["value"], "error": digits.get("error"), "show": values["show"]}


def incomplete(name: str) -> tuple[str, ...]:
    """Figures that a script cannot draw here."""
    module, figure = NEEDS.get(name, ("sys", ""))
    return () if find_spec(module) else (figure,)


def call(path: Path, *arguments: str) -> Values:
    """Numbers that a script's ``main`` returns."""
    return runpy.run_path(str(path))["main"](arguments) or {}


def run(name: str) -> None:
    """Run a script in full; put its figures and its numbers where the pages look for them."""
    import skbayes_sgld

    with tempfile.TemporaryDirectory() as folder:
        if incomplete(name):
            raise SystemExit(f"{name} needs the package {NEEDS[name][0]}; make figures installs it")
        start = time.perf_counter()
        values = rounded(call(SCRIPTS[name], "--output", folder))
        drawn = sorted(Path(folder).glob("*.png"))
        kept = {
            "script": SCRIPTS[name].relative_to(ROOT).as_posix(),
            "version": skbayes_sgld.__version__,
            "date": date.today().isoformat(),
            "seconds": round(time.perf_counter() - start),
            "figures": [path.name for path in drawn],
            "values": values,
        }
        for path in drawn:
            shutil.copy(path, FIGURES / path.name)
    before = load().get(name, {"values": {}})["values"]
    for said in disagreements(before, values) if before else ():
        print(f"  differs from before: {said}")
    text = json.dumps(kept, indent=1, ensure_ascii=False)
    end = re.compile(r'\{\s+("value": \S+)\s+("error": \S+)\s+("show": .+)\s+\}')
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{name}.json").write_text(end.sub(r"{\1 \2 \3}", text) + "\n")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "--run", nargs="*", metavar="SCRIPT", help="run these first (none named: all but the slow)"
    )
    parser.add_argument("--check", action="store_true", help="write nothing; 1 if out of date")
    options = parser.parse_args(arguments)
    os.environ.setdefault("MPLBACKEND", "Agg")
    for name in options.run or (
        [] if options.run is None else [n for n in SCRIPTS if n not in SLOW]
    ):
        print(f"{name}:", flush=True)
        run(name)
    results = load()
    texts = {page: (page.read_text(), fill(page.read_text(), results)) for page in PAGES}
    stale = [page for page, (old, new) in texts.items() if old != new]
    for page in stale:
        print(f"{page.relative_to(ROOT)} {'is out of date' if options.check else 'filled'}")
        if not options.check:
            page.write_text(texts[page][1])
    return int(options.check and bool(stale))


if __name__ == "__main__":
    sys.exit(main())

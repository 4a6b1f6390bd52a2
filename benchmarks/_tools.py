"""Shared tools: the registry of rows, interleaved timing, ratios, and tables."""

from __future__ import annotations

import multiprocessing
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from importlib import import_module
from time import perf_counter
from typing import Any

import numpy as np
from arviz_stats.base import array_stats

# ---- rows and what they find -------------------------------------------------------------------


@dataclass(frozen=True)
class Figure:
    """One line of the table: medians of both sides, their ratio, and the bound it has to keep.

    Attributes
    ----------
    value : float
        What is bounded: the ratio of the medians, unless ``what`` says otherwise.
    spread : tuple of float
        Smallest and largest value of a round.
    at_most, at_least : float or None
        The bound; a figure without one is there to be read.
    """

    work: str
    peer: str
    unit: str
    ours: float
    theirs: float | None
    value: float
    spread: tuple[float, float]
    rounds: int
    at_most: float | None = None
    at_least: float | None = None
    what: str = "ratio"
    note: str = ""

    @property
    def met(self) -> bool | None:
        """Whether the bound is kept; None where there is none."""
        if self.at_most is not None:
            return self.value <= self.at_most
        return None if self.at_least is None else self.value >= self.at_least

    @property
    def bound(self) -> str:
        """Bound as it is printed."""
        if self.at_most is not None:
            return f"<= {self.at_most:g}"
        return "" if self.at_least is None else f">= {self.at_least:g}"


@dataclass(frozen=True)
class Data:
    """Numbers that a figure or a table of the documentation is made from."""

    name: str
    values: Any


@dataclass(frozen=True)
class Row:
    """A measurement that is asked for by name, and yields figures and data."""

    name: str
    rounds: int
    measure: Callable[[int, bool], Iterable[Figure | Data]]

    @property
    def description(self) -> str:
        """First line of the docstring."""
        return (self.measure.__doc__ or "").partition("\n")[0]


ROWS: dict[str, Row] = {}


def row(name: str, *, rounds: int) -> Callable[[Callable], Callable]:
    """Register a function of the rounds and of whether small sizes will do."""

    def register(measure: Callable) -> Callable:
        ROWS[name] = Row(name, rounds, measure)
        return measure

    return register


def compare(
    work: str,
    peer: str,
    ours: Sequence[float],
    theirs: Sequence[float],
    *,
    unit: str = "s",
    **about: Any,
) -> Figure:
    """Figure of two columns of measurements; row ``i`` of both was measured in round ``i``."""
    a, b = np.asarray(ours, dtype=float), np.asarray(theirs, dtype=float)
    mine, other = float(np.median(a)), float(np.median(b))
    spread = float((a / b).min()), float((a / b).max())
    return Figure(work, peer, unit, mine, other, mine / other, spread, len(a), **about)


def as_json(found: Figure | Data) -> dict[str, Any]:
    """Plain dictionary of what a row found."""
    if isinstance(found, Data):
        return {"data": found.name, "values": found.values}
    return asdict(found) | {"met": found.met}


def from_json(entry: dict[str, Any]) -> Figure:
    """Figure that :func:`as_json` wrote."""
    known = {k: v for k, v in entry.items() if k in Figure.__dataclass_fields__}
    return Figure(**known | {"spread": tuple(entry["spread"])})


# ---- measuring ---------------------------------------------------------------------------------

_PAUSE = 0.2  # seconds


def rival(name: str) -> Any:
    """Import the adapter of another library, or stop with a line that says how to get it."""
    try:
        return import_module(f"benchmarks._{name}")
    except ModuleNotFoundError as error:
        sys.exit(f'{error.name} is not installed: pip install "skbayes-sgld[bench]"')


def seconds(task: Callable[[], Any], pause: float = 0.0) -> float:
    """Elapsed time of one call, which begins after a pause.

    The pause is no sleep, after which a processor is slow for a while: 3,000 steps of SGLD, which
    take 22 us each, took 33 us.
    """
    end = perf_counter() + pause
    while (start := perf_counter()) < end:
        pass
    task()
    return perf_counter() - start


def interleave(
    tasks: dict[str, Callable[[], Any]], rounds: int, *, warm: bool = True
) -> dict[str, np.ndarray]:
    """Seconds of each task, one figure a round; in a round they run one by one.

    What else the machine does then falls on all of them alike. The first call of anything is
    slower, and is left out where ``warm``. A pause before each lets the other's threads end, which
    BLAS keeps busy for a while.
    """
    if warm:
        for task in tasks.values():
            task()
    found = [[seconds(task, _PAUSE) for task in tasks.values()] for _ in range(rounds)]
    return dict(zip(tasks, np.transpose(found), strict=True))


def within(limit: float, task: Callable[..., Any], *arguments: Any) -> Any:
    """Result of a task in its own process; None if it takes more than ``limit`` seconds."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:  # leaving it ends the process
        try:
            return pool.apply_async(task, arguments).get(limit)
        except multiprocessing.TimeoutError:
            return None


def smallest_ess(draws: np.ndarray) -> float:
    """Smallest bulk effective sample size of a parameter of ``draws (C, S, P)``."""
    return min(
        float(array_stats.ess(draws[..., j], chain_axis=0, draw_axis=1, method="bulk"))
        for j in range(draws.shape[2])
        if np.ptp(draws[..., j]) > 0  # a constant has no effective sample size
    )


def agreement(ours: np.ndarray, theirs: np.ndarray, ess: tuple[float, float]) -> str:
    """Differences between two sets of draws ``(S, P)``, with the Monte Carlo error."""
    sd = theirs.std(axis=0)
    shift = np.abs(ours.mean(axis=0) - theirs.mean(axis=0)) / sd
    ratio = ours.std(axis=0) / sd
    worst = float(ratio[np.argmax(np.abs(np.log(ratio)))])
    error = np.sqrt(1 / ess[0] + 1 / ess[1])
    agree = max(shift.max(), abs(np.log(worst))) < 5 * error  # the worst of many parameters
    return (
        f"posteriors {'agree' if agree else 'DIFFER'}: means within {shift.max():.3f} sd, "
        f"worst sd ratio {worst:.3f} "
        f"(one standard error of a difference of means: {error:.3f} sd)"
    )


# ---- printing ----------------------------------------------------------------------------------


def number(value: float | None) -> str:
    """Three significant digits, without an exponent where that is legible."""
    if value is None:
        return ""
    if value and abs(value) < 1e-3:
        return f"{value:.1e}"
    digits = max(0, 2 - int(np.floor(np.log10(abs(value))))) if value else 0
    return f"{value:,.{digits}f}"


HEAD = ("work", "peer", "ours", "theirs", "", "ratio", "of a round", "bound", "met")


def line(figure: Figure) -> list[str]:
    """Cells of a figure under :data:`HEAD`."""
    met = {True: "yes", False: "NO", None: ""}[figure.met]
    value = number(figure.value) + ("" if figure.what == "ratio" else f" {figure.what}")
    spread = "" if figure.rounds < 2 else " - ".join(map(number, figure.spread))
    sides = [number(figure.ours), number(figure.theirs), figure.unit]
    return [figure.work, figure.peer, *sides, value, spread, figure.bound, met]


def progress(text: str) -> None:
    """Write over the line of the terminal, where there is one."""
    if sys.stderr.isatty():
        print(f"\r{text}", end="\033[K", file=sys.stderr, flush=True)


def heading(text: str | None) -> None:
    """Print what is compared: a benchmark's docstring."""
    title, _, rest = (text or "").strip().partition("\n")
    print(f"\n{title}\n{'=' * len(title)}\n{rest.strip()}\n")


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print columns aligned to the right, the first one to the left."""
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    for cells in (head, ["-" * w for w in widths], *rows):
        aligned = [c.rjust(w) for c, w in zip(cells, widths, strict=True)]
        aligned[0] = cells[0].ljust(widths[0])
        print("  ".join(aligned).rstrip())
    print(flush=True)

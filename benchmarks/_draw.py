"""Figures of the benchmarks' pages."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib

# files only, on machines without a screen too: before any import of pyplot, hence late ones
matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402
import numpy as np  # noqa: E402
from matplotlib.ticker import LogLocator  # noqa: E402

from benchmarks.__main__ import MODES  # noqa: E402
from benchmarks._tools import Figure, number  # noqa: E402
from benchmarks.page import data_of, figures_of, least_seconds  # noqa: E402

_COLOURS = {"no-avx512": "#1f77b4", "all-features": "#ff7f0e"}
_MODELS = {
    "SGLDLogisticRegression": ("#1f77b4", "o-"),
    "LogisticRegression": ("#1f77b4", "x:"),
    "SGLDLinearRegression": ("#d62728", "o-"),
    "Ridge": ("#d62728", "x:"),
}
_PARTS = ("#9ecae1", "#4292c6", "#084594")
Results = dict[str, dict[str, Any]]


def draw(results: Results, folder: Path) -> list[Path]:
    """Draw what the results have data for and remove what they have none for; the files."""
    drawn = []
    for name, make in (("bounds", bounds), ("floor", floor), ("growth", growth)):
        path = folder / f"benchmark_{name}.png"
        figure = make(results)
        if figure is None:
            path.unlink(missing_ok=True)  # the page drops it too
        else:
            figure.savefig(path, dpi=110, metadata={"Software": None})
            plt.close(figure)
            drawn.append(path)
    return drawn


def margin(figure: Figure, value: float | None = None) -> float:
    """How many times worse than its bound a figure is; below 1 it is met."""
    value = figure.value if value is None else value
    return value / figure.at_most if figure.at_most is not None else figure.at_least / value


def bounds(results: Results) -> Any:
    """Every bounded line of the table, beside its bound."""
    by_mode = {m: [f for f in figures_of(r) if f.met is not None] for m, r in results.items()}
    names: dict[str, None] = {}
    for found in by_mode.values():
        names |= dict.fromkeys(_label(figure) for figure in found)
    at = {name: -i for i, name in enumerate(names)}
    height = 1.4 + 0.24 * len(names)
    figure, axes = plt.subplots(figsize=(10, height), layout="constrained")
    axes.axvline(1.0, color="black", linewidth=1)
    for side, (mode, found) in enumerate(by_mode.items()):
        offset = 0.16 * (1 - 2 * side) if len(by_mode) > 1 else 0.0
        for i, one in enumerate(found):
            ends = [margin(one, value) for value in one.spread]
            y = at[_label(one)] + offset
            label = MODES[mode] if i == 0 else None
            axes.plot(ends, [y, y], color=_COLOURS[mode], linewidth=1.2, alpha=0.6)
            marker = "o" if one.met else "X"
            axes.plot(margin(one), y, marker, color=_COLOURS[mode], markersize=6, label=label)
    low = min(0.1, *(margin(f) / 1.5 for found in by_mode.values() for f in found))
    axes.axvspan(low, 1.0, color="#e5f5e0", zorder=0)
    axes.set(xscale="log", ylim=(-len(names) + 0.4, 0.6))
    axes.set_xlim(left=low)
    axes.set_yticks([-i for i in range(len(names))], list(names), fontsize=8)
    axes.set_xlabel("times its bound (log scale): left of 1, the bound is met")
    axes.set_title("Ratios over their bounds, and their range")
    axes.grid(axis="x", alpha=0.3)
    axes.xaxis.set_major_formatter(lambda x, _: f"{x:g}")
    figure.legend(loc="outside lower right", ncols=2, fontsize=9)
    return figure


def _label(figure: Figure) -> str:
    return f"{figure.work}  |  {figure.peer}"


def _one(results: Results, name: str) -> tuple[str, dict[str, Any]] | None:
    """First mode that has some data; the figures of one machine are much the same in the other."""
    return next(((mode, r) for mode, r in results.items() if data_of(r, name)), None)


def floor(results: Results) -> Any:
    """What the machine needs for what a fit has to move, beside what the fit takes."""
    found = _one(results, "sizes")
    if found is None:
        return None
    mode, result = found
    rates, fits = data_of(result, "machine"), data_of(result, "sizes")
    figure, panels = plt.subplots(1, len(fits), figsize=(10, 3.6), layout="constrained")
    titles = "reading X once", "mode and curvature", "steps of the chains"
    for axes, fit in zip(np.atleast_1d(panels), fits, strict=True):
        below = 0.0
        for part, title, colour in zip(fit["parts"], titles, _PARTS, strict=True):
            height = least_seconds(part, rates)
            axes.bar("least", height, bottom=below, color=colour, label=title, width=0.6)
            below += height
        axes.bar("taken", fit["seconds"], color="#d95f0e", width=0.6, label="the whole fit")
        for x, value in enumerate((below, fit["seconds"])):
            axes.annotate(f"{number(value)} s", (x, value), ha="center", va="bottom", fontsize=9)
        axes.set(title=fit["size"], ylabel="seconds", ylim=(0, 1.15 * max(below, fit["seconds"])))
    handles, labels = np.atleast_1d(panels)[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, fontsize=9)
    figure.suptitle(f"Default logistic fits, {MODES[mode]}: least time on this machine, and taken")
    return figure


def growth(results: Results) -> Any:
    """Seconds of a default fit by rows, columns and chains."""
    found = _one(results, "growth in n")
    if found is None:
        return None
    mode, result = found
    about = {
        "n": ("rows n", "d = 20, 4 chains"),
        "d": ("columns d", "n = 10,000, 4 chains"),
        "C": ("chains C", "n = 10,000, d = 20"),
    }
    figure, panels = plt.subplots(1, 3, figsize=(12, 4.2), layout="constrained")
    for axes, (name, (axis, title)) in zip(panels, about.items(), strict=True):
        grown = data_of(result, f"growth in {name}")
        for model, seconds in grown["seconds"].items():
            colour, style = _MODELS[model]
            axes.plot(grown["values"], seconds, style, color=colour, label=model, markersize=5)
        axes.set(xscale="log", yscale="log", xlabel=axis, ylabel="seconds", title=title)
        axes.set_xticks(grown["values"], [_short(value) for value in grown["values"]])
        low, high = axes.get_ylim()
        steps = (1, 2, 5) if high < 100 * low else (1,)
        axes.yaxis.set_major_locator(LogLocator(subs=steps))
        axes.yaxis.set_major_formatter(lambda y, _: f"{y:g}")
        axes.minorticks_off()
        axes.grid(alpha=0.3)
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, fontsize=9)
    figure.suptitle(f"Seconds of a default fit, {MODES[mode]}")
    return figure


def _short(value: int) -> str:
    return f"$10^{{{round(np.log10(value))}}}$" if value >= 1000 else str(value)

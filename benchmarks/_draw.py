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
from benchmarks._figures import save  # noqa: E402
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
            save(figure, path)
            drawn.append(path)
    return drawn


def margin(figure: Figure, value: float | None = None) -> float:
    """Multiple of its bound that a figure is; below 1 the bound is met."""
    value = figure.value if value is None else value
    return value / figure.at_most if figure.at_most is not None else figure.at_least / value


_GROUPS = {  # heading: (a word of the line that is in the group, what its labels leave out)
    "Effective draws a second, beside NUTS (dense metric)": ("NUTS", ", ESS/s"),
    "Fits, beside scikit-learn's": (".fit", ".fit"),
    "Steps of SGLD, beside BlackJAX": ("BlackJAX", "SGLD step, "),
    "The rest": ("", ""),
}
_LEFT = 0.09  # of the axis; what is below is an arrow with its value


def bounds(results: Results) -> Any:
    """Every bounded line of the table as a multiple of its bound, in groups."""
    by_mode = {m: [f for f in figures_of(r) if f.met is not None] for m, r in results.items()}
    labels = dict.fromkeys(_label(figure) for found in by_mode.values() for figure in found)
    grouped: dict[str, list[tuple[str, str]]] = {heading: [] for heading in _GROUPS}
    for label in labels:
        grouped[_group(label)].append(label)
    text = {h: [_short_label(*row, h) for row in rows] for h, rows in grouped.items()}
    sizes = [sum(1 + 0.5 * each.count("\n") for each in rows) for rows in text.values()]
    figure, panels = plt.subplots(
        len(grouped),
        figsize=(8.0, 0.27 * sum(sizes) + 2.6),
        height_ratios=[size + 0.4 for size in sizes],
        layout="constrained",
        sharex=True,
    )
    for axes, (heading, rows) in zip(panels, grouped.items(), strict=True):
        at = {label: i for i, label in enumerate(rows)}
        axes.axvspan(_LEFT, 1.0, color="#e5f5e0", zorder=0)
        axes.axvline(1.0, color="black", linewidth=1)
        for side, (mode, found) in enumerate(by_mode.items()):
            offset = 0.16 * (2 * side - 1) if len(by_mode) > 1 else 0.0
            axes.plot([], [], "o", color=_COLOURS[mode], label=MODES[mode])
            for one in found:
                if _label(one) in at:
                    _draw_bound(axes, one, at[_label(one)] + offset, _COLOURS[mode])
        axes.plot([], [], "X", color="0.4", label="bound not met")
        axes.set(xscale="log", xlim=(_LEFT, 6.0), ylim=(len(rows) - 0.5, -0.5))
        axes.set_yticks(range(len(rows)), text[heading], fontsize=9)
        axes.set_title(heading, fontsize=10, loc="left")
        axes.grid(axis="x", alpha=0.3)
        ticks = ["0.1", "0.2", "0.5", "1", "2", "5"]
        axes.set_xticks([float(tick) for tick in ticks], ticks)
        axes.minorticks_off()
    panels[-1].set_xlabel("times its bound (log scale)")
    handles = panels[0].get_legend_handles_labels()
    figure.legend(*handles, loc="outside lower center", ncols=3, fontsize=9)
    figure.suptitle(
        "Measurements as multiples of their bounds, with the range of the rounds:\n"
        "a bound is met in the green part",
        fontsize=11,
    )
    return figure


def _draw_bound(axes: Any, one: Figure, y: float, colour: str) -> None:
    """A line's value and range; an arrow where it is left of the axis."""
    value = margin(one)
    if value < _LEFT:
        axes.plot(1.06 * _LEFT, y, "<", color=colour, markersize=6)
        axes.annotate(number(value), (1.15 * _LEFT, y), va="center", fontsize=7)
        return
    ends = [margin(one, end) for end in one.spread]
    axes.plot(ends, [y, y], color=colour, linewidth=1.2, alpha=0.6)
    axes.plot(value, y, "o" if one.met else "X", color=colour, markersize=6)


def _label(figure: Figure) -> tuple[str, str]:
    return figure.work, figure.peer


def _group(label: tuple[str, str]) -> str:
    return next(h for h, (word, _) in _GROUPS.items() if word in " | ".join(label))


def _short_label(work: str, peer: str, heading: str) -> str:
    """Work, and what it is beside unless the heading says so."""
    beside = peer.replace("(loss='log_loss', random_state=0)", "()")
    for said in ("NUTS dense", "BlackJAX, indices inside its scan"):
        beside = beside.replace(f"{said}, ", "").replace(said, "")
    text = work.replace(_GROUPS[heading][1], "")
    return f"{text}\n{beside.replace('.fit', '')}" if beside else text


def _one(results: Results, name: str) -> tuple[str, dict[str, Any]] | None:
    """First mode that has some data; the figures of one machine are much the same in the other."""
    return next(((mode, r) for mode, r in results.items() if data_of(r, name)), None)


def floor(results: Results) -> Any:
    """Figure of the least time of fits on this machine, and of the time taken."""
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
        axes.set(xscale="log", xlabel=axis, ylabel="seconds", title=title)
        if name == "C":  # in proportion to the chains, but for what is done once
            axes.set(xscale="linear", xlim=(0, 17), ylim=(0, None))
        else:
            axes.set_yscale("log")
            low, high = axes.get_ylim()
            steps = (1, 2, 5) if high < 100 * low else (1,)
            axes.yaxis.set_major_locator(LogLocator(subs=steps))
            axes.yaxis.set_major_formatter(lambda y, _: f"{y:g}")
        axes.set_xticks(grown["values"], [_short(value) for value in grown["values"]])
        axes.minorticks_off()
        axes.grid(alpha=0.3)
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, fontsize=9)
    figure.suptitle(f"Seconds of a default fit, {MODES[mode]}")
    return figure


def _short(value: int) -> str:
    return f"$10^{{{round(np.log10(value))}}}$" if value >= 1000 else str(value)

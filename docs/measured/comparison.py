"""Tables and figure of ``docs/guide/comparison.md``, from what the benchmark kept."""

from __future__ import annotations

import json
from math import floor, log10

import numpy as np
from _figure import BLUE, GREEN, GREY, ORANGE, PURPLE, new_figure, parse, save, tidy
from _numbers import measured

from benchmarks._real_scores import GROUPS
from benchmarks.comparison import ADVISED, BAMBI, OURS, RESULTS, STATSMODELS, code, n_lines

_THIRDS = dict(zip(GROUPS, ("all rows", "low third", "middle third", "high third"), strict=True))
_COLOURS = {
    OURS: BLUE,
    ADVISED: BLUE,
    BAMBI: ORANGE,
    STATSMODELS: GREEN,
    "mapie": GREY,
    "scikit_learn": PURPLE,
}
_OTHERS = {"numbers": "BayesianRidge", "classes": "LogisticRegression"}
_MODELS = {"counts": "negative binomial", "poisson": "Poisson"}
_NONE = "–"


def label(task, method):
    """Library, and its model where a task has two."""
    if method == "mapie":
        return "MAPIE"
    name = _OTHERS[task] if method == "scikit_learn" else method
    return f"{name}: {_MODELS[task]}" if task in _MODELS else name


def figure(value):
    """Time or ratio, of two digits or more."""
    return measured(value, None, f",.{min(max(0, 1 - floor(log10(value))), 4)}f")


def coverage_row(found):
    """Share of rows that intervals hold, and their score over ours."""
    shares = {_THIRDS[g]: measured(*found["held"][g], "±.1f %") for g in GROUPS}
    if "ratio" not in found:
        return shares
    return shares | {
        "interval score": measured(found["score"], 0.0, ".1f"),
        "score, × ours": measured(*found["ratio"], "±.3f"),
    }


def classes_row(found):
    """Share of rows whose label set is right, the log score, and errors of the probabilities."""
    row = {"label sets of 90 %": measured(*found["held"]["all"], "±.1f %")}
    if "calibration" not in found:
        return row | dict.fromkeys(
            ("log score", "score, × ours", *list(_THIRDS.values())[1:]), _NONE
        )
    row |= {
        "log score": measured(found["score"], 0.0, ".4f"),
        "score, × ours": measured(*found["ratio"], "±.3f"),
    }
    errors = {_THIRDS[g]: measured(*found["calibration"][g], "±+.1f %") for g in GROUPS[1:]}
    return row | errors


def cost_row(found, ours, lines):
    """Processor seconds of a fit and of the intervals of all rows, these over ours, and lines."""
    row = {}
    for part, name in (("fit", "fit"), ("predict", "intervals")):
        used, base = found["seconds"][part][0], ours["seconds"][part][0]
        row |= {f"{name}, s": figure(used), f"{name}, × ours": figure(used / base)}
    return row | {"lines": measured(lines, 0.0, ".0f")}


def agreement_row(found):
    """Errors of means, sds and ends of intervals against the reference."""
    shows = {"mean": ("means", ".3f sd"), "sd": ("sds", ".1f %"), "ends": ("ends", ".1f %")}
    return {
        name: measured(found[key], 0.0, show) if key in found else _NONE
        for key, (name, show) in shows.items()
    }


def draw(tasks, output):
    """Coverage by thirds of the predicted mean: numbers, and counts under two models."""
    drawn = new_figure(10.0, 4.0)
    panels = drawn.subplots(1, 3, sharey=True, width_ratios=(5, 4, 3))
    titles = (
        "Diabetes: linear regression",
        "Counts: negative binomial, or MAPIE",
        "The same counts: Poisson",
    )
    for axes, task, title in zip(panels, ("numbers", "counts", "poisson"), titles, strict=True):
        methods = [m for m in _COLOURS if "held" in tasks[task]["methods"].get(m, ())]
        shifts = np.linspace(-0.3, 0.3, len(methods))
        for method, shift in zip(methods, shifts, strict=True):
            held = [tasks[task]["methods"][method]["held"][group] for group in GROUPS[1:]]
            share, error = 100.0 * np.array(held).T
            at = np.arange(3.0) + shift
            name = "MAPIE" if method == "mapie" else method
            name = "BayesianRidge" if method == "scikit_learn" else name
            face = "white" if method == ADVISED else _COLOURS[method]
            look = {"fmt": "o", "ms": 5, "color": _COLOURS[method], "mfc": face}
            axes.errorbar(at, share, error, label=name, **look)
        axes.axhline(90.0, color="0.3", linewidth=1.0, linestyle="--", zorder=0)
        axes.set_xticks(range(3), ["low", "middle", "high"])
        axes.set_xlabel("third of the predicted mean")
        tidy(axes, title, "y")
    panels[0].set_ylabel("rows in their 90 % intervals, %")
    drawn.suptitle("Coverage of 90 % intervals by predicted mean, and its standard errors")
    panels[0].legend(frameon=False, fontsize=8, loc="lower left")
    save(drawn, output, "comparison_coverage.png")


def main(arguments=None):
    options = parse(__doc__, arguments)
    kept = json.loads(RESULTS.read_text())
    tasks, tables = kept["tasks"], {}
    for task, about in tasks.items():
        ours = about["methods"][OURS]
        kind = "counts" if task == "poisson" else task
        for method, found in about["methods"].items():
            if found.get("code", code(task, method)) != code(task, method):
                raise ValueError(f"the snippet of {method} for {task} is not the measured one")
            name = label(task, method)
            row, lines = {"library": name}, n_lines(task, method)
            if "held" in found:
                of_task = classes_row if task == "classes" else coverage_row
                tables.setdefault(f"{kind}, coverage", {})[name] = row | of_task(found)
            if "seconds" in found:
                tables.setdefault(f"{kind}, cost", {})[name] = row | cost_row(found, ours, lines)
            if found.get("agreement"):
                agree = row | agreement_row(found["agreement"])
                tables.setdefault(f"{kind}, agreement", {})[name] = agree
        for name, found in about["agreement"].items():
            name = f"{name}: {_MODELS[task]}" if task in _MODELS else name
            agree = {"library": name} | agreement_row(found)
            tables.setdefault(f"{kind}, agreement", {})[name] = agree
        expected = about["methods"][STATSMODELS]["expected"]
        size = {"rows": about["n"], "columns": about["d"]}
        tables[f"{task}, data"] = {k: measured(v, 0.0, ",.0f") for k, v in size.items()}
        tables[f"{task}, data"]["expected"] = measured(expected, 0.0, ".1f %")
    draw(tasks, options.output)
    return tables | {"versions": kept["versions"]}


if __name__ == "__main__":
    print(main())

"""Pictures of the reference: the fit of each estimator's own example; half a minute."""

from __future__ import annotations

import doctest
from contextlib import redirect_stdout
from io import StringIO

import numpy as np
from _figure import BLUE, GREEN, GREY, ORANGE, misfit, new_figure, parse, save, tidy
from matplotlib.ticker import NullLocator

import skbayes_sgld

COVERAGE = 0.9
BY_ROW = (
    "The fit of the example. A line is the 90 % predictive interval of a row, at its predicted "
    "mean; a dot is the observed {}, orange where it is outside."
)
BY_PLACE = (
    "The fit of the example: the probability of the second class, the points in the colours of "
    "their classes, and the line where both are as likely."
)
CAPTIONS = {
    "SGLDLinearRegression": BY_ROW.format("progression of the disease"),
    "SGLDLogisticRegression": (
        "The beetles of the example: shares that died, the posterior mean of the probability, and "
        "its 90 % credible band."
    ),
    "SGLDOrdinalClassifier": (
        "The fit of the example: probabilities of the three grades along the first column, with "
        "90 % credible bands."
    ),
    "SGLDPoissonRegressor": BY_ROW.format("count"),
    "SGLDNegativeBinomialRegressor": BY_ROW.format("count"),
    "SGLDBetaBinomialRegressor": BY_ROW.format("number of successes"),
    "SGLDGammaRegressor": BY_ROW.format("value"),
    "SGDMAPRegressor": BY_ROW.format("progression of the disease"),
    "SGDMAPClassifier": BY_PLACE,
    "SGLDMLPRegressor": (
        "The fit of the example: points, the posterior mean of the curve, and 90 % bands of the "
        "curve (dark) and of a new point (light). Where there are no data both widen."
    ),
    "SGLDMLPClassifier": BY_PLACE,
    "BayesByBackpropRegressor": BY_ROW.format("progression of the disease"),
    "BayesByBackpropClassifier": (
        "The fit of the example: each flower's probability of its own species, with its 90 % "
        "interval, by species and in ascending order."
    ),
}


def run_example(name):
    """Variables at the end of an estimator's example."""
    variables = {}
    with redirect_stdout(StringIO()):
        for example in doctest.DocTestParser().get_examples(getattr(skbayes_sgld, name).__doc__):
            exec(compile(example.source, name, "single"), variables)
    return variables


def draw_positive(axes, found):
    """Draw rows on logarithmic axes; a count of zero has its place below one."""
    draw_rows(axes, found)
    axes.set_xscale("log")
    axes.set_xticks((0.1, 1, 10), labels=("0.1", "1", "10"))
    if found["y"].min() > 0:
        axes.set_yscale("log")
        ticks = 0.1, 1, 10
    else:
        axes.set_yscale("symlog", linthresh=1)
        axes.set_ylim(bottom=-0.3)
        ticks = 0, 1, 3, 10, 30
    axes.set_yticks(ticks, labels=map(str, ticks))
    axes.yaxis.set_minor_locator(NullLocator())


def draw_rows(axes, found):
    """Draw the interval of every row, at its predicted mean, and what was observed."""
    model, X, y = found["model"], found["X"], found["y"]
    of_rows = {"exposure": found.get("years"), "n_trials": found.get("n")}
    of_rows = {name: value for name, value in of_rows.items() if value is not None}
    mean = model.predict(X)
    if "exposure" in of_rows:
        mean = mean * of_rows["exposure"]
    if "n_trials" in of_rows:
        mean = mean * of_rows["n_trials"]
    low, high = model.predict_interval(X, coverage=COVERAGE, **of_rows).T
    inside = (low <= y) & (y <= high)
    axes.vlines(mean, low, high, color=GREY, linewidth=0.6, alpha=0.5)
    for which, color in ((inside, BLUE), (~inside, ORANGE)):
        axes.plot(mean[which], y[which], "o", color=color, markersize=2.5)
    axes.set_xlabel("predicted mean")
    axes.set_ylabel("observed, and 90 % interval")


def draw_totals(axes, found):
    """Draw the shares that died by dose, and the band of their probability."""
    dose = np.ravel(found["dose"])
    grid = np.linspace(dose.min() - 0.02, dose.max() + 0.02, 200)
    model = found["model"]
    low, high = model.predict_proba_interval(grid[:, None], coverage=COVERAGE)[:, 1].T
    axes.fill_between(grid, low, high, color=BLUE, alpha=0.3, linewidth=0)
    axes.plot(grid, model.predict_proba(grid[:, None])[:, 1], color=BLUE)
    axes.plot(dose, np.divide(found["died"], found["n"]), "o", color=ORANGE, markersize=5)
    axes.set_xlabel("log10 dose")
    axes.set_ylabel("probability of death")


def draw_grades(axes, found):
    """Draw the probabilities of the classes along the first column."""
    model, grid = found["model"], np.linspace(-3, 3, 200)
    rows = np.c_[grid, np.zeros_like(grid)]
    bands, means = model.predict_proba_interval(rows, coverage=COVERAGE), model.predict_proba(rows)
    for k, color in enumerate((ORANGE, GREY, BLUE)):
        axes.fill_between(grid, *bands[:, k].T, color=color, alpha=0.3, linewidth=0)
        axes.plot(grid, means[:, k], color=color, label=model.classes_[k])
    axes.set_xlabel("first column")
    axes.set_ylabel("probability")
    axes.legend(frameon=False)


def draw_places(axes, found):
    """Draw the probability of the second class over two columns, and the points."""
    model, X, y = found["model"], found["X"], found["y"]
    (x_low, y_low), (x_high, y_high) = X.min(axis=0) - 0.3, X.max(axis=0) + 0.3
    across, up = np.meshgrid(np.linspace(x_low, x_high, 120), np.linspace(y_low, y_high, 120))
    p = model.predict_proba(np.c_[across.ravel(), up.ravel()])[:, 1].reshape(across.shape)
    levels = np.linspace(0, 1, 11)
    shades = axes.contourf(across, up, p, levels=levels, cmap="RdBu", alpha=0.6)
    axes.contour(across, up, p, levels=[0.5], colors="black", linewidths=1)
    for label, color in ((0, ORANGE), (1, BLUE)):
        which = y == np.unique(y)[label]
        axes.plot(*X[which].T, "o", color=color, markersize=3)
    axes.figure.colorbar(shades, ax=axes, label="probability")
    axes.set_xlabel("first column")
    axes.set_ylabel("second column")


def draw_curve(axes, found):
    """Draw the curve with its band, that of a new point, and the points."""
    model, grid = found["model"], np.linspace(-3, 3, 200)
    rows = grid[:, None]
    for kind, shade in (("predictive", 0.15), ("mean", 0.35)):
        low, high = model.predict_interval(rows, coverage=COVERAGE, kind=kind).T
        axes.fill_between(grid, low, high, color=BLUE, alpha=shade, linewidth=0)
    axes.plot(grid, model.predict(rows), color=BLUE)
    axes.plot(found["X"][:, 0], found["y"], "o", color=ORANGE, markersize=3)
    axes.set_xlabel("x")
    axes.set_ylabel("y")


def draw_flowers(axes, found):
    """Draw the probability of each row's own class, with its interval."""
    model, X, y = found["model"], found["X"], found["y"]
    own = np.arange(len(y)), y
    mean = model.predict_proba(X)[own]
    interval = model.predict_proba_interval(X, coverage=COVERAGE)[own]
    order = np.lexsort((mean, y))
    for k, color in enumerate((ORANGE, GREEN, BLUE)):
        at = np.flatnonzero(y[order] == k)
        axes.vlines(at, *interval[order[at]].T, color=color, linewidth=0.9, alpha=0.6)
        axes.plot(at, mean[order[at]], "o", color=color, markersize=2.5, label=f"species {k}")
    axes.set_xlabel("flowers")
    axes.set_ylabel("probability of its species")
    axes.legend(frameon=False)


DRAWN_BY = {
    "SGLDPoissonRegressor": draw_positive,
    "SGLDNegativeBinomialRegressor": draw_positive,
    "SGLDGammaRegressor": draw_positive,
    "SGLDLogisticRegression": draw_totals,
    "SGLDOrdinalClassifier": draw_grades,
    "SGDMAPClassifier": draw_places,
    "SGLDMLPRegressor": draw_curve,
    "SGLDMLPClassifier": draw_places,
    "BayesByBackpropClassifier": draw_flowers,
}


def main(arguments=None):
    options = parse(__doc__, arguments)
    # a quick run draws some: the examples of all are doctests
    for name in list(CAPTIONS)[::4] if options.quick else CAPTIONS:
        figure = new_figure(6.4, 2.7)
        axes = figure.subplots()
        with misfit():  # of the diabetes data; the example has no noise model
            found = run_example(name)
        DRAWN_BY.get(name, draw_rows)(axes, found)
        tidy(axes)
        save(figure, options.output, f"estimator_{name}.png")
    return CAPTIONS


if __name__ == "__main__":
    main()

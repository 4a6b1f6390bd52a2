"""The lecture's histograms by batch size and by temperature, as printed and as they should be
===========================================================================================

Redraws Figures 4.2 and 4.3 of Karagiannis, Handout 6: 10,000 rows of a correlated pair, SGLD with
eta = 1e-5, the last 500 of 1,000 steps; slope, intercept and noise variance. All panels share one
axis, on which the exact density is the same: distances from the exact mean in exact sds, linear up
to 3 and logarithmic beyond; densities are on a logarithmic axis, so that wide and narrow ones show.
To see: at that step size neither batch size nor temperature gives the exact density; control
variates give it from ten rows a step, and the default settings give the tempered density at every
temperature. ``plot_lecture_claims.py`` measures the claims behind them.

Usage: ``python examples/plot_lecture_histograms.py [--output DIR] [--quick]``; about 10 s.
"""

# sphinx_gallery_thumbnail_path = "figures/lecture_histograms_batch.png"

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from _figure import (
    EXACT,
    PRINTED,
    RIGHT,
    new_figure,
    parse,
    save,
    say,
    show_rows,
    tidy,
    unconverged,
)
from _lecture import INTERCEPT, NOISE, PHI, PLAIN_START, PLAIN_STEP, PRIOR_SCALE, PSI, SLOPE, Exact
from _numbers import measured, write
from _plain_sgld import PLAIN

from skbayes_sgld import SGLDLinearRegression
from skbayes_sgld.datasets import make_correlated_pair
from skbayes_sgld.diagnostics import effective_sample_size
from skbayes_sgld.posterior import ConjugateNormal, InverseGamma

BATCH_SIZES, TEMPERATURES = (10, 100, 1000), (0.1, 1.0, 10.0)
NAMES = {SLOPE: "slope", INTERCEPT: "intercept", NOISE: "noise variance"}
LEAST = 1e-3  # density that is shown
Panel = tuple[SGLDLinearRegression, Exact]  # a fit, and the density that it should have


def fit(X: np.ndarray, y: np.ndarray, **settings: Any) -> SGLDLinearRegression:
    """Fit of the lecture's model."""
    prior, noise = ConjugateNormal(PRIOR_SCALE), InverseGamma(PHI, PSI)
    model = SGLDLinearRegression(prior=prior, noise_prior=noise, **settings)
    return model.fit(X, y)


def fit_printed(X: np.ndarray, y: np.ndarray, **settings: Any) -> SGLDLinearRegression:
    """Fit by the lecture's own run."""
    lengths = {"n_chains": 1, "n_burnin": 500, "n_draws": 500}
    own = {"step_size": PLAIN_STEP, "init": PLAIN_START}
    with unconverged():
        return fit(X, y, **PLAIN | lengths | own | settings)


class Scale:
    """Sds from the exact mean, linear up to 3 and logarithmic beyond."""

    edges = np.linspace(-6.0, 6.0, 37)  # of bins; 3 + log(x / 3) beyond 3
    ticks = (-30, -10, -3, 0, 3, 10, 30)

    @staticmethod
    def to(x: Any) -> np.ndarray:
        """Place on the axis."""
        beyond = 3.0 + np.log(np.maximum(np.abs(x), 3.0) / 3.0)
        return np.sign(x) * np.where(np.abs(x) > 3.0, beyond, np.abs(x))

    @staticmethod
    def back(place: Any) -> np.ndarray:
        """Sds at a place."""
        beyond = 3.0 * np.exp(np.maximum(np.abs(place), 3.0) - 3.0)
        return np.sign(place) * np.where(np.abs(place) > 3.0, beyond, np.abs(place))


def ratio(model: SGLDLinearRegression, exact: Exact, key: str) -> dict[str, Any]:
    """Sd of the draws over the exact one, and its Monte Carlo error."""
    draws = model.posterior_[key]
    found = draws.std() / exact.sd[key]
    ess = effective_sample_size(draws[:, :, None])[0]
    return measured(found, found / np.sqrt(2.0 * ess), "±.2f")


def draw_panel(axes: Any, model: SGLDLinearRegression, exact: Exact, key: str, **look: Any) -> None:
    """Draw a histogram as a density."""
    scaled = (model.posterior_[key].ravel() - exact.mean[key]) / exact.sd[key]
    edges = Scale.back(Scale.edges)
    height = np.histogram(scaled, edges)[0] / scaled.size / np.diff(edges)
    axes.stairs(height, Scale.edges, fill=True, alpha=0.5, baseline=LEAST, **look)


def draw(title: str, rows: dict[str, dict[str, Panel]]) -> Any:
    """Draw a row a parameter and a column a setting: printed, right, and exact."""
    figure = new_figure(10.0, 7.2)
    figure.suptitle(f"{title}: densities by distance from the exact mean")
    (printed, first), (right, second) = rows.items()
    panels = figure.subplots(len(NAMES), len(first), sharex=True, sharey=True)
    grid = np.linspace(-4.0, 4.0, 201)
    for row, (key, name) in zip(panels, NAMES.items(), strict=True):
        for axes, setting in zip(row, first, strict=True):
            draw_panel(axes, *first[setting], key, color=PRINTED, label=printed)
            draw_panel(axes, *second[setting], key, color=RIGHT, label=right)
            exact = second[setting][1]
            density = exact.density(key, exact.mean[key] + exact.sd[key] * grid) * exact.sd[key]
            axes.plot(Scale.to(grid), density, color=EXACT, linewidth=1.2, label="exact density")
            widths = [write(ratio(*fits[setting], key), ".2f") for fits in (first, second)]
            axes.set_title(f"{name}, {setting}: sd × {widths[0]} | {widths[1]}", fontsize=9)
            axes.set_xticks(Scale.to(Scale.ticks), [f"{tick:g}" for tick in Scale.ticks])
            tidy(axes)
        row[0].set(ylabel="density per exact sd", yscale="log", ylim=(LEAST, 0.9))
    for axes in panels[-1]:
        axes.set_xlabel("exact sds from the exact mean")
    handles, labels = panels[0, 0].get_legend_handles_labels()
    for i, side in enumerate(("left", "right")):
        labels[i] += f" (its sd: × {side})"
    figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False)
    return figure


def tell(rows: dict[str, dict[str, Panel]]) -> dict[str, Any]:
    """Print and return the sds of all three parameters over the exact ones."""
    found = {
        label: {
            title: {name: ratio(*fit, key) for key, name in NAMES.items()}
            for title, fit in panels.items()
        }
        for label, panels in rows.items()
    }
    show_rows(
        {f"{label}, {title}": row for label, by in found.items() for title, row in by.items()}
    )
    return dict(zip(("printed", "right"), found.values(), strict=True))


def main(arguments: Sequence[str] | None = None) -> dict[str, Any]:
    """Fit the models, draw both figures; print and return what they show."""
    options = parse(__doc__, arguments)
    X, y = make_correlated_pair(random_state=0)
    n_draws = 250 if options.quick else 1000

    exact, printed, right = Exact(X, y), {}, {}
    for seed, m in enumerate(BATCH_SIZES):
        title, settings = f"m = {m:,}", {"batch_size": m, "random_state": seed}
        printed[title] = fit_printed(X, y, **settings), exact
        quiet = {"gradient": "control_variate", "n_draws": n_draws}
        right[title] = fit(X, y, **settings, **quiet), exact
    rows = {"plain, as printed": printed, "with control variates": right}
    say("Batches of m rows: sd of the draws over the exact sd.")
    by_batch = tell(rows)
    figure = draw("SGLD on 10,000 rows, in batches of m", rows)
    save(figure, options.output, "lecture_histograms_batch.png")

    printed, right = {}, {}
    for seed, tau in enumerate(TEMPERATURES):
        title, settings = f"τ = {tau:g}", {"temperature": tau, "random_state": seed}
        exact = Exact(X, y, tau)
        printed[title] = fit_printed(X, y, batch_size=100, **settings), exact
        right[title] = fit(X, y, n_draws=n_draws, **settings), exact
    rows = {"plain, m = 100, as printed": printed, "default settings": right}
    say("Temperatures: sd of the draws over that of the tempered density.")
    by_temperature = tell(rows)
    figure = draw("SGLD on 10,000 rows, at the temperature τ", rows)
    save(figure, options.output, "lecture_histograms_temperature.png")
    return {"batch size": by_batch, "temperature": by_temperature}


if __name__ == "__main__":
    main()

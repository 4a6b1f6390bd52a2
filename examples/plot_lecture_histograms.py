"""The lecture's histograms by batch size and by temperature, as printed and as they should be
===========================================================================================

Redraws Figures 4.2 and 4.3 of Karagiannis, Handout 6: 10,000 rows of a correlated pair, SGLD with
eta = 1e-5, the last 500 of 1,000 steps; slope, intercept and noise variance. The panels of a row
share one scale, the parameter's own; every density is drawn to the same height, since only their
places and widths are to be compared. To see: at that step size neither batch size nor temperature
gives the exact density; control variates give it from ten rows a step, and the default settings
give the tempered density at every temperature. ``plot_lecture_claims.py`` measures the claims
behind them.

Usage: ``python examples/plot_lecture_histograms.py [--output DIR] [--quick]``; about 10 s.
"""

# sphinx_gallery_thumbnail_path = "figures/thumbnail_lecture_histograms_batch.png"

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
from skbayes_sgld.priors import ConjugateNormal, InverseGamma

BATCH_SIZES, TEMPERATURES = (10, 100, 1000), (0.01, 0.1, 1.0, 10.0)
NAMES = {SLOPE: "slope", INTERCEPT: "intercept", NOISE: "noise variance"}
N_BINS = 25  # of a histogram, between its ends
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


def ratio(model: SGLDLinearRegression, exact: Exact, key: str) -> dict[str, Any]:
    """Sd of the draws over the exact one, and its Monte Carlo error."""
    draws = model.posterior_[key]
    found = draws.std() / exact.sd[key]
    ess = effective_sample_size(draws[:, :, None])[0]
    return measured(found, found / np.sqrt(2.0 * ess), "±.2f")


def draw_panel(axes: Any, model: SGLDLinearRegression, key: str, **look: Any) -> None:
    """Draw a histogram, so high that the density of a normal with its sd would be 1."""
    draws = model.posterior_[key]
    density, edges = np.histogram(draws, N_BINS, density=True)
    axes.stairs(density * draws.std() * np.sqrt(2.0 * np.pi), edges, fill=True, alpha=0.5, **look)


def draw(title: str, rows: dict[str, dict[str, Panel]]) -> Any:
    """Draw a row a parameter and a column a setting: printed, right, and exact."""
    (printed, first), (right, second) = rows.items()
    figure = new_figure(2.9 * len(first) + 0.6, 6.4)
    figure.suptitle(f"{title}: densities of one height, and sds over the exact one")
    panels = figure.subplots(len(NAMES), len(first), sharex="row", sharey=True)
    for row, (key, name) in zip(panels, NAMES.items(), strict=True):
        for axes, setting in zip(row, first, strict=True):
            draw_panel(axes, first[setting][0], key, color=PRINTED, label=printed)
            draw_panel(axes, second[setting][0], key, color=RIGHT, label=right)
            exact = second[setting][1]
            grid = exact.mean[key] + exact.sd[key] * np.linspace(-4.0, 4.0, 201)
            density = exact.density(key, grid)
            look = {"color": EXACT, "linewidth": 1.2, "label": "exact density"}
            axes.plot(grid, density / density.max(), **look)
            widths = [write(ratio(*fits[setting], key), ".2f") for fits in (first, second)]
            axes.set_title(f"{setting}: sd × {widths[0]} | {widths[1]}", fontsize=9)
            axes.set(xlabel=name, yticks=[], ylim=(0.0, 1.25))
            tidy(axes)
    handles, labels = panels[0, 0].get_legend_handles_labels()
    for i, side in enumerate(("left", "right")):
        labels[i] += f" (sd: {side})"
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
    save(figure, options.output, "lecture_histograms_batch.png", figure.axes[1])

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

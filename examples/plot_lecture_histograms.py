"""The lecture's histograms by batch size and by temperature, as printed and as they should be
===========================================================================================

Redraws the slope's panels of Figures 4.2 and 4.3 of Karagiannis, Handout 6: 10,000 rows of a
correlated pair, SGLD with eta = 1e-5, the last 500 of 1,000 steps. The panels of a row share one
axis; by temperature all six do. To see: at that step size neither batch size nor temperature gives
the exact density; control variates give it from ten rows a step, and the default settings give the
tempered density at every temperature. ``plot_lecture_claims.py`` measures the claims behind them.

Usage: ``python examples/plot_lecture_histograms.py [--output DIR] [--quick]``; about 10 s.
"""

# sphinx_gallery_thumbnail_path = "figures/lecture_histograms_batch.png"

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from _figure import EXACT, PRINTED, RIGHT, new_figure, parse, save, say, show_rows, unconverged
from _lecture import INTERCEPT, NOISE, PHI, PLAIN_START, PLAIN_STEP, PRIOR_SCALE, PSI, SLOPE, Exact
from _numbers import measured
from _plain_sgld import PLAIN

from skbayes_sgld import SGLDLinearRegression
from skbayes_sgld.datasets import make_correlated_pair
from skbayes_sgld.diagnostics import effective_sample_size
from skbayes_sgld.posterior import ConjugateNormal, InverseGamma

BATCH_SIZES, TEMPERATURES = (10, 100, 1000), (0.1, 1.0, 10.0)
NAMES = {INTERCEPT: "intercept", SLOPE: "slope", NOISE: "noise variance"}
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


def reach(panels: dict[str, Panel]) -> float:
    """How far an axis must go from the mean to hold all of a row."""
    widths = [sd for model, exact in panels.values() for sd in (width(model), exact.sd[SLOPE])]
    return 3.2 * max(widths)


def width(model: SGLDLinearRegression) -> float:
    """Sd of the slope's draws."""
    return float(model.posterior_[SLOPE].std())


def draw_row(row: Any, panels: dict[str, Panel], reach: float, color: str, label: str) -> None:
    """Draw the slope's histograms over the exact densities, all on one axis."""
    for axes, (title, (model, exact)) in zip(row, panels.items(), strict=True):
        draws, sd = model.posterior_[SLOPE].ravel(), exact.sd[SLOPE]
        grid = exact.mean[SLOPE] + np.linspace(-reach, reach, 2001)
        bins = np.linspace(draws.min(), draws.max(), 31)
        axes.hist(draws, bins, density=True, color=color, alpha=0.55, label=label)
        axes.plot(grid, exact.density(SLOPE, grid), color=EXACT, linewidth=1.2, label="exact")
        axes.set(xlim=(grid[0], grid[-1]), yticks=[], title=f"{title}: sd × {draws.std() / sd:.2f}")
        axes.title.set_fontsize(10)
        axes.locator_params(axis="x", nbins=5)
        axes.spines[["top", "right", "left"]].set_visible(False)
    row[0].set_ylabel("density (own scale)")


def draw(title: str, rows: dict[str, dict[str, Panel]], one_axis: bool) -> Any:
    """Draw a figure of two rows: as printed, and as it should be."""
    figure = new_figure(9.0, 5.0)
    figure.suptitle(f"{title}: density of the slope, and the draws' sd over the exact one")
    panels = figure.subplots(2, 3)
    own = [reach(shown) for shown in rows.values()]
    axis = [max(own)] * 2 if one_axis else own
    each = zip(panels, rows.items(), axis, (PRINTED, RIGHT), strict=True)
    for row, (label, shown), half, color in each:
        draw_row(row, shown, half, color, label)
    panels[1, 1].set_xlabel("slope (y per x)")
    shown = [axes.get_legend_handles_labels() for axes in panels[:, 0]]
    handles, labels = [sum(parts, []) for parts in zip(*shown, strict=True)]
    legend = dict(zip(labels, handles, strict=True))
    figure.legend(legend.values(), legend, loc="outside lower center", ncols=3, frameon=False)
    return figure


def tell(rows: dict[str, dict[str, Panel]]) -> dict[str, Any]:
    """Print the sds of all three parameters over the exact ones."""
    cells = {
        f"{label}, {title}": {
            name: sd_over(model.posterior_[key], exact.sd[key]) for key, name in NAMES.items()
        }
        for label, panels in rows.items()
        for title, (model, exact) in panels.items()
    }
    show_rows(cells)
    return cells


def sd_over(draws: np.ndarray, exact: float) -> dict[str, Any]:
    """Sd of draws over the exact one, with its Monte Carlo standard error."""
    squares = (draws - draws.mean()) ** 2
    size = effective_sample_size(squares[:, :, None], "mean")[0]
    sd = np.sqrt(squares.mean())
    return measured(sd / exact, 0.5 * squares.std() / np.sqrt(size) / sd / exact)


def main(arguments: Sequence[str] | None = None) -> dict[str, Any]:
    """Fit the models, draw both figures and print what they show."""
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
    batches = tell(rows)
    figure = draw("SGLD on 10,000 rows, in batches of m", rows, one_axis=False)
    save(figure, options.output, "lecture_histograms_batch.png")

    printed, right = {}, {}
    for seed, tau in enumerate(TEMPERATURES):
        title, settings = f"τ = {tau:g}", {"temperature": tau, "random_state": seed}
        exact = Exact(X, y, tau)
        printed[title] = fit_printed(X, y, batch_size=100, **settings), exact
        right[title] = fit(X, y, n_draws=n_draws, **settings), exact
    rows = {"plain, m = 100, as printed": printed, "default settings": right}
    say("Temperatures: sd of the draws over that of the tempered density.")
    temperatures = tell(rows)
    figure = draw("SGLD on 10,000 rows, at the temperature τ", rows, one_axis=True)
    save(figure, options.output, "lecture_histograms_temperature.png")
    slopes = [
        row["slope"]
        for rows in (batches, temperatures)
        for name, row in rows.items()
        if name.startswith("plain")
    ]
    slopes.sort(key=lambda slope: slope["value"])
    return {
        "batches": batches,
        "temperatures": temperatures,
        "narrowest as printed": slopes[0] | {"show": ".0f"},
        "widest as printed": slopes[-1] | {"show": ".0f"},
    }


if __name__ == "__main__":
    main()

"""The lecture's histograms by batch size and by temperature, as printed and as they should be.

Redraws Figures 4.2 and 4.3 of Karagiannis, Handout 6: 10,000 rows of a correlated pair, SGLD with
eta = 1e-5, the last 500 of 1,000 steps. To see: at that step size neither batch size nor
temperature gives the red density; control variates give it from ten rows a step, and the default
settings give the tempered density at every temperature. The claims behind the figures are measured
in ``plot_lecture_claims.py``.

Usage: ``python examples/plot_lecture_histograms.py [--output DIR] [--quick]``; about 10 s.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from _figure import EXACT, PRINTED, RIGHT, new_figure, parse, save, say, unconverged
from _plain_sgld import PLAIN
from plot_lecture_claims import (
    INTERCEPT,
    NOISE,
    PHI,
    PLAIN_STEP,
    PRIOR_SCALE,
    PSI,
    SLOPE,
    Exact,
)

from skbayes_sgld import SGLDLinearRegression
from skbayes_sgld.datasets import make_correlated_pair
from skbayes_sgld.posterior import ConjugateNormal, InverseGamma

BATCH_SIZES, TEMPERATURES = (10, 100, 1000), (0.1, 1.0, 10.0)
NAMES = {INTERCEPT: "intercept", SLOPE: "slope", NOISE: "noise variance"}


def fit(X: np.ndarray, y: np.ndarray, **settings: Any) -> SGLDLinearRegression:
    """Return a fit of the lecture's model."""
    prior, noise = ConjugateNormal(PRIOR_SCALE), InverseGamma(PHI, PSI)
    model = SGLDLinearRegression(prior=prior, noise_prior=noise, **settings)
    return model.fit(X, y)


def fit_printed(X: np.ndarray, y: np.ndarray, **settings: Any) -> SGLDLinearRegression:
    """Return the lecture's own run."""
    lengths = {"n_chains": 1, "n_burnin": 500, "n_draws": 500}
    with unconverged():
        return fit(X, y, step_size=PLAIN_STEP, **{**PLAIN, **lengths, **settings})


def fit_each(fit_one: Any, X: np.ndarray, y: np.ndarray, settings: dict[str, dict]) -> dict:
    """Return a fit for every title's settings, each with random numbers of its own."""
    each = enumerate(settings.items())
    return {title: fit_one(X, y, random_state=seed, **own) for seed, (title, own) in each}


def draw_block(panels: Any, fits: dict, exact: dict[Any, Exact], color: str) -> None:
    """Draw a column of histograms for every fit, over its exact densities."""
    for column, (title, model) in zip(panels.T, fits.items(), strict=True):
        for axes, (name, label) in zip(column, NAMES.items(), strict=True):
            draws, law = model.posterior_[name].ravel(), exact[title]
            reach = 4.0 * max(draws.std(), law.sd[name])
            grid = law.mean[name] + np.linspace(-reach, reach, 401)
            axes.hist(draws, grid[::10], density=True, color=color, alpha=0.55)
            axes.plot(grid, law.density(name, grid), color=EXACT, linewidth=1.2)
            axes.set(xlim=(grid[0], grid[-1]), yticks=[], xlabel=label)
            axes.locator_params(axis="x", nbins=3)
            axes.tick_params(labelsize=8)
            axes.spines[["top", "right", "left"]].set_visible(False)
            ratio = draws.std() / law.sd[name]
            axes.text(
                0.0, 0.98, f"sd × {ratio:.2f}", fontsize=8, va="top", transform=axes.transAxes
            )
        column[0].set_title(title, fontsize=10)


def draw(title: str, printed: dict, right: dict, subtitle: str, exact: Any, tempered: Any) -> Any:
    """Return a figure of two blocks: as printed, and as it should be."""
    figure = new_figure(13.0, 6.4)
    figure.suptitle(title)
    left_half, right_half = figure.subfigures(1, 2)
    for half, name in ((left_half, "As printed, and the posterior"), (right_half, subtitle)):
        half.suptitle(name, fontsize=11)
    draw_block(left_half.subplots(3, len(printed)), printed, exact, PRINTED)
    draw_block(right_half.subplots(3, len(right)), right, tempered, RIGHT)
    return figure


def width_range(fits: dict, exact: dict[Any, Exact]) -> str:
    """Return the smallest and the largest sd of the slope over the exact one."""
    ratios = [model.posterior_[SLOPE].std() / exact[t].sd[SLOPE] for t, model in fits.items()]
    return f"{min(ratios):.2f} to {max(ratios):.2f}"


def main(arguments: Sequence[str] | None = None) -> None:
    """Fit the models, draw both figures and say what to see."""
    options = parse(__doc__, arguments)
    X, y = make_correlated_pair(random_state=0)
    n_draws = 250 if options.quick else 1000
    ends = "Dividing each sd by the exact one, the slope's is"

    sizes = {f"m = {m:,}": {"batch_size": m} for m in BATCH_SIZES}
    exact = dict.fromkeys(sizes, Exact(X, y))
    quiet = {"gradient": "control_variate", "n_draws": n_draws}
    printed = fit_each(fit_printed, X, y, sizes)
    right = fit_each(fit, X, y, {title: size | quiet for title, size in sizes.items()})
    title = "SGLD by batch size (histograms): sd over that of the red density"
    figure = draw(
        title,
        printed,
        right,
        "The same batches with control variates, and the posterior",
        exact,
        exact,
    )
    save(figure, options.output, "lecture_histograms_batch.png")
    say(
        f"Batches. {ends} {width_range(printed, exact)} as printed, {width_range(right, exact)} "
        "with control variates."
    )

    taus = {rf"$\tau$ = {tau:g}": {"temperature": tau} for tau in TEMPERATURES}
    posterior = dict.fromkeys(taus, Exact(X, y))
    tempered = {title: Exact(X, y, tau["temperature"]) for title, tau in taus.items()}
    printed = fit_each(fit_printed, X, y, {t: tau | {"batch_size": 100} for t, tau in taus.items()})
    right = fit_each(fit, X, y, {t: tau | {"n_draws": n_draws} for t, tau in taus.items()})
    title = "SGLD by temperature (histograms): sd over that of the red density"
    subtitle = "Default settings, and the tempered density"
    figure = draw(title, printed, right, subtitle, posterior, tempered)
    save(figure, options.output, "lecture_histograms_temperature.png")
    say(
        f"Temperatures. {ends} {width_range(printed, tempered)} as printed, "
        f"{width_range(right, tempered)} with default settings, of the tempered density's."
    )


if __name__ == "__main__":
    main()

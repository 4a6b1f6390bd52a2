"""A posterior of two modes: the exact density, MCMC, plain SGLD, and the default settings
=======================================================================================

Redraws Figures 3, 4 and 5 of the blog post on SGLD and Bayes by Backprop: 100 points of Welling &
Teh's mixture with tied means, drawn with variance 2.56 and modelled with 2. To see: how long plain
SGLD stays in each mode is left to chance; ``sample(posterior)``, with no setting given, visits
both, each as often as the exact density says.

Usage: ``python examples/plot_tied_mixture.py [--output DIR] [--quick]``; about 15 s, with a tenth
of the post's million steps.
"""

# sphinx_gallery_thumbnail_path = "figures/thumbnail_tied_mixture.png"

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from _figure import EXACT, PRINTED, RIGHT, new_figure, parse, save, say, tidy, unconverged
from _numbers import measured, share_of_draws, write
from _plain_sgld import PLAIN

import skbayes_sgld
from skbayes_sgld.datasets import make_tied_means_mixture
from skbayes_sgld.own_models import TiedGaussianMixture
from skbayes_sgld.sampling import Minibatch, Polynomial

BATCH_SIZES = (1, 10, 100)
FIRST, LAST, POWER = 0.01, 0.0001, 0.55  # of epsilon, Welling & Teh's step size


def decaying(n_steps: int) -> tuple[float, Polynomial]:
    """Constant a and the schedule of ``epsilon = a (b + t)^-0.55`` from FIRST to LAST."""
    ratio = (FIRST / LAST) ** (1.0 / POWER)
    offset = (n_steps - ratio) / (ratio - 1.0)
    return FIRST * (offset + 1.0) ** POWER, Polynomial(offset, POWER)


def run_plain(posterior: TiedGaussianMixture, batch_size: int, n_steps: int) -> np.ndarray:
    """Every tenth draw of plain SGLD."""
    a, schedule = decaying(n_steps)
    settings = PLAIN | {"gradient": Minibatch(replacement=False), "thin": 10}
    with unconverged():
        draws = skbayes_sgld.sample(
            posterior,
            **settings,
            step_size=a / 2.0,  # epsilon is twice the step size
            schedule=schedule,
            batch_size=batch_size,
            n_draws=n_steps // 10,
            random_state=batch_size,
        )
    return draws.values


def upper(draws: np.ndarray) -> np.ndarray:
    """Share of each chain's draws in the mode where theta2 > 0."""
    return (draws[..., 1] > 0).mean(axis=1)


def draw_panel(axes: Any, grid: Any, title: str, draws: np.ndarray | None, color: str) -> None:
    """Draw some draws, and over them the exact density's contours."""
    if draws is not None:
        axes.plot(*draws.T, ".", color=color, markersize=2, alpha=0.35, rasterized=True)
    peak = grid.density.max()
    style = {"levels": peak * np.array([0.05, 0.2, 0.4, 0.6, 0.8, 0.95]), "linewidths": 1.0}
    axes.contour(grid.theta1, grid.theta2, grid.density.T, colors=EXACT, **style)
    axes.set(xlim=(-1.5, 3), ylim=(-3.5, 3.5), xlabel=r"$\theta_1$", ylabel=r"$\theta_2$")
    tidy(axes, title)


def main(arguments: Sequence[str] | None = None) -> dict[str, Any]:
    """Run them all, draw the figure and say what to see."""
    options = parse(__doc__, arguments)
    n_steps, n_draws = (1_000, 250) if options.quick else (100_000, 1000)
    posterior = TiedGaussianMixture(make_tied_means_mixture(100, variance=2.56, random_state=0)[0])
    grid = posterior.grid_density()
    exact = grid.mass[0]
    with unconverged(options.quick):
        hmc = skbayes_sgld.sample(posterior, "hmc", n_draws=2 * n_draws, random_state=0).values
        default = skbayes_sgld.sample(posterior, n_draws=n_draws, random_state=0).values
    plain = {batch: run_plain(posterior, batch, n_steps) for batch in BATCH_SIZES}

    figure = new_figure(11.0, 7.4)
    top, bottom = figure.subplots(2, 3, sharex=True, sharey=True)
    draw_panel(top[0], grid, f"Exact density: {exact:.2f} of its mass above 0", None, EXACT)
    for axes, name, draws in ((top[1], "HMC", hmc), (top[2], "Default settings", default)):
        title = (
            f"{name}: {draws.shape[0] * draws.shape[1]:,} draws, {upper(draws).mean():.2f} above"
        )
        draw_panel(axes, grid, title, draws.reshape(-1, 2), RIGHT)
    for axes, (batch, draws) in zip(bottom, plain.items(), strict=True):
        own, *others = (f"{share:.2f}" for share in upper(draws))
        title = f"Plain SGLD, batches of {batch}: {own} above\n(other seeds {', '.join(others)})"
        draw_panel(axes, grid, title, draws[0], PRINTED)
    figure.suptitle(
        "Mixture with tied means: the modes as MCMC finds them (top) and as plain SGLD, one chain "
        f"of\n{n_steps:,} steps, $\\epsilon$ from {FIRST} to {LAST}, does (bottom). "
        r"Red: contours of the exact density"
    )
    save(figure, options.output, "tied_mixture.png", top[2])
    found = {
        "exact": measured(exact, show=".3f"),
        "HMC": share_of_draws(hmc[..., 1] > 0),
        "default": share_of_draws(default[..., 1] > 0),
    }
    shares = np.concatenate([upper(draws) for draws in plain.values()])
    by_hmc, by_default = write(found["HMC"]), write(found["default"])
    say(
        f"The exact mass where theta2 > 0 is {exact:.3f}. HMC has {by_hmc} of its draws there, the "
        f"default settings {by_default}; {shares.size} chains of plain SGLD have from "
        f"{shares.min():.2f} to {shares.max():.2f}."
    )
    if not options.quick:  # of chains that have hardly begun to change modes
        found["least by plain SGLD"] = measured(shares.min(), None)
        found["most by plain SGLD"] = measured(shares.max(), None)
    return found


if __name__ == "__main__":
    main()

"""Networks between two clusters of data: sampled, and by Bayes by Backprop
========================================================================

A network with one hidden layer is fitted to two clusters of points with a gap between them. To
see: among the points the sampled networks agree, in the gap and beyond the points they do not,
and their band widens. That of Bayes by Backprop hardly does (Foong, Burt, Li & Turner 2020): it is
too wide among the points, since independent weights cannot hold a curve in place. Beyond the
points neither knows that the truth is a sine.

Usage: ``python examples/plot_network_gap.py [--output DIR] [--quick]``; about 15 s.
"""

# sphinx_gallery_thumbnail_path = "figures/thumbnail_network_gap.png"

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from _figure import EXACT, PRINTED, RIGHT, new_figure, parse, save, say, tidy, unconverged
from _numbers import measured

from skbayes_sgld import BayesByBackpropRegressor, SGLDMLPRegressor

GAP, EDGE = 0.7, 2.0  # the points are where 0.7 < |x| < 2
NOISE = 0.1


def truth(x: np.ndarray) -> np.ndarray:
    """Curve that the points scatter around."""
    return np.sin(2.0 * x)


def make_clusters(n_rows: int = 60) -> tuple[np.ndarray, np.ndarray]:
    """Draw points in two clusters."""
    rng = np.random.default_rng(0)
    x = rng.uniform(GAP, EDGE, n_rows) * np.where(np.arange(n_rows) % 2, 1.0, -1.0)
    return x[:, None], truth(x) + NOISE * rng.standard_normal(n_rows)


def describe(model: Any, grid: np.ndarray) -> tuple[float, float, float]:
    """Mean width of the curve's 90 % band among the points and in the gap, and coverage there."""
    low, high = model.predict_interval(grid[:, None], kind="mean").T
    at_points = (np.abs(grid) > GAP) & (np.abs(grid) < EDGE)
    in_gap = np.abs(grid) < 0.8 * GAP
    inside = (low < truth(grid)) & (truth(grid) < high)
    return (high - low)[at_points].mean(), (high - low)[in_gap].mean(), inside[in_gap].mean()


def draw(axes: Any, model: Any, grid: np.ndarray, data: Any, color: str, title: str) -> None:
    """Draw the bands of the curve and of a new point, some drawn curves, points and truth."""
    rows = grid[:, None]
    band = {"color": color, "linewidth": 0}
    axes.fill_between(grid, *model.predict_interval(rows).T, **band, alpha=0.15)
    interval = model.predict_interval(rows, kind="mean")
    axes.fill_between(grid, *interval.T, **band, alpha=0.35)
    axes.axvspan(-GAP, GAP, color="0.93", zorder=0, label="gap: no data")
    for shade, what in ((0.15, "of a new point"), (0.5, "of the curve")):
        axes.fill_between([], [], color=color, alpha=shade, linewidth=0, label=f"90 % band {what}")
    weights = model.sample_posterior(8, random_state=1)
    hidden = np.tanh(rows @ weights.coefs[0] + weights.intercepts[0][:, None])
    curves = (hidden @ weights.coefs[1] + weights.intercepts[1][:, None])[..., 0]
    drawn = axes.plot(grid, curves.T, color=color, linewidth=0.7, alpha=0.8)
    drawn[0].set_label("eight drawn curves")
    axes.plot(grid, truth(grid), color=EXACT, linewidth=1.2, label="truth")
    axes.plot(data[0][:, 0], data[1], "k.", markersize=5, label="data")
    axes.set(xlabel="x", ylabel="y", ylim=(-3.4, 2.2), xlim=(grid[0], grid[-1]))
    tidy(axes, title)


def main(arguments: Sequence[str] | None = None) -> dict[str, Any]:
    """Fit both, draw the figure and say what to see."""
    options = parse(__doc__, arguments)
    x, y = make_clusters()
    grid = np.linspace(-3.2, 3.2, 129)
    size = {"hidden_layer_sizes": (20,), "random_state": 0}
    lengths = {"n_draws": 20, "n_burnin": 200, "thin": 4} if options.quick else {"n_chains": 8}
    with unconverged(options.quick):
        sampled = SGLDMLPRegressor(**size, **lengths).fit(x, y)
    backprop = BayesByBackpropRegressor(**size, max_iter=10_000).fit(x, y)

    figure = new_figure(11.0, 4.6)
    panels = figure.subplots(1, 2, sharey=True)
    named = {
        "Langevin dynamics": (sampled, RIGHT),
        "Bayes by Backprop": (backprop, PRINTED),
    }
    for axes, (name, (model, color)) in zip(panels, named.items(), strict=True):
        at_points, in_gap, _ = describe(model, grid)
        title = (
            f"{name}: the curve's band is {at_points:.2f} wide\namong the points, {in_gap:.2f} in "
            f"the gap, {in_gap / at_points:.1f} times as much"
        )
        draw(axes, model, grid, (x, y), color, title)
        axes.legend(loc="lower left", fontsize=8, frameon=False)
    figure.suptitle("A network of 20 hidden units between two clusters of data")
    save(figure, options.output, "network_gap.png", figure.axes[0])
    found = {}
    for name, (model, _) in named.items():
        at_points, in_gap, inside = describe(model, grid)
        found[name] = measured(in_gap / at_points, 0.05 * in_gap / at_points, ".1f")
        say(
            f"{name}: the curve's 90 % band is {at_points:.2f} wide among the points and "
            f"{in_gap:.2f} in the gap, where it holds {inside:.0%} of the true curve."
        )
    return {"Bayes by Backprop": found["Bayes by Backprop"]} if options.quick else found


if __name__ == "__main__":
    main()

"""Decaying steps: the posterior by iteration, and its height
==========================================================

Redraws Figures 1 and 2 of Chen's report: 30,000 steps with epsilon = 0.03 (6 + t)^-0.55 and
batches of 30 on 1,000 points of the mixture with tied means, from (0.5, 0). The report's code
draws noise of variance 0.001 at every step where its Algorithm 1, and Welling & Teh, say epsilon:
too little at first, then ten times too much. To see: with that noise the cloud keeps growing; with
the right one it fits the mode it is in, and does not leave it; the default settings visit both.
The printed heights are those of each step's batch, which is mostly noise.

Usage: ``python examples/plot_decaying_step.py [--output DIR] [--quick]``; about 10 s.
"""

# sphinx_gallery_thumbnail_path = "figures/thumbnail_decaying_step_posterior.png"

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from _figure import EXACT, GREEN, PRINTED, RIGHT, new_figure, parse, save, say, tidy, unconverged
from _numbers import measured, share_of_draws
from _plain_sgld import PLAIN, plain_sgld

import skbayes_sgld
from skbayes_sgld.datasets import make_tied_means_mixture
from skbayes_sgld.own_models import TiedGaussianMixture
from skbayes_sgld.sampling import SGLD, Polynomial

EPSILON, SCHEDULE, BATCH_SIZE = 0.03, Polynomial(offset=6, power=0.55), 30
PRINTED_VARIANCE = 0.001  # of the noise, in the report's code


class PrintedNoise(SGLD):
    """SGLD with noise of the same variance at every step, whatever its size."""

    def prepare(self, normals: Any, previous: Any, eta: Any, dynamics: Any) -> Any:
        """Noise of every step."""
        return np.sqrt(PRINTED_VARIANCE) * normals


def run(posterior: TiedGaussianMixture, sampler: SGLD, n_steps: int) -> np.ndarray:
    """Path ``(n_steps, 2)`` of one chain."""
    kernel = plain_sgld(posterior, EPSILON, SCHEDULE, BATCH_SIZE, sampler)
    return kernel.run([0.5, 0.0], n_steps).draws[0]


def draw_posteriors(figure: Any, grid: Any, paths: dict[str, np.ndarray], default: Any) -> None:
    """Draw Figure 1: both runs by iteration, the exact density and the default settings."""
    rows = figure.subplots(2, 4, sharex=True, sharey=True)
    for row, (name, path), color in zip(rows, paths.items(), (PRINTED, GREEN), strict=True):
        lengths = (np.array([1, 3, 6]) * len(path) // 6).tolist()
        for axes, length in zip(row, lengths, strict=False):
            shown = path[:length] if length < len(path) else path[length // 30 :]
            axes.plot(*shown.T, ".", color=color, markersize=1, alpha=0.2, rasterized=True)
            axes.set_title(f"{name}: {length:,} steps", fontsize=10)
    rows[0, 3].set_title("Exact density", fontsize=10)
    rows[1, 3].plot(*default.T, ".", color=RIGHT, markersize=2, alpha=0.4, rasterized=True)
    rows[1, 3].set_title(f"Default settings: {len(default):,} draws", fontsize=10)
    levels = grid.density.max() * np.array([0.02, 0.1, 0.4, 0.8])
    for axes in rows.flat:
        contours = (grid.theta1, grid.theta2, grid.density.T)
        axes.contour(*contours, levels=levels, colors=EXACT, linewidths=0.9)
        axes.set(xlim=(-1.5, 2.5), ylim=(-3, 3))
        tidy(axes)
    for axes in rows[1]:
        axes.set_xlabel(r"$\theta_1$")
    for axes in rows[:, 0]:
        axes.set_ylabel(r"$\theta_2$")
    figure.suptitle(
        "The posterior by iteration: the noise of the printed code (top), that of Algorithm 1 "
        "(bottom).\nRed: contours of the exact density"
    )


def draw_heights(figure: Any, posterior: Any, path: np.ndarray, grid: Any) -> dict[str, float]:
    """Draw Figure 2 from above: a run's second half, coloured by its log posterior; its sds."""
    late = path[len(path) // 2 :: 5]
    rows = np.random.default_rng(0).integers(posterior.n_samples, size=(len(late), BATCH_SIZE))
    scale = posterior.n_samples / BATCH_SIZE
    of_batch = scale * posterior.log_likelihood(late, rows).sum(1) + posterior.log_prior(late)
    heights = {
        "from each step's batch, as printed": of_batch,
        "from all rows": posterior.log_density(late),
    }
    top = np.log(grid.density.max()) - np.array([7.0, 4.5, 2.0, 0.5])
    panels = figure.subplots(1, 2, sharex=True, sharey=True)
    for axes, (title, height) in zip(panels, heights.items(), strict=True):
        limits = dict(zip(("vmin", "vmax"), np.quantile(height, [0.02, 1.0]), strict=True))
        points = axes.scatter(*late.T, c=height, s=3, cmap="viridis", rasterized=True, **limits)
        figure.colorbar(points, ax=axes, label="log posterior (nats)", extend="min")
        log_density = np.log(np.maximum(grid.density.T, 1e-300))
        contours = {"levels": top, "colors": EXACT, "linewidths": 0.9, "linestyles": "-"}
        axes.contour(grid.theta1, grid.theta2, log_density, **contours)
        axes.set(xlabel=r"$\theta_1$", ylabel=r"$\theta_2$", xlim=(-1.5, 2.5), ylim=(-3, 3))
        tidy(axes, f"Height {title}: sd {height.std():.1f} nats")
    figure.suptitle(
        "Draws of the printed run's second half by their log posterior. "
        "Red: contours of the exact density"
    )
    return {title: float(height.std()) for title, height in heights.items()}


def main(arguments: Sequence[str] | None = None) -> dict[str, Any]:
    """Make both runs, draw both figures and say what to see."""
    options = parse(__doc__, arguments)
    n_steps = 1_000 if options.quick else 30_000
    posterior = TiedGaussianMixture(make_tied_means_mixture(1000, random_state=1)[0])
    grid = posterior.grid_density((-2.0, 3.5), (-4.0, 4.0))
    paths = {
        "As printed": run(posterior, PrintedNoise("euler"), n_steps),
        "Algorithm 1": run(posterior, PLAIN["sampler"], n_steps),
    }
    n_draws = 25 if options.quick else 250
    with unconverged(options.quick):
        default = skbayes_sgld.sample(posterior, n_draws=n_draws, random_state=0)

    figure = new_figure(11.0, 5.6)
    draw_posteriors(figure, grid, paths, default.values.reshape(-1, 2))
    save(figure, options.output, "decaying_step_posterior.png", figure.axes[2])
    figure = new_figure(10.0, 4.4)
    sds = draw_heights(figure, posterior, paths["As printed"], grid)
    save(figure, options.output, "decaying_step_height.png")
    upper = {name: (path[:, 1] > 0).mean() for name, path in paths.items()}
    upper["the default settings"] = (default["theta2"] > 0).mean()
    shares = ", ".join(f"{share:.2f} ({name})" for name, share in upper.items())
    say(f"The exact mass where theta2 > 0 is {grid.mass[0]:.2f}; the draws have {shares}.")
    found = {"default": share_of_draws(default["theta2"] > 0), "exact": measured(grid.mass[0])}
    if not options.quick:  # one chain that keeps growing, so without an error
        kept = dict(zip(("of a batch", "of all rows"), sds.values(), strict=True))
        found["height"] = {name: measured(sd, None, ".0f") for name, sd in kept.items()}
    return found


if __name__ == "__main__":
    main()

"""What a preconditioner does: gradient descent and Langevin dynamics on a narrow valley
=====================================================================================

Redraws Figure 1 of the blog post on SGLD and Bayes by Backprop: the contours of a density before
and after the change of coordinates that makes them round, and the paths of gradient descent in
each. Below, what the post does not draw: Langevin dynamics of as many steps. To see: along the
valley the step that the steep direction allows is too short, for descent and for sampling alike;
with the curvature as preconditioner no direction is steep.

Usage: ``python examples/plot_preconditioning.py [--output DIR] [--quick]``; a second.
"""

# sphinx_gallery_thumbnail_path = "figures/thumbnail_preconditioning.png"

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from _figure import GREY, PRINTED, RIGHT, new_figure, parse, save, say, tidy
from _numbers import draws_worth, measured, write

from skbayes_sgld.kernels import Kernel
from skbayes_sgld.likelihoods import FixedNormalNoise
from skbayes_sgld.optimizers import GD, find_mode
from skbayes_sgld.posterior import GLMPosterior
from skbayes_sgld.priors import Normal
from skbayes_sgld.sampling import SGLD, Curvature, Identity
from skbayes_sgld.sampling.tuning.mode import Mode

START = np.array([-2.6, 1.2])  # in posterior sds along the valley and across it
LEVELS = (0.5, 1.0, 1.5, 2.0, 2.5, 3.0)  # posterior sds


def make_posterior() -> GLMPosterior:
    """Posterior of a straight line's slopes on two columns that are nearly the same."""
    rng = np.random.default_rng(0)
    first = rng.standard_normal(100)
    X = np.column_stack([first, first + 0.25 * rng.standard_normal(100)])
    y = X @ [1.0, 0.5] + rng.standard_normal(100)
    return GLMPosterior(X, y, FixedNormalNoise(1.0), Normal(10.0), fit_intercept=False)


def follow(
    posterior: GLMPosterior,
    mode: Mode,
    algorithm: Any,
    preconditioner: Any,
    eta: float,
    n_steps: int,
    start: np.ndarray,
) -> np.ndarray:
    """Path ``(n_steps + 1, 2)`` of one chain."""
    kernel = Kernel(posterior, algorithm, step_size=eta, preconditioner=preconditioner, mode=mode)
    return np.vstack([start, kernel.run(start, n_steps).draws[0]])


def draw_panel(
    axes: Any, center: np.ndarray, root: np.ndarray, path: np.ndarray, title: str, style: Any
) -> None:
    """Draw the contours of a normal density and a path."""
    angle = np.linspace(0.0, 2.0 * np.pi, 200)
    circle = np.stack([np.cos(angle), np.sin(angle)])
    for level in LEVELS:
        axes.plot(*(center[:, None] + level * root @ circle), color=GREY, linewidth=0.7)
    axes.plot(*path.T, **style)
    axes.plot(*path[0], "k.", markersize=9)
    axes.plot(*center, "k+", markersize=9)
    axes.set_title(title, fontsize=10)
    axes.set_aspect("equal")
    tidy(axes)


def main(arguments: Sequence[str] | None = None) -> dict[str, Any]:
    """Run descent and dynamics with and without the preconditioner, and draw both."""
    options = parse(__doc__, arguments)
    n_descent, n_steps = 15, 500
    posterior = make_posterior()
    mode = find_mode(posterior, posterior.start())
    curvature = posterior.curvature(mode.theta)
    slopes, axes_of = np.linalg.eigh(curvature)  # the valley's direction first
    start = mode.theta + axes_of @ (START / np.sqrt(slopes))
    root = np.linalg.cholesky(np.linalg.inv(curvature))
    whiten = np.linalg.inv(root)
    # of descent: the best constant step without, and half of the way with
    settings = {
        "without": (Identity(), 2.0 / slopes.sum(), 0.5 / slopes[1], PRINTED),
        "with": (Curvature(), 0.5, 0.5, RIGHT),
    }

    figure = new_figure(8.6, 7.4)
    panels = figure.subplots(2, 2)
    found = {}
    for column, (name, (preconditioner, descent, dynamics, color)) in enumerate(settings.items()):
        # a matrix is taken as it is: theta = G^{1/2} u
        path = follow(posterior, mode, GD(), preconditioner, descent, n_descent, start)
        draws = follow(posterior, mode, SGLD("euler"), preconditioner, dynamics, n_steps, start)
        left = np.linalg.norm(whiten @ (path[-1] - mode.theta))
        worth = draws_worth(draws[None, 1:])
        say(
            f"{name.capitalize()} the preconditioner: {n_descent} steps of descent end {left:.4f} "
            f"posterior sds from the mode, and {n_steps} of Langevin dynamics are worth "
            f"{write(worth)} independent draws of the worse parameter."
        )
        digits = ".4f" if name == "with" else ".1f"
        found[name] = {"left": measured(left, show=digits), "worth": worth}
        titles = (
            f"Descent {name} it: {left:{digits}} sds away after {n_descent} steps",
            f"Dynamics {name} it: {n_steps} steps are worth {write(worth)} draws",
        )
        center, shape = mode.theta, root
        if name == "with":
            path, draws = ((p - mode.theta) @ whiten.T for p in (path, draws))
            center, shape = np.zeros(2), np.eye(2)
        line = {"color": color, "marker": "o", "markersize": 4, "linewidth": 1.2}
        cloud = {"color": color, "marker": ".", "markersize": 3, "linewidth": 0.4, "alpha": 0.7}
        draw_panel(panels[0, column], center, shape, path, titles[0], line)
        draw_panel(panels[1, column], center, shape, draws, titles[1], cloud)
        unit = r"u_%d" if name == "with" else r"\theta_%d"
        for row in panels[:, column]:
            row.set(xlabel=f"${unit % 1}$", ylabel=f"${unit % 2}$")
    figure.suptitle(
        "The curvature as preconditioner: the posterior of two slopes as it is (left), and in the\n"
        r"coordinates $u = D^{1/2}(\theta - \hat\theta)$ where it is round (right); contours every "
        "half sd"
    )
    save(figure, options.output, "preconditioning.png", panels[0, 0])
    return found


if __name__ == "__main__":
    main()

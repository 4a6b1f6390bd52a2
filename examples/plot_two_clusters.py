"""Two clusters: the line is easy, and the probabilities are not.

Redraws Figure 2 of Xu's report: 1,500 points around (-2, 2) and (2, -2), std 1.3, a logistic
regression without intercept under the prior exp(-|beta|_1), 5,000 steps with batches of 5. The
report does not give its step size; this one is 0.01 (50 + t)^-0.6. To see: both separate the
clusters equally well, but the printed chains do not move far enough to tell how steeply the
probability rises, nor how well that is known; the default settings do, as the exact density shows.

Usage: ``python examples/plot_two_clusters.py [--output DIR] [--quick]``; about 5 s.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from _figure import (
    EXACT,
    GREEN,
    GREY,
    PRINTED,
    RIGHT,
    new_figure,
    parse,
    save,
    say,
    tidy,
    unconverged,
)
from _plain_sgld import PLAIN

from skbayes_sgld import SGLDLogisticRegression
from skbayes_sgld.datasets import make_two_clusters
from skbayes_sgld.diagnostics import effective_sample_size
from skbayes_sgld.posterior import Laplace
from skbayes_sgld.sampling import Polynomial

MODEL: dict[str, Any] = {"prior": Laplace(1.0), "fit_intercept": False, "random_state": 0}
LEVELS = (0.01, 0.1, 0.5, 0.9, 0.99)
PLANE = np.linspace(-6.5, 6.5, 81)
SLOPES = np.linspace(1.2, 4.2, 151)  # of x1; those of x2 are the negative


def exact_density(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the posterior density on the grid of SLOPES x -SLOPES, its largest value 1."""
    signed = X * (2 * y - 1)[:, None]
    log_density = np.empty((len(SLOPES), len(SLOPES)))
    for i, slope in enumerate(SLOPES):
        margin = slope * signed[:, :1] - signed[:, 1:] * SLOPES
        log_density[i] = -np.logaddexp(0.0, -margin).sum(axis=0) - slope - SLOPES
    return np.exp(log_density - log_density.max())


def draw_probability(axes: Any, model: SGLDLogisticRegression, title: str, band: bool) -> None:
    """Draw contours of the probability; with ``band``, how wide its credible band is below them."""
    points = np.stack(np.meshgrid(PLANE, PLANE), axis=-1).reshape(-1, 2)
    shape = (len(PLANE), len(PLANE))
    if band:
        low, high = model.predict_proba_interval(points, coverage=0.9)[:, 1].T
        shades = axes.contourf(PLANE, PLANE, (high - low).reshape(shape), 8, cmap="Blues")
        axes.figure.colorbar(shades, ax=axes, label="width of the 90 % band")
    probability = model.predict_proba(points)[:, 1].reshape(shape)
    lines = axes.contour(PLANE, PLANE, probability, levels=LEVELS, colors="black", linewidths=0.9)
    axes.clabel(lines, fontsize=7)
    axes.set_title(title, fontsize=10)


def draw_points(axes: Any, X: np.ndarray, y: np.ndarray, title: str) -> None:
    """Draw the two clusters."""
    for label, color in ((0, GREEN), (1, GREY)):
        axes.plot(*X[y == label].T, ".", color=color, markersize=3, label=f"class {label}")
    axes.legend(fontsize=8, frameon=False, markerscale=4)
    axes.set_title(title, fontsize=10)


def draw_slopes(axes: Any, plain: Any, default: Any, density: np.ndarray) -> None:
    """Draw the draws of both over the exact density."""
    axes.plot(
        *default.posterior_.flat.T,
        ".",
        color=RIGHT,
        markersize=2,
        alpha=0.4,
        label="default settings",
    )
    for c, chain in enumerate(plain.posterior_.values):
        label = "as printed, one line a chain" if c == 0 else None
        axes.plot(*chain.T, color=PRINTED, linewidth=0.4, alpha=0.7, label=label)
    levels = [0.01, 0.1, 0.4, 0.8]
    axes.contour(SLOPES, -SLOPES, density.T, levels=levels, colors=EXACT, linewidths=1.2)
    axes.set(xlabel="slope of $x_1$", ylabel="slope of $x_2$")
    axes.legend(fontsize=8, frameon=False, markerscale=4)
    axes.set_title("The posterior of the slopes. Red: the exact density", fontsize=10)
    tidy(axes)


def main(arguments: Sequence[str] | None = None) -> None:
    """Fit both, draw the figure and say what to see."""
    options = parse(__doc__, arguments)
    X, y = make_two_clusters(random_state=0)
    plain = SGLDLogisticRegression(
        **MODEL,
        **PLAIN,
        batch_size=5,
        step_size=0.005,
        schedule=Polynomial(offset=50, power=0.6),
        n_draws=1000 if options.quick else 5000,
    )
    with unconverged():
        plain.fit(X, y)
    default = SGLDLogisticRegression(**MODEL).fit(X, y)
    density = exact_density(X, y)
    right = [(model.predict(X) == y).mean() for model in (plain, default)]

    figure = new_figure(11.0, 9.0)
    panels = figure.subplot_mosaic("PL;BS")
    draw_points(panels["P"], X, y, f"As printed: the line is right {right[0]:.1%} of the time")
    boundary = -plain.coef_[0, 0] / plain.coef_[0, 1] * PLANE
    panels["P"].plot(PLANE, boundary, color="black", linewidth=1.0)
    draw_probability(panels["L"], plain, "As printed: contours of the probability", band=False)
    draw_probability(panels["B"], default, "Default settings: how well it is known", band=True)
    draw_slopes(panels["S"], plain, default, density)
    for name in "PLB":
        panels[name].set(xlabel="$x_1$", ylabel="$x_2$", xlim=(-6.5, 6.5), ylim=(-6.5, 6.5))
        panels[name].set_aspect("equal")
    save(figure, options.output, "two_clusters.png")

    share = density.sum(axis=1) / density.sum()
    mean = share @ SLOPES
    sd = np.sqrt(share @ (SLOPES - mean) ** 2)
    found = {}
    for name, model in (("printed run", plain), ("default settings", default)):
        draws = model.posterior_.values[..., :1]
        ess = effective_sample_size(draws)[0]
        found[name] = f"{draws.mean():.3f} (sd {draws.std():.3f}, effective sample size {ess:,.0f})"
    say(
        f"The slope of x1 has the exact mean {mean:.3f} (sd {sd:.3f}). Mean over the draws of the "
        f"printed run: {found['printed run']}; default settings: {found['default settings']}. Both "
        f"are right about {right[0]:.1%} and {right[1]:.1%} of the points."
    )


if __name__ == "__main__":
    main()

"""Two clusters: the line is easy, and the probabilities are not
=============================================================

Redraws Figure 2 of Xu's report: 1,500 points around (-2, 2) and (2, -2), std 1.3, a logistic
regression without intercept under the prior ``exp(-|beta|_1)``, 5,000 steps with batches of 5. The
report gives neither its start nor its step size; here chains start at draws from the prior, and the
step size is 0.005 (50 + t)^-0.6. To see: both separate the clusters equally well, but the printed
chains, once there, see only part of the posterior, so that the probability rises less steeply than
it should; the default settings see all of it, as the exact density shows.

Usage: ``python examples/plot_two_clusters.py [--output DIR] [--quick]``; about 5 s.
"""

# sphinx_gallery_thumbnail_path = "figures/thumbnail_two_clusters.png"

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from _figure import EXACT, PRINTED, RIGHT, new_figure, parse, save, say, tidy
from _numbers import draws_worth, measured, share
from _plain_sgld import plain_sgld
from scipy.special import expit

from skbayes_sgld import SGLDLogisticRegression
from skbayes_sgld.datasets import make_two_clusters
from skbayes_sgld.diagnostics import effective_sample_size
from skbayes_sgld.likelihoods import Bernoulli
from skbayes_sgld.posterior import GLMPosterior
from skbayes_sgld.priors import Laplace
from skbayes_sgld.sampling import Polynomial

STEP, SCHEDULE = 0.005, Polynomial(offset=50, power=0.6)
LEVELS = (0.01, 0.1, 0.5, 0.9, 0.99)
PLANE = np.linspace(-6.5, 6.5, 81)
SLOPES = np.linspace(0.02, 4.5, 225)  # of x1; those of x2 are the negative


def run_plain(X: np.ndarray, y: np.ndarray, n_steps: int) -> np.ndarray:
    """Draws ``(4, n_steps, 2)`` of the printed run, four times, from draws of the prior."""
    posterior = GLMPosterior(X, y.astype(float), Bernoulli(), Laplace(1.0), fit_intercept=False)
    kernel = plain_sgld(posterior, 2.0 * STEP, SCHEDULE, batch_size=5)
    start = np.random.default_rng(0).laplace(size=(4, 2))
    return kernel.run(start, n_steps).draws


def exact_density(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Posterior density on the grid of SLOPES x -SLOPES, its largest value 1."""
    signed = X * (2 * y - 1)[:, None]
    odds, factors = np.exp(-SLOPES[:, None] * signed[:, 0]), np.exp(SLOPES[:, None] * signed[:, 1])
    log_density = np.array([-np.log(1.0 + row * factors).sum(axis=1) for row in odds])
    log_density -= SLOPES[:, None] + SLOPES
    return np.exp(log_density - log_density.max())


def draw_map(axes: Any, values: np.ndarray, title: str, color: str, label: str) -> None:
    """Draw a map of the plane, its values from 0 to 1."""
    shades = axes.contourf(PLANE, PLANE, values, np.linspace(0, 1, 11), cmap=color)
    axes.figure.colorbar(shades, ax=axes, label=label, shrink=0.85)
    axes.set(xlabel="$x_1$", ylabel="$x_2$", xlim=(-6.5, 6.5), ylim=(-6.5, 6.5), aspect="equal")
    axes.set_title(title, fontsize=10)


def draw_points(axes: Any, X: np.ndarray, y: np.ndarray) -> None:
    """Draw every third point of the two clusters."""
    for label, marker in ((0, "o"), (1, "s")):
        shown = X[y == label][::3]
        look = {"markersize": 2.5, "markerfacecolor": "white", "markeredgewidth": 0.5}
        axes.plot(*shown.T, marker, color="black", label=f"class {label}", **look)


def draw_lines(axes: Any, probability: np.ndarray) -> None:
    """Draw contours of the probability, labelled away from the points."""
    lines = axes.contour(PLANE, PLANE, probability, levels=LEVELS, colors="black", linewidths=0.9)
    diagonal = np.diag(probability[::-1])  # down to the right
    at = np.interp(LEVELS, diagonal, PLANE)
    axes.clabel(lines, fontsize=8, manual=[(4.3 + x, 4.3 - x) for x in at])


def draw_slopes(axes: Any, plain: np.ndarray, default: np.ndarray, density: np.ndarray) -> None:
    """Draw the draws of both over the exact density; where the printed chains begin is outside."""
    look = {"markersize": 2, "alpha": 0.5, "rasterized": True}
    axes.plot(*default.T, ".", color=RIGHT, label="default settings", **look)
    label = "as printed: 4 chains"
    for chain in plain:
        axes.plot(*chain.T, color=PRINTED, linewidth=0.5, label=label)
        label = None
    levels = [0.01, 0.1, 0.4, 0.8]
    axes.contour(SLOPES, -SLOPES, density.T, levels=levels, colors=EXACT, linewidths=1.2)
    axes.plot([], [], color=EXACT, label="exact density")
    axes.set(xlabel="slope of $x_1$ (log odds)", ylabel="slope of $x_2$ (log odds)")
    axes.set(xlim=(1.0, 4.2), ylim=(-4.5, -1.0))
    axes.legend(fontsize=8, frameon=False, loc="lower left")
    tidy(axes, "The posterior of the slopes")


def main(arguments: Sequence[str] | None = None) -> dict[str, Any]:
    """Run both, draw the figure and say what to see."""
    options = parse(__doc__, arguments)
    X, y = make_two_clusters(random_state=0)
    plain = run_plain(X, y, 1000 if options.quick else 5000)
    default = SGLDLogisticRegression(
        prior=Laplace(1.0),
        fit_intercept=False,
        n_draws=250 if options.quick else 1000,
        random_state=0,
    ).fit(X, y)
    density = exact_density(X, y)
    points = np.stack(np.meshgrid(PLANE, PLANE), axis=-1).reshape(-1, 2)
    shape = (len(PLANE), len(PLANE))
    thinned = plain.reshape(-1, 2)[::10]
    maps = {
        "As printed": expit(points @ thinned.T).mean(axis=1).reshape(shape),
        "Default settings": default.predict_proba(points)[:, 1].reshape(shape),
    }
    low, high = default.predict_proba_interval(points, coverage=0.9)[:, 1].T

    figure = new_figure(9.0, 7.6)
    panels = figure.subplots(2, 2)
    for axes, (name, probability) in zip(panels[0], maps.items(), strict=True):
        title, bar = f"{name}: probability of class 1", "probability"
        draw_map(axes, probability, title, "coolwarm", bar)
        draw_lines(axes, probability)
        draw_points(axes, X, y)
    panels[0, 0].legend(fontsize=8, loc="upper left", markerscale=2)
    title = "Default settings: how well the probability is known"
    draw_map(panels[1, 0], (high - low).reshape(shape), title, "Blues", "width of the 90 % band")
    draw_lines(panels[1, 0], maps["Default settings"])
    draw_slopes(panels[1, 1], plain, default.posterior_.flat, density)
    figure.suptitle("Two clusters: probabilities and the posterior behind them")
    save(figure, options.output, "two_clusters.png", panels[0, 0])

    weight = density.sum(axis=1) / density.sum()
    mean = weight @ SLOPES
    sd = np.sqrt(weight @ (SLOPES - mean) ** 2)
    found = {}
    for name, draws in (("printed run", plain), ("default settings", default.posterior_.values)):
        slope = draws[..., :1]
        ess = effective_sample_size(slope)[0]
        found[name] = f"{slope.mean():.3f} (sd {slope.std():.3f}, effective sample size {ess:,.0f})"
    right = [np.mean((X @ plain.mean(axis=(0, 1)) > 0) == y), np.mean(default.predict(X) == y)]
    say(
        f"The slope of x1 has the exact mean {mean:.3f} (sd {sd:.3f}). Mean over the draws of the "
        f"printed run: {found['printed run']}; default settings: {found['default settings']}. They "
        f"are right about {right[0]:.1%} and {right[1]:.1%} of the points."
    )
    slope = default.posterior_.values[..., :1]
    error = sd / np.sqrt(effective_sample_size(slope)[0])
    found: dict[str, Any] = {
        "exact mean": measured(mean, show=".3f"),
        "mean by default": measured(slope.mean(), error, "±.3f"),
        "right by default": share(right[1], len(y), ".1f %"),
    }
    if not options.quick:
        found["right as printed"] = share(right[0], len(y), ".1f %")
        found["worth as printed"] = draws_worth(plain[..., :1])
        found["draws as printed"] = measured(plain.shape[0] * plain.shape[1], show=",.0f")
    return found


if __name__ == "__main__":
    main()

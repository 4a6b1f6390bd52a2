"""Linear regression with a Laplace prior: a curve that looks right, and a posterior that is
=========================================================================================

Redraws Figure 1 of Xu's report: 250 points of y = 0.3 x + x^2 + 0.02 x^3, the prior
``exp(-|beta|_1)``, noise variance 1 in the model and none in the data, 5,000 steps with batches of
5, prediction from the last 100 draws. The report gives neither its start nor its step size; here
chains start at draws from the prior, and the step, at first 1e-6, is about half of the largest that
works. To see: the curve bends as it should, but in the direction that the data know least the
printed run hardly leaves its start, so that its chains do not converge; the default settings give
the exact posterior, and intervals that cover.

Usage: ``python examples/plot_cubic.py [--output DIR] [--quick]``; about 5 s.
"""

# sphinx_gallery_thumbnail_path = "figures/thumbnail_cubic.png"

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from _figure import EXACT, GREY, PRINTED, RIGHT, new_figure, parse, save, say, tidy
from _numbers import draws_worth, share
from _plain_sgld import plain_sgld
from scipy import stats

from skbayes_sgld import SGLDLinearRegression
from skbayes_sgld.datasets import make_cubic
from skbayes_sgld.diagnostics import effective_sample_size
from skbayes_sgld.likelihoods import FixedNormalNoise
from skbayes_sgld.posterior import GLMPosterior
from skbayes_sgld.priors import Laplace
from skbayes_sgld.sampling import Polynomial

MODEL: dict[str, Any] = {"prior": Laplace(1.0), "noise_variance": 1.0, "fit_intercept": False}
SCHEDULE = Polynomial(offset=50, power=0.6)
FIRST_STEP = 1e-6
TRUTH = {"x": 0.3, "x²": 1.0, "x³": 0.02}
COVERAGE = 0.95


def run_plain(X: np.ndarray, y: np.ndarray, n_steps: int) -> np.ndarray:
    """Draws ``(3, n_steps, 3)`` of the printed run, three times, from draws of the prior."""
    posterior = GLMPosterior(X, y, FixedNormalNoise(1.0), Laplace(1.0), fit_intercept=False)
    kernel = plain_sgld(posterior, 2.0 * FIRST_STEP / SCHEDULE(0), SCHEDULE, batch_size=5)
    start = np.random.default_rng(0).laplace(size=(3, 3))
    return kernel.run(start, n_steps).draws


def exact_posterior(X: np.ndarray, y: np.ndarray) -> list[Any]:
    """Normal distribution of each coefficient.

    Where no coefficient can change its sign the prior is exp(-s'beta), s the signs: the posterior
    is normal, with precision X'X and mean (X'X)^-1 (X'y - s).
    """
    covariance = np.linalg.inv(X.T @ X)
    signs = np.sign(list(TRUTH.values()))
    mean, sd = covariance @ (X.T @ y - signs), np.sqrt(np.diag(covariance))
    assert stats.norm.sf(np.min(signs * mean / sd)) < 1e-4
    return [stats.norm(*moments) for moments in zip(mean, sd, strict=True)]


def draw_curve(axes: Any, X: np.ndarray, y: np.ndarray, title: str) -> None:
    """Draw the data."""
    axes.plot(X[:, 0], y, ".", color=GREY, markersize=4, label="data")
    axes.set(xlabel="x", ylabel="y", title=title)
    axes.title.set_fontsize(10)
    tidy(axes)


def draw_trace(axes: Any, plain: np.ndarray, exact: Any, name: str) -> None:
    """Draw three plain chains by step, in exact sds from the exact mean."""
    steps = np.arange(1, plain.shape[1] + 1)
    for c, chain in enumerate((plain - exact.mean()) / exact.std()):
        label = "as printed: 3 chains by step" if c == 0 else None
        axes.plot(steps, chain, color=PRINTED, linewidth=0.8, label=label)
    axes.axhspan(-2, 2, color=EXACT, alpha=0.3, linewidth=0, label="exact mean ± 2 sd")
    axes.set_yscale("symlog", linthresh=3.0)
    axes.set_ylim(-3000, 3000)
    ticks = (-1000, -100, -10, 0, 10, 100, 1000)
    axes.set_yticks(ticks, [f"{tick:,}" for tick in ticks])
    axes.set(xlim=(0, steps[-1]), xlabel="step")
    tidy(axes, f"Coefficient of {name} (true: {TRUTH[name]:g})")


def draw_density(axes: Any, default: np.ndarray, exact: Any, name: str) -> None:
    """Draw the default's histogram on the exact density."""
    grid = np.linspace(*exact.ppf([1e-5, 1 - 1e-5]), 300)
    label = "default settings: histogram"
    axes.hist(default.ravel(), 40, density=True, color=RIGHT, alpha=0.5, label=label)
    axes.plot(grid, exact.pdf(grid), color=EXACT, linewidth=1.2, label="exact density")
    axes.set(xlabel=f"coefficient of {name}", yticks=[], xlim=(grid[0], grid[-1]))
    axes.locator_params(axis="x", nbins=5)
    tidy(axes)


def main(arguments: Sequence[str] | None = None) -> dict[str, Any]:
    """Run both, draw the figure and say what to see."""
    options = parse(__doc__, arguments)
    n_steps = 1000 if options.quick else 5000
    X, y = make_cubic(noise=0.0, random_state=0)  # as printed
    X_noisy, y_noisy = make_cubic(random_state=0)  # as the model says
    printed, plain = run_plain(X, y, n_steps), run_plain(X_noisy, y_noisy, n_steps)
    default = SGLDLinearRegression(**MODEL, random_state=0).fit(X_noisy, y_noisy)
    exact = exact_posterior(X_noisy, y_noisy)

    figure = new_figure(10.0, 8.4)
    panels = figure.subplot_mosaic("LLLRRR;AABBCC;DDEEFF", height_ratios=(1.3, 1.0, 0.8))
    line = np.linspace(-5, 5, 200)[:, None] ** np.array([1, 2, 3])
    draw_curve(panels["L"], X, y, "As printed: data without noise")
    for c, last in enumerate(printed[:, -100:].mean(axis=1)):
        label = "means of the last 100 draws, 3 chains" if c == 0 else None
        panels["L"].plot(line[:, 0], line @ last, color=PRINTED, label=label)
    draw_curve(panels["R"], X_noisy, y_noisy, "Default settings: the noise that the model assumes")
    low, high = default.predict_interval(line, coverage=COVERAGE).T
    band = f"{100 * COVERAGE:g} % predictive interval"
    panels["R"].fill_between(line[:, 0], low, high, color=RIGHT, alpha=0.25, label=band)
    panels["R"].plot(line[:, 0], default.predict(line), color=RIGHT, label="prediction")
    for axes in (panels["L"], panels["R"]):
        axes.legend(fontsize=9, frameon=False)
    for j, name in enumerate(TRUTH):
        draw_trace(panels["ABC"[j]], plain[..., j], exact[j], name)
        draw_density(panels["DEF"[j]], default.posterior_.values[..., j], exact[j], name)
    panels["A"].set_ylabel("exact sds from the exact mean")
    panels["D"].set_ylabel("density")
    shown = [panels[key].get_legend_handles_labels() for key in "AD"]
    handles, labels = (sum(parts, []) for parts in zip(*shown, strict=True))
    figure.legend(handles, labels, loc="outside lower center", ncols=4, fontsize=9, frameon=False)
    figure.suptitle("A cubic with a Laplace prior: predictions (top) and posteriors (below)")
    save(figure, options.output, "cubic.png", panels["R"])

    X_new, y_new = make_cubic(20_000, random_state=1)
    low, high = default.predict_interval(X_new, coverage=COVERAGE).T
    covered = np.mean((low < y_new) & (y_new < high))
    ess = [effective_sample_size(draws).min() for draws in (plain, default.posterior_.values)]
    means = default.posterior_.values.mean((0, 1))
    shift = max(abs(m - one.mean()) / one.std() for m, one in zip(means, exact, strict=True))
    say(
        f"Of {3 * n_steps:,} draws the printed run has an effective sample size of {ess[0]:.0f}, "
        f"of 4,000 the default settings have {ess[1]:,.0f}. Their means are within {shift:.2f} sd "
        f"of the exact ones, and their {100 * COVERAGE:g} % intervals hold {100 * covered:.1f} % "
        "of new points."
    )
    found = {
        "covered": share(covered, len(y_new), ".1f %"),
        "worth by default": draws_worth(default.posterior_.values),
    }
    return found if options.quick else found | {"worth as printed": draws_worth(plain)}


if __name__ == "__main__":
    main()

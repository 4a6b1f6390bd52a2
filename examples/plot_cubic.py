"""Linear regression with a Laplace prior: a curve that looks right, and a posterior that is.

Redraws Figure 1 of Xu's report: 250 points of y = 0.3 x + x^2 + 0.02 x^3, the prior exp(-|beta|_1),
noise variance 1 in the model and none in the data, 5,000 steps with batches of 5, prediction from
the last 100 draws. The report does not give its step size; this one, at first 1e-6, is about half
of the largest that works. To see: the curve is the same, but chains of the printed run do not
agree on the coefficients; the default settings give the exact posterior, and intervals that cover.

Usage: ``python examples/plot_cubic.py [--output DIR] [--quick]``; about 5 s.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from _figure import EXACT, GREY, PRINTED, RIGHT, new_figure, parse, save, say, tidy, unconverged
from _plain_sgld import PLAIN
from scipy import stats

from skbayes_sgld import SGLDLinearRegression
from skbayes_sgld.datasets import make_cubic
from skbayes_sgld.posterior import Laplace
from skbayes_sgld.sampling import Polynomial

MODEL: dict[str, Any] = {"prior": Laplace(1.0), "noise_variance": 1.0, "fit_intercept": False}
SCHEDULE = Polynomial(offset=50, power=0.6)
FIRST_STEP = 1e-6
TRUTH = {"x": 0.3, "x²": 1.0, "x³": 0.02}
COVERAGE = 0.95


def fit_plain(X: np.ndarray, y: np.ndarray, n_steps: int) -> SGLDLinearRegression:
    """Return the printed run, three times."""
    settings = {**PLAIN, "batch_size": 5, "schedule": SCHEDULE, "n_chains": 3}
    model = SGLDLinearRegression(
        **MODEL, **settings, step_size=FIRST_STEP / SCHEDULE(0), n_draws=n_steps, random_state=0
    )
    with unconverged():
        return model.fit(X, y)


def exact_posterior(X: np.ndarray, y: np.ndarray) -> list[Any]:
    """Return each coefficient's normal law.

    Where no coefficient can change its sign the prior is exp(-s'beta), s the signs: the posterior
    is normal, with precision X'X and mean (X'X)^-1 (X'y - s).
    """
    covariance = np.linalg.inv(X.T @ X)
    signs = np.sign(list(TRUTH.values()))
    mean, sd = covariance @ (X.T @ y - signs), np.sqrt(np.diag(covariance))
    assert stats.norm.sf(np.min(signs * mean / sd)) < 1e-4
    return [stats.norm(*law) for law in zip(mean, sd, strict=True)]


def draw_curve(axes: Any, X: np.ndarray, y: np.ndarray, title: str) -> None:
    """Draw the data."""
    axes.plot(X[:, 0], y, ".", color=GREY, markersize=4, label="data")
    axes.set(xlabel="x", ylabel="y", title=title)
    axes.title.set_fontsize(10)
    tidy(axes)


def draw_coefficient(
    axes: Any, plain: np.ndarray, default: np.ndarray, exact: Any, name: str
) -> None:
    """Draw the histograms of each plain chain and of the default settings on the exact density."""
    grid = np.linspace(*exact.ppf([1e-7, 1 - 1e-7]), 300)
    bins = grid[::6]
    axes.hist(default.ravel(), bins, density=True, color=RIGHT, alpha=0.5, label="default")
    for c, chain in enumerate(plain):
        label = "as printed, by chain" if c == 0 else None
        axes.hist(chain, bins, density=True, histtype="step", color=PRINTED, label=label)
    axes.plot(grid, exact.pdf(grid), color=EXACT, label="exact")
    axes.set(xlabel=f"coefficient of {name} (true: {TRUTH[name]:g})", ylabel="density")
    tidy(axes)


def main(arguments: Sequence[str] | None = None) -> None:
    """Fit both, draw the figure and say what to see."""
    options = parse(__doc__, arguments)
    n_steps = 1000 if options.quick else 5000
    X, y = make_cubic(noise=0.0, random_state=0)  # as printed
    X_noisy, y_noisy = make_cubic(random_state=0)  # as the model says
    printed, plain = fit_plain(X, y, n_steps), fit_plain(X_noisy, y_noisy, n_steps)
    default = SGLDLinearRegression(**MODEL, random_state=0).fit(X_noisy, y_noisy)
    exact = exact_posterior(X_noisy, y_noisy)

    figure = new_figure(11.0, 7.2)
    panels = figure.subplot_mosaic("LLLRRR;AABBCC")
    line = np.linspace(-5, 5, 200)[:, None] ** np.array([1, 2, 3])
    draw_curve(panels["L"], X, y, "As printed: mean of the last 100 draws, no noise in the data")
    last = printed.posterior_.values[0, -100:].mean(axis=0)
    panels["L"].plot(line[:, 0], line @ last, color=PRINTED, label="prediction")
    draw_curve(panels["R"], X_noisy, y_noisy, "Default settings: the noise that the model assumes")
    low, high = default.predict_interval(line, coverage=COVERAGE).T
    panels["R"].fill_between(
        line[:, 0],
        low,
        high,
        color=RIGHT,
        alpha=0.25,
        label=f"{100 * COVERAGE:g} % predictive interval",
    )
    panels["R"].plot(line[:, 0], default.predict(line), color=RIGHT, label="prediction")
    for axes in (panels["L"], panels["R"]):
        axes.legend(fontsize=8, frameon=False)
    for j, name in enumerate(TRUTH):
        draws = plain.posterior_.values[..., j], default.posterior_.values[..., j]
        draw_coefficient(panels["ABC"[j]], *draws, exact[j], name)
    panels["A"].legend(fontsize=8, frameon=False, loc="upper left")
    figure.suptitle("A cubic with a Laplace prior: predictions (top) and posteriors (bottom)")
    save(figure, options.output, "cubic.png")

    X_new, y_new = make_cubic(20_000, random_state=1)
    low, high = default.predict_interval(X_new, coverage=COVERAGE).T
    covered = np.mean((low < y_new) & (y_new < high))
    ess = [model.summary()["ess_bulk"].min() for model in (plain, default)]
    means = default.posterior_.values.mean((0, 1))
    shift = max(abs(m - law.mean()) / law.std() for m, law in zip(means, exact, strict=True))
    say(
        f"Of {3 * n_steps:,} draws the printed run has an effective sample size of {ess[0]:.0f}, "
        f"of 4,000 the default settings have {ess[1]:,.0f}. Their means are within {shift:.2f} sd "
        f"of the exact ones, and their {100 * COVERAGE:g} % intervals hold {100 * covered:.1f} % "
        "of new points."
    )


if __name__ == "__main__":
    main()

"""Metropolis acceptance along a run with decaying steps: may the test be left out?
================================================================================

Redraws Figure 3 of Chen's report, on the runs of ``plot_decaying_step.py``. Welling & Teh leave the
Metropolis test out because acceptance goes to 1 as the step decays; the figure confirms it with a
ratio in which the batch stands for the posterior. To see: with all rows in gradient and density it
is near 1 indeed; with the gradient of a batch, which is what SGLD does, it is far from it even at
the last and smallest steps.

Usage: ``python examples/plot_acceptance.py [--output DIR] [--quick]``; about 5 s.
"""

# sphinx_gallery_thumbnail_path = "figures/thumbnail_acceptance.png"

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from _figure import GREEN, PRINTED, RIGHT, new_figure, parse, save, say, tidy
from _numbers import measured
from _plain_sgld import PLAIN
from plot_decaying_step import (
    BATCH_SIZE,
    EPSILON,
    PRINTED_VARIANCE,
    SCHEDULE,
    PrintedNoise,
    run,
)
from scipy.special import logsumexp

from skbayes_sgld.datasets import make_tied_means_mixture
from skbayes_sgld.own_models import TiedGaussianMixture


class Acceptance:
    """The Metropolis-Hastings ratio of a step, with gradient and density from chosen rows.

    Every point of a path is a chain of its own here, and makes one step anew.
    """

    def __init__(self, posterior: TiedGaussianMixture, path: np.ndarray, epsilon: np.ndarray):
        rng = np.random.default_rng(0)
        self.posterior, self.path, self.epsilon = posterior, path, epsilon[:, None]
        self.normals = rng.standard_normal(path.shape)
        self.batch = rng.integers(posterior.n_samples, size=(len(path), BATCH_SIZE))

    def _gradient(self, theta: np.ndarray, batch: np.ndarray | None) -> np.ndarray:
        scale = 1.0 if batch is None else self.posterior.n_samples / BATCH_SIZE
        likelihood = self.posterior.grad_log_likelihood(theta, batch)
        return scale * likelihood + self.posterior.grad_log_prior(theta)

    def _density(self, theta: np.ndarray, batch: np.ndarray | None) -> np.ndarray:
        scale = 1.0 if batch is None else self.posterior.n_samples / BATCH_SIZE
        likelihood = self.posterior.log_likelihood(theta, batch).sum(axis=1)
        return scale * likelihood + self.posterior.log_prior(theta)

    def log_ratio(self, gradient: Any, density: Any, variance: Any = None) -> np.ndarray:
        """Log of pi(new) q(old | new) / (pi(old) q(new | old)); rows None are all."""
        noise = self.epsilon if variance is None else variance
        drift = 0.5 * self.epsilon * self._gradient(self.path, gradient)
        new = self.path + drift + np.sqrt(noise) * self.normals
        back = self.path - new - 0.5 * self.epsilon * self._gradient(new, gradient)
        forth = new - self.path - drift
        kernels = (np.square(forth) - np.square(back)).sum(axis=1) / (2.0 * self.epsilon[:, 0])
        return self._density(new, density) - self._density(self.path, density) + kernels


def averages(values: np.ndarray, n: int = 30) -> np.ndarray:
    """Means of ``n`` consecutive parts."""
    return np.array([part.mean() for part in np.array_split(values, n)])


def draw_acceptance(figure: Any, posterior: Any, printed: Any, algorithm: Any) -> dict[str, float]:
    """Draw acceptance against the step size; return it at the last steps."""
    left, right = figure.subplots(1, 2, sharex=True)
    steps = np.unique(np.geomspace(1, len(algorithm) - 1, 3000).astype(int))
    epsilon = EPSILON * SCHEDULE(steps)
    ratio = Acceptance(posterior, printed[steps - 1], epsilon)
    log_ratio = ratio.log_ratio(ratio.batch, ratio.batch, PRINTED_VARIANCE)
    parts = np.array_split(log_ratio, 300)  # ten steps a point, as the report
    inverse = [np.exp(np.log(len(part)) - logsumexp(part)) for part in parts]
    left.plot(averages(epsilon, 300), inverse, "o-", color=PRINTED, markersize=3, linewidth=0.6)
    left.set(title="As printed: 1 / mean of the batch's ratio", ylabel="'Acc' of the report")
    step = Acceptance(posterior, algorithm[steps - 1], epsilon)
    kinds = {"all rows": None, f"batches of {BATCH_SIZE}": step.batch}
    last = {}
    for (name, rows), color in zip(kinds.items(), (RIGHT, GREEN), strict=True):
        accepted = averages(np.exp(np.minimum(step.log_ratio(rows, None), 0.0)))
        right.plot(
            averages(epsilon),
            accepted,
            "o-",
            color=color,
            markersize=4,
            label=f"gradient from {name}",
        )
        last[name] = accepted[-1]
    right.set(
        title="Mean of min(1, ratio), density from all rows",
        ylabel="acceptance probability",
        ylim=(0, 1.05),
    )
    right.legend(fontsize=9, frameon=False)
    for axes in (left, right):
        axes.set(xlabel=r"step size $\epsilon_t$", xscale="log", xlim=(0.012, 9e-5))
        axes.title.set_fontsize(10)
        tidy(axes)
    return last


def main(arguments: Sequence[str] | None = None) -> dict[str, Any]:
    """Make both runs, draw the figure and say what to see."""
    options = parse(__doc__, arguments)
    n_steps = 30_000
    posterior = TiedGaussianMixture(make_tied_means_mixture(1000, random_state=1)[0])
    algorithm = run(posterior, PLAIN["sampler"], n_steps)
    # no number is of the run as printed
    printed = algorithm if options.quick else run(posterior, PrintedNoise("euler"), n_steps)

    figure = new_figure(10.0, 4.2)
    figure.suptitle("Acceptance of the steps of two runs by step size, which decays to the right")
    last = draw_acceptance(figure, posterior, printed, algorithm)
    save(figure, options.output, "acceptance.png", figure.axes[0])
    rates = " and ".join(f"{rate:.2f} with {name}" for name, rate in last.items())
    say(f"At the last of {n_steps:,} steps the acceptance is {rates}.")
    # of 3,000 probabilities in 30 parts, which differ by less than 0.3
    found = {name: measured(rate, 0.3 / np.sqrt(100)) for name, rate in last.items()}
    return found


if __name__ == "__main__":
    main()

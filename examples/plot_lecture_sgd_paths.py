"""The lecture's Figure 4.1: paths of SGD against the exact optimum, for three batch sizes
=======================================================================================

The data, the model, the start and the step size are those of Karagiannis, Handout 6, Section 4,
and of its code; w = (intercept, slope, log noise variance). The handout says that "SGD trace
converges to the exact MLE. The oscillations are due to the stochastic gradient". To see:

1. as printed, with a constant step size, no path converges: it goes on oscillating about the
   optimum at a distance that the batch size decides, 19, 6 and 2 posterior sds of the slope for
   batches of 10, 100 and 1,000 rows, however long it runs;
2. as it should be, with a step size that decays as Condition 27 of the handout demands, every path
   converges, and the mean of its second half (Polyak & Juditsky 1992) is nearer still: 1.4, 0.4
   and 0.13 sds from the optimum after 1,000 steps;
3. where it converges to is the posterior's mode, not the MLE: here they are 0.05 sds apart.

Usage: ``python examples/plot_lecture_sgd_paths.py [--output DIR] [--quick]``. It prints a table,
takes about 15 s and writes its figure to DIR (``docs/figures``).
"""

# sphinx_gallery_thumbnail_path = "figures/thumbnail_lecture_sgd_paths.png"

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from _figure import EXACT, PRINTED, RIGHT, new_figure, parse, save, say, tidy
from _numbers import measured
from _plain_sgld import plain_sgld

from skbayes_sgld.datasets import make_correlated_pair
from skbayes_sgld.likelihoods import NormalNoise
from skbayes_sgld.optimizers import SGD
from skbayes_sgld.posterior import GLMPosterior
from skbayes_sgld.priors import ConjugateNormal, InverseGamma
from skbayes_sgld.sampling import Constant, Polynomial, Schedule

PRIOR_SCALE, PHI, PSI = 10.0, 1.0, 1.0  # V = 100 I and IG(1, 1)
START = (1.1, -2.0, 0.0)  # of the handout's code
STEP_SIZE, N_STEPS = 1e-5, 1000  # of the handout's code
N_PATHS = {10: 48, 100: 48, 1000: 24}  # by batch size, for the table; one of them is drawn
SLOPE = 1
PANELS = {"slope": SLOPE, "intercept": 0, "noise variance": 2}
SHOWN = 2.2  # height of a panel, in largest distances of the printed paths' second halves
DELAY = 100  # steps before the decay sets in
SCHEDULES: dict[str, tuple[Schedule, float]] = {
    "as printed": (Constant(), STEP_SIZE),
    "as it should be": (Polynomial(offset=DELAY - 1, power=1), STEP_SIZE * DELAY),
}
RULES = {
    "as printed": r"as printed: $\eta_t = 10^{-5}$",
    "as it should be": rf"as it should be: $\eta_t = 10^{{-5}} \cdot {DELAY} / ({DELAY - 1} + t)$",
}
COLORS = {"as printed": PRINTED, "as it should be": RIGHT}


class Lecture:
    """The lecture's posterior, its mode and its standard deviations there, in closed form.

    For sigma = 1 the precision of beta is A = X'X + I / 100. The log posterior is
    -(phi + (n + d) / 2) gamma - exp(-gamma) (psi + total / 2), with total the residual sum of
    squares and the prior's beta'beta / 100; its cross terms vanish at the mode.
    """

    def __init__(self) -> None:
        x, y = make_correlated_pair(random_state=0)
        X = np.column_stack([np.ones(len(y)), x])
        n, d = X.shape
        prior, noise = ConjugateNormal(PRIOR_SCALE), InverseGamma(PHI, PSI)
        self.posterior = GLMPosterior(X, y, NormalNoise(), prior, noise, fit_intercept=False)
        A = X.T @ X + np.eye(d) / PRIOR_SCALE**2
        beta = np.linalg.solve(A, X.T @ y)
        total = np.sum((y - X @ beta) ** 2) + beta @ beta / PRIOR_SCALE**2 + 2.0 * PSI
        variance = total / (n + d + 2.0 * PHI)
        self.mode = np.r_[beta, np.log(variance)]
        self.sd = np.sqrt(np.r_[variance * np.diag(np.linalg.inv(A)), 2.0 * variance / total])
        mle, rss, *_ = np.linalg.lstsq(X, y)
        self.mle = np.r_[mle, np.log(rss[0] / n)]

    def climb(self, rule: str, batch_size: int, n_paths: int) -> np.ndarray:
        """Paths of Algorithm 14, ``(n_paths, 1 + N_STEPS, 3)``."""
        schedule, step_size = SCHEDULES[rule]
        kernel = plain_sgld(self.posterior, 2.0 * step_size, schedule, batch_size, SGD())
        start = np.tile(START, (n_paths, 1))
        draws = kernel.run(start, N_STEPS).draws
        return np.concatenate([start[:, None], draws], axis=1)

    def distance(self, points: np.ndarray) -> np.ndarray:
        """Distance of the slope from the mode, in posterior sds."""
        return (points[..., SLOPE] - self.mode[SLOPE]) / self.sd[SLOPE]

    def predict(self, rule: str, batch_size: int, weights: np.ndarray) -> float:
        """Distance that a weighted mean of the steps must have, in posterior sds.

        Near the mode, in posterior sds, the error of the slope is multiplied by 1 - a at every
        step, a = eta / sd^2, and gains a times the noise of a batch, whose variance is n / m - 1:
        it is without replacement.
        """
        schedule, step_size = SCHEDULES[rule]
        rates = step_size * schedule(np.arange(N_STEPS)) / self.sd[SLOPE] ** 2
        effect, variance = 0.0, 0.0  # of what enters at a step on the mean, the last step first
        for rate, weight in zip(rates[::-1], weights[::-1], strict=True):
            effect += weight
            variance += (effect * rate) ** 2
            effect *= 1.0 - rate
        return float(np.sqrt(variance * (self.posterior.n_samples / batch_size - 1.0)))


def tell(lecture: Lecture, paths: dict[tuple[str, int], np.ndarray]) -> dict[str, Any]:
    """Print how far from the mode the paths end."""
    counts = ", ".join(str(len(paths["as printed", m])) for m in N_PATHS)
    say(
        "Distance of the slope from the mode after 1,000 steps, root mean square over "
        f"{counts} paths, in posterior sds, +- its standard error; in brackets what it must be "
        "near the mode."
    )
    last, half = np.zeros(N_STEPS), np.zeros(N_STEPS)
    last[-1], half[N_STEPS // 2 :] = 1.0, 2.0 / N_STEPS
    columns = {
        "constant: last": ("as printed", last),
        "decaying: last": ("as it should be", last),
        "decaying: mean of 2nd half": ("as it should be", half),
    }
    print("  ".join(f"{cell:>26}" for cell in ("batch size", *columns)))
    found: dict[str, Any] = {}
    for m in N_PATHS:
        cells = [f"{m:,}"]
        found[f"{m:,}"] = {}
        for label, (rule, weights) in columns.items():
            away = lecture.distance(np.einsum("t,ctp->cp", weights, paths[rule, m][:, 1:]))
            size = np.sqrt(np.mean(np.square(away)))
            exact = lecture.predict(rule, m, weights)
            found[f"{m:,}"][label] = {
                "away": measured(size, size / np.sqrt(2 * len(away)), ".0f"),
                "expected": measured(exact),
            }
            cells.append(f"{size:.2f} +- {size / np.sqrt(2 * len(away)):.2f} ({exact:.2f})")
        print("  ".join(f"{cell:>26}" for cell in cells))
    print()
    say(
        "To see: with a constant step size no path converges, it goes on oscillating about the "
        "mode at a distance that its batch size decides; with a decaying one every path "
        "converges, and the mean of its second half is nearer still."
    )
    apart = (lecture.mode - lecture.mle) / lecture.sd
    say(
        f"The mode is not the MLE: the slopes are {abs(apart[SLOPE]):.4f} posterior sds apart, "
        f"the log noise variances {abs(apart[-1]):.2f}."
    )
    return found


def shown(points: np.ndarray, index: int) -> np.ndarray:
    """Slope, intercept or noise variance, which the paths have as its logarithm."""
    return np.exp(points[..., index]) if index == len(START) - 1 else points[..., index]


def draw(lecture: Lecture, paths: dict[tuple[str, int], np.ndarray], output: Path) -> None:
    """Draw a row a parameter and a column a batch size, both step sizes in each panel."""
    figure = new_figure(9.6, 6.6)
    panels = figure.subplots(len(PANELS), len(N_PATHS), sharex=True, sharey="row")
    steps, half = np.arange(1 + N_STEPS), N_STEPS // 2
    for row, (name, index) in zip(panels, PANELS.items(), strict=True):
        mode, away = shown(lecture.mode, index), 0.0
        for axes, m in zip(row, N_PATHS, strict=True):
            for rule, color in COLORS.items():
                path = shown(paths[rule, m][0], index)
                axes.plot(steps, path, color=color, linewidth=0.7, label=RULES[rule])
                away = max(away, np.abs(path[half:] - mode).max())
            axes.axhline(mode, color=EXACT, linewidth=1.0, label="the posterior's mode")
            tidy(axes)
        row[0].set(ylabel=name, ylim=(mode - SHOWN * away / 2.0, mode + SHOWN * away / 2.0))
    for axes, m in zip(panels[0], N_PATHS, strict=True):
        axes.set_title(f"batches of m = {m:,}", fontsize=10)
    for axes in panels[-1]:
        axes.set_xlabel("step t")
    handles, labels = panels[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False)
    figure.suptitle("SGD on the lecture's posterior: one path of each kind, on one scale a row")
    save(figure, output, "lecture_sgd_paths.png", panels[0, 0])


def main(arguments: Sequence[str] | None = None) -> dict[str, Any]:
    """Run the paths, print the table, draw the figure."""
    options = parse(__doc__, arguments)
    lecture = Lecture()
    paths = {
        (rule, m): lecture.climb(rule, m, 2 if options.quick else n_paths)
        for rule in SCHEDULES
        for m, n_paths in N_PATHS.items()
    }
    found = tell(lecture, paths)
    draw(lecture, paths, options.output)
    return found


if __name__ == "__main__":
    main()

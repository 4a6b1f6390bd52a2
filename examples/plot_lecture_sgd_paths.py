"""The lecture's Figure 4.1: paths of SGD against the exact optimum, for three batch sizes
=======================================================================================

The data, the model, the start and the step size are those of Karagiannis, Handout 6, Section 4,
and of its code; w = (intercept, slope, log noise variance). The handout says that "SGD trace
converges to the exact MLE. The oscillations are due to the stochastic gradient". To see:

1. as printed, with a constant step size, no path converges: it goes on oscillating about the
   optimum at a distance that the batch size decides, 19, 6 and 2 posterior sds for batches of 10,
   100 and 1,000 rows, however long it runs;
2. as it should be, with a step size that decays as Condition 27 of the handout demands, every path
   converges, and the mean of its second half (Polyak & Juditsky 1992) is nearer still: 1.4, 0.4
   and 0.13 sds from the optimum after 1,000 steps;
3. where it converges to is the posterior's mode, not the MLE: here they are 0.05 sds apart.

Usage: ``python examples/plot_lecture_sgd_paths.py [--output DIR] [--quick]``. It prints a table,
takes about 15 s and writes its figure to DIR (``docs/figures``).
"""

# sphinx_gallery_thumbnail_path = "figures/lecture_sgd_paths.png"

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from _figure import BLUE, GREEN, ORANGE, RED, new_figure, parse, save, say
from _numbers import measured
from _plain_sgld import plain_sgld

from skbayes_sgld.datasets import make_correlated_pair
from skbayes_sgld.posterior import ConjugateNormal, Gaussian, GLMPosterior, InverseGamma
from skbayes_sgld.sampling import SGD, Constant, Polynomial, Schedule

PRIOR_SCALE, PHI, PSI = 10.0, 1.0, 1.0  # V = 100 I and IG(1, 1)
START = (1.1, -2.0, 0.0)  # of the handout's code
STEP_SIZE, N_STEPS = 1e-5, 1000  # of the handout's code
N_PATHS = {10: 48, 100: 48, 1000: 24}  # by batch size, for the table; one of them is drawn
SLOPE = 1
DELAY = 50  # steps before the decay sets in
SCHEDULES: dict[str, tuple[Schedule, float]] = {
    "as printed": (Constant(), STEP_SIZE),
    "as it should be": (Polynomial(offset=DELAY - 1, power=1), STEP_SIZE * DELAY),
}
RULES = {
    "as printed": r"as printed: $\eta_t = 10^{-5}$",
    "as it should be": rf"as it should be: $\eta_t = 10^{{-5}} \cdot {DELAY} / ({DELAY - 1} + t)$",
}
COLORS = dict(zip(N_PATHS, (ORANGE, BLUE, GREEN), strict=True))


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
        self.posterior = GLMPosterior(X, y, Gaussian(), prior, noise, fit_intercept=False)
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


def draw(lecture: Lecture, paths: dict[tuple[str, int], np.ndarray], output: Path) -> None:
    """Draw the slope of one path of every batch size, under both step sizes."""
    figure = new_figure(11.0, 6.4)
    panels = figure.subplots(2, len(N_PATHS), sharex=True, sharey="col")
    mode, sd, half = lecture.mode[SLOPE], lecture.sd[SLOPE], N_STEPS // 2
    steps, ever = np.arange(1 + N_STEPS), np.eye(N_STEPS)[-1]
    for row, rule in zip(panels, SCHEDULES, strict=True):
        for axes, m in zip(row, N_PATHS, strict=True):
            slope = paths[rule, m][0, :, SLOPE]
            axes.plot(steps, slope, color=COLORS[m], linewidth=0.7, label=f"one path, m = {m:,}")
            axes.axhspan(mode - sd, mode + sd, color=RED, alpha=0.25, linewidth=0)
            axes.axhline(mode, color=RED, linewidth=1.0, label="exact mode ± 1 posterior sd")
            if rule != "as printed":
                mean = np.cumsum(slope[1 + half :]) / np.arange(1, half + 1)
                label = f"mean of the steps since {half}"
                axes.plot(steps[1 + half :], mean, color="black", linewidth=1.5, label=label)
            reach = 4.0 * sd * lecture.predict("as printed", m, ever)
            axes.set_ylim(mode - reach, mode + reach)
            axes.locator_params(axis="y", nbins=5)
            axes.spines[["top", "right"]].set_visible(False)
        row[0].set_ylabel(f"{RULES[rule]}\n\nslope (y per x)")
    for top, bottom, m in zip(*panels, N_PATHS, strict=True):
        top.set_title(f"batch size m = {m:,}", fontsize=10)
        bottom.set_xlabel("step t")
    found = [
        pair for axes in panels[1] for pair in zip(*axes.get_legend_handles_labels(), strict=True)
    ]
    names = {label: handle for handle, label in found}
    settings: dict[str, Any] = {"ncols": len(names), "fontsize": 9, "frameon": False}
    figure.legend(names.values(), names, loc="outside lower center", **settings)
    figure.suptitle(
        "SGD on the lecture's posterior: the slope on its way from -2 (out of view) to the mode;\n"
        "each batch size has its own scale"
    )
    save(figure, output, "lecture_sgd_paths.png")


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

"""Three claims of the lecture, each beside the exact density: temperature, weights, batch size
============================================================================================

The data, the model and its posterior in closed form are those of Karagiannis, Handout 6,
Section 4; ``docs/lecture_claims.md`` is the page to this script. To see:

1. temperature: the default settings sample the tempered density for every tau, and on a Gaussian
   posterior all standard deviations grow by sqrt(tau); the lecture's own run hardly notices tau;
2. weights: averages weighted by the step size have the smaller standard error, by a factor that
   the schedule alone decides, and which is nearly 1 once the first half of the run is thrown away;
3. batch size: with the lecture's step size no batch gives the posterior, not even all rows.

The histograms behind the first and the third are those of ``plot_lecture_histograms.py``.

Usage: ``python examples/plot_lecture_claims.py [--output DIR] [--quick]``. It prints tables, takes
about 20 s and writes its figures to DIR (``docs/figures``).
"""

# sphinx_gallery_thumbnail_path = "figures/lecture_temperature_sd.png"

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from textwrap import fill

import numpy as np
import pandas as pd
from _figure import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    RED,
    new_figure,
    parse,
    save,
    say,
    show,
    tidy,
    with_error,
)
from _lecture import INTERCEPT, NOISE, PLAIN_STEP, PLAIN_STEPS, SLOPE, Exact, Lecture
from _lecture_averages import averages

from skbayes_sgld import SGLDLinearRegression
from skbayes_sgld.datasets import make_correlated_pair
from skbayes_sgld.diagnostics import effective_sample_size

NOISE_VARIANCE = 0.19  # of the data, for the model that knows it
TAUS = (0.01, 0.1, 1.0, 2.0, 10.0)  # those of the handout's code
FEW_ROWS, FEW_TAUS = 20, (0.1, 1.0, 2.0)
BATCH_SIZES = (10, 100, 1000)


def width(model: SGLDLinearRegression, name: str) -> tuple[float, float]:
    """Sd of a parameter's draws and its Monte Carlo standard error."""
    draws = model.posterior_[name]
    squares = (draws - draws.mean()) ** 2
    ess = effective_sample_size(squares[:, :, None], "mean")[0]
    sd = np.sqrt(squares.mean())
    return float(sd), float(0.5 * squares.std() / np.sqrt(ess) / sd)


def predict_width(lecture: Lecture, name: str, batch_size: int | None, tau: float = 1.0) -> float:
    """Sd that plain SGLD must have, over the exact one at tau = 1.

    On a normal posterior of precision lambda and n rows whose gradients have variance lambda / n
    each, a batch of m adds eta^2 n lambda / m to the 2 eta tau of a step, and the Euler step
    divides the variance by 1 - eta lambda / 2.
    """
    exact = lecture.exact
    unit = exact.mean[NOISE] if name == NOISE else 1.0  # what moves is the log of the noise
    step = PLAIN_STEP * (unit / exact.sd[name]) ** 2
    alpha = 0.0 if batch_size is None else 0.5 * step * len(lecture.y) / batch_size
    return float(np.sqrt((tau + alpha) / (1.0 - 0.5 * step)))


# ---- 1. temperature -----------------------------------------------------------------------------


def temperature(lecture: Lecture, output: Path) -> None:
    """Compare the tempered draws with the tempered density."""
    known, inferred, plain, truth = {}, {}, {}, {}
    for seed, tau in enumerate(TAUS):  # independent fits, so that nothing scales by construction
        settings = {"temperature": tau, "random_state": seed}
        known[tau] = lecture.fit("default", noise_variance=NOISE_VARIANCE, **settings)
        inferred[tau] = lecture.fit("default", **settings)
        plain[tau] = lecture.fit_plain(100, **settings)
        truth[tau] = Exact(lecture.X, lecture.y, tau)
    say("sd at tau over sd at 1. The noise known (a Gaussian posterior, so sqrt(tau)), default:")
    columns = {"sqrt(tau)": [f"{np.sqrt(tau):.3f}" for tau in TAUS]}
    columns |= {name: ratios(known, name) for name in (SLOPE, INTERCEPT)}
    show(pd.DataFrame(columns, index=labels(TAUS)))
    say("The noise inferred, default settings:")
    columns = {}
    for name in (SLOPE, NOISE):
        columns[f"{name}: exact"] = exact_ratios(truth, name)
        columns[f"{name}: draws"] = ratios(inferred, name)
    show(pd.DataFrame(columns, index=labels(TAUS)))
    say(f"The lecture's own run, plain SGLD with m = 100 and eta = {PLAIN_STEP:g}:")
    must = [predict_width(lecture, SLOPE, 100, tau) for tau in TAUS]
    columns = {
        f"{SLOPE}: exact": exact_ratios(truth, SLOPE),
        "predicted": [f"{value / must[TAUS.index(1.0)]:.3f}" for value in must],
        "draws": ratios(plain, SLOPE),
    }
    show(pd.DataFrame(columns, index=labels(TAUS)))
    few_rows(lecture)
    draw_scaling(lecture, known, inferred, plain, output)


def labels(taus: Sequence[float]) -> list[str]:
    """Names of a table's rows."""
    return [f"tau {tau:g}" for tau in taus]


def ratios(models: dict[float, SGLDLinearRegression], name: str) -> list[str]:
    """A parameter's sd at every temperature over that at 1, from independent fits."""
    (base, base_error), cells = width(models[1.0], name), []
    for tau, model in models.items():
        sd, error = width(model, name)
        relative = np.hypot(error / sd, base_error / base)
        cells.append("1" if tau == 1.0 else with_error(sd / base, sd / base * relative))
    return cells


def exact_ratios(truth: dict[float, Exact], name: str) -> list[str]:
    """A parameter's exact sd at every temperature over that at 1."""
    return [f"{exact.sd[name] / truth[1.0].sd[name]:.3f}" for exact in truth.values()]


def few_rows(lecture: Lecture) -> None:
    """Show that the tempered density, not sqrt(tau), is what is sampled."""
    rows = slice(FEW_ROWS)
    X, y = lecture.X[rows], lecture.y[rows]
    truth = {tau: Exact(X, y, tau) for tau in FEW_TAUS}
    models = {
        tau: lecture.fit("default", rows, temperature=tau, random_state=seed)
        for seed, tau in enumerate(FEW_TAUS)
    }
    say(
        f"The first {FEW_ROWS} rows alone, noise inferred, default settings: here the tempered "
        "density is no longer Gaussian, and sqrt(tau) is not what its sd grows by."
    )
    noise = [model.posterior_[NOISE] for model in models.values()]
    errors = [x.std() / np.sqrt(effective_sample_size(x[..., None], "mean")[0]) for x in noise]
    columns = {
        "sqrt(tau)": [f"{np.sqrt(tau):.3f}" for tau in FEW_TAUS],
        f"{SLOPE}: exact": exact_ratios(truth, SLOPE),
        "draws": ratios(models, SLOPE),
        f"mean of {NOISE}: exact": [f"{exact.mean[NOISE]:.4f}" for exact in truth.values()],
        "draws ": [with_error(x.mean(), e, 4) for x, e in zip(noise, errors, strict=True)],
    }
    show(pd.DataFrame(columns, index=labels(FEW_TAUS)))


def draw_scaling(lecture: Lecture, known: dict, inferred: dict, plain: dict, output: Path) -> None:
    """Draw standard deviations against the temperature."""
    figure = new_figure(7.0, 4.6)
    axes = figure.subplots()
    exact = lecture.exact
    gaussian = Exact(lecture.X, lecture.y, noise=NOISE_VARIANCE)
    grid = np.geomspace(0.008, 13.0, 200)
    axes.plot(grid, np.sqrt(grid), color=RED, label=r"$\sqrt{\tau}$")
    for label, models, target, name, color, marker, shift in (
        ("default, noise known: slope", known, gaussian, SLOPE, BLUE, "o", 0.93),
        ("default, noise inferred: slope", inferred, exact, SLOPE, GREEN, "s", 1.0),
        ("default, noise inferred: noise variance", inferred, exact, NOISE, GREY, "^", 1.075),
        ("the lecture's run, m = 100: slope", plain, exact, SLOPE, ORANGE, "D", 1.0),
    ):
        at = [width(models[tau], name)[0] / target.sd[name] for tau in TAUS]
        axes.plot(np.multiply(TAUS, shift), at, marker, color=color, label=label, markersize=6)
    must = [predict_width(lecture, SLOPE, 100, tau) for tau in grid]
    axes.plot(grid, must, "--", color=ORANGE, linewidth=1.0, label="the same, predicted")
    axes.set(xscale="log", yscale="log", xticks=TAUS, xticklabels=[f"{tau:g}" for tau in TAUS])
    axes.set_yticks([0.1, 0.3, 1, 3, 10], ["0.1", "0.3", "1", "3", "10"])
    axes.minorticks_off()
    axes.set(xlabel=r"temperature $\tau$", ylabel=r"sd of the draws / exact sd at $\tau$ = 1")
    axes.set_title("Standard deviation of the draws by temperature")
    axes.legend(fontsize=8, frameon=False, loc="lower right")
    tidy(axes)
    save(figure, output, "lecture_temperature_sd.png")


# ---- 3. batch size ------------------------------------------------------------------------------


def batch_sizes(lecture: Lecture, output: Path) -> None:
    """Compare the lecture's batch sizes with the default settings, in a table."""
    exact = lecture.exact
    models = {f"plain, m = {m:,}": (lecture.fit_plain(m), m) for m in BATCH_SIZES}
    models["plain, all rows"] = (lecture.fit_plain(None), None)
    models["default settings"] = (lecture.fit("default"), None)
    rows = {}
    for label, (model, m) in models.items():
        row = {}
        for name in (SLOPE, INTERCEPT, NOISE):
            sd, error = width(model, name)
            must = 1.0 if label.startswith("default") else predict_width(lecture, name, m)
            row[name] = f"{with_error(sd / exact.sd[name], error / exact.sd[name], 2)} ({must:.2f})"
        shift = (model.noise_variance_ - exact.mean[NOISE]) / exact.sd[NOISE]
        row["its mean is off by"] = f"{shift:+.2f} sd"
        rows[label] = row
    say(
        f"sd of the draws over the exact sd, in brackets what it must be (plain: eta = "
        f"{PLAIN_STEP:g}, {model.n_chains} chains, 500 steps of burn-in, {PLAIN_STEPS:,} kept):"
    )
    show(pd.DataFrame(rows).T)
    slow = minibatch_budget(lecture)
    say(
        f"For a batch of 10 to add no more than 1 % to the variance of the slope, eta must be "
        f"{slow[0]:.1e}; neighbouring draws are then correlated over {slow[1]:,.0f} steps."
    )


def minibatch_budget(lecture: Lecture) -> tuple[float, float]:
    """Step size at which a batch of 10 does no harm, and its autocorrelation time."""
    precision = lecture.exact.sd[SLOPE] ** -2.0
    eta = 0.01 * 2.0 * 10 / (precision * len(lecture.y))
    return eta, 2.0 / (eta * precision)


# ---- all of it ----------------------------------------------------------------------------------

SECTIONS = {
    "Temperature: sqrt(tau) times the standard deviation?": temperature,
    "Weighted averages: the smaller standard error?": averages,
    "Batch size: the larger, the closer?": batch_sizes,
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Run every section."""
    start, options = time.perf_counter(), parse(__doc__, arguments)
    lecture = Lecture(*make_correlated_pair(random_state=0), quick=options.quick)
    for number, (title, section) in enumerate(SECTIONS.items(), 1):
        print(f"\n[{time.perf_counter() - start:5.1f} s] {number}. {title}\n", flush=True)
        section(lecture, options.output)
    print(f"\n[{time.perf_counter() - start:5.1f} s] Fits that warned (ConvergenceWarning):\n")
    for kind, total in lecture.fits.items():
        print(f"  {kind}: {lecture.warned[kind]} of {total}")
    print("\n  The warning at m = 10:")
    print(
        fill(lecture.messages["plain, m = 10"], 98, initial_indent="    ", subsequent_indent="    ")
    )


if __name__ == "__main__":
    main()

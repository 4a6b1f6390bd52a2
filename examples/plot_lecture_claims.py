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

# sphinx_gallery_thumbnail_path = "figures/thumbnail_lecture_temperature_sd.png"

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from textwrap import fill
from typing import Any

import numpy as np
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
    show_rows,
    tidy,
)
from _lecture import INTERCEPT, NOISE, PLAIN_STEP, PLAIN_STEPS, SLOPE, Exact, Lecture
from _lecture_averages import averages
from _numbers import measured

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


def temperature(lecture: Lecture, output: Path) -> dict[str, Any]:
    """Compare the tempered draws with the tempered density."""
    known, inferred, plain, truth = {}, {}, {}, {}
    for seed, tau in enumerate(TAUS):  # independent fits, so that nothing scales by construction
        settings = {"temperature": tau, "random_state": seed}
        known[tau] = lecture.fit("default", noise_variance=NOISE_VARIANCE, **settings)
        inferred[tau] = lecture.fit("default", **settings)
        plain[tau] = lecture.fit_plain(100, **settings)
        truth[tau] = Exact(lecture.X, lecture.y, tau)
    must = {tau: predict_width(lecture, SLOPE, 100, tau) for tau in TAUS}
    default, printed = {}, {}
    for tau in TAUS:
        default[f"tau {tau:g}"] = {
            "τ": f"{tau:g}",
            "√τ": measured(np.sqrt(tau), show=".3f"),
            "noise known: slope": ratio(known, SLOPE, tau),
            "intercept": ratio(known, INTERCEPT, tau),
            "noise inferred: slope": ratio(inferred, SLOPE, tau),
            "exact": exact_ratio(truth, SLOPE, tau),
            "noise variance": ratio(inferred, NOISE, tau),
            "exact ": exact_ratio(truth, NOISE, tau),
        }
        printed[f"tau {tau:g}"] = {
            "exact": exact_ratio(truth, SLOPE, tau),
            "predicted": measured(must[tau] / must[1.0], show=".2f"),
            "draws": ratio(plain, SLOPE, tau) | {"show": ".2f"},
        }
    say("sd at tau over sd at 1, default settings, the noise known (so sqrt(tau)) or inferred:")
    show_rows(default)
    say(f"The lecture's own run, plain SGLD with m = 100 and eta = {PLAIN_STEP:g}, the slope:")
    show_rows(printed)
    say(
        f"The first {FEW_ROWS} rows alone, noise inferred, default settings: here the tempered "
        "density is no longer NormalNoise, and sqrt(tau) is not what its sd grows by."
    )
    few = few_rows(lecture)
    show_rows(few)
    draw_scaling(lecture, known, inferred, plain, output)
    return {"default": default, "printed run": printed, "few rows": few}


def ratio(models: dict[float, SGLDLinearRegression], name: str, tau: float) -> dict[str, Any]:
    """A parameter's sd at a temperature over that at 1, from independent fits."""
    if tau == 1.0:
        return measured(1.0, show=".0f")
    (base, base_error), (sd, error) = width(models[1.0], name), width(models[tau], name)
    return measured(sd / base, sd / base * np.hypot(error / sd, base_error / base), "±.3f")


def exact_ratio(truth: dict[float, Exact], name: str, tau: float) -> dict[str, Any]:
    """A parameter's exact sd at a temperature over that at 1."""
    return measured(truth[tau].sd[name] / truth[1.0].sd[name], show=".3f")


def few_rows(lecture: Lecture) -> dict[str, Any]:
    """Show that the tempered density, not sqrt(tau), is what is sampled."""
    rows = slice(FEW_ROWS)
    X, y = lecture.X[rows], lecture.y[rows]
    truth = {tau: Exact(X, y, tau) for tau in FEW_TAUS}
    models = {
        tau: lecture.fit("default", rows, temperature=tau, random_state=seed)
        for seed, tau in enumerate(FEW_TAUS)
    }
    found = {}
    for tau, model in models.items():
        noise = model.posterior_[NOISE]
        error = noise.std() / np.sqrt(effective_sample_size(noise[..., None], "mean")[0])
        found[f"tau {tau:g}"] = {
            "τ": f"{tau:g}",
            "√τ": measured(np.sqrt(tau), show=".3f"),
            "slope: exact": exact_ratio(truth, SLOPE, tau),
            "draws": ratio(models, SLOPE, tau),
            "mean of the noise variance: exact": measured(truth[tau].mean[NOISE], show=".4f"),
            "draws ": measured(noise.mean(), error, "±.4f"),
        }
    return found


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
    save(figure, output, "lecture_temperature_sd.png", figure.axes[0])


# ---- 3. batch size ------------------------------------------------------------------------------


def batch_sizes(lecture: Lecture, output: Path) -> dict[str, Any]:
    """Compare the lecture's batch sizes with the default settings, in a table."""
    exact = lecture.exact
    models = {f"plain, m = {m:,}": (lecture.fit_plain(m), m) for m in BATCH_SIZES}
    models["plain, all rows"] = (lecture.fit_plain(None), None)
    models["default settings"] = (lecture.fit("default"), None)
    titles = {SLOPE: "slope", INTERCEPT: "intercept", NOISE: "noise variance"}
    rows: dict[str, Any] = {}
    for label, (model, m) in models.items():
        rows[label] = row = {"": label}
        for j, (name, title) in enumerate(titles.items()):
            sd, error = width(model, name)
            must = 1.0 if label.startswith("default") else predict_width(lecture, name, m)
            row[title] = measured(sd / exact.sd[name], error / exact.sd[name], "±.2f")
            row["predicted" + " " * j] = measured(must, show=".2f")
        draws = model.posterior_[NOISE]
        error = draws.std() / np.sqrt(effective_sample_size(draws[:, :, None], "mean")[0])
        shift = np.array([draws.mean() - exact.mean[NOISE], error]) / exact.sd[NOISE]
        row["mean of the noise variance off by (sds)"] = measured(*shift, "±+.2f")
    say(
        f"sd of the draws over the exact sd, and what it must be (plain: eta = "
        f"{PLAIN_STEP:g}, {model.n_chains} chains, 500 steps of burn-in, {PLAIN_STEPS:,} kept):"
    )
    show_rows(rows)
    slow = minibatch_budget(lecture)
    say(
        f"For a batch of 10 to add no more than 1 % to the variance of the slope, eta must be "
        f"{slow[0]:.1e}; neighbouring draws are then correlated over {slow[1]:,.0f} steps."
    )
    noise = models["plain, m = 10"][0].result_.noise_ratio
    return {
        "rows": rows,
        "step": {"size": measured(slow[0], show=".1e"), "steps": measured(slow[1], show=",.0f")},
        "alpha at m = 100": measured(minibatch_noise(lecture, 100), show=".0f"),
        "step times precision": measured(PLAIN_STEP / exact.sd[SLOPE] ** 2, show=".2f"),
        "batch noise at m = 10": measured(noise, None, ".0f"),  # of one fit's draws, so no error
    }


def minibatch_noise(lecture: Lecture, batch_size: int) -> float:
    """Alpha: variance that a batch adds to the slope's, over the posterior's."""
    step = PLAIN_STEP / lecture.exact.sd[SLOPE] ** 2
    return 0.5 * step * len(lecture.y) / batch_size


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


def main(arguments: Sequence[str] | None = None) -> dict[str, Any]:
    """Run every section."""
    start, options = time.perf_counter(), parse(__doc__, arguments)
    lecture = Lecture(*make_correlated_pair(random_state=0), quick=options.quick)
    found = {}
    for number, (title, section) in enumerate(SECTIONS.items(), 1):
        print(f"\n[{time.perf_counter() - start:5.1f} s] {number}. {title}\n", flush=True)
        found[section.__name__] = section(lecture, options.output)
    print(f"\n[{time.perf_counter() - start:5.1f} s] Fits that warned (ConvergenceWarning):\n")
    warned = {}
    for kind in ("plain", "decaying", "default", "constant"):
        counts = {
            "fits": sum(n for name, n in lecture.fits.items() if name.startswith(kind)),
            "warned": sum(n for name, n in lecture.warned.items() if name.startswith(kind)),
        }
        print(f"  {kind}: {counts['warned']} of {counts['fits']}")
        warned[kind] = {name: measured(n, show=".0f") for name, n in counts.items()}
    print("\n  The warning at m = 10:")
    print(
        fill(lecture.messages["plain, m = 10"], 98, initial_indent="    ", subsequent_indent="    ")
    )
    return found | {"warnings": {} if options.quick else warned}


if __name__ == "__main__":
    main()

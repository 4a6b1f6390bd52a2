"""Three claims of the lecture, each beside the exact density: temperature, weights, batch size.

The data, the model and its posterior in closed form are those of Karagiannis, Handout 6,
Section 4; ``docs/lecture_claims.md`` is the page to this script. To see:

1. temperature: the default settings sample the tempered density for every tau, and on a Gaussian
   posterior all standard deviations grow by sqrt(tau); the lecture's own run hardly notices tau;
2. weights: averages weighted by the step size have the smaller standard error, by a factor that
   the schedule alone decides, and which is nearly 1 once the first half of the run is thrown away;
3. batch size: with the lecture's step size no batch gives the posterior, not even all rows.

Usage: ``python examples/plot_lecture_claims.py [--output DIR] [--quick]``. It prints tables, takes
about 20 s and writes its figures to DIR (``docs/figures``).
"""

from __future__ import annotations

import time
import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from textwrap import fill, indent
from typing import Any

import numpy as np
import pandas as pd
from _figure import BLUE, GREEN, GREY, ORANGE, RED, new_figure, parse, save, say, tidy
from scipy import stats
from sklearn.exceptions import ConvergenceWarning

from skbayes_sgld import SGLDLinearRegression
from skbayes_sgld.datasets import make_correlated_pair
from skbayes_sgld.diagnostics import effective_sample_size
from skbayes_sgld.posterior import ConjugateNormal, InverseGamma
from skbayes_sgld.sampling import SGLD, Constant, Harmonic, Polynomial, Schedule

PRIOR_SCALE, PHI, PSI = 10.0, 1.0, 1.0  # V = 100 I and IG(1, 1)
NOISE_VARIANCE = 0.19  # of the data, for the model that knows it
TAUS = (0.01, 0.1, 1.0, 2.0, 10.0)  # those of the handout's code
FEW_ROWS, FEW_TAUS = 20, (0.1, 1.0, 2.0)
BATCH_SIZES = (10, 100, 1000)
PLAIN_STEP = 1e-5  # eta of the handout's code
PLAIN_STEPS = 1250  # kept, after 500 of burn-in, of each chain
N_PARALLEL = 16  # chains: sixteen times a thousand draws, for small Monte Carlo errors
SLOPE, INTERCEPT, NOISE = "coef[x0]", "intercept", "noise_variance"
UNITS = {SLOPE: "slope (y per x)", NOISE: "noise variance (y squared)"}


# ---- printing and drawing -----------------------------------------------------------------------


def show(table: pd.DataFrame) -> None:
    """Print a table of strings, aligned."""
    print(indent(table.rename_axis(index=None).to_string(), "  ") + "\n", flush=True)


def with_error(value: float, error: float, digits: int = 3) -> str:
    """Return a figure and its Monte Carlo standard error."""
    return f"{value:.{digits}f} ± {error:.{digits}f}"


def draw_density(
    axes: Any, draws: np.ndarray, exact: Exact, name: str, color: str, label: str
) -> None:
    """Draw a histogram of the draws and the exact density, with both standard deviations."""
    reach = 5.5 * max(exact.sd[name], float(draws.std()))
    centre = exact.mean[name]
    bins = np.linspace(centre - reach, centre + reach, 45)
    axes.hist(draws.ravel(), bins, density=True, color=color, alpha=0.55, label=label)
    grid = np.linspace(centre - reach, centre + reach, 801)
    axes.plot(grid, exact.density(name, grid), color=RED, linewidth=1.5, label="exact density")
    axes.set_xlim(centre - reach, centre + reach)
    axes.locator_params(axis="x", nbins=4, prune="both")
    axes.set_yticks([])
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.text(
        0.02,
        0.97,
        f"sd {draws.std():.2g}\nexact {exact.sd[name]:.2g}",
        transform=axes.transAxes,
        verticalalignment="top",
        fontsize=8,
    )


def share_legend(figure: Any, panels: Sequence[Any]) -> None:
    """Put one legend, of what is in these panels, under all of them."""
    handles = {}
    for axes in panels:
        for handle, name in zip(*axes.get_legend_handles_labels(), strict=True):
            handles[name] = handle
    figure.legend(
        handles.values(), handles, loc="outside lower right", ncols=3, fontsize=9, frameon=False
    )


# ---- the posterior in closed form ---------------------------------------------------------------


class Exact:
    """The lecture's posterior, to the power 1 / tau, in (w, gamma = log sigma^2).

    w is the slopes and the intercept, d + 1 numbers, and A the precision of w for sigma = 1. With
    the Jacobian of gamma the log density is, up to a constant,

        -(phi + (n + d) / 2) gamma - exp(-gamma) (psi + rss / 2 + (w - m)' A (w - m) / 2).

    To the power 1 / tau, w given gamma is normal, of covariance tau exp(gamma) A^{-1}. The
    integral over w is proportional to exp((d + 1) gamma / 2), which leaves sigma^2 ~ IG(a, b),

        a = (phi + (n + d) / 2) / tau - (d + 1) / 2,    b = (psi + rss / 2) / tau,

    and a multivariate t of 2 a degrees of freedom for w. Where the noise is known w is normal.
    """

    def __init__(
        self, X: np.ndarray, y: np.ndarray, tau: float = 1.0, noise: float | None = None
    ) -> None:
        n, d = X.shape
        design = np.column_stack([X, np.ones(n)])
        shrink = np.r_[np.full(d, PRIOR_SCALE**-2.0), 0.0]
        precision = design.T @ design + np.diag(shrink)
        m = np.linalg.solve(precision, design.T @ y)
        rss = np.sum((y - design @ m) ** 2) + shrink @ m**2
        unit = tau * np.diag(np.linalg.inv(precision))
        a = (PHI + 0.5 * (n + d)) / tau - 0.5 * (d + 1)
        b = (PSI + 0.5 * rss) / tau
        self.laws: dict[str, Any] = {}
        for name, center, variance in zip((SLOPE, INTERCEPT), m, unit, strict=True):
            if noise is None:
                self.laws[name] = stats.t(2.0 * a, center, np.sqrt(variance * b / a))
            else:
                self.laws[name] = stats.norm(center, np.sqrt(variance * noise))
        if noise is None:
            self.laws[NOISE] = stats.invgamma(a, scale=b)
        self.mean = {name: float(law.mean()) for name, law in self.laws.items()}
        self.sd = {name: float(law.std()) for name, law in self.laws.items()}

    def density(self, name: str, grid: np.ndarray) -> np.ndarray:
        """Return the marginal density of a parameter."""
        return self.laws[name].pdf(grid)


# ---- fits ---------------------------------------------------------------------------------------


@dataclass
class Lecture:
    """The lecture's data, the fits on them, and how many of them warned."""

    X: np.ndarray
    y: np.ndarray
    quick: bool = False
    fits: Counter = field(default_factory=Counter)
    warned: Counter = field(default_factory=Counter)
    messages: dict[str, str] = field(default_factory=dict)

    def fit(self, kind: str, rows: slice = slice(None), **settings: Any) -> SGLDLinearRegression:
        """Return a fitted model with the lecture's prior; count whether it warned."""
        settings = {"random_state": 0, "n_chains": N_PARALLEL, **settings}
        if self.quick:
            settings["n_chains"] //= 4
        model = SGLDLinearRegression(
            prior=ConjugateNormal(PRIOR_SCALE), noise_prior=InverseGamma(PHI, PSI), **settings
        )
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("error")  # there is to be no other warning
            warnings.simplefilter("always", ConvergenceWarning)
            model.fit(self.X[rows], self.y[rows])
        self.fits[kind] += 1
        self.warned[kind] += bool(caught)
        if caught:
            self.messages[kind] = str(caught[0].message)
        return model

    def fit_plain(self, batch_size: int | None, **settings: Any) -> SGLDLinearRegression:
        """Return a fit by Algorithm 21 to the letter, with the step size of the handout's code."""
        kind, gradient = "plain, all rows", {"gradient": "full"}
        if batch_size is not None:
            kind = f"plain, m = {batch_size:,}"
            gradient = {"gradient": "minibatch", "batch_size": batch_size}
        return self.fit(
            kind,
            sampler=SGLD(integrator="euler"),
            preconditioner=None,
            step_size=PLAIN_STEP,
            n_burnin=500,
            n_draws=PLAIN_STEPS,
            thin=1,
            **gradient,
            **settings,
        )


def width(model: SGLDLinearRegression, name: str) -> tuple[float, float]:
    """Return the sd of a parameter's draws and its Monte Carlo standard error."""
    draws = model.posterior_[name]
    squares = (draws - draws.mean()) ** 2
    ess = effective_sample_size(squares[:, :, None], "mean")[0]
    sd = np.sqrt(squares.mean())
    return float(sd), float(0.5 * squares.std() / np.sqrt(ess) / sd)


def predict_width(lecture: Lecture, name: str, batch_size: int | None, tau: float = 1.0) -> float:
    """Return the sd that plain SGLD must have, over the exact one at tau = 1.

    On a normal posterior of precision lambda and n rows whose gradients have variance lambda / n
    each, a batch of m adds eta^2 n lambda / m to the 2 eta tau of a step, and the Euler step
    divides the variance by 1 - eta lambda / 2.
    """
    exact = Exact(lecture.X, lecture.y)
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
    law = [predict_width(lecture, SLOPE, 100, tau) for tau in TAUS]
    columns = {
        f"{SLOPE}: exact": exact_ratios(truth, SLOPE),
        "predicted": [f"{value / law[TAUS.index(1.0)]:.3f}" for value in law],
        "draws": ratios(plain, SLOPE),
    }
    show(pd.DataFrame(columns, index=labels(TAUS)))
    few_rows(lecture)
    draw_tempered(inferred, truth, output)
    draw_scaling(lecture, known, inferred, plain, output)


def labels(taus: Sequence[float]) -> list[str]:
    """Return the names of a table's rows."""
    return [f"tau {tau:g}" for tau in taus]


def ratios(models: dict[float, SGLDLinearRegression], name: str) -> list[str]:
    """Return a parameter's sd at every temperature over that at 1, from independent fits."""
    (base, base_error), cells = width(models[1.0], name), []
    for tau, model in models.items():
        sd, error = width(model, name)
        relative = np.hypot(error / sd, base_error / base)
        cells.append("1" if tau == 1.0 else with_error(sd / base, sd / base * relative))
    return cells


def exact_ratios(truth: dict[float, Exact], name: str) -> list[str]:
    """Return a parameter's exact sd at every temperature over that at 1."""
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


def draw_tempered(models: dict, truth: dict, output: Path) -> None:
    """Draw slope and noise variance at every temperature."""
    figure = new_figure(11.0, 4.6)
    panels = figure.subplots(2, len(TAUS))
    for row, name in zip(panels, (SLOPE, NOISE), strict=True):
        for axes, tau in zip(row, TAUS, strict=True):
            draws = models[tau].posterior_[name]
            draw_density(axes, draws, truth[tau], name, BLUE, "draws, default settings")
            axes.set_title(rf"$\tau$ = {tau:g}", fontsize=10)
        row[2].set_xlabel(UNITS[name])
        row[0].set_ylabel("density")
    share_legend(figure, panels[0, :1])
    figure.suptitle(r"Default settings at five temperatures $\tau$: each panel has its own scale")
    save(figure, output, "lecture_temperature.png")


def draw_scaling(lecture: Lecture, known: dict, inferred: dict, plain: dict, output: Path) -> None:
    """Draw standard deviations against the temperature."""
    figure = new_figure(7.0, 4.6)
    axes = figure.subplots()
    exact = Exact(lecture.X, lecture.y)
    gaussian = Exact(lecture.X, lecture.y, noise=NOISE_VARIANCE)
    grid = np.geomspace(0.008, 13.0, 200)
    axes.plot(grid, np.sqrt(grid), color=RED, label=r"$\sqrt{\tau}$")
    for label, models, law, name, color, marker, shift in (
        ("default, noise known: slope", known, gaussian, SLOPE, BLUE, "o", 0.93),
        ("default, noise inferred: slope", inferred, exact, SLOPE, GREEN, "s", 1.0),
        ("default, noise inferred: noise variance", inferred, exact, NOISE, GREY, "^", 1.075),
        ("the lecture's run, m = 100: slope", plain, exact, SLOPE, ORANGE, "D", 1.0),
    ):
        at = [width(models[tau], name)[0] / law.sd[name] for tau in TAUS]
        axes.plot(np.multiply(TAUS, shift), at, marker, color=color, label=label, markersize=6)
    law = [predict_width(lecture, SLOPE, 100, tau) for tau in grid]
    axes.plot(grid, law, "--", color=ORANGE, linewidth=1.0, label="what that run must give")
    axes.set(xscale="log", yscale="log", xticks=TAUS, xticklabels=[f"{tau:g}" for tau in TAUS])
    axes.set_yticks([0.1, 0.3, 1, 3, 10], ["0.1", "0.3", "1", "3", "10"])
    axes.minorticks_off()
    axes.set(xlabel=r"temperature $\tau$", ylabel=r"sd of the draws / exact sd at $\tau$ = 1")
    axes.set_title("What the temperature does to a standard deviation")
    axes.legend(fontsize=8, frameon=False, loc="lower right")
    tidy(axes)
    save(figure, output, "lecture_temperature_sd.png")


# ---- 2. weighted and unweighted averages --------------------------------------------------------

N_CHAINS, N_KEPT = 200, 2000
SCHEDULES: dict[str, tuple[Schedule, Any]] = {
    "constant": (Constant(), "auto"),
    "polynomial, power 1/3": (Polynomial(power=1 / 3), "auto"),
    "polynomial, power 0.55": (Polynomial(), "auto"),
    "harmonic, 5 / t": (Harmonic(), 5.0),
    "harmonic, 0.5 / t": (Harmonic(), "auto"),
}


def averages(lecture: Lecture, output: Path) -> None:
    """Compare weighted with unweighted averages over many chains."""
    exact, rows, paths = Exact(lecture.X, lecture.y), {}, {}
    for name, (schedule, step_size) in SCHEDULES.items():
        model = lecture.fit(
            "decaying" if name != "constant" else "constant, one draw a step",
            schedule=schedule,
            step_size=step_size,
            thin=1,
            n_chains=N_CHAINS,
            n_draws=N_KEPT,
        )
        draws, eta = model.posterior_, step_sizes(model)
        weights = np.ones(N_KEPT) if draws.weights is None else draws.weights
        scaled = np.stack([(draws[p] - exact.mean[p]) / exact.sd[p] for p in draws.names], axis=-1)
        rows[name] = summarise_averages(scaled, weights, eta)
        paths[name] = (running_errors(scaled, weights), eta)
    say(
        f"Root mean square error of the posterior mean over {len(scaled)} chains, {N_KEPT:,} draws "
        "each, one a step, and three parameters, in posterior sds, ± its standard error. 'exact' "
        "is the ratio that the recursion must have; 'limit' is sqrt(mean eta × mean 1/eta):"
    )
    show(pd.DataFrame(rows).T)
    _, eta = paths["polynomial, power 0.55"]
    first = eta[:N_KEPT]
    kept = influence(first, first)[1], influence(np.ones(N_KEPT), first)[1]
    say(
        "The weights are largest where the chain starts. Without burn-in the weighted average, "
        f"power 0.55, keeps {kept[0]:.2%} of the start's distance, the unweighted {kept[1]:.2%}."
    )
    draw_averages(paths, output)


def step_sizes(model: SGLDLinearRegression) -> np.ndarray:
    """Return eta of every step, burn-in and all."""
    schedule = model.schedule(np.arange(model.n_burnin_ + N_KEPT))
    return model.step_size_ * schedule


def mean_square(scaled: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return the squared error of each chain's average, mean over the parameters."""
    average = np.einsum("t,ctp->cp", weights / weights.sum(), scaled)
    return (average**2).mean(axis=1)


def summarise_averages(scaled: np.ndarray, weights: np.ndarray, eta: np.ndarray) -> dict:
    """Return one row of the table."""
    kept, equal = eta[-N_KEPT:], np.ones(N_KEPT)
    half = N_KEPT // 2
    weighted, unweighted = mean_square(scaled, weights), mean_square(scaled, equal)
    exact = standard_error(equal, eta) / standard_error(weights, eta)
    late = (
        mean_square(scaled[:, half:], equal[half:]),
        mean_square(scaled[:, half:], weights[half:]),
    )
    return {
        "sum of eta": f"{kept.sum():.1f}",
        "weighted": with_error(*root_mean(weighted)),
        "unweighted": with_error(*root_mean(unweighted)),
        "ratio": with_error(*root_ratio(unweighted, weighted)),
        "exact": f"{exact:.3f}",
        "limit": f"{np.sqrt(kept.mean() * (1 / kept).mean()):.3f}",
        "ratio, 2nd half only": with_error(*root_ratio(*late)),
    }


def root_mean(squares: np.ndarray) -> tuple[float, float]:
    """Return the root of a mean and its standard error."""
    root = np.sqrt(squares.mean())
    return float(root), float(0.5 * stats.sem(squares) / root)


def root_ratio(above: np.ndarray, below: np.ndarray) -> tuple[float, float]:
    """Return the ratio of two roots of means over the same chains, and its standard error."""
    value = np.sqrt(above.mean() / below.mean())
    error = 0.5 * value * stats.sem(above / above.mean() - below / below.mean())
    return float(value), float(error)


def standard_error(weights: np.ndarray, eta: np.ndarray) -> float:
    """Return the standard error that a weighted average of the last draws must have."""
    by_normal, by_start = influence(weights, eta)
    return float(np.sqrt(np.sum(by_normal**2) + (1.5 * by_start) ** 2))


def influence(weights: np.ndarray, eta: np.ndarray) -> tuple[np.ndarray, float]:
    """Return how much of each normal, and of the start, is in the average of the last draws.

    On a standard normal posterior the chain is linear in them: theta becomes
    (1 - eta_t) theta + sqrt(2 eta_t) (normal_t + normal_{t+1}) / 2. Starts are 1.5 normals.
    """
    padded = np.r_[np.zeros(len(eta) - len(weights)), weights / weights.sum()]
    effect = np.empty(len(eta))  # of what enters at a step on the average
    total = 0.0
    for t in range(len(eta) - 1, -1, -1):
        total += padded[t]
        effect[t] = total
        total *= 1.0 - eta[t]
    each = 0.5 * np.sqrt(2.0 * eta) * effect
    return np.r_[each, 0.0] + np.r_[0.0, each], float(total)


def running_errors(scaled: np.ndarray, weights: np.ndarray) -> dict[str, np.ndarray]:
    """Return the error of both averages after so many draws."""
    lengths = np.unique(np.geomspace(20, N_KEPT, 14).astype(int))
    errors: dict[str, list[float]] = {"weighted": [], "unweighted": []}
    for length in lengths:
        for name, values in (("weighted", weights), ("unweighted", np.ones(N_KEPT))):
            squares = mean_square(scaled[:, :length], values[:length])
            errors[name].append(float(np.sqrt(squares.mean())))
    return {"lengths": lengths, **{name: np.array(values) for name, values in errors.items()}}


def draw_averages(paths: dict, output: Path) -> None:
    """Draw the errors of both averages against the number of draws."""
    shown = list(SCHEDULES)[1:4]
    figure = new_figure(11.0, 4.0)
    panels = figure.subplots(1, len(shown), sharey=True)
    for axes, name in zip(panels, shown, strict=True):
        found, eta = paths[name]
        n_burnin = len(eta) - N_KEPT
        for kind, color, marker in (("unweighted", ORANGE, "s"), ("weighted", BLUE, "o")):
            law = []
            for length in found["lengths"]:
                steps = eta[: n_burnin + length]
                weights = steps[n_burnin:] if kind == "weighted" else np.ones(length)
                law.append(standard_error(weights, steps))
            axes.plot(found["lengths"], law, color=color, linewidth=1.2, label=f"{kind}, exact")
            axes.plot(found["lengths"], found[kind], marker, color=color, markersize=5, label=kind)
        axes.set(xscale="log", yscale="log", xlabel="draws in the average", title=name)
        axes.set_yticks([0.1, 0.2, 0.5, 1.0], ["0.1", "0.2", "0.5", "1"])
        axes.tick_params(axis="y", which="minor", left=False, labelleft=False)
        tidy(axes)
    panels[0].set_ylabel("root mean square error\n(posterior sds)")
    panels[0].legend(fontsize=8, frameon=False)
    figure.suptitle("Error of the posterior mean: average weighted by the step size or not")
    save(figure, output, "lecture_weights.png")


# ---- 3. batch size ------------------------------------------------------------------------------


def batch_sizes(lecture: Lecture, output: Path) -> None:
    """Compare the lecture's batch sizes with the default settings."""
    exact = Exact(lecture.X, lecture.y)
    models = {f"plain, m = {m:,}": (lecture.fit_plain(m), m) for m in BATCH_SIZES}
    models["plain, all rows"] = (lecture.fit_plain(None), None)
    models["default settings"] = (lecture.fit("default"), None)
    rows = {}
    for label, (model, m) in models.items():
        row = {}
        for name in (SLOPE, INTERCEPT, NOISE):
            sd, error = width(model, name)
            law = 1.0 if label.startswith("default") else predict_width(lecture, name, m)
            row[name] = f"{with_error(sd / exact.sd[name], error / exact.sd[name], 2)} ({law:.2f})"
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
    draw_batches(models, exact, output)


def minibatch_budget(lecture: Lecture) -> tuple[float, float]:
    """Return the step size at which a batch of 10 does no harm, and its autocorrelation time."""
    precision = Exact(lecture.X, lecture.y).sd[SLOPE] ** -2.0
    eta = 0.01 * 2.0 * 10 / (precision * len(lecture.y))
    return eta, 2.0 / (eta * precision)


def draw_batches(models: dict, exact: Exact, output: Path) -> None:
    """Draw slope and noise variance for every batch size."""
    figure = new_figure(11.0, 4.8)
    panels = figure.subplots(2, len(models))
    for row, name in zip(panels, (SLOPE, NOISE), strict=True):
        for axes, (label, (model, _)) in zip(row, models.items(), strict=True):
            plain = label.startswith("plain")
            look = (ORANGE, "draws, plain") if plain else (BLUE, "draws, default settings")
            draw_density(axes, model.posterior_[name], exact, name, *look)
            axes.set_title(label, fontsize=10)
        row[len(models) // 2].set_xlabel(UNITS[name])
        row[0].set_ylabel("density")
    share_legend(figure, panels[0, -2:])
    figure.suptitle(
        r"Plain SGLD ($\eta = 10^{-5}$) by batch size $m$, and the default settings: "
        "each panel has its own scale"
    )
    save(figure, output, "lecture_batch_size.png")


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

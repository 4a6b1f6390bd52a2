"""The lecture's second claim: averages weighted by the step size have the smaller error.

One section of ``plot_lecture_claims.py``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from _figure import BLUE, ORANGE, new_figure, save, say, show_rows, tidy
from _lecture import Lecture
from _numbers import measured
from scipy import stats

from skbayes_sgld import SGLDLinearRegression
from skbayes_sgld.sampling import Constant, Harmonic, Polynomial, Schedule

N_CHAINS = 200
N_BURNIN, N_KEPT = 20, 2000  # steps and draws of a chain
SCHEDULES: dict[str, tuple[Schedule, Any]] = {
    "constant": (Constant(), "auto"),
    "power 1/3": (Polynomial(power=1 / 3), "auto"),
    "power 0.55": (Polynomial(), "auto"),
    "5/t": (Harmonic(), 5.0),
    "1/t": (Harmonic(), "auto"),
}


def averages(lecture: Lecture, output: Path) -> dict[str, Any]:
    """Compare weighted with unweighted averages over many chains."""
    exact, rows, paths, found = lecture.exact, {}, {}, {}
    n_chains = 20 if lecture.quick else N_CHAINS
    for name, (schedule, step_size) in SCHEDULES.items():
        model = lecture.fit(
            "decaying" if name != "constant" else "constant, one draw a step",
            schedule=schedule,
            step_size=step_size,
            thin=1,
            n_chains=n_chains,
            n_burnin=N_BURNIN,
            n_draws=N_KEPT,
        )
        draws, eta = model.posterior_, step_sizes(model)
        weights = np.ones(N_KEPT) if draws.weights is None else draws.weights
        scaled = np.stack([(draws[p] - exact.mean[p]) / exact.sd[p] for p in draws.names], axis=-1)
        rows[name] = {"schedule": name} | summarise_averages(scaled, weights, eta)
        paths[name] = (running_errors(scaled, weights), eta)
        found[name] = model.step_size_ * model.schedule(0)
    say(
        f"Root mean square error of the posterior mean over {n_chains} chains, {N_KEPT:,} draws "
        "each, one a step, and three parameters, in posterior sds, ± its standard error. 'exact' "
        "is the ratio that the recursion must have, 'limit' is sqrt(mean eta × mean 1/eta), and "
        "'late' is the ratio over the second half of the draws:"
    )
    show_rows(rows)
    halved = 0.5 * Polynomial()(np.arange(N_KEPT)) / Polynomial()(0)
    kept = influence(halved, halved)[1], influence(np.ones(N_KEPT), halved)[1]
    say(
        "The weights are largest where the chain starts. Without burn-in, and with a first step "
        f"of 0.5, the weighted average, power 0.55, keeps {kept[0]:.2%} of the start's distance, "
        f"the unweighted {kept[1]:.2%}."
    )
    draw_averages(paths, output)
    steps = [found[name] for name in SCHEDULES if name != "5/t"]
    return {
        "rows": rows,
        "first step": measured(max(steps), show=".1f"),
        "burn-in": measured(N_BURNIN, show=".0f"),
        "start kept": dict(
            zip(("weighted", "unweighted"), (measured(x, show=".2f %") for x in kept), strict=True)
        ),
    }


def step_sizes(model: SGLDLinearRegression) -> np.ndarray:
    """Eta of every step, burn-in and all."""
    schedule = model.schedule(np.arange(model.n_burnin_ + model.n_draws))
    return model.step_size_ * schedule


def mean_square(scaled: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Squared error of each chain's average, mean over the parameters."""
    average = np.einsum("t,ctp->cp", weights / weights.sum(), scaled)
    return (average**2).mean(axis=1)


def summarise_averages(scaled: np.ndarray, weights: np.ndarray, eta: np.ndarray) -> dict:
    """One row of the table."""
    kept, equal = eta[-len(weights) :], np.ones(len(weights))
    half = len(weights) // 2
    weighted, unweighted = mean_square(scaled, weights), mean_square(scaled, equal)
    exact = standard_error(equal, eta) / standard_error(weights, eta)
    late = (
        mean_square(scaled[:, half:], equal[half:]),
        mean_square(scaled[:, half:], weights[half:]),
    )
    return {
        "weighted": measured(*root_mean(weighted), "±.3f"),
        "unweighted": measured(*root_mean(unweighted), "±.3f"),
        "ratio": measured(*root_ratio(unweighted, weighted), "±.3f"),
        "exact": measured(exact, show=".3f"),
        "limit": measured(np.sqrt(kept.mean() * (1 / kept).mean()), show=".3f"),
        "late": measured(*root_ratio(*late), "±.3f"),
    }


def root_mean(squares: np.ndarray) -> tuple[float, float]:
    """Root of a mean and its standard error."""
    root = np.sqrt(squares.mean())
    return float(root), float(0.5 * stats.sem(squares) / root)


def root_ratio(above: np.ndarray, below: np.ndarray) -> tuple[float, float]:
    """Ratio of two roots of means over the same chains, and its standard error."""
    value = np.sqrt(above.mean() / below.mean())
    error = 0.5 * value * stats.sem(above / above.mean() - below / below.mean())
    return float(value), float(error)


def standard_error(weights: np.ndarray, eta: np.ndarray) -> float:
    """Standard error that a weighted average of the last draws must have."""
    by_normal, by_start = influence(weights, eta)
    return float(np.sqrt(np.sum(by_normal**2) + (1.5 * by_start) ** 2))


def influence(weights: np.ndarray, eta: np.ndarray) -> tuple[np.ndarray, float]:
    """Weights of each normal number, and of the start, in the average of the last draws.

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
    """Error of both averages after so many draws."""
    lengths = np.unique(np.geomspace(20, len(weights), 14).astype(int))
    errors: dict[str, list[float]] = {"weighted": [], "unweighted": []}
    for length in lengths:
        for name, values in (("weighted", weights), ("unweighted", np.ones(len(weights)))):
            squares = mean_square(scaled[:, :length], values[:length])
            errors[name].append(float(np.sqrt(squares.mean())))
    return {"lengths": lengths, **{name: np.array(values) for name, values in errors.items()}}


def draw_averages(paths: dict, output: Path) -> None:
    """Draw the errors of both averages against the number of draws."""
    shown = {
        "power 1/3": r"step size as $(6 + t)^{-1/3}$",
        "power 0.55": r"step size as $(6 + t)^{-0.55}$",
        "5/t": "step size 5 / t",
    }
    figure = new_figure(11.0, 4.0)
    panels = figure.subplots(1, len(shown), sharey=True)
    for axes, (name, title) in zip(panels, shown.items(), strict=True):
        found, eta = paths[name]
        n_burnin = len(eta) - found["lengths"][-1]
        for kind, color, marker in (("unweighted", ORANGE, "s"), ("weighted", BLUE, "o")):
            expected = []
            for length in found["lengths"]:
                steps = eta[: n_burnin + length]
                weights = steps[n_burnin:] if kind == "weighted" else np.ones(length)
                expected.append(standard_error(weights, steps))
            lengths = found["lengths"]
            axes.plot(lengths, expected, color=color, linewidth=1.2, label=f"{kind}, exact")
            axes.plot(lengths, found[kind], marker, color=color, markersize=5, label=kind)
        axes.set(xscale="log", yscale="log", xlabel="draws in the average", title=title)
        axes.set_yticks([0.1, 0.2, 0.5, 1.0], ["0.1", "0.2", "0.5", "1"])
        axes.tick_params(axis="y", which="minor", left=False, labelleft=False)
        tidy(axes)
    panels[0].set_ylabel("root mean square error\n(posterior sds)")
    panels[0].legend(fontsize=8, frameon=False)
    figure.suptitle("Error of the posterior mean: average weighted by the step size or not")
    save(figure, output, "lecture_weights.png")

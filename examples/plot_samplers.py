"""Every registered sampler on three posteriors: effective draws per second, per gradient; error
=============================================================================================

The comparison that Z. Xu, "Stochastic Gradient Langevin Dynamics for Bayesian Learning", Section 4,
leaves for the future. All take the gradient from all rows and their automatic settings, but for a
step size of 1, too long for Euler. Seconds (of processor time) and gradients are those of the
whole call, tuning and burn-in included. The distributions to compare with are

* a normal distribution of 10 parameters, neighbours correlated by 0.95: known;
* the NBA rookies' logistic regression with a Laplace prior: a long HMC run, of another seed;
* the report's linear model, Laplace prior, known noise: a Gibbs sampler (Park & Casella 2008).

To see: the worst of all means and sds, in posterior sds, is within chance's reach (the ticks) where
a sampler is right; beyond it, draws are from another distribution, however many there are a second.

Usage: ``python examples/plot_samplers.py [--output DIR] [--quick]``.
"""

# sphinx_gallery_thumbnail_path = "figures/thumbnail_samplers.png"

from __future__ import annotations

import time
from collections.abc import Sequence
from copy import copy
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from _figure import BLUE, GREEN, GREY, ORANGE, new_figure, parse, save, say, tidy, unconverged
from _numbers import measured
from scipy.stats import norm
from sklearn.preprocessing import scale

from skbayes_sgld import sample
from skbayes_sgld.datasets import load_nba_rookies, make_cubic
from skbayes_sgld.diagnostics import effective_sample_size
from skbayes_sgld.posterior import (
    Bernoulli,
    FixedGaussian,
    FunctionPosterior,
    GLMPosterior,
    Laplace,
)
from skbayes_sgld.sampling import SAMPLERS, SGLD

CHANCE = 0.05
EVALUATIONS = ("grad", "value_and_grad", "log_density")
BOUND = ("grad", "value_and_grad")
PER_SECOND, PER_GRADIENT = "effective draws a second", "effective draws / 1,000 gradients"
ERROR = "worst error (posterior sds)"
TITLES = {PER_SECOND: "Speed", PER_GRADIENT: "Thrift", ERROR: "Error"}
COLORS = {"normal": BLUE, "NBA rookies": ORANGE, "linear, Laplace": GREEN}


class Exact(NamedTuple):
    """Means and sds to compare with, and how many draws they are worth."""

    mean: np.ndarray
    sd: np.ndarray
    ess: float = np.inf


def worst_ess(draws: np.ndarray) -> float:
    """Smallest effective sample size, bulk or tail, of any parameter."""
    return min(effective_sample_size(draws, kind).min() for kind in ("bulk", "tail"))


def make_normal() -> tuple[Any, Exact]:
    """Correlated normal distribution, and its means and sds."""
    index = np.arange(10)
    covariance = 0.95 ** np.abs(index[:, None] - index)
    precision = np.linalg.inv(covariance)
    posterior = FunctionPosterior(
        lambda x: -0.5 * np.einsum("cp,pq,cq->c", x, precision, x), lambda x: -x @ precision, 10
    )
    return posterior, Exact(np.zeros(10), np.ones(10))


def make_rookies(n_reference: int) -> tuple[Any, Exact]:
    """Logistic posterior, and means and sds of a long run."""
    table, y = load_nba_rookies(return_X_y=True)
    X = scale(table.fillna(table.mean()).to_numpy())
    posterior = GLMPosterior(X, y.to_numpy(float), Bernoulli(), Laplace(1.0), center=True)
    draws = sample(posterior, "hmc", n_draws=n_reference, n_chains=8, random_state=1).values
    return posterior, Exact(draws.mean((0, 1)), draws.std((0, 1)), worst_ess(draws))


def make_linear(n_reference: int) -> tuple[Any, Exact]:
    """Linear posterior, and means and sds by Gibbs sampling."""
    X, y = make_cubic(random_state=0)
    posterior = GLMPosterior(X, y, FixedGaussian(1.0), Laplace(1.0), fit_intercept=False)
    rng, draws = np.random.default_rng(0), np.empty((n_reference, 3))
    beta = np.ones(3)
    for i in range(n_reference):  # a Laplace prior is normal given an exponential variance
        precision = np.diag(rng.wald(1.0 / np.abs(beta), 1.0)) + X.T @ X
        covariance = np.linalg.inv(precision)
        beta = covariance @ (X.T @ y) + np.linalg.cholesky(covariance) @ rng.standard_normal(3)
        draws[i] = beta
    kept = draws[n_reference // 10 :]
    return posterior, Exact(kept.mean(axis=0), kept.std(axis=0), worst_ess(kept[None]))


def count_gradients(posterior: Any) -> tuple[Any, list[int]]:
    """A copy of the posterior, and a list that gets the chains of every evaluation.

    An evaluation is a gradient, a log density, or both at one place. Runs take what is bound to
    their number of chains, pilots and searches for a mode the methods themselves: both count.
    """
    counted: list[int] = []
    depth = [0]  # one method may call another, at the same place

    def watch(evaluate: Any) -> Any:
        def counting(*arguments: Any) -> Any:
            if depth[0] == 0:
                counted.append(len(arguments[-1]))
            depth[0] += 1
            try:
                return evaluate(*arguments)
            finally:
                depth[0] -= 1

        return counting

    def watch_bound(bind: Any) -> Any:
        return lambda *arguments, **how: watch(bind(*arguments, **how))

    kind, watched = type(posterior), copy(posterior)
    methods = {name: watch(getattr(kind, name)) for name in EVALUATIONS}
    methods |= {f"bind_{name}": watch_bound(getattr(kind, f"bind_{name}")) for name in BOUND}
    watched.__class__ = type("Counted", (kind,), methods)
    return watched, counted


def run_gradients(draws: Any) -> int:
    """Gradients of the run itself, by its plan: those of its steps, without any pilot."""
    plan = {name: choice.value for name, choice in draws.draws.choices.items()}
    n_chains, n_draws, _ = draws.values.shape
    n_steps = n_chains * (plan["n_burnin"] + plan["thin"] * n_draws)
    return n_steps * plan["sampler"].gradients(plan["step_size"])


def measure(posterior: Any, exact: Exact, sampler: Any, **settings: Any) -> dict[str, float]:
    """Effective draws and errors of a sampler on a posterior, and their cost."""
    watched, counted = count_gradients(posterior)
    started = time.process_time()
    with unconverged():
        draws = sample(
            watched, sampler, gradient="full", check_gradient=False, random_state=0, **settings
        )
    seconds = time.process_time() - started
    if sum(counted) < run_gradients(draws):
        raise RuntimeError(
            f"{sampler} made {run_gradients(draws)} gradients by its plan, and "
            f"{sum(counted)} were counted."
        )
    table, ess = draws.summary(), worst_ess(draws.values)
    off, wide = (table["mean"] - exact.mean) / exact.sd, table["sd"] / exact.sd - 1.0
    likely = norm.isf(CHANCE / (4 * len(table)))  # of as many means and sds, on either side
    return {
        PER_SECOND: ess / seconds,
        PER_GRADIENT: 1000.0 * ess / sum(counted),
        ERROR: max(off.abs().max(), wide.abs().max()),
        "chance": likely * np.sqrt(1.0 / ess + 1.0 / exact.ess),
    }


def draw(figure: Any, found: pd.DataFrame) -> None:
    """Draw a panel a figure of merit: a row a sampler, a colour a posterior."""
    panels = figure.subplots(1, 3, sharey=True)
    for axes, column in zip(panels, (PER_SECOND, PER_GRADIENT, ERROR), strict=True):
        for name, color in COLORS.items():
            merit = found.xs(name, level="posterior")
            axes.semilogx(merit[column], merit.index, "o", color=color, label=name)
            if column == ERROR:
                axes.plot(merit["chance"], merit.index, "|", color=color, markersize=14)
        axes.set(xlabel=column, title=TITLES[column])
        axes.title.set_fontsize(10)
        tidy(axes)
    panels[0].invert_yaxis()
    panels[2].plot(
        [], [], "|", color=GREY, markersize=14, label="chance alone is above this 1 time in 20"
    )
    figure.legend(*panels[2].get_legend_handles_labels(), loc="outside lower center", ncols=4)


def gradients_a_draw(row: Any) -> dict[str, Any]:
    """Gradients of an effective draw; the effective sample size has an error of about 10 %."""
    cost = 1000.0 / row[PER_GRADIENT]
    return measured(cost, 0.1 * cost, ".0f")


def main(arguments: Sequence[str] | None = None) -> dict[str, Any]:
    """Run every sampler on every posterior; return the gradients of an effective draw."""
    options = parse(__doc__, arguments)
    n_reference, n_draws = (100, 20) if options.quick else (2000, 1000)
    with unconverged(options.quick):
        makers = (make_normal(), make_rookies(n_reference), make_linear(10 * n_reference))
    samplers = {
        "sgld, no metric": (SGLD("euler"), {"preconditioner": None, "n_draws": n_draws // 10}),
        "sgld, Euler": (SGLD("euler"), {"n_draws": n_draws}),
        "sgld, Euler, step size 1": (SGLD("euler"), {"step_size": 1.0, "n_draws": n_draws}),
        "sgld, Leimkuhler-Matthews": (SGLD("leimkuhler_matthews"), {"n_draws": n_draws}),
    }
    samplers |= {name: (name, {"n_draws": n_draws}) for name in SAMPLERS if name != "sgld"}
    all_samplers = samplers
    if options.quick:  # each sampler has tests of its own
        samplers = {name: samplers[name] for name in ("sgld, no metric", "hmc")}
    rows = {
        (name, label): measure(posterior, exact, sampler, **settings)
        for name, (posterior, exact) in zip(COLORS, makers, strict=True)
        for label, (sampler, settings) in samplers.items()
    }
    found = pd.DataFrame(rows).T.rename_axis(index=["posterior", "sampler"])
    print(found.round({PER_SECOND: 0, PER_GRADIENT: 1, ERROR: 3, "chance": 3}).to_string() + "\n")
    figure = new_figure(10, 5)
    draw(figure, found)
    figure.suptitle("Every sampler on three posteriors")
    save(figure, options.output, "samplers.png", figure.axes[0])
    beyond = found.index[found[ERROR] > found["chance"]]
    best = found[found[ERROR] <= found["chance"]].groupby(level="posterior")[PER_SECOND].idxmax()
    say(
        f"The most effective draws a second, among samplers without an error beyond chance: "
        f"{'; '.join(f'{sampler} on {name}' for name, sampler in best)}. "
        f"Beyond chance: {'; '.join(f'{sampler} on {name}' for name, sampler in beyond) or 'none'}."
    )
    if options.quick:  # one that is as in the full run
        cheap = "sgld, Leimkuhler-Matthews"
        row = measure(*makers[0], all_samplers[cheap][0], n_draws=1000)
        return {"gradients a draw": {"normal": {cheap: gradients_a_draw(row)}}}
    costs: dict[str, Any] = {name: {} for name in COLORS}
    for (name, label), row in rows.items():
        costs[name][label] = gradients_a_draw(row)
    return {"gradients a draw": costs}


if __name__ == "__main__":
    main()

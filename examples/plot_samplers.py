"""Every registered sampler on three posteriors: effective draws per second, per gradient; error
=============================================================================================

The comparison that Z. Xu, "Stochastic Gradient Langevin Dynamics for Bayesian Learning", Section 4,
leaves for the future. All take the gradient from all rows and their automatic settings, but for a
step size of 1, too long for Euler. Seconds (of processor time) and gradients are those of the
whole call, tuning and burn-in included. The distributions to compare with are

* a normal distribution of 10 parameters, neighbours correlated by 0.95: known;
* the NBA rookies' logistic regression with a Laplace prior: a long HMC run, of another seed;
* the report's linear model, Laplace prior, known noise: a Gibbs sampler (Park & Casella 2008).

To see: the worst error of all means and sds is within chance's reach where a sampler is right, on
the left of the line in the last panel. Beyond it, where the marks are hollow, draws are from
another distribution, however many there are a second.

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
from _figure import (
    BLUE,
    EXACT,
    GREEN,
    GREY,
    ORANGE,
    new_figure,
    parse,
    save,
    say,
    tidy,
    unconverged,
)
from _numbers import measured
from scipy.stats import norm
from sklearn.preprocessing import scale

from skbayes_sgld import sample
from skbayes_sgld.datasets import load_nba_rookies, make_cubic
from skbayes_sgld.diagnostics import effective_sample_size
from skbayes_sgld.likelihoods import Bernoulli, FixedNormalNoise
from skbayes_sgld.own_models import FunctionPosterior
from skbayes_sgld.posterior import GLMPosterior
from skbayes_sgld.priors import Laplace
from skbayes_sgld.sampling import SAMPLERS, SGLD

CHANCE = 0.05
EVALUATIONS = ("grad", "value_and_grad", "log_density")
BOUND = ("grad", "value_and_grad")
PER_SECOND, PER_GRADIENT = "effective draws a second", "effective draws / 1,000 gradients"
ERROR = "worst error (posterior sds)"
OVER_CHANCE = "worst error, over chance's reach"
TITLES = {PER_SECOND: "Speed", PER_GRADIENT: "Thrift", OVER_CHANCE: "Error"}
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
    posterior = GLMPosterior(
        X, y.to_numpy(float), Bernoulli(), Laplace(1.0), intercept_at_mean=True
    )
    draws = sample(posterior, "hmc", n_draws=n_reference, n_chains=8, random_state=1).values
    return posterior, Exact(draws.mean((0, 1)), draws.std((0, 1)), worst_ess(draws))


def make_linear(n_reference: int) -> tuple[Any, Exact]:
    """Linear posterior, and means and sds by Gibbs sampling."""
    X, y = make_cubic(random_state=0)
    posterior = GLMPosterior(X, y, FixedNormalNoise(1.0), Laplace(1.0), fit_intercept=False)
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
    """Draw a panel a figure of merit: a row a sampler, a colour a posterior, hollow if wrong."""
    panels = figure.subplots(1, 3, sharey=True)
    found = found.assign(**{OVER_CHANCE: found[ERROR] / found["chance"]})
    samplers = list(found.index.unique("sampler"))
    for axes, column in zip(panels, TITLES, strict=True):
        for (name, color), lower in zip(COLORS.items(), (-0.22, 0.0, 0.22), strict=True):
            merit = found.xs(name, level="posterior").loc[samplers]
            rows, wrong = np.arange(len(samplers)) + lower, merit[OVER_CHANCE].to_numpy() > 1.0
            values = merit[column].to_numpy()
            look = {"color": color, "markersize": 5.5}
            axes.semilogx(values[~wrong], rows[~wrong], "o", label=name, **look)
            axes.semilogx(values[wrong], rows[wrong], "o", markerfacecolor="white", **look)
        axes.set(xlabel=column, title=TITLES[column])
        axes.title.set_fontsize(10)
        tidy(axes, grid="x")
        for row in np.arange(len(samplers) - 1) + 0.5:
            axes.axhline(row, color="0.9", linewidth=0.8)
    panels[2].axvline(1.0, color=EXACT, linewidth=1.2, label="chance is beyond 1 time in 20")
    hollow = {"markerfacecolor": "white", "color": GREY}
    panels[2].plot([], [], "o", label="another distribution", **hollow)
    panels[0].set_yticks(np.arange(len(samplers)), samplers)
    panels[0].invert_yaxis()
    handles, labels = panels[2].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=5, fontsize=9)


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
    figure = new_figure(10.5, 5.4)
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

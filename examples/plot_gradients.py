"""Variance-reduced gradients by rows read: SAGA-LD, SVRG-LD and control variates beside plain SGLD
================================================================================================

The comparison that Xu's report, Section 4, leaves for the future. Logistic regression on 10,000
generated rows, three coefficients, a standard normal prior. All chains make the same recursion
(Leimkuhler-Matthews steps, no preconditioner) in batches of 50 and differ in the gradient alone;
plain minibatches run with a hundredth of the step, too. An error is that of one chain, root mean
square over chains and coefficients, against a long HMC run; bars are two standard errors over the
chains. Chains start at draws of the normal approximation, so that no method pays for a burn-in;
control variates are charged with the mode that they need.

To see: at the same step the batches' noise makes plain SGLD's sds about twice as large as they
should be, however long it runs; a hundredth of the step mends most of that and moves a hundred
times more slowly. After a million rows, a hundred passes, one chain knows the sds to 4 or 5 % by
SAGA and control variates, to 8 % by SVRG, to 46 % by the gradient from all rows.

Usage: ``python examples/plot_gradients.py [--output DIR] [--quick]``; about a minute.
"""

# sphinx_gallery_thumbnail_path = "figures/thumbnail_gradients_by_rows.png"

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from _figure import BLUE, GREEN, ORANGE, RED, new_figure, parse, save, say, show_rows, tidy
from _numbers import measured

from skbayes_sgld import sample
from skbayes_sgld.datasets import make_logistic
from skbayes_sgld.kernels import Kernel
from skbayes_sgld.likelihoods import Bernoulli
from skbayes_sgld.optimizers import find_mode
from skbayes_sgld.posterior import GLMPosterior
from skbayes_sgld.priors import Normal
from skbayes_sgld.sampling import SAGA, SVRG, ControlVariate, Full, Gradient, Minibatch
from skbayes_sgld.sampling.tuning.mode import Mode

BATCH_SIZE, PERIOD = 50, 100
STEP = 0.2  # over the largest curvature
MODE_PASSES = 10  # over the rows: Newton's method takes 8 here
PURPLE = "#7B3294"


class Method(NamedTuple):
    """A gradient, its share of the step, and the rows that it reads, once and at a step."""

    gradient: Gradient
    share: float
    once: int
    each: float
    color: str
    marker: str


def methods(n: int) -> dict[str, Method]:
    """Gradients to compare, on ``n`` rows."""
    m = BATCH_SIZE
    plain, slow = Minibatch(replacement=False), Minibatch(replacement=False)
    passes = (MODE_PASSES + 1) * n
    return {
        "all rows": Method(Full(), 1.0, 0, n, "black", "s"),
        "plain": Method(plain, 1.0, 0, m, ORANGE, "o"),
        "plain, step / 100": Method(slow, 0.01, 0, m, RED, "v"),
        "SVRG": Method(SVRG(PERIOD), 1.0, 0, 2 * m + n / PERIOD, PURPLE, "D"),
        "SAGA": Method(SAGA(), 1.0, n, m, GREEN, "^"),
        "control variates": Method(ControlVariate(), 1.0, passes, m, BLUE, "o"),
    }


def run(
    posterior: GLMPosterior, mode: Mode, method: Method, start: np.ndarray, n_rows: int
) -> tuple[np.ndarray, np.ndarray]:
    """Draws of chains that read ``n_rows`` each, and the rows read at each draw."""
    curvature = np.linalg.eigvalsh(np.linalg.inv(mode.metric.root @ mode.metric.root.T))[-1]
    kernel = Kernel(
        posterior,
        "sgld",
        step_size=method.share * STEP / curvature,
        gradient=method.gradient,
        batch_size=BATCH_SIZE if method.gradient.minibatch else None,
        mode=mode,
    )
    n_steps = int((n_rows - method.once) / method.each)
    thin = max(1, n_steps // 2000)
    draws = kernel.run(start, n_steps // thin, thin=thin, random_state=1).draws
    read = method.once + method.each * thin * np.arange(1, draws.shape[1] + 1)
    return draws, read


def errors(draws: np.ndarray, mean: np.ndarray, sd: np.ndarray) -> dict[str, np.ndarray]:
    """Squared errors ``(chain,)`` of the means and of the sds, mean over the coefficients."""
    off = (draws.mean(axis=1) - mean) / sd
    wide = draws.std(axis=1, ddof=1) / sd - 1.0
    return {"mean": np.mean(off**2, axis=1), "sd": np.mean(wide**2, axis=1)}


def root_with_error(squares: np.ndarray) -> tuple[float, float]:
    """Root of the mean over chains, and its standard error."""
    root = np.sqrt(squares.mean())
    return float(root), float(0.5 * squares.std(ddof=1) / np.sqrt(len(squares)) / root)


def draw(figure: Any, found: dict[str, dict[str, Any]], chosen: dict[str, Method]) -> None:
    """Draw the errors of means and sds against the rows read."""
    panels = figure.subplots(1, 2, sharey=True)
    titles = {"mean": "Error of the posterior means (posterior sds)"}
    titles |= {"sd": "Relative error of the posterior sds"}
    for axes, (kind, title) in zip(panels, titles.items(), strict=True):
        for name, curves in found.items():
            method, (value, error) = chosen[name], np.transpose(curves[kind])
            axes.errorbar(
                curves["read"],
                value,
                np.minimum(2.0 * error, 0.9 * value),
                color=method.color,
                marker=method.marker,
                markersize=4,
                linewidth=1.0,
                label=name,
            )
        axes.set(xscale="log", yscale="log", xlabel="rows read by a chain")
        tidy(axes, title)
    panels[0].set_ylabel("error of one chain (root mean square)")
    handles = panels[0].get_legend_handles_labels()
    figure.legend(*handles, loc="outside lower center", ncols=3, frameon=False)
    figure.suptitle("Gradients by rows read: logistic regression on 10,000 rows, batches of 50")


def main(arguments: Sequence[str] | None = None) -> dict[str, Any]:
    """Run every gradient, draw the figure and print the errors at the end."""
    options = parse(__doc__, arguments)
    n, n_rows, n_chains = 10_000, 1_000_000, 4 if options.quick else 24
    X, y = make_logistic(n, random_state=0)
    posterior = GLMPosterior(X, y.astype(float), Bernoulli(), Normal(1.0))
    mode = find_mode(posterior, np.zeros(posterior.n_params))
    n_exact = 1500 if options.quick else n_rows // 200
    exact = sample(posterior, "hmc", n_draws=n_exact, random_state=2).values
    mean, sd = exact.mean((0, 1)), exact.std((0, 1))
    rng = np.random.default_rng(0)
    start = mode.theta + mode.metric.sqrt(rng.standard_normal((n_chains, len(sd))))
    chosen, found, rows = methods(n), {}, {}
    if options.quick:
        chosen = {name: chosen[name] for name in ("all rows", "control variates")}
    for name, method in chosen.items():
        draws, read = run(posterior, mode, method, start, n_rows)
        lengths = np.unique(np.geomspace(10, draws.shape[1], 9).astype(int))
        each = [errors(draws[:, :length], mean, sd) for length in lengths]
        found[name] = {kind: [root_with_error(e[kind]) for e in each] for kind in ("mean", "sd")}
        found[name]["read"] = read[lengths - 1]
        ratio = draws.std(axis=(0, 1)) / sd
        rows[name] = {
            "error of means": measured(*found[name]["mean"][-1], "±.3f"),
            "error of sds": measured(*found[name]["sd"][-1], "±.3f"),
            "least sd over the exact one": measured(ratio.min(), None),
            "largest": measured(ratio.max(), None),
        }
    say(f"After {n_rows:,} rows read by each of {n_chains} chains (± standard error):")
    show_rows(rows)
    figure = new_figure(10.0, 5.0)
    draw(figure, found, chosen)
    save(figure, options.output, "gradients_by_rows.png", figure.axes[0])
    return rows


if __name__ == "__main__":
    main()

"""Plain SGLD: microseconds a step of all chains, beside BlackJAX.

Logistic likelihood, normal prior on the coefficients, flat on the intercept; Euler steps without
a preconditioner on minibatches with replacement; float64 on both sides. Both keep every step.
Ours is `run_chains`, which draws its random numbers and gathers its rows a block of steps at a
time, on one core. BlackJAX is one jitted scan over the steps, vmapped over the chains, whose
indices are drawn inside the scan, as its step is written, or all ahead; it is compiled before it
is timed. The times are medians of interleaved rounds, with minima in brackets; the ratios are of
the medians, and below 1 where ours is faster.
"""

from __future__ import annotations

from itertools import product

import numpy as np
from scipy.special import expit

from benchmarks._tools import heading, interleave, rival, table
from skbayes_sgld.posterior import Bernoulli, GLMPosterior, Normal
from skbayes_sgld.sampling import SGLD, Constant, Identity, Minibatch
from skbayes_sgld.sampling.chains import Run, run_chains
from skbayes_sgld.sampling.protocol import Dynamics

SIZES = (1340, 20, 32), (100_000, 50, 100)  # rows, columns, rows of a batch
CHAINS = 1, 4, 16
N_STEPS = 3000
ROUNDS = 7


def make_run(X: np.ndarray, y: np.ndarray, batch_size: int, step_size: float) -> Run:
    """Our run of the model: plain SGLD to the letter."""
    posterior = GLMPosterior(X, y, Bernoulli(), Normal(scale=1.0))
    return Run(
        SGLD(integrator="euler"),
        Dynamics(Minibatch().bind(posterior, None), Identity().bind(posterior.n_params, None)),
        Constant(),
        step_size,
        posterior.n_samples,
        batch_size,
    )


def make_data(n: int, d: int) -> tuple[np.ndarray, np.ndarray]:
    """Standard normal columns and labels that they explain in part."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d))
    return X, (rng.random(n) < expit(X @ rng.normal(0.0, 0.3, d))).astype(float)


def main() -> None:
    peer = rival("blackjax")
    heading(__doc__)
    rows = []
    for (n, d, batch_size), n_chains in product(SIZES, CHAINS):
        X, y = make_data(n, d)
        step_size = 0.1 / n
        run, start = make_run(X, y, batch_size, step_size), np.zeros((n_chains, d + 1))
        tasks = {"ours": lambda run=run, start=start: run_chains(run, start, n_draws=N_STEPS)}
        compile_time = {}
        for ahead in (False, True):
            sample, compile_time[ahead] = peer.sgld(
                X,
                y,
                batch_size=batch_size,
                step_size=step_size,
                n_chains=n_chains,
                n_steps=N_STEPS,
                ahead=ahead,
            )
            tasks["ahead" if ahead else "inside"] = lambda sample=sample: sample(0)
        interleave(tasks, 1)  # the first call of anything is slower
        micro = {k: v * 1e6 / N_STEPS for k, v in interleave(tasks, ROUNDS).items()}
        median = {k: np.median(v) for k, v in micro.items()}
        rows.append(
            [f"n={n} d={d} B={batch_size}", str(n_chains)]
            + [f"{median[k]:.1f} ({micro[k].min():.1f})" for k in tasks]
            + [f"{median['ours'] / median[k]:.2f}" for k in ("inside", "ahead")]
            + [f"{compile_time[False]:.1f} s"]
        )
    print(f"{peer.VERSION}; {N_STEPS} steps, {ROUNDS} rounds; microseconds a step")
    table(
        [
            "size",
            "chains",
            "ours",
            "indices inside",
            "indices ahead",
            "ours/inside",
            "ours/ahead",
            "its compile",
        ],
        rows,
    )


if __name__ == "__main__":
    main()

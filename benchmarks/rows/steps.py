"""Plain SGLD: microseconds a step of all chains, beside BlackJAX.

Logistic likelihood, normal prior on the coefficients, flat on the intercept; Euler steps without
a preconditioner on minibatches with replacement; float64 on both sides, and both keep every step.
Ours is `run_chains`, which draws its random numbers and gathers its rows a block of steps at a
time. BlackJAX is one jitted scan over the steps, vmapped over the chains, whose indices are drawn
inside the scan, as its step is written, or all ahead; it is compiled before it is timed.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from benchmarks import _data
from benchmarks._tools import Figure, compare, interleave, rival, row
from skbayes_sgld.likelihoods import Bernoulli
from skbayes_sgld.posterior import GLMPosterior
from skbayes_sgld.priors import Normal
from skbayes_sgld.sampling import SGLD, Constant, Identity, Minibatch
from skbayes_sgld.sampling.dynamics import Dynamics
from skbayes_sgld.sampling.loop import run_chains
from skbayes_sgld.sampling.run import Run

CHAINS = 1, 4, 16


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


def _steps(n: int, d: int, batch_size: int, n_steps: int, rounds: int) -> Iterator[Figure]:
    peer, size = rival("blackjax"), f"n={n:,} d={d} B={batch_size}"
    X, labels = _data.logistic(n, d)
    y = labels.astype(float)
    step_size = 0.1 / n
    run, others = make_run(X, y, batch_size, step_size), []
    for n_chains in CHAINS:
        start = np.zeros((n_chains, d + 1))
        tasks = {"ours": lambda start=start: run_chains(run, start, n_draws=n_steps)}
        for name, ahead in (("inside", False), ("ahead", True)):
            sample, _ = peer.sgld(
                X,
                y,
                batch_size=batch_size,
                step_size=step_size,
                n_chains=n_chains,
                n_steps=n_steps,
                ahead=ahead,
            )
            tasks[name] = lambda sample=sample: sample(0)
        micro = {k: v * 1e6 / n_steps for k, v in interleave(tasks, rounds).items()}
        work = f"SGLD step, {size}, C={n_chains}"
        for name, bound in (("inside", 1.0), ("ahead", None)):
            others.append(
                compare(
                    work,
                    f"BlackJAX, indices {name} its scan".replace("ahead its", "ahead of its"),
                    micro["ours"],
                    micro[name],
                    unit="us",
                    at_most=bound,
                )
            )
    yield from sorted(others, key=lambda figure: figure.at_most is None)


@row("step-small", rounds=15)
def small(rounds: int, quick: bool) -> Iterator[Figure]:
    """Plain SGLD step, 1,340 rows of 20 columns, batches of 32: BlackJAX."""
    return _steps(1340, 20, 32, 500 if quick else 3000, rounds)


@row("step-medium", rounds=15)
def medium(rounds: int, quick: bool) -> Iterator[Figure]:
    """Plain SGLD step, 100,000 rows of 50 columns, batches of 100: BlackJAX."""
    return _steps(100_000, 50, 100, 500 if quick else 3000, rounds)


@row("step-large", rounds=15)
def large(rounds: int, quick: bool) -> Iterator[Figure]:
    """Plain SGLD step, 100,000 rows of 100 columns, batches of 1,000: BlackJAX."""
    return _steps(100_000, 100, 1000, 100 if quick else 400, rounds)

"""BlackJAX: stochastic gradient Langevin dynamics of a logistic regression."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter

import blackjax
import jax
import jax.numpy as jnp
import numpy as np
from blackjax.sgmcmc.gradients import grad_estimator

jax.config.update("jax_enable_x64", True)

VERSION = f"BlackJAX {blackjax.__version__} (JAX {jax.__version__})"


def sgld(
    X: np.ndarray,
    y: np.ndarray,
    *,
    batch_size: int,
    step_size: float,
    n_chains: int,
    n_steps: int,
    ahead: bool,
) -> tuple[Callable[[int], np.ndarray], float]:
    """A function from a seed to all positions ``(C, T, d + 1)``, and its compile time.

    Parameters
    ----------
    ahead : bool
        Draw the indices of all steps before the scan over the steps, not inside it.
    """
    n = len(y)
    rows = jnp.asarray(np.column_stack([X, np.ones(n)])), jnp.asarray(y)

    def log_prior(theta):
        return -0.5 * jnp.sum(jnp.square(theta[:-1]))  # the intercept, last, has a flat prior

    def log_likelihood(theta, row):
        x, label = row
        return label * (x @ theta) - jnp.logaddexp(0.0, x @ theta)

    algorithm = blackjax.sgld(grad_estimator(log_prior, log_likelihood, n))

    def step(theta, key, idx):
        theta = algorithm.step(key, theta, (rows[0][idx], rows[1][idx]), step_size)
        return theta, theta

    def step_from_key(theta, key):
        for_rows, for_noise = jax.random.split(key)
        return step(theta, for_noise, jax.random.randint(for_rows, (batch_size,), 0, n))

    def chain(key):
        start = jnp.zeros(rows[0].shape[1])
        if not ahead:
            return jax.lax.scan(step_from_key, start, jax.random.split(key, n_steps))[1]
        for_rows, for_noise = jax.random.split(key)
        idx = jax.random.randint(for_rows, (n_steps, batch_size), 0, n)
        keys = jax.random.split(for_noise, n_steps)
        return jax.lax.scan(lambda theta, now: step(theta, *now), start, (keys, idx))[1]

    def chains(key):
        return jax.vmap(chain)(jax.random.split(key, n_chains))

    begin = perf_counter()
    compiled = jax.jit(chains).lower(jax.random.key(0)).compile()
    seconds = perf_counter() - begin
    return lambda seed: np.asarray(compiled(jax.random.key(seed))), seconds

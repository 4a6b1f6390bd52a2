"""NumPyro: the No-U-Turn sampler on a logistic regression."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np
import numpyro

N_CHAINS = 4
numpyro.set_host_device_count(N_CHAINS)  # before JAX starts: it lets the chains run in parallel

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
from numpyro import distributions as dist  # noqa: E402
from numpyro.infer import MCMC, NUTS  # noqa: E402

jax.config.update("jax_enable_x64", True)

VERSION = f"NumPyro {numpyro.__version__} (JAX {jax.__version__})"
CORES = os.cpu_count()

_compiling: list[float] = []

VOLATILITY_NAMES = ["sigma", "nu", "log volatility, first", "middle", "last"]


@jax.monitoring.register_event_duration_secs_listener
def _listen(event: str, seconds: float, **_: object) -> None:
    if event.startswith("/jax/core/compile/"):  # tracing, lowering and XLA
        _compiling.append(seconds)


def nuts(
    X: np.ndarray, y: np.ndarray, *, n_draws: int, dense_mass: bool, seed: int
) -> tuple[np.ndarray, float]:
    """Draws ``(C, S, d + 1)``, the intercept last, and the seconds of compiling.

    As many steps of warm-up as draws; the chains run in parallel, on all cores.
    """
    design, labels = jnp.asarray(X), jnp.asarray(y)

    def model():
        coef = numpyro.sample("coef", dist.Normal(0, 1).expand([X.shape[1]]).to_event(1))
        flat = dist.ImproperUniform(dist.constraints.real, (), ())
        intercept = numpyro.sample("intercept", flat)
        numpyro.sample("y", dist.Bernoulli(logits=design @ coef + intercept), obs=labels)

    draws = _run(model, n_draws=n_draws, dense_mass=dense_mass, seed=seed)
    parts = [np.asarray(draws["coef"]), np.asarray(draws["intercept"])[..., None]]
    return np.concatenate(parts, axis=2), sum(_compiling)


def _run(model: Callable[[], None], *, n_draws: int, dense_mass: bool, seed: int) -> Any:
    _compiling.clear()
    mcmc = MCMC(
        NUTS(model, dense_mass=dense_mass),
        num_warmup=n_draws,
        num_samples=n_draws,
        num_chains=N_CHAINS,
        chain_method="parallel",
        progress_bar=False,
    )
    mcmc.run(jax.random.key(seed))
    return mcmc.get_samples(group_by_chain=True)


def nuts_volatility(returns: np.ndarray, *, n_draws: int, seed: int) -> tuple[np.ndarray, float]:
    """Draws ``(C, S, 5)`` of :data:`VOLATILITY_NAMES`, and the seconds of compiling.

    The walk is built from independent normal steps, as in NumPyro's own example.
    """
    observed, T = jnp.asarray(returns), len(returns)

    def model():
        sigma = numpyro.sample("sigma", dist.Exponential(50.0))
        nu = numpyro.sample("nu", dist.Exponential(0.1))
        level = numpyro.sample("level", dist.Normal(0.0, 100.0))
        steps = numpyro.sample("steps", dist.Normal(0, 1).expand([T - 1]).to_event(1))
        walk = level + sigma * jnp.concatenate([jnp.zeros(1), jnp.cumsum(steps)])
        numpyro.deterministic("walk", walk)
        numpyro.sample("y", dist.StudentT(nu, 0.0, jnp.exp(walk)), obs=observed)

    draws = _run(model, n_draws=n_draws, dense_mass=False, seed=seed)
    walk = np.asarray(draws["walk"])[..., [0, T // 2, T - 1]]
    head = [np.asarray(draws[name])[..., None] for name in ("sigma", "nu")]
    return np.concatenate([*head, walk], axis=2), sum(_compiling)

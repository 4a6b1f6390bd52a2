"""NumPyro: the No-U-Turn sampler on the models of the package."""

from __future__ import annotations

import os
from collections.abc import Callable
from time import perf_counter
from typing import Any

import numpy as np
import numpyro

N_CHAINS = 4
# lets the chains run in parallel, if it is said before JAX is imported: hence the late imports
numpyro.set_host_device_count(N_CHAINS)

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
from numpyro import distributions as dist  # noqa: E402
from numpyro.infer import MCMC, NUTS  # noqa: E402

jax.config.update("jax_enable_x64", True)

VERSION = f"NumPyro {numpyro.__version__} (JAX {jax.__version__})"
CORES = os.cpu_count()

VOLATILITY_NAMES = ["sigma", "nu", "log volatility, first", "middle", "last"]

_compiling: list[float] = []
_Model = tuple[Callable[[], None], Callable[[dict[str, np.ndarray]], np.ndarray]]


@jax.monitoring.register_event_duration_secs_listener
def _listen(event: str, seconds: float, **_: object) -> None:
    if event.startswith("/jax/core/compile/"):  # tracing, lowering and XLA
        _compiling.append(seconds)


class Sampler:
    """Draws ``(C, S, P)`` of a model from a seed, and the seconds of compiling.

    As many steps of warm-up as draws. It compiles at the first call only.
    """

    def __init__(
        self, model: _Model, *, n_draws: int, dense_mass: bool = True, chain_method: str
    ) -> None:
        program, self._collect = model
        self._mcmc = MCMC(
            NUTS(program, dense_mass=dense_mass),
            num_warmup=n_draws,
            num_samples=n_draws,
            num_chains=N_CHAINS,
            chain_method=chain_method,
            progress_bar=False,
        )

    def __call__(self, seed: int) -> tuple[np.ndarray, float]:
        _compiling.clear()
        self._mcmc.run(jax.random.key(seed))
        draws = self._mcmc.get_samples(group_by_chain=True)
        return self._collect({k: np.asarray(v) for k, v in draws.items()}), sum(_compiling)


def _flat(name: str, *shape: int) -> Any:
    return numpyro.sample(name, dist.ImproperUniform(dist.constraints.real, shape, ()))


def logistic(X: np.ndarray, y: np.ndarray, prior_sd: float = 1.0) -> _Model:
    """Normal prior of the coefficients, flat prior of the intercept, which is last."""
    design, labels = jnp.asarray(X), jnp.asarray(y)

    def model():
        coef = numpyro.sample("coef", dist.Normal(0, prior_sd).expand([X.shape[1]]).to_event(1))
        logits = design @ coef + _flat("intercept")
        numpyro.sample("y", dist.Bernoulli(logits=logits), obs=labels)

    return model, lambda d: np.concatenate([d["coef"], d["intercept"][..., None]], axis=2)


def draw_logistic(X: np.ndarray, y: np.ndarray, n_draws: int) -> tuple[np.ndarray, float]:
    """Draws ``(C, S, P)`` of :func:`logistic`, and their seconds without the compiler's."""
    start = perf_counter()
    draws, compiling = Sampler(logistic(X, y), n_draws=n_draws, chain_method="parallel")(0)
    return draws, perf_counter() - start - compiling


def softmax(X: np.ndarray, y: np.ndarray, prior_sd: float = 1.0) -> _Model:
    """Draws of several classes, class by class, less the mean over the classes.

    What is sampled are the coordinates of an orthonormal basis of what remains then: a class
    fewer, and no direction that the data do not see.
    """
    design, labels = jnp.asarray(X), jnp.asarray(y)
    n_classes = int(y.max()) + 1
    square = np.eye(n_classes)
    square[:, 0] = 1.0
    basis = np.linalg.qr(square)[0][:, 1:]  # (K, K - 1), orthogonal to the ones

    def model():
        shape = [X.shape[1], n_classes - 1]
        coef = numpyro.sample("coef", dist.Normal(0, prior_sd).expand(shape).to_event(2))
        intercept = _flat("intercept", n_classes - 1)
        logits = (design @ coef + intercept) @ basis.T
        numpyro.sample("y", dist.Categorical(logits=logits), obs=labels)

    def collect(d: dict[str, np.ndarray]) -> np.ndarray:
        rows = np.concatenate([d["coef"], d["intercept"][:, :, None]], axis=2)  # (C, S, d + 1, K-1)
        by_class = np.moveaxis(rows @ basis.T, 3, 2)
        return by_class.reshape(*rows.shape[:2], -1)

    return model, collect


def linear_laplace(X: np.ndarray, y: np.ndarray, scale: float, shape: float = 1e-3) -> _Model:
    """Laplace prior, flat intercept, inverse gamma noise variance; as many rows as there are."""
    design, target = jnp.asarray(X), jnp.asarray(y)
    rate = shape * float(np.var(y))

    def model():
        coef = numpyro.sample("coef", dist.Laplace(0, scale).expand([X.shape[1]]).to_event(1))
        variance = numpyro.sample("noise_variance", dist.InverseGamma(shape, rate))
        mean = design @ coef + _flat("intercept")
        numpyro.sample("y", dist.Normal(mean, jnp.sqrt(variance)), obs=target)

    names = "intercept", "noise_variance"
    return model, lambda d: np.concatenate([d["coef"], *(d[k][..., None] for k in names)], axis=2)


def regression(
    X: np.ndarray,
    y: np.ndarray,
    prior: dist.Distribution,
    observe: Callable[..., dist.Distribution],
    **own: dist.Distribution,
) -> _Model:
    """One prior for all coefficients, a flat intercept, and own parameters of the observations."""
    design, target = jnp.asarray(X), jnp.asarray(y)

    def model():
        coef = numpyro.sample("coef", prior.expand([X.shape[1]]).to_event(1))
        values = [numpyro.sample(name, of_name) for name, of_name in own.items()]
        numpyro.sample("y", observe(design @ coef + _flat("intercept"), *values), obs=target)

    names = "intercept", *own
    return model, lambda d: np.concatenate([d["coef"], *(d[k][..., None] for k in names)], axis=2)


def horseshoe(X: np.ndarray, y: np.ndarray, log_tau: float, *, linear: bool) -> _Model:
    """Regularised horseshoe of scale 1, slab 2 and 4 degrees of freedom, not centred.

    Draws are of the coefficients, the intercept, the log of the noise variance of a linear model,
    and the logs of tau, lambda and c.
    """
    design, target = jnp.asarray(X), jnp.asarray(y)

    def model():
        variance = 1.0
        if linear:
            prior = dist.InverseGamma(1e-3, 1e-3 * float(np.var(y)))
            variance = numpyro.sample("noise_variance", prior)
        log_size = log_tau + 0.5 * jnp.log(variance)
        tau = numpyro.sample("tau", dist.HalfCauchy(1.0)) * jnp.exp(log_size)
        local = numpyro.sample("lambda", dist.HalfCauchy(1.0).expand([X.shape[1]]).to_event(1))
        c2 = numpyro.sample("c2", dist.InverseGamma(2.0, 8.0))
        scale = tau * local * jnp.sqrt(c2 / (c2 + (tau * local) ** 2))
        z = numpyro.sample("z", dist.Normal(0, 1).expand([X.shape[1]]).to_event(1))
        coef = numpyro.deterministic("coef", scale * z)
        numpyro.deterministic("log_tau", jnp.log(tau))
        eta = design @ coef + _flat("intercept")
        seen = dist.Normal(eta, jnp.sqrt(variance)) if linear else dist.Bernoulli(logits=eta)
        numpyro.sample("y", seen, obs=target)

    def collect(d: dict[str, np.ndarray]) -> np.ndarray:
        noise = [np.log(d["noise_variance"])[..., None]] if linear else []
        hyper = d["log_tau"][..., None], np.log(d["lambda"]), 0.5 * np.log(d["c2"])[..., None]
        return np.concatenate([d["coef"], d["intercept"][..., None], *noise, *hyper], axis=2)

    return model, collect


def volatility(returns: np.ndarray) -> _Model:
    """Stochastic volatility, of :data:`VOLATILITY_NAMES`.

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

    def collect(d: dict[str, np.ndarray]) -> np.ndarray:
        head = [d[name][..., None] for name in ("sigma", "nu")]
        return np.concatenate([*head, d["walk"][..., [0, T // 2, T - 1]]], axis=2)

    return model, collect

"""Bias of a step size, measured by running the sampler on the posterior and on a normal.

A pilot runs the sampler on the posterior and, with the same random numbers, on the normal
distribution of the mode, where its variance is known. The difference of the two has little
variance, so that errors of a fraction of a percent are seen in a tenth of a second.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from skbayes_sgld.posterior.base import BasePosterior
from skbayes_sgld.sampling.chains import ChainStreams, Run, draw_block, start_normals
from skbayes_sgld.sampling.gradients import BoundGradient, Full
from skbayes_sgld.sampling.preconditioners.metric import Metric
from skbayes_sgld.sampling.protocol import Dynamics, Sampler, State
from skbayes_sgld.sampling.tuning.adaptation import FIRST_CHAIN
from skbayes_sgld.sampling.tuning.mode import Mode
from skbayes_sgld.sampling.tuning.thresholds import THRESHOLDS

Array = NDArray[Any]

STEP_SIZES = (0.5, 0.35, 0.25, 0.18, 0.125, 0.09, 0.0625, 0.045, 0.03, 0.02)

_SMALLEST = 0.05  # step size at which a variance is measured; below, it is extrapolated
_LOST = 1e4  # times the variance at the mode: such chains have left the posterior
_BLOCK = 20  # steps whose random numbers are drawn at a time
_SEED = 0x5EED  # of measurements that do not depend on the posterior


class Bias(NamedTuple):
    """Error of a sampler's moments at a step size.

    Attributes
    ----------
    size : float
        The largest error of a mean, in posterior sds, or of an sd, relative.
    doubt : float
        Two standard errors of its measurement.
    width : float
        The largest variance of the pilot's draws over that at the mode.
    time : float
        Autocorrelation time of the sampler on the normal distribution of the mode, in steps.
    """

    size: float
    doubt: float
    width: float
    time: float


class StandardNormal(BasePosterior):
    """The standard normal distribution of ``n_params`` coordinates."""

    def __init__(self, n_params: int) -> None:
        self.n_params, self.param_names = n_params, [f"u[{j}]" for j in range(n_params)]

    def log_density(self, theta: Array) -> Array:
        """Log density up to a constant ``(C,)``."""
        return -0.5 * np.einsum("cp,cp->c", theta, theta)

    def grad(self, theta: Array) -> Array:
        """Gradient of the log density ``(C, P)``."""
        return -theta


class _Remembered(BoundGradient):
    """A gradient whose last value is kept, since the pilot and the sampler ask for the same."""

    def __init__(self, inner: BoundGradient) -> None:
        super().__init__(inner.posterior)
        self._inner = inner
        self._at: Array | None = None

    def prepare(self, idx: Array | None) -> Any:
        return self._inner.prepare(idx)

    def at(self, prepared: Any, t: int) -> Any:
        self._at = None  # another step, another batch
        return self._inner.at(prepared, t)

    def begin(self, theta: Array) -> State:
        return self._inner.begin(theta)

    def __call__(self, theta: Array, batch: Any, memory: State | None = None) -> Array:
        if self._at is None or not np.array_equal(self._at, theta):
            value = self._inner(theta, batch, memory)
            self._at, self._value = theta.copy(), value
        return self._value.copy()


def measure_bias(run: Run, mode: Mode, step_size: float, seed: int) -> Bias:
    """Measure the bias of a step size, for a run in the metric of the mode's curvature.

    Two identities hold under every density (integration by parts): with u the parameters whitened
    by the metric, ``E[d log p / d u_j] = 0`` and ``E[-u_j d log p / d u_j] = tau``. Their errors
    are those of the means and of the variances. The chain on the normal distribution has the
    variance :func:`normal_inflation` times tau, and a mean of zero.

    Parameters
    ----------
    run : Run
        Its preconditioner is the mode's metric.
    mode : Mode
    step_size : float
    seed : int
        Seed of the pilot's own chains.

    Returns
    -------
    bias : Bias
        Of infinite size where a chain overflows.
    """
    tau, P = float(run.dynamics.temperature), mode.theta.size
    posterior = run.dynamics.gradient.posterior
    seen = (run.batch_size or run.n_samples or 1) * posterior.n_predictors
    n_chains = int(np.clip(THRESHOLDS.pilot_rows // seen, *THRESHOLDS.pilot_chains))
    whitened = np.sqrt(tau) * start_normals(seed, _pilot_chains(n_chains), P)
    gradient = _Remembered(run.dynamics.gradient.of_run())
    dynamics = replace(run.dynamics, gradient=gradient)
    actual = _Chain(run.sampler, dynamics, mode.theta + mode.unwhiten(whitened))
    dynamics = Dynamics(Full().bind(StandardNormal(P)), Metric(P), temperature=tau)
    normal = _Chain(run.sampler, dynamics, whitened)
    declared = run.sampler.pace(np.ones(P), step_size)[1]
    n_burnin = int(np.ceil(THRESHOLDS.pilot_burnin * declared))
    kept = int(np.ceil(THRESHOLDS.pilot_steps * STEP_SIZES[0] / step_size))
    first, second, square, total, total_square = np.zeros((5, n_chains, P))
    streams, noise = [ChainStreams(seed, c) for c in _pilot_chains(n_chains)], None
    if run.sampler.uses_noise:
        noise = np.concatenate([s.normals(1, run.sampler.n_normals(P)) for s in streams])
    for chain in (actual, normal):
        chain.begin(noise)
    eta = np.full(_BLOCK, step_size)
    with np.errstate(all="ignore"):
        for t in range(n_burnin + kept):
            at = t % _BLOCK
            if at == 0:
                normals, idx = draw_block(run, streams, _BLOCK, P)
                prepared = gradient.prepare(idx)
                actual.prepare(normals, eta)
                normal.prepare(normals, eta)
            batch = gradient.at(prepared, at)
            if t >= n_burnin:
                theta, v = actual.state["theta"], normal.state["theta"]
                u = mode.whiten(theta - mode.theta)
                slope = mode.metric.sqrt_t(gradient(theta, batch, actual.state))
                first += slope + v
                second -= v * v + u * slope
                square += u * u
                total += v
                total_square += v * v
            actual.step(eta[at], at, batch)
            normal.step(eta[at], at, None)
        known = normal_inflation(run.sampler, step_size, P) - 1.0
        errors = np.stack([first / (kept * np.sqrt(tau)), 0.5 * (second / (kept * tau) + known)])
    width = float(square.mean(axis=0).max() / (kept * tau))
    if not np.isfinite(errors).all() or not width < _LOST:
        return Bias(np.inf, 0.0, np.inf, declared)
    size = np.abs(errors.mean(axis=1))
    doubt = 2.0 * errors.std(axis=1, ddof=1) / np.sqrt(n_chains)
    worst = np.unravel_index(np.argmax(size - doubt), size.shape)
    variance = tau * (1.0 + known)
    of_mean = np.square(total).mean() / (kept * variance)
    of_square = np.square(total_square - kept * variance).mean() / (2.0 * kept * variance**2)
    return Bias(float(size[worst]), float(doubt[worst]), width, float(max(of_mean, of_square)))


def choose_step_size(
    run: Run, mode: Mode, seed: int, sizes: tuple[float, ...]
) -> tuple[float, Bias]:
    """Largest step size in the metric of the curvature that biases no moment visibly.

    Parameters
    ----------
    run : Run
    mode : Mode
    seed : int
    sizes : tuple of float
        To choose from, the largest first.

    Returns
    -------
    step_size : float
        The best that was tried where all of them bias, or shorter steps do not help.
    bias : Bias
        As measured at it.
    """
    at, best = 0, (measure_bias(run, mode, sizes[0], seed), 0)
    bias = best[0]
    limit = THRESHOLDS.max_bias
    if bias.size - bias.doubt > limit:
        limit = largest_error(run.sampler, sizes, mode.theta.size)
    while bias.size - bias.doubt > limit and at < len(sizes) - 1:
        # the error is of second order in the step
        predicted = sizes[at] * np.sqrt(limit / bias.size)
        smaller = [i for i, step in enumerate(sizes) if i > at and step <= predicted]
        at = min([*smaller, at + 3, len(sizes) - 1])
        bias = measure_bias(run, mode, sizes[at], seed)
        if bias.size - bias.doubt > THRESHOLDS.least_gain * best[0].size:
            break
        best = bias, at
    return sizes[best[1]], best[0]


def largest_error(sampler: Sampler, sizes: tuple[float, ...], n_params: int) -> float:
    """Largest error of a moment at which a step size is accepted, relative to an sd.

    It is ``THRESHOLDS.max_bias`` for every sampler that some step size keeps within it on a normal
    target. Of another sampler the least error that any of them leaves is not the step size's
    (PSGLD's memory adds what a shorter step takes away), and the same margin is granted beyond it.
    """
    errors = []
    for step_size in reversed(sizes):
        errors.append(abs(np.sqrt(normal_inflation(sampler, step_size, n_params)) - 1.0))
        if errors[-1] <= THRESHOLDS.max_bias:
            return THRESHOLDS.max_bias
    return float(min(errors)) + THRESHOLDS.max_bias


def step_sizes(sampler: Sampler) -> tuple[float, ...]:
    """Step sizes to choose from, from the sampler's own on a normal target downwards."""
    first = sampler.pace(np.ones(1))[0]
    return tuple(round(float(first * step / STEP_SIZES[0]), 6) for step in STEP_SIZES)


def _pilot_chains(n_chains: int) -> range:
    return range(FIRST_CHAIN, FIRST_CHAIN + n_chains)


class _Chain:
    """Chains of a run's sampler on one of the two targets."""

    def __init__(self, sampler: Sampler, dynamics: Dynamics, start: Array) -> None:
        self._sampler, self._dynamics, self._start = sampler, dynamics, start

    def begin(self, noise: Array | None) -> None:
        """Make the state, as a run does."""
        self.state = self._sampler.init(self._start.copy(), noise)
        self._sampler.settle(self.state, float(self._dynamics.temperature))
        self.state |= self._dynamics.gradient.begin(self._start)

    def prepare(self, normals: Array | None, eta: Array) -> None:
        """Turn the normals of the next steps into what the steps add."""
        self._noise = self._sampler.prepare(self.state, normals, eta, self._dynamics)

    def step(self, eta: np.floating, at: int, batch: Any) -> None:
        """Make one step."""
        noise = None if self._noise is None else self._noise[at]
        self._sampler.step(self.state, eta, noise, batch, self._dynamics)


def normal_inflation(sampler: Sampler, step_size: float, n_params: int) -> float:
    """Variance of a sampler's chain over the target's, on a normal target of precision 1.

    It is the one that the sampler declares (``gaussian_inflation``), or else measured on a
    standard normal target.

    Returns
    -------
    inflation : float
        Infinite where the chain is not stable.
    """
    declared = sampler.gaussian_inflation(step_size)
    if declared is not None:
        return float(declared) if declared > 0 else np.inf  # beyond where a closed form holds
    measured_at = max(step_size, _SMALLEST)  # chains of tiny steps would take too long
    excess = _measured_inflation(_Key(sampler), measured_at, n_params) - 1.0
    return 1.0 + excess * step_size / measured_at  # of first order in the step, or higher


class _Key:
    """A sampler as a key of the cache: two of the same class and parameters are one."""

    def __init__(self, sampler: Sampler) -> None:
        self.sampler = sampler
        self._identity = (type(sampler), repr(sorted(sampler.get_params().items())))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Key) and self._identity == other._identity

    def __hash__(self) -> int:
        return hash(self._identity)


@lru_cache(maxsize=256)
def _measured_inflation(key: _Key, step_size: float, n_params: int) -> float:
    sampler, P = key.sampler, n_params
    n_chains = max(1, THRESHOLDS.normal_coordinates // P)
    target = Full().bind(StandardNormal(P))
    rng, n_normals = np.random.default_rng(_SEED), sampler.n_normals(P)
    chain = _Chain(sampler, Dynamics(target, Metric(P)), rng.standard_normal((n_chains, P)))
    chain.begin(rng.standard_normal((n_chains, n_normals)) if sampler.uses_noise else None)
    time = sampler.pace(np.ones(P), step_size)[1]
    n_burnin, kept = int(np.ceil(10.0 * time)), int(np.ceil(25.0 * time))
    square, eta = 0.0, np.full(_BLOCK, step_size)
    with np.errstate(all="ignore"):
        for t in range(n_burnin + kept):
            at = t % _BLOCK
            if at == 0:
                shape = (_BLOCK, n_chains, n_normals)
                chain.prepare(rng.standard_normal(shape) if sampler.uses_noise else None, eta)
            chain.step(eta[at], at, None)
            if t >= n_burnin:
                square += float(np.square(chain.state["theta"]).mean())
    inflation = square / kept
    return inflation if np.isfinite(inflation) else np.inf

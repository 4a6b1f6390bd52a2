"""Automatic settings: batch size, step size, burn-in and thinning from the mode and its curvature.

What is decided depends on the posterior and on a stream of its own, never on the chains that are
run with it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skbayes_sgld._linalg import largest_eigenvalue, matmul_rows
from skbayes_sgld.sampling.chains import Run, draw_block
from skbayes_sgld.sampling.gradients import ControlVariate, Full, Gradient
from skbayes_sgld.sampling.mode import Mode
from skbayes_sgld.sampling.randomness import ChainStreams, start_normals

Array = NDArray[Any]

STEP_SIZES = (0.5, 0.35, 0.25, 0.18, 0.125, 0.09, 0.0625, 0.045, 0.03, 0.02)
OVERDISPERSION = 1.5  # sds of the starts, in posterior sds: R-hat sees chains that have not met

_MAX_NOISE = 0.01  # of a variance that minibatches may add: half of it of an sd
_MAX_BIAS = 0.01  # of an sd that the step size may cost
_SMALL = 2000  # rows: all of them cost no more than a minibatch
_MIN_BATCH = 32
_PROBE_ROWS = 20_000
_PROBE_WORK = 5e8  # multiplications that a probe may take
_PROBE_DRAWS = 32
_PILOT_CHAINS = 32
_PILOT_STEPS = 100
_PILOT_BLOCK = 20
_MAX_THIN = 100
_MAX_BURNIN = 10_000
_PROBE = 2**31  # chain numbers from here on are the tuning's own


@dataclass
class NoiseLevel:
    """How much noise a minibatch of one row adds to the gradient, near the mode.

    Attributes
    ----------
    variance : float
        Largest eigenvalue of its covariance in the metric of the curvature.
    """

    variance: float

    def inflation(self, step_size: float, batch_size: int, temperature: float) -> float:
        """Return the largest relative inflation of a posterior variance.

        Minibatch noise of covariance S / B adds eta^2 S / B to the 2 eta tau of a step's injected
        noise; their ratio is what the stationary variance grows by.
        """
        # no noise at all would divide by zero where it is asked what is allowed
        return step_size * max(self.variance, 1e-12) / (2.0 * temperature * batch_size)

    def batch_size(self, step_size: float, temperature: float) -> int:
        """Return the batch at which the inflation falls to 1 %."""
        return int(np.ceil(self.inflation(step_size, 1, temperature) / _MAX_NOISE))

    def step_size(self, batch_size: int, temperature: float) -> float:
        """Return the step size at which the inflation falls to 1 %."""
        return _MAX_NOISE / self.inflation(1.0, batch_size, temperature)


def measure_noise(
    posterior: Any, gradient: Gradient, mode: Mode, temperature: float, entropy: int
) -> NoiseLevel:
    """Measure the noise of one-row minibatches at draws from the Laplace approximation."""
    n = posterior.n_samples
    stream = ChainStreams(entropy, _PROBE)
    size = min(_PROBE_ROWS, max(1000, int(_PROBE_WORK / _PROBE_DRAWS / posterior.n_params**2)))
    idx = np.arange(n) if n <= size else stream.rows(1, n, size, True)[0]
    normals = start_normals(entropy, range(_PROBE, _PROBE + _PROBE_DRAWS), posterior.n_params)
    draws = mode.theta + np.sqrt(temperature) * matmul_rows(normals, mode.root.T)
    bound = gradient.bind(posterior, mode.theta)
    rows = posterior.take(idx[None])
    batch = bound.at(bound.prepare(idx[None, None]), 0)
    covariance = np.zeros_like(mode.root)
    for theta in draws:
        score = bound.row_score(theta[None], batch)
        mean = posterior.pullback(score, rows)[0] / len(idx)
        second = posterior.gram(rows.design[0], score[0][:, None] * score[0]) / len(idx)
        covariance += n**2 * (second - np.outer(mean, mean))
    whitened = mode.root.T @ covariance @ mode.root / len(draws)
    return NoiseLevel(largest_eigenvalue(whitened))


def choose_gradient(
    posterior: Any, mode: Mode, temperature: float, entropy: int
) -> tuple[Gradient, int | None]:
    """Return the cheapest gradient estimator without visible noise, and its batch size."""
    n = posterior.n_samples
    if n <= _SMALL or posterior.cheap_full_gradient:
        return Full(), None
    gradient = ControlVariate()
    level = measure_noise(posterior, gradient, mode, temperature, entropy)
    batch_size = max(_MIN_BATCH, level.batch_size(STEP_SIZES[0], temperature))
    # a gathered row costs about four times one that is read in order
    return (Full(), None) if 4 * batch_size > n else (gradient, batch_size)


def choose_batch_size(noise: NoiseLevel, n_samples: int, temperature: float) -> int:
    """Return a batch without visible noise, or all rows' worth where there is none."""
    wanted = noise.batch_size(STEP_SIZES[0], temperature)
    return min(max(_MIN_BATCH, wanted), n_samples)


def choose_spacing(rate: float) -> tuple[int, int]:
    """Return burn-in and thinning for chains that forget at ``rate`` a step.

    A chain forgets a share ``rate`` of where it was at every step: after ``2 / rate`` steps an
    eighth is left, after ``20 / rate`` nothing.
    """
    n_burnin = int(min(np.ceil(20.0 / rate), _MAX_BURNIN))
    return n_burnin, int(min(np.ceil(2.0 / rate), _MAX_THIN))


def choose_step_size(run: Run, mode: Mode, entropy: int) -> float:
    """Return the largest step size in the curvature's metric that biases no sd by over 1 %.

    The bias of a step size is measured on a short pilot by the identity
    ``E[-u_j d log p / d u_j] = 1`` of every density (integration by parts), u being the
    parameters in the metric of the curvature. The same noise drives a chain on the normal law of
    the mode, whose error is known: the difference of the two has little variance.
    """
    at = 0
    while at < len(STEP_SIZES) - 1:
        bias = discretisation_bias(run, mode, STEP_SIZES[at], entropy)
        if bias <= _MAX_BIAS:
            break
        # the error is of second order in the step
        predicted = STEP_SIZES[at] * np.sqrt(_MAX_BIAS / bias)
        smaller = [i for i, step in enumerate(STEP_SIZES) if i > at and step <= predicted]
        at = min([*smaller, at + 3, len(STEP_SIZES) - 1])
    return STEP_SIZES[at]


def discretisation_bias(run: Run, mode: Mode, step_size: float, entropy: int) -> float:
    """Return the largest relative error of an sd, less what the pilot's noise may explain."""
    sampler, dynamics, tau = run.sampler, replace(run.dynamics), run.dynamics.temperature
    P = mode.theta.size
    chains = range(_PROBE, _PROBE + _PILOT_CHAINS)
    streams = [ChainStreams(entropy, c) for c in chains]
    n_burnin = int(np.ceil(4.0 / step_size))
    n_steps = n_burnin + int(np.ceil(_PILOT_STEPS * STEP_SIZES[0] / step_size))
    start = mode.theta + np.sqrt(tau) * matmul_rows(start_normals(entropy, chains, P), mode.root.T)
    state = sampler.init(start, np.concatenate([s.normals(1, P) for s in streams]))
    eta = np.full(_PILOT_BLOCK, step_size)
    whiten = mode.curvature @ mode.root  # its transpose takes theta - mode to u
    gaussian = start - mode.theta
    total = np.zeros((_PILOT_CHAINS, P))
    with np.errstate(all="ignore"):
        for t in range(n_steps):
            at = t % _PILOT_BLOCK
            if at == 0:
                normals, prepared = draw_block(run, streams, _PILOT_BLOCK, P)
                noise: Any = sampler.prepare(state, normals, eta, dynamics)
            batch = dynamics.gradient.at(prepared, at)
            if t >= n_burnin:
                u, v = (state["theta"] - mode.theta) @ whiten, gaussian @ whiten
                slope = dynamics.gradient(state["theta"], batch) @ mode.root
                total += v * v + u * slope
            sampler.step(state, eta[at], noise[at], batch, dynamics)
            gaussian = gaussian * (1.0 - step_size) + noise[at]
    if not np.isfinite(total).all():
        return np.inf
    error = -total / (tau * (n_steps - n_burnin))
    known = sampler.gaussian_inflation(step_size) - 1.0
    mean = error.mean(axis=0) + known
    standard_error = error.std(axis=0, ddof=1) / np.sqrt(_PILOT_CHAINS)
    return float(0.5 * np.max(np.abs(mean) - 2.0 * standard_error, initial=0.0))

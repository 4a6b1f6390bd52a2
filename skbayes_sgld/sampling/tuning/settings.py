"""Automatic settings: batch size, step size, burn-in and thinning from the mode and its curvature.

What is decided depends on the posterior and on a stream of its own, never on the chains that are
run with it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skbayes_sgld._linalg import MAX_DENSE, largest_eigenvalue, largest_eigenvalue_of
from skbayes_sgld.sampling.chains import Run, draw_block
from skbayes_sgld.sampling.gradients import ControlVariate, Full, Gradient
from skbayes_sgld.sampling.preconditioners.metric import Metric
from skbayes_sgld.sampling.protocol import Dynamics
from skbayes_sgld.sampling.randomness import ChainStreams, start_normals
from skbayes_sgld.sampling.tuning.adaptation import FIRST_CHAIN, adapt
from skbayes_sgld.sampling.tuning.mode import Mode

Array = NDArray[Any]

STEP_SIZES = (0.5, 0.35, 0.25, 0.18, 0.125, 0.09, 0.0625, 0.045, 0.03, 0.02)
OVERDISPERSION = 1.5  # sds of the starts, in posterior sds: R-hat sees chains that have not met

_MAX_NOISE = 0.01  # of a variance that minibatches may add: half of it of an sd
_MAX_BIAS = 0.015  # sds that the step size may cost a mean, or of an sd an sd
_MAX_WIDTH = 1.5  # of a variance over that at the mode: further out the metric is not the mode's
_SMALL = 2000  # rows: all of them cost no more than a minibatch
_MIN_BATCH = 32
_PROBE_ROWS = 20_000
_PROBE_WORK = 5e8  # multiplications that a probe may take
_PROBE_DRAWS = 32
_FEW_ROWS = 1000  # of a model whose rows are seen one gradient at a time
_PILOT_CHAINS = (20, 32)
_PILOT_ROWS = 20_000  # chains times rows: what a step of the pilot may cost
_PILOT_STEPS = 100
_PILOT_BLOCK = 20
_FEWEST_SPACED = 3.0  # trajectories: the pilot is too short to vouch for fewer
_SHORT_THIN = 6.0
_MAX_THIN = 100
_MAX_GRADIENTS = 400  # from draw to draw: what mixes more slowly is told, not waited for
_MAX_WORK = 5e7  # multiplications a chain from draw to draw: a minute for a thousand draws
_MAX_BURNIN = 10_000


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
    posterior: Any,
    gradient: Gradient,
    mode: Mode,
    temperature: float,
    seed: int,
    metric: Metric | None = None,
) -> NoiseLevel:
    """Measure the noise of one-row minibatches at draws from the Laplace approximation.

    ``metric`` is that of the preconditioner, by default of the curvature.
    """
    n = posterior.n_samples
    stream = ChainStreams(seed, FIRST_CHAIN)
    size = min(_PROBE_ROWS, max(1000, int(_PROBE_WORK / _PROBE_DRAWS / posterior.n_params**2)))
    idx = np.arange(n) if n <= size else stream.rows(1, n, size, True)[0]
    normals = start_normals(
        seed, range(FIRST_CHAIN, FIRST_CHAIN + _PROBE_DRAWS), posterior.n_params
    )
    draws = mode.theta + np.sqrt(temperature) * mode.unwhiten(normals)
    bound = gradient.bind(posterior, mode.theta)
    metric = mode.metric if metric is None else metric
    if "local_rows" not in posterior.abilities:
        rests = np.concatenate([_row_rests(bound, theta, idx[:_FEW_ROWS]) for theta in draws])
        return NoiseLevel(_largest_variance(metric.sqrt_t(rests)))
    rows = posterior.take(idx[None])
    batch = bound.at(bound.prepare(idx[None, None]), 0)
    scores = np.concatenate([bound.row_score(theta[None], batch) for theta in draws])
    second = np.einsum("sai,sbi->abi", scores, scores) / len(draws)
    means = np.concatenate([posterior.pullback(score[None], rows) for score in scores])
    means /= len(idx) * np.sqrt(len(draws))
    if posterior.n_params <= MAX_DENSE and "row_curvature" in posterior.abilities:
        covariance = posterior.gram(rows.design[0], second) / len(idx) - means.T @ means
        whitened = metric.sqrt_t(metric.sqrt_t(covariance).T)
        return NoiseLevel(n**2 * largest_eigenvalue(whitened))

    def product(z: Array) -> Array:
        x = metric.sqrt(z.reshape(1, -1))
        seen = np.einsum("abi,sbi->sai", second, posterior.local(x, rows))
        moved = posterior.pullback(seen, rows) / len(idx) - (x @ means.T) @ means
        return metric.sqrt_t(moved)[0]

    return NoiseLevel(n**2 * largest_eigenvalue_of(product, posterior.n_params))


def _row_rests(bound: Any, theta: Array, idx: Array) -> Array:
    """Return one-row estimates at ``theta (P,)`` less their mean, each row as a chain."""
    batch = bound.at(bound.prepare(idx[None, :, None]), 0)
    estimates = bound(np.tile(theta, (len(idx), 1)), batch)
    return estimates - estimates.mean(axis=0)


def _largest_variance(rests: Array) -> float:
    """Return the largest eigenvalue of ``rests' rests / N``, rests being ``(N, P)``."""
    small = rests if rests.shape[1] <= rests.shape[0] else rests.T
    return largest_eigenvalue(small.T @ small) / len(rests)


def choose_gradient(
    posterior: Any, mode: Mode, temperature: float, seed: int
) -> tuple[Gradient, int | None]:
    """Return the cheapest gradient estimator without visible noise, and its batch size.

    It takes all rows where minibatches have nothing to gain: few rows, sums known beforehand, a
    posterior that does not gather rows, or so many parameters that the curvature at the mode,
    which keeps the minibatches quiet, is not formed.
    """
    n = posterior.n_samples
    gathers = posterior.abilities.issuperset(ControlVariate().requires)
    cheap = n <= _SMALL or posterior.cheap_full_gradient
    if cheap or not gathers or posterior.n_params > MAX_DENSE:
        return Full(), None
    gradient = ControlVariate()
    level = measure_noise(posterior, gradient, mode, temperature, seed)
    batch_size = max(_MIN_BATCH, level.batch_size(STEP_SIZES[0], temperature))
    # a gathered row costs about four times one that is read in order
    return (Full(), None) if 4 * batch_size > n else (gradient, batch_size)


def choose_batch_size(noise: NoiseLevel, n_samples: int, temperature: float) -> int:
    """Return a batch without visible noise, or all rows' worth where there is none."""
    wanted = noise.batch_size(STEP_SIZES[0], temperature)
    return min(max(_MIN_BATCH, wanted), n_samples)


def choose_spacing(time: float) -> tuple[int, int]:
    """Return burn-in and thinning for chains that take this many steps to an independent draw.

    Spaced by the time, draws are nearly independent; where that takes many steps, half of the
    time leaves them half of their worth. Ten times the time forgets the start.
    """
    time = round(max(time, 1.0), 6)  # no step more for the last bit
    thin = time if time <= _SHORT_THIN else max(_SHORT_THIN, 0.5 * time)
    n_burnin = min(np.ceil(10.0 * time), _MAX_BURNIN)
    return int(n_burnin), int(min(np.ceil(thin), _MAX_THIN))


@dataclass
class Tuned:
    """A run whose sampler, metric and step size are chosen, and what is known of it.

    Attributes
    ----------
    run : Run
    mode : Mode
        The centre and the metric of the posterior: of the mode, or of a pilot's draws.
    time : float
        Steps to an independent draw, in the slowest direction.
    bias : tuple of float
        What the step size costs (see :func:`discretisation_bias`) and two standard errors of it.
    most_spaced : int
        Steps from draw to draw that can be afforded.
    """

    run: Run
    mode: Mode
    time: float
    bias: tuple[float, float] = (0.0, 0.0)
    most_spaced: int = _MAX_THIN


def tune(run: Run, mode: Mode, seed: int) -> Tuned:
    """Choose integrator and step size of a run in the metric of the curvature.

    The cheap integrator is taken where a pilot finds no error in it at the largest step size.
    Where it does, a sampler that accepts or rejects is adapted, if every step takes all rows;
    else the step size falls until the error is gone.
    """
    unbounded = run.dynamics.clip is None  # a bound that fires moves no trajectory well
    first, *others = run.sampler.candidates(run.batch_size is None and unbounded)
    run = replace(run, sampler=first)
    steep = run.dynamics.gradient.posterior.steep
    if not first.adjusted and not (steep and others):
        sizes = STEP_SIZES[:1] if others else STEP_SIZES
        step_size, bias, doubt, width = choose_step_size(run, mode, seed, sizes)
        if not others or (bias + doubt <= _MAX_BIAS and width <= _MAX_WIDTH):
            time = 2.0 / step_size * (width if width > _MAX_WIDTH else 1.0)
            return Tuned(replace(run, step_size=step_size), mode, time, (bias, doubt))
    if not first.adjusted:
        run = replace(run, sampler=others[0])
    run = replace(run, dynamics=_soften(run.dynamics, mode))
    adapted = adapt(run, mode, seed)
    dynamics = replace(run.dynamics, preconditioner=adapted.mode.metric)
    run = replace(run, dynamics=dynamics, step_size=adapted.step_size)
    known = run.sampler.pace(np.ones(mode.theta.size), adapted.step_size)[1]
    # a step may be much work, and the pilot does not tell the time to a half
    measured = float(np.round(adapted.autocorrelation))
    most = _MAX_GRADIENTS / run.sampler.gradients(run.step_size)
    time = min(max(_FEWEST_SPACED, measured, 0.5 * known), max(_FEWEST_SPACED, most))
    return Tuned(run, adapted.mode, time, most_spaced=_affordable(run))


def _affordable(run: Run) -> int:
    """Return how many steps of a sampler there may be from draw to draw, whatever they are worth.

    A gradient takes two products with the rows, and one with the metric where that is dense.
    """
    P = run.dynamics.preconditioner.n_params
    # what the gradient of a user's model costs is not known
    rows = run.n_samples if "local_rows" in run.dynamics.gradient.posterior.abilities else 1
    work = 2 * rows * P + (P * P if P <= MAX_DENSE else P)
    return max(1, round(_MAX_WORK / work / run.sampler.gradients(run.step_size)))


def _soften(dynamics: Dynamics, mode: Mode) -> Dynamics:
    """Let trajectories follow a density without kinks, where there are any.

    Every kink that a leapfrog step crosses costs an error of first order in the step; a gradient
    that is rounded there costs none, and the density itself still accepts or rejects.
    """
    posterior = dynamics.gradient.posterior
    smooth = posterior.softened(mode.marginal_sd)
    if smooth is posterior:
        return dynamics
    return replace(dynamics, gradient=Full().bind(smooth, None), target=posterior)


def choose_step_size(
    run: Run, mode: Mode, seed: int, sizes: tuple[float, ...] = STEP_SIZES
) -> tuple[float, float, float, float]:
    """Return the largest step size in the curvature's metric that biases no moment visibly.

    Behind it stand the bias, the doubt and the width that were measured at it.
    """
    at = 0
    while True:
        bias, doubt, width = discretisation_bias(run, mode, sizes[at], seed)
        if bias - doubt <= _MAX_BIAS or at == len(sizes) - 1:
            return sizes[at], bias, doubt, width
        # the error is of second order in the step
        predicted = sizes[at] * np.sqrt(_MAX_BIAS / bias)
        smaller = [i for i, step in enumerate(sizes) if i > at and step <= predicted]
        at = min([*smaller, at + 3, len(sizes) - 1])


def discretisation_bias(
    run: Run, mode: Mode, step_size: float, seed: int
) -> tuple[float, float, float]:
    """Return the largest error that a step size costs, two standard errors of it, and a width.

    The width is the largest variance over that at the mode. The error is that of a mean, in
    posterior sds, or of an sd, relative. It is measured on a short pilot by identities that hold
    under every density (integration by parts): with u the parameters in the metric of the
    curvature, ``E[d log p / d u_j] = 0`` and ``E[-u_j d log p / d u_j] = tau``. The same noise
    drives a chain on the normal law of the mode, whose errors are known: the difference of the
    two chains has little variance.
    """
    sampler, dynamics, tau = run.sampler, replace(run.dynamics), run.dynamics.temperature
    P = mode.theta.size
    posterior = dynamics.gradient.posterior
    seen = (run.batch_size or run.n_samples or 1) * posterior.n_predictors
    n_chains = int(np.clip(_PILOT_ROWS // seen, *_PILOT_CHAINS))
    chains = range(FIRST_CHAIN, FIRST_CHAIN + n_chains)
    streams = [ChainStreams(seed, c) for c in chains]
    n_burnin = int(np.ceil(4.0 / step_size))
    n_steps = n_burnin + int(np.ceil(_PILOT_STEPS * STEP_SIZES[0] / step_size))
    start = mode.theta + np.sqrt(tau) * mode.unwhiten(start_normals(seed, chains, P))
    state = sampler.init(start, np.concatenate([s.normals(1, P) for s in streams]))
    state |= dynamics.gradient.begin(start)
    eta = np.full(_PILOT_BLOCK, step_size)
    gaussian = start - mode.theta
    first, second, square = np.zeros((3, n_chains, P))
    with np.errstate(all="ignore"):
        for t in range(n_steps):
            at = t % _PILOT_BLOCK
            if at == 0:
                normals, prepared = draw_block(run, streams, _PILOT_BLOCK, P)
                noise: Any = sampler.prepare(state, normals, eta, dynamics)
            batch = dynamics.gradient.at(prepared, at)
            if t >= n_burnin:
                u, v = mode.whiten(state["theta"] - mode.theta), mode.whiten(gaussian)
                slope = mode.metric.sqrt_t(dynamics.gradient(state["theta"], batch))
                first += slope + v
                second -= v * v + u * slope
                square += u * u
            sampler.step(state, eta[at], noise[at], batch, dynamics)
            gaussian = gaussian * (1.0 - step_size) + noise[at]
        kept = n_steps - n_burnin
        known = sampler.gaussian_inflation(step_size) - 1.0
        errors = np.stack([first / (kept * np.sqrt(tau)), 0.5 * (second / (kept * tau) + known)])
    if not np.isfinite(errors).all():
        return np.inf, 0.0, np.inf
    size = np.abs(errors.mean(axis=1))
    doubt = 2.0 * errors.std(axis=1, ddof=1) / np.sqrt(n_chains)
    worst = np.unravel_index(np.argmax(size - doubt), size.shape)
    width = float(square.mean(axis=0).max() / (kept * tau))
    return float(size[worst]), float(doubt[worst]), width

"""Automatic settings: batch size, step size, burn-in and thinning from the mode and its curvature.

What is decided depends on the posterior and on a stream of its own, never on the chains that are
run with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skbayes_sgld._linalg import MAX_DENSE, largest_eigenvalue, largest_eigenvalue_of
from skbayes_sgld.posterior.base import BasePosterior
from skbayes_sgld.sampling.chains import Run
from skbayes_sgld.sampling.gradients import ControlVariate, Full, Gradient
from skbayes_sgld.sampling.preconditioners.metric import Metric
from skbayes_sgld.sampling.protocol import Dynamics, Sampler
from skbayes_sgld.sampling.randomness import ChainStreams, start_normals
from skbayes_sgld.sampling.tuning.adaptation import FIRST_CHAIN, adapt
from skbayes_sgld.sampling.tuning.bias import STEP_SIZES, measure_bias, step_sizes
from skbayes_sgld.sampling.tuning.bias import choose_step_size as largest_unbiased
from skbayes_sgld.sampling.tuning.mode import Mode
from skbayes_sgld.sampling.tuning.thresholds import THRESHOLDS

Array = NDArray[Any]

OVERDISPERSION = 1.5  # sds of the starts, in posterior sds: R-hat sees chains that have not met

_MAX_NOISE = THRESHOLDS.max_noise
_MAX_BIAS = THRESHOLDS.max_bias
_MAX_WIDTH = THRESHOLDS.max_width
_SMALL = THRESHOLDS.few_rows
_MIN_BATCH = THRESHOLDS.min_batch
_PROBE_ROWS = 20_000
_PROBE_WORK = 5e8  # multiplications that a probe may take
_PROBE_DRAWS = 32
_FEW_ROWS = 1000  # of a model whose rows are seen one gradient at a time
_FEWEST_SPACED = THRESHOLDS.fewest_spaced
_SHORT_THIN = THRESHOLDS.short_thin
_MAX_THIN = THRESHOLDS.max_thin
_MAX_GRADIENTS = THRESHOLDS.max_gradients
_MAX_WORK = THRESHOLDS.max_work
_MAX_BURNIN = THRESHOLDS.max_burnin


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


def reason_for_all_rows(posterior: BasePosterior) -> str:
    """Reason why every step takes all rows, whatever their noise; empty where there is none."""
    n = posterior.n_samples
    if n == 0:
        return "a density without rows"
    if posterior.cheap_full_gradient:
        return "the rows are summed up once, into sufficient statistics"
    if n <= _SMALL:
        return f"{n:,} rows: all of them cost no more than a batch"
    if not posterior.abilities.issuperset(ControlVariate().requires):
        return "rows without local parameters: a batch would be noisy"
    if posterior.n_params > MAX_DENSE:
        return f"{posterior.n_params:,} parameters: the curvature at the mode is not formed"
    return ""


def choose_gradient(
    posterior: BasePosterior, mode: Mode, temperature: float, seed: int
) -> tuple[Gradient, int | None, str]:
    """Return the cheapest gradient estimator without visible noise, its batch size, and why.

    It takes all rows where minibatches have nothing to gain: few rows, sums known beforehand, a
    posterior that does not gather rows, or so many parameters that the curvature at the mode,
    which keeps the minibatches quiet, is not formed.
    """
    n, why = posterior.n_samples, reason_for_all_rows(posterior)
    if why:
        return Full(), None, why
    gradient = ControlVariate()
    level = measure_noise(posterior, gradient, mode, temperature, seed)
    batch_size = max(_MIN_BATCH, level.batch_size(STEP_SIZES[0], temperature))
    # a gathered row costs about four times one that is read in order
    if 4 * batch_size > n:
        why = f"a batch without visible noise takes {batch_size:,} of {n:,} rows"
        return Full(), None, why
    why = f"batches of {batch_size:,} add less than 0.5 % to any standard deviation"
    return gradient, batch_size, why


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
    mode : Mode or None
        The centre and the metric of the posterior: of the mode, or of a pilot's draws.
    time : float or None
        Steps to an independent draw, in the slowest direction; None where it is not known.
    bias : tuple of float or None
        What the step size costs (see :func:`discretisation_bias`) and two standard errors of it;
        None where it was not measured.
    most_spaced : int
        Steps from draw to draw that can be afforded.
    found : str
        What the pilot found of the cheap sampler.
    why : str
        Reason for the step size.
    """

    run: Run
    mode: Mode | None
    time: float | None
    bias: tuple[float, float] | None = None
    most_spaced: int = _MAX_THIN
    found: str = ""
    why: str = ""


def tune(run: Run, mode: Mode, seed: int, others: Sequence[Sampler] = ()) -> Tuned:
    """Choose sampler and step size of a run in the metric of the curvature.

    The run's own sampler is taken where a pilot finds no error in it at the largest step size.
    Where it does, the first of ``others``, which accepts or rejects, is adapted; without any the
    step size falls until the error is gone.
    """
    found = ""
    if not run.sampler.adjusted:
        if others and run.dynamics.gradient.posterior.steep:
            found = "the noise is too uncertain for steps that are not accepted or rejected"
        else:
            sizes = STEP_SIZES[:1] if others else STEP_SIZES
            step_size, bias, doubt, width = choose_step_size(run, mode, seed, sizes)
            found = f"a pilot's moments are off by {bias:.1%} +- {doubt:.1%} at {step_size:g}"
            if not others or (bias + doubt <= _MAX_BIAS and width <= _MAX_WIDTH):
                time = 2.0 / step_size * (width if width > _MAX_WIDTH else 1.0)
                run = replace(run, step_size=step_size)
                return Tuned(run, mode, time, (bias, doubt), found=found, why=found)
            if bias + doubt <= _MAX_BIAS:
                found = f"a pilot's variances are {width:.1f} times those at the mode"
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
    why = f"a pilot accepted {adapted.acceptance:.0%} at about it"
    return Tuned(run, adapted.mode, time, (0.0, 0.0), _affordable(run), found, why)


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
    own = step_sizes(run.sampler)[: len(sizes)]
    step_size, found = largest_unbiased(run, mode, seed, own)
    return step_size, found.size, found.doubt, found.width


def discretisation_bias(
    run: Run, mode: Mode, step_size: float, seed: int
) -> tuple[float, float, float]:
    """Return size, doubt and width of the bias that a step size has; see :func:`measure_bias`."""
    found = measure_bias(run, mode, step_size, seed)
    return found.size, found.doubt, found.width

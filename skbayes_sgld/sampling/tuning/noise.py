"""Noise of minibatches, measured near the mode, and the gradient with the cheapest draws."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from skbayes_sgld._linalg import MAX_DENSE, largest_eigenvalue, largest_eigenvalue_of
from skbayes_sgld._random import ChainStreams, start_normals
from skbayes_sgld._typing import Array
from skbayes_sgld.posterior.base import BasePosterior
from skbayes_sgld.sampling.gradients import ControlVariate, Full, Gradient
from skbayes_sgld.sampling.metric import Metric
from skbayes_sgld.sampling.tuning.adaptation import FIRST_CHAIN
from skbayes_sgld.sampling.tuning.leverage import Split, bounds_to_try, leverages_of, read_always
from skbayes_sgld.sampling.tuning.mode import Center, Mode
from skbayes_sgld.sampling.tuning.pilots import STEP_SIZES
from skbayes_sgld.sampling.tuning.thresholds import THRESHOLDS

_PROBE_DRAWS = 16
_SHARED = 10  # rows of one direction whose kicks follow each other
# Squared cosine of directions that count as one. Rows of a category of m among n rows, with P
# parameters, have 1 / (1 + m P / n); above 0.5 are also many pairs of rows of six normal columns
_ALIGNED = 0.75
_MOST_KICKS = 200  # rows of the largest kicks whose directions are compared
_FEW_ROWS = 1000  # rows to measure if each takes a separate gradient


@dataclass(frozen=True)
class NoiseLevel:
    """Noise that a minibatch of one row adds to the gradient, near the mode.

    Attributes
    ----------
    variance : float
        Largest eigenvalue of its covariance in the metric of the preconditioner.
    common : float
        Largest eigenvalue, in the same metric, of the covariance of the noise of two independent
        positions that share the row; 0 if it was not measured.
    rate : float
        Curvature of the posterior in that metric: 1 in its own; 0 in another one, in which steps
        are short in most directions.
    kick : float
        Largest root mean square, over draws, of what a row adds to the estimate, in the units of
        the metric; 0 if it was not measured. It is a tenth of that for a row alone in its
        direction, since rows of a rare category kick one after the other. A kick grows with the
        distance from the mode, so that such chains move further out; the variance does not show it.
    """

    variance: float
    common: float = 0.0
    rate: float = 1.0
    kick: float = 0.0

    def inflation(self, step_size: float, batch_size: int, temperature: float) -> float:
        """Largest relative inflation of a posterior variance.

        Minibatch noise of covariance S / B adds eta^2 S / B at each step, of which 1 - eta is left
        in the position at the next one: to the variance tau, eta S / ((2 - eta) B) in all. That of
        the mean normals of two steps is tau at any eta.
        """
        share = self._share(batch_size, temperature)
        return share * step_size / max(2.0 - step_size * self.rate, 0.1)

    def _share(self, batch_size: int, temperature: float) -> float:
        """Variance of the noise of a batch, relative to the temperature."""
        # a floor, since the step size and the batch size divide by it
        return max(self.variance, 1e-12) / (temperature * batch_size)

    def batch_size(self, step_size: float, temperature: float, n_walkers: int = 1) -> int:
        """Batch size at which the inflation falls to 1 %.

        If ``n_walkers`` of a chain share batches, the variance of their mean also grows by at most
        8 %: ``n_walkers`` times what the common part of their noise adds to one.
        """
        size = self.inflation(step_size, 1, temperature) / THRESHOLDS.max_noise
        if n_walkers > 1:
            mean_inflation = step_size * n_walkers * self.common / (2.0 * temperature)
            # at 8 % the reported Monte Carlo error is 4 % too small
            size = max(size, mean_inflation / 0.08)
        return int(np.ceil(max(size, self.kick_of(step_size, 1, temperature) / THRESHOLDS.kick)))

    def step_size(self, batch_size: int, temperature: float) -> float:
        """Step size at which the inflation falls to 1 %, and rows kick by no more than allowed."""
        most = THRESHOLDS.max_noise
        size = 2.0 * most / (self._share(batch_size, temperature) + most * self.rate)
        kick = self.kick_of(1.0, batch_size, temperature)
        return min(size, THRESHOLDS.kick / max(kick, 1e-12))

    def kick_of(self, step_size: float, batch_size: int, temperature: float) -> float:
        """Distance, in posterior sds, by which a single row in a batch moves a chain."""
        return step_size * self.kick / (batch_size * float(np.sqrt(temperature)))


def measure_noise(
    posterior: BasePosterior,
    gradient: Gradient,
    center: Center,
    temperature: float,
    seed: int,
    metric: Metric | None = None,
    most_rows: int | None = None,
    surely: Array | None = None,
) -> NoiseLevel:
    """Measure the noise of one-row minibatches at draws from the Laplace approximation.

    ``metric`` is that of the preconditioner, by default that of the curvature. Up to ``most_rows``
    rows are read, by default 8,000 to 20,000: from few rows the largest eigenvalue of a covariance
    is too large. With 300 columns, 1,000, 4,000, 8,000 and all of 10,000 rows gave batches of
    1,000, 530, 450 and 430 rows. The rows ``surely``, those of the most noise, are always read.
    """
    n = posterior.n_samples
    stream = ChainStreams(seed, FIRST_CHAIN)
    size = most_rows or int(np.clip(2e8 / posterior.n_params**2, 8_000, 20_000))
    idx = np.arange(n) if n <= size else stream.rows(1, n, size, True)[0]
    share = np.full(len(idx), 1.0 / len(idx))  # share of all rows that each of these represents
    kicking = slice(0) if surely is None else surely  # where these rows are in idx
    if surely is not None and len(surely) and n > size:
        idx = idx[~np.isin(idx, surely)]
        share = np.full(len(idx), (n - len(surely)) / (n * max(len(idx), 1)))
        idx, kicking = np.concatenate([surely, idx]), slice(len(surely))
        share = np.concatenate([np.full(len(surely), 1.0 / n), share])
    normals = start_normals(
        seed, range(FIRST_CHAIN, FIRST_CHAIN + _PROBE_DRAWS), posterior.n_params
    )
    draws = center.theta + np.sqrt(temperature) * center.metric.sqrt(normals)
    bound = gradient.bind(posterior, center.theta, center.expansion)
    rate, metric = (1.0, center.metric) if metric is None else (0.0, metric)
    if "local_rows" not in posterior.abilities:
        # each row is passed as a separate chain
        idx = idx[:_FEW_ROWS]
        batch = bound.prepare(idx[None, :, None])[0]
        estimates = np.stack([bound(np.tile(theta, (len(idx), 1)), batch) for theta in draws])
        errors = (estimates - estimates.mean(axis=1, keepdims=True)).reshape(-1, draws.shape[1])
        errors = metric.sqrt_t(errors)
        narrow = errors if errors.shape[1] <= errors.shape[0] else errors.T
        return NoiseLevel(largest_eigenvalue(narrow.T @ narrow) / len(errors), rate=rate)
    batches = posterior.bind_batches(1, len(idx))
    rows = batches.gather(idx[None, None])[0]
    batch = bound.prepare(idx[None, None])[0]
    with np.errstate(all="ignore"):  # exponentials may overflow at draws around the mode
        scores = np.concatenate([bound.row_score(theta[None], batch) for theta in draws])
    second = np.einsum("sai,sbi->abi", scores, scores) * (share / len(draws))
    means = np.concatenate([batches.pullback(score[None] * share, rows) for score in scores])
    means /= np.sqrt(len(draws))
    dense = metric.diagonal is None  # no matrix if the run has none
    if dense and posterior.n_params <= MAX_DENSE and "row_curvature" in posterior.abilities:
        whole = metric.in_groups_of(None)

        def largest(second: Array, means: Array) -> float:
            covariance = batches.gram(idx, second) - means.T @ means
            return n**2 * largest_eigenvalue(whole.sqrt_t(whole.sqrt_t(covariance).T))

        moments = second[..., kicking] / share[kicking]
        kick = n * _largest_kick(posterior, idx[kicking], moments, metric)
        variance, common = largest(second, means), 0.0
        if posterior.facts.shares_batches:
            # mean products of two different draws
            total, S = scores.sum(axis=0), len(draws)
            pairs = np.einsum("ai,bi->abi", total, total) * share - S * second
            pairs /= S * (S - 1)
            common = max(0.0, largest(pairs, means.sum(axis=0, keepdims=True) / np.sqrt(S)))
        return NoiseLevel(variance, common, rate, kick)

    def product(z: Array) -> Array:
        x = metric.sqrt(z.reshape(1, -1))
        changes = np.einsum("abi,sbi->sai", second, batches.local(x, rows))
        pulled = batches.pullback(changes, rows) - (x @ means.T) @ means
        return metric.sqrt_t(pulled)[0]

    return NoiseLevel(n**2 * largest_eigenvalue_of(product, posterior.n_params), rate=rate)


def _largest_kick(posterior: BasePosterior, idx: Array, second: Array, metric: Metric) -> float:
    """Largest root mean square of what rows ``idx`` add to a gradient, in a metric.

    ``second (a, a, B)`` has the second moments of the rows' scores in their local parameters. A row
    counts by a tenth if it alone has its direction, and fully if ten of the rows share it.
    """
    if not len(idx):
        return 0.0
    batches = posterior.bind_batches(1, len(idx), posterior.n_params)
    moves = metric.sqrt(np.eye(posterior.n_params))
    local = batches.local(moves, batches.gather(idx[None, None])[0])
    kicks = np.sqrt(np.einsum("kan,abn,kbn->n", local, second, local))
    most = np.argsort(-kicks)[:_MOST_KICKS]
    towards = local[..., most] * np.sqrt(np.einsum("aan->an", second[..., most]))
    towards = towards.reshape(-1, len(most))
    towards /= np.maximum(np.linalg.norm(towards, axis=0), 1e-300)
    aligned = np.square(towards.T @ towards) > _ALIGNED
    n_rows = (aligned & (kicks[most] > 0.5 * kicks[most][:, None])).sum(axis=1)
    return float((kicks[most] * np.clip(n_rows / _SHARED, 1.0 / _SHARED, 1.0)).max())


class Cheapest(NamedTuple):
    """The cheaper gradient: of batches without visible noise, or of all rows.

    Attributes
    ----------
    gradient : Gradient
    batch_size : int or None
        None takes all rows.
    why : str
    split : Split
        Rows that batches are drawn from, and rows that every batch reads.
    noise : NoiseLevel or None
        Noise of the batches; None if steps take all rows.
    """

    gradient: Gradient
    batch_size: int | None
    why: str
    split: Split
    noise: NoiseLevel | None = None


def cheapest_gradient(
    posterior: BasePosterior, mode: Mode, temperature: float, seed: int, n_walkers: int
) -> Cheapest:
    """Choose between batches without visible noise and all rows: whichever costs less.

    The ``n_walkers`` positions of a chain share a batch.
    """
    n, gradient = posterior.n_samples, ControlVariate()
    if mode.expansion is None:
        mode = mode._replace(expansion=posterior.expand_likelihood(mode.theta))
    # to measure on more rows costs more than a smaller batch saves
    most_rows = max(2_000, 10 * posterior.n_params)
    least = np.inf
    # few rows are read all, rather than many in every batch
    leverages = None if n <= THRESHOLDS.few_rows else leverages_of(posterior, mode)
    # an always read row costs a third as much as one in a batch
    for bound in bounds_to_try(posterior):
        read = read_always(posterior, mode, leverages, bound)
        level = measure_noise(
            read.posterior, gradient, read.mode, temperature, seed, None, most_rows, read.next_rows
        )
        size = choose_batch_size(level, temperature, n_walkers)
        cost, _ = step_costs(read.posterior, size)
        if cost < least:
            least, split, batch_size, noise = cost, read, size, level
        if size <= 32 or not len(read.next_rows):
            break
    if not batch_pays(split.posterior, batch_size, n_walkers):
        size_text = f"{batch_size:,} of {n:,}" if batch_size < n else f"more than all {n:,}"
        why = f"a batch without visible noise takes {size_text} rows"
        return Cheapest(Full(), None, why, Split(posterior, mode))
    why = f"batches of {batch_size:,} add less than 0.5 % to any standard deviation"
    if n_walkers > 1:
        why += f", and {n_walkers} walkers share each"
    return Cheapest(gradient, batch_size, why, split, noise)


def batch_pays(posterior: BasePosterior, batch_size: int, n_walkers: int) -> bool:
    """Whether a step on a batch, shared by ``n_walkers``, costs enough less than one on all rows.

    If all rows cost little, it has to cost much less, since steps on all rows have no noise.
    """
    n = posterior.n_samples
    if n_walkers == 1:  # a gathered row costs about four times as much as one read in order
        return n > THRESHOLDS.few_rows and 4 * batch_size <= n
    batch_cost, full_cost = step_costs(posterior, batch_size)
    # A step costs about 2,500 ns besides its rows. Relative to all rows, a batch costs 0.42 and a
    # fit 0.75 on the NBA rookies (2,400 ns), 0.49 and 0.79 on ten classes of 1,000 rows (13,100 ns)
    return batch_cost <= (0.4 if full_cost <= 2500.0 else 1.0) * full_cost


def step_costs(posterior: BasePosterior, batch_size: int) -> tuple[float, float]:
    """Nanoseconds of a position's gradient: on a batch shared by walkers, and on all rows."""
    numbers, P = _numbers(posterior), posterior.n_params
    batch_cost = batch_size * (numbers @ THRESHOLDS.shared_row)
    batch_cost += np.array([P, P**2]) @ THRESHOLDS.control_variate
    row_of_all = numbers @ THRESHOLDS.row_of_all
    batch_cost += posterior.n_always * row_of_all
    full_cost = (posterior.n_samples + posterior.n_always) * row_of_all
    return float(batch_cost), float(full_cost)


def _numbers(posterior: BasePosterior) -> Array:
    """Numbers of a row, its linear predictors and their pairs, which a step's cost depends on."""
    K = posterior.facts.n_predictors
    return np.array([posterior.n_params, K, K * (K - 1)])


def choose_batch_size(level: NoiseLevel, temperature: float, n_walkers: int = 1) -> int:
    """Batch size without visible noise; a larger one, with less noise, if few rows are enough."""
    size = level.batch_size(STEP_SIZES[0], temperature, n_walkers)
    # Up to 32 rows, less of the noise costs little. On 100,000 rows of 50 columns, batches of 8, 16
    # and 32 rows take 82, 95 and 122 ms, and widen sds by 0.14, 0.07 and 0.04 %
    return max(THRESHOLDS.min_batch, size, min(5 * size // 2, 32))

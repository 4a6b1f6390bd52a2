"""Summaries and convergence diagnostics of arrays of draws."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd
from scipy.fft import irfft, next_fast_len, rfft
from scipy.special import ndtri
from scipy.stats import chi2, rankdata

from skbayes_sgld._checks import check_choice, check_number
from skbayes_sgld._numpy_errors import numpy_defaults
from skbayes_sgld._typing import Array

__all__ = [
    "effective_sample_size",
    "potential_scale_reduction",
    "summarize",
]


MAX_RHAT = 1.01  # Vehtari, Gelman, Simpson, Carpenter & Buerkner 2021, Section 4
MIN_ESS_PER_CHAIN = 100
_CHANCE = 1e-4  # probability of a false alarm by R-hat in a converged fit
_TAILS = (0.05, 0.95)
_MIN_DRAWS = 4  # per chain: two in each half
_BLOCK = 2**18  # numbers in a block of parameters, so that it stays in cache
# Limits of the screen: half of the excess of R-hat from which fits warn, and three times the needed
# effective sample size, by whichever batch size shows less. Draws are clipped at about three sds
_SCREEN_RHAT, _SCREEN_ESS = 1.0 + 0.5 * (MAX_RHAT - 1.0), 3.0
# Limits for nearly normal draws, relative to those for ranks; their largest skewness and excess
_NEAR_ESS, _NEAR_RHAT, _SKEWNESS, _EXCESS = 1.1, 0.8, 0.4, 0.8
_MANY = 100  # parameters whose ranks of 4,000 draws take 0.1 s
_SCREEN_BATCHES = (8, 40)  # numbers of batches per chain
_FEWEST_SCREENED = 5 * max(_SCREEN_BATCHES)  # draws per chain
_FEWEST_IN_TAIL, _TAIL_SHARE = 5, 0.2  # least draws of a tail, largest share of effective draws
# Relative Monte Carlo errors of an sd from which fits warn, by the fourth moment of the draws and
# by that of a fitted tail; and the kurtosis. Exponential draws (kurtosis 9) with an effective
# sample size of 1,000 have errors of 0.046 and 0.050
_TOLD_SEEN, _TOLD_SD, _TOLD_KURTOSIS = 0.05, 0.1, 15.0
_SUSPECT = 0.6  # share of _TOLD_SEEN; if batch means show less, no tail is fitted
_CLIP, _EVERY = 4.5, 5  # clip in median absolute deviations, taken from every fifth draw


@numpy_defaults
def effective_sample_size(draws: Array, kind: str = "bulk") -> Array:
    """Effective sample size of each parameter (Vehtari et al. 2021, Section 4).

    Parameters
    ----------
    draws : ndarray of shape (n_chains, n_draws, n_params)
    kind : {"bulk", "tail", "mean"}, default="bulk"
        ``"bulk"``: that of the rank-normalised draws. ``"tail"``: the smaller of those at the 5 %
        and the 95 % quantile. ``"mean"``: that of the mean.

    Returns
    -------
    ess : ndarray of shape (n_params,)
        NaN with fewer than four draws per chain.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayes_sgld.diagnostics import effective_sample_size
    >>> draws = np.random.default_rng(0).standard_normal((4, 500, 2))
    >>> bool((effective_sample_size(draws) > 1500).all())
    True
    """
    check_draws(draws)
    check_choice(kind, "kind", ("bulk", "mean", "tail"))
    return _ess(draws, kind)


@numpy_defaults
def potential_scale_reduction(draws: Array) -> Array:
    """Rank-normalised split R-hat of each parameter (Vehtari et al. 2021, eq. 4).

    Parameters
    ----------
    draws : ndarray of shape (n_chains, n_draws, n_params)
        A single chain is judged by comparing its halves.

    Returns
    -------
    r_hat : ndarray of shape (n_params,)
        NaN with fewer than four draws per chain, and for a constant parameter.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayes_sgld.diagnostics import potential_scale_reduction
    >>> draws = np.random.default_rng(0).standard_normal((4, 500, 1))
    >>> bool(potential_scale_reduction(draws)[0] < 1.01)
    True
    """
    check_draws(draws)
    if draws.shape[1] < _MIN_DRAWS:
        return np.full(draws.shape[2], np.nan)
    return np.fmax(*_by_block(_rhat_and_ess, _without_units(draws))[0])


def check_draws(draws: Any) -> None:
    """Raise unless ``draws`` is an array of numbers with three dimensions."""
    if not isinstance(draws, np.ndarray) or draws.dtype.kind not in "fiu" or draws.ndim != 3:
        what = f"shape {draws.shape}, {draws.dtype}" if hasattr(draws, "dtype") else repr(draws)
        raise TypeError(
            f"draws={what} is not accepted; it must be an array of numbers of shape (n_chains, "
            "n_draws, n_params)."
        )
    if not draws.size:
        raise ValueError(f"draws has shape {draws.shape}; there must be at least one draw.")


def _without_units(draws: Array) -> Array:
    """Draws scaled so that the largest magnitude of every parameter is in [0.5, 1).

    Draws within 1e-15 of each other count as constant. Scaling by a power of two is exact.
    """
    with np.errstate(invalid="ignore"):  # NaN and infinite draws stay as they are
        _, exponent = np.frexp(np.abs(draws).max(axis=(0, 1)))
    return np.ldexp(draws.astype(float, copy=False), -exponent)


# ---- figures of each parameter -------------------------------------------------------------------


def _ess(draws: Array, kind: str) -> Array:
    """Effective sample size ``(n_params,)``; NaN with few draws, or if draws are NaN.

    A block of parameters is computed at once. One by one, as in arviz-stats, a fit of one chain
    that has not converged takes 1.4 times as long.
    """
    if draws.shape[1] < _MIN_DRAWS:
        return np.full(draws.shape[2], np.nan)
    ess = _by_block(_ESS[kind], _without_units(draws))
    ess[np.isnan(draws).any(axis=(0, 1))] = np.nan
    return ess


def _autocorrelation_ess(block: Array) -> Array:
    """Effective sample size ``(p,)`` by Geyer's initial monotone sequence of autocorrelations."""
    _, n_chains, n = block.shape
    means = block.mean(axis=2, keepdims=True)
    length = next_fast_len(2 * n)
    power = np.square(np.abs(rfft(block - means, length, axis=2))).mean(axis=1)
    covariance = irfft(power, length, axis=1)[:, :n] / n  # at each lag, mean over chains
    total = covariance[:, :1] + np.var(means[..., 0], axis=1, ddof=1, keepdims=True)
    rho = 1.0 - (covariance[:, :1] * n / (n - 1.0) - covariance) / total
    rho[:, 0] = 1.0
    pairs = rho[:, : n // 2 * 2].reshape(len(rho), -1, 2).sum(axis=2)
    last = max((n - 3) // 2, 0)
    ends = pairs[:, : last + 1] <= 0.0
    k = np.where(ends.any(axis=1), ends.argmax(axis=1), last)[:, None]  # the first pair left out
    monotone = np.minimum.accumulate(pairs, axis=1)
    inside = np.where(np.arange(pairs.shape[1]) < k, monotone, 0.0).sum(axis=1)
    even, pair = (np.take_along_axis(a, i, axis=1)[:, 0] for a, i in ((rho, 2 * k), (pairs, k)))
    tau = -1.0 + 2.0 * inside + np.where((even > 0.0) | (pair >= 0.0), even, 0.0)
    n_draws = n_chains * n
    ess = n_draws / np.maximum(tau, 1.0 / np.log10(n_draws))
    constant = np.ptp(block, axis=(1, 2)) < np.finfo(float).resolution
    return np.where(constant, n_draws, ess)


def _tail_ess(block: Array) -> Array:
    ends = np.quantile(block, _TAILS, axis=(1, 2), keepdims=True)
    return np.minimum(*(_autocorrelation_ess(_split(block <= end).astype(float)) for end in ends))


_ESS: dict[str, Callable[[Array], Array]] = {
    "bulk": lambda block: _autocorrelation_ess(_normal_scores(_split(block))),
    "mean": lambda block: _autocorrelation_ess(_split(block)),
    "sd": lambda block: _autocorrelation_ess(
        _split(np.square(block - block.mean(axis=(1, 2), keepdims=True)))
    ),
    "tail": _tail_ess,
}


def _by_block(function: Callable[[Array], Array], draws: Array) -> Array:
    """Figures ``(..., P)``, from a function of blocks of parameters ``(p, C, n)``."""
    n_chains, n_draws, n_params = draws.shape
    size = max(1, _BLOCK // (n_chains * n_draws))
    with np.errstate(all="ignore"):
        values = [
            function(np.array(draws[..., j : j + size].transpose(2, 0, 1), dtype=float, order="C"))
            for j in range(0, n_params, size)
        ]
    return np.concatenate(values, axis=-1)


def _rhat_and_ess(block: Array) -> Array:
    """R-hat and effective sample size by ranks of draws, and of distances from the median.

    The result is ``(2, 2, p)``. Distances from the median may mix more slowly than the draws.
    """
    halves = _split(block)
    distances = np.abs(halves - np.median(halves, axis=(1, 2), keepdims=True))
    scores = [_normal_scores(values) for values in (halves, distances)]
    return np.array([[figure(z) for z in scores] for figure in (_rhat, _autocorrelation_ess)])


def _split(block: Array) -> Array:
    """Halves of the chains ``(p, 2 C, n // 2)``."""
    half = block.shape[2] // 2
    return np.concatenate([block[..., :half], block[..., -half:]], axis=1)


def _normal_scores(block: Array) -> Array:
    """Normal quantiles of the draws' ranks over all chains."""
    flat = block.reshape(len(block), -1)
    ranks = rankdata(flat, axis=1)
    return ndtri((ranks - 0.375) / (flat.shape[1] + 0.25)).reshape(block.shape)


def _rhat(block: Array) -> Array:
    """R-hat of numbers of order 1, from sums and sums of squares."""
    n = block.shape[2]
    mean = block.sum(axis=2).astype(float) / n
    variance = (np.einsum("pcn,pcn->pc", block, block) - n * mean * mean) / (n - 1.0)
    between = n * np.var(mean, axis=1, ddof=1)
    return np.sqrt((between / variance.mean(axis=1) + n - 1.0) / n)


def _sd_errors(draws: Array) -> Array:
    """Kurtosis, and relative errors of the sds by it and by a fitted tail ``(3, n_params)``.

    The variance of a variance depends on the fourth moment, and most of that may be in a tail that
    a run seldom visits. The last figure takes the fourth moment of a generalised Pareto tail if
    that is larger. It is infinite if the tail has no fourth moment (a shape of the squares of 0.5
    or more).
    """
    draws = _without_units(draws)
    ess = _ess(draws, "sd")
    with np.errstate(all="ignore"):
        apart = (draws - draws.mean(axis=(0, 1))).reshape(-1, draws.shape[2])
        squares = np.square(apart / np.abs(apart).max(axis=0))
        ordered = np.sort(squares / squares.mean(axis=0), axis=0).T
        kurtosis = np.square(ordered).mean(axis=1)
        fourth = [_fourth_moment(*one) for one in zip(ordered, kurtosis, ess, strict=True)]
        errors = np.sqrt(np.maximum(np.stack([kurtosis, fourth]) - 1.0, 0.0) / ess) / 2.0
    errors[:, np.ptp(draws, axis=(0, 1)) == 0.0] = 0.0
    return np.stack([kurtosis, *errors])


def _fourth_moment(squares: Array, mean_square: float, ess: float) -> float:
    """Mean square of ordered ``squares (S,)``, whose upper tail is a generalised Pareto.

    It is at least ``mean_square``, the mean square of the draws. The size of the tail is that of
    Vehtari et al. (2024, Section 2.4) for ``ess`` independent draws.
    """
    from arviz_stats.base import array_stats

    if not np.isfinite(mean_square) or not min(ess, squares.size) >= _FEWEST_IN_TAIL / _TAIL_SHARE:
        return float(mean_square)
    n_tail = int(min(_TAIL_SHARE * min(ess, squares.size), 3.0 * np.sqrt(ess)))
    cut, excess = squares[-n_tail - 1], squares[-n_tail:] - squares[-n_tail - 1]
    if not excess[len(excess) // 4] > 0.0:  # the tail has few different values
        return float(mean_square)
    largest = squares[-int(min(ess, squares.size)) :]  # psislw takes a tail of this size from them
    try:
        shape, mean = array_stats.psislw(-np.log(largest))[1], excess.mean()
    except ValueError:  # all values of the tail are equal
        return float(mean_square)
    if shape >= 0.5:
        return np.inf
    tail_mean = cut**2 + 2.0 * cut * mean + 2.0 * mean**2 * (1.0 - shape) / (1.0 - 2.0 * shape)
    whole = (np.square(squares[:-n_tail]).sum() + n_tail * tail_mean) / squares.size
    return max(float(mean_square), float(whole))


@numpy_defaults
@np.errstate(invalid="ignore")  # infinities have no sd
def summarize(
    draws: Array, names: Sequence[str], weights: Array | None = None, coverage: float = 0.9
) -> pd.DataFrame:
    """Summary table of the posterior, with one row per parameter.

    Parameters
    ----------
    draws : ndarray of shape (n_chains, n_draws, n_params)
    names : sequence of str
        Names of the parameters.
    weights : ndarray of shape (n_draws,) or None, default=None
        Weights of the draws, the same in every chain; None if all are equal. Mean, sd and
        interval are weighted.
    coverage : float, default=0.9
        Coverage of the equal-tailed credible interval.

    Returns
    -------
    table : pandas.DataFrame
        Mean, sd, bulk and tail effective sample size, R-hat, the Monte Carlo standard errors of
        mean and sd, and the interval's ends, ``lower`` and ``upper``; ``attrs`` has its coverage.
        The standard error of an sd is infinite if the tails are too heavy to estimate it.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayes_sgld.diagnostics import summarize
    >>> draws = np.random.default_rng(0).standard_normal((4, 500, 1))
    >>> list(summarize(draws, ["x"]).columns)
    ['mean', 'sd', 'ess_bulk', 'ess_tail', 'r_hat', 'mcse_mean', 'mcse_sd', 'lower', 'upper']
    """
    check_draws(draws)
    if np.shape(np.asarray(names, dtype=object)) != (draws.shape[2],):
        raise ValueError(
            f"names={names!r} must be {draws.shape[2]} names, one for each parameter of draws."
        )
    check_number(coverage, "coverage", low=0, high=1)
    flat = draws.reshape(-1, draws.shape[2])
    w = None if weights is None else np.tile(weights, draws.shape[0])
    mean, sd = moments_of_draws(draws, weights)
    ends = tails(coverage)
    low, high = quantiles(flat.T, ends, w).T
    ess = effective_sample_size(draws, "mean")
    table = pd.DataFrame(
        {
            "mean": mean,
            "sd": sd,
            "ess_bulk": effective_sample_size(draws),
            "ess_tail": effective_sample_size(draws, "tail"),
            "r_hat": potential_scale_reduction(draws),
            "mcse_mean": sd / np.sqrt(ess),
            "mcse_sd": sd * _sd_errors(draws)[2],
            # last, since a narrow screen leaves out the middle of a table
            "lower": low,
            "upper": high,
        },
        index=pd.Index(names, name="parameter"),
    )
    table.attrs["coverage"] = coverage
    return table


def tails(coverage: float | Array) -> Array:
    """Levels of the two ends of an equal-tailed interval ``(2,)``, or ``(2, n_coverages)``."""
    return np.array([(1.0 - coverage) / 2.0, (1.0 + coverage) / 2.0], dtype=float)


def quantiles(values: Array, q: Array, weights: Array | None = None) -> Array:
    """Quantiles ``(n, len(q))`` of each row of ``values (n, S)``, with weights ``(S,)``."""
    if weights is None:
        return np.quantile(values, q, axis=-1).T
    return np.quantile(
        values, q, axis=-1, weights=np.broadcast_to(weights, values.shape), method="inverted_cdf"
    ).T


def moments_of_draws(draws: Array, weights: Array | None) -> tuple[Array, Array]:
    """Mean and sd ``(P,)`` over all chains of draws, weighted as in :func:`mean_of_draws`."""
    w = None if weights is None else np.tile(weights, len(draws))
    mean = mean_of_draws(draws, weights)
    apart = draws.reshape(-1, draws.shape[2]) - mean
    unit = np.abs(apart).max(axis=0)  # squares of values beyond 1e154 would overflow
    unit[unit == 0.0] = 1.0
    return mean, unit * np.sqrt(np.average(np.square(apart / unit), axis=0, weights=w))


def mean_of_draws(draws: Array, weights: Array | None) -> Array:
    """Mean ``(P,)`` over all chains of draws ``(C, S, P)`` with weights ``(S,)``, or None."""
    all_weights = None if weights is None else np.tile(weights, len(draws))
    return np.asarray(np.average(draws.reshape(-1, draws.shape[2]), axis=0, weights=all_weights))


def _chance_rhat(ess: Array, n_chains: int, n_params: int) -> Array:
    """R-hat that a converged fit exceeds once in 10,000 fits, at this effective sample size.

    For chains that agree, the variance of the half-chains' means has a chi-square distribution;
    with few draws this alone raises R-hat above 1.01.
    """
    n_halves = 2 * max(n_chains, 1)
    ratio = chi2.isf(_CHANCE / n_params, n_halves - 1) / (n_halves - 1)
    return np.sqrt(1.0 + ratio * n_halves / ess)


def needed_ess(n_chains: int) -> int:
    """Effective sample size that each parameter needs."""
    return MIN_ESS_PER_CHAIN * min(n_chains, 10)  # 1,000 are enough for any number of chains


def plainly_converged(draws: Array, needed: int | None = None) -> Array:
    """Mask ``(n_params,)`` of the parameters that certainly have no convergence problem.

    If in doubt, a parameter is not in the mask. The screen compares the halves of the chains and
    the means of batches, without ranks, autocorrelations or sorting: 4,000 draws of 21 parameters
    take 1 ms in place of 31. ``needed`` is the sufficient effective sample size, by default that
    for this number of chains.
    """
    n_chains, n_draws, n_params = draws.shape
    needed = needed_ess(n_chains) if needed is None else needed
    if n_draws < _FEWEST_SCREENED:
        return np.zeros(n_params, dtype=bool)

    def are_clean(z: Array) -> Array:
        z = _clipped(z)
        fewest = np.min([_batch_ess(z, count) for count in _SCREEN_BATCHES], axis=0)
        distance = np.abs(z)
        near = np.sqrt(np.sqrt(distance))  # like normal scores, it separates small distances
        largest = np.max([_rhat(_split(v)) for v in (z, distance, near)], axis=0)
        # a NaN compares as False
        return (largest <= _SCREEN_RHAT) & (fewest >= _SCREEN_ESS * needed)

    return _by_block(are_clean, draws)


def nearly_normal_and_converged(draws: Array, needed: int, n_params: int) -> Array:
    """Mask of the parameters that have no convergence problem and nearly normal draws.

    Effective sample sizes of nearly normal draws are within 2 % of those of their ranks, and R-hat
    is as near: here they are those of the draws, clipped at three sds. Without sorting, 1,000
    parameters take 0.25 s in place of 0.9 s. ``n_params`` is the number of parameters of which the
    worst is judged.
    """

    def are_clean(z: Array) -> Array:
        z = _clipped(z)
        halves = _split(z)
        both = halves, np.abs(halves)
        r_hat = np.max([_rhat(v) for v in both], axis=0)
        ess = np.array([_autocorrelation_ess(v) for v in both])
        limit = np.maximum(
            MAX_RHAT, _chance_rhat(np.maximum(ess.max(axis=0), needed), len(draws), n_params)
        )
        clean = (ess[0] >= _NEAR_ESS * needed) & (r_hat - 1.0 <= _NEAR_RHAT * (limit - 1.0))
        z = z.reshape(len(z), -1)
        z -= z.mean(axis=1, keepdims=True)
        squares = z * z
        sd = np.sqrt(squares.mean(axis=1))
        skewness = np.einsum("ps,ps->p", squares, z) / (z.shape[1] * sd**3)
        kurtosis = np.einsum("ps,ps->p", squares, squares) / (z.shape[1] * sd**4)
        # a NaN compares as False
        return clean & (np.abs(skewness) < _SKEWNESS) & (np.abs(kurtosis - 3.0) < _EXCESS)

    return _by_block(are_clean, draws)


def _clipped(z: Array) -> Array:
    """Draws about their median, in ``_CLIP`` median absolute deviations, clipped at 1."""
    z -= _middle(z[..., ::_EVERY])
    width = _middle(np.abs(z[..., ::_EVERY]))
    z /= _CLIP * width
    return np.clip(z, -1.0, 1.0, dtype=np.float32)  # seven digits are enough


def _middle(block: Array) -> Array:
    """Median of each parameter's draws ``(n_params, 1, 1)``, the upper one of two."""
    flat = np.array(block, order="C").reshape(len(block), -1)
    flat.partition(flat.shape[1] // 2, axis=1)
    return flat[:, flat.shape[1] // 2, None, None]


def _batch_ess(block: Array, count: int) -> Array:
    """Effective sample size from the variance of the means of ``count`` batches per chain."""
    n_params, n_chains, n = block.shape
    length = n // count
    batches = block[..., : length * count].reshape(n_params, n_chains * count, length)
    means = (batches @ np.ones(length, block.dtype)).astype(float) / length
    square = np.einsum("pcn,pcn->p", block, block) / (n_chains * n)
    total = square - np.square(means.mean(axis=1))
    return n_chains * count * total / means.var(axis=1, ddof=1)


def least_ess(draws: Array) -> tuple[float, int]:
    """Least bulk effective sample size of any parameter, and the parameter's number; NaN, 0."""
    ess = _ess(draws, "bulk")
    worst = int(np.argmin(np.nan_to_num(ess, nan=np.inf)))
    return float(ess[worst]), worst


NOT_CONVERGED = "the chains have not converged"
# Effective draws of a chain (with few draws, their share) below which it is no better than a random
# walk. By _ess_single, walks of 50 to 1,000 draws have a median of 2.3. With one chain and six
# independent parameters, 1 walk in 100 is above 5.3, and 1 in 1,000 chains with an effective sample
# size of ten is below 6.3
_WALK, _WALK_SHARE = 5.0, 0.25


def convergence_problems(draws: Array, names: Sequence[str], n_walkers: int = 1) -> dict[str, str]:
    """Convergence problems of the draws, as sentences that name a parameter and its figure.

    Parameters
    ----------
    draws : ndarray of shape (n_chains, n_draws, n_params)
    names : sequence of str
        Names of the parameters.
    n_walkers : int, default=1
        Number of walkers whose draws are concatenated in each chain. Walkers with at least 200
        draws must agree, like chains.

    Returns
    -------
    problems : dict of str to str
        Sentences by kind of problem: ``"still"``, chains that stand still; ``"walk"``, chains no
        better than random walks from their starts; ``"r_hat"``, chains that have not converged;
        ``"ess"``, too small an effective sample size; ``"n_draws"``, too few draws for a sufficient
        one; ``"unknown"``, too few draws to judge. Empty if R-hat and the effective sample sizes of
        all parameters are acceptable.
    """
    n_chains, n_draws, n_params = draws.shape
    if n_draws < _MIN_DRAWS:
        return {"unknown": f"{n_draws} draws a chain are too few to judge"}
    needed, each = needed_ess(n_chains), -(-n_draws // n_walkers)
    last = n_draws - (n_walkers - 1) * each  # the last walker may have fewer
    if last >= _FEWEST_SCREENED:
        alone = [draws[:, w * each : w * each + last] for w in range(n_walkers)]
        draws = np.stack(alone, axis=1).reshape(-1, last, n_params)
    suspects = np.flatnonzero(~plainly_converged(draws, needed))
    if len(suspects) >= _MANY:
        clean = nearly_normal_and_converged(draws[..., suspects], needed, n_params)
        suspects = suspects[~clean]
    if not len(suspects):
        return {}
    single, walk = _ess_single(draws)
    draws, problems = draws[..., suspects], {}
    still = (draws == draws[:, :1]).all(axis=1)
    if still.any():
        worst = int(still.sum(axis=0).argmax())
        name, stand = names[suspects[worst]], f"{still[:, worst].sum()} of {len(draws)} chains"
        return {"still": f"all draws of {name} are the same in {stand}: they stand still"}
    if single < walk:
        size = f"the median effective sample size of a single chain is {single:.1f}"
        return {"walk": f"the chains are no better than random walks: {size}, below {walk:g}"}
    (location, scale), (ess, scale_ess) = _by_block(_rhat_and_ess, _without_units(draws))
    r_hat = np.fmax(location, scale)
    worth = np.where(scale > location, scale_ess, ess)  # effective draws behind the larger R-hat
    limit = np.maximum(MAX_RHAT, _chance_rhat(np.maximum(worth, needed), len(draws), n_params))
    if np.any(r_hat > limit):
        worst = int(np.nanargmax(r_hat / limit))
        problems["r_hat"] = (
            f"{NOT_CONVERGED}: R-hat of {names[suspects[worst]]} is {r_hat[worst]:.4f}, above "
            f"{limit[worst]:.4f}"
        )
    if np.any(ess < needed):
        worst = int(np.nanargmin(ess))
        name, made = names[suspects[worst]], n_chains * n_draws
        problem = f"the effective sample size of {name} is {np.floor(ess[worst]):.0f}"
        if made < 2 * needed:  # at least half of the draws would have to be independent
            few = f"{n_draws} draws a chain are too few for an effective size of {needed}"
            problems["n_draws"] = f"{problem}: {few}"
        else:
            problems["ess"] = f"{problem}, below {needed}"
    return problems


def are_random_walks(draws: Array) -> bool:
    """Whether the chains are no better than random walks from their starts."""
    if draws.shape[1] < _MIN_DRAWS:
        return False
    single, walk = _ess_single(draws)
    return single < walk


def _ess_single(draws: Array) -> tuple[float, float]:
    """Median effective sample size of a single chain, and the limit below which it is a walk.

    The median is over chains and up to a hundred parameters. The estimate uses only draws a
    twentieth of a chain apart, so it is about 20 at most. It follows from the moves between these
    draws, as for a first-order autoregression, which Langevin steps short relative to the posterior
    are. Geyer's sequence hardly separates ten effective draws from a random walk. Distances between
    chains are not used, since chains may start at the same point.
    """
    n_draws, every = draws.shape[1], -(-draws.shape[2] // 100)
    draws = _without_units(draws[..., ::every])
    lag = max(1, n_draws // 20)
    with np.errstate(all="ignore"):
        moves = np.square(draws[:, lag:] - draws[:, :-lag]).mean(axis=1)
        moves /= draws.var(axis=1)  # 2 (1 - autocorrelation)
        ess = n_draws / lag * moves / np.maximum(4.0 - moves, 1.0)
    return float(np.median(np.nan_to_num(ess))), min(_WALK, _WALK_SHARE * n_draws)


def enough_draws(draws: Array) -> int:
    """Number of draws per chain that would be enough, at the effective sample size of these."""
    n_chains, n_draws, _ = draws.shape
    ess = max(least_ess(draws)[0], 1.0)
    number = needed_ess(n_chains) * max(2.0 / n_chains, n_draws / ess)
    unit = 10.0 ** max(np.floor(np.log10(number)) - 1.0, 0.0)  # two digits, rounded up
    return int(np.ceil(number / unit - 1e-9) * unit)


def uncertain_sds(draws: Array, names: Sequence[str]) -> dict[str, float]:
    """Relative Monte Carlo errors, by parameter, of sds that are uncertain because of heavy tails.

    Parameters
    ----------
    draws : ndarray of shape (n_chains, n_draws, n_params)
    names : sequence of str
        Names of the parameters.
    """
    if draws.shape[1] < _FEWEST_SCREENED or not len(names):
        return {}
    suspects = np.flatnonzero(~(_by_block(_batch_sd_errors, draws) < _SUSPECT * _TOLD_SEEN))
    if not len(suspects):
        return {}
    kurtosis, least_error, error = _sd_errors(draws[..., suspects])
    heavy = (kurtosis > _TOLD_KURTOSIS) & (least_error > _TOLD_SEEN) & (error > _TOLD_SD)
    suspicious = np.flatnonzero(heavy | (least_error > _TOLD_SD))
    return {names[suspects[j]]: float(error[j]) for j in suspicious}


def say_uncertain(errors: dict[str, float]) -> str:
    """Sentence on the least certain of the sds that :func:`uncertain_sds` found."""
    name, error = max(errors.items(), key=lambda item: item[1])
    size = "of unknown size" if np.isinf(error) else f"of {error:.0%}"
    others = f" and {len(errors) - 1} others" if len(errors) > 1 else ""
    return (
        f"the standard deviation of {name}{others} has a Monte Carlo error {size}, as its tails "
        "are heavy"
    )


def _batch_sd_errors(block: Array) -> Array:
    """Relative Monte Carlo errors of the sds, by the means of batches of squares."""
    n_params, n_chains, n = block.shape
    count = _SCREEN_BATCHES[1]
    apart = block - block.mean(axis=(1, 2), keepdims=True)
    batches = apart[..., : n // count * count].reshape(n_params, n_chains * count, -1)
    means = np.einsum("pbn,pbn->pb", batches, batches)
    means /= means.mean(axis=1, keepdims=True)
    return means.std(axis=1, ddof=1) / (2.0 * np.sqrt(n_chains * count))

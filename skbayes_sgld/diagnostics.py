"""What the draws say of themselves: summaries and convergence checks, on plain arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from arviz_stats.base import array_stats
from numpy.typing import NDArray
from scipy.stats import chi2

Array = NDArray[Any]

MAX_RHAT = 1.01  # Vehtari, Gelman, Simpson, Carpenter & Buerkner 2021, Section 4
MIN_ESS_PER_CHAIN = 100
_CHANCE = 1e-4


def effective_sample_size(draws: Array, kind: str = "bulk") -> Array:
    """Return the effective sample size of each parameter.

    Parameters
    ----------
    draws : ndarray of shape (n_chains, n_draws, n_params)
    kind : {"bulk", "tail", "mean"}
        Which summaries it is to hold for (Vehtari et al. 2021, Section 4).

    Returns
    -------
    ess : ndarray of shape (n_params,)

    Examples
    --------
    >>> import numpy as np
    >>> from skbayes_sgld.diagnostics import effective_sample_size
    >>> draws = np.random.default_rng(0).standard_normal((4, 500, 2))
    >>> bool((effective_sample_size(draws) > 1500).all())
    True
    """
    tail = {"prob": (0.05, 0.95)} if kind == "tail" else {}
    return _per_parameter(array_stats.ess, draws, method=kind, **tail)


def potential_scale_reduction(draws: Array) -> Array:
    """Return the rank-normalised split R-hat of each parameter (Vehtari et al. 2021, eq. 4).

    Parameters
    ----------
    draws : ndarray of shape (n_chains, n_draws, n_params)

    Returns
    -------
    r_hat : ndarray of shape (n_params,)

    Examples
    --------
    >>> import numpy as np
    >>> from skbayes_sgld.diagnostics import potential_scale_reduction
    >>> draws = np.random.default_rng(0).standard_normal((4, 500, 1))
    >>> bool(potential_scale_reduction(draws)[0] < 1.01)
    True
    """
    if draws.shape[0] == 1:  # one chain is compared with itself, its first half with its second
        half = draws.shape[1] // 2
        draws = np.concatenate([draws[:, :half], draws[:, half : 2 * half]])
    return _per_parameter(array_stats.rhat, draws, method="rank")


def _per_parameter(function: Any, draws: Array, **kwargs: Any) -> Array:
    if draws.shape[1] < 4:  # too few to say anything
        return np.full(draws.shape[2], np.nan)
    with np.errstate(all="ignore"):
        return np.atleast_1d(function(draws, chain_axis=0, draw_axis=1, **kwargs))


def summarize(
    draws: Array, names: Sequence[str], weights: Array | None = None, coverage: float = 0.9
) -> pd.DataFrame:
    """Return a table of the posterior, one row a parameter.

    Parameters
    ----------
    draws : ndarray of shape (n_chains, n_draws, n_params)
    names : sequence of str
    weights : ndarray of shape (n_draws,) or None
        Of the draws, where they are not equal.
    coverage : float, default=0.9
        Of the equal-tailed interval.

    Returns
    -------
    table : pandas.DataFrame
        Mean, sd, the interval's ends, bulk and tail effective sample size, R-hat and the Monte
        Carlo standard error of the mean.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayes_sgld.diagnostics import summarize
    >>> draws = np.random.default_rng(0).standard_normal((4, 500, 1))
    >>> list(summarize(draws, ["x"]).columns)
    ['mean', 'sd', '5%', '95%', 'ess_bulk', 'ess_tail', 'r_hat', 'mcse_mean']
    """
    flat = draws.reshape(-1, draws.shape[2])
    w = None if weights is None else np.tile(weights, draws.shape[0])
    mean = np.average(flat, axis=0, weights=w)
    sd = np.sqrt(np.average(np.square(flat - mean), axis=0, weights=w))
    tails = np.array([(1 - coverage) / 2, (1 + coverage) / 2])
    low, high = quantiles(flat.T, tails, w).T
    ess = _per_parameter(array_stats.ess, draws, method="mean")
    return pd.DataFrame(
        {
            "mean": mean,
            "sd": sd,
            f"{100 * tails[0]:.4g}%": low,
            f"{100 * tails[1]:.4g}%": high,
            "ess_bulk": effective_sample_size(draws),
            "ess_tail": effective_sample_size(draws, "tail"),
            "r_hat": potential_scale_reduction(draws),
            "mcse_mean": sd / np.sqrt(ess),
        },
        index=pd.Index(names, name="parameter"),
    )


def quantiles(values: Array, q: Array, weights: Array | None = None) -> Array:
    """Return the quantiles of each row of ``values (n, S)``, as ``(n, len(q))``."""
    if weights is None:
        return np.quantile(values, q, axis=-1).T
    return np.quantile(
        values, q, axis=-1, weights=np.broadcast_to(weights, values.shape), method="inverted_cdf"
    ).T


def _chance_rhat(ess: Array, n_chains: int) -> Array:
    """Return the R-hat that chance alone exceeds once in 10,000, for this effective sample size.

    Split into halves, chains that agree have means whose variance over the halves is chi-square:
    with few draws that alone lifts R-hat above 1.01.
    """
    n_halves = 2 * max(n_chains, 1)
    ratio = chi2.isf(_CHANCE / len(ess), n_halves - 1) / (n_halves - 1)
    return np.sqrt(1.0 + ratio * n_halves / ess)


def convergence_problems(draws: Array, names: Sequence[str]) -> list[str]:
    """Return what is wrong with the draws, in sentences that name parameter and figure.

    Parameters
    ----------
    draws : ndarray of shape (n_chains, n_draws, n_params)
    names : sequence of str

    Returns
    -------
    problems : list of str
        Empty when R-hat and the effective sample sizes are as they should be.
    """
    if draws.shape[1] < 4:
        return [f"{draws.shape[1]} draws a chain are too few to judge"]
    problems = []
    r_hat, ess = potential_scale_reduction(draws), effective_sample_size(draws)
    needed = MIN_ESS_PER_CHAIN * min(draws.shape[0], 10)  # a thousand is enough of any
    limit = np.maximum(MAX_RHAT, _chance_rhat(np.maximum(ess, needed), draws.shape[0]))
    if np.any(r_hat > limit):
        worst = int(np.nanargmax(r_hat / limit))
        problems.append(
            f"R-hat of {names[worst]} is {r_hat[worst]:.3f}, above {limit[worst]:.3g}: the chains "
            "do not agree"
        )
    if np.any(ess < needed):
        worst = int(np.nanargmin(ess))
        problems.append(
            f"the effective sample size of {names[worst]} is {ess[worst]:.0f}, below {needed}"
        )
    return problems

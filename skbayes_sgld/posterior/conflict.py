r"""Conflict between the prior of the coefficients and the data, and the pull of the prior.

With the log likelihood expanded to second order, the prior :math:`N(\mu, s^2)` and the posterior
variances :math:`v`, the posterior mean has the variance :math:`s^2 - v` over data that follow the
prior. Its distance from :math:`\mu` in these units is Box's (1980) check of the prior; jointly,
over all coefficients, that of Evans & Moshonov (2006). Without its own prior, under the priors of
the others, a coefficient is normal with the moments ``apart`` and ``width`` of the code (Marshall &
Spiegelhalter 2007).

The pull is that of the priors of all coefficients together, from their maximum likelihood estimate,
by Newton's method, to the posterior. To remove one prior at a time would not show it: if columns
are nearly dependent, the priors of the others hold a coefficient as firmly.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import linalg
from scipy.special import ndtr
from scipy.stats import chi2

from skbayes_sgld._linalg import MAX_DENSE
from skbayes_sgld._typing import Array
from skbayes_sgld.posterior.further_rows import WithFurtherRows
from skbayes_sgld.posterior.glm import GLMPosterior
from skbayes_sgld.posterior.propriety import separated
from skbayes_sgld.priors import Flat

_NODES = np.linspace(-8.0, 8.0, 321)  # normal scores at which a prior's quantiles are computed
_LEAST = 1e-12  # curvature, relative to the prior's or the largest, that counts as none


@dataclass(frozen=True)
class PriorConflict:
    """Measures of the conflict between the prior of the coefficients and the data.

    Attributes
    ----------
    names : list of str
        Names of the coefficients.
    n_rows : float
        Sum of the rows' weights.
    from_data : bool
        Whether the scale of the prior was taken from the data.
    probability : float
        Probability of data at least as far from the prior's centre, if the prior were true; 1
        under a flat prior.
    distance : ndarray of shape (n_coef,)
        Distance of each coefficient, estimated without its own prior, from the centre of that
        prior, in sds of both together.
    pull : ndarray of shape (n_coef,)
        Posterior minus maximum likelihood estimate, in posterior sds. Posterior means are used, or
        under a normal prior the mode. Infinite if the data alone determine no estimate, and 0 under
        a flat prior.
    effective : float
        Effective number of coefficients of one linear predictor that the data determine (MacKay
        1992, eq. 4.9).
    """

    names: list[str]
    n_rows: float
    from_data: bool
    probability: float
    distance: Array
    pull: Array
    effective: float

    @property
    def furthest(self) -> tuple[int, float]:
        """Position of the coefficient with the largest pull, and the size of that pull."""
        worst = int(np.abs(self.pull).argmax())
        return worst, float(abs(self.pull[worst]))


def prior_conflict(posterior: Any, values: Array, sds: Array) -> PriorConflict | None:
    """Conflict of the coefficients' prior with the data; None for models without this measure.

    Parameters
    ----------
    posterior : BasePosterior
        Posterior in any coordinates.
    values : ndarray of shape (n_constrained,)
        Posterior mean of the reported parameters.
    sds : ndarray of shape (n_constrained,)
        Their posterior standard deviations.
    """
    posterior = _innermost(posterior)
    if posterior is None:
        return None
    theta = posterior.reported.theta(values[None])[0]
    K, d, prior = posterior.n_predictors, posterior.n_features, posterior.linear_prior
    blocks = posterior.parameters
    L = blocks.n_linear
    if isinstance(posterior, WithFurtherRows) or L > MAX_DENSE:
        return None
    linear, gamma = blocks.at_one(theta)
    number = blocks.coef(np.arange(len(theta))[None]).ravel()
    names = [posterior.reported.names[j] for j in number]
    about = names, posterior.total_weight, not prior.some_given
    own = prior.coef if gamma is None else prior.coef.given_noise(float(np.exp(gamma)))
    if own.flat:
        return PriorConflict(*about, 1.0, np.zeros(K * d), np.zeros(K * d), float(d))
    quantiles = own.quantiles(ndtr(_NODES), d)
    if quantiles is None:
        return None
    flat = posterior.with_prior(replace(prior, coef=Flat()))
    expansion = _expand(flat, theta)
    H, g = _at_best_level(*expansion, number)
    shift = (linear[:, :d] - getattr(own, "location", 0.0)).ravel()
    root: Array = np.kron(np.eye(K), own.root(d))
    rate, U = linalg.eigh(root.T @ H @ root)
    rate = np.maximum(rate, 0.0)
    score = U.T @ (root.T @ (g + H @ shift))
    ways = root @ U
    # variance of the posterior mean over data
    variance_of_mean = np.square(ways) @ (rate / (1.0 + rate))
    variance = np.square(ways) @ (1.0 / (1.0 + rate))  # posterior variance
    mean = ways @ (score / (1.0 + rate))
    informed = variance_of_mean > _LEAST * (variance_of_mean + variance)
    variance_of_mean = np.where(informed, variance_of_mean, 1.0)
    distance = np.where(informed, mean / np.sqrt(variance_of_mean), 0.0)
    apart = mean * (variance_of_mean + variance) / variance_of_mean
    width = np.sqrt(variance * (variance_of_mean + variance) / variance_of_mean)
    # a posterior mean may differ from the mode only because of skewness
    held = mean + linear[:, :d].ravel() - shift if own.normal else linear[:, :d].ravel()
    estimate, determined = _estimate(flat, theta, sds[number].reshape(K, d), expansion)
    moves = _without_shift(held.reshape(K, d) - estimate) / sds[number].reshape(K, d)
    pull = np.where(determined, moves, np.inf).ravel()
    # probability of a larger two-sided distance, for prior draws plus normal errors
    weight = np.exp(-0.5 * np.square(_NODES))
    above = ndtr((np.tile(quantiles, K) - np.abs(apart)) / width)
    chance = np.where(informed, 2.0 * (weight / weight.sum()) @ above, 1.0)
    probability = float(chance.min()) * max(int(informed.sum()), 1)
    if own.normal:
        determined = rate > _LEAST * max(1.0, float(rate.max()))
        rates = rate[determined]
        square = np.sum(np.square(score[determined]) / (rates * (1.0 + rates)))
        probability = 2.0 * min(probability, float(chi2.sf(square, max(determined.sum(), 1))))
    effective = float(np.sum(rate / (1.0 + rate))) / max(K - 1, 1)
    return PriorConflict(*about, min(probability, 1.0), distance, pull, effective)


def own_pull(posterior: Any, values: Array) -> tuple[str, str, float] | None:
    """Own parameter that its prior moves most; None without own parameters.

    Parameters
    ----------
    posterior : BasePosterior
        Posterior in any coordinates.
    values : ndarray of shape (n_constrained,)
        Posterior mean of the reported parameters.

    Returns
    -------
    name, argument : str
        Names of the parameter, and of the setting of its prior.
    pull : float
        Step, in posterior sds, from the estimate without the priors of own parameters, to second
        order; infinite if there is no estimate.
    """
    posterior = _innermost(posterior)
    if posterior is None or not posterior.n_own or posterior.n_params > MAX_DENSE:
        return None
    theta = posterior.reported.theta(values[None])[0]
    n, m, block = posterior.n_params, posterior.n_own, posterior.parameters["own"]
    own = posterior.parameters.own(theta[None])
    with np.errstate(all="ignore"):
        H = posterior.expand(theta).curvature
    flat = H.copy()
    flat[np.arange(n - m, n), np.arange(n - m, n)] -= block.prior_curvature(own[0])
    score = np.zeros(n)
    score[-m:] = block.grad_log_prior(own)[0]
    try:  # the mean may be far from the mode
        inverse = linalg.cho_solve(linalg.cho_factor(H), np.eye(n)[:, -m:])
    except (linalg.LinAlgError, ValueError):
        return None
    sd = np.sqrt(np.diagonal(inverse[-m:]))
    try:
        pull = linalg.cho_solve(linalg.cho_factor(flat), score)[-m:] / sd
    except (linalg.LinAlgError, ValueError):  # no estimate, or one beyond rounding errors
        pull = np.where(np.abs(score[-m:] * sd) == np.abs(score[-m:] * sd).max(), np.inf, 0.0)
    worst = int(np.abs(pull).argmax())
    parameter = posterior.likelihood.own[worst]
    return parameter.name, parameter.argument, float(pull[worst])


def _innermost(posterior: Any) -> GLMPosterior | None:
    """Linear model behind other coordinates; None for other models."""
    while posterior.inner is not None:
        posterior = posterior.inner
    return posterior if isinstance(posterior, GLMPosterior) else None


def _expand(posterior: GLMPosterior, theta: Array) -> tuple[Array, Array]:
    """Minus the Hessian of the log density in the linear parameters, and its gradient."""
    with np.errstate(all="ignore"):
        at = posterior.expand(theta)
    L = posterior.parameters.n_linear
    return at.curvature[:L, :L], at.grad[:L]


def _at_best_level(H: Array, g: Array, coef: Array) -> tuple[Array, Array]:
    """Curvature and gradient in the parameters ``coef``, maximised over the others."""
    level = np.setdiff1d(np.arange(len(g)), coef)
    cross = H[np.ix_(coef, level)]
    # singular if a class has next to no weight
    solved = linalg.lstsq(H[np.ix_(level, level)], cross.T)[0] if level.size else cross.T
    return H[np.ix_(coef, coef)] - cross @ solved, g[coef] - solved.T @ g[level]


def _estimate(
    posterior: GLMPosterior, theta: Array, sds: Array, expansion: tuple[Array, Array]
) -> tuple[Array, Array]:
    """Mode ``(K, d)`` under a flat prior of the coefficients, and whether there is one.

    Newton's method starts at ``theta (P,)``, whose expansion is given, and ends when no
    coefficient moves by a tenth of its sd: one step is enough if the prior hardly matters. A
    coefficient has no estimate if a direction without curvature moves it, if it has next to none
    itself, or if the steps do not end, as with separated classes.
    """
    (K, d), (H, g) = sds.shape, expansion
    blocks, determined = posterior.parameters, np.zeros((K, d), dtype=bool)

    def coefficients(linear: Array) -> Array:
        return _without_shift(blocks.coef(linear[None])[0])

    for _ in range(20):  # with separated classes the steps do not end
        if not (np.isfinite(H).all() and np.isfinite(g).all()):
            break
        if K > 1:  # fix the common shift of softmax predictors, which has no effect
            by_column = blocks.linear(np.diagonal(H)[None])[0].mean(axis=0)
            H = H + np.kron(np.ones((K, K)), np.diag(by_column))
        unit = np.sqrt(np.maximum(np.diagonal(H), 0.0))
        unit = np.where(unit > 0.0, unit, 1.0)
        rates, ways = linalg.eigh(H / np.outer(unit, unit))
        ways = ways / unit[:, None]
        curved = rates > _LEAST * rates[-1]
        loose = np.zeros((K, d))
        for way in ways[:, ~curved].T:
            loose = np.maximum(loose, np.abs(coefficients(way)) / sds)
        own = blocks.coef(np.diagonal(H)[None])[0] * np.square(sds)
        determined = (loose <= 1e-3 * loose.max(initial=0.0)) & (own > _LEAST)
        step = ways[:, curved] @ ((ways[:, curved].T @ g) / rates[curved])
        rise = g @ step
        while True:
            landing = theta.copy()
            landing[: len(g)] += step
            H, g = _expand(posterior, landing)
            if np.isfinite(g).all() and g @ step >= -0.9 * rise:
                break  # the step does not overshoot the maximum by nearly its length
            step, rise = 0.5 * step, 0.5 * rise
        theta = landing
        moving = np.abs(coefficients(step)) > 0.1 * sds
        if not (moving & determined).any():
            break
    else:
        determined = determined & ~moving
    if separated(posterior, theta):
        determined = np.zeros((K, d), dtype=bool)
    return blocks.coef(theta[None])[0], determined


def _without_shift(coef: Array) -> Array:
    """Coefficients ``(K, d, ...)`` minus their mean over softmax predictors, which is undefined."""
    return coef - coef.mean(axis=0) if len(coef) > 1 else coef

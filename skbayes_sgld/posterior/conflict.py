r"""How far the prior of the coefficients is from what the data say, and how hard it pulls.

With the log likelihood expanded to second order, the prior :math:`N(\mu, s^2)` and the posterior
variances :math:`v`, the posterior mean of data that follow the prior has the variance
:math:`s^2 - v`. Its distance from :math:`\mu` in these units is Box's (1980) check of the prior;
jointly, over all coefficients, that of Evans & Moshonov (2006). Without its own prior, that of the
others kept, a coefficient would be normal with the moments that are computed here as ``apart`` and
``width`` (Marshall & Spiegelhalter 2007).

The pull is that of the prior of all coefficients together: from their maximum likelihood estimate,
which Newton's method finds, to the posterior. One coefficient's prior at a time would not show it:
where columns are nearly dependent, the priors of the others hold a coefficient as firmly.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg
from scipy.special import ndtr
from scipy.stats import chi2

from skbayes_sgld._linalg import MAX_DENSE
from skbayes_sgld.posterior.glm import GLMPosterior
from skbayes_sgld.posterior.parameterizations.base import Reparameterized
from skbayes_sgld.posterior.parameterizations.row_space import RowSpacePosterior
from skbayes_sgld.posterior.priors import Flat
from skbayes_sgld.posterior.propriety import separated

Array = NDArray[Any]

_NODES = np.linspace(-8.0, 8.0, 321)  # normal scores at which a prior's quantiles are taken
_LEAST = 1e-12  # curvature over the prior's, or the largest, below which the data say nothing
_SMALL = 0.1  # posterior sds; the error of Newton's method is then about the square
_STEPS = 20  # of Newton's method; where classes are separated they do not end


@dataclass(frozen=True)
class PriorConflict:
    """What the data say of the prior of the coefficients.

    Attributes
    ----------
    names : list of str
        Names of the coefficients.
    n_rows : float
        What the rows count as.
    from_data : bool
        Whether the scale of the prior was taken from the data.
    probability : float
        Of data at least as far from the prior's centre, were they drawn from the prior; 1 under a
        flat prior.
    distance : ndarray of shape (n_coef,)
        Of what all but a coefficient's own prior say of it from that prior's centre, in sds of the
        two together.
    pull : ndarray of shape (n_coef,)
        From the maximum likelihood estimate to the posterior, in posterior sds: of the mean, or of
        the mode under a normal prior. It is infinite where the data alone determine no estimate,
        and 0 under a flat prior.
    effective : float
        Number of coefficients of one linear predictor that the data determine, in which those that
        the prior determines count little (MacKay 1992, eq. 4.9).
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
        """Coefficient on which the pull is largest, and its size."""
        worst = int(np.abs(self.pull).argmax())
        return worst, float(abs(self.pull[worst]))


def prior_conflict(posterior: Any, values: Array, sds: Array) -> PriorConflict | None:
    """How far the coefficients' prior and the data are apart; None where it is not measured.

    Parameters
    ----------
    posterior : BasePosterior
        In any coordinates.
    values : ndarray of shape (n_constrained,)
        Posterior mean of the reported parameters.
    sds : ndarray of shape (n_constrained,)
        Their posterior standard deviations.
    """
    while isinstance(posterior, Reparameterized | RowSpacePosterior):
        posterior = posterior.inner
    if not isinstance(posterior, GLMPosterior):
        return None
    theta = posterior.unconstrain(values[None])[0]
    K, d, prior = posterior.n_predictors, posterior.n_features, posterior.linear_prior
    L = K * (d + posterior.fit_intercept)
    if not prior.separate or L > MAX_DENSE:
        return None
    linear = theta[:L].reshape(K, -1)
    number = np.arange(L).reshape(K, -1)[:, :d].ravel()
    names = [posterior.constrained_names[j] for j in number]
    about = names, posterior.facts.total_weight, prior.from_data
    gamma = float(theta[-1]) if posterior.likelihood.infers_noise else None
    own = prior.coef if gamma is None else prior.coef.given_noise(float(np.exp(gamma)))
    if own.flat:
        return PriorConflict(*about, 1.0, np.zeros(K * d), np.zeros(K * d), float(d))
    quantiles = own.quantiles(ndtr(_NODES), d)
    if quantiles is None:
        return None
    H, g = _likelihood_of_coefficients(posterior, theta, linear, gamma)
    moved = (linear[:, :d] - own.get_params()["location"]).ravel()
    root: Array = np.kron(np.eye(K), own.root(d))
    rate, U = linalg.eigh(root.T @ H @ root)
    rate = np.maximum(rate, 0.0)
    score = U.T @ (root.T @ (g + H @ moved))
    ways = root @ U
    seen = np.square(ways) @ (rate / (1.0 + rate))  # variance of the posterior mean
    left = np.square(ways) @ (1.0 / (1.0 + rate))  # that of the posterior
    mean = ways @ (score / (1.0 + rate))
    told = seen > _LEAST * (seen + left)
    seen = np.where(told, seen, 1.0)
    distance = np.where(told, mean / np.sqrt(seen), 0.0)
    apart = mean * (seen + left) / seen
    width = np.sqrt(left * (seen + left) / seen)
    # a posterior mean may be beside the mode for its skewness alone
    held = mean + linear[:, :d].ravel() - moved if own.normal else linear[:, :d].ravel()
    pull = _joint_pull(posterior, theta, held.reshape(K, d), sds[number].reshape(K, d))
    chance = np.where(told, _tail(np.tile(quantiles, K), np.abs(apart), width), 1.0)
    probability = float(chance.min()) * max(int(told.sum()), 1)
    if own.normal:
        known = rate > _LEAST * max(1.0, float(rate.max()))
        square = np.sum(np.square(score[known]) / (rate[known] * (1.0 + rate[known])))
        probability = 2.0 * min(probability, float(chi2.sf(square, max(known.sum(), 1))))
    effective = float(np.sum(rate / (1.0 + rate))) / max(K - 1, 1)
    return PriorConflict(*about, min(probability, 1.0), distance, pull, effective)


def _joint_pull(posterior: GLMPosterior, theta: Array, held: Array, sds: Array) -> Array:
    """From the estimate without the coefficients' prior to ``held (K, d)``, in ``sds (K, d)``."""
    K, d = held.shape
    estimate, known = _without_prior(posterior, theta, sds)
    if K > 1:  # softmax coefficients are known up to a common shift
        held, estimate = held - held.mean(axis=0), estimate - estimate.mean(axis=0)
    return np.where(known, (held - estimate) / sds, np.inf).ravel()


def _without_prior(posterior: GLMPosterior, theta: Array, sds: Array) -> tuple[Array, Array]:
    """Maximum likelihood estimate ``(K, d)`` of the coefficients, and whether there is one.

    Newton's method goes on from ``theta (P,)`` until it moves no coefficient by a tenth of its sd:
    one step is enough where the prior hardly matters. A coefficient has no estimate where a
    direction without curvature moves it, or where the steps do not end, as of separated classes.
    """
    K, d = sds.shape
    width = d + posterior.fit_intercept
    L = K * width
    basis = None  # of softmax predictors, whose common shift the data cannot tell
    if K > 1:
        basis = np.kron(linalg.null_space(np.ones((1, K))), np.eye(width))
    rest = replace(posterior.linear_prior, coef=Flat())
    at_gamma = theta[L:] if theta.size > L else None

    def slope(at: Array) -> Array:
        in_rest = rest.grad(at[:L].reshape(1, K, width), at_gamma)[0].ravel()
        with np.errstate(all="ignore"):
            grad = posterior.grad_log_likelihood(at[None])[0, :L] + in_rest
            return grad if basis is None else basis.T @ grad

    def linear(x: Array) -> Array:
        return x if basis is None else basis @ x

    def coefficients(x: Array) -> Array:
        return linear(x).reshape(K, width, -1)[:, :d]

    gamma = None if at_gamma is None else float(at_gamma[0])
    g, known = slope(theta), np.zeros((K, d), dtype=bool)
    for _ in range(_STEPS):
        H = posterior.likelihood_curvature(theta)[:L, :L]
        H = H + rest.curvature(theta[:L].reshape(K, width), gamma)[0]
        if basis is not None:
            H = basis.T @ H @ basis
        if not (np.isfinite(H).all() and np.isfinite(g).all()):
            break
        unit = np.sqrt(np.maximum(np.diagonal(H), 0.0))
        unit = np.where(unit > 0.0, unit, 1.0)
        rates, ways = linalg.eigh(H / np.outer(unit, unit))
        ways = ways / unit[:, None]
        seen = rates > _LEAST * rates[-1]
        loose = np.abs(coefficients(ways[:, ~seen])).max(axis=2, initial=0.0) / sds
        known = loose <= 1e-3 * loose.max(initial=0.0)
        ways, rates = ways[:, seen], rates[seen]
        step = ways @ ((ways.T @ g) / rates)
        rise = g @ step
        while True:
            landing = theta.copy()
            landing[:L] += linear(step)
            g = slope(landing)
            if np.isfinite(g).all() and g @ step >= -0.9 * rise:
                break  # not beyond the maximum along it by nearly as much as before it
            step, rise = 0.5 * step, 0.5 * rise
        theta = landing
        moving = np.abs(coefficients(step)[..., 0]) > _SMALL * sds
        if not (moving & known).any():
            break
    else:
        known = known & ~moving
    if separated(posterior, theta):
        known = np.zeros((K, d), dtype=bool)
    return theta[:L].reshape(K, width)[:, :d], known


def _tail(quantiles: Array, apart: Array, width: Array) -> Array:
    """Probability that a draw of the prior and an error of sd ``width`` are ``apart`` or more."""
    weight = np.exp(-0.5 * np.square(_NODES))
    return 2.0 * (weight / weight.sum()) @ ndtr((quantiles - apart) / width)


def _likelihood_of_coefficients(
    posterior: GLMPosterior, theta: Array, linear: Array, gamma: float | None
) -> tuple[Array, Array]:
    """Minus the Hessian and the gradient of the coefficients' log likelihood, at its best level.

    The intercepts, under their own prior, are where the likelihood is largest.
    """
    L, d = linear.size, posterior.n_features
    rest = replace(posterior.linear_prior, coef=Flat())
    at_gamma = None if gamma is None else np.array([gamma])
    H = posterior.likelihood_curvature(theta)[:L, :L] + rest.curvature(linear, gamma)[0]
    g = posterior.grad_log_likelihood(theta[None])[0, :L]
    g = g + rest.grad(linear[None], at_gamma)[0].ravel()
    number = np.arange(L).reshape(linear.shape)
    coef, level = number[:, :d].ravel(), number[:, d:].ravel()
    H_coef, g_coef = H[np.ix_(coef, coef)], g[coef]
    if level.size:
        cross = H[np.ix_(coef, level)]
        # singular where a class has next to no weight
        solved = linalg.lstsq(H[np.ix_(level, level)], cross.T)[0]
        H_coef, g_coef = H_coef - cross @ solved, g_coef - solved.T @ g[level]
    return H_coef, g_coef

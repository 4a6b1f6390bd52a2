r"""Rows that a posterior does not hold: a quadratic beside its prior stands for their likelihood.

Of rows that are read in passes, g and H are the gradient and minus the Hessian of the log
likelihood of all rows at a point m. With ``delta = theta - m`` and rows of a sample that stand for
weights w,

.. math:: \log L(\theta) \approx g^T \delta - \tfrac12 \delta^T H \delta + \sum_i w_i \Bigl[
    \ell_i(\theta) - \ell_i(m) - \nabla \ell_i(m)^T \delta
    - \tfrac12 \delta^T \nabla^2 \ell_i(m) \delta \Bigr]:

the sample estimates what is of third order alone. This is the log likelihood of the sample plus
``(g - g_w)^T delta - delta^T (H - H_w) delta / 2``.

For earlier batches of ``partial_fit`` the quadratic is the site of assumed density filtering (Opper
1998): a second-order expansion whose gradient and curvature are means over draws of the posterior,
so that the next posterior has their mean. Its parameters are those of theta, but for intercepts at
X = 0.
"""

from __future__ import annotations

from copy import copy
from dataclasses import replace

import numpy as np
from scipy import linalg

from skbayes_sgld.posterior.glm import GLMPosterior
from skbayes_sgld.posterior.linear_prior import Array
from skbayes_sgld.posterior.protocol import Expansion
from skbayes_sgld.priors import CoefficientPrior, Flat

_CURVATURES, _BLOCK = 200, 64  # draws


def pooled(
    posterior: GLMPosterior, expansion: Expansion, mode: Array, curvature: Array
) -> GLMPosterior:
    """Posterior of all rows, by a sample of them and the expansion of their log likelihood.

    Parameters
    ----------
    posterior : GLMPosterior
        Posterior of the sample, each row weighing as much as those that it stands for.
    expansion : Expansion
        Of the log likelihood of all rows.
    mode : ndarray of shape (P,)
        Mode of the posterior of all rows, or the centre of a normal distribution near it.
    curvature : ndarray of shape (P, P)
        Precision of that normal distribution.
    """
    own = posterior.expand_likelihood(expansion.theta)
    slope, precision = expansion.grad - own.grad, expansion.curvature - own.curvature
    return posterior._with(
        further_rows=Expansion(expansion.theta, slope, precision), _known_normal=(mode, curvature)
    )


def under_priors(
    posterior: GLMPosterior,
    coef: CoefficientPrior,
    intercept: CoefficientPrior,
    site: Expansion | None,
) -> GLMPosterior:
    """Posterior of the same rows under given priors, and a site of further rows."""
    own, intercept = posterior.linear_prior, intercept if posterior.fit_intercept else Flat()
    if site is None:
        return posterior.with_prior(replace(own, coef=coef, intercept=intercept))
    to_zero = _to_zero(posterior)
    precision = to_zero.T @ site.curvature @ to_zero
    at = np.linalg.solve(to_zero, site.theta)
    prior = replace(own, coef=_determined(coef), intercept=_determined(intercept))
    further = Expansion(at, site.grad @ to_zero, 0.5 * (precision + precision.T))
    return posterior.with_prior(prior)._with(further_rows=further)


def _determined(prior: CoefficientPrior) -> CoefficientPrior:
    """Prior that counts as proper: beside it the site determines the parameters."""
    if not prior.proper:
        prior = copy(prior)
        prior.proper = True
    return prior


def normal_site(posterior: GLMPosterior, theta: Array, share: Array) -> Expansion:
    """Site of a posterior's rows and of its own site, from draws ``theta (S, P)``.

    ``share (S,)`` is the weight of each draw, of sum 1. The site's slope at the mean
    of the draws is their mean gradient, its precision the mean curvature of some of them.
    """
    mean = share @ theta
    some = theta[np.unique(np.linspace(0, len(theta) - 1, _CURVATURES).astype(int))]
    precision = posterior.expand_likelihood(some).curvature
    slope = np.zeros(len(mean))
    for a in range(0, len(theta), _BLOCK):
        part = slice(a, a + _BLOCK)
        slope += share[part] @ posterior.grad_log_likelihood(theta[part])
    earlier = posterior.further_rows
    if earlier is not None:
        precision = precision + earlier.curvature
        slope += earlier.slope(mean[None])[0]
    to_zero = _to_zero(posterior)
    back = np.linalg.inv(to_zero)
    return Expansion(to_zero @ mean, slope @ back, back.T @ precision @ back)


def _to_zero(posterior: GLMPosterior) -> Array:
    """Matrix from theta to parameters whose intercepts are at X = 0."""
    blocks = posterior.parameters
    one = np.eye(posterior.linear_prior.width)
    if posterior.origin is not None:
        one[-1, :-1] = -posterior.origin
    return linalg.block_diag(*[one] * posterior.n_predictors, np.eye(blocks.size - blocks.n_linear))

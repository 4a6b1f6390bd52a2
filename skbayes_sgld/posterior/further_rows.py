r"""Rows that a posterior does not hold, represented by a quadratic next to its prior.

For rows that are read in passes, g and H are the gradient and minus the Hessian of the log
likelihood of all rows at a point m. With ``delta = theta - m`` and the rows of a sample with
weights w,

.. math:: \log L(\theta) \approx g^T \delta - \tfrac12 \delta^T H \delta + \sum_i w_i \Bigl[
    \ell_i(\theta) - \ell_i(m) - \nabla \ell_i(m)^T \delta
    - \tfrac12 \delta^T \nabla^2 \ell_i(m) \delta \Bigr]:

the sample estimates only terms of third and higher order. This is the log likelihood of the sample
plus
``(g - g_w)^T delta - delta^T (H - H_w) delta / 2``.

For earlier batches of ``partial_fit`` the quadratic is the site of assumed density filtering (Opper
1998): a second-order expansion whose gradient and curvature are means over draws of the posterior,
so that the next posterior has their mean. Its parameters are those of theta, with intercepts at
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

_CURVATURES, _BLOCK = 200, 64  # draws for the mean curvature; draws in a block


def pooled(
    posterior: GLMPosterior, expansion: Expansion, mode: Array, curvature: Array
) -> GLMPosterior:
    """Posterior of all rows, by a sample of them and the expansion of their log likelihood.

    Parameters
    ----------
    posterior : GLMPosterior
        Posterior of the sample, each row with the weight of the rows that it represents.
    expansion : Expansion
        Expansion of the log likelihood of all rows.
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
    """Prior that counts as proper, since a site determines the parameters."""
    if not prior.proper:
        prior = copy(prior)
        prior.proper = True
    return prior


def normal_site(posterior: GLMPosterior, theta: Array, share: Array) -> Expansion:
    """Normal site for a posterior's rows and earlier site, from draws ``theta (S, P)``.

    ``share (S,)`` has the weights of the draws, with sum 1. At the mean of the draws the slope of
    the site is their mean gradient; its precision is the mean curvature at some of them.
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

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
from skbayes_sgld.posterior.protocol import Expansion, Facts
from skbayes_sgld.priors import CoefficientPrior, Flat

_CURVATURES, _BLOCK = 200, 64  # draws for the mean curvature; draws in a block


class WithFurtherRows(GLMPosterior):
    """Posterior of some rows, and of further rows by a quadratic that counts with the prior.

    Parameters
    ----------
    posterior : GLMPosterior
        Posterior of the rows that are held.
    further : Expansion
        Log likelihood of the others.
    normal : tuple of two ndarrays of shape (P,) and (P, P), or None
        Mean and precision of a normal near the posterior, if passes over all rows found it.
    """

    def __init__(
        self,
        posterior: GLMPosterior,
        further: Expansion,
        normal: tuple[Array, Array] | None = None,
    ) -> None:
        vars(self).update(vars(posterior._with()))
        self.further_rows, self._normal = further, normal

    def _facts(self) -> Facts:
        facts = super()._facts()
        return facts if self._normal is None else replace(facts, far_from_mode=False)

    def _prior_slope(self) -> None:
        return None

    def _parameterizations(self) -> tuple[str, ...]:
        return tuple(name for name in super()._parameterizations() if name != "row_space")

    def centered_normal(self, anyway: bool = False) -> tuple[Array, Array] | None:
        """Mode and precision there, if passes over all rows found them."""
        return self._normal

    def log_prior(self, theta: Array) -> Array:
        """Log prior and log likelihood of the further rows, up to a constant ``(C,)``."""
        return super().log_prior(theta) + self.further_rows.log_density(theta)

    def grad_log_prior(self, theta: Array) -> Array:
        """Gradient of :meth:`log_prior` ``(C, P)``."""
        return super().grad_log_prior(theta) + self.further_rows.slope(theta)

    def prior_diagonal(self, theta: Array) -> Array:
        """Diagonal of its curvature ``(P,)`` at one ``theta (P,)``."""
        return super().prior_diagonal(theta) + np.diagonal(self.further_rows.curvature)

    def add_prior_curvature(self, H: Array, theta: Array) -> None:
        """Add its curvature at one ``theta (P,)`` to ``H (P, P)``."""
        super().add_prior_curvature(H, theta)
        H += self.further_rows.curvature

    def draw_prior(self, generators: list[np.random.Generator]) -> Array:
        """Reported parameters ``(C, P)`` from a normal approximation of prior and further rows."""
        theta = self.further_rows.theta
        H = np.zeros((theta.size, theta.size))
        self.add_prior_curvature(H, theta)
        upper = linalg.cholesky(H)
        mean = theta + linalg.cho_solve((upper, False), self.grad_log_prior(theta[None])[0])
        normals = np.array([rng.standard_normal(theta.size) for rng in generators])
        near = mean + linalg.solve_triangular(upper, normals.T).T
        return self.parameters.to_reported(near)


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
    further = Expansion(expansion.theta, slope, precision)
    return WithFurtherRows(posterior, further, (mode, curvature))


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
    return WithFurtherRows(posterior.with_prior(prior), further)


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
    if isinstance(posterior, WithFurtherRows):
        earlier = posterior.further_rows
        precision = precision + earlier.curvature
        slope += earlier.slope(mean[None])[0]
    to_zero = _to_zero(posterior)
    back = np.linalg.inv(to_zero)
    return Expansion(to_zero @ mean, slope @ back, back.T @ precision @ back)


def _to_zero(posterior: GLMPosterior) -> Array:
    """Matrix from theta to parameters whose intercepts are at X = 0."""
    blocks = posterior.parameters
    one = np.eye(posterior.linear_prior.width)
    if posterior.x_mean is not None:
        one[-1, :-1] = -posterior.x_mean
    return linalg.block_diag(*[one] * posterior.n_predictors, np.eye(blocks.size - blocks.n_linear))

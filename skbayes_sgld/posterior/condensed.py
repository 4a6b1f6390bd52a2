"""Posterior of many rows, by some of them with weights and the expansion of the others."""

from __future__ import annotations

from dataclasses import replace

from skbayes_sgld._typing import Array
from skbayes_sgld.posterior.coefficient_maps import CoefficientMap
from skbayes_sgld.posterior.glm import GLMPosterior
from skbayes_sgld.posterior.protocol import Expansion, Facts


class CondensedPosterior(GLMPosterior):
    r"""Posterior of n rows that reads some of them.

    With :math:`q_i` the expansion of the log likelihood :math:`\ell_i` of row i to second order,
    and a weight :math:`w_i` of each row in the subset S, the log likelihood is

    .. math:: \sum_{i=1}^n q_i(\theta) + \sum_{i \in S} w_i (\ell_i(\theta) - q_i(\theta)).

    The sum of all :math:`q_i` is one expansion, about a point or with averages over draws. The
    subset stands for the remainders :math:`\ell_i - q_i`, which are 0 for most rows of a posterior
    that is nearly normal. With averages, the mean gradient and curvature of any remainder are 0:
    to first order, no subset moves a mean or a covariance of the draws. The expansion that is left
    counts as part of the prior.

    Parameters
    ----------
    whole : GLMPosterior
        Posterior of all rows.
    rows : ndarray of int of shape (m,)
        Subset S.
    weights : ndarray of shape (m,)
    of_all : Expansion
        Expansion of the log likelihood of all rows.
    draws : ndarray of shape (S, P) or None
        Draws over which it averages; None for an expansion about its point.
    """

    def __init__(
        self,
        whole: GLMPosterior,
        rows: Array,
        weights: Array,
        of_all: Expansion,
        draws: Array | None = None,
    ) -> None:
        part = whole.with_rows(whole.X[rows], whole.values[rows].weighted(weights))
        vars(self).update(vars(part))
        own = part.expand_likelihood(of_all.theta if draws is None else draws)
        self._rest = Expansion(
            of_all.theta, of_all.grad - own.grad, of_all.curvature - own.curvature
        )
        self._whole_facts, self._map = whole.facts, part._coefficient_map()

    def _coefficient_map(self) -> CoefficientMap:
        return self._map  # that of the whole's class

    def _facts(self) -> Facts:
        return replace(self._whole_facts, prior_slope=None)

    def log_prior(self, theta: Array) -> Array:
        """Log prior and expansion ``(C,)``."""
        return super().log_prior(theta) + self._rest.log_density(theta)

    def grad_log_prior(self, theta: Array) -> Array:
        """Gradient of :meth:`log_prior` ``(C, P)``."""
        return super().grad_log_prior(theta) + self._rest.slope(theta)

    def _add_prior(self, theta: Array, value: Array, grad: Array, other: GLMPosterior) -> None:
        # one product gives value and slope of the expansion
        rest, slope = self._rest.value_and_slope(theta)
        value += super().log_prior(theta) + rest
        grad += other.parameters.grad_log_prior(theta) + slope

    def rounded(self, density: bool = False) -> GLMPosterior:
        """Posterior with a rounded gradient, also a rounded ``density`` if asked, or itself."""
        other = super().rounded(density)
        if isinstance(other, CondensedPosterior) and other is not self:
            other._rest = self._rest.rounded()
        return other

    def add_prior_curvature(self, H: Array, theta: Array) -> None:
        """Add the curvature of :meth:`log_prior` to ``H (P, P)``."""
        super().add_prior_curvature(H, theta)
        H += self._rest.curvature

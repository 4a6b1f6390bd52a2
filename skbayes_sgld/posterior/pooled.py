r"""The posterior of many rows, from an expansion of all of them and a sample of the rest.

With g and H the gradient and minus the Hessian of the log likelihood of all rows at a point m,
``delta = theta - m``, and rows of a sample that stand for weights w,

.. math:: \log L(\theta) \approx g^T \delta - \tfrac12 \delta^T H \delta + \sum_i w_i \Bigl[
    \ell_i(\theta) - \ell_i(m) - \nabla \ell_i(m)^T \delta
    - \tfrac12 \delta^T \nabla^2 \ell_i(m) \delta \Bigr]:

the sample estimates what is of third order alone. That is the log likelihood of the sample plus a
polynomial of second order, ``(g - g_w)^T delta - delta^T (H - H_w) delta / 2``, which is held
beside the prior: everything that takes the rows of a posterior then takes those of the sample.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import ClassVar

import numpy as np

from skbayes_sgld._linalg import matmul_rows
from skbayes_sgld.posterior.glm import GLMPosterior
from skbayes_sgld.posterior.linear_prior import Array, LinearPrior
from skbayes_sgld.posterior.protocol import AveragedNormal, Expansion


@dataclass(frozen=True)
class TiltedPrior(LinearPrior):
    """A prior times the exponential of a polynomial of second order.

    Attributes
    ----------
    at : ndarray of shape (K, width)
        Point that the polynomial is expanded at.
    slope : ndarray of shape (K * width,)
        Its gradient there.
    bend : ndarray of shape (K * width, K * width)
        Minus its Hessian.
    """

    at: Array = field(default_factory=lambda: np.zeros((1, 1)))
    slope: Array = field(default_factory=lambda: np.zeros(1))
    bend: Array = field(default_factory=lambda: np.zeros((1, 1)))
    separate: ClassVar[bool] = False

    def _polynomial(self, linear: Array) -> tuple[Array, Array]:
        """Value ``(C,)`` and gradient ``(C, K width)``."""
        moved = (linear - self.at).reshape(len(linear), -1)
        bent = matmul_rows(moved, self.bend)
        value = np.einsum("cp,p->c", moved, self.slope) - 0.5 * np.einsum("cp,cp->c", moved, bent)
        return value, self.slope - bent

    def log_density(self, linear: Array, gamma: Array | None) -> Array:
        """Log density up to a constant ``(C,)``."""
        return super().log_density(linear, gamma) + self._polynomial(linear)[0]

    def grad(self, linear: Array, gamma: Array | None) -> tuple[Array, Array | None]:
        """Gradient in the parameters ``(C, K, width)``; there is no noise."""
        out, in_gamma = super().grad(linear, gamma)
        out += self._polynomial(linear)[1].reshape(linear.shape)
        return out, in_gamma

    def bind_grad(self, constant: Array) -> Callable[[Array], Array]:
        """Gradient plus a ``constant (K, width)``."""
        return lambda linear: self.grad(linear, None)[0] + constant

    def diagonal(self, linear: Array, gamma: float | None) -> tuple[Array, float]:
        """Diagonal of the curvature at one ``linear (K, width)``."""
        diagonal, corner = super().diagonal(linear, gamma)
        return diagonal + np.diagonal(self.bend).reshape(linear.shape), corner

    def add_curvature(self, H: Array, linear: Array, gamma: float | None) -> tuple[Array, float]:
        """Add minus the Hessian to ``H (K * width, K * width)``."""
        H += self.bend
        return super().add_curvature(H, linear, gamma)


class PooledPosterior(GLMPosterior):
    """Posterior of all rows, by a sample of them and the expansion of their log likelihood.

    ``X``, ``y`` and ``weight`` are those of the sample.

    Parameters
    ----------
    posterior : GLMPosterior
        That of the sample, each row weighing as much as those that it stands for. Its noise is no
        parameter.
    expansion : Expansion
        Of the log likelihood of all rows.
    mode : ndarray of shape (P,)
        Mode of the posterior of all rows, or the centre of a normal distribution near it.
    precision : ndarray of shape (P, P)
        Of that normal distribution.
    """

    def __init__(
        self, posterior: GLMPosterior, expansion: Expansion, mode: Array, precision: Array
    ) -> None:
        vars(self).update(vars(posterior))
        own, prior = posterior.expand_likelihood(expansion.theta), posterior.linear_prior
        self.linear_prior = TiltedPrior(
            **{f.name: getattr(prior, f.name) for f in fields(prior)},
            at=expansion.theta.reshape(posterior.n_predictors, -1),
            slope=expansion.grad - own.grad,
            bend=expansion.curvature - own.curvature,
        )
        self._settled, self._normal = {}, (mode, precision)

    def centered_normal(self) -> tuple[Array, Array]:
        """Mode and precision there, which the passes over all rows have found."""
        return self._normal

    def averaged_normal(self, theta: Array, temperature: float) -> AveragedNormal | None:
        """None: there are many rows per parameter."""
        return None

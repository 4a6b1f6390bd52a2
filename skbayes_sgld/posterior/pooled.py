r"""The posterior of many rows, from an expansion of all of them and a sample of the rest.

With g and H the gradient and minus the Hessian of the log likelihood of all rows at a point m,
``delta = theta - m``, and rows of a sample that stand for weights w,

.. math:: \log L(\theta) \approx g^T \delta - \tfrac12 \delta^T H \delta + \sum_i w_i \Bigl[
    \ell_i(\theta) - \ell_i(m) - \nabla \ell_i(m)^T \delta
    - \tfrac12 \delta^T \nabla^2 \ell_i(m) \delta \Bigr]:

the sample estimates what is of third order alone. That is the log likelihood of the sample plus a
polynomial of second order, ``(g - g_w)^T delta - delta^T (H - H_w) delta / 2``, a tilt
beside the prior: everything that takes the rows of a posterior then takes those of the sample.
"""

from __future__ import annotations

from dataclasses import replace

from skbayes_sgld.posterior.facts import Facts
from skbayes_sgld.posterior.glm import GLMPosterior
from skbayes_sgld.posterior.linear_prior import Array
from skbayes_sgld.posterior.protocol import Expansion
from skbayes_sgld.posterior.tilt import Tilt


class PooledPosterior(GLMPosterior):
    """Posterior of all rows, by a sample of them and the expansion of their log likelihood.

    ``X``, ``y`` and ``weight`` are those of the sample.

    Parameters
    ----------
    posterior : GLMPosterior
        That of the sample, each row weighing as much as those that it stands for.
    expansion : Expansion
        Of the log likelihood of all rows.
    mode : ndarray of shape (P,)
        Mode of the posterior of all rows, or the centre of a normal distribution near it.
    of_mode : ndarray of shape (P, P)
        Precision of that normal distribution.
    """

    def __init__(
        self, posterior: GLMPosterior, expansion: Expansion, mode: Array, of_mode: Array
    ) -> None:
        vars(self).update(vars(posterior))
        own = posterior.expand_likelihood(expansion.theta)
        slope, precision = expansion.grad - own.grad, expansion.curvature - own.curvature
        self.tilt = Tilt(expansion.theta, slope, precision)
        self._normal = mode, of_mode

    def centered_normal(self, anyway: bool = False) -> tuple[Array, Array]:
        """Mode and precision there, which the passes over all rows have found."""
        return self._normal

    @property
    def facts(self) -> Facts:
        """Facts about the posterior's shape: rows per parameter are many."""
        return replace(super().facts, far_from_mode=False)

"""What a likelihood is: everything that a model knows about y.

Conventions
-----------
A row sees the parameters through ``u``, of ``n_local`` numbers: its linear predictors and, where
the noise is inferred, ``gamma = log sigma^2`` last. ``u`` is ``(C, n_local, B)`` for C chains and
B rows; ``y`` is ``(B,)``, or ``(C, B)`` when every chain has rows of its own. That view makes one
piece of code serve gradients, curvature and control variates of every model. Predictions look at
C rows under B draws.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from skbayes_sgld._components import Component
from skbayes_sgld.posterior.likelihoods.mixture import solve_quantile

Array = NDArray[Any]


class Likelihood(Component):
    """The distribution of one observation given its local parameters u.

    A new family writes :meth:`check_target`, :meth:`log_density`, :meth:`score`,
    :meth:`curvature`, :meth:`mean`, :meth:`variance`, :meth:`cdf` and :meth:`sample`; what else
    there is has a default.
    """

    n_predictors = 1
    infers_noise = False
    quadratic = False  # in eta: the rows can be summed once, into sufficient statistics
    averages = False  # over errors of its predictor: :meth:`averaged`
    whole = False  # the observations are whole numbers
    reach: ClassVar[float] = 1.0  # size of a linear predictor that is not out of the way
    improper: ClassVar[str] = ""  # what is wrong where `gains` finds a direction

    @property
    def n_local(self) -> int:
        """How many local parameters a row has."""
        return self.n_predictors + self.infers_noise

    # ---- the data -----------------------------------------------------------------------------

    def check_target(self, y: Array) -> Array:
        """Observations as floats, or a ValueError that says which value is out of range."""
        raise NotImplementedError

    def start(self, y: Array, weight: Array | None, has_level: bool) -> Array:
        """Local parameters ``(n_local,)`` of a model without columns, to look for the mode from.

        Parameters
        ----------
        y : ndarray of shape (n,)
        weight : ndarray of shape (n,) or None
        has_level : bool
            Whether the model has an intercept; the predictors are zero without one.
        """
        return np.zeros(self.n_local)

    def level_is_free(self, y: Array) -> bool:
        """Whether an intercept under a flat prior could go to infinity."""
        return False

    def gains(self, design: Array, y: Array) -> Any:
        """Matrix G such that the likelihood never falls along v where ``G v >= 0``.

        Where some such v has ``G v != 0``, a posterior under flat priors has no finite integral.
        None stands for a likelihood that falls in every direction that the rows see.

        Parameters
        ----------
        design : ndarray of shape (n, width)
        y : ndarray of shape (n,)

        Returns
        -------
        gains : ndarray or sparse array of shape (m, n_predictors * width), or None
        """
        return None

    def averaged(self, u: Array, variance: Array, y: Array) -> tuple[Array, Array]:
        """Score and curvature ``(B,)`` averaged over normal errors of the predictor ``u (B,)``."""
        raise NotImplementedError

    # ---- one observation ----------------------------------------------------------------------

    def log_density(self, u: Array, y: Array) -> Array:
        """Log density of each observation ``(C, B)``."""
        raise NotImplementedError

    def score(self, u: Array, y: Array) -> Array:
        """Gradient of the log density in u ``(C, n_local, B)``."""
        raise NotImplementedError

    def curvature(self, u: Array, y: Array) -> Array:
        """Minus the Hessian of the log density in u ``(C, n_local, n_local, B)``."""
        raise NotImplementedError

    def value_and_score(self, u: Array, y: Array) -> tuple[Array, Array]:
        """Log density and its gradient; together they may cost less."""
        return self.log_density(u, y), self.score(u, y)

    def noise_variance(self, gamma: Array | None) -> Any:
        """Variance of an observation, where it does not depend on eta."""
        raise NotImplementedError

    # ---- predictions --------------------------------------------------------------------------

    def mean(self, u: Array) -> Array:
        """Mean of an observation ``(C, B)``; the probability of every class ``(C, K, B)``."""
        raise NotImplementedError

    def variance(self, u: Array) -> Array:
        """Variance of an observation ``(C, B)``."""
        raise NotImplementedError

    def cdf(self, u: Array, y: Array) -> Array:
        """Probability ``(C, B)`` that an observation is at most ``y``, of shape ``(C, 1)``."""
        raise NotImplementedError

    def sample(self, u: Array, rng: np.random.RandomState) -> Array:
        """Draws of an observation ``(C, B)``."""
        raise NotImplementedError

    def unit(self, gamma: Array | None, n_draws: int) -> Array:
        """What the deviations of :meth:`mixture_quantile` are measured in ``(B,)``."""
        return np.ones(n_draws)

    def mixture_quantile(
        self, center: Array, deviation: Array, unit: Array, share: Array, q: float
    ) -> Array:
        """Quantile of an observation under all draws together, by row.

        Parameters
        ----------
        center : ndarray of shape (C,)
            Mean of the row's linear predictor over the draws.
        deviation : ndarray of shape (C, B)
            Every draw's predictor less the centre, over its ``unit``.
        unit : ndarray of shape (B,)
        share : ndarray of shape (B,)
            Probabilities of the draws.
        q : float

        Returns
        -------
        quantile : ndarray of shape (C,)
        """
        u = (center[:, None] + deviation * unit)[:, None]
        mean = self.mean(u)
        first = mean @ share
        second = np.square(mean - first[:, None]) @ share + self.variance(u) @ share

        def cdf(t: Array, rows: Array) -> Array:
            return self.cdf(u if len(rows) == len(u) else u[rows], t[:, None]) @ share

        return solve_quantile(cdf, q, first, np.sqrt(second), self.whole)


class LabelLikelihood(Likelihood):
    """The distribution of one label: y holds codes 0 ... ``n_classes`` - 1."""

    n_classes = 2
    reach = 5.0  # a classifier that is sure gives probabilities of 0.99
    improper = "a plane separates the classes of y, completely or nearly"

    def check_target(self, y: Array) -> Array:
        """Codes as floats."""
        codes = np.asarray(y, dtype=float)
        valid = (codes >= 0) & (codes < self.n_classes) & (codes == np.floor(codes))
        if not valid.all():
            raise ValueError(
                f"y has the value {codes[~valid][0]:g}, which is not a code; the codes of "
                f"{self.n_classes} classes are 0 ... {self.n_classes - 1}."
            )
        return codes

    def probabilities(self, u: Array) -> tuple[Array, Array]:
        """Probability of each class, and of all others together, each ``(C, n_classes, B)``.

        Neither is 1 less the other: a digit that is small is not lost.
        """
        raise NotImplementedError

    def log_probabilities(self, u: Array) -> tuple[Array, Array]:
        """Logs of :meth:`probabilities`, finite where those underflow."""
        raise NotImplementedError

    def sample(self, u: Array, rng: np.random.RandomState) -> Array:
        """Draws of a code ``(C, B)``."""
        p = self.probabilities(u)[0]
        uniform = rng.random_sample((p.shape[0], 1, p.shape[2]))
        return (uniform > np.cumsum(p, axis=1)[:, :-1]).sum(axis=1)

"""Base classes of the priors of the coefficients.

Conventions
-----------
``coef`` is ``(C, K, d)``: chains, linear predictors (one, or one per class), columns of X.
``gamma`` is ``(C,)``, the log noise variance, or None if the model has no noise to infer.
The priors act on the coefficients of the X that the model sees, as the penalty of ``Ridge``
does; the intercept has its own prior.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr
from sklearn.base import clone

from skbayes_sgld._checks import check_array_or_number
from skbayes_sgld._components import Component

Array = NDArray[np.float64]


class Prior(Component):
    """A distribution of the coefficients, with or without hyperparameters.

    A parameter is one number, or one for each column of X. A scale may be ``"auto"``, and is then
    set from the data.

    Attributes
    ----------
    hierarchical : bool
        Whether it has hyperparameters, which the model infers.
    proper : bool
        Whether the density integrates to a finite number.
    scaled_by_noise : bool
        Whether the scale is in units of the noise, so that the density depends on gamma.
    """

    hierarchical = False
    proper = True
    scaled_by_noise = False

    def check_as(self, argument: str) -> None:
        """Check; errors name the argument, as priors serve slopes and intercepts."""
        self.check(argument=argument)

    def check(self, n_features: int | None = None, argument: str = "prior") -> None:
        """Raise if a parameter is out of range, or is not one number per column of X."""
        for name, value in self._by_column().items():
            if name == "scale" and isinstance(value, str):
                if value != "auto":
                    raise ValueError(
                        f"{argument}.scale={value!r} is not known; give 'auto', a positive number "
                        "or one for each column of X."
                    )
                continue
            positive = name == "scale"
            check_array_or_number(value, f"{argument}.{name}", n_features, positive=positive)

    @property
    def automatic(self) -> bool:
        """Whether the data set the scale."""
        return isinstance(self._by_column().get("scale"), str)

    def for_data(self, unit: float, spread: float | Array) -> Self:
        """Prior whose ``scale="auto"`` is ``unit / spread``; itself if its scale is a number.

        Parameters
        ----------
        unit : float
            Typical change of the predictor over one spread of a column.
        spread : float or ndarray of shape (d,)
            Spread of each column.
        """
        if not self.automatic:
            return self
        return clone(self).set_params(scale=unit / spread)

    def _by_column(self) -> dict[str, Any]:
        """Parameters that are single numbers, or one number per column of X."""
        return self.get_params(deep=False)


class CoefficientPrior(Prior):
    """A density on the coefficients, the same for each linear predictor.

    Attributes
    ----------
    flat : bool
        Whether the density is constant.
    normal : bool
        Whether the density is normal, given the noise.
    nonsmooth : bool
        Whether the gradient jumps somewhere, as at the kink of a Laplace density. Such a prior
        defines :meth:`averaged_over`, by which modes and metrics are found.
    log_concave : bool
        Whether the log density is concave, so that it adds no mode to a posterior.
    """

    flat = False
    normal = False
    nonsmooth = False
    log_concave = False

    def log_density(self, coef: Array, gamma: Array | None) -> Array:
        """Log density up to a constant ``(C,)``."""
        raise self._undefined("log_density")

    def grad(self, coef: Array, gamma: Array | None) -> tuple[Array, Array | None]:
        """Gradient in the coefficients ``(C, K, d)`` and in gamma ``(C,)``."""
        raise self._undefined("grad")

    def curvature(self, coef: Array, gamma: float | None) -> tuple[Array, Array | None, float]:
        """Minus the Hessian at one ``coef (K, d)``.

        Returns
        -------
        of_coef : ndarray of shape (K, d), (K, d, d) or (1, d, d)
            The diagonal if the columns are independent, otherwise the matrix of each predictor.
        cross : ndarray of shape (K, d) or None
            Minus the mixed derivatives in coefficients and gamma; None stands for zeros.
        corner : float
            Minus the second derivative in gamma.
        """
        raise self._undefined("curvature")

    def sample(
        self, rng: np.random.Generator, shape: tuple[int, int], noise_variance: float
    ) -> Array:
        """Coefficients ``(K, d)`` drawn from the prior.

        ``init="prior"`` and ``sample_prior`` need it, and so do samplers that look for no mode,
        whose chains start at such draws by default.
        """
        raise TypeError(
            f"{type(self).__name__} has no method sample, by which coefficients are drawn from it; "
            "define sample(rng, shape, noise_variance), or set init='zeros'."
        )

    def quantiles(self, u: Array, d: int) -> Array | None:
        """Quantiles ``(len(u), d)`` of each coefficient minus its location.

        None if they are not known; a fit then skips the comparison of the prior with the data.
        """
        return None

    def root(self, d: int) -> Array:
        """Root ``(d, d)`` of the covariance of a normal prior with the same central width."""
        at_one_sd = self.quantiles(ndtr([1.0]), d)
        assert at_one_sd is not None
        return np.diag(at_one_sd[0])

    def given_noise(self, variance: float) -> CoefficientPrior:
        """Prior if the noise variance is known."""
        return self

    def averaged_over(self, spread: Array | None) -> CoefficientPrior:
        """Prior averaged over normal errors of sd ``spread (K, d)``.

        The curvature of a prior with a kink at a single point does not show the prior's width; that
        of the average over the width of the posterior does. With ``spread=None`` the errors have
        the width of the prior. A prior without kinks is returned unchanged.
        """
        if self.nonsmooth:
            raise self._undefined("averaged_over")
        return self

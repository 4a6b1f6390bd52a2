"""Observations before any were made: drawn from the prior and the likelihood."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_array

from skbayes_sgld._arrays import as_array, check_lengths
from skbayes_sgld._components import check_number, draw_seed, naming
from skbayes_sgld._linalg import column_moments
from skbayes_sgld._sparse import as_rows
from skbayes_sgld.estimators.base import Array, LinearEstimator, check_columns
from skbayes_sgld.estimators.multi_output import by_output
from skbayes_sgld.estimators.validation import FLOATS, check_real
from skbayes_sgld.posterior import CoefficientPrior, Likelihood, NoisePrior
from skbayes_sgld.posterior.priors.normal import in_units
from skbayes_sgld.prediction.predictive import Predictive
from skbayes_sgld.prediction.predictors import LinearPredictor

_TRIED = 1000  # variances drawn at least, so that chance does not decide which prior is refused


@dataclass(frozen=True)
class JointPrior:
    """Prior of all parameters of a linear model, with numbers for scales, and its likelihood.

    Attributes
    ----------
    coef : CoefficientPrior
    intercept : CoefficientPrior or None
        None without an intercept.
    noise : NoisePrior or None
        None where there is no noise to infer.
    likelihood : Likelihood
    """

    coef: CoefficientPrior
    intercept: CoefficientPrior | None
    noise: NoisePrior | None
    likelihood: Likelihood

    def check(self) -> None:
        """Raise where nothing can be drawn from a part."""
        parts: dict[str, tuple[Any, str]] = {
            "prior": (self.coef, "'normal'"),
            "intercept_prior": (self.intercept, "'normal', or set fit_intercept=False"),
            "noise_prior": (self.noise, "'half_normal'"),
        }
        for name, (prior, instead) in parts.items():
            if prior is None:
                continue
            if not prior.proper:
                raise ValueError(
                    f"{name}={prior!r} is improper, so that nothing can be drawn from it; give a "
                    f"proper one, such as {name}={instead}."
                )
            if np.isnan(np.asarray(prior.get_params().get("scale", 0.0), dtype=float)).any():
                raise ValueError(
                    f"{name} takes its scale from y; give y, or a number for the scale, or fit "
                    "the model first."
                )

    def sample(
        self, X: Array, n_samples: int, rng: np.random.Generator, offset: Array | None
    ) -> Array:
        """Observations ``(n, n_samples)``, each column under parameters of its own."""
        K, d = self.likelihood.n_predictors, X.shape[1]
        noise = self._draw_noise(n_samples, rng)
        coef = np.array([self.coef.sample(rng, (K, d), variance) for variance in noise])
        intercept = np.zeros((n_samples, K))
        if self.intercept is not None:
            drawn = [self.intercept.sample(rng, (K, 1), variance) for variance in noise]
            intercept = np.array(drawn)[..., 0]
        gamma = None if self.noise is None else np.log(noise)
        predictive = Predictive(LinearPredictor(coef, intercept), self.likelihood, gamma)
        legacy = np.random.RandomState(rng.integers(np.iinfo(np.int32).max))
        return predictive.sample(X, legacy, offset)

    def _draw_noise(self, n_samples: int, rng: np.random.Generator) -> Array:
        """Noise variances ``(n_samples,)``; 1 where there is none to draw."""
        if self.noise is None:
            return np.ones(n_samples)
        drawn = self.noise.sample(rng, max(n_samples, _TRIED))
        if not np.all((drawn > 0) & (drawn < np.inf)):
            raise ValueError(
                f"noise_prior={self.noise!r} has much of its mass at variances beyond the range "
                "of floating point numbers; give one with more weight, such as "
                "noise_prior='half_normal'."
            )
        return drawn[:n_samples]


class PriorPredictive(LinearEstimator):
    """A linear model whose observations can be drawn before it is fitted."""

    @by_output(1, one_stream=True)
    def sample_prior(
        self, X: ArrayLike, n_samples: int = 1, random_state: Any = 0, y: Any = None
    ) -> Array:
        """Draws of y from the prior predictive distribution: from the prior and the likelihood.

        They show what a prior says of data. Each column has parameters of its own, the same for
        all rows. All priors must be proper; that of the intercept is flat by default.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            Before ``fit`` automatic scales are in the units of these columns; afterwards they are
            those of the fit.
        n_samples : int, default=1
        random_state : int, RandomState, Generator or None, default=0
        y : array-like of shape (n_rows,) or None, default=None
            Before ``fit``: what automatic scales of a linear regression take the units of y from,
            and a classifier its classes, which are 0 and 1 without it.

        Returns
        -------
        y : ndarray of shape (n_rows, n_samples)

        Raises
        ------
        ValueError
            Naming ``prior``, ``intercept_prior`` or ``noise_prior``, where nothing can be drawn
            from it or it needs ``y``.

        Examples
        --------
        >>> import numpy as np
        >>> from skbayes_sgld import SGLDLogisticRegression
        >>> model = SGLDLogisticRegression(prior="normal", intercept_prior="normal")
        >>> model.sample_prior(np.zeros((3, 2)), n_samples=5).shape
        (3, 5)
        """
        return self._sample_prior(X, n_samples, random_state, y)

    def _sample_prior(
        self, X: Any, n_samples: int, random_state: Any, y: Any, offset: Array | None = None
    ) -> Array:
        check_number(n_samples, "n_samples", low=1, closed="left", integer=True)
        seed = draw_seed(random_state)
        if hasattr(self, "prior_"):
            X, labels, likelihood = self._check_rows(X), self._labels(), self._likelihood()
            prior = JointPrior(self.prior_, self.intercept_prior_, self.noise_prior_, likelihood)
        else:
            self._check_params()
            check_real(X)
            with naming("X"):
                X = as_rows(check_array(X, dtype=FLOATS, accept_sparse="csr", input_name="X"))
            check_columns(X, self)
            if y is not None:
                y = as_array(y, "y", dtype=None)
                check_lengths(X=X, y=y)
            y, likelihood, labels = self._target_before_fit(y, X.shape[0])
            prior = self._prior_before_fit(X, y, likelihood)
        prior.check()
        drawn = prior.sample(X, n_samples, np.random.default_rng(seed), offset)
        return drawn if labels is None else labels[drawn]

    def _prior_before_fit(self, X: Array, y: Array, likelihood: Likelihood) -> JointPrior:
        """The prior that ``fit`` would take, in the units of X and y; NaN stands for unknown y."""
        prior, noise_prior = self._components(y, None)
        intercept_prior = self._resolve_intercept_prior()
        prior.check(X.shape[1])
        intercept_prior.check(1, "intercept_prior")
        spread, own = column_moments(X)[1], self._resolve("prior")
        units = spread if prior.automatic else None
        prior, intercept_prior = in_units(prior, intercept_prior, units, likelihood, y, None)
        if own.hierarchical:
            scale = prior.scale * np.ones(X.shape[1])
            prior = own.for_model(scale, spread, likelihood, y, None)
        return JointPrior(
            prior, intercept_prior if self.fit_intercept else None, noise_prior, likelihood
        )

    def _target_before_fit(
        self, y: Array | None, n_rows: int
    ) -> tuple[Array, Likelihood, Array | None]:
        """Numbers for y, the likelihood, and the labels that its draws are positions of."""
        raise NotImplementedError

    def _labels(self) -> Array | None:
        """Labels that draws of the likelihood are positions of; None where they are numbers."""
        return None

    def _components(self, y: Array, weight: Array | None) -> tuple[Any, NoisePrior | None]:
        """The priors of the coefficients and of the noise."""
        return self._resolve_unscaled_prior(), None

    def _likelihood(self) -> Likelihood:
        """Distribution of an observation."""
        raise NotImplementedError

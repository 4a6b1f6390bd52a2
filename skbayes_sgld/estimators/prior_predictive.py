"""Prior predictive draws of linear models."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils import check_array

from skbayes_sgld._checks import as_array, check_lengths, check_number, naming
from skbayes_sgld._linalg import column_moments
from skbayes_sgld._random import draw_seed, probe_generator
from skbayes_sgld._sparse import as_rows
from skbayes_sgld.estimators.base import Rows
from skbayes_sgld.estimators.validation import FLOATS, check_columns, check_real
from skbayes_sgld.posterior import CoefficientPrior, Likelihood, NoisePrior
from skbayes_sgld.posterior.linear_prior import in_units
from skbayes_sgld.prediction.predictive import Predictive
from skbayes_sgld.prediction.predictors import LinearPredictor

Array = NDArray[Any]

_TRIED = 1000  # variances drawn at least, so that chance does not decide which prior is refused


@dataclass(frozen=True)
class JointPrior:
    """Prior of all parameters of a linear model, with numbers for scales, and its likelihood.

    Attributes
    ----------
    coef : CoefficientPrior
    intercept : CoefficientPrior or None
        None without an intercept.
    own : tuple of NoisePrior
        Prior of each of the likelihood's own parameters.
    likelihood : Likelihood
    """

    coef: CoefficientPrior
    intercept: CoefficientPrior | None
    own: tuple[NoisePrior, ...]
    likelihood: Likelihood

    def check(self) -> None:
        """Raise where nothing can be drawn; the error names every parameter to set."""
        wrong, right, unscaled = [], [], []
        parts: dict[str, tuple[Any, str]] = {
            "prior": (self.coef, "'normal'"),
            "intercept_prior": (self.intercept, "'normal', or fit_intercept=False"),
        }
        for parameter, own_prior in zip(self.likelihood.own, self.own, strict=True):
            parts[parameter.argument] = own_prior, "'half_normal'"
        for name, (prior, instead) in parts.items():
            if prior is None:
                continue
            if prior.proper and np.isnan(_scale(prior)).any():
                unscaled.append(name)
            reason = "" if prior.proper else "is improper"
            if isinstance(prior, NoisePrior) and prior.proper and not _in_range(prior):
                reason = "has much of its mass at variances beyond the range of floats"
            if reason:
                wrong.append(f"{name}={prior!r} {reason}")
                right.append(f"{name}={instead}")
        remedies = [f"set {', and '.join(right)}"] if right else []
        if unscaled:
            takes = "takes its scale" if len(unscaled) == 1 else "take their scales"
            wrong.append(f"{', '.join(unscaled)} {takes} from y")
            remedies.append("give y, or a number for the scale, or fit the model first")
        if wrong:
            raise ValueError(
                f"nothing can be drawn from the prior: {'; '.join(wrong)}. To draw, "
                f"{'; and '.join(remedies)}."
            )

    def sample(
        self, X: Array, n_samples: int, rng: np.random.Generator, offset: Array | None
    ) -> Array:
        """Observations ``(n, n_samples)``, each column under parameters of its own."""
        K, d = self.likelihood.n_predictors, X.shape[1]
        own = self._draw_own(n_samples, rng)
        noise = own[:, 0] if self.likelihood.infers_noise else np.ones(n_samples)
        coef = np.array([self.coef.sample(rng, (K, d), variance) for variance in noise])
        intercept = np.zeros((n_samples, K))
        if self.intercept is not None:
            drawn = [self.intercept.sample(rng, (K, 1), variance) for variance in noise]
            intercept = np.array(drawn)[..., 0]
        theta = np.log(own) if self.own else None  # whose exponentials have these priors
        predictive = Predictive(LinearPredictor(coef, intercept), self.likelihood, theta)
        legacy = np.random.RandomState(rng.integers(np.iinfo(np.int32).max))
        return predictive.sample(X, legacy, offset)

    def _draw_own(self, n_samples: int, rng: np.random.Generator) -> Array:
        """Draws of the likelihood's own parameters ``(n_samples, n_own)``."""
        drawn = np.empty((n_samples, len(self.own)))
        for j, prior in enumerate(self.own):
            drawn[:, j] = prior.sample(rng, max(n_samples, _TRIED))[:n_samples]
        return np.clip(drawn, np.finfo(float).tiny, np.finfo(float).max)


def _scale(prior: Any) -> Array:
    """Scale of a prior: NaN where it comes from y, 0 for a prior without a scale."""
    return np.asarray(prior.get_params().get("scale", 0.0), dtype=float)


def _in_range(noise: NoisePrior) -> bool:
    """Whether values drawn from a prior are positive and finite."""
    if np.isnan(_scale(noise)).any():
        noise = clone(noise).set_params(scale=1.0)
    drawn = noise.sample(probe_generator(), _TRIED)
    return bool(np.all((drawn > 0) & (drawn < np.inf)))


def draw_prior_predictive(
    model: Any,
    X: Any,
    n_samples: int,
    random_state: Any,
    y: Any = None,
    offset: Array | None = None,
) -> Array:
    """Draws ``(n, n_samples)`` from the prior predictive distribution of a linear estimator.

    ``offset (n,)`` is added to the linear predictors of the rows X.
    """
    check_number(n_samples, "n_samples", low=1, closed="left", integer=True)
    if not model._noise().constant:
        raise ValueError(
            f"noise_model={model.noise_model!r} cannot be drawn from before data are seen; set "
            "noise_model='constant'."
        )
    seed = draw_seed(random_state)
    if hasattr(model, "prior_"):
        X, labels = model._check_rows(X), getattr(model, "classes_", None)
        labels = None if model._likelihood().totals else labels
        likelihood = model._likelihood()
        own = tuple(getattr(model, f"{own.argument}_") for own in likelihood.own)
        prior = JointPrior(model.prior_, model.intercept_prior_, own, likelihood)
    else:
        settings = model._settings()
        check_real(X)
        with naming("X"):
            X = as_rows(check_array(X, dtype=FLOATS, accept_sparse="csr", input_name="X"))
        check_columns(X, model)
        if y is not None:
            y = as_array(y, "y", dtype=None)
            check_lengths(X=X, y=y)
        y, likelihood, labels = model._target_before_fit(y, X.shape[0])
        model = copy(model)  # its choice of an automatic prior is for these rows alone
        model._choose_prior(settings, Rows(X, y, None), likelihood)
        prior = _prior_before_fit(model, X, y, likelihood)
    prior.check()
    drawn = prior.sample(X, n_samples, np.random.default_rng(seed), offset)
    return drawn if labels is None else labels[drawn]


def _prior_before_fit(model: Any, X: Array, y: Array, likelihood: Likelihood) -> JointPrior:
    """Prior that ``fit`` would take, in the units of X and y; NaN stands for unknown y."""
    prior, intercept_prior, own = model._priors(likelihood, y, None)
    prior.check(X.shape[1])
    intercept_prior.check(1, "intercept_prior")
    spread, named = column_moments(X)[1], model._resolve("prior")
    units = spread if prior.automatic else None
    prior, intercept_prior = in_units(prior, intercept_prior, units, likelihood, y, None)
    if named.hierarchical:
        scale = prior.scale * np.ones(X.shape[1])
        prior = named.for_model(scale, spread, likelihood, y, None)
    return JointPrior(prior, intercept_prior if model.fit_intercept else None, own, likelihood)

"""Prior predictive draws of linear models."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_array
from sklearn.utils.validation import _get_feature_names

from skbayes_sgld._checks import as_array, check_lengths, check_number, naming
from skbayes_sgld._linalg import column_moments
from skbayes_sgld._random import draw_seed, probe_generator
from skbayes_sgld._sparse import as_rows
from skbayes_sgld._typing import Array
from skbayes_sgld.likelihoods import Likelihood
from skbayes_sgld.likelihoods.row_values import RowValues
from skbayes_sgld.posterior.linear_prior import in_units
from skbayes_sgld.prediction.distribution import PredictiveDistribution
from skbayes_sgld.prediction.predictors import LinearPredictor
from skbayes_sgld.priors import NoisePrior
from skbayes_sgld.priors.by_column import ByColumn, LearnedByColumn
from skbayes_sgld.rows.arguments import check_names, values_brought
from skbayes_sgld.rows.arrays import Arrays
from skbayes_sgld.rows.checks import FLOATS, check_columns, check_real
from skbayes_sgld.rows.record import Rows

Priors = tuple[Any, Any, tuple[NoisePrior, ...]]

# least number of variances drawn, so that chance does not decide which prior is refused
_TRIED = 1000


def draw_prior_predictive(
    estimator: Any,
    X: Any,
    n_samples: int,
    random_state: Any,
    y: Any,
    by_row: dict[str, Any],
) -> Array:
    """Draws ``(n, n_samples)`` from the prior predictive distribution of a linear estimator."""
    check_number(n_samples, "n_samples", low=1, closed="left", integer=True)
    if estimator._noise() is not None:
        raise ValueError(
            f"noise_model={estimator.noise_model!r} cannot be drawn from before data are seen; set "
            "noise_model='constant'."
        )
    if estimator._is_mixed:
        raise ValueError(
            "sample_prior draws coefficients alone, and the model has group_effects or "
            "smooth_effects; set them to None to draw from the other priors."
        )
    check_names(estimator, by_row)
    seed, fitted = draw_seed(random_state), estimator._fitted
    no_rows = Arrays(None, None, None, by_row)
    target = estimator._target(no_rows) if fitted is None else fitted.target
    row_values = values_brought(target.check_by_row(X, by_row))
    if fitted is not None:
        X, likelihood = estimator._check_rows(X), target.likelihood
        own = tuple(getattr(estimator, f"{own.argument}_") for own in likelihood.own)
        priors = estimator.prior_, estimator.intercept_prior_, own
    else:
        check_real(X)
        names = _get_feature_names(X)
        with naming("X"), np.errstate(invalid="ignore"):  # numbers are summed, some infinite
            X = as_rows(check_array(X, dtype=FLOATS, accept_sparse="csr", input_name="X"))
        check_columns(X, None)
        if y is not None:
            check_lengths(X=X, y=as_array(y, "y", dtype=None))
        with naming("y"):
            target, y = target.encode_before_fit(y, X.shape[0])
        likelihood = target.likelihood
        rows = Rows(X, RowValues(y), names=None if names is None else list(names))
        priors = _priors_before_fit(estimator, rows, likelihood)
    _check(priors, likelihood)
    draws = _sample(priors, likelihood, X, n_samples, np.random.default_rng(seed), row_values)
    decoded: Array = target.decode(draws)
    return decoded


def _priors_before_fit(estimator: Any, rows: Rows, likelihood: Likelihood) -> Priors:
    """Priors that ``fit`` would take, in the units of the rows; NaN stands for unknown y."""
    model = estimator._model(estimator._settings(), likelihood, rows)
    prior, intercept, own = model.priors(rows)
    prior.check(rows.n_features)
    intercept.check(1, "intercept_prior")
    spread = column_moments(rows.X)[1]
    units = spread if prior.automatic else None
    prior, intercept = in_units(prior, intercept, units, likelihood, rows.y, None)
    if model.prior.hierarchical:
        prior = model.prior.with_scales_of(prior, spread, likelihood, rows.y, None)
    return prior, intercept if estimator.fit_intercept else None, own


def _check(priors: Priors, likelihood: Likelihood) -> None:
    """Raise if nothing can be drawn; the error names every parameter to set."""
    prior, intercept, own = priors
    parts = [("prior", prior, "'normal'")]
    if intercept is not None:
        parts.append(("intercept_prior", intercept, "'normal', or fit_intercept=False"))
    pairs = zip(likelihood.own, own, strict=True)
    parts += [(each.argument, own_prior, "'half_normal'") for each, own_prior in pairs]
    wrong, right, unscaled = [], [], []
    for name, part, instead in parts:
        unknown = _is_unknown(part)
        reason = ""
        if not part.proper:
            reason = "is improper"
        elif isinstance(part, NoisePrior):
            probe = clone(part).set_params(scale=1.0) if unknown else part
            sample = probe.sample(probe_generator(), _TRIED)
            if not np.all((sample > 0) & (sample < np.inf)):
                reason = "has much of its mass at variances beyond the range of floats"
        if reason:
            wrong.append(f"{name}={part!r} {reason}")
            right.append(f"{name}={instead}")
        if part.proper and unknown:
            unscaled.append(name)
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


def _is_unknown(prior: Any) -> bool:
    """Whether a scale depends on y, and is not known yet."""
    if isinstance(prior, ByColumn | LearnedByColumn):
        return any(_is_unknown(part.prior) for part in prior.parts)
    scale = getattr(prior, "scale", 0.0)
    return not isinstance(scale, str) and bool(np.isnan(np.asarray(scale, dtype=float)).any())


def _sample(
    priors: Priors,
    likelihood: Likelihood,
    X: Array,
    n_samples: int,
    rng: np.random.Generator,
    row_values: RowValues,
) -> Array:
    """Observations ``(n, n_samples)``; each column has its own parameters."""
    prior, intercept_prior, own_priors = priors
    K, d = likelihood.n_predictors, X.shape[1]
    own = np.empty((n_samples, len(own_priors)))
    for j, own_prior in enumerate(own_priors):
        own[:, j] = own_prior.sample(rng, max(n_samples, _TRIED))[:n_samples]
    own = np.clip(own, np.finfo(float).tiny, np.finfo(float).max)
    noise = own[:, 0] if likelihood.infers_noise else np.ones(n_samples)
    coef = np.array([prior.sample(rng, (K, d), variance) for variance in noise])
    intercept = np.zeros((n_samples, K))
    if intercept_prior is not None:
        intercepts = [intercept_prior.sample(rng, (K, 1), variance) for variance in noise]
        intercept = np.array(intercepts)[..., 0]
    theta = np.log(own) if own_priors else None  # the exponentials of theta have these priors
    predictive = PredictiveDistribution(LinearPredictor(coef, intercept), likelihood, theta)
    legacy = np.random.RandomState(rng.integers(np.iinfo(np.int32).max))
    return predictive.sample(X, legacy, row_values)

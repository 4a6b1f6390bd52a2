"""Scorers of predictive distributions, for ``scoring=`` of searches and cross-validation.

They take pipelines, searches and transformed targets too. As in scikit-learn, greater is better,
and the names of losses begin with ``neg_``.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils.metadata_routing import MetadataRequest

from skbayes_sgld._checks import as_array, as_weights, check_lengths, check_number
from skbayes_sgld._numpy_errors import numpy_defaults
from skbayes_sgld._typing import Array
from skbayes_sgld.metrics.distributions import REACH, integrated_crps, mean_of_rows, summed_crps
from skbayes_sgld.metrics.intervals import (
    interval_coverage,
    interval_score,
    interval_width,
    pinball_loss,
    quantile_calibration_error,
)
from skbayes_sgld.metrics.probabilities import brier_score, calibration_error
from skbayes_sgld.prediction.functions import predict_interval, predict_quantiles
from skbayes_sgld.prediction.random_walks import unless_random_walks
from skbayes_sgld.prediction.wrappers import unwrap, unwrap_for
from skbayes_sgld.rows.arguments import ROW_ARGUMENTS, check_by_row_given

_LEVELS = tuple(np.round(np.arange(0.05, 0.96, 0.05), 2).tolist())


def _log_predictive_density(fitted: Any, X: Any, y: Any, weight: Any, by_row: Any) -> float:
    unwrapped = unwrap(fitted, X)
    z = unwrapped.to_model(y)
    each = unwrapped.model.log_predictive_density(unwrapped.X, z, **by_row)
    if unwrapped.transformers:
        sd = unwrapped.model.predict(unwrapped.X, return_std=True, **by_row)[1]
        each = each - np.log(unwrapped.slope(z, sd))
    return mean_of_rows(each, weight)


def _neg_crps(fitted: Any, X: Any, y: Any, weight: Any, by_row: Any) -> float:
    unwrapped = unwrap(fitted, X)
    check_lengths(X=unwrapped.X, y=as_array(y, "y"))
    z = np.asarray(unwrapped.to_model(y))
    predictions = unwrapped.model._predictions(unwrapped.X, by_row)
    likelihood = unwrapped.model._fitted.target.likelihood
    mean, sd = predictions.mean_and_sd()
    heavy = not likelihood.finite_variance and not np.isfinite(sd).all()
    if heavy:  # the score may be finite nevertheless
        low, high = predictions.quantiles(np.array([0.16, 0.84])).T
        sd = np.where(np.isfinite(sd), sd, 1.25 * (high - low))
    is_far = ~np.isfinite(sd)  # under a log link, a far row's mean or variance is infinite
    mean, sd = np.where(is_far, 0.0, mean), np.where(is_far, 1.0, sd)
    ends = unwrapped.from_model(np.array([mean - REACH * sd, mean + REACH * sd]))
    is_far |= np.isinf(ends).any(axis=0)  # as with a log of the target

    def cdf(t: Array) -> Array:
        return unwrapped.model.predict_cdf(unwrapped.X, t, **by_row)

    if likelihood.whole and not unwrapped.transformers:
        trials = by_row.get("n_trials")
        top = np.inf if trials is None else np.asarray(trials, dtype=float)
        each = summed_crps(cdf, z, mean, sd, top)
    else:
        lowest = 0.0 if likelihood.log_link else -np.inf
        each = integrated_crps(cdf, z, mean, sd, lambda t: unwrapped.slope(t, sd[:, None]), lowest)
    return -mean_of_rows(np.where(is_far, np.inf, each), weight)


def _score_by(loss: Callable[[Any, Array, float, Any], Any]) -> Callable[..., float]:
    """Score from a loss, a function of y, its intervals, their coverage and the weights."""

    def score(
        fitted: Any, X: Any, y: Any, weight: Any, by_row: Any, coverage: float = 0.9
    ) -> float:
        interval = predict_interval(fitted, X, coverage, **by_row)
        return -float(loss(y, interval, coverage, weight))

    return score


_interval_score = _score_by(lambda y, ends, c, w: interval_score(y, ends, c, sample_weight=w))
_interval_width = _score_by(lambda y, ends, c, w: interval_width(ends, sample_weight=w))
_coverage_error = _score_by(
    lambda y, ends, c, w: abs(interval_coverage(y, ends, sample_weight=w) - c)
)


def _neg_pinball_loss(
    fitted: Any, X: Any, y: Any, weight: Any, by_row: Any, q: Any = _LEVELS
) -> float:
    quantiles = predict_quantiles(fitted, X, q, **by_row)
    return -pinball_loss(y, quantiles, q, sample_weight=weight)


def label_rows(
    fitted: Any, X: Any, y: Any, weight: Any, by_row: dict[str, Any]
) -> tuple[Any, Array, Any]:
    """Labels, probabilities and weights of rows; a total becomes two rows, one per outcome."""
    if by_row.get("n_trials") is None:
        return y, fitted.predict_proba(X, **by_row), weight
    unwrapped = unwrap(fitted, X)
    _, successes, row_values = unwrapped.model._observed(unwrapped.X, y, by_row)
    trials = row_values.trials
    own = as_weights(weight, "sample_weight", len(trials))
    proba = np.tile(fitted.predict_proba(X), (2, 1))
    outcomes = np.repeat(unwrapped.model.classes_[::-1], len(trials))
    return outcomes, proba, np.concatenate([own * successes, own * (trials - successes)])


def _neg_brier_score(fitted: Any, X: Any, y: Any, weight: Any, by_row: Any) -> float:
    y, proba, weight = label_rows(fitted, X, y, weight, by_row)
    return -brier_score(y, proba, labels=fitted.classes_, sample_weight=weight)


def _neg_calibration_error(
    fitted: Any, X: Any, y: Any, weight: Any, by_row: Any, n_bins: int = 10, norm: str = "l1"
) -> float:
    if is_classifier(fitted):
        labels = fitted.classes_
        y, proba, weight = label_rows(fitted, X, y, weight, by_row)
        return -calibration_error(
            y, proba, n_bins=n_bins, norm=norm, labels=labels, sample_weight=weight
        )
    unwrap_for("the scorer 'neg_calibration_error'", "predict_quantiles", fitted)
    levels = np.arange(1, n_bins) / n_bins
    quantiles = predict_quantiles(fitted, X, levels, **by_row)
    return -quantile_calibration_error(y, quantiles, levels, sample_weight=weight, norm=norm)


# each score's function, and the method that the model needs for it
_SCORES: dict[str, tuple[Callable[..., float], str]] = {
    "log_predictive_density": (_log_predictive_density, "log_predictive_density"),
    "neg_brier_score": (_neg_brier_score, "predict_proba"),
    "neg_calibration_error": (_neg_calibration_error, "predict"),
    "neg_coverage_error": (_coverage_error, "predict_interval"),
    "neg_crps": (_neg_crps, "predict_cdf"),
    "neg_interval_score": (_interval_score, "predict_interval"),
    "neg_interval_width": (_interval_width, "predict_interval"),
    "neg_pinball_loss": (_neg_pinball_loss, "predict_cdf"),
}


@numpy_defaults
class Scorer:
    """A score of a fitted estimator on data, callable as ``scorer(estimator, X, y)``.

    :func:`get_scorer` makes one.

    Parameters
    ----------
    name : str
    **options : dict
    """

    def __init__(self, name: str, **options: Any) -> None:
        if not isinstance(name, str) or name not in _SCORES:
            names = ", ".join(map(repr, get_scorer_names()))
            raise ValueError(
                f"name={name!r} is not the name of a scorer; choose one of {names}. "
                "For scikit-learn's own scorers give scoring their names."
            )
        accepted = list(inspect.signature(_SCORES[name][0]).parameters)[5:]
        unknown = sorted(set(options) - set(accepted))
        if unknown:
            accepts = f"it takes {', '.join(accepted)}" if accepted else "it takes none"
            raise TypeError(f"{name!r} has no option {', '.join(unknown)}; {accepts}.")
        if "coverage" in options:  # check now, rather than at the first score of a search
            check_number(options["coverage"], "coverage", low=0, high=1)
        self.name, self.options = name, options
        self.set_score_request()

    def set_score_request(self, **requests: Any) -> Any:
        """Choose the metadata that searches pass to the score, with metadata routing enabled.

        Parameters
        ----------
        **requests : bool, str or None
            By name: ``sample_weight``, or an argument by row such as ``exposure``. True: pass it.
            False: do not. A string: pass the metadata of that name. None, as where the name is not
            given: raise if the search is given such metadata.

        Returns
        -------
        self : Scorer
        """
        known = ("sample_weight", *ROW_ARGUMENTS)
        for name in requests:
            if name not in known:
                raise TypeError(f"{name}= is no metadata of a score; it takes {', '.join(known)}.")
        self._request = MetadataRequest(owner=repr(self))
        for name in known:
            self._request.score.add_request(param=name, alias=requests.get(name))
        return self

    def get_metadata_routing(self) -> MetadataRequest:
        """Metadata that the scorer asks for.

        Returns
        -------
        routing : MetadataRequest
        """
        return self._request

    def __call__(
        self, estimator: Any, X: Any, y: Any, sample_weight: Any = None, **by_row: Any
    ) -> float:
        """Score of a fitted estimator; greater is better.

        Parameters
        ----------
        estimator : estimator
            Fitted estimator, or a pipeline, a search or a transformed target around one.
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), default=None
        **by_row : dict
            Arguments by row of the estimator, such as ``exposure``.

        Returns
        -------
        score : float
            NaN, with a warning, if the chains are no better than random walks.
        """
        score, member = _SCORES[self.name]
        model = unwrap_for(f"the scorer {self.name!r}", member, estimator).model
        check_by_row_given(model, by_row, "score", in_search=True)
        found = score(estimator, X, y, sample_weight, by_row, **self.options)
        return unless_random_walks(model, found)

    def __repr__(self) -> str:
        """Call that makes the scorer."""
        options = "".join(f", {key}={value!r}" for key, value in self.options.items())
        return f"get_scorer({self.name!r}{options})"


def get_scorer(name: str, **options: Any) -> Scorer:
    """Scorer by name, for ``scoring=`` of ``GridSearchCV``, ``cross_val_score`` and the like.

    Parameters
    ----------
    name : str
        One of:

        * ``"log_predictive_density"``: mean log density, or log probability of labels and counts;
          of the mixture of draws, within 1e-3 of its standard error, in the units of the user's y;
        * ``"neg_crps"`` of numbers and counts: from the distribution function, within 2e-4 standard
          deviations of the prediction;
        * ``"neg_interval_score"``, ``"neg_coverage_error"`` (difference from the nominal coverage),
          ``"neg_interval_width"``: of ``coverage=0.9``;
        * ``"neg_pinball_loss"``: of the levels ``q``, 0.05, 0.1 ... 0.95 by default;
        * ``"neg_brier_score"`` of classifiers;
        * ``"neg_calibration_error"``: :func:`calibration_error` of classifiers,
          :func:`quantile_calibration_error` of regressors, with ``n_bins=10`` and ``norm="l1"``.
    **options : dict
        The options named above.

    Returns
    -------
    scorer : Scorer
        Callable as ``scorer(estimator, X, y)``; greater is better.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.model_selection import GridSearchCV
    >>> from skbayes_sgld import SGLDLinearRegression
    >>> from skbayes_sgld.metrics import get_scorer
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = SGLDLinearRegression(prior="conjugate_normal", n_draws=250, random_state=0)
    >>> grid = {"temperature": [1.0, 20.0]}
    >>> search = GridSearchCV(model, grid, scoring=get_scorer("neg_crps"), cv=2)
    >>> search.fit(X[:, [2, 8]], y).best_params_
    {'temperature': 1.0}
    """
    return Scorer(name, **options)


def get_scorer_names() -> list[str]:
    """Names that :func:`get_scorer` takes.

    Returns
    -------
    names : list of str

    Examples
    --------
    >>> from skbayes_sgld.metrics import get_scorer_names
    >>> get_scorer_names()[:3]
    ['log_predictive_density', 'neg_brier_score', 'neg_calibration_error']
    """
    return sorted(_SCORES)

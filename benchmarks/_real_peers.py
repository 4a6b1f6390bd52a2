"""Intervals and label sets of other libraries, for ``benchmarks.real_data``.

statsmodels has the prediction intervals of ordinary least squares, and quantiles of the Poisson,
negative binomial and binomial distributions at their fitted parameters; scikit-learn has the
probabilities of ``LogisticRegression``; MAPIE conformalizes scikit-learn's models with a quarter of
the rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import statsmodels.api as sm
from mapie.classification import SplitConformalClassifier
from mapie.regression import SplitConformalRegressor
from scipy import stats
from sklearn.linear_model import LinearRegression, LogisticRegression, PoissonRegressor
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from statsmodels.miscmodels.ordinal_model import OrderedModel

from benchmarks._real_scores import LEVELS, Judged, of_intervals, of_probabilities
from benchmarks._real_sets import Data

_TAILS = np.array([(1.0 - np.array(LEVELS)) / 2.0, (1.0 + np.array(LEVELS)) / 2.0])
_KEPT_BACK = 0.25


def _scaled(train: Data, test: Data) -> tuple[np.ndarray, np.ndarray]:
    """Standardised columns and a constant."""
    scaler = StandardScaler().fit(train.X)
    return tuple(
        sm.add_constant(scaler.transform(X), has_constant="add") for X in (train.X, test.X)
    )


def _of_distribution(distribution: Any, test: Data) -> Judged:
    """Intervals of a frozen distribution of every row, and what they hold by its own account."""
    ends = distribution.ppf(_TAILS.reshape(-1, 1)).T.reshape(-1, 2, len(LEVELS))
    expected = None
    if hasattr(distribution, "pmf"):
        above, below = (distribution.cdf(e.T).T for e in (ends[:, 1], ends[:, 0] - 1.0))
        expected = above - below
    return of_intervals(test.y, distribution.mean(), ends, expected)


def least_squares(train: Data, test: Data) -> Judged:
    X, X_test = _scaled(train, test)
    found = sm.OLS(train.y, X).fit().get_prediction(X_test)
    return _of_distribution(stats.t(found.df, loc=found.predicted_mean, scale=found.se_obs), test)


def _log_size(data: Data) -> np.ndarray | None:
    return None if data.size is None else np.log(data.size)


def poisson(train: Data, test: Data) -> Judged:
    X, X_test = _scaled(train, test)
    found = sm.Poisson(train.y, X, offset=_log_size(train)).fit(disp=0, maxiter=200)
    return _of_distribution(stats.poisson(found.predict(X_test, offset=_log_size(test))), test)


def negative_binomial(train: Data, test: Data) -> Judged:
    X, X_test = _scaled(train, test)
    found = sm.NegativeBinomial(train.y, X, offset=_log_size(train)).fit(disp=0, maxiter=500)
    if not found.mle_retvals["converged"]:
        raise RuntimeError("did not converge")
    mean = found.predict(X_test, offset=_log_size(test))
    size = 1.0 / found.params[-1]
    return _of_distribution(stats.nbinom(size, size / (size + mean)), test)


def binomial(train: Data, test: Data) -> Judged:
    X, X_test = _scaled(train, test)
    both = np.column_stack([train.y, train.size - train.y])
    found = sm.GLM(both, X, family=sm.families.Binomial()).fit()
    return _of_distribution(stats.binom(test.size, found.predict(X_test)), test)


def logistic(train: Data, test: Data) -> Judged:
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000))
    model.fit(train.X, train.y)
    return of_probabilities(test.y, model.predict_proba(test.X), model.classes_)


def ordered(train: Data, test: Data) -> Judged:
    X, X_test = (X[:, 1:] for X in _scaled(train, test))
    classes, codes = np.unique(train.y, return_inverse=True)
    found = OrderedModel(codes, X, distr="logit").fit(method="bfgs", disp=0, maxiter=200)
    return of_probabilities(test.y, np.asarray(found.predict(X_test)), classes)


def split_regression(train: Data, test: Data) -> Judged:
    """Conformalized least squares, of counts Poisson regression, of rates or shares."""
    sizes = [np.ones(len(each.y)) if each.size is None else each.size for each in (train, test)]
    counts = train.kind == "counts"
    model = make_pipeline(StandardScaler(), PoissonRegressor() if counts else LinearRegression())
    rest, kept, y_rest, y_kept = train_test_split(
        train.X, train.y / sizes[0], test_size=_KEPT_BACK, random_state=0
    )
    split = SplitConformalRegressor(model.fit(rest, y_rest), confidence_level=LEVELS)
    split.conformalize(kept, y_kept)
    centre, ends = split.predict_interval(test.X)
    return of_intervals(test.y, centre * sizes[1], ends * sizes[1][:, None, None], None)


def split_classes(train: Data, test: Data) -> Judged:
    rest, kept, y_rest, y_kept = train_test_split(
        train.X, train.y, test_size=_KEPT_BACK, random_state=0, stratify=train.y
    )
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000)).fit(rest, y_rest)
    split = SplitConformalClassifier(model, confidence_level=LEVELS)
    split.conformalize(kept, y_kept)
    _, sets = split.predict_set(test.X)
    probability = model.predict_proba(test.X)
    judged = of_probabilities(test.y, probability, model.classes_)
    codes = np.searchsorted(model.classes_, test.y)
    held = sets[np.arange(len(codes)), codes].astype(float)
    return judged._replace(held=held, expected=np.broadcast_to(LEVELS, held.shape))


PEERS = {
    "numbers": {"statsmodels OLS": least_squares, "MAPIE": split_regression},
    "counts": {
        "statsmodels Poisson": poisson,
        "statsmodels NegativeBinomial": negative_binomial,
        "MAPIE": split_regression,
    },
    "totals": {"statsmodels Binomial": binomial, "MAPIE": split_regression},
    "classes": {"LogisticRegression": logistic, "MAPIE": split_classes},
    "ordered classes": {"statsmodels OrderedModel": ordered, "MAPIE": split_classes},
}

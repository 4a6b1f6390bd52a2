"""Classification: labels, the posterior and the predictions of models of classes."""

from __future__ import annotations

from dataclasses import replace
from numbers import Real
from typing import Any, ClassVar, cast

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from sklearn.base import ClassifierMixin
from sklearn.utils import compute_class_weight
from sklearn.utils.multiclass import (
    _check_partial_fit_first_call,
    check_classification_targets,
)

from skbayes_sgld._checks import escaped, naming
from skbayes_sgld.blocks.moments import Moments
from skbayes_sgld.blocks.source import RowSource
from skbayes_sgld.estimators.base import Array, BayesianEstimator
from skbayes_sgld.estimators.linear import LinearEstimator
from skbayes_sgld.estimators.parameters import parameters
from skbayes_sgld.estimators.predictions import prediction
from skbayes_sgld.estimators.scores import ACCURACY, share_of_hits
from skbayes_sgld.inference.passes import Encoding
from skbayes_sgld.likelihoods import Bernoulli, Binomial, Categorical, LabelLikelihood, Likelihood
from skbayes_sgld.posterior import GLMPosterior
from skbayes_sgld.prediction.intervals import check_levels, equal_tailed
from skbayes_sgld.prediction.predictive import Predictive
from skbayes_sgld.prediction.predictors import LinearPredictor
from skbayes_sgld.prediction.wrappers import unless_random_walks
from skbayes_sgld.rows.arguments import check_by_row_given, totals_of_fit
from skbayes_sgld.rows.checks import check_classes, check_weight, check_weight_sizes


@parameters
class ClassificationModel(ClassifierMixin, BayesianEstimator):
    """Labels with probabilities by the logistic or softmax function: data and predictions.

    Parameters
    ----------
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, 0 or more, multiplied into ``sample_weight``. A class whose rows all
        have weight zero stays in ``classes_``. Under a proper prior of the intercepts its posterior
        is that of the model; where their prior is flat, as by default, its probability is 0, the
        limit of ever wider priors, and of two classes both must have weight.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    """

    class_weight: Any = None
    # codes of the classes in the model, None for all; an annotation would make it a parameter
    _present = cast("Array | None", None)
    _advice_on_columns = (
        "a classifier takes one label a row. Of columns that are 1 for the class of the row give "
        "y.argmax(axis=1). Of columns of successes and failures, SGLDLogisticRegression takes the "
        "first and the totals: fit(X, y[:, 0], n_trials=y.sum(axis=1))."
    )
    _argument_hints: ClassVar[dict[str, str]] = {
        **BayesianEstimator._argument_hints,
        "return_std": "the uncertainty of a probability is in predict_proba_interval",
        "n_averaged": "for shares of successes give fit the successes as y, and n_trials",
        "offset": "the log odds have no known part; give a column of X",
    }

    def _target_of_fit(
        self, X: Any, y: Array, weight: Array | None, by_row: dict[str, Any]
    ) -> tuple[Array, Array | None, Array | None]:
        self.classes_: Array = self._classes_of(y)
        codes = positions(y, self.classes_)
        if self.class_weight is not None:
            by_class = self._class_weights(y, codes, weight)[codes]
            weight = by_class if weight is None else weight * by_class
            if not weight.any():
                raise ValueError(
                    f"class_weight={self.class_weight!r} leaves no row a weight above zero."
                )
            check_weight_sizes(weight, f"class_weight={self.class_weight!r}")
        return codes, weight, None

    def _as_numbers(self, y: Array, fitting: bool = True) -> Array:
        if fitting:
            return super()._as_numbers(y)
        return codes_of(y, self.classes_, "the fit")

    def _classes_of(self, y: Array) -> Array:
        """The different labels, sorted; at least two."""
        classes = unique_labels(y)
        # the check sorts its argument: the labels stand for y
        few = 2 * len(classes) <= len(y)
        with naming("y"), np.errstate(invalid="ignore"):  # the check rounds numbers beyond 2**63
            try:
                check_classification_targets(np.repeat(classes, 2) if few else y)
            except ValueError as error:
                raise ValueError(f"{error}{_hint_of_shares(y)}") from None
        return check_two(classes)

    def _class_weights(self, y: Array, codes: Array, weight: Array | None) -> Array:
        if isinstance(self.class_weight, str) and self.class_weight == "balanced":
            counts = np.bincount(codes, weights=weight, minlength=len(self.classes_))
            present = counts > 0
            return counts.sum() / (present.sum() * np.where(present, counts, np.inf))
        if not isinstance(self.class_weight, dict):
            raise ValueError(
                f"class_weight={self.class_weight!r} is not accepted; give 'balanced', None or a "
                "dict of class to weight."
            )
        for label, value in self.class_weight.items():
            if not isinstance(value, Real) or isinstance(value, bool):
                raise TypeError(
                    f"class_weight={self.class_weight!r} gives class {label!r} the weight "
                    f"{value!r}; weights must be numbers, 0 or more."
                )
        unknown = set(self.class_weight) - set(self.classes_.tolist())
        if unknown and set(self.classes_.tolist()) - set(self.class_weight):
            raise ValueError(
                f"class_weight={self.class_weight!r} has {unknown.pop()!r}, which is not among the "
                f"classes of y, {self.classes_.tolist()}; give weights to these, the others have 1."
            )
        by_class = compute_class_weight(self.class_weight, classes=self.classes_, y=y)
        if not np.all((by_class >= 0) & (by_class < np.inf)):
            raise ValueError(
                f"class_weight={self.class_weight!r} is out of range; the weight of every class "
                "must be finite and not negative."
            )
        return by_class

    def _likelihood(self) -> LabelLikelihood:
        if self._present is None:
            return self._label_likelihood(len(self.classes_))
        # if only two of several classes have weight, each keeps its own predictor
        return Categorical(len(self._present))

    @staticmethod
    def _label_likelihood(n_classes: int) -> LabelLikelihood:
        """Likelihood of so many classes."""
        return Bernoulli() if n_classes == 2 else Categorical(n_classes)

    def _predictive(self, selection: Any = slice(None)) -> Predictive:
        predictive = super()._predictive(selection)
        return replace(predictive, present=self._present, n_classes=len(self.classes_))

    @prediction
    def decision_function(self, X: ArrayLike, *, out: Array | None = None, **by_row: Any) -> Array:
        """Log odds of the posterior mean of the probability.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        out : ndarray or None, default=None
            Array that the result is written into, block by block: X may be a memory map, and so
            may ``out``. Where X is :class:`~skbayes_sgld.RowBlocks`, the method returns a
            generator of the results of its blocks.
        **by_row : array-like of shape (n_samples,) or number
            Arguments by row, of the estimators that take some: see the notes of the class.

        Returns
        -------
        log_odds : ndarray of shape (n_samples,) or (n_samples, n_classes)
            Of the second class where there are two.
        """
        both = self._predictions(X, by_row).log_probability()
        log_odds = both[..., 0] - both[..., 1]
        return log_odds[:, 1] if len(self.classes_) == 2 else log_odds

    @prediction
    def predict_proba(self, X: ArrayLike, *, out: Array | None = None, **by_row: Any) -> Array:
        """Posterior mean of the probability of each class.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        out : ndarray or None, default=None
            Array that the result is written into, block by block: X may be a memory map, and so
            may ``out``. Where X is :class:`~skbayes_sgld.RowBlocks`, the method returns a
            generator of the results of its blocks.
        **by_row : array-like of shape (n_samples,) or number
            Arguments by row, of the estimators that take some: see the notes of the class.

        Returns
        -------
        probability : ndarray of shape (n_samples, n_classes)
            In the order of ``classes_``.
        """
        return self._predictions(X, by_row).probability()

    @prediction
    def predict_log_proba(self, X: ArrayLike, *, out: Array | None = None, **by_row: Any) -> Array:
        """Log of the posterior mean of the probability of each class.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        out : ndarray or None, default=None
            Array that the result is written into, block by block: X may be a memory map, and so
            may ``out``. Where X is :class:`~skbayes_sgld.RowBlocks`, the method returns a
            generator of the results of its blocks.
        **by_row : array-like of shape (n_samples,) or number
            Arguments by row, of the estimators that take some: see the notes of the class.

        Returns
        -------
        log_probability : ndarray of shape (n_samples, n_classes)
        """
        return self._predictions(X, by_row).log_probability()[..., 0]

    @prediction
    def predict(self, X: ArrayLike, *, out: Array | None = None, **by_row: Any) -> Array:
        """Most probable class.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        out : ndarray or None, default=None
            Array that the result is written into, block by block: X may be a memory map, and so
            may ``out``. Where X is :class:`~skbayes_sgld.RowBlocks`, the method returns a
            generator of the results of its blocks.
        **by_row : array-like of shape (n_samples,) or number
            Arguments by row, of the estimators that take some: see the notes of the class.

        Returns
        -------
        label : ndarray of shape (n_samples,)
        """
        probability = self._predictions(X, by_row).probability()
        return self.classes_[probability.argmax(axis=1)]

    @prediction
    def predict_proba_quantiles(
        self,
        X: ArrayLike,
        q: ArrayLike = (0.05, 0.5, 0.95),
        *,
        out: Array | None = None,
        **by_row: Any,
    ) -> Array:
        """Posterior quantiles of the probability of each class.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        q : array-like of shape (n_quantiles,), default=(0.05, 0.5, 0.95)
            Levels in (0, 1).
        out : ndarray or None, default=None
            Array that the result is written into, block by block: X may be a memory map, and so
            may ``out``. Where X is :class:`~skbayes_sgld.RowBlocks`, the method returns a
            generator of the results of its blocks.
        **by_row : array-like of shape (n_samples,) or number
            Arguments by row, of the estimators that take some: see the notes of the class.

        Returns
        -------
        quantiles : ndarray of shape (n_samples, n_classes, n_quantiles)
            In the order of ``classes_``.
        """
        levels = check_levels(q)
        return self._predictions(X, by_row).probability_quantiles(levels)

    @prediction
    def predict_proba_interval(
        self,
        X: ArrayLike,
        coverage: ArrayLike = 0.9,
        *,
        out: Array | None = None,
        **by_row: Any,
    ) -> Array:
        """Equal-tailed credible intervals of the probability of each class.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        coverage : float or array-like of shape (n_coverages,), default=0.9
            Posterior probability of the interval, in (0, 1); or several.
        out : ndarray or None, default=None
            Array that the result is written into, block by block: X may be a memory map, and so
            may ``out``. Where X is :class:`~skbayes_sgld.RowBlocks`, the method returns a
            generator of the results of its blocks.
        **by_row : array-like of shape (n_samples,) or number
            Arguments by row, of the estimators that take some: see the notes of the class.

        Returns
        -------
        interval : ndarray of shape (n_samples, n_classes, 2)
            With the coverages on a fourth axis where several are given.
        """
        return equal_tailed(self._predictions(X, by_row).probability_quantiles, coverage)

    def posterior_mean_draws(
        self,
        X: ArrayLike,
        n_samples: int | None = None,
        random_state: Any = 0,
        **by_row: Any,
    ) -> Array:
        """Draws of the probability of each class: under draws of the parameters.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
        n_samples : int or None, default=None
            Number of draws, chosen at random among those of the fit. None: all of them.
        random_state : int, RandomState, Generator or None, default=0
            Seed of the choice.
        **by_row : array-like of shape (n_samples,) or number
            Arguments by row, of the estimators that take some: see the notes of the class.

        Returns
        -------
        probability : ndarray of shape (n_rows, n_classes, n_samples)
            Under the draws of :meth:`sample_posterior` for the same arguments, in their order.
            The mean over the draws of a sampled posterior is ``predict_proba``.
        """
        selection = self._choose_draws(n_samples, random_state)
        return self._predictions(X, by_row, selection).probability_draws()

    def log_predictive_density(self, X: ArrayLike, y: ArrayLike, **by_row: Any) -> Array:
        """Log posterior predictive probability of every label, or number of successes.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            Labels among ``classes_``, or successes.
        **by_row : array-like of shape (n_samples,) or number
            Arguments by row, of the estimators that take some: see the notes of the class.

        Returns
        -------
        log_probability : ndarray of shape (n_samples,)
            Of labels that of :meth:`predict_log_proba`.
        """
        return self._predictions_of(X, y, by_row).log_density()

    def score(self, X: Any, y: Any = None, sample_weight: Any = None, **by_row: Any) -> float:
        """Share of the labels, or of the trials, that are predicted: the accuracy.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), RowBlocks, or of Dask
            Rows in blocks are read once; the blocks of RowBlocks hold the other arguments too.
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), default=None
        **by_row : array-like of shape (n_samples,) or number
            Arguments by row, of the estimators that take some: see the notes of the class.

        Returns
        -------
        score : float
            NaN, with a warning, where the chains are no better than random walks.
        """
        source = self._source(X, y, sample_weight, by_row)
        if source is not None:
            return unless_random_walks(self, ACCURACY.score_source(self, source))
        check_by_row_given(self, by_row, "score", in_search=True)
        if not any(value is not None for value in by_row.values()):
            score = ACCURACY.score_arrays(y, self.predict(X), sample_weight)
            return unless_random_walks(self, score)
        rows, successes, trials = self._observed(X, y, by_row)
        hits = share_of_hits(successes / np.maximum(trials, 1.0), self.predict(X))
        weight = 1.0 if sample_weight is None else check_weight(sample_weight, rows)
        score = float(np.average(hits, weights=trials * weight))
        return unless_random_walks(self, score)


def codes_of(y: Array, classes: Array, known_from: str) -> Array:
    """Positions of labels among the classes; raise for a label that is none of them."""
    member = np.isin(y, classes)
    if not member.all():
        raise ValueError(
            f"y has the label {y[~member].tolist()[0]!r}, which is not among the classes of "
            f"{known_from}, {classes.tolist()}.{_hint_of_shares(y)}"
        )
    return positions(y, classes)


def _hint_of_shares(y: Array) -> str:
    """Words on what to give instead of shares of successes; "" where y has other values."""
    if y.dtype.kind != "f" or not np.all((y >= 0) & (y <= 1)) or np.all(y == np.floor(y)):
        return ""
    return (
        " Of shares of successes among trials give SGLDLogisticRegression the numbers: "
        "fit(X, successes, n_trials=n)."
    )


def positions(y: Array, classes: Array) -> Array:
    """Position of each label in ``classes``, which has them all, in any order."""
    order = np.argsort(classes)
    return order[np.searchsorted(classes, y, sorter=order)]


def check_two(classes: Array) -> Array:
    """The classes, if there are two at least."""
    if len(classes) < 2:
        raise ValueError(
            f"y has one class, {classes.tolist()[0]!r}; a classifier needs at least two classes."
        )
    return classes


def unique_labels(y: Array) -> Array:
    """The different labels, sorted."""
    if y.dtype.kind in "biu":  # by a hash table where they are numbers without fractions
        return np.sort(pd.unique(y))
    try:
        labels = np.unique(y)
    except TypeError:
        kinds = sorted({type(label).__name__ for label in y.tolist()})
        raise TypeError(
            f"y has labels of type {', '.join(kinds)}, which have no order; give all of them as "
            "strings, or all as whole numbers."
        ) from None
    if len(labels) and isinstance(labels[0], bytes):
        raise TypeError(
            f"y has labels of bytes, such as {labels[0]!r}; give them as strings or whole numbers."
        )
    return labels


@parameters
class LinearClassifier(ClassificationModel, LinearEstimator):
    """A classifier with one linear predictor a class, or one for two classes.

    A class whose rows all have weight zero is in the model as the others where the intercepts have
    a proper prior. Where theirs is flat, its own intercept has no finite posterior: the model is
    then the limit of ever wider priors, in which the class has probability 0, its intercept is
    minus infinity, and the others are as if it were not there.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
    intercept_ : ndarray of shape (1,) or (n_classes,)
    """

    _row_arguments: ClassVar[tuple[str, ...]] = ("n_trials",)
    _exponential = "odds"
    _target = (
        "labels; with ``n_trials``, whole numbers of successes. ``classes_`` are then 0 and 1, a "
        "success, and probabilities are those of one trial. The likelihood is that of as many rows "
        "as there are trials, each with its label; the automatic scale of the prior counts each "
        "row once."
    )

    def _model_of_source(self, settings: Any, source: RowSource) -> GLMPosterior:
        if source.has_exposure:
            self._begin_totals()
        return super()._model_of_source(settings, source)

    def _target_of_fit(
        self, X: Any, y: Array, weight: Array | None, by_row: dict[str, Any]
    ) -> tuple[Array, Array | None, Array | None]:
        n_trials = by_row.get("n_trials")
        self._remember_by_row(by_row)
        if n_trials is None:
            return super()._target_of_fit(X, y, weight, by_row)
        self._begin_totals()
        return *totals_of_fit(X, y, weight, n_trials), None

    def _begin_totals(self) -> None:
        """Take totals for the target of this fit."""
        if self.class_weight is not None:
            raise ValueError(
                f"class_weight={self.class_weight!r} has no meaning for totals; leave it None, and "
                "weigh rows by sample_weight."
            )
        self._present, self.classes_ = None, np.arange(2)

    def _likelihood(self) -> LabelLikelihood:
        return Binomial() if self._by_row else super()._likelihood()

    def _know_classes(self, classes: Any) -> None:
        """Set ``classes_`` before a batch of ``partial_fit``."""
        if self._stream is None and classes is not None:  # fit may have seen others
            self.__dict__.pop("classes_", None)
        with naming("classes"):
            check_classes(classes)
            _check_partial_fit_first_call(self, classes)

    def _classes_of(self, y: Array) -> Array:
        """Classes of y; ``partial_fit`` knows them from its first call."""
        if self._stream is None:
            return super()._classes_of(y)
        if isinstance(self.class_weight, str):
            raise ValueError(
                f"class_weight={self.class_weight!r} depends on rows that are yet to come; "
                "partial_fit takes None or a dict of class to weight."
            )
        codes_of(y, self.classes_, "the first call of partial_fit")
        return self.classes_

    def _as_numbers(self, y: Array, fitting: bool = True) -> Array:
        """Codes as the likelihood takes them; a class without weight may leave the model."""
        if self._by_row:
            return y
        if not fitting:
            return super()._as_numbers(y, fitting)
        self._present, present = None, np.flatnonzero(np.bincount(y))
        # classes without rows stay in the model where later rows or a prior inform them
        stay = self._stream is not None or not self.fit_intercept
        stay = stay or self._resolve("intercept_prior").proper
        if len(present) < len(self.classes_) and not stay:
            if len(present) < 2:
                only = self.classes_[present].tolist()[0]
                raise ValueError(
                    f"the weights are zero for every class but {only!r}: under its flat prior the "
                    "intercept would go to infinity; give rows of another class a weight, or set "
                    "intercept_prior='normal' or fit_intercept=False."
                )
            self._present, y = present, np.searchsorted(present, y)
        return super()._as_numbers(y)

    def _encoding(self, moments: Moments) -> Encoding:
        # two rows stand for all rows of a label
        labels, weight = np.repeat(moments.labels, 2), np.repeat(0.5 * moments.total, 2)
        codes, weighed, _ = super()._target_of_fit(None, labels, weight, {})
        assert weighed is not None
        factors = np.ones(len(moments.labels))
        if self.class_weight is not None:
            factors = self._class_weights(labels, codes, weight)[codes[::2]]
        positive, numbers = np.asarray(weighed > 0), np.zeros(len(factors))
        numbers[positive[::2]] = self._as_numbers(codes[positive])[::2]
        return Encoding(moments.labels, numbers, np.where(positive[::2], factors, 0.0))

    def _target_before_fit(self, y: Any, n_rows: int) -> tuple[Array, Likelihood, Array | None]:
        if self._by_row:
            return super()._target_before_fit(y, n_rows)
        labels, codes = np.arange(2), np.arange(n_rows) % 2
        if y is not None:
            labels, codes = np.unique(y, return_inverse=True)
        return codes.astype(float), self._label_likelihood(len(labels)), labels

    def _class_names(self) -> list[str]:
        classes = self.classes_ if self._present is None else self.classes_[self._present]
        return [escaped(c) for c in classes]

    def _split(self, values: Array) -> dict[str, Array]:
        parts = super()._split(values)
        if self._present is None:
            return parts
        S, n_classes = len(values), len(self.classes_)
        coef = np.zeros((S, n_classes, self.n_features_in_))
        intercept = np.full((S, n_classes), -np.inf)
        coef[:, self._present], intercept[:, self._present] = parts["coef"], parts["intercept"]
        return {"coef": coef, "intercept": intercept}

    def _predictor(self, selection: Any = slice(None)) -> LinearPredictor:
        """Predictors of the classes that are in the model."""
        parts = self._draws()
        present = slice(None) if self._present is None else self._present
        coef, intercept = parts["coef"][selection], parts["intercept"][selection]
        return LinearPredictor(coef[:, present], intercept[:, present])

    # ---- observations, labels or totals ---------------------------------------------------------

    def _row_values(self, X: Any, by_row: dict[str, Any]) -> dict[str, Array]:
        if by_row.get("n_trials") is not None and not self._by_row and hasattr(self, "classes_"):
            raise ValueError(
                "n_trials is given, and the model was fitted to labels; give labels, or n_trials "
                "in fit too."
            )
        return super()._row_values(X, by_row)

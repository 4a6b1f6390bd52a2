"""Classification: labels, the posterior and the predictions of models of classes."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import ClassifierMixin
from sklearn.utils import Tags
from sklearn.utils.multiclass import _check_partial_fit_first_call

from skbayes_sgld._checks import naming
from skbayes_sgld.estimators.base import Array, BayesianEstimator
from skbayes_sgld.estimators.linear import LinearEstimator
from skbayes_sgld.estimators.parameters import parameters
from skbayes_sgld.estimators.prediction_methods import prediction_method
from skbayes_sgld.likelihoods import Bernoulli, Categorical, LabelLikelihood
from skbayes_sgld.prediction.distribution import PredictiveDistribution
from skbayes_sgld.prediction.intervals import check_levels, equal_tailed
from skbayes_sgld.prediction.random_walks import unless_random_walks
from skbayes_sgld.rows.arguments import beside_size, check_by_row_given, check_names
from skbayes_sgld.rows.arrays import Arrays
from skbayes_sgld.rows.checks import check_classes, check_weight
from skbayes_sgld.rows.reading import UnreadRows, read_rows
from skbayes_sgld.rows.scores import ACCURACY, share_of_hits
from skbayes_sgld.rows.targets import Labels, Target, TotalsOfLabels


@parameters
class ClassificationModel(ClassifierMixin, BayesianEstimator):
    """Labels with probabilities by the logistic or softmax function: data and predictions.

    Parameters
    ----------
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, 0 or more, multiplied into ``sample_weight``. A class whose rows all
        have weight zero stays in ``classes_``. Under a proper prior of the intercepts it has
        a posterior like the others; if their prior is flat, as by default, its probability is 0,
        the limit of ever wider priors, and with two classes both must have weight.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    """

    class_weight: Any = None
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

    def _target(self, rows: UnreadRows) -> Target:
        return Labels(**self._of_labels())

    def _of_labels(self) -> dict[str, Any]:
        """Arguments of the target of labels."""
        return {"class_weight": self.class_weight, "make_likelihood": self._label_likelihood}

    def _label_likelihood(self, n_classes: int) -> LabelLikelihood:
        """Likelihood for this number of classes."""
        return Bernoulli() if n_classes == 2 else Categorical(n_classes)

    def _predictive(self, selection: Any = slice(None)) -> PredictiveDistribution:
        predictive = super()._predictive(selection)
        target = self._fitted.target
        return replace(predictive, present=target.present, n_classes=len(target.classes))

    # here and below `prediction_method` writes into `out`; a body is only called without it
    @prediction_method
    def decision_function(self, X: ArrayLike, *, out: Array | None = None, **by_row: Any) -> Array:
        """Log odds of the posterior mean of the probability.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        out : ndarray or None, default=None
            Array that the result is written into, block by block: X may be a memory map, and so
            may ``out``. If X is :class:`~skbayes_sgld.RowBlocks`, the method returns a
            generator of the results of its blocks.
        **by_row : array-like of shape (n_samples,) or number
            Arguments by row, for estimators that take some: see the notes of the class.

        Returns
        -------
        log_odds : ndarray of shape (n_samples,) or (n_samples, n_classes)
            With two classes, the log odds of the second.
        """
        both = self._predictions(X, by_row).log_probability()
        log_odds = both[..., 0] - both[..., 1]
        return log_odds[:, 1] if len(self.classes_) == 2 else log_odds

    @prediction_method
    def predict_proba(self, X: ArrayLike, *, out: Array | None = None, **by_row: Any) -> Array:
        """Posterior mean of the probability of each class.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        out : ndarray or None, default=None
            Array that the result is written into, block by block: X may be a memory map, and so
            may ``out``. If X is :class:`~skbayes_sgld.RowBlocks`, the method returns a
            generator of the results of its blocks.
        **by_row : array-like of shape (n_samples,) or number
            Arguments by row, for estimators that take some: see the notes of the class.

        Returns
        -------
        probability : ndarray of shape (n_samples, n_classes)
            In the order of ``classes_``.
        """
        return self._predictions(X, by_row).probability()

    @prediction_method
    def predict_log_proba(self, X: ArrayLike, *, out: Array | None = None, **by_row: Any) -> Array:
        """Log of the posterior mean of the probability of each class.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        out : ndarray or None, default=None
            Array that the result is written into, block by block: X may be a memory map, and so
            may ``out``. If X is :class:`~skbayes_sgld.RowBlocks`, the method returns a
            generator of the results of its blocks.
        **by_row : array-like of shape (n_samples,) or number
            Arguments by row, for estimators that take some: see the notes of the class.

        Returns
        -------
        log_probability : ndarray of shape (n_samples, n_classes)
        """
        return self._predictions(X, by_row).log_probability()[..., 0]

    @prediction_method
    def predict(self, X: ArrayLike, *, out: Array | None = None, **by_row: Any) -> Array:
        """Most probable class.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        out : ndarray or None, default=None
            Array that the result is written into, block by block: X may be a memory map, and so
            may ``out``. If X is :class:`~skbayes_sgld.RowBlocks`, the method returns a
            generator of the results of its blocks.
        **by_row : array-like of shape (n_samples,) or number
            Arguments by row, for estimators that take some: see the notes of the class.

        Returns
        -------
        label : ndarray of shape (n_samples,)
        """
        return self._predictions(X, by_row).labels()

    @prediction_method
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
            may ``out``. If X is :class:`~skbayes_sgld.RowBlocks`, the method returns a
            generator of the results of its blocks.
        **by_row : array-like of shape (n_samples,) or number
            Arguments by row, for estimators that take some: see the notes of the class.

        Returns
        -------
        quantiles : ndarray of shape (n_samples, n_classes, n_quantiles)
            In the order of ``classes_``.
        """
        levels = check_levels(q)
        return self._predictions(X, by_row).probability_quantiles(levels)

    @prediction_method
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
            may ``out``. If X is :class:`~skbayes_sgld.RowBlocks`, the method returns a
            generator of the results of its blocks.
        **by_row : array-like of shape (n_samples,) or number
            Arguments by row, for estimators that take some: see the notes of the class.

        Returns
        -------
        interval : ndarray of shape (n_samples, n_classes, 2)
            Several coverages are a fourth axis.
        """
        return equal_tailed(self._predictions(X, by_row).probability_quantiles, coverage)

    def posterior_mean_draws(
        self,
        X: ArrayLike,
        n_samples: int | None = None,
        random_state: Any = 0,
        **by_row: Any,
    ) -> Array:
        """Probability of each class under draws of the parameters.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
        n_samples : int or None, default=None
            Number of draws, chosen at random among those of the fit. None: all of them.
        random_state : int, RandomState, Generator or None, default=0
            Seed of the choice.
        **by_row : array-like of shape (n_rows,) or number
            Arguments by row, for estimators that take some: see the notes of the class.

        Returns
        -------
        probability : ndarray of shape (n_rows, n_classes, n_samples)
            One entry for each draw of :meth:`sample_posterior` with the same arguments, in its
            order. The mean over the draws of a sampled posterior is ``predict_proba``.
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
            Arguments by row, for estimators that take some: see the notes of the class.

        Returns
        -------
        log_probability : ndarray of shape (n_samples,)
            For labels that of :meth:`predict_log_proba`.
        """
        return self._predictions_of_observed(X, y, by_row).log_density()

    def score(self, X: Any, y: Any = None, sample_weight: Any = None, **by_row: Any) -> float:
        """Accuracy: the share of the labels, or of the trials, that are predicted.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), RowBlocks, or of Dask
            Rows in blocks are read once; the blocks of RowBlocks hold the other arguments too.
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), default=None
        **by_row : array-like of shape (n_samples,) or number
            Arguments by row, for estimators that take some: see the notes of the class.

        Returns
        -------
        score : float
            NaN, with a warning, if the chains are no better than random walks.
        """
        check_names(self, by_row)
        rows = read_rows(X, y, sample_weight, by_row, self)
        if not isinstance(rows, Arrays):
            return unless_random_walks(self, rows.score(self, ACCURACY))
        check_by_row_given(self, by_row, "score", in_search=True)
        predicted = self.predict(X, **beside_size(by_row))
        if by_row.get("n_trials") is None:
            score = ACCURACY.score_arrays(y, predicted, sample_weight)
            return unless_random_walks(self, score)
        checked, successes, row_values = self._observed(X, y, by_row)
        trials = row_values.trials
        assert trials is not None
        hits = share_of_hits(successes / np.maximum(trials, 1.0), predicted)
        weight = 1.0 if sample_weight is None else check_weight(sample_weight, checked)
        score = float(np.average(hits, weights=trials * weight))
        return unless_random_walks(self, score)


@parameters
class LinearClassifier(ClassificationModel, LinearEstimator):
    """A classifier with one linear predictor for each class, or a single one for two classes.

    A class whose rows all have weight zero is in the model like the others if the intercepts have
    a proper prior. If their prior is flat, the posterior of its intercept is not finite: the model
    is then the limit of ever wider priors, in which the class has probability 0, its intercept is
    minus infinity, and the others are as if it were not there.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
    intercept_ : ndarray of shape (1,) or (n_classes,)
    """

    _row_arguments: ClassVar[tuple[str, ...]] = ("n_trials",)
    _y_holds = (
        "labels; with ``n_trials``, whole numbers of successes. ``classes_`` are then 0 and 1, a "
        "success, and probabilities are those of one trial. The likelihood is that of as many rows "
        "as there are trials, each with its label; the automatic scale of the prior counts each "
        "row once."
    )

    def __sklearn_tags__(self) -> Tags:
        """Tags of scikit-learn: effects of groups and curves are of one predictor."""
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = not self._is_mixed
        return tags

    def _target(self, rows: UnreadRows) -> Target:
        if "n_trials" in rows.arguments:
            return TotalsOfLabels(class_weight=self.class_weight)
        return Labels(**self._of_labels())

    def _of_labels(self) -> dict[str, Any]:
        # classes without rows stay in the model if a prior determines their intercepts
        stay = not self.fit_intercept or self._resolve("intercept_prior").proper
        return super()._of_labels() | {"keeps_absent": stay}

    def _known_classes(self, classes: Any, starts: bool) -> tuple[Array, Array | None]:
        """Classes of a stream, and their order if the type of ``classes`` has one.

        ``starts`` is whether no batch came before, so that ``fit`` may have seen others.
        """
        known = None if starts and classes is not None else getattr(self, "classes_", None)
        return first_classes(classes, known), None


def first_classes(classes: Any, known: Array | None) -> Array:
    """Classes of the first call of ``partial_fit``, by scikit-learn's own check."""
    holder = SimpleNamespace(classes_=known)
    with naming("classes"):
        check_classes(classes)
        _check_partial_fit_first_call(holder, classes)
    found: Array = holder.classes_
    return found

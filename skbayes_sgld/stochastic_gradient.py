"""Posterior modes of linear models by stochastic gradient descent."""

from __future__ import annotations

from typing import Any

from skbayes_sgld.estimators.classification import LinearClassifier
from skbayes_sgld.estimators.map import MAPEstimator
from skbayes_sgld.estimators.parameters import parameters
from skbayes_sgld.estimators.regression import NormalRegressor
from skbayes_sgld.prediction.predictive import Predictive
from skbayes_sgld.prediction.predictors import LinearPredictor

__all__ = ["SGDMAPClassifier", "SGDMAPRegressor"]


@parameters
class SGDMAPRegressor(NormalRegressor, MAPEstimator):
    """Posterior mode of Bayesian linear regression by stochastic gradient descent.

    The estimate is the point where the optimizer ends (Karagiannis, Handout 6, Algorithms 11 and
    14), the uncertainty that of the Laplace approximation there, in theta = (beta, intercept,
    log sigma^2). A last pass over the rows measures how far the mode is in the worst coordinate.

    y may have several columns, as in :class:`SGLDLinearRegression`.

    Parameters
    ----------
    prior : str or CoefficientPrior, default="conjugate_normal"
        Prior of the coefficients of the X that ``fit`` sees: one of ``"conjugate_normal"`` (its
        scale is in units of the noise), ``"normal"``, ``"laplace"``, ``"student_t"``, ``"cauchy"``,
        ``"flat"``, or an instance such as ``Laplace(scale=0.5)``. By name its scale is in the units
        of each column and of y, so that no prediction depends on them. The default, on standardised
        columns, is the normal-inverse-gamma model of the lecture, beta | sigma^2 ~ N(0, 100
        sigma^2 I). With fewer than about ten rows a column it takes the noise to be too small:
        choose ``"normal"`` there. The intercept has a prior of its own.

    See Also
    --------
    SGLDLinearRegression : Samples the posterior itself.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from skbayes_sgld import SGDMAPRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = SGDMAPRegressor(random_state=0).fit(X, y)
    >>> print(f"{model.score(X, y):.2f}")
    0.52
    """

    prior: Any = "conjugate_normal"


@parameters
class SGDMAPClassifier(LinearClassifier, MAPEstimator):
    """Posterior mode of Bayesian logistic regression by stochastic gradient descent.

    The estimate is the point where the optimizer ends (Karagiannis, Handout 6, Algorithms 11 and
    14), the uncertainty that of the Laplace approximation there. A last pass over the rows
    measures how far the mode is in the worst coordinate. Probabilities are those of ``coef_``;
    their intervals come from the approximation.

    Parameters
    ----------
    prior : str or CoefficientPrior, default="normal"
        Prior of the coefficients of the X that ``fit`` sees: one of ``"normal"``, ``"laplace"``,
        ``"student_t"``, ``"cauchy"``, ``"flat"``, or an instance such as ``Normal(scale=2.5)``. By
        name its scale is in the units of each column, ``1 / sd(x_j)``, so that no prediction
        depends on them; on standardised columns the mode under the default is the fit of
        ``LogisticRegression(C=1)``. The intercept has a prior of its own; over more than two
        classes each has it, and their common shift, which no data see, is left out of what is
        reported.

    See Also
    --------
    SGLDLogisticRegression : Samples the posterior itself.

    Examples
    --------
    >>> from skbayes_sgld import SGDMAPClassifier
    >>> from skbayes_sgld.datasets import make_two_clusters
    >>> X, y = make_two_clusters(random_state=0)
    >>> model = SGDMAPClassifier(random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.95
    True
    """

    prior: Any = "normal"

    def _point_predictive(self) -> Predictive:
        seen = slice(None) if self._seen is None else self._seen
        point = LinearPredictor(self.coef_[None, seen], self.intercept_[None, seen])
        return self._of_all_classes(Predictive(point, self._likelihood()))

"""Linear models: Bayesian regression and classification as scikit-learn estimators."""

from __future__ import annotations

from typing import Any

from skbayes_sgld._components import parameters
from skbayes_sgld.estimators.docs import shared_docs
from skbayes_sgld.estimators.streamed import (
    StreamedClassifier,
    StreamedCounts,
    StreamedRegressor,
)
from skbayes_sgld.stochastic_gradient import SGDMAPClassifier, SGDMAPRegressor

__all__ = [
    "SGDMAPClassifier",
    "SGDMAPRegressor",
    "SGLDLinearRegression",
    "SGLDLogisticRegression",
    "SGLDPoissonRegressor",
]


@shared_docs
@parameters
class SGLDLinearRegression(StreamedRegressor):
    """Bayesian linear regression sampled by stochastic gradient Langevin dynamics.

    The model is y ~ N(X beta + intercept, sigma^2) with priors on beta and sigma^2 (Karagiannis,
    Handout 6, Section 4); theta = (beta, intercept, log sigma^2) is sampled by the recursion of
    :class:`skbayes_sgld.sampling.SGLD`. Nothing has to be tuned.

    y may have a column for each of several outputs. Given X they are independent, with noise and
    coefficients of their own: ``estimators_`` holds the model of each, and those are what separate
    fits find that are given one ``RandomState`` in turn. ``coef_`` is ``(n_outputs, n_features)``,
    ``predict`` and its standard deviation ``(n_samples, n_outputs)``, an interval ``(n_samples,
    n_outputs, 2)``; names of parameters begin with the output's, ``coef[output, column]``.

    Parameters
    ----------
    {prior_regression}
    {noise_model}
    {fit_intercept}
    {sampling}

    Attributes
    ----------
    {fitted_regression}
    {fitted_noise}
    {fitted_sampling}

    See Also
    --------
    SGDMAPRegressor : The posterior mode by stochastic gradients.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from skbayes_sgld import SGLDLinearRegression
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = SGLDLinearRegression(random_state=0).fit(X, y)
    >>> mean, std = model.predict(X[:1], return_std=True)
    >>> print(f"{mean[0]:.0f} +- {std[0]:.0f}")
    206 +- 54
    >>> low, high = model.predict_interval(X[:1], coverage=0.9)[0]
    >>> print(f"90 % of such patients are between {low:.0f} and {high:.0f}")
    90 % of such patients are between 117 and 295
    """

    noise_model: Any = "constant"


@shared_docs
@parameters
class SGLDLogisticRegression(StreamedClassifier):
    """Bayesian logistic regression sampled by stochastic gradient Langevin dynamics.

    Two classes have one linear predictor, P(y = 1) = 1 / (1 + exp(-eta)); more have one each and
    softmax probabilities, and their coefficients are reported with sum zero over the classes,
    which is what the data can tell. Nothing has to be tuned.

    Parameters
    ----------
    {prior_classification}
    {fit_intercept}
    {class_weight}
    {sampling}

    Attributes
    ----------
    {fitted_classification}
    {fitted_sampling}

    See Also
    --------
    SGDMAPClassifier : The posterior mode by stochastic gradients.

    Examples
    --------
    >>> from skbayes_sgld import SGLDLogisticRegression
    >>> from skbayes_sgld.datasets import make_two_clusters
    >>> X, y = make_two_clusters(random_state=0)
    >>> model = SGLDLogisticRegression(random_state=0).fit(X, y)
    >>> print(model.predict_proba([[0.5, 0.5]]).round(2))
    [[0.56 0.44]]
    >>> low, high = model.predict_proba_interval([[0.5, 0.5]], coverage=0.9)[0, 1]
    >>> print(f"between {low:.1f} and {high:.1f}")
    between 0.3 and 0.5
    """


@shared_docs
@parameters
class SGLDPoissonRegressor(StreamedCounts):
    """Bayesian Poisson regression sampled by stochastic gradient Langevin dynamics.

    The model is y ~ Poisson(exposure * exp(X beta + intercept)). Predictions are rates, or counts
    over an exposure that is handed to them. Nothing has to be tuned.

    Parameters
    ----------
    {prior_counts}
    {fit_intercept}
    {sampling}

    Attributes
    ----------
    {fitted_counts}
    {fitted_sampling}

    See Also
    --------
    sklearn.linear_model.PoissonRegressor : The posterior mode under a normal prior.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayes_sgld import SGLDPoissonRegressor
    >>> rng = np.random.default_rng(0)
    >>> X, years = rng.standard_normal((200, 2)), rng.uniform(0.5, 10.0, 200)
    >>> y = rng.poisson(years * np.exp(X[:, 0] - 0.5))
    >>> model = SGLDPoissonRegressor(random_state=0).fit(X, y, exposure=years)
    >>> print(f"{model.predict([[1.0, 0.0]])[0]:.1f} a year")
    1.6 a year
    >>> low, high = model.predict_interval([[1.0, 0.0]], coverage=0.9, exposure=10.0)[0]
    >>> print(f"{low:.0f} to {high:.0f} in ten years")
    10 to 23 in ten years
    """

"""Neural networks: Bayesian multilayer perceptrons as scikit-learn estimators."""

from __future__ import annotations

from skbayes_sgld.estimators.classification import ClassificationModel
from skbayes_sgld.estimators.parameters import parameters
from skbayes_sgld.neural_network.estimators import BackpropNetwork, NetworkRegressor, SGLDNetwork
from skbayes_sgld.neural_network.posterior import MLPPosterior

__all__ = [
    "BayesByBackpropClassifier",
    "BayesByBackpropRegressor",
    "MLPPosterior",
    "SGLDMLPClassifier",
    "SGLDMLPRegressor",
]


@parameters
class SGLDMLPRegressor(NetworkRegressor, SGLDNetwork):
    r"""Bayesian neural network regression sampled by stochastic gradient Langevin dynamics.

    The model is :math:`y_i \sim N(f(x_i), \sigma^2)` with f a multilayer perceptron on standardised
    columns.

    See Also
    --------
    BayesByBackpropRegressor : A normal approximation of the same posterior.
    SGLDLinearRegression : The linear model.

    References
    ----------
    Neal 1996, Bayesian Learning for Neural Networks, Section 1.2.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayes_sgld import SGLDMLPRegressor
    >>> X = np.r_[np.linspace(-2, -1, 20), np.linspace(1, 2, 20)][:, None]
    >>> y = np.sin(2 * X[:, 0]) + 0.1 * np.random.default_rng(0).standard_normal(40)
    >>> model = SGLDMLPRegressor(hidden_layer_sizes=(20,), noise_variance=0.01, random_state=0)
    >>> at_the_data, in_the_gap = model.fit(X, y).predict([[1.5], [0.0]], return_std=True)[1]
    >>> bool(in_the_gap > 2 * at_the_data)
    True
    """


@parameters
class SGLDMLPClassifier(ClassificationModel, SGLDNetwork):
    """Bayesian neural network classification by stochastic gradient Langevin dynamics.

    The log odds are the outputs of a multilayer perceptron on standardised columns: one output
    for two classes; for more, one output for each class, and softmax probabilities.

    See Also
    --------
    BayesByBackpropClassifier : A normal approximation of the same posterior.
    SGLDLogisticRegression : The linear model.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from skbayes_sgld import SGLDMLPClassifier
    >>> X, y = make_moons(100, noise=0.2, random_state=0)
    >>> model = SGLDMLPClassifier(hidden_layer_sizes=(10,), random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.9)
    True
    >>> model.predict_proba_interval(X[:1]).shape
    (1, 2, 2)
    """


@parameters
class BayesByBackpropRegressor(NetworkRegressor, BackpropNetwork):
    """Bayesian neural network regression by Bayes by Backprop.

    The model is that of :class:`SGLDMLPRegressor`.

    See Also
    --------
    SGLDMLPRegressor : Samples the posterior itself.
    skbayes_sgld.variational.BayesByBackprop : The same on any posterior.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from skbayes_sgld import BayesByBackpropRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = BayesByBackpropRegressor(max_iter=500, random_state=0).fit(X, y)
    >>> model.predict_interval(X[:3]).shape
    (3, 2)
    """


@parameters
class BayesByBackpropClassifier(ClassificationModel, BackpropNetwork):
    """Bayesian neural network classification by Bayes by Backprop.

    The model is that of :class:`SGLDMLPClassifier`.

    See Also
    --------
    SGLDMLPClassifier : Samples the posterior itself.
    skbayes_sgld.variational.BayesByBackprop : The same on any posterior.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from skbayes_sgld import BayesByBackpropClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = BayesByBackpropClassifier(max_iter=500, random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.9)
    True
    """

"""Neural networks: Bayesian multilayer perceptrons as scikit-learn estimators."""

from __future__ import annotations

from skbayes_sgld._components import parameters
from skbayes_sgld.estimators.docs import shared_docs
from skbayes_sgld.estimators.network import (
    BackpropNetwork,
    NetworkClassifier,
    NetworkRegressor,
    SGLDNetwork,
)

__all__ = [
    "BayesByBackpropClassifier",
    "BayesByBackpropRegressor",
    "SGLDMLPClassifier",
    "SGLDMLPRegressor",
]


@shared_docs
@parameters
class SGLDMLPRegressor(NetworkRegressor, SGLDNetwork):
    """Bayesian neural network regression sampled by stochastic gradient Langevin dynamics.

    The model is y ~ N(f(x), sigma^2) with f a multilayer perceptron on standardised columns
    (Neal 1996, Section 1.2).

    {how_sampled}

    Parameters
    ----------
    hidden_layer_sizes : int or sequence of int, default=(50,)
        Units of the hidden layers; ``()`` is the linear model.
    {network}
    {noise}
    {network_sampling}

    Attributes
    ----------
    {fitted_network}
    {fitted_network_sampling}

    See Also
    --------
    BayesByBackpropRegressor : A normal approximation of the same posterior.
    SGLDLinearRegression : The linear model.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayes_sgld import SGLDMLPRegressor
    >>> X = np.r_[np.linspace(-2, -1, 20), np.linspace(1, 2, 20)][:, None]
    >>> y = np.sin(2 * X[:, 0]) + 0.1 * np.random.default_rng(0).standard_normal(40)
    >>> model = SGLDMLPRegressor(noise_variance=0.01, random_state=0).fit(X, y)
    >>> at_the_data, in_the_gap = model.predict([[1.5], [0.0]], return_std=True)[1]
    >>> bool(in_the_gap > 2 * at_the_data)
    True
    """


@shared_docs
@parameters
class SGLDMLPClassifier(NetworkClassifier, SGLDNetwork):
    """Bayesian neural network classification by stochastic gradient Langevin dynamics.

    The log odds are the outputs of a multilayer perceptron on standardised columns: one of them
    for two classes, one a class and softmax probabilities for more.

    {how_sampled}

    Parameters
    ----------
    hidden_layer_sizes : int or sequence of int, default=(50,)
        Units of the hidden layers; ``()`` is the linear model.
    {network}
    {class_weight}
    {network_sampling}

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    {fitted_network}
    {fitted_network_sampling}

    See Also
    --------
    BayesByBackpropClassifier : A normal approximation of the same posterior.
    SGLDLogisticRegression : The linear model.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from skbayes_sgld import SGLDMLPClassifier
    >>> X, y = make_moons(100, noise=0.2, random_state=0)
    >>> model = SGLDMLPClassifier(hidden_layer_sizes=(20,), random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.9)
    True
    >>> model.predict_proba_interval(X[:1]).shape
    (1, 2, 2)
    """


@shared_docs
@parameters
class BayesByBackpropRegressor(NetworkRegressor, BackpropNetwork):
    """Bayesian neural network regression by Bayes by Backprop.

    The model is that of :class:`SGLDMLPRegressor`.

    {how_approximated}

    Parameters
    ----------
    hidden_layer_sizes : int or sequence of int, default=(20,)
        Units of the hidden layers; ``()`` is the linear model.
    {network}
    {noise}
    {network_variational}

    Attributes
    ----------
    {fitted_network}
    {fitted_network_variational}

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


@shared_docs
@parameters
class BayesByBackpropClassifier(NetworkClassifier, BackpropNetwork):
    """Bayesian neural network classification by Bayes by Backprop.

    The model is that of :class:`SGLDMLPClassifier`.

    {how_approximated}

    Parameters
    ----------
    hidden_layer_sizes : int or sequence of int, default=(20,)
        Units of the hidden layers; ``()`` is the linear model.
    {network}
    {class_weight}
    {network_variational}

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    {fitted_network}
    {fitted_network_variational}

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

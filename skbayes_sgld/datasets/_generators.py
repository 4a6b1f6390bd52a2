"""Generators of data whose true parameters are known."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit
from sklearn.datasets import make_blobs
from sklearn.utils import Bunch

from .._checks import LARGEST, check_array_or_number, check_number
from .._numpy_errors import numpy_defaults
from .._random import RandomSource, as_random_state

_Regression = tuple[NDArray[np.float64], NDArray[np.float64]]
_Classification = tuple[NDArray[np.float64], NDArray[np.int64]]


@numpy_defaults
def make_correlated_pair(
    n_samples: int = 10_000, *, rho: float = 0.9, random_state: RandomSource = None
) -> _Regression:
    r"""The lecture's linear example: regression of one of two correlated normals on the other.

    .. math:: (x_i, y_i) \sim N\left(0, \begin{pmatrix} 1 & \rho \\ \rho & 1 \end{pmatrix}\right)
        \quad\Longleftrightarrow\quad
        x_i \sim N(0, 1), \; y_i \mid x_i \sim N(\rho x_i, \, 1 - \rho^2)

    The true intercept is 0, the true slope is ``rho`` and the true noise variance is
    ``1 - rho**2`` (0.19 by default).

    Parameters
    ----------
    n_samples : int, default=10_000
        Number of rows; the default is the lecture's.
    rho : float in (-1, 1), default=0.9
        Correlation of the pair; the default is the lecture's.
    random_state : int, RandomState, Generator or None, default=None
        Seed; an int gives the same data at every call.

    Returns
    -------
    X : ndarray of shape (n_samples, 1)
    y : ndarray of shape (n_samples,)

    Raises
    ------
    TypeError, ValueError
        If ``n_samples`` or ``rho`` is not a number, or out of range.

    References
    ----------
    G. Karagiannis, Handout 6, "Bayesian Learning via Stochastic gradient and Stochastic gradient
    Langevin dynamics", Section 4.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayes_sgld.datasets import make_correlated_pair
    >>> X, y = make_correlated_pair(random_state=0)
    >>> bool(abs(np.corrcoef(X[:, 0], y)[0, 1] - 0.9) < 0.01)
    True
    """
    check_number(n_samples, "n_samples", low=1, closed="left", integer=True)
    check_number(rho, "rho", low=-1, high=1)
    rng = as_random_state(random_state)
    x, z = rng.standard_normal((2, n_samples))
    return x[:, np.newaxis], rho * x + np.sqrt(1 - rho**2) * z


@numpy_defaults
def make_cubic(
    n_samples: int = 250, *, noise: float = 1.0, random_state: RandomSource = None
) -> _Regression:
    r"""Points of a cubic on [-5, 5], with the powers of x as the columns.

    .. math:: y_i = 0.3\,x_i + x_i^2 + 0.02\,x_i^3 + \text{noise} \cdot z_i,
        \quad x_i \sim U(-5, 5), \; z_i \sim N(0, 1)

    A linear model without an intercept recovers the coefficients ``[0.3, 1, 0.02]``.

    Parameters
    ----------
    n_samples : int, default=250
        Number of rows; the default is the report's.
    noise : float >= 0, default=1.0
        Standard deviation of the noise, in units of y. The report fixes the likelihood's variance
        at 1 but computes y without noise, ``noise=0.0``, so that its posterior is wider than the
        data warrant. With the default the report's model is the true one.
    random_state : int, RandomState, Generator or None, default=None
        Seed; an int gives the same data at every call.

    Returns
    -------
    X : ndarray of shape (n_samples, 3)
        The columns are x, x^2 and x^3.
    y : ndarray of shape (n_samples,)

    Raises
    ------
    TypeError, ValueError
        If ``n_samples`` or ``noise`` is not a number, or out of range.

    References
    ----------
    Z. Xu, "Stochastic Gradient Langevin Dynamics for Bayesian Learning", Section 3.1.

    Examples
    --------
    >>> from skbayes_sgld.datasets import make_cubic
    >>> X, y = make_cubic(noise=0.0, random_state=0)
    >>> bool(abs(y - X @ [0.3, 1.0, 0.02]).max() < 1e-12)
    True
    """
    check_number(n_samples, "n_samples", low=1, closed="left", integer=True)
    check_number(noise, "noise", low=0, closed="left")
    rng = as_random_state(random_state)
    X = rng.uniform(-5, 5, n_samples)[:, np.newaxis] ** np.array([1, 2, 3])
    return X, X @ [0.3, 1.0, 0.02] + noise * rng.standard_normal(n_samples)


@numpy_defaults
def make_two_clusters(
    n_samples: int = 1500, *, std: float = 1.3, random_state: RandomSource = None
) -> _Classification:
    r"""Two round clusters, around (-2, 2) (class 0) and (2, -2) (class 1).

    .. math:: x_i \mid y_i = k \sim N(\mu_k, \text{std}^2 I), \quad
        \mu_0 = (-2, 2), \; \mu_1 = (2, -2)

    With equal sizes a logistic regression is exactly the right model: its true coefficients are
    ``[4, -4] / std**2`` and its true intercept is 0.

    Parameters
    ----------
    n_samples : int, default=1500
        Number of rows, half of them in each cluster; class 0 gets the odd one.
    std : float > 0, default=1.3
        Standard deviation of a cluster in each direction; the default is the report's.
    random_state : int, RandomState, Generator or None, default=None
        Seed; an int gives the same data at every call.

    Returns
    -------
    X : ndarray of shape (n_samples, 2)
    y : ndarray of shape (n_samples,)
        0 or 1.

    Raises
    ------
    TypeError, ValueError
        If ``n_samples`` or ``std`` is not a number, or out of range.

    References
    ----------
    Z. Xu, "Stochastic Gradient Langevin Dynamics for Bayesian Learning", Section 3.2.

    Examples
    --------
    >>> from skbayes_sgld.datasets import make_two_clusters
    >>> X, y = make_two_clusters(random_state=0)
    >>> X[y == 1].mean(axis=0).round().tolist()
    [2.0, -2.0]
    """
    check_number(n_samples, "n_samples", low=1, closed="left", integer=True)
    check_number(std, "std", low=0)
    centers = [[-2.0, 2.0], [2.0, -2.0]]
    rng = as_random_state(random_state)
    return make_blobs(n_samples, centers=centers, cluster_std=std, random_state=rng)


@numpy_defaults
def make_logistic(
    n_samples: int = 12_500,
    *,
    coef: ArrayLike = (2.0, -3.4),
    intercept: float = 4.2,
    random_state: RandomSource = None,
) -> _Classification:
    r"""Data of a logistic regression with standard normal features.

    .. math:: x_i \sim N(0, I), \quad y_i \mid x_i \sim
        \text{Bernoulli}\left(\frac{1}{1 + \exp(-b - x_i^\top w)}\right)

    Parameters
    ----------
    n_samples : int, default=12_500
        Number of rows; the default is the report's.
    coef : float or array-like of shape (n_features,), default=(2.0, -3.4)
        The true coefficients w, which also set the number of features. The defaults of ``coef``
        and ``intercept`` are those of the report's code; its text says w = (2, -3.5), b = 4.
    intercept : float, default=4.2
        The true intercept b. X has no column of ones: the estimators fit an intercept.
    random_state : int, RandomState, Generator or None, default=None
        Seed; an int gives the same data at every call.

    Returns
    -------
    X : ndarray of shape (n_samples, n_features)
    y : ndarray of shape (n_samples,)
        0 or 1; with the defaults 83 % are 1.

    Raises
    ------
    TypeError, ValueError
        If an argument is not numeric, not finite or out of range.

    References
    ----------
    S. Chen, "Dive into Bayesian Learning via Stochastic Gradient Langevin Dynamics", Section 3.2.

    Examples
    --------
    >>> from skbayes_sgld.datasets import make_logistic
    >>> X, y = make_logistic(random_state=0)
    >>> X.shape, sorted(set(y.tolist()))
    ((12500, 2), [0, 1])
    """
    check_number(n_samples, "n_samples", low=1, closed="left", integer=True)
    check_array_or_number(coef, "coef", None)
    check_number(intercept, "intercept", low=-LARGEST, high=LARGEST)
    if np.size(coef) == 0 or np.abs(np.asarray(coef, float)).max() > LARGEST:
        raise ValueError(
            f"coef={coef!r} is not accepted; give one number or more, of sizes up to {LARGEST:g}."
        )
    rng = as_random_state(random_state)
    coef = np.atleast_1d(np.asarray(coef, float))
    X = rng.standard_normal((n_samples, coef.size))
    return X, rng.binomial(1, expit(intercept + X @ coef))


@numpy_defaults
def make_tied_means_mixture(
    n_samples: int = 1000,
    *,
    theta1: float = 0.0,
    theta2: float = 1.0,
    variance: float = 2.0,
    random_state: RandomSource = None,
) -> _Classification:
    r"""Data of a mixture of two normal distributions whose means share a parameter.

    .. math:: x_i \sim \tfrac12 N(\theta_1, \sigma_x^2)
        + \tfrac12 N(\theta_1 + \theta_2, \sigma_x^2)

    The pairs (theta1, theta2) and (theta1 + theta2, -theta2) have the same likelihood: with the
    defaults the posterior has two modes, near (0, 1) and (1, -1), along a narrow ridge.

    Parameters
    ----------
    n_samples : int, default=1000
        Number of points; the default is that of Chen's code, and Welling and Teh draw 100.
    theta1, theta2 : float, default=0.0 and 1.0
        True parameters; the defaults are those of both sources.
    variance : float > 0, default=2.0
        Variance (not standard deviation) of a component; the default is that of both sources.
    random_state : int, RandomState, Generator or None, default=None
        Seed; an int gives the same data at every call.

    Returns
    -------
    X : ndarray of shape (n_samples, 1)
    y : ndarray of shape (n_samples,)
        Component of each point: 1 for the mean theta1 + theta2, otherwise 0. It is not observed
        by the model.

    Raises
    ------
    TypeError, ValueError
        If an argument is not a number, or out of range.

    References
    ----------
    M. Welling and Y. W. Teh, "Bayesian Learning via Stochastic Gradient Langevin Dynamics", ICML
    2011, Section 5.1. S. Chen, "Dive into Bayesian Learning via Stochastic Gradient Langevin
    Dynamics", Section 3.1.

    Examples
    --------
    >>> from skbayes_sgld.datasets import make_tied_means_mixture
    >>> X, component = make_tied_means_mixture(random_state=0)
    >>> X.shape, sorted(set(component.tolist()))
    ((1000, 1), [0, 1])
    """
    check_number(n_samples, "n_samples", low=1, closed="left", integer=True)
    check_number(theta1, "theta1")
    check_number(theta2, "theta2")
    check_number(variance, "variance", low=0)
    rng = as_random_state(random_state)
    component = rng.binomial(1, 0.5, n_samples)
    x = rng.normal(theta1 + theta2 * component.astype(float), variance**0.5)
    return x[:, np.newaxis], component


@numpy_defaults
def make_stochastic_volatility(
    n_samples: int = 2905,
    *,
    sigma: float = 0.1,
    nu: float = 10.0,
    initial_volatility: float = 0.01,
    random_state: RandomSource = None,
) -> Bunch:
    r"""Returns with a Student t distribution whose log scale is a Gaussian random walk.

    .. math:: y_t \sim t_\nu(0, e^{h_t}), \quad h_t \sim N(h_{t-1}, \sigma^2)

    Parameters
    ----------
    n_samples : int, default=2905
        Number of days; the default is that of the post.
    sigma : float > 0, default=0.1
        Standard deviation of the walk's steps. The defaults of sigma and nu are near the posterior
        modes that the post finds for the daily returns of the S&P 500.
    nu : float > 0, default=10.0
        Degrees of freedom.
    initial_volatility : float > 0, default=0.01
        Scale of the first return; the default is 1 % a day.
    random_state : int, RandomState, Generator or None, default=None
        Seed; an int gives the same data at every call.

    Returns
    -------
    bunch : :class:`~sklearn.utils.Bunch`
        ``returns (n_samples,)``; ``volatility (n_samples,)``, the true scale ``exp(h_t)`` of each;
        ``sigma`` and ``nu``, the true parameters as given.

    Raises
    ------
    TypeError, ValueError
        If an argument is not a number, or out of range.

    References
    ----------
    B. Keng, "Bayesian Learning via Stochastic Gradient Langevin Dynamics and Bayes by Backprop",
    Section 5.2.

    Examples
    --------
    >>> from skbayes_sgld.datasets import make_stochastic_volatility
    >>> data = make_stochastic_volatility(random_state=0)
    >>> data.returns.shape, float(data.volatility[0])
    ((2905,), 0.01)
    """
    check_number(n_samples, "n_samples", low=2, closed="left", integer=True)
    check_number(sigma, "sigma", low=0)
    check_number(nu, "nu", low=0)
    check_number(initial_volatility, "initial_volatility", low=0)
    rng = as_random_state(random_state)
    steps = sigma * rng.standard_normal(n_samples - 1)
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        volatility = initial_volatility * np.exp(np.concatenate([[0.0], np.cumsum(steps)]))
        returns = volatility * rng.standard_t(nu, n_samples)
    if not np.isfinite(returns).all():
        raise ValueError(
            f"sigma={sigma!r} and nu={nu!r} give returns beyond the range of floating point "
            "numbers; give a smaller sigma or a larger nu."
        )
    return Bunch(returns=returns, volatility=volatility, sigma=sigma, nu=nu)

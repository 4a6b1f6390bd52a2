"""Data of the mixture with tied means, for a posterior of your own rather than an estimator."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .._components import RandomSource, as_random_state, check_number


def make_tied_means_mixture(
    n_samples: int = 1000,
    *,
    theta1: float = 0.0,
    theta2: float = 1.0,
    variance: float = 2.0,
    random_state: RandomSource = None,
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
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
    x = rng.normal(theta1 + theta2 * component, np.sqrt(variance))
    return x[:, np.newaxis], component

"""Returns of changing volatility: data for the stochastic volatility model."""

from __future__ import annotations

import numpy as np
from sklearn.utils import Bunch

from .._components import RandomSource, as_random_state, check_number


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

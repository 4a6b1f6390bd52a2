"""Stochastic volatility: heavy-tailed returns whose log scale is a random walk."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.fft import dct, idct
from scipy.special import digamma, gammaln, polygamma

from skbayes_sgld._checks import check_number
from skbayes_sgld._typing import Array
from skbayes_sgld.own_models.boundary import CustomPosterior

_INFORMATION = 20 / 13  # Fisher information of a return on its log scale at nu = 10


class _Walk:
    """The model in terms of x = (sigma, nu, h), with h the log volatility."""

    cheap_full_gradient = True  # rows depend on each other: a batch costs as much as all

    def __init__(
        self, returns: Array, sigma_rate: float, nu_rate: float, initial_scale: float | None
    ) -> None:
        self.n_samples = len(returns)
        self.n_params = 2 + len(returns)
        self.param_names = ["sigma", "nu"] + [f"log_volatility[{t}]" for t in range(len(returns))]
        self._square = np.square(returns)
        self._sigma_rate, self._nu_rate = sigma_rate, nu_rate
        self._initial_scale = initial_scale

    # ---- likelihood: y_t ~ StudentT(nu, 0, exp(h_t)) ------------------------------------------

    def _ratio(self, x: Array, idx: Array | None) -> tuple[Array, Array, Array]:
        """``nu (C, 1)``, and ``h`` and ``y^2 / (nu scale^2)`` of the rows ``(C, B)``."""
        nu, h, square = x[:, 1:2], x[:, 2:], self._square
        if idx is not None:
            h, square = np.take_along_axis(h, idx, axis=1), square[idx]
        return nu, h, square * np.exp(-2.0 * h) / nu

    def log_likelihood(self, x: Array, idx: Array | None = None) -> Array:
        nu, h, ratio = self._ratio(x, idx)
        constant = gammaln(0.5 * (nu + 1.0)) - gammaln(0.5 * nu) - 0.5 * np.log(np.pi * nu)
        return constant - h - 0.5 * (nu + 1.0) * np.log1p(ratio)

    def grad_log_likelihood(self, x: Array, idx: Array | None = None) -> Array:
        nu, _, ratio = self._ratio(x, idx)
        pull = (nu + 1.0) * (1.0 - 1.0 / (1.0 + ratio))
        constant = digamma(0.5 * (nu + 1.0)) - digamma(0.5 * nu) - 1.0 / nu
        grad = np.zeros_like(x)
        grad[:, 1] = 0.5 * (constant - np.log1p(ratio) + pull / nu).sum(axis=1)
        if idx is None:
            grad[:, 2:] = pull - 1.0
        else:
            np.add.at(grad, (np.arange(len(x))[:, None], 2 + idx), pull - 1.0)
        return grad

    # ---- prior: exponential sigma and nu, normal steps ----------------------------------------

    def _steps(self, x: Array) -> tuple[Array, Array]:
        """Steps divided by their sd, and the sd, both ``(C, T)``; the first step is from 0."""
        steps = np.diff(x[:, 2:], axis=1, prepend=0.0)
        sd = np.repeat(x[:, :1], steps.shape[1], axis=1)
        if self._initial_scale is not None:
            sd[:, 0] = self._initial_scale
        return steps / sd, sd

    def log_prior(self, x: Array) -> Array:
        z, sd = self._steps(x)
        value = -(0.5 * np.square(z) + np.log(sd) + 0.5 * np.log(2.0 * np.pi)).sum(axis=1)
        value += np.log(self._sigma_rate * self._nu_rate)
        return value - self._sigma_rate * x[:, 0] - self._nu_rate * x[:, 1]

    def grad_log_prior(self, x: Array) -> Array:
        z, sd = self._steps(x)
        grad = np.empty_like(x)
        by_sd = (np.square(z) - 1.0) / sd
        first = 0 if self._initial_scale is None else 1
        grad[:, 0] = by_sd[:, first:].sum(axis=1) - self._sigma_rate
        grad[:, 1] = -self._nu_rate
        grad[:, 2:] = np.diff(z / sd, axis=1, append=0.0)
        return grad


class _Frequencies:
    """Coordinates (log sigma, log nu, w) of (sigma, nu, h) in which the posterior is nearly round.

    The steps of the walk, and returns with Fisher information k on h, give h the conditional
    precision ``D'D / sigma^2 + k I``. The cosine transform diagonalises D'D, with eigenvalues
    ``4 sin(pi j / 2T)^2``; w is the transform of h divided by the conditional sds.
    """

    def __init__(self, n_samples: int, level: float) -> None:
        names = [f"w[{j}]" for j in range(n_samples)]
        self.param_names = ["log_sigma", "log_nu", *names]
        self.eigenvalues = 4.0 * np.square(np.sin(0.5 * np.pi * np.arange(n_samples) / n_samples))
        self._level = level

    def _scales(self, theta: Array) -> tuple[Array, Array]:
        """Conditional sds of h's transform, and their log derivatives in log sigma."""
        prior = self.eigenvalues * np.exp(-2.0 * theta[:, :1])
        total = prior + _INFORMATION
        return 1.0 / np.sqrt(total), prior / total

    def forward(self, theta: Array) -> Array:
        scale, _ = self._scales(theta)
        x = np.empty_like(theta)
        x[:, :2] = np.exp(theta[:, :2])
        x[:, 2:] = self._level + idct(scale * theta[:, 2:], norm="ortho", axis=1)
        return x

    def inverse(self, values: Array) -> Array:
        theta = np.empty_like(values)
        theta[:, :2] = np.log(values[:, :2])
        scale, _ = self._scales(theta)
        theta[:, 2:] = dct(values[:, 2:] - self._level, norm="ortho", axis=1) / scale
        return theta

    def pull_back(self, grad: Array, theta: Array) -> Array:
        scale, growth = self._scales(theta)
        out = np.empty_like(theta)
        out[:, :2] = grad[:, :2] * np.exp(theta[:, :2])
        out[:, 2:] = scale * dct(grad[:, 2:], norm="ortho", axis=1)
        out[:, 0] += (out[:, 2:] * growth * theta[:, 2:]).sum(axis=1)
        return out

    def log_jacobian(self, theta: Array) -> Array:
        scale, _ = self._scales(theta)
        return theta[:, :2].sum(axis=1) + np.log(scale).sum(axis=1)

    def grad_log_jacobian(self, theta: Array) -> Array:
        _, growth = self._scales(theta)
        grad = np.zeros_like(theta)
        grad[:, :2] = 1.0
        grad[:, 0] += growth.sum(axis=1)
        return grad


class StochasticVolatility(CustomPosterior):
    r"""Returns with a Student t distribution whose log scale is a Gaussian random walk.

    .. math:: y_t \sim t_\nu(0, e^{h_t}), \quad h_t \sim N(h_{t-1}, \sigma^2), \quad
        \sigma \sim \text{Exponential}(50), \; \nu \sim \text{Exponential}(0.1)

    The volatility :math:`e^{h_t}` is the **scale** of the t distribution. PyMC writes the same
    model with the precision ``lam = exp(-2 h)``; some versions use :math:`e^{-2h}` as a scale by
    mistake.

    There are as many latent steps as returns, and their distribution depends on sigma. In terms
    of h the density has no maximum: it grows as sigma and the steps go to 0. In terms of standard
    normal steps every return depends on all steps before it, and curvatures differ by a factor of
    order ``(sigma T)^2``. The chains move in :math:`(\log\sigma, \log\nu, w)` instead, where w is
    the cosine transform of h divided by its conditional sds given sigma: all curvatures of w are
    about 1. The distribution of (sigma, nu, h) is the same in all coordinates. A gradient costs
    O(T log T).

    Parameters
    ----------
    returns : array-like of shape (T,)
        Returns, in any unit; zeros are accepted.
    sigma_rate : float > 0, default=50.0
        Rate of the exponential prior of sigma (Hoffman & Gelman, PyMC 3, NumPyro; PyMC today: 10).
    nu_rate : float > 0, default=0.1
        Rate of the exponential prior of nu.
    initial_scale : float > 0 or None, default=100.0
        Standard deviation of h_1 around 0. At PyMC's 100 the data determine the level, so the unit
        of the returns does not matter. None takes sigma, as if h_0 = 0 (NumPyro), for returns
        whose scale begins near 1.

    Notes
    -----
    Given h the log likelihood is a sum over t, so the gradient of a minibatch is unbiased although
    the returns are not exchangeable. But a minibatch costs O(T log T), as all rows do.

    ``constrain`` gives sigma, nu and ``volatility[t]``, the scale at each t. Tempering acts on the
    density of (sigma, nu, h).

    Raises
    ------
    TypeError, ValueError
        When ``returns`` is not a vector of at least two finite numbers that are not all 0, or
        another argument is out of range.

    References
    ----------
    M. D. Hoffman and A. Gelman, "The No-U-Turn Sampler", JMLR 15, 2014, Section 4.1. PyMC's and
    NumPyro's example "Stochastic Volatility". B. Keng, "Bayesian Learning via Stochastic Gradient
    Langevin Dynamics and Bayes by Backprop", Section 5.2.

    Examples
    --------
    >>> from skbayes_sgld.datasets import make_stochastic_volatility
    >>> from skbayes_sgld.own_models import StochasticVolatility, check_gradient
    >>> data = make_stochastic_volatility(50, random_state=0)
    >>> posterior = StochasticVolatility(data.returns)
    >>> check_gradient(posterior)
    >>> posterior.n_params, posterior.constrained_names[:3]
    (52, ['sigma', 'nu', 'volatility[0]'])
    """

    def __init__(
        self,
        returns: ArrayLike,
        *,
        sigma_rate: float = 50.0,
        nu_rate: float = 0.1,
        initial_scale: float | None = 100.0,
    ) -> None:
        y = np.asarray(returns, dtype=float)
        if y.ndim != 1 or len(y) < 2 or not np.all(np.isfinite(y)) or not np.any(y):
            raise ValueError(
                f"returns of shape {y.shape} must be a vector of at least two finite numbers, "
                "not all 0."
            )
        check_number(sigma_rate, "sigma_rate", low=0)
        check_number(nu_rate, "nu_rate", low=0)
        if initial_scale is not None:
            check_number(initial_scale, "initial_scale", low=0)
        self._rates = (sigma_rate, nu_rate)
        level = 0.5 * float(np.log(np.mean(np.square(y))))
        self._frequencies = _Frequencies(len(y), level)
        super().__init__(
            _Walk(y, sigma_rate, nu_rate, initial_scale),
            transforms=self._frequencies,
            start=[1.0 / sigma_rate, 1.0 / nu_rate, *np.full(len(y), level)],
        )

    @property
    def constrained_names(self) -> list[str]:
        """Names of the reported parameters: sigma, nu and the volatilities."""
        return ["sigma", "nu"] + [f"volatility[{t}]" for t in range(self.n_samples)]

    def constrain(self, theta: Array) -> Array:
        """Sigma, nu and the volatilities ``(C, P)``."""
        values = super().constrain(theta)
        values[:, 2:] = np.exp(values[:, 2:])
        return values

    def unconstrain(self, values: Array) -> Array:
        """Theta ``(C, P)`` from sigma, nu and the volatilities, all positive."""
        if not np.all(values > 0):
            raise ValueError("sigma, nu and volatility must be positive.")
        x = np.array(values, dtype=float)
        x[:, 2:] = np.log(x[:, 2:])
        return super().unconstrain(x)

    def curvature_diagonal(self, theta: Array) -> Array:
        """Diagonal ``(P,)`` of the expected curvature at one ``theta (P,)``.

        Its inverse serves as a preconditioner. A return has the Fisher information
        ``f = 2 nu / (nu + 3)`` on its log scale. The walk is treated as stationary, so that its
        transform has independent entries (Whittle's approximation).
        """
        sigma, nu = np.exp(theta[:2])
        T = self.n_samples
        sigma_rate, nu_rate = self._rates
        f = 2.0 * nu / (nu + 3.0)
        prior = self._frequencies.eigenvalues / sigma**2
        total = prior + _INFORMATION
        in_sigma = (_INFORMATION * (total + _INFORMATION) / np.square(total))[1:].sum()
        in_nu = polygamma(1, 0.5 * nu) - polygamma(1, 0.5 * (nu + 1.0))
        in_nu = 0.25 * (in_nu - 2.0 * (nu + 5.0) / (nu * (nu + 1.0) * (nu + 3.0)))
        hyper = [in_sigma + sigma_rate * sigma, T * nu**2 * in_nu + nu_rate * nu]
        return np.concatenate([hyper, (prior + f) / total])

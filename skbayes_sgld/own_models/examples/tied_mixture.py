"""The mixture with tied means: a posterior with two modes that a grid computes to any accuracy."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit
from sklearn.utils import Bunch

from skbayes_sgld._checks import check_number
from skbayes_sgld._typing import Array
from skbayes_sgld.own_models.boundary import CustomPosterior


class _TiedMeans:
    n_params = 2
    param_names = ["theta1", "theta2"]
    multimodal = True

    def __init__(self, x: Array, variance: float, prior_variances: Array) -> None:
        self.n_samples = len(x)
        self.x, self.variance, self.prior_variances = x, variance, prior_variances

    def _residuals(self, theta: Array, idx: Array | None) -> tuple[Array, Array]:
        x = self.x if idx is None else self.x[idx]
        first = x - theta[:, :1]
        return first, first - theta[:, 1:]

    def log_likelihood(self, theta: Array, idx: Array | None = None) -> Array:
        first, second = self._residuals(theta, idx)
        exponents = (np.square(r) / (-2.0 * self.variance) for r in (first, second))
        return np.logaddexp(*exponents) - 0.5 * np.log(8.0 * np.pi * self.variance)

    def grad_log_likelihood(self, theta: Array, idx: Array | None = None) -> Array:
        first, second = self._residuals(theta, idx)
        # the second component's share of each point
        share = expit((np.square(first) - np.square(second)) / (2.0 * self.variance))
        in_first, in_second = (1.0 - share) * first, share * second
        total = np.stack([(in_first + in_second).sum(axis=1), in_second.sum(axis=1)], axis=1)
        return total / self.variance

    def log_prior(self, theta: Array) -> Array:
        square = (np.square(theta) / self.prior_variances).sum(axis=1)
        return -0.5 * (square + np.log(2.0 * np.pi * self.prior_variances).sum())

    def grad_log_prior(self, theta: Array) -> Array:
        return -theta / self.prior_variances


class TiedGaussianMixture(CustomPosterior):
    r"""Two normal components whose means share a parameter.

    .. math:: x_i \sim \tfrac12 N(\theta_1, \sigma_x^2)
        + \tfrac12 N(\theta_1 + \theta_2, \sigma_x^2), \quad
        \theta_1 \sim N(0, \sigma_1^2), \; \theta_2 \sim N(0, \sigma_2^2)

    Exchanging the components replaces (theta1, theta2) by (theta1 + theta2, -theta2). This map
    leaves the likelihood unchanged and preserves areas, so each mode has an image: (1, -1) is that
    of (0, 1). The two are on opposite sides of the line theta2 = 0, whose points the map does not
    move. The prior is not symmetric: the posterior density is ``exp((2 theta1 + theta2) theta2 / (2
    sigma_1^2))`` times that of the image, 1.05 at (0, 1).

    Parameters
    ----------
    X : array-like of shape (n_samples,) or (n_samples, 1)
        Points, as from :func:`~skbayes_sgld.datasets.make_tied_means_mixture`.
    variance : float > 0, default=2.0
        Variance sigma_x^2 of a component.
    prior_variances : pair of float > 0, default=(10.0, 1.0)
        Prior variances sigma_1^2 and sigma_2^2. All three defaults are the paper's.

    Raises
    ------
    TypeError, ValueError
        When X is not one column of finite numbers, or a variance is not positive.

    References
    ----------
    M. Welling and Y. W. Teh, "Bayesian Learning via Stochastic Gradient Langevin Dynamics", ICML
    2011, Section 5.1. S. Chen, "Dive into Bayesian Learning via Stochastic Gradient Langevin
    Dynamics", Section 3.1, prints 1 / (4 sqrt(pi)) only before the first exponential; it is the
    factor of both.

    Examples
    --------
    >>> from skbayes_sgld.datasets import make_tied_means_mixture
    >>> from skbayes_sgld.own_models import TiedGaussianMixture
    >>> X, _ = make_tied_means_mixture(100, random_state=0)
    >>> posterior = TiedGaussianMixture(X)
    >>> grid = posterior.grid_density()
    >>> grid.mass.round(2).tolist()  # where theta2 > 0, and where theta2 < 0
    [0.51, 0.49]
    """

    def __init__(
        self,
        X: ArrayLike,
        *,
        variance: float = 2.0,
        prior_variances: tuple[float, float] = (10.0, 1.0),
    ) -> None:
        x = np.asarray(X, dtype=float)
        if x.ndim == 2 and x.shape[1] == 1:
            x = x[:, 0]
        if x.ndim != 1 or not len(x) or not np.all(np.isfinite(x)):
            raise ValueError(
                f"X of shape {x.shape} must be finite, of shape (n_samples,) or (n_samples, 1)."
            )
        check_number(variance, "variance", low=0)
        if np.shape(prior_variances) != (2,):
            raise ValueError(f"prior_variances={prior_variances!r} must be two numbers.")
        for j, value in enumerate(prior_variances):
            check_number(value, f"prior_variances[{j}]", low=0)
        # at (mean, 0) the gradient nearly vanishes, but there is no mode: start a prior sd away
        apart = np.sqrt(prior_variances[1])
        model = _TiedMeans(x, variance, np.array(prior_variances, dtype=float))
        super().__init__(model, start=[x.mean() - 0.5 * apart, apart])

    def grid_density(
        self,
        theta1: tuple[float, float] = (-4.0, 5.0),
        theta2: tuple[float, float] = (-5.0, 5.0),
        n_points: int = 201,
    ) -> Bunch:
        """Posterior density on a grid, for comparison with draws.

        Sums over the grid equal integrals to a relative error of 0.001: for a smooth density that
        vanishes towards the edges they converge faster than any power of the spacing. The error
        of the mass of a half plane, whose edge cuts the density, is of the order of the squared
        spacing if 0 is a point of the axis, as by default, and of the spacing otherwise.

        Parameters
        ----------
        theta1, theta2 : pair of float
            Ends of the two axes. The defaults enclose the posterior of 100 points or more from the
            paper's model.
        n_points : int, default=201
            Number of points along each axis; each point of the grid costs one log density.

        Returns
        -------
        grid : :class:`~sklearn.utils.Bunch`
            ``theta1`` and ``theta2 (n_points,)``, the axes; ``density (n_points, n_points)``, the
            normalised density at each theta1 (rows) and theta2 (columns), tempered if
            :attr:`temperature` is not 1; ``log_evidence``, the log of the integral before
            normalisation, which at temperature 1 is the log marginal likelihood; ``mass (2,)``,
            the probabilities of theta2 > 0 and of theta2 < 0.

        Raises
        ------
        TypeError, ValueError
            When the ends are not two numbers in increasing order, the density reaches beyond them,
            or the grid is too coarse.
        """
        check_number(n_points, "n_points", low=5, closed="left", integer=True)
        axes = []
        for name, ends in (("theta1", theta1), ("theta2", theta2)):
            if np.shape(ends) != (2,) or not ends[0] < ends[1]:
                raise ValueError(f"{name}={ends!r} must be two numbers in order.")
            axes.append(np.linspace(*ends, n_points))
        points = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 2)
        n_blocks = 1 + len(points) * self.n_samples // 2**21
        blocks = [self.log_density(p) for p in np.array_split(points, n_blocks)]
        value = np.concatenate(blocks).reshape(n_points, n_points) / self.temperature
        peak = value.max()
        density = np.exp(value - peak)
        edges = (density[0], density[-1], density[:, 0], density[:, -1])
        if max(edge.max() for edge in edges) > 1e-4:
            raise ValueError(
                f"the density goes on beyond theta1={theta1!r}, theta2={theta2!r}; widen them."
            )
        total = density.sum()
        if abs(4.0 * density[::2, ::2].sum() / total - 1.0) > 1e-3:
            raise ValueError(f"n_points={n_points!r} is too coarse; give more, or closer ends.")
        area = (axes[0][1] - axes[0][0]) * (axes[1][1] - axes[1][0])
        density /= total * area
        by_theta2 = density.sum(axis=0) * area
        on_the_line = 0.5 * by_theta2[axes[1] == 0].sum()
        mass = np.array([by_theta2[axes[1] > 0].sum(), by_theta2[axes[1] < 0].sum()])
        return Bunch(
            theta1=axes[0],
            theta2=axes[1],
            density=density,
            log_evidence=float(peak + np.log(total * area)),
            mass=mass + on_the_line,
        )

"""Models of one coefficient, whose posteriors without a row are sums over a grid."""

import numpy as np
from scipy import stats
from scipy.special import logsumexp

from skbayes_sgld import SGLDLinearRegression, SGLDLogisticRegression, SGLDPoissonRegressor
from skbayes_sgld.priors import Normal

N, SCALE, GRID = 40, 1.5, np.linspace(-6.0, 6.0, 8001)
RNG = np.random.default_rng(3)
X = RNG.uniform(-1.5, 1.5, (N, 1))
PLAIN = {"prior": Normal(scale=SCALE), "fit_intercept": False, "random_state": 0}
FAMILIES = {
    "normal": (
        SGLDLinearRegression(noise_variance=0.5, **PLAIN),
        0.8 * X[:, 0] + np.sqrt(0.5) * RNG.standard_normal(N),
        lambda eta: stats.norm(eta, np.sqrt(0.5)),
    ),
    "counts": (
        SGLDPoissonRegressor(**PLAIN),
        RNG.poisson(np.exp(0.6 * X[:, 0])),
        lambda eta: stats.poisson(np.exp(eta)),
    ),
    "labels": (
        SGLDLogisticRegression(**PLAIN),
        (RNG.random(N) < stats.logistic.cdf(1.2 * X[:, 0])).astype(int),
        lambda eta: stats.bernoulli(stats.logistic.cdf(eta)),
    ),
}


def density(law, y):
    """Densities or probabilities ``(n, G)`` of each observation on the grid, as logs."""
    return (law.logpdf if hasattr(law.dist, "pdf") else law.logpmf)(y[:, None])


def average_without(each):
    """Function that averages over the posterior without each row, given log densities ``(n, G)``.

    Its averages ``(n,)`` are of values ``(n, G)``.
    """
    others = each.sum(axis=0) - each + stats.norm.logpdf(GRID, 0, SCALE)
    weight = np.exp(others - logsumexp(others, axis=1, keepdims=True))
    return lambda values: np.sum(weight * values, axis=1)

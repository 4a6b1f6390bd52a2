"""Log densities of the registered likelihoods by scipy, and local parameters over a wide range."""

import numpy as np
from scipy import special, stats


def _categorical(u, y):
    shares = special.softmax(u, axis=1)
    return np.log(np.take_along_axis(shares, y.astype(int)[:, None], axis=1)[:, 0])


def _beta_binomial(u, y):
    p, r = special.expit(u[:, 0]), np.exp(-u[:, 1])
    return stats.betabinom.logpmf(y, 1, p * r, (1.0 - p) * r)


def _negative_binomial(u, y):
    r, odds = np.exp(-u[:, 1]), u[:, 0] + u[:, 1]  # scipy's has no digits of small odds
    ways = special.gammaln(y + r) - special.gammaln(r) - special.gammaln(y + 1.0)
    return ways + y * odds - (y + r) * np.logaddexp(0.0, odds)


def _ordinal(u, y):
    cut_points = np.cumsum(np.concatenate([np.zeros_like(u[:, :1]), np.exp(u[:, 1:])], 1), axis=1)
    ends = np.pad(cut_points, ((0, 0), (1, 1), (0, 0)), constant_values=np.inf) - u[:, :1]
    ends[:, 0] = -np.inf
    code = y.astype(int)[:, None]
    low, high = (np.take_along_axis(ends, code + k, axis=1)[:, 0] for k in (0, 1))
    upper = low + np.minimum(high, 1e9) > 0  # by the smaller tails, whose digits are not lost
    near, far = np.where(upper, (low, high), (-high, -low))
    larger, smaller = stats.logistic.logsf(near), stats.logistic.logsf(far)
    return larger + np.log(-np.expm1(smaller - larger))


# log densities (C, B) of y (C, B) at u (C, n_local, B), of scipy's distributions
KNOWN = {
    "normal": lambda u, y: stats.norm.logpdf(y, u[:, 0], np.exp(0.5 * u[:, 1])),
    "unequal_normal": lambda u, y: stats.norm.logpdf(y, u[:, 0], np.exp(0.5 * u[:, 1])),
    "fixed_normal": lambda u, y: stats.norm.logpdf(y, u[:, 0], 1.0),
    "bernoulli": lambda u, y: stats.bernoulli.logpmf(y, special.expit(u[:, 0])),
    "beta_binomial": _beta_binomial,
    "binomial": lambda u, y: stats.binom.logpmf(y, 1, special.expit(u[:, 0])),
    "categorical": _categorical,
    "gamma": lambda u, y: stats.gamma.logpdf(y, np.exp(-u[:, 1]), scale=np.exp(u[:, 0] + u[:, 1])),
    "negative_binomial": _negative_binomial,
    "ordinal": _ordinal,
    "student_t": lambda u, y: stats.t.logpdf(y, np.exp(u[:, 2]), u[:, 0], np.exp(0.5 * u[:, 1])),
    "poisson": lambda u, y: stats.poisson.logpmf(y, np.exp(u[:, 0])),
}


def reference(name, likelihood):
    """Log density by scipy; of a new member its own, whose mass and moments are checked too."""
    return KNOWN.get(name, likelihood.log_density)


def wide(likelihood, reach, seed=6):
    """Local parameters ``(1, n_local, B)`` over a wide range, and observations beside them."""
    rng = np.random.default_rng(seed)
    u = rng.uniform(-reach, reach, (1, likelihood.n_local, 4000))
    some = 0.3 * u + rng.standard_normal(u.shape)
    if likelihood.whole:
        some = np.minimum(some, 4.0)
    return u, likelihood.sample(some, np.random.RandomState(seed))[0].astype(float)

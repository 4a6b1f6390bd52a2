"""The centre by restricted likelihood is the mode with the coefficients integrated out."""

import numpy as np
import pytest
from scipy import optimize

from skbayes_sgld.likelihoods import UnequalNormalNoise
from skbayes_sgld.posterior import LogLinearNoise
from skbayes_sgld.posterior.noise_models import restricted_normal
from skbayes_sgld.priors import ConjugateNormal, InverseGamma, Normal

SHAPE, RATE, SCALE, SLOPE = 2.0, 1.5, 0.8, 0.6  # of the priors


def table(n, d, weighted):
    rng = np.random.default_rng(n + d)
    X = rng.standard_normal((n, d)) + 0.5
    sd = np.exp(0.5 * X[:, 0] - 0.2)
    y = X @ rng.standard_normal(d) + 1.0 + sd * rng.standard_normal(n)
    return X, y, rng.uniform(0.5, 2.0, n) if weighted else np.ones(n)


def restricted(delta, X, y, w, conjugate):
    """Log of the posterior density of the noise's parameters, by a normal integral over beta.

    ``delta`` holds the slopes of the log variance and its level at the weighted mean of X.
    """
    n, d = X.shape
    A, Z = np.column_stack([X, np.ones(n)]), np.column_stack([X[:, :2], np.ones(n)])
    Z[:, :2] -= np.average(X[:, :2], axis=0, weights=w)
    log_variance = Z @ delta
    known = w * np.exp(-log_variance)
    variance = SCALE**2 * (np.exp(delta[-1]) if conjugate else 1.0)
    prior = np.diag(np.r_[np.full(d, 1.0 / variance), 0.0])
    H = (A.T * known) @ A + prior
    beta = np.linalg.solve(H, (A.T * known) @ y)
    value = -0.5 * w @ log_variance - 0.5 * known @ np.square(y - A @ beta)
    value -= 0.5 * beta @ prior @ beta + 0.5 * d * np.log(variance)
    value -= 0.5 * np.linalg.slogdet(H)[1]
    value -= 0.5 * np.square(delta[:-1] / (2.0 * SLOPE)).sum()
    return value - SHAPE * delta[-1] - RATE * np.exp(-delta[-1]), beta


@pytest.mark.parametrize(
    "n, d, conjugate, weighted",
    [(25, 8, False, True), (25, 8, True, False), (60, 4, True, True)],
)
def test_the_centre_has_the_largest_restricted_likelihood(n, d, conjugate, weighted):
    X, y, w = table(n, d, weighted)
    prior = (ConjugateNormal if conjugate else Normal)(SCALE)
    posterior = LogLinearNoise(columns=[0, 1], scale=SLOPE).bind(
        X, y, UnequalNormalNoise(), prior, InverseGamma(SHAPE, RATE), sample_weight=w
    )
    center, precision = restricted_normal(posterior)
    exact = optimize.minimize(lambda v: -restricted(v, X, y, w, conjugate)[0], np.zeros(3)).x
    _, beta = restricted(exact, X, y, w, conjugate)
    sd = np.sqrt(np.diagonal(np.linalg.inv(precision)))
    error = np.abs(center - np.r_[beta, exact]) / sd
    assert error.max() < 0.1  # it ends within a thirtieth of an sd of the noise's parameters
    # its joint mode is far: a sign or a factor of the leverages would be seen
    joint = optimize.minimize(lambda v: -posterior.log_density(v[None])[0], center).x
    assert (np.abs(center - joint) / sd).max() > 0.3

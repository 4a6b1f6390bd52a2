"""Fits under a matrix V and under priors on the intercept, against references without the package.

The linear models have a closed form; logistic ones are integrated by importance sampling from a
multivariate t at the mode that BFGS finds.
"""

import numpy as np
import pytest
from scipy import special

from skbayes_sgld import SGLDLinearRegression, SGLDLogisticRegression
from skbayes_sgld.priors import ConjugateNormal, InverseGamma, Normal
from tests.references.closed_forms import (
    Moments,
    importance_sampling,
    laplace_fit,
    normal_inverse_gamma,
)

N, D = 60, 3
V = np.array([[4.0, 1.2, -0.5], [1.2, 1.0, 0.1], [-0.5, 0.1, 0.25]])
MU = np.array([0.5, -0.5, 0.0])


def linear_data(n=N, d=D, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) + 2.0  # off the origin: the intercept at 0 is not at the mean
    return X, X[:, :3] @ [1.0, -0.5, 0.3] + 1.5 + 0.8 * rng.standard_normal(n)


def labels(X, n_classes=2, seed=1):
    rng = np.random.default_rng(seed)
    score = (X - 2.0) @ rng.standard_normal((X.shape[1], n_classes))
    return (score + rng.gumbel(size=score.shape)).argmax(axis=1)


def assert_agrees(model, seen):
    """Means within four standard errors, and sds within six of theirs."""
    table = model.summary()
    away = (table["mean"] - seen.mean) / np.hypot(table["mcse_mean"], seen.sd / np.sqrt(seen.ess))
    assert np.abs(away).max() < 4.0, table
    error = 1.0 / np.sqrt(2.0 * table["ess_bulk"])  # of a normal's sd; the noise has longer tails
    assert (np.abs(table["sd"] / seen.sd - 1.0) / error).max() < 6.0, table


INTERCEPTS = {
    "flat": ("flat", 0.0, np.inf),
    "conjugate": (ConjugateNormal(scale=0.5, location=-1.0), -1.0, 0.25),
}


CENTERED = {"preconditioner": "curvature", "batch_size": 60, "gradient": "control_variate"}


@pytest.mark.parametrize(
    ("intercept", "settings"),
    [("flat", {}), ("conjugate", {}), ("conjugate", CENTERED)],
    ids=["flat", "conjugate", "centered"],
)
def test_the_lecture_s_model_with_a_matrix_v_has_its_closed_form(intercept, settings):
    X, y = linear_data()
    prior, at, variance = INTERCEPTS[intercept]
    model = SGLDLinearRegression(
        prior=ConjugateNormal(covariance=V, location=MU),
        noise_prior=InverseGamma(2.0, 1.0),
        intercept_prior=prior,
        random_state=0,
        **settings,
    ).fit(X, y)
    exact = {"V": V, "location": MU, "intercept": (at, variance), "shape": 2.0, "rate": 1.0}
    assert_agrees(model, normal_inverse_gamma(X, y, **exact))


def known_noise(X, y):
    """Mean and sds under N(MU, V), an intercept of N(-2, 0.3^2) and a noise variance of 0.6."""
    A = np.column_stack([X, np.ones(N)])
    prior = np.zeros((D + 1, D + 1))
    prior[:D, :D], prior[D, D] = np.linalg.inv(V), 1 / 0.09
    precision = A.T @ A / 0.6 + prior
    mean = np.linalg.solve(precision, A.T @ y / 0.6 + prior @ np.append(MU, -2.0))
    return Moments(mean, np.sqrt(np.diag(np.linalg.inv(precision))))


KNOWN = {
    "prior": Normal(covariance=V, location=MU),
    "intercept_prior": Normal(scale=0.3, location=-2.0),
    "noise_variance": 0.6,
    "random_state": 0,
}


@pytest.mark.parametrize("center", [True, False])
def test_known_noise_with_normal_priors_has_its_closed_form(center):
    X, y = linear_data()
    A = np.column_stack([X, np.ones(N)])
    metric = "auto" if center else np.linalg.inv(A.T @ A)
    model = SGLDLinearRegression(preconditioner=metric, n_draws=1000, **KNOWN)
    assert_agrees(model.fit(X, y), known_noise(X, y))


def test_more_columns_than_rows_with_a_matrix_v_have_their_closed_form():
    n, d = 12, 30
    rng = np.random.default_rng(0)
    X, load = rng.standard_normal((n, d)) / np.sqrt(d), rng.standard_normal(d)
    y = X[:, 0] + rng.standard_normal(n)
    wide = np.diag(rng.uniform(0.25, 4.0, d)) + np.outer(load, load)
    model = SGLDLinearRegression(
        prior=ConjugateNormal(covariance=wide),
        intercept_prior=ConjugateNormal(scale=0.5),
        noise_prior=InverseGamma(3.0, 2.0),
        parameterization="row_space",
        random_state=0,
    ).fit(X, y)
    exact = {"V": wide, "location": 0.0, "intercept": (0.0, 0.25), "shape": 3.0, "rate": 2.0}
    assert_agrees(model, normal_inverse_gamma(X, y, **exact))


X, _ = linear_data()
LABELS = labels(X)
WIDE, THREE = linear_data(120)[0][:, :2], labels(linear_data(120)[0][:, :2], 3)


def normal_prior(coef, location=0.0):
    """Log density of N(location, V) for each row of coefficients ``(..., d)``."""
    moved, d = coef - location, coef.shape[-1]
    return -0.5 * np.einsum("...d,de,...e->...", moved, np.linalg.inv(V[:d, :d]), moved)


def log_likelihood_of_labels(theta):
    u = theta[:, :D] @ X.T + theta[:, D:]
    return -np.logaddexp(0.0, (1.0 - 2.0 * LABELS) * u).sum(1)


def with_normal_intercept(theta):
    level = (theta[:, D] - 1.0) / 0.7
    return log_likelihood_of_labels(theta) + normal_prior(theta[:, :D], MU) - 0.5 * level**2


def of_three_classes(theta):
    linear = theta.reshape(-1, 3, 3)
    u = linear[..., :2] @ WIDE.T + linear[..., 2:]
    value = (u[:, THREE, np.arange(120)] - special.logsumexp(u, axis=1)).sum(1)
    value += normal_prior(linear[..., :2]).sum(1)
    return value - 0.5 * np.square((linear[..., 2] - 0.3) / 0.5).sum(1)


def less_the_mean(theta):
    """Coefficients less their mean over the three classes, which no data see."""
    linear = theta.reshape(-1, 3, 3)
    return (linear - linear.mean(axis=1, keepdims=True)).reshape(-1, 9)


# priors, data, log density, and what is reported
BOTH, PAIR = Normal(covariance=V, location=MU), Normal(covariance=V[:2, :2])
SAMPLED = {
    "two classes": (
        SGLDLogisticRegression(prior=BOTH, intercept_prior=Normal(0.7, 1.0)),
        *(X, LABELS, with_normal_intercept, np.asarray),
    ),
    "three classes": (
        SGLDLogisticRegression(prior=PAIR, intercept_prior=Normal(0.5, 0.3)),
        *(WIDE, THREE, of_three_classes, less_the_mean),
    ),
}


@pytest.mark.parametrize("name", SAMPLED)
def test_fits_agree_with_importance_sampling(name):
    model, X, y, log_density, reported = SAMPLED[name]
    n_params = 9 if name == "three classes" else X.shape[1] + 1
    seen = importance_sampling(
        log_density, *laplace_fit(log_density, n_params), n_draws=30_000, transform=reported
    )
    assert seen.ess > 10_000
    assert_agrees(model.set_params(random_state=0).fit(X, y), seen)

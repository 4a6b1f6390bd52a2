"""MAP optimisers reach the mode that Newton's method and scipy find."""

import numpy as np
import pytest
from scipy import optimize
from sklearn.datasets import load_diabetes
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.preprocessing import StandardScaler

from skbayes_sgld import SGDMAPClassifier, SGDMAPRegressor
from skbayes_sgld.datasets import load_nba_rookies, make_correlated_pair
from skbayes_sgld.posterior import Normal
from skbayes_sgld.sampling import OPTIMIZERS, Polynomial


@pytest.fixture(scope="module")
def rookies():
    X, y = load_nba_rookies(return_X_y=True, as_frame=False)
    return StandardScaler().fit_transform(np.nan_to_num(X)), y


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_every_optimizer_comes_within_a_tenth_of_a_sd_of_the_logistic_mode(rookies, optimizer):
    X, y = rookies
    model = SGDMAPClassifier(optimizer=optimizer, max_iter=4000, random_state=0).fit(X, y)
    exact = LogisticRegression(C=1.0, tol=1e-10, max_iter=10_000).fit(X, y)
    sd = model.summary()["sd"].to_numpy()[:-1]
    distance = np.linalg.norm((model.coef_[0] - exact.coef_[0]) / sd) / np.sqrt(len(sd))
    assert distance < 0.2  # the stopping rule measures it in the curvature's metric, at 0.1


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("data", ["diabetes", "lecture"])
def test_every_optimizer_comes_near_the_linear_mode(optimizer, data):
    X, y = (
        load_diabetes(return_X_y=True)
        if data == "diabetes"
        else make_correlated_pair(random_state=0)
    )
    model = SGDMAPRegressor(optimizer=optimizer, max_iter=4000, random_state=0).fit(X, y)
    # beta | sigma^2 ~ N(0, 100 sigma^2): the mode of beta is the ridge solution
    exact = Ridge(alpha=0.01, tol=1e-10).fit(X, y)
    sd = model.summary()["sd"].to_numpy()
    assert np.linalg.norm((model.coef_ - exact.coef_) / sd[: X.shape[1]]) < 0.3 * np.sqrt(
        X.shape[1]
    )
    rss = np.sum((y - exact.predict(X)) ** 2) + 0.01 * exact.coef_ @ exact.coef_
    # d/dgamma of the log posterior is zero at sigma^2 = (rss + 2 psi) / (n + d + 2 phi)
    variance = (rss + 2e-3 * y.var()) / (len(y) + X.shape[1] + 2e-3)
    assert abs(np.log(model.noise_variance_ / variance)) < 0.3 * np.sqrt(2 / len(y))


def test_plain_gradient_descent_without_a_preconditioner_is_algorithm_11():
    X, y = make_correlated_pair(300, random_state=1)
    model = SGDMAPRegressor(
        optimizer="gd",
        noise_variance=0.2,
        prior=Normal(scale=2.0),
        preconditioner=None,
        schedule="constant",
        step_size=1e-4,
        max_iter=5,
        tol=0.0,
    )
    with pytest.warns(UserWarning, match="max_iter"):
        model.fit(X, y)
    beta = np.zeros(2)
    beta[1] = y.mean()
    A = np.column_stack([X, np.ones(len(X))])
    for t in range(6):
        np.testing.assert_allclose(
            [*model.coef_path_[t], model.intercept_path_[t]], beta, rtol=1e-9
        )
        beta = beta + 1e-4 * (A.T @ (y - A @ beta) / 0.2 - np.array([0.25, 0.0]) * beta)


def test_the_path_climbs_from_the_start_to_the_mode(rookies):
    model = SGDMAPClassifier(optimizer="gd", random_state=0).fit(*rookies)
    assert model.path_steps_[0] == 0
    assert model.path_steps_[-1] == model.n_iter_ < model.max_iter
    assert np.all(np.diff(model.log_posterior_path_) > 0)
    np.testing.assert_allclose(model.coef_path_[-1], model.coef_[0])
    np.testing.assert_array_equal(model.coef_path_[0], 0.0)


def test_laplace_draws_have_the_covariance_of_the_curvature_at_the_mode(rookies):
    X, y = rookies
    X = X[:, :3]
    model = SGDMAPClassifier(random_state=3).fit(X, y)
    sign = 2.0 * y - 1.0

    def loss(theta):
        eta = X @ theta[:3] + theta[3]
        return np.logaddexp(0, -sign * eta).sum() + 0.5 * theta[:3] @ theta[:3]

    mode = optimize.minimize(loss, np.zeros(4), tol=1e-12).x
    p = 1 / (1 + np.exp(-(X @ mode[:3] + mode[3])))
    A = np.column_stack([X, np.ones(len(X))])
    covariance = np.linalg.inv((A.T * (p * (1 - p))) @ A + np.diag([1, 1, 1, 0]))
    draws = model.posterior_.flat
    n = len(draws)
    sd = np.sqrt(np.diag(covariance))
    assert np.all(np.abs(draws.mean(0) - mode) < 4 * sd / np.sqrt(n))
    error = np.cov(draws.T) - covariance
    standard_error = np.sqrt((covariance**2 + np.outer(sd, sd) ** 2) / n)
    assert np.all(np.abs(error) < 4 * standard_error)


def test_a_decaying_schedule_ends_nearer_than_a_constant_one(rookies):
    X, y = rookies
    exact = LogisticRegression(C=1.0, tol=1e-10, max_iter=10_000).fit(X, y).coef_[0]
    ends = {}
    for name, schedule, step in [("decay", Polynomial(6, 0.9), 3.0), ("constant", "constant", 0.4)]:
        model = SGDMAPClassifier(
            schedule=schedule, step_size=step, batch_size=64, tol=0.0, random_state=0
        )
        with pytest.warns(UserWarning, match="max_iter"):
            model.fit(X, y)
        ends[name] = np.linalg.norm((model.coef_[0] - exact) / model.summary()["sd"][:-1])
    assert ends["decay"] < 0.3 * ends["constant"]

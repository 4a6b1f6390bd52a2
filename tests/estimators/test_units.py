"""Automatic scales of priors: neither the units of X nor those of y change a prediction."""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.linear_model import LogisticRegression

from skbayes_sgld import SGLDLinearRegression, SGLDLogisticRegression, SGLDPoissonRegressor
from skbayes_sgld._linalg import column_moments
from skbayes_sgld.priors import Laplace, Normal
from tests.marks import slow

RNG = np.random.default_rng(0)
UNITS = 10.0 ** np.array([-6, 6, 0, 3, -3, 1, 0, -1, 2, 0])
DIABETES = load_diabetes(return_X_y=True)
SPREADS = DIABETES[0].std(axis=0)
SPREADS[1] = np.ptp(DIABETES[0][:, 1])  # two values: the sexes


@pytest.mark.parametrize(
    ("prior", "unit_of_y"),
    [("conjugate_normal", 1e6), ("normal", 1e-6), ("laplace", 1e6), ("cauchy", 1.0)],
)
def test_no_units_change_the_predictions_of_a_linear_model(prior, unit_of_y):
    X, y = DIABETES
    settings = {"prior": prior, "n_draws": 300, "random_state": 0}
    own = SGLDLinearRegression(**settings).fit(X, y)
    other = SGLDLinearRegression(**settings).fit(X * UNITS, unit_of_y * y)
    assert own.score(X, y) > 0.5
    np.testing.assert_allclose(
        other.predict_interval(X[:50] * UNITS) / unit_of_y, own.predict_interval(X[:50]), atol=12.0
    )
    np.testing.assert_allclose(
        other.prior_.scale * UNITS, _factor(prior, unit_of_y) * own.prior_.scale
    )


def _factor(prior, unit_of_y):
    """Change of a prior's scale with the units of y: that of the noise has its own."""
    return 1.0 if prior == "conjugate_normal" else unit_of_y


@pytest.mark.parametrize("estimator", [SGLDLogisticRegression, SGLDPoissonRegressor])
def test_no_units_change_the_predictions_of_other_models(estimator):
    X, y = load_breast_cancer(return_X_y=True)
    X = X[:, :10]
    own = estimator(n_draws=300, random_state=0).fit(X, y)
    other = estimator(n_draws=300, random_state=0).fit(X * UNITS, y)
    predict = "predict_proba" if hasattr(own, "predict_proba") else "predict"
    np.testing.assert_allclose(
        getattr(other, predict)(X * UNITS), getattr(own, predict)(X), atol=0.02
    )
    np.testing.assert_allclose(own.prior_.scale, 1.0 / X.std(axis=0))


def test_the_mode_on_standardised_columns_is_that_of_logistic_regression():
    from skbayes_sgld import SGDMAPClassifier

    X, y = load_breast_cancer(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    mode = SGDMAPClassifier(optimizer="newton").fit(X, y)
    peer = LogisticRegression(C=1.0, tol=1e-10, max_iter=10_000).fit(X, y)
    np.testing.assert_allclose(mode.coef_, peer.coef_, atol=1e-5)


def test_a_number_is_a_number_and_the_resolved_scale_can_be_read():
    from skbayes_sgld import SGDMAPRegressor

    X, y = DIABETES
    fitted = SGDMAPRegressor(prior=Normal(scale=3.0), optimizer="newton").fit(X, y)
    assert fitted.prior_.scale == 3.0
    auto = SGDMAPRegressor(prior="laplace", optimizer="newton").fit(X, y)
    np.testing.assert_allclose(auto.prior_.scale, 2.5 * y.std() / SPREADS)
    assert isinstance(auto.prior_, Laplace)
    known = SGDMAPRegressor(noise_variance=4.0, optimizer="newton").fit(X, y)
    np.testing.assert_allclose(known.prior_.scale, 20.0 / SPREADS)


def test_an_intercepts_scale_reaches_the_level_of_y():
    X, y = DIABETES
    settings = {"intercept_prior": "normal", "n_draws": 200, "random_state": 0}
    model = SGLDLinearRegression(**settings).fit(X, 1e6 + y)
    assert abs(model.intercept_ - (1e6 + y.mean())) < 20.0


@pytest.mark.parametrize(("dtype", "weighted"), [(np.float32, False), (np.float64, True)])
def test_the_spread_of_a_column(dtype, weighted):
    n = 3000
    rare = 4.0 * (np.arange(n) >= n - 7)  # of one value in any sample of the first rows
    fractional = rare - 3.0 * (np.arange(n) >= n - 3)
    near, two = RNG.standard_normal((2, n))
    columns = [1e-30 * near, 1e6 + near, np.where(two < 0, 5.0, 2.0), np.full(n, -3.0), 0.0 * near]
    X = np.column_stack([*columns, rare, fractional]).astype(dtype)
    weight = np.append(RNG.integers(0, 3, n - 7), np.ones(7)) if weighted else np.ones(n)
    mean, spread = column_moments(X, weight if weighted else None)
    rows = np.repeat(X.astype(float), weight.astype(int), axis=0)
    np.testing.assert_allclose(mean, rows.mean(axis=0), rtol=1e-9, atol=1e-12)
    sd = rows.std(axis=0)
    np.testing.assert_allclose(spread, [sd[0], sd[1], 3.0, 3.0, 1.0, 4.0, sd[6]], rtol=1e-9)


OFFSET_ROWS = np.random.default_rng(5).standard_normal((60, 3))
OFFSET_Y = OFFSET_ROWS @ [1.0, -1.0, 0.5] + np.random.default_rng(6).standard_normal(60)
UNEQUAL = {"noise_model": "log_linear", "n_draws": 60, "random_state": 0}


# 60 draws a chain are too few, and fit says so
@pytest.mark.filterwarnings(
    "error::RuntimeWarning", "ignore::sklearn.exceptions.ConvergenceWarning"
)
@pytest.mark.parametrize("prior", [slow("conjugate_normal"), "student_t"])
def test_no_unit_and_no_offset_leaks_a_warning_of_numpys_from_unequal_noise(prior):
    # reported and sampled parameters went through exponentials that cancel, and overflow
    for scale in (1e-40, 1e-6, 1e6, 1e40):
        SGLDLinearRegression(prior=prior, **UNEQUAL).fit(OFFSET_ROWS, OFFSET_Y * scale)
    for offset in (1e4, 1e8, -1e8):
        SGLDLinearRegression(prior=prior, **UNEQUAL).fit(OFFSET_ROWS, OFFSET_Y + offset)
        SGLDLinearRegression(prior=prior, **UNEQUAL).fit(OFFSET_ROWS + offset, OFFSET_Y)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # of so few
def test_an_offset_of_y_moves_the_intercept_of_unequal_noise_alone():
    own = SGLDLinearRegression(prior="normal", **UNEQUAL).fit(OFFSET_ROWS, OFFSET_Y)
    moved = SGLDLinearRegression(prior="normal", **UNEQUAL).fit(OFFSET_ROWS, OFFSET_Y + 1e6)
    np.testing.assert_allclose(moved.coef_, own.coef_, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(moved.noise_coef_, own.noise_coef_, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(moved.intercept_ - 1e6, own.intercept_, atol=1e-5)

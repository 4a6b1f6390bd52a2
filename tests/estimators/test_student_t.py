"""Heavy-tailed noise, beyond the tests of all families."""

import numpy as np
import pytest
from scipy import stats

from skbayes_sgld import SGLDLinearRegression
from skbayes_sgld.likelihoods import StudentTNoise
from skbayes_sgld.posterior import LogLinearNoise
from skbayes_sgld.priors import Normal
from skbayes_sgld.sampling.tuning.mode import newton_mode
from tests.estimators.families import FAMILIES, heavy, mode_by_scipy
from tests.marks import SHORT, short_chains


def student_t(**settings):
    return SGLDLinearRegression(noise_distribution="student_t", random_state=0, **settings)


@pytest.mark.slow
def test_the_mode_with_log_linear_noise_is_that_of_scipy():
    X, y, _ = heavy(300)
    y = y + (np.exp(0.4 * X[:, 0]) - 1.0) * (y - X @ [1.0, -0.5] - 2.0)
    noise = LogLinearNoise(columns=[0], scale=0.8)
    family = FAMILIES["student_t"]
    model = student_t(**family.priors(), noise_model=noise).fit(X, y)
    names = ["coef[x0]", "coef[x1]", "intercept", "noise_coef[x0]", "noise_intercept"]
    assert list(model.summary().index) == [*names, "degrees_of_freedom"]
    posterior = noise.bind(
        X,
        y,
        StudentTNoise(),
        Normal(1.0),
        [prior for prior, _ in family.own.values()],
        intercept_prior=Normal(2.0),
    )
    found = newton_mode(posterior, posterior.start()).theta
    z = X[:, 0] - X[:, 0].mean()

    def log_density(theta):
        """Of coefficients, intercept, log sigma^2 at the mean, log nu, and alpha."""
        eta = theta[:, :2] @ X.T + theta[:, 2:3]
        sd = np.exp(0.5 * theta[:, 3:4] + theta[:, 5:] * z)
        value = stats.t.logpdf(y, np.exp(theta[:, 4:5]), eta, sd).sum(axis=1)
        return value + family.log_prior(theta[:, :5]) + stats.norm.logpdf(theta[:, 5], 0.0, 0.8)

    expected = mode_by_scipy(log_density, 6)
    inferred = found[[0, 1, 2, 4, 5, 3]] * [1.0, 1.0, 1.0, 1.0, 1.0, 0.5]
    np.testing.assert_allclose(inferred, expected, atol=1e-5)
    assert model.noise_coef_[0] == pytest.approx(0.4, abs=0.2)
    back = posterior.reported.theta(posterior.reported.values(found[None]))
    np.testing.assert_allclose(back, found[None], atol=1e-12)


def test_the_standard_deviation_is_infinite_without_a_variance():
    X, y, _ = heavy(200, df=1.0)
    model = student_t().fit(X, y)
    mean, std = model.predict(X[:3], return_std=True)
    assert np.all(np.isfinite(mean)) and np.all(std == np.inf)
    assert np.all(np.isfinite(model.predict_interval(X[:3], 0.99)))
    y_new = model.sample_y(np.resize(X[:1], (1, 2)), 3000, random_state=0)[0]
    low, high = model.predict_interval(X[:1], 0.9)[0]
    assert np.mean((low <= y_new) & (y_new <= high)) == pytest.approx(0.9, abs=0.025)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("noise_model", ["constant", "log_linear"])
def test_many_equal_numbers_are_refused_with_their_value_and_share(noise_model):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 2))
    y = np.where(np.arange(400) % 5 < 3, 7.5, 7.5 + rng.gamma(2.0, size=400))
    with pytest.raises(ValueError, match=r"value 7\.5 in 60 % of the rows.*'normal'"):
        student_t(noise_model=noise_model).fit(X, y)


@pytest.mark.slow
def test_a_check_of_heavy_tails_suggests_it():
    from skbayes_sgld import check_model

    X, y, _ = heavy(1000)
    normal = SGLDLinearRegression(random_state=0, n_draws=250)
    with pytest.warns(UserWarning, match="set noise_distribution='student_t'"):
        normal.fit(X, y)
    found = check_model(normal, X, y)
    assert found.suggestion.noise_distribution == "student_t"
    better = found.suggestion.fit(X, y)
    assert not check_model(better, X, y).table["verdict"].eq("misfit").any()


@short_chains
@pytest.mark.parametrize("noise_model", ["constant", "log_linear"])
@pytest.mark.parametrize("column", ["zeros", "constant", "zeros but for rows without weight"])
def test_a_column_without_information_is_fitted(column, noise_model):
    X, y, _ = heavy(20)
    weight = np.ones(20)
    X[:, 1] = 3.0 if column == "constant" else 0.0
    if "weight" in column:
        X[:3, 1], weight[:3] = [1.0, 2.0, 3.0], 0.0
    model = student_t(noise_model=noise_model, **SHORT).fit(X, y, sample_weight=weight)
    assert np.isfinite(model.coef_).all()

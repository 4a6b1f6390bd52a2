"""Several outputs: each as its own fit finds it, stacked, named, and independent of the others."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse, stats
from sklearn.base import clone
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import get_tags

import skbayes_sgld
from skbayes_sgld import SGLDLinearRegression

RNG = np.random.default_rng(0)
N = 60
X = pd.DataFrame(RNG.standard_normal((N, 2)), columns=["age", "bmi"])
SLOPES = np.array([[1.0, 0.0], [-2.0, 1.0], [0.0, 3.0]])
Y = pd.DataFrame(
    X.to_numpy() @ SLOPES.T + [3.0, 0.0, -1.0] + RNG.standard_normal((N, 3)) * [0.5, 1.0, 4.0],
    columns=["low", "mid", "high"],
)
MODEL = SGLDLinearRegression(n_draws=300, random_state=0)
T = Y.shape[1]


@pytest.fixture(scope="module")
def model():
    return clone(MODEL).fit(X, Y)


@pytest.fixture(scope="module")
def separate():
    stream = np.random.RandomState(0)
    return [clone(MODEL).set_params(random_state=stream).fit(X, Y.iloc[:, k]) for k in range(T)]


def test_every_output_is_as_its_own_fit_finds_it(model, separate):
    first = clone(MODEL).fit(X, Y["low"])  # a number seeds the first output as a fit of it alone
    np.testing.assert_array_equal(separate[0].posterior_.values, first.posterior_.values)
    for k, own in enumerate(separate):
        name = model.output_names_[k]
        np.testing.assert_array_equal(
            model.posterior_[f"coef[{name}, bmi]"], own.posterior_["coef[bmi]"]
        )
        np.testing.assert_array_equal(
            model.posterior_[f"noise_variance[{name}]"], own.posterior_["noise_variance"]
        )
        np.testing.assert_array_equal(model.coef_[k], own.coef_)
        assert model.intercept_[k] == own.intercept_
        assert model.noise_variance_[k] == own.noise_variance_


METHODS = {
    "predict": (lambda m, y: m.predict(X), 1),
    "return_std": (lambda m, y: m.predict(X, return_std=True)[1], 1),
    "intervals": (lambda m, y: m.predict_interval(X, coverage=[0.5, 0.9]), 1),
    "quantiles": (lambda m, y: m.predict_quantiles(X, [0.2, 0.5, 0.7, 0.9]), 1),
    "cdf": (lambda m, y: m.predict_cdf(X, y), 1),
    "functions": (lambda m, y: m.posterior_mean_draws(X, 20, random_state=1), 1),
    "log_likelihood": (lambda m, y: m.log_likelihood(X, y), 1),
    "density": (lambda m, y: m.log_predictive_density(X, y), 1),
    "coef": (lambda m, y: m.sample_posterior(30).coef, 1),
    "noise": (lambda m, y: m.sample_posterior(30, random_state=2).noise_variance, 1),
    "wrapped": (lambda m, y: skbayes_sgld.predict_interval(m, X, [0.5, 0.9]), 1),
}


@pytest.mark.parametrize("name", METHODS)
def test_methods_stack_what_those_of_the_outputs_say(model, separate, name):
    method, axis = METHODS[name]
    for own in separate:
        own.random_state = 0  # of which sample_posterior makes its choice
    each = [method(own, Y.iloc[:, k]) for k, own in enumerate(separate)]
    found = method(model, Y)
    assert found.shape[axis] == T
    np.testing.assert_array_equal(found, np.stack(each, axis=axis))


def test_outputs_do_not_share_their_random_numbers(model):
    drawn = model.sample_y(X, n_samples=300)
    mean, sd = model.predict(X, return_std=True)
    z = ((drawn - mean[..., None]) / sd[..., None]).transpose(1, 0, 2).reshape(T, -1)
    np.testing.assert_allclose(np.corrcoef(z), np.eye(T), atol=5 / np.sqrt(z.shape[1]))
    assert abs(z.var() - 1.0) < 0.05
    draws = model.sample_posterior().coef[..., 0]
    np.testing.assert_allclose(np.corrcoef(draws.T), np.eye(T), atol=5 / np.sqrt(len(draws)))
    prior = {"intercept_prior": "normal", "noise_prior": "half_normal"}
    before = clone(MODEL).set_params(**prior).fit(X, Y).sample_prior(X, 200)
    assert before.shape == (N, T, 200)
    assert stats.pearsonr(before[0, 0], before[0, 1]).pvalue > 1e-3


def test_summary_and_diagnosis_name_the_outputs(model):
    table = model.summary()
    assert list(table.index[1:4]) == ["coef[low, bmi]", "intercept[low]", "noise_variance[low]"]
    np.testing.assert_allclose(table.loc["coef[high, bmi]", "mean"], model.coef_[2, 1])
    report = model.diagnose()
    assert list(report) == ["low", "mid", "high"]
    assert all(each.usable for each in report.values())
    lines = repr(report).splitlines()
    assert [line for line in lines if line.endswith(":")] == ["low:", "mid:", "high:"]


def test_arviz_has_a_dimension_of_outputs(model, separate):
    pytest.importorskip("xarray", reason="groups of draws need the extra 'arviz'")
    data = model.to_arviz(X, Y)
    assert data["posterior"]["coef"].dims == ("chain", "draw", "output", "feature")
    found = data["posterior"]["coef"].sel(output="mid", feature="bmi")
    np.testing.assert_array_equal(found, separate[1].posterior_["coef[bmi]"])
    likelihood = data["log_likelihood"]["y"]
    assert likelihood.dims == ("chain", "draw", "obs_id", "output")
    by_draw = np.moveaxis(model.log_likelihood(X, Y), -1, 0)
    np.testing.assert_array_equal(likelihood.values.reshape(-1, N, T), by_draw)
    np.testing.assert_array_equal(data["observed_data"]["y"].sel(output="high"), Y["high"])
    np.testing.assert_array_equal(data["constant_data"]["X"], X)
    own = separate[2].to_arviz()["sample_stats"]["lp"]
    np.testing.assert_allclose(data["sample_stats"]["lp"].sel(output="high"), own)


def test_a_pipeline_and_scores_take_several_outputs(model):
    pipe = make_pipeline(StandardScaler(), clone(MODEL)).fit(X, Y)
    np.testing.assert_allclose(pipe.predict(X), model.predict(X), atol=0.1 * Y.std().max())
    assert skbayes_sgld.predict_interval(pipe, X).shape == (N, T, 2)
    share = [
        1 - np.var(Y.iloc[:, k] - model.predict(X)[:, k]) / np.var(Y.iloc[:, k]) for k in (0, 1, 2)
    ]
    assert abs(model.score(X, Y) - np.mean(share)) < 1e-3
    assert cross_val_score(clone(MODEL), X, Y, cv=2).min() > 0.3
    assert get_tags(model).target_tags.multi_output


def test_weights_sparse_rows_and_arrays_are_taken():
    weight = RNG.integers(0, 3, N)
    rows, target = sparse.csr_array(X.to_numpy()), Y.to_numpy()
    fitted = clone(MODEL).fit(rows, target, sample_weight=weight)
    assert fitted.output_names_ == ["y0", "y1", "y2"]
    kept = weight > 0
    dense = clone(MODEL).fit(X[kept].to_numpy(), target[kept], sample_weight=weight[kept])
    np.testing.assert_allclose(fitted.coef_, dense.coef_, atol=0.2)


def test_one_column_is_one_output_and_a_fit_of_another_kind_leaves_nothing_behind(model):
    column, plain = clone(MODEL).fit(X, Y[["mid"]]), clone(MODEL).fit(X, Y["mid"])
    np.testing.assert_array_equal(column.coef_, plain.coef_[None])
    np.testing.assert_array_equal(column.predict(X), plain.predict(X)[:, None])
    names = set(vars(plain))
    np.testing.assert_array_equal(plain.fit(X, Y).coef_, model.coef_)
    assert not hasattr(plain, "result_")
    assert set(vars(plain.fit(X, Y["mid"]))) == names
    np.testing.assert_array_equal(column.coef_, plain.coef_[None])


def test_a_warm_start_goes_on_from_each_output():
    fitted = clone(MODEL).set_params(warm_start=True).fit(X, Y)
    first = fitted.estimators_[1].posterior_.values
    fitted.fit(X, Y)
    second = fitted.estimators_[1]
    assert second.n_burnin_ == 0
    assert not np.any(second.posterior_.values == first)


def test_the_mode_of_every_output_is_found():
    from skbayes_sgld import SGDMAPRegressor

    fitted = SGDMAPRegressor(random_state=0, optimizer="newton").fit(X, Y)
    for k in range(T):
        own = SGDMAPRegressor(random_state=0, optimizer="newton").fit(X, Y.iloc[:, k])
        np.testing.assert_allclose(fitted.coef_[k], own.coef_)
    assert fitted.predict(X, return_std=True)[1].shape == (N, T)


def test_errors_name_what_is_wrong_and_leave_the_fit(model):
    with pytest.raises(ValueError, match=r"y has shape \(60, 2\); the fit was of 3 outputs"):
        model.log_likelihood(X, Y.iloc[:, :2])
    with pytest.raises(ValueError, match=r"y has shape \(60, 0\)"):
        clone(MODEL).fit(X, Y.iloc[:, :0])
    before = model.coef_.copy()
    with pytest.raises(ValueError, match="NaN"):
        model.fit(X, Y.where(Y < 5.0))
    np.testing.assert_array_equal(model.coef_, before)
    assert model.predict(X).shape == (N, T)


def test_an_error_about_y_names_its_output():
    X = np.random.default_rng(0).standard_normal((30, 2))
    y = pd.DataFrame({"price": X[:, 0] + X[:, 1] ** 2, "tax": 3.0})
    with pytest.raises(ValueError, match=r"^output tax: y is constant \(3\)"):
        SGLDLinearRegression(random_state=0).fit(X, y)
    with pytest.raises(ValueError, match=r"^output y1: y has"):
        SGLDLinearRegression(random_state=0).fit(X, np.column_stack([X[:, 0], X[:, 1] * 1e200]))

"""Fits in ArviZ: groups, dimensions and labels, and the results of its functions.

The same tests run on ArviZ 0.2x (InferenceData) and 1.x (DataTree), whichever is installed.
"""

import pickle
import sys
import tracemalloc
from importlib.metadata import version as installed_version
from importlib.util import find_spec

import numpy as np
import pandas as pd
import pytest
from scipy import sparse, stats

import skbayes_sgld
from skbayes_sgld import (
    PosteriorDraws,
    SGDMAPRegressor,
    SGLDLinearRegression,
    SGLDLogisticRegression,
    SGLDPoissonRegressor,
    _linalg,
    _memory,
)
from skbayes_sgld.arviz import draws as module
from skbayes_sgld.own_models import FunctionPosterior

if find_spec("arviz") is None:  # which is imported where a test needs it: it takes half a second
    pytest.skip("what is tested, of the extra 'arviz'", allow_module_level=True)
NEW = int(installed_version("arviz").partition(".")[0]) >= 1
pytestmark = [
    # the runs are too short for usable draws, and fit says so
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    # ArviZ warns of Pareto k, which few draws make large
    pytest.mark.filterwarnings("ignore:Estimated shape parameter of Pareto:UserWarning"),
]

RNG = np.random.default_rng(0)
N = 60
X = pd.DataFrame(RNG.standard_normal((N, 2)), columns=["age", "a, b [c]"])
Y = X.to_numpy() @ [1.0, -2.0] + 3.0 + 0.5 * RNG.standard_normal(N)
LABELS = np.array(["low", "mid", "top"])[np.digitize(Y, [2.0, 4.5])]
COUNTS, EXPOSURE = RNG.poisson(2.0, N), RNG.uniform(0.5, 2.0, N)


@pytest.fixture(scope="module")
def linear():
    return SGLDLinearRegression(n_draws=300, random_state=0).fit(X, Y)


@pytest.fixture(scope="module")
def data(linear):
    return linear.to_arviz(X, Y)


@pytest.fixture(scope="module")
def softmax():
    return SGLDLogisticRegression(n_draws=250, random_state=0).fit(X, LABELS)


def groups(data):
    return {name.strip("/") for name in (data.groups if NEW else data.groups())} - {""}


# ---- the draws --------------------------------------------------------------------------------


def test_every_number_is_where_its_labels_say(softmax):
    posterior = softmax.to_arviz()["posterior"]
    assert posterior["coef"].dims == ("chain", "draw", "class", "feature")
    for name in softmax.posterior_:
        variable, _, label = name.removesuffix("]").partition("[")
        k, _, column = label.partition(", ")
        at = {"class": k} | ({"feature": column} if column else {})
        found = posterior[variable].sel(at)
        np.testing.assert_array_equal(found, softmax.posterior_[name])
    assert set(posterior.data_vars) == {"coef", "intercept"}


def test_a_data_set_of_draws_has_the_columns_and_the_settings(linear):
    draws = linear.posterior_.to_xarray()
    assert draws["coef"].dims == ("chain", "draw", "feature")
    assert draws["feature"].values.tolist() == list(X.columns)
    np.testing.assert_array_equal(draws["noise_variance"], linear.posterior_["noise_variance"])
    assert draws.attrs["sampler"] == "Direct()"


def test_parameters_of_a_model_of_ones_own_have_labels_of_their_own():
    names = ["x[0]", "x[1]", "scale", "w[0, 1]", "w[0, 2]"]
    values = np.arange(30.0).reshape(2, 3, 5)
    draws = PosteriorDraws(values, names).to_xarray()
    assert draws["x_dim_0"].values.tolist() == [0, 1]
    assert draws["scale"].dims == ("chain", "draw")
    np.testing.assert_array_equal(draws["w"].sel(w_dim_0="0, 2"), values[..., 4])


def test_lp_is_the_log_density_of_the_draws():
    normal = FunctionPosterior(lambda x: -0.5 * (x**2).sum(1), lambda x: -x, n_params=2)
    result = skbayes_sgld.sample(normal, n_draws=100, random_state=0)
    lp = result.to_arviz()["sample_stats"]["lp"].values
    exact = stats.norm.logpdf(result.values).sum(axis=2)
    np.testing.assert_allclose(lp - exact, lp[0, 0] - exact[0, 0])


def test_a_pickled_fit_has_all_but_lp(linear, data):
    copied = pickle.loads(pickle.dumps(linear)).to_arviz(X, Y)
    lacking = set(data["sample_stats"].data_vars) - set(copied["sample_stats"].data_vars)
    assert lacking == {"lp"}
    np.testing.assert_array_equal(copied["log_likelihood"]["y"], data["log_likelihood"]["y"])


def test_step_sizes_and_weights_are_those_of_the_kept_draws():
    model = SGLDLinearRegression(schedule="polynomial", n_draws=200, random_state=3).fit(X, Y)
    known = model.to_arviz()["sample_stats"]
    step, weight = known["step_size"].values, known["weight"].values
    np.testing.assert_allclose(step / step.mean(), weight)
    assert step[0, 0] < model.step_size_  # some steps were made before the first draw
    np.testing.assert_array_equal(step[0], step[3])


def test_acceptance_is_that_of_the_run():
    sgld = SGLDLinearRegression(sampler="sgld", n_draws=100, random_state=0).fit(X, Y)
    assert np.all(sgld.to_arviz()["sample_stats"]["acceptance_rate"] == 1.0)
    hmc = SGLDLinearRegression(sampler="hmc", n_draws=100, random_state=0).fit(X, Y)
    share = hmc.to_arviz()["sample_stats"]["acceptance_rate"].values
    assert share.shape == (4, 100)
    assert np.all(share == hmc.result_.acceptance)
    assert 0.5 < share[0, 0] < 1.0


def test_laplace_draws_are_one_chain_without_statistics_of_steps():
    model = SGDMAPRegressor(random_state=0).fit(X, Y)
    data = model.to_arviz(X, Y)
    assert data["posterior"]["coef"].shape == (1, 4000, 2)
    assert "sample_stats" not in groups(data)
    np.testing.assert_allclose(data["posterior"]["coef"].mean(["chain", "draw"]), model.coef_)


# ---- the rows ---------------------------------------------------------------------------------


def test_predictive_draws_belong_to_the_draws_of_the_parameters(data):
    posterior = data["posterior"]
    mean = posterior["coef"].values @ X.to_numpy().T + posterior["intercept"].values[..., None]
    noise = posterior["noise_variance"].values[..., None]
    z = (data["posterior_predictive"]["y"].values - mean) / np.sqrt(noise)
    assert stats.kstest(z.ravel()[::7], "norm").pvalue > 1e-3
    by_draw = np.sqrt(N) * z.mean(axis=2)
    assert abs(by_draw.var() - 1.0) < 0.2
    exact = stats.norm.logpdf(Y, mean, np.sqrt(noise))
    np.testing.assert_allclose(data["log_likelihood"]["y"], exact)
    np.testing.assert_array_equal(data["observed_data"]["y"], Y)
    np.testing.assert_array_equal(data["constant_data"]["X"].sel(feature="age"), X["age"])


def test_labels_are_positions_among_the_classes(softmax):
    data = softmax.to_arviz(X, LABELS)
    observed, drawn = data["observed_data"]["y"], data["posterior_predictive"]["y"]
    np.testing.assert_array_equal(softmax.classes_[observed], LABELS)
    assert observed.attrs == {"flag_values": [0, 1, 2], "flag_meanings": "low mid top"}
    share = np.stack([(drawn == k).mean(["chain", "draw"]) for k in range(3)], axis=1)
    error = 4 * np.sqrt(0.25 / 1000)
    np.testing.assert_allclose(share, softmax.predict_proba(X), atol=error)
    np.testing.assert_array_equal(
        data["log_likelihood"]["y"].values.reshape(-1, N).T, softmax.log_likelihood(X, LABELS)
    )


def test_counts_have_their_exposures():
    model = SGLDPoissonRegressor(n_draws=250, random_state=0).fit(X, COUNTS, exposure=EXPOSURE)
    data = model.to_arviz(X, COUNTS, exposure=EXPOSURE)
    np.testing.assert_allclose(data["constant_data"]["exposure"], EXPOSURE)
    drawn = data["posterior_predictive"]["y"].mean(["chain", "draw"])
    mean, sd = model.predict(X, return_std=True, exposure=EXPOSURE)
    np.testing.assert_allclose(drawn, mean, atol=4.5 * np.max(sd) / np.sqrt(1000))
    np.testing.assert_allclose(
        data["log_likelihood"]["y"].values.reshape(-1, N).T,
        model.log_likelihood(X, COUNTS, exposure=EXPOSURE),
    )


def test_new_rows_are_predictions_and_the_seed_fixes_what_is_drawn(linear, data):
    expected = {"posterior", "sample_stats", "predictions", "predictions_constant_data"}
    assert groups(linear.to_arviz(X[:3])) == expected
    again, other = linear.to_arviz(X, Y), linear.to_arviz(X, Y, random_state=1)
    drawn = data["posterior_predictive"]["y"]
    np.testing.assert_array_equal(drawn, again["posterior_predictive"]["y"])
    assert not np.any(drawn == other["posterior_predictive"]["y"])


def test_sparse_rows_are_not_written_out():
    model = SGLDLinearRegression(n_draws=50, random_state=0).fit(X.to_numpy(), Y)
    dense = model.to_arviz(X.to_numpy(), Y)
    found = model.to_arviz(sparse.csr_array(X.to_numpy()), Y)
    assert groups(dense) - groups(found) == {"constant_data"}
    for group in ("posterior_predictive", "log_likelihood"):
        np.testing.assert_allclose(found[group]["y"], dense[group]["y"])


# ---- memory -----------------------------------------------------------------------------------


def peak_of(work):
    """Value that a call returns, and the most bytes that it had allocated."""
    tracemalloc.start()
    try:
        return work(), tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_rows_take_the_memory_of_one_copy_of_the_chosen_groups(linear, monkeypatch):
    monkeypatch.setattr(_linalg, "cpu_count", lambda: 1)  # each thread has a block of its own
    rows, y = pd.DataFrame(np.tile(X, (100, 1)), columns=X.columns), np.tile(Y, 100)
    linear.to_arviz()  # imports
    wanted = ["posterior", "log_likelihood"]
    data, peak = peak_of(lambda: linear.to_arviz(rows, y, only=wanted))
    assert groups(data) == set(wanted)
    kept = data["log_likelihood"]["y"].nbytes
    assert kept == 8 * len(y) * len(linear.posterior_.flat)
    assert peak < 1.1 * kept + 5e7  # the blocks
    assert groups(linear.to_arviz(X, only=["predictions"])) == {"predictions"}
    model = SGLDPoissonRegressor(n_draws=50, random_state=0).fit(X, COUNTS)
    assert groups(model.to_arviz(X, COUNTS, only=["observed_data"])) == {"observed_data"}


@pytest.mark.parametrize(
    ("rows", "wanted", "error", "match"),
    [
        ((X, Y), ["prior"], ValueError, r"only=\['prior'\] has 'prior', which is not known; ch"),
        ((X,), ["log_likelihood"], ValueError, r"has 'log_likelihood', which needs X and y\."),
        ((X, Y), ["predictions"], ValueError, r"has 'predictions', which needs X without y\."),
        ((), [], ValueError, r"only=\[\] is empty; choose among"),
        ((), "posterior", TypeError, "only='posterior' is not accepted; give a list"),
        ((None, Y), None, ValueError, "y is given and X is None"),
    ],
)
def test_groups_that_cannot_be_made_are_told(rows, wanted, error, match, linear):
    with pytest.raises(error, match=match):
        linear.to_arviz(*rows, only=wanted)


def test_more_rows_than_fit_are_refused_before_their_memory_is_taken(linear, monkeypatch):
    monkeypatch.setattr(_memory, "available_memory", lambda: 10**9)
    n = 1_000_000
    rows = pd.DataFrame(np.broadcast_to(np.zeros(2), (n, 2)), columns=X.columns)

    def refused():
        with pytest.raises(MemoryError) as told:
            linear.to_arviz(rows, np.zeros(n))
        return str(told.value)

    said, peak = peak_of(refused)
    assert said == (
        "to_arviz of X with 1000000 rows, under 1200 draws, for the groups log_likelihood and "
        "posterior_predictive, takes 19.2 GB of memory, and 1 GB are available; give fewer rows, "
        "or name the other groups alone in only=."
    )
    assert peak < 1e8
    small = linear.to_arviz(rows, np.zeros(n), only=["posterior", "observed_data"])
    assert groups(small) == {"posterior", "observed_data"}


@pytest.mark.parametrize("method", ["log_likelihood", "posterior_mean_draws", "sample_y"])
def test_arrays_of_rows_and_draws_are_refused_before_their_memory_is_taken(
    method, linear, monkeypatch
):
    monkeypatch.setattr(_memory, "available_memory", lambda: 10**9)
    n = 200_000
    rows = pd.DataFrame(np.zeros((n, 2)), columns=X.columns)
    more = {"log_likelihood": (np.zeros(n),), "posterior_mean_draws": (), "sample_y": (1200,)}
    with pytest.raises(MemoryError, match=r"^X has 200000 rows, and a result of shape \(200000"):
        getattr(linear, method)(rows, *more[method])


def test_available_memory_is_no_more_than_that_of_the_machine():
    free = _memory.available_memory()
    assert free is None or 2**20 < free < 2**50


# ---- the libraries ----------------------------------------------------------------------------


def test_the_container_is_that_of_the_installed_arviz(linear, monkeypatch):
    kind = "DataTree" if NEW else "InferenceData"
    assert type(linear.to_arviz()).__name__ == kind
    monkeypatch.setattr(module, "version", lambda name: "1.0.0")
    tree = linear.to_arviz(X, Y)
    assert type(tree).__name__ == "DataTree"
    np.testing.assert_array_equal(tree["observed_data/y"], Y)


def test_without_the_libraries_the_extra_is_named(linear, monkeypatch):
    monkeypatch.setitem(sys.modules, "xarray", None)
    with pytest.raises(ImportError, match=r'pip install "skbayes-sgld\[arviz\]"'):
        linear.posterior_.to_xarray()


def test_a_file_holds_it_all(softmax, tmp_path):
    for name in ("h5netcdf", "h5py"):
        pytest.importorskip(name, reason="what ArviZ writes files by")
    import arviz as az

    given = softmax.to_arviz(X, LABELS)
    given.to_netcdf(tmp_path / "softmax.nc", engine="h5netcdf")
    read = az.from_netcdf(tmp_path / "softmax.nc", engine="h5netcdf")
    np.testing.assert_array_equal(read["posterior"]["coef"], given["posterior"]["coef"])
    assert groups(read) == groups(given)

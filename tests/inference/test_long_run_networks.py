"""Networks that stop and go on: bit-identical draws, and what ends a run by itself."""

import time

import joblib
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from skbayes_sgld import SGLDMLPClassifier, SGLDMLPRegressor
from skbayes_sgld.diagnostics import effective_sample_size
from skbayes_sgld.inference import checkpoint as files
from skbayes_sgld.inference import ensemble, long_run
from tests.sharing import share_after

RNG = np.random.default_rng(0)
X = RNG.standard_normal((40, 2))
Y = np.sin(X[:, 0]) + X[:, 1] + 0.3 * RNG.standard_normal(40)
SHORT = {"n_draws": 60, "n_burnin": 40, "thin": 3, "n_chains": 2, "random_state": 0}
LINEAR = SHORT | {"hidden_layer_sizes": (), "noise_variance": 0.1, "n_draws": 100, "thin": 8}
CASES = {
    "velocity": (SGLDMLPClassifier(hidden_layer_sizes=(4,), **SHORT), KeyboardInterrupt, [1, 2]),
    "batches": (SGLDMLPRegressor(hidden_layer_sizes=4, batch_size=7, **SHORT), MemoryError, [1]),
}
# the runs are short or stopped early, and fit says so
pytestmark = pytest.mark.filterwarnings("ignore:The draws are not to be relied on")
assert_equal = np.testing.assert_array_equal


def target(model):
    return Y if isinstance(model, SGLDMLPRegressor) else np.digitize(Y, [-0.5, 0.5])


@pytest.mark.parametrize("case", CASES)
def test_a_network_that_was_stopped_goes_on_to_the_same_draws(
    case, often, stops, tmp_path, monkeypatch
):
    model, error, jobs = CASES[case]
    y, path = target(model), tmp_path / "run"
    whole = clone(model).fit(X, y)
    stops(error)
    stopped = clone(model).set_params(checkpoint=path)
    match = r"resume_from='.*run' goes on from \d+ dr" if error is KeyboardInterrupt else None
    with pytest.raises(error, match=match):
        stopped.fit(X, y)
    assert vars(stopped).keys() == stopped.get_params(deep=False).keys()
    monkeypatch.undo()
    saved = files.read(path)
    assert not saved.finished and 0 < saved.chains.draws.shape[1] < 50
    for n_jobs in jobs:
        share_after(0.0, monkeypatch)
        resumed = clone(model).set_params(resume_from=path, n_jobs=n_jobs)
        with joblib.parallel_config(backend="threading"):
            resumed.fit(X, y)
        assert_equal(resumed.posterior_.values, whole.posterior_.values)
        assert repr(resumed.posterior_) == repr(whole.posterior_)
        assert_equal(resumed.diagnose().figures["r_hat"], whole.diagnose().figures["r_hat"])


def test_a_network_without_a_seed_goes_on_with_that_of_the_file(tmp_path):
    path = tmp_path / "run"
    model = SGLDMLPRegressor(hidden_layer_sizes=(3,), **SHORT).set_params(random_state=None)
    first = clone(model).set_params(n_draws=20, checkpoint=path).fit(X, Y).posterior_.values
    assert files.read(path).finished
    for _ in range(2):
        longer = clone(model).set_params(checkpoint=path, resume_from=path).fit(X, Y)
        assert_equal(longer.posterior_.values[:, :20], first)
    assert longer.posterior_.values.shape[1] == 60


def test_other_networks_and_other_data_are_refused_by_name(tmp_path, monkeypatch):
    path = tmp_path / "run"
    model = SGLDMLPRegressor(hidden_layer_sizes=(3,), **SHORT, checkpoint=path).fit(X, Y)
    resumed = clone(model).set_params(checkpoint=None, resume_from=path)
    for rows, y, weight, match in [
        (X + 1.0, Y, None, r"another X: both are arrays \(40, 2\)"),  # the same standardised
        (X, 2.0 * Y, None, r"another y: both are arrays \(40,\)"),
        (X, Y, np.full(40, 2.0), "another sample_weight: None there"),
    ]:
        with pytest.raises(ValueError, match=match):
            clone(resumed).fit(rows, y, sample_weight=weight)
    with pytest.raises(ValueError, match=r"another hidden_layer_sizes: \(3,\) there, \(2,\) here"):
        clone(resumed).set_params(hidden_layer_sizes=(2,)).fit(X, Y)
    # other metrics, as by other libraries, show in the first steps
    monkeypatch.setattr(ensemble, "_BOUND", 1e-3)
    with pytest.raises(ValueError, match="the same settings lead to other numbers here"):
        clone(resumed).fit(X, Y)


def test_an_interrupt_of_the_training_says_that_nothing_was_written(tmp_path, monkeypatch):
    def interrupt(*args, **how):
        raise KeyboardInterrupt

    monkeypatch.setattr(ensemble, "train", interrupt)
    model = SGLDMLPRegressor(**SHORT, checkpoint=tmp_path / "run")
    with pytest.raises(KeyboardInterrupt, match="nothing was written to checkpoint='.*run' yet"):
        model.fit(X, Y)
    with pytest.raises(KeyboardInterrupt, match="^$"):
        clone(model).set_params(checkpoint=None).fit(X, Y)


# ---- what ends a run by itself -----------------------------------------------------------------


def test_the_time_is_kept_and_the_network_goes_on_another_time(tmp_path, monkeypatch):
    # on a busy machine the training alone takes longer, which is the error of the next test
    monkeypatch.setattr("skbayes_sgld.inference.run.monotonic", lambda: -np.inf)
    path = tmp_path / "run"
    model = SGLDMLPRegressor(**LINEAR | {"n_draws": 10**6}, max_time=0.3, checkpoint=path)
    begin = time.perf_counter()
    model.fit(X, Y)
    n_draws = model.posterior_.values.shape[1]
    assert 0 < n_draws < 10**6 and time.perf_counter() - begin < 20.0
    assert model.summary().attrs["stopped_by"] == "max_time"
    assert f"0.3 s were up after {n_draws} draws" in model.posterior_.choices["stopped_by"].why
    rest = clone(model).set_params(n_draws=n_draws + 5, resume_from=path, max_time=None).fit(X, Y)
    whole = clone(rest).set_params(resume_from=None, checkpoint=None).fit(X, Y)
    assert_equal(rest.posterior_.values, whole.posterior_.values)
    assert_equal(rest.posterior_.values[:, :n_draws], model.posterior_.values)


def test_time_that_is_up_in_the_training_is_an_error():
    model = SGLDMLPRegressor(**SHORT | {"n_burnin": 10**6}, max_time=0.05)
    begin = time.perf_counter()
    with pytest.raises(ValueError, match=r"max_time=0.05 was up before the first draw"):
        model.fit(X, Y)
    assert time.perf_counter() - begin < 20.0
    assert vars(model).keys() == model.get_params(deep=False).keys()


def predictions_ess(model, n_draws):
    """Effective sample size that 95 % of the predictions exceed, of the first draws."""
    values = model.posterior_.values[:, :n_draws]
    # no hidden layer, and the noise is fixed: the bias is last
    outputs = values[..., :-1] @ X.T + values[..., -1:]
    return np.quantile(effective_sample_size(outputs), 0.05)


def test_draws_are_made_until_the_predictions_have_their_effective_number():
    model = SGLDMLPRegressor(**LINEAR, target_ess=80).fit(X, Y)
    n_draws = model.posterior_.values.shape[1]
    assert model.posterior_.names[-1].startswith("bias") and n_draws < 500
    assert model.summary().attrs["stopped_by"] == "target_ess"
    assert predictions_ess(model, n_draws) >= 80
    before = max(n for n in long_run.looks(100, 80) if n < n_draws)
    assert predictions_ess(model, before) < 80
    assert model.diagnose().ess == pytest.approx(predictions_ess(model, n_draws))


def test_a_target_that_the_predictions_do_not_reach_is_told():
    model = SGLDMLPRegressor(**LINEAR | {"n_draws": 5}, target_ess=1e5)
    with pytest.warns(ConvergenceWarning, match=r"target_ess=100000 is not reached by 10 n_draws"):
        model.fit(X, Y)
    assert model.posterior_.values.shape[1] == 50
    assert model.summary().attrs["stopped_by"] == "cap"
    assert any("not reached" in problem for problem in model.diagnose(X[:5]).problems)


@pytest.mark.parametrize(
    ("name", "value", "error"),
    [("max_time", 0, ValueError), ("target_ess", "1", TypeError), ("checkpoint", True, TypeError)],
)
def test_limits_and_files_that_are_none_are_refused(name, value, error):
    model = SGLDMLPRegressor(**SHORT, **{name: value})
    with pytest.raises(error, match=f"{name}={value!r}"):
        model.fit(X, Y)
    assert vars(model).keys() == model.get_params(deep=False).keys()

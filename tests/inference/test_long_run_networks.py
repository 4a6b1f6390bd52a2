"""Networks that stop and go on, beside the bit-identical draws of ``test_long_run``."""

import time

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from skbayes_sgld import SGLDMLPRegressor
from skbayes_sgld.diagnostics import effective_sample_size
from skbayes_sgld.inference import checkpoint as files
from skbayes_sgld.inference import ensemble
from skbayes_sgld.inference import run as running

RNG = np.random.default_rng(0)
X = RNG.standard_normal((40, 2))
Y = np.sin(X[:, 0]) + X[:, 1] + 0.3 * RNG.standard_normal(40)
SHORT = {"n_draws": 60, "n_burnin": 40, "thin": 3, "n_chains": 2, "random_state": 0}
LINEAR = SHORT | {"hidden_layer_sizes": (), "noise_variance": 0.1, "n_draws": 100, "thin": 8}
# the runs are short or stopped early, and fit says so
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def test_a_network_without_a_seed_goes_on_with_that_of_the_file(tmp_path):
    path = tmp_path / "run"
    model = SGLDMLPRegressor(hidden_layer_sizes=(3,), **SHORT).set_params(random_state=None)
    first = clone(model).set_params(n_draws=20, checkpoint=path).fit(X, Y).posterior_.values
    assert files.read(path).finished
    for _ in range(2):
        longer = clone(model).set_params(checkpoint=path, resume_from=path).fit(X, Y)
        np.testing.assert_array_equal(longer.posterior_.values[:, :20], first)
    assert longer.posterior_.values.shape[1] == 60


def test_other_networks_and_other_data_are_refused_by_name(tmp_path, monkeypatch):
    path = tmp_path / "run"
    model = SGLDMLPRegressor(hidden_layer_sizes=(3,), **SHORT, checkpoint=path).fit(X, Y)
    resumed = clone(model).set_params(checkpoint=None, resume_from=path)
    with pytest.raises(ValueError, match=r"another X: both are arrays \(40, 2\)"):
        clone(resumed).fit(X + 1.0, Y)  # standardised they are the same
    with pytest.raises(ValueError, match="another sample_weight: None there"):
        clone(resumed).fit(X, Y, sample_weight=np.full(40, 2.0))
    with pytest.raises(ValueError, match=r"another hidden_layer_sizes: \(3,\) there, \(2,\) here"):
        clone(resumed).set_params(hidden_layer_sizes=(2,)).fit(X, Y)
    # other metrics, as by other libraries, show in the first steps
    monkeypatch.setattr(ensemble, "_BOUND", 1e-3)
    with pytest.raises(ValueError, match="the same settings lead to other numbers here"):
        clone(resumed).fit(X, Y)


# ---- what ends a run by itself -----------------------------------------------------------------


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
    model = SGLDMLPRegressor(**LINEAR | {"thin": 3}, target_ess=60).fit(X, Y)
    n_draws = model.posterior_.values.shape[1]
    assert model.posterior_.names[-1].startswith("bias") and n_draws < 500
    assert model.summary().attrs["stopped_by"] == "target_ess"
    assert predictions_ess(model, n_draws) >= 60
    before = max(n for n in running.stopping_points(100, 60) if n < n_draws)
    assert predictions_ess(model, before) < 60
    assert model.diagnose().ess == pytest.approx(predictions_ess(model, n_draws))


def test_a_target_that_the_predictions_do_not_reach_is_told():
    model = SGLDMLPRegressor(**LINEAR | {"n_draws": 5}, target_ess=1e5)
    with pytest.warns(ConvergenceWarning, match=r"target_ess=100000 is not reached by 10 n_draws"):
        model.fit(X, Y)
    assert model.posterior_.values.shape[1] == 50
    assert model.summary().attrs["stopped_by"] == "cap"
    assert any("not reached" in problem for problem in model.diagnose(X[:5]).problems)

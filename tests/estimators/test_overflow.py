"""Steps that overflow: the error names the step, the chain and a step size that holds."""

import re

import joblib
import numpy as np
import pytest

from skbayes_sgld import SGLDLinearRegression
from tests.inputs.refusals import refuse
from tests.sharing import share_after

# 100 draws are too few for the summaries to be relied on, and the estimators say so
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

N, D = 60, 3
X = np.random.default_rng(0).standard_normal((N, D))
Y = X @ [1.0, -2.0, 0.5] + np.random.default_rng(1).standard_normal(N)
SHORT = {"n_draws": 100, "n_chains": 2, "random_state": 0}
CLIMB = {"max_iter": 200, "random_state": 0}


TEN = {"step_size": 10.0, "n_chains": 4}
OVERFLOWS = {
    # where the minibatches' noise, not the curvature, is what a chain cannot stand
    "one row": {**TEN, "step_size": 0.9, "gradient": "control_variate", "batch_size": 1},
    # the log of the noise variance stays finite, the noise variance does not
    "noise": {**TEN, "preconditioner": "curvature"},
}


@pytest.mark.parametrize("kind", OVERFLOWS)
def test_an_overflow_names_step_parameter_chain_and_a_step_size_that_holds(kind):
    params = OVERFLOWS[kind]
    match = (
        f"step_size={re.escape(format(params['step_size'], 'g'))}: "
        r"chain (\d) overflowed at step (\d+) in (\S+)\. "
        r"With step_size=(\S+) a run of (\d+) steps did not overflow.*step_size='auto'"
    )
    model = SGLDLinearRegression(**SHORT | params)
    said = refuse(model, match, X, Y)
    _, _, parameter, shorter, n_steps = re.search(match, said).groups()
    assert float(shorter) < params["step_size"]
    as_tried = {"n_burnin": 0, "n_draws": 1, "thin": int(n_steps)}
    model.set_params(step_size=float(shorter), **as_tried).fit(X, Y)
    assert np.isfinite(model.posterior_.values).all()
    assert parameter.replace("log_", "") in model.posterior_.names


def test_an_optimizer_that_overflows_names_a_step_size_that_holds():
    from skbayes_sgld import SGDMAPRegressor

    match = (
        r"step_size=50: the optimizer overflowed at step \d+ in (\S+)\. "
        r"With step_size=(\S+) a run of (\d+) steps did not"
    )
    params = {"step_size": 50.0, "schedule": "constant", "noise_variance": 1.0, "max_iter": 100}
    said = refuse(SGDMAPRegressor(**CLIMB | params), match, X, Y)
    parameter, shorter, n_steps = re.search(match, said).groups()
    as_tried = {"step_size": float(shorter), "max_iter": int(n_steps)}
    model = SGDMAPRegressor(**CLIMB | params | as_tried).fit(X, Y)
    assert np.isfinite(model.coef_path_).all() and parameter in model.posterior_.names


def test_an_overflow_names_the_same_chain_whatever_the_number_of_jobs(monkeypatch):
    share_after(0.0, monkeypatch)
    model = SGLDLinearRegression(n_chains=4, preconditioner=None, noise_variance=1.0)
    for seed in range(50):  # look for a run in which a chain of the second half is the first
        model.set_params(n_burnin=0, thin=1, step_size=0.0316, n_draws=4000, random_state=seed)
        with pytest.raises(ValueError, match="overflowed") as raised:
            model.fit(X, Y)
        chain, step = re.search(r"chain (\d) overflowed at step (\d+)", str(raised.value)).groups()
        if int(chain) >= 2:
            break
    model.set_params(n_draws=int(step) + 1, n_jobs=2)  # and no other chain overflows before it
    with joblib.parallel_config(backend="threading"), pytest.raises(ValueError, match=f"n {chain}"):
        model.fit(X, Y)

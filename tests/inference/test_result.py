"""Results of a fit: pickles, warnings, repeated calls, overflows."""

import pickle
import re
from copy import deepcopy

import numpy as np
import pandas as pd
import pytest

import skbayes_sgld
from skbayes_sgld import SGLDLinearRegression, SGLDLogisticRegression

RNG = np.random.default_rng(0)
X = RNG.standard_normal((60, 3))
LABELS = (X @ [1.0, -2.0, 0.0] + RNG.logistic(size=60) > 0).astype(int)
TARGET = X @ [1.0, -2.0, 0.0] + RNG.standard_normal(60)
# the runs are too short for usable draws, and fit says so
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def test_copies_remember_the_temperature_and_not_the_data():
    model = SGLDLogisticRegression(sampler="sgld", temperature=4.0, random_state=0).fit(X, LABELS)
    before = model.diagnose()
    # tempering a near-normal posterior widens it as it widens its Laplace approximation
    assert abs(before.width) < 0.5
    for copied in (deepcopy(model), pickle.loads(pickle.dumps(model))):
        after = copied.diagnose()
        assert (before.shift, before.width) == (after.shift, after.width)
        assert after.usable and np.isnan(after.acceptance) and not np.isnan(before.acceptance)


def test_the_energy_is_measured_when_asked_for_and_kept_by_copies():
    model = SGLDLogisticRegression(sampler="hmc", random_state=0).fit(X, LABELS)
    assert "energy" not in vars(model.result_)  # a pass over the rows for some of the draws
    copied = pickle.loads(pickle.dumps(model))
    # the posterior is nearly normal, and the fraction of its missing information near 1 / 2
    assert 0.35 < copied.result_.energy.bfmi < 0.65
    assert copied.result_.energy == model.result_.energy
    assert "E-BFMI" in str(copied.diagnose())


def test_two_calls_of_sample_posterior_agree_under_a_decaying_schedule():
    settings = {"schedule": "polynomial", "n_draws": 60, "random_state": 3}
    model = SGLDLinearRegression(**settings).fit(X, TARGET)
    assert model.posterior_.weights is not None
    first, second = model.sample_posterior(50), model.sample_posterior(50)
    np.testing.assert_array_equal(first.coef, second.coef)
    other = model.sample_posterior(50, random_state=4)
    assert not np.array_equal(first.coef, other.coef)


def gamma(grad):
    """Gamma(3, 2) with a gradient of the caller's."""
    from skbayes_sgld.own_models import FunctionPosterior

    return FunctionPosterior(
        lambda x: (2 * np.log(x) - 2 * x)[:, 0],
        grad,
        n_params=1,
        transforms={"theta[0]": "positive"},
    )


def test_an_overflow_claims_no_step_size_where_none_was_seen_to_run():
    calls = []

    def grad(x):
        calls.append(1)  # the check at the start passes, no step does
        return np.zeros_like(x) if len(calls) == 1 else np.full_like(x, np.nan)

    with pytest.raises(ValueError, match="overflowed") as raised:
        skbayes_sgld.sample(
            gamma(grad), "sgld", step_size=0.1, check_gradient=False, init=[1.0], n_draws=50
        )
    assert "did not overflow" not in str(raised.value)
    assert "density and its gradient are finite" in str(raised.value)
    least = float(re.search(r"were tried, down to (\S+)\. ", str(raised.value))[1])
    assert 1e-15 < least < 1e-12  # from 0.1; no steps are tried that change nothing


def test_automatic_settings_are_not_advised_where_they_are_in_force():
    with pytest.raises(ValueError, match="overflowed") as raised:
        skbayes_sgld.sample(
            gamma(lambda x: 2 / x - 2 + 1e200 * (x > 2)), "sgld", check_gradient=False
        )
    assert "set step_size='auto'" not in str(raised.value)


def test_weights_too_small_to_tell_the_noise_are_named_and_not_the_temperature():
    match = "rows count as 1 in all; check sample_weight"
    with pytest.warns(UserWarning, match="sample_weight"), pytest.raises(ValueError, match=match):
        model = SGLDLinearRegression(prior="conjugate_normal", random_state=0)
        model.fit(X, TARGET, np.full(60, 1 / 60))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("verbose", -1),
        ("warm_start", "yes"),
        ("parameterization", "funnel"),
        ("noise_prior", "half_flat"),
    ],
)
def test_settings_that_are_not_used_are_checked_too(name, value):
    with pytest.raises((ValueError, TypeError), match=f"{name}="):
        SGLDLinearRegression(noise_variance=1.0, **{name: value}).fit(X, TARGET)


def test_the_draws_are_a_mapping_of_names():
    frame = pd.DataFrame(X, columns=["age", "points", "log_noise_variance"])
    model = SGLDLogisticRegression(n_draws=20, random_state=0).fit(frame, LABELS)
    names = [*(f"coef[{column}]" for column in frame), "intercept"]
    for draws in (model.posterior_, model.result_):
        assert list(draws) == names
        assert "coef[age]" in draws and "coef" in draws
        assert "age" not in draws and 0 not in draws and "coef[" not in draws
        np.testing.assert_array_equal(draws["coef"], draws.values[..., :3])
        np.testing.assert_array_equal(draws["coef[points]"], draws.values[..., 1])
        np.testing.assert_array_equal(dict(draws)["intercept"], draws.values[..., 3])
        with pytest.raises(KeyError, match=r"'age' is not a parameter; there are coef\[age\]"):
            draws["age"]

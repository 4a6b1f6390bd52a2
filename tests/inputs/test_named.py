"""Inputs that once ended in silence, in a warning of NumPy's or in an error without a name."""

import re
from copy import copy

import numpy as np
import pandas as pd
import pytest
from sklearn.base import is_classifier

import skbayes_sgld
from skbayes_sgld import (
    BayesByBackpropClassifier,
    BayesByBackpropRegressor,
    SGDMAPClassifier,
    SGDMAPRegressor,
    SGLDLinearRegression,
    SGLDLogisticRegression,
    SGLDMLPRegressor,
    SGLDPoissonRegressor,
)
from skbayes_sgld.datasets import make_cubic

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

RNG = np.random.default_rng(0)
X = RNG.standard_normal((30, 3))
Y = X @ [1.0, -2.0, 0.5] + RNG.standard_normal(30)
FEW = {
    "SGDMAP": {"max_iter": 20},
    "SGLDMLP": {"hidden_layer_sizes": (2,), "n_draws": 20, "n_burnin": 20, "thin": 1},
    "BayesByBackprop": {"hidden_layer_sizes": (2,), "max_iter": 20, "n_draws": 20},
    "SGLD": {"n_draws": 20, "n_chains": 2},
}
EVERY = [
    getattr(skbayes_sgld, name)
    for name in skbayes_sgld.__all__
    if hasattr(getattr(skbayes_sgld, name), "fit")
]
LINEAR = [cls for cls in EVERY if "MLP" not in cls.__name__ and "Backprop" not in cls.__name__]
every_class = pytest.mark.parametrize("cls", EVERY, ids=lambda cls: cls.__name__)
every_linear = pytest.mark.parametrize("cls", LINEAR, ids=lambda cls: cls.__name__)


def make(cls, **params):
    few = next(values for start, values in FEW.items() if cls.__name__.startswith(start))
    return cls(**{"random_state": 0, **few, **params})


def target(cls, y=Y):
    if is_classifier(cls()):
        return y > 0
    return np.rint(np.abs(y)) if cls is SGLDPoissonRegressor else y


def refuse(model, match, X=X, y=None, weight=None, error=(ValueError, TypeError)):
    before = copy(vars(model))
    with pytest.raises(error, match=match):
        model.fit(X, target(type(model)) if y is None else y, weight)
    assert vars(model).keys() == before.keys()
    assert all(vars(model)[name] is before[name] for name in before)


# ---- sizes whose squares leave the range of numbers --------------------------------------------

SIZES = [1e-320, 1e-300, 1e-150, 1e150, 1e300]


@every_linear
@pytest.mark.parametrize("size", SIZES)
def test_columns_of_such_sizes_are_refused_by_their_names(cls, size):
    frame = pd.DataFrame(X, columns=["age", "height", "weight"])
    frame["height"] *= size
    refuse(make(cls), r"column 'height' of X has values of size .*in \[1e-50, 1e\+50\]", frame)
    refuse(make(cls), r"column 1 of X has values of size", frame.to_numpy())


@pytest.mark.parametrize("size", SIZES)
def test_targets_of_such_sizes_are_refused(size):
    for cls in (SGLDLinearRegression, SGDMAPRegressor):
        refuse(make(cls), r"y has values of size .*in \[1e-50, 1e\+50\]", y=Y * size)
    counts = np.abs(Y) * size
    refuse(make(SGLDPoissonRegressor), r"y has values of size .*in \[1e-20, 1e\+20\]", y=counts)


@pytest.mark.parametrize("cls", [SGLDLinearRegression, SGDMAPRegressor])
def test_extreme_sizes_within_the_range_change_nothing_but_units(cls):
    plain = make(cls).fit(X, Y)
    large, small = 2.0**160, 2.0**-160  # 1.5e48, exactly
    for of_x, of_y in ((large, 1.0), (small, large), (small, small), (large, small)):
        model = make(cls).fit(X * of_x, Y * of_y)
        np.testing.assert_allclose(model.coef_ * (of_x / of_y), plain.coef_, rtol=1e-6)
        std = model.predict(X * of_x, return_std=True)[1]
        np.testing.assert_allclose(std / of_y, plain.predict(X, return_std=True)[1], rtol=1e-6)
        assert np.isfinite(model.summary().to_numpy()[:, :2]).all()


@every_linear
def test_new_rows_of_such_sizes_are_refused(cls):
    model = make(cls).fit(X, target(cls))
    with pytest.raises(ValueError, match="column 0 of X has values of size 1e"):
        model.predict(np.full((1, 3), 1e300))


@pytest.mark.parametrize("weight", [1e-300, 1e-30, 1e30, 1e300])
def test_weights_that_count_no_rows_are_refused(weight):
    for cls in (SGLDLogisticRegression, SGDMAPClassifier):
        by_class = {False: 1.0, True: weight}
        refuse(make(cls, class_weight=by_class), r"class_weight=\{.* 0 or in \[1e-20, 1e\+20\]")
        refuse(make(cls), r"sample_weight gives .* 0 or in", weight=np.full(30, weight))


@every_class
@pytest.mark.parametrize("temperature", [1e-300, 1e-30, 1e30, 1e300])
def test_temperatures_that_floats_cannot_follow_are_refused(cls, temperature):
    if "temperature" in cls().get_params():
        match = rf"temperature={re.escape(repr(temperature))}.* in \[1e-15, 1e\+15\]"
        refuse(make(cls, temperature=temperature), match)


def test_a_laplace_approximation_beyond_the_range_of_numbers_names_the_temperature():
    model = make(SGDMAPRegressor, temperature=1e8)
    refuse(model, r"temperature=1e\+08 the draws of noise_variance leave the range")


def test_two_rows_without_a_prior_of_weight_are_refused_and_with_one_are_fitted():
    refuse(make(SGLDLinearRegression), "noise_prior='half_normal'", X[:2], Y[:2])
    model = make(SGLDLinearRegression, noise_prior="half_normal").fit(X[:2], Y[:2])
    assert np.isfinite(model.predict(X, return_std=True)).all()


# ---- arguments that were not named --------------------------------------------------------------


@pytest.mark.parametrize("activation", [[], {}, None, 3, "sin"])
def test_an_activation_is_one_of_two_names(activation):
    refuse(make(SGLDMLPRegressor, activation=activation), r"activation=.*'relu', 'tanh'")


@every_class
@pytest.mark.parametrize("n_jobs", [1.5, [], "all", 0])
def test_a_number_of_jobs_is_a_whole_number(cls, n_jobs):
    if "n_jobs" in cls().get_params():
        refuse(make(cls, n_jobs=n_jobs), f"n_jobs={re.escape(repr(n_jobs))}")


@every_class
@pytest.mark.parametrize("seed", [-1, 2**32, 2**64, 1.5, np.inf, "a", [], [-1]])
def test_a_seed_is_named_with_its_range(cls, seed):
    refuse(make(cls, random_state=seed), r"random_state=.*in \[0, 2\*\*32 - 1\]")


@pytest.mark.parametrize("seed", [-1, 1.5, "a"])
def test_a_seed_is_named_wherever_it_is_given(seed):
    model = make(SGLDLinearRegression).fit(X, Y)
    calls = [
        lambda: model.sample_y(X, random_state=seed),
        lambda: model.sample_posterior(3, random_state=seed),
        lambda: model.sample_prior(X, random_state=seed),
        lambda: skbayes_sgld.sample_y(model, X, random_state=seed),
        lambda: make_cubic(random_state=seed),
    ]
    for call in calls:
        with pytest.raises((ValueError, TypeError), match=r"random_state=.*in \[0, 2\*\*32 - 1\]"):
            call()


@every_linear
@pytest.mark.parametrize("wanted", [True, False])
def test_a_numpy_bool_for_the_intercept_beside_named_columns(cls, wanted):
    frame = pd.DataFrame(X, columns=list("abc"))
    y = target(cls)
    model = make(cls, fit_intercept=np.bool_(wanted)).fit(frame, y)
    expected = make(cls, fit_intercept=wanted).fit(frame, y)
    assert model.posterior_.names == expected.posterior_.names
    np.testing.assert_array_equal(model.posterior_.values, expected.posterior_.values)


@pytest.mark.parametrize("step_size", [1e3, 1e300])
@pytest.mark.parametrize("cls", [BayesByBackpropRegressor, BayesByBackpropClassifier])
def test_an_approximation_that_overflows_names_its_step_size(cls, step_size):
    refuse(make(cls, step_size=step_size), "step_size=.*overflowed.*smaller step_size")


# ---- labels ---------------------------------------------------------------------------------

LABELS = {
    "bytes": (b"no", b"yes"),
    "mixed": (1, "yes"),
    "none": (None, "yes"),
    "complex": (1j, 2j),
    "sets": (frozenset([1]), frozenset([2])),
}


@pytest.mark.parametrize("kind", LABELS)
@pytest.mark.parametrize("cls", [SGLDLogisticRegression, SGDMAPClassifier])
def test_labels_that_have_no_order_are_refused(cls, kind):
    no, yes = LABELS[kind]
    labels = np.empty(30, dtype=object)
    labels[:] = [yes if value > 0 else no for value in Y]
    refuse(make(cls), r"\by\b.*(string|label)", y=labels)
    if kind == "bytes":
        refuse(make(cls), r"\by\b.*string", y=labels.astype("S"))

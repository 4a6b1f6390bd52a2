"""The default prior="auto": what is chosen, and that the plan tells it."""

import numpy as np
import pytest

from skbayes_sgld import SGLDLinearRegression, SGLDLogisticRegression, SGLDPoissonRegressor
from skbayes_sgld.inference.automatic_prior import choose_prior
from skbayes_sgld.likelihoods import Bernoulli, Categorical, NormalNoise, Ordinal, Poisson
from skbayes_sgld.sampling.tuning.thresholds import THRESHOLDS

D = 4
MANY, FEW = int(THRESHOLDS.few_rows_each * D), int(THRESHOLDS.few_rows_each * D) - 1
SHORT = {"n_draws": 20, "random_state": 0}
# the runs are too short for usable draws, and fit says so
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def data(n, kind="linear"):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, D))
    eta = X @ [1.0, -1.0, 0.5, 0.0]
    y = {
        "linear": eta + rng.standard_normal(n),
        "counts": rng.poisson(np.exp(0.5 * eta)).astype(float),
        "classes": (eta + rng.logistic(size=n) > 0).astype(int),
    }
    return X, y[kind]


MODELS = {
    "linear": SGLDLinearRegression,
    "counts": SGLDPoissonRegressor,
    "classes": SGLDLogisticRegression,
}


@pytest.mark.parametrize(
    "kind, n, expected",
    [
        ("linear", MANY, "normal"),
        ("linear", FEW, "hierarchical_normal"),
        ("counts", FEW, "hierarchical_normal"),
        ("classes", FEW, "hierarchical_normal"),
    ],
)
def test_the_fit_is_that_of_the_prior_by_its_name_and_the_plan_tells_it(kind, n, expected):
    X, y = data(n, kind)
    model = MODELS[kind](**SHORT).fit(X, y)
    choice = model.result_.plan.choices["prior"]
    assert choice.value == expected
    assert f"{n / D:.3g} rows a column" in choice.why
    assert str(model.result_.plan).split()[:2] == ["prior", expected]
    assert model.get_params()["prior"] == "auto"
    named = MODELS[kind](**SHORT | {"prior": expected}).fit(X, y)
    assert named.result_.plan.choices["prior"].given
    np.testing.assert_array_equal(model.posterior_.values, named.posterior_.values)
    assert type(model.prior_) is type(named.prior_)


def chosen(model):
    return model.result_.plan.choices["prior"].value


def test_a_scale_is_learned_of_as_many_parameters_as_take_little_time():
    most = THRESHOLDS.learned_parameters

    def of(shape, likelihood):
        return choose_prior(shape, likelihood, float(shape[0])).value

    assert of((most, 3000), Bernoulli()) == of((most + 1, most), Poisson()) == "hierarchical_normal"
    assert of((most + 1, 3000), Bernoulli()) == of((most, most), Categorical(3)) == "normal"
    assert of((3000, 10_000), NormalNoise()) == "hierarchical_normal"
    assert of((4001, 10_000), NormalNoise()) == "normal"


def test_several_classes_count_the_rows_for_each_free_coefficient():
    def of(n, likelihood):
        return choose_prior((n, D), likelihood, float(n)).value

    for n_classes in (3, 7):
        enough = 2 * MANY * (n_classes - 1)
        assert of(enough, Categorical(n_classes)) == "normal"
        assert of(enough - 1, Categorical(n_classes)) == "hierarchical_normal"
    assert of(2 * MANY, Ordinal(7)) == of(MANY, Categorical(2)) == "normal"  # one is free
    assert of(2 * MANY - 1, Ordinal(3)) == "hierarchical_normal"


def test_a_row_counts_as_its_weight_or_its_trials():
    X, y = data(FEW)
    assert chosen(SGLDLinearRegression(**SHORT).fit(X, y, np.full(FEW, 2.0))) == "normal"
    y = data(FEW, "classes")[1]
    twice = np.full(FEW, 2)
    assert chosen(SGLDLogisticRegression(**SHORT).fit(X, 2 * y, n_trials=twice)) == "normal"
    X, y = data(MANY)
    light = SGLDLinearRegression(**SHORT).fit(X, y, np.full(MANY, 0.9))
    assert chosen(light) == "hierarchical_normal"


@pytest.mark.parametrize("n", [FEW, MANY])
def test_rows_in_blocks_have_the_prior_of_the_array(n):
    from skbayes_sgld.blocks import RowBlocks

    X, y = data(n)
    blocks = RowBlocks(lambda: [(X[:7], y[:7]), (X[7:], y[7:])])
    models = (SGLDLinearRegression(**SHORT) for _ in range(2))
    of_blocks, of_array = next(models).fit(blocks), next(models).fit(X, y)
    assert chosen(of_blocks) == chosen(of_array)


@pytest.mark.parametrize(
    "settings",
    [
        {"preconditioner": None, "step_size": 1e-3, "thin": 1},
        {"gradient": "minibatch", "batch_size": 10},
        {"parameterization": "centered"},
        {"noise_model": "log_linear"},
        {"temperature": 0.5},
    ],
    ids=lambda settings: next(iter(settings)),
)
def test_a_scale_is_not_learned_where_a_setting_is_of_the_coefficients(settings):
    model = SGLDLinearRegression(**SHORT, **settings).fit(*data(FEW))
    choice = model.result_.plan.choices["prior"]
    assert choice.value == "normal" and "but" in choice.why


def test_a_stream_keeps_the_prior_of_its_first_batch():
    X, y = data(MANY)
    model = SGLDLinearRegression(**SHORT)
    for rows in (slice(None, 8), slice(8, None)):
        assert chosen(model.partial_fit(X[rows], y[rows])) == "normal"


def test_a_fit_forgets_the_choice_of_the_last_one():
    model = SGLDLinearRegression(**SHORT).fit(*data(FEW))
    assert chosen(model.fit(*data(MANY))) == "normal"
    model.set_params(prior="laplace").fit(*data(FEW))
    assert chosen(model) == "laplace"


def test_outputs_have_one_prior():
    X, y = data(FEW)
    model = SGLDLinearRegression(**SHORT).fit(X, np.column_stack([y, y**2]))
    assert model.posterior_.choices["prior"].value == "hierarchical_normal"


def test_prior_predictive_draws_before_the_fit_are_of_the_prior_that_it_takes():
    X, y = data(FEW)
    proper = {"intercept_prior": "normal", "noise_prior": "half_normal"}
    model = SGLDLinearRegression(**SHORT, **proper)
    before = dict(vars(model))
    drawn = model.sample_prior(X, 50, y=y)
    assert vars(model) == before
    named = SGLDLinearRegression(**SHORT | {"prior": "hierarchical_normal"}, **proper)
    np.testing.assert_array_equal(drawn, named.sample_prior(X, 50, y=y))
    np.testing.assert_allclose(model.fit(X, y).sample_prior(X, 50), drawn)

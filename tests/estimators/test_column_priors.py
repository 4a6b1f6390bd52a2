"""Priors of single columns: truth by other means, names, parameters and errors."""

import pickle

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skbayes_sgld import (
    SGLDLinearRegression,
    SGLDLogisticRegression,
    SGLDOrdinalClassifier,
    SGLDPoissonRegressor,
)
from skbayes_sgld.priors import (
    ConjugateNormal,
    Flat,
    HierarchicalNormal,
    Laplace,
    Normal,
    StudentT,
)
from tests.annexes import later
from tests.marks import slow

RNG = np.random.default_rng(3)
N = 60
FRAME = pd.DataFrame(RNG.standard_normal((N, 3)) * [1.0, 4.0, 0.2], columns=["age", "bmi", "x__y"])
X = FRAME.to_numpy()
Y = X @ [0.8, -0.1, 3.0] + RNG.standard_normal(N)
LABELS = (Y > 0).astype(int)
QUICK = {"n_draws": 200, "random_state": 0}


def moments_close(draws, mean, sd, n_sds=5.0):
    """Mean and sd within Monte Carlo errors, from the effective sample sizes."""
    summary = draws
    error = np.abs(summary["mean"] - mean) / summary["mcse_mean"]
    assert np.all(error < n_sds), error
    assert np.all(np.abs(summary["sd"] - sd) / summary["mcse_sd"] < n_sds), summary["sd"] / sd


# ---- truth --------------------------------------------------------------------------------------


def test_normal_priors_of_columns_are_those_of_a_linear_solve():
    prior = {"bmi": Normal(scale=0.02, location=0.3), "age": Normal(scale=0.1)}
    settings = {"noise_variance": 1.0, "fit_intercept": False, "random_state": 0}
    model = SGLDLinearRegression(prior=prior, **settings).fit(FRAME, Y)
    auto = SGLDLinearRegression(prior="normal", **settings).fit(FRAME, Y).prior_.scale[2]
    np.testing.assert_allclose(model.prior_.scale, [0.1, 0.02, auto])
    precision = np.diag(np.power([0.1, 0.02, auto], -2.0))
    covariance = np.linalg.inv(X.T @ X + precision)
    mean = covariance @ (X.T @ Y + precision @ [0.0, 0.3, 0.0])
    moments_close(model.summary(), mean, np.sqrt(np.diagonal(covariance)))


def test_laplace_and_normal_columns_of_a_classifier_are_those_of_quadrature():
    pair = FRAME[["age", "bmi"]]
    settings = {"fit_intercept": False, "random_state": 0}
    prior = {"age": Laplace(scale=0.2), 1: Normal(scale=0.1, location=0.2)}
    model = SGLDLogisticRegression(prior=prior, **settings).fit(pair, LABELS)
    a, b = np.linspace(-1.0, 3.0, 201), np.linspace(-0.6, 0.6, 201)
    eta = X[:, 0, None, None] * a[:, None] + X[:, 1, None, None] * b
    value = -np.logaddexp(0.0, np.where(LABELS[:, None, None], -eta, eta)).sum(axis=0)
    value += -np.abs(a[:, None]) / 0.2 - 0.5 * np.square((b - 0.2) / 0.1)
    weight = np.exp(value - value.max())
    weight /= weight.sum()
    of_a, of_b = weight.sum(axis=1), weight.sum(axis=0)
    mean = np.array([of_a @ a, of_b @ b])
    sd = np.sqrt([of_a @ a**2, of_b @ b**2] - mean**2)
    moments_close(model.summary(), mean, sd)


@pytest.mark.parametrize("known", [slow(Normal(scale=0.3, location=0.5)), Laplace(scale=0.5)])
def test_a_scale_learned_from_some_columns_is_that_of_quadrature(known):
    prior = {("age", "bmi"): HierarchicalNormal(scale=0.5), "x__y": known}
    settings = {"noise_variance": 1.0, "fit_intercept": False, "random_state": 0, "n_draws": 2000}
    model = SGLDLinearRegression(prior=prior, **settings).fit(FRAME, Y)
    summary = model.summary()
    assert list(summary.index) == ["coef[age]", "coef[bmi]", "coef[x__y]", "prior_scale"]

    def conditional(log_tau, c):
        """Weight of a scale and of the last coefficient; mean and variance of the others."""
        tau, r = np.exp(log_tau), Y - c * X[:, 2]
        P = X[:, :2].T @ X[:, :2] + np.eye(2) / (0.5 * tau) ** 2
        g = X[:, :2].T @ r
        mean = np.linalg.solve(P, g)
        value = 0.5 * (g @ mean - r @ r) - 0.5 * np.linalg.slogdet(P)[1] - 2.0 * log_tau
        value += log_tau - np.log1p(tau**2)  # half-Cauchy, and the Jacobian of the log
        value += float(known.log_density(np.full((1, 1, 1), c), None)[0])
        return value, mean, np.diagonal(np.linalg.inv(P))

    taus, cs = np.linspace(-4.0, 7.0, 56), np.linspace(-3.0, 7.0, 101)
    table = [[conditional(t, c) for c in cs] for t in taus]
    value = np.array([[entry[0] for entry in row] for row in table])
    weight = np.exp(value - value.max())
    weight /= weight.sum()
    mean = np.array([[entry[1] for entry in row] for row in table])
    square = mean**2 + np.array([[entry[2] for entry in row] for row in table])
    of_pair = np.einsum("tc,tcj->j", weight, mean)
    of_square = np.einsum("tc,tcj->j", weight, square)
    of_c = weight.sum(axis=0)
    first = np.append(of_pair, of_c @ cs)
    sd = np.sqrt(np.append(of_square, of_c @ cs**2) - first**2)
    moments_close(summary.iloc[:3], first, sd)
    log_tau = np.log(model.posterior_["prior_scale"]).ravel()
    expected = weight.sum(axis=1) @ taus
    error = np.sqrt(weight.sum(axis=1) @ taus**2 - expected**2) / np.sqrt(
        float(summary.loc["prior_scale", "ess_bulk"])
    )
    assert abs(log_tau.mean() - expected) < 5.0 * error


def test_two_learned_scales_have_names_of_their_own_and_a_mode_in_common():
    prior = {("age", "bmi"): "hierarchical_normal", "x__y": "hierarchical_normal"}
    model = SGLDLinearRegression(prior=prior, **QUICK).fit(FRAME, Y)
    assert model.posterior_.names[-2:] == ["prior_scale[age, bmi]", "prior_scale[x__y]"]
    assert model.sample_posterior().prior_scale.shape == (800, 2)


def test_the_noise_scales_the_columns_that_ask_for_it():
    """The normal-inverse-gamma integral over the one column, in a grid of the noise."""
    prior = {"age": ConjugateNormal(scale=0.3), "bmi": Normal(scale=0.05)}
    pair, settings = FRAME[["age", "bmi"]], {"fit_intercept": False, "noise_prior": "flat"}
    model = SGLDLinearRegression(prior=prior, random_state=0, n_draws=2000, **settings)
    model.fit(pair, Y)

    def at(gamma):
        v, Z = np.exp(gamma), X[:, :2]
        precision = np.diag([1.0 / (0.09 * v), 400.0])
        P = Z.T @ Z / v + precision
        mean = np.linalg.solve(P, Z.T @ Y / v)
        value = 0.5 * mean @ P @ mean - 0.5 * Y @ Y / v - 0.5 * np.linalg.slogdet(P)[1]
        value += -0.5 * (N + 1) * gamma + 0.5 * gamma
        return value, mean, np.diagonal(np.linalg.inv(P))

    grid = np.linspace(-2.0, 3.0, 501)
    values, means, variances = (np.array(each) for each in zip(*map(at, grid), strict=True))
    weight = np.exp(values - values.max())
    weight /= weight.sum()
    mean = weight @ means
    sd = np.sqrt(weight @ (variances + means**2) - mean**2)
    moments_close(model.summary().iloc[:2], mean, sd)


def test_a_flat_column_must_be_determined_by_the_rows_alone():
    wide = RNG.standard_normal((10, 30))
    y = (wide[:, 0] > 0).astype(int)
    prior = dict.fromkeys(range(30), "normal") | {0: "flat"}
    with pytest.raises(ValueError, match="under prior='flat' the coefficients would go to"):
        SGLDLogisticRegression(prior=prior, **QUICK).fit(wide, y)
    y[:2] = 1 - y[:2]
    found = SGLDLogisticRegression(prior=prior, **QUICK).fit(wide, y).prior_
    assert found.scale[0] == np.inf and np.isfinite(found.scale[1:]).all()
    constant = np.column_stack([np.ones(N), X])
    with pytest.raises(ValueError, match=r"column 0 of X .coef.x0.. is constant"):
        SGLDLinearRegression(prior={0: "flat"}, **QUICK).fit(constant, Y)
    SGLDLinearRegression(prior={1: "flat"}, **QUICK).fit(constant, Y)


# ---- columns, and what "auto" does for the others -----------------------------------------------


def test_columns_that_are_not_named_have_what_auto_chooses_for_them():
    plan = SGLDLinearRegression(prior={"age": "laplace"}, **QUICK).fit(FRAME, Y).result_.plan
    choice = plan.choices["prior"]
    assert choice.value == "by column" and choice.given
    assert choice.why == "given for 'age'; 'normal' for the others: 20 rows a column"
    few = SGLDLinearRegression(prior={"age": Normal(scale=1.0)}, **QUICK).fit(FRAME[:12], Y[:12])
    assert "'hierarchical_normal' for the others" in few.result_.plan.choices["prior"].why
    assert few.prior_.scale[0] == 1.0 and "prior_scale" in few.posterior_.names
    every = SGLDLinearRegression(prior=dict.fromkeys(FRAME, Normal(scale=1.0)), **QUICK)
    why = every.fit(FRAME[:12], Y[:12]).result_.plan.choices["prior"].why
    assert why == "given for 'age', 'bmi', 'x__y'"
    draws = [
        SGLDLinearRegression(prior=prior, **QUICK).fit(FRAME, Y).posterior_.values
        for prior in ("auto", {}, {"age": "auto"})
    ]
    np.testing.assert_array_equal(draws[0], draws[1])
    np.testing.assert_array_equal(draws[0], draws[2])


@pytest.mark.parametrize(
    "prior", [{"bmi": "laplace"}, {1: "laplace"}, {-2: "laplace"}, {np.int64(1): "laplace"}]
)
def test_names_and_positions_are_the_same_columns(prior):
    model = SGLDLogisticRegression(prior=prior, **QUICK).fit(FRAME, LABELS)
    assert isinstance(model.prior_.parts[0].prior, Laplace)
    expected = SGLDLogisticRegression(prior="laplace", **QUICK).fit(FRAME, LABELS)
    np.testing.assert_allclose(model.prior_.scale[1], expected.prior_.scale[1])


@pytest.mark.parametrize(
    "prior, message",
    [
        ({"weight": "normal"}, "'weight'; the names in X are 'age', 'bmi', 'x__y'"),
        ({3: "normal"}, "3; X has 3 columns"),
        ({"bmi": "normal", 1: "laplace"}, r"column 1 \(bmi\) twice, in 'bmi' and 1"),
        ({"bmi": "normal", ("age", "bmi"): "laplace"}, "twice"),
        ({"bmi": "norm"}, r"prior\['bmi'\]='norm' is not known; choose one of 'auto', 'cauchy'"),
        ({"bmi": Normal(scale=-1.0)}, r"prior\['bmi'\]\.scale=-1\.0"),
        ({"bmi": Normal(scale=[1.0, 2.0])}, r"prior\['bmi'\]\.scale has shape \(2,\)"),
        ({"bmi": "conjugate_normal"}, r"prior\['bmi'\]='conjugate_normal' is scaled by the noise"),
    ],
)
def test_errors_name_the_column(prior, message):
    model = SGLDLogisticRegression(prior=prior, **QUICK)
    with pytest.raises(ValueError, match=message):
        model.fit(FRAME, LABELS)
    assert not hasattr(model, "n_features_in_") and not hasattr(model, "prior_")


@pytest.mark.parametrize("prior", [{1.5: "normal"}, {True: "normal"}, {(): "normal"}, {"age": 3}])
def test_keys_and_priors_of_other_types_are_refused(prior):
    with pytest.raises(TypeError, match=r"prior\["):
        SGLDLogisticRegression(prior=prior, **QUICK).fit(FRAME, LABELS)


def test_names_need_columns_that_have_them():
    with pytest.raises(ValueError, match="have no names that are text; give positions"):
        SGLDLinearRegression(prior={"age": "normal"}, **QUICK).fit(X, Y)
    with pytest.raises(TypeError, match="intercept_prior="):
        SGLDLinearRegression(intercept_prior={"age": "normal"}, **QUICK).fit(FRAME, Y)


@pytest.mark.parametrize("prior", [{"age": Normal(scale=0.01)}, {"bmi": Normal(scale=100.0)}])
def test_a_conflict_with_a_given_scale_is_told_and_with_an_automatic_one_is_not(prior):
    model = SGLDLinearRegression(prior=prior, random_state=0).fit(FRAME, Y)
    assert ("coef[age] is" in str(model.diagnose())) is ("age" in prior)


# ---- parameters of parameters -------------------------------------------------------------------

GIVEN = {"age": Normal(scale=1.0), "bmi": "laplace", ("x__y",): StudentT(df=3.0)}


def test_parameters_of_the_priors_are_listed_and_set():
    model = SGLDLinearRegression(prior=dict(GIVEN))
    params = model.get_params()
    assert params["prior__age__scale"] == 1.0 and params["prior__bmi"] == "laplace"
    assert params["prior__x__y__df"] == 3.0 and "prior__age" not in model.get_params(deep=False)
    copy = clone(model)
    copy.set_params(prior__age__scale=2.0, prior__bmi__scale=0.5, prior__x__y__df=5.0)
    assert copy.prior["age"].scale == 2.0 and copy.prior[("x__y",)].df == 5.0
    assert isinstance(copy.prior["bmi"], Laplace) and copy.prior["bmi"].scale == 0.5
    assert model.prior["age"].scale == 1.0 and GIVEN["age"].scale == 1.0
    copy.set_params(prior__age="flat", prior__bmi__scale=0.25)
    assert copy.prior["age"] == "flat" and copy.prior["bmi"].scale == 0.25
    copy.set_params(prior={"age": "normal"}, prior__age__scale=4.0)
    assert list(copy.prior) == ["age"] and copy.prior["age"].scale == 4.0
    pipeline = make_pipeline(StandardScaler(), SGLDLinearRegression(prior={0: Normal(scale=1.0)}))
    pipeline.set_params(sgldlinearregression__prior__0__scale=3.0)
    assert pipeline[-1].prior[0].scale == 3.0
    with pytest.raises(ValueError, match="prior__weight__scale=1.0 has nothing to be set on"):
        model.set_params(prior__weight__scale=1.0)
    with pytest.raises(ValueError, match="Invalid parameter 'df'"):
        model.set_params(prior__age__df=1.0)


def test_a_search_goes_over_the_prior_of_a_column():
    model = SGLDLinearRegression(prior={"age": Normal(scale=1e-4)}, **QUICK)
    grid = {"prior__age__scale": [1e-4, 1.0]}
    search = GridSearchCV(model, grid, cv=2).fit(FRAME, Y)
    assert search.best_params_ == {"prior__age__scale": 1.0}
    assert search.best_estimator_.prior_.scale[0] == 1.0
    search = GridSearchCV(model, {"prior": [{"age": "flat"}, {"age": Normal(1e-4)}]}, cv=2)
    assert search.fit(FRAME, Y).best_params_ == {"prior": {"age": "flat"}}


def test_representations_show_the_priors():
    model = SGLDLinearRegression(prior={"age": Normal(scale=1.0), 1: "flat"}, **QUICK)
    assert "prior={1: 'flat', 'age': Normal(scale=1.0)}" in repr(model)
    fitted = model.fit(FRAME, Y)
    assert "by column" in fitted._repr_html_() and "age" in fitted._repr_html_()
    assert repr(fitted.prior_).startswith("{'age' and other columns: Normal(")


# ---- everything that a fit can be ---------------------------------------------------------------

MIX = {0: Normal(scale=0.5), 1: "laplace"}


@pytest.mark.parametrize(
    "make, y",
    [
        (lambda: SGLDPoissonRegressor(prior=MIX, **QUICK), np.arange(N) % 3),
        (lambda: SGLDOrdinalClassifier(prior=MIX, **QUICK), np.arange(N) % 3),
        (lambda: SGLDLogisticRegression(prior=MIX, **QUICK), np.arange(N) % 3),
        (lambda: SGLDLinearRegression(prior=MIX, **QUICK), np.column_stack([Y, -Y])),
        (lambda: SGLDLinearRegression(prior=MIX, noise_model="log_linear", **QUICK), Y),
        (lambda: SGLDLinearRegression(prior=MIX, sampler="hmc", **QUICK), Y),
        (
            lambda: SGLDLinearRegression(
                prior=MIX, preconditioner=None, step_size=1e-4, **QUICK | {"thin": 1}
            ),
            Y,
        ),
        (
            later("SGDMAPClassifier", prior=MIX, optimizer="newton", random_state=0),
            LABELS,
        ),
        (later("SGDMAPRegressor", prior=MIX, optimizer="newton", random_state=0), Y),
    ],
)
@pytest.mark.filterwarnings("ignore:.*chains:UserWarning")
@pytest.mark.filterwarnings("ignore::skbayes_sgld.ModelMisfitWarning")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_models_and_samplers_take_them(make, y):
    model = make().fit(X, y)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    one = model.estimators_[0] if hasattr(model, "estimators_") else model
    assert one.prior_.scale[0] == 0.5 and one.summary() is not None


def test_sparse_rows_are_the_dense_ones():
    dense, thin = (
        SGLDLogisticRegression(prior=MIX, random_state=0, n_draws=500).fit(rows, LABELS)
        for rows in (X, sparse.csr_array(X))
    )
    error = np.hypot(dense.summary()["mcse_mean"], thin.summary()["mcse_mean"])
    assert np.all(np.abs(dense.summary()["mean"] - thin.summary()["mean"]) < 5.0 * error)


def test_batches_and_blocks_take_them_in_the_units_of_the_first():
    from skbayes_sgld.blocks import RowBlocks

    batches = SGLDLinearRegression(prior=MIX, **QUICK)
    batches.partial_fit(X[:30], Y[:30]).partial_fit(X[30:], Y[30:])
    first = SGLDLinearRegression(prior=MIX, **QUICK).fit(X[:30], Y[:30])
    np.testing.assert_allclose(batches.prior_.scale, first.prior_.scale)
    blocks = RowBlocks(lambda: iter([(FRAME[:30], Y[:30]), (FRAME[30:], Y[30:])]))
    found = SGLDLinearRegression(prior={"bmi": "laplace"}, **QUICK).fit(blocks)
    whole = SGLDLinearRegression(prior={"bmi": "laplace"}, **QUICK).fit(FRAME, Y)
    np.testing.assert_allclose(found.prior_.scale, whole.prior_.scale)
    with pytest.raises(ValueError, match="learns its scale from all rows"):
        SGLDLinearRegression(prior={0: "horseshoe"}, **QUICK).partial_fit(X, Y)


def test_warm_starts_go_on():
    model = SGLDLogisticRegression(prior=MIX, warm_start=True, **QUICK).fit(X, LABELS)
    model.fit(X, LABELS)
    assert model.result_.plan.choices["init"].value == "last positions"


def test_the_prior_predictive_distribution_is_drawn_by_column():
    settings = {"intercept_prior": Normal(scale=0.1), "noise_variance": 1e-4}
    prior = {"age": Normal(scale=0.01), ("bmi",): Normal(scale=5.0), "x__y": "hierarchical_normal"}
    model = SGLDLinearRegression(prior=prior, **settings)
    rows = pd.DataFrame(np.eye(3), columns=FRAME.columns)
    drawn = model.sample_prior(rows, n_samples=4000, y=np.arange(3.0))
    assert drawn[0].std() == pytest.approx(0.1, rel=0.1)
    assert drawn[1].std() == pytest.approx(5.0, rel=0.1)
    fitted = model.fit(FRAME, Y).sample_prior(rows, n_samples=4000)
    assert fitted[1].std() == pytest.approx(5.0, rel=0.1)
    with pytest.raises(ValueError, match="improper"):
        SGLDLinearRegression(prior={"age": Flat()}, **settings).sample_prior(rows, y=np.ones(3))

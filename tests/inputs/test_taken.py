"""Unusual inputs that are taken: sizes, types and targets at the ends of what is accepted."""

import warnings

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone, is_regressor
from sklearn.exceptions import ConvergenceWarning

from skbayes_sgld import (
    RowBlocks,
    SGDMAPClassifier,
    SGDMAPRegressor,
    SGLDLinearRegression,
    SGLDLogisticRegression,
    SGLDMLPRegressor,
    SGLDPoissonRegressor,
    diagnostics,
)
from skbayes_sgld import sampling as how
from skbayes_sgld.datasets import (
    make_logistic,
    make_tied_means_mixture,
)
from skbayes_sgld.kernels import Kernel
from skbayes_sgld.optimizers import SVRGDescent
from skbayes_sgld.priors import (
    Horseshoe,
    InverseGamma,
    LogNormal,
    Normal,
)
from skbayes_sgld.rows.checks import check_weight_sizes
from skbayes_sgld.sampling import Cooling, ParallelTempering, Polynomial
from tests.inputs.good import make
from tests.inputs.refusals import FRAME, RNG, X, Y, refuse, target
from tests.inputs.surface import NORMAL

pytestmark = [
    # 20 draws of two chains are too few, and fit says so
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    # the conjugate prior warns of few rows a column
    pytest.mark.filterwarnings(r"ignore:\d+ rows for \d+ columns"),
]


@pytest.mark.parametrize("cls", [SGLDLinearRegression, SGDMAPRegressor])
def test_extreme_sizes_within_the_range_change_nothing_but_units(cls):
    plain = make(cls).fit(X, Y)
    large, small = 2.0**160, 2.0**-160  # 1.5e48, exactly
    for of_x, of_y in ((small, large), (large, small)):
        model = make(cls).fit(X * of_x, Y * of_y)
        np.testing.assert_allclose(model.coef_ * (of_x / of_y), plain.coef_, rtol=1e-6)
        std = model.predict(X * of_x, return_std=True)[1]
        np.testing.assert_allclose(std / of_y, plain.predict(X, return_std=True)[1], rtol=1e-6)
        assert np.isfinite(model.summary().to_numpy()[:, :2]).all()


def test_the_least_and_the_largest_weight_count_rows():
    check_weight_sizes(np.array([0.0, 1e-20, 1.0, 1e20]), "sample_weight")


def test_two_rows_without_a_prior_of_weight_are_refused_and_with_one_are_fitted():
    conjugate = make(SGLDLinearRegression, prior="conjugate_normal")
    refuse(conjugate, "noise_prior='half_normal'", X[:2], Y[:2])
    model = make(SGLDLinearRegression, noise_prior="half_normal").fit(X[:2], Y[:2])
    assert np.isfinite(model.predict(X, return_std=True)).all()


@pytest.mark.parametrize("wanted", [True, False])
@pytest.mark.parametrize("cls", [SGLDLogisticRegression, SGDMAPRegressor])
def test_a_numpy_bool_for_the_intercept_beside_named_columns(cls, wanted):
    model = make(cls, fit_intercept=np.bool_(wanted)).fit(FRAME, target(cls))
    expected = make(cls, fit_intercept=wanted).fit(FRAME, target(cls))
    assert model.posterior_.names == expected.posterior_.names
    np.testing.assert_array_equal(model.posterior_.values, expected.posterior_.values)


def test_totals_are_fitted_as_the_error_says():
    totals = np.random.default_rng(1).integers(1, 5, (30, 2))
    told = ""
    try:
        make(SGLDLogisticRegression).fit(X, totals)
    except ValueError as error:
        told = str(error)
    call = told[told.index("fit(") :].removesuffix(".")
    model = make(SGLDLogisticRegression, sampler="hmc", n_draws=500)
    weighted = eval(call, {"fit": model.fit, "np": np, "X": X, "y": totals})
    rows = np.repeat(np.arange(30), totals.sum(axis=1))
    labels = np.concatenate([[1] * good + [0] * bad for good, bad in totals])
    each = make(SGLDLogisticRegression, sampler="hmc", n_draws=500).fit(X[rows], labels)
    error = each.summary()["mcse_mean"].to_numpy()
    apart = weighted.posterior_.flat.mean(axis=0) - each.posterior_.flat.mean(axis=0)
    assert np.all(np.abs(apart) < 6 * error)


@pytest.mark.parametrize("exposure", [None, 2.0])
def test_fractions_of_counts_are_told_once_with_a_remedy(exposure):
    y = np.arange(30) / 4
    model = make(SGLDPoissonRegressor)
    with pytest.warns(
        UserWarning, match=r"y has the value 0\.25, and the model is of whole counts"
    ) as w:
        model.fit(X, y, exposure=exposure)
    told = [str(each.message) for each in w if "0.25" in str(each.message)]
    assert len(told) == 1
    assert ("not divided by it" if exposure else "made over as exposure") in told[0]


@pytest.mark.parametrize("pool_size, exposure", [(10, None), (100, 2.0)])
def test_fractions_of_counts_in_blocks_are_told_too(pool_size, exposure):
    whole, broken = np.arange(300) % 7, (np.arange(300) % 7) / 4
    rows = RNG.standard_normal((300, 2))

    def blocks(y):
        more = () if exposure is None else (None, np.full(300, exposure))
        return RowBlocks(
            lambda: iter([(rows, whole, *more), (rows, y, *more)]), pool_size=pool_size
        )

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", ConvergenceWarning)
        make(SGLDPoissonRegressor).fit(blocks(whole))
    with pytest.warns(UserWarning, match=r"y has the value 0\.25, and the model is of whole"):
        make(SGLDPoissonRegressor).fit(blocks(broken))


def test_rates_weighted_by_their_exposures_are_taken_without_a_word():
    counts, exposure = RNG.poisson(4.0, 30), RNG.uniform(1.0, 3.0, 30)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", ConvergenceWarning)
        given = {"prior": Normal(scale=1.0), "n_draws": 1000, "n_chains": 4}
        rates = make(SGLDPoissonRegressor, **given).fit(X, counts / exposure, exposure)
        whole = make(SGLDPoissonRegressor, **given).fit(X, counts, exposure=exposure)
    apart = rates.summary()["mean"] - whole.summary()["mean"]
    assert np.all(np.abs(apart) < 6 * whole.summary()["mcse_mean"])


@pytest.mark.parametrize("cls", [SGDMAPClassifier, SGLDPoissonRegressor])
def test_sparse_rows_without_an_entry_are_fitted_as_dense_ones(cls):
    y, zeros = (Y > 0).astype(int), np.zeros((30, 3))
    sparse, dense = make(cls).fit(csr_array(zeros), y), make(cls).fit(zeros, y)
    np.testing.assert_allclose(sparse.predict(zeros), dense.predict(zeros), rtol=0.3)


def linear(**params):
    return make(SGLDLinearRegression, **params).fit(X, Y)


def test_numbers_of_other_types_are_taken_without_a_warning():
    make(SGDMAPClassifier, temperature=np.float16(2)).fit(X, Y > 0)
    make(SGDMAPRegressor, intercept_prior=Normal(location=[1.0])).fit(X, Y)
    linear(prior=Horseshoe(slab_scale=2**70))
    linear(noise_variance=2**70)
    linear(sampler=ParallelTempering(n_temperatures=np.uint8(2), max_temperature=2**70))
    linear(noise_prior=InverseGamma(np.uint8(2), 1.0), schedule=Polynomial(power=np.uint8(2)))
    make(SGDMAPRegressor, optimizer=SVRGDescent(period=np.uint8(2))).fit(X, Y)
    assert np.isfinite(LogNormal(median=2**70).log_density(np.zeros(1))).all()
    assert np.isfinite(make_tied_means_mixture(9, theta2=2**70, variance=2**70)[0]).all()
    assert make_logistic(9, coef=np.longdouble([1.0, 2.0]))[0].shape == (9, 2)
    assert make_logistic(9, coef=np.float16(2))[0].shape == (9, 1)
    small = {name: np.uint8(2) for name in ("n_draws", "n_burnin", "thin")}
    draws = Kernel(NORMAL, "hmc", step_size=0.5).run(np.ones((2, 2)), **small).draws
    assert draws.shape == (2, 2, 2)
    assert np.isfinite(linear().predict_quantiles(X[:2], q=1e-12)).all()
    infinite = np.zeros((2, 9, 1)) + np.array([np.inf, -np.inf])[:, None, None]
    assert np.isnan(diagnostics.summarize(infinite, ["a"])["sd"]).all()
    assert Cooling(hold=np.uint8(2), decay=2000).settles_at == 2002.0


@pytest.mark.parametrize("step", [0.1, 1e300])
def test_a_path_shorter_than_a_step_is_one_step(step):
    assert ParallelTempering(path_length=0.03).whole_steps(step) == 0.03


def test_numpys_whole_numbers_do_not_overflow():
    for number in (np.uint8(2), np.int8(20)):
        model = make(SGLDLogisticRegression, n_draws=number, n_chains=2).fit(X, Y > 0)
        assert model.posterior_.values.shape[1] == number
    network = make(SGLDMLPRegressor, n_draws=np.int8(20), n_chains=np.uint8(2)).fit(X, Y)
    assert network.posterior_.values.shape[:2] == (2, 20)


def test_a_network_scores_targets_of_any_size_whose_squares_are_numbers():
    model = make(SGLDMLPRegressor).fit(X, Y * 1e60)
    assert np.isfinite(model.score(X, Y * 1e60))


def predictions(model):
    if is_regressor(model):
        mean_and_std = model.predict(X[:3], return_std=True)
        return np.column_stack([*mean_and_std, model.predict_interval(X[:3])])
    return np.column_stack([model.predict_proba(X[:3]), model.predict_proba_interval(X[:3])[:, 1]])


@pytest.mark.parametrize("cls", [SGLDLinearRegression, SGDMAPClassifier])
def test_an_array_is_taken_as_a_preconditioner(cls):
    diagonal = np.full(4 + is_regressor(cls()), 0.02)
    model, y = make(cls, preconditioner=diagonal), target(cls)
    explicit = clone(model).set_params(preconditioner=how.Matrix(diagonal)).fit(X, y)
    np.testing.assert_array_equal(predictions(model.fit(X, y)), predictions(explicit))

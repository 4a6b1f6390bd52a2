"""Networks of data in any unit: what survives, and what is refused by name."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.preprocessing import StandardScaler

from skbayes_sgld import (
    BayesByBackpropClassifier,
    BayesByBackpropRegressor,
    SGLDMLPClassifier,
    SGLDMLPRegressor,
)
from skbayes_sgld.likelihoods import FixedNormalNoise
from skbayes_sgld.neural_network import MLPPosterior
from skbayes_sgld.neural_network.ensemble import train
from skbayes_sgld.neural_network.estimators import UnitsNoisePrior, standardise
from skbayes_sgld.priors import InverseGamma, Normal

# short runs are not to be relied on, and the estimators say so
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

RNG = np.random.default_rng(0)
X = RNG.standard_normal((40, 2))
Y = X[:, 0] + 0.1 * RNG.standard_normal(40)
SIZE = {"hidden_layer_sizes": (4,), "random_state": 0}
SAMPLED = {"n_draws": 10, "n_burnin": 100, "thin": 2, "n_chains": 2, **SIZE}
REGRESSORS = [BayesByBackpropRegressor(max_iter=100, **SIZE), SGLDMLPRegressor(**SAMPLED)]
CLASSIFIERS = [BayesByBackpropClassifier(max_iter=100, **SIZE), SGLDMLPClassifier(**SAMPLED)]


@pytest.mark.parametrize(
    ("model", "of", "value"),
    [
        (REGRESSORS[0], "X", 1e15),
        (CLASSIFIERS[1], "X", -1e300),
        (REGRESSORS[1], "y", -1e200),
        (clone(REGRESSORS[1]).set_params(noise_variance=1.0), "y", 1e300),
    ],
)
def test_one_outlier_of_a_column_or_of_the_target_is_refused_by_name(model, of, value):
    # it let ChainOverflowError through, or gave an sd of infinity
    rows, y = X.copy(), Y > 0 if model in CLASSIFIERS else Y.copy()
    at = (rows, (3, 1)) if of == "X" else (y, 3)
    at[0][at[1]] = value
    name = r"X\[:, 1\]" if of == "X" else "y"
    with pytest.raises(ValueError, match=rf"{name} has the value -?1e\+.*lost.*remove.*clip"):
        clone(model).fit(rows, y)


def test_an_outlier_that_leaves_the_others_apart_is_fitted():
    y = Y.copy()
    y[3] = 1e6
    assert np.isfinite(clone(REGRESSORS[0]).fit(X, y).summary()[["mean", "sd"]]).all().all()


@pytest.mark.parametrize("size, is_kept", [(0.7e-12, False), (1.5e-12, True)])
def test_differences_of_which_three_digits_are_left_are_kept(size, is_kept):
    column = np.array([-size, 0.0, size, 1.0])[:, None]  # half are as far from the median as size
    if is_kept:
        standardise(column, column[:, 0], None, False, None)
        return
    with pytest.raises(ValueError, match="lost to rounding"):
        standardise(column, column[:, 0], None, False, None)


def test_the_approximation_begins_a_tenth_as_wide_as_the_weights_of_random_networks():
    model = BayesByBackpropClassifier(step_size=1e-6, max_iter=1, n_draws=4000, **SIZE)
    model.fit(StandardScaler().fit_transform(X), Y > 0)
    # of outputs of four units, with four standard errors of an sd of 4,000 draws
    output = model.sample_posterior().coefs[-1]
    np.testing.assert_allclose(output.std(axis=0), 0.1 / np.sqrt(4), rtol=0.045)


@pytest.mark.parametrize("power", [-1000, 1000])
def test_columns_of_any_size_give_the_same_predictions(power):
    unit, model = 2.0**power, REGRESSORS[1]
    expected = clone(model).fit(X, Y)
    other = clone(model).fit(unit * X, Y)
    np.testing.assert_allclose(other.predict(unit * X), expected.predict(X), rtol=1e-8)
    assert np.isfinite(other.summary()[["mean", "sd"]]).all().all()
    assert (other.summary()["sd"] > 0).all()


@pytest.mark.parametrize("model", REGRESSORS, ids=lambda model: type(model).__name__)
def test_a_target_of_which_the_square_is_no_number_is_refused(model):
    for unit in (1e-200, 1e200):
        with pytest.raises(ValueError, match=r"y has the standard deviation.*divide y by"):
            clone(model).fit(X, unit * Y)
    large = clone(model).fit(X, 2.0**400 * Y)  # 1e120: noise variances are 1e240
    expected = clone(model).fit(X, Y)
    np.testing.assert_allclose(large.predict(X), 2.0**400 * expected.predict(X), rtol=1e-8)
    ratio = large.summary()["sd"].iloc[-1] / expected.summary()["sd"].iloc[-1]
    assert ratio == pytest.approx(2.0**800, rel=1e-8)


def test_fixed_noise_that_is_nothing_beside_y_is_refused():
    with pytest.raises(ValueError, match=r"noise_variance=1e-40 is.*times the variance of y"):
        clone(REGRESSORS[0]).set_params(noise_variance=1e-40).fit(X, Y)


def test_what_overflows_in_training_is_told_with_its_remedy():
    # behind the estimators' checks, which let no such target through
    posterior = MLPPosterior(
        X, np.where(Y > 0, np.inf, Y), FixedNormalNoise(1.0), Normal(), hidden_layer_sizes=(2,)
    )
    with pytest.raises(ValueError, match=r"training.*overflowed in weight\[0, x0.*rescale y"):
        train(posterior, posterior.start()[None], 10, seed=0)


def test_a_noise_prior_in_units_of_y_is_the_same_of_the_standardised_noise():
    prior, gamma = InverseGamma(3.0, 40.0), np.array([-1.0, 0.5])
    ours = UnitsNoisePrior(prior, 2.0)
    np.testing.assert_allclose(ours.log_density(gamma), prior.log_density(gamma + np.log(4.0)))
    np.testing.assert_allclose(ours.grad(gamma), prior.grad(gamma + np.log(4.0)))


def test_a_column_may_have_the_name_of_the_noise():
    frame = pd.DataFrame(X, columns=["log_noise_variance", "b"])
    model = clone(REGRESSORS[0]).fit(frame, Y)
    assert model.posterior_.names[0] == "weight[0, log_noise_variance, 0]"
    assert model.posterior_.names[-1] == "noise_variance"

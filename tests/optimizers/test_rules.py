"""MAP optimizers reach the mode that Newton's method and scipy find."""

import re
import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from skbayes_sgld import SGDMAPClassifier, SGDMAPRegressor
from skbayes_sgld.optimizers import OPTIMIZERS, SGD, Momentum
from skbayes_sgld.own_models import FunctionPosterior, as_posterior
from skbayes_sgld.sampling import Polynomial
from skbayes_sgld.sampling.loop import run_chains
from tests.marks import slow
from tests.references.modes import distance, newton_mode, task
from tests.references.targets import make_run

TOL = 0.1  # the default, in posterior sds
MEASURED = 1.1  # the stopping rule takes Newton's step for the distance, this near the mode

RULES = {
    **{name: {"optimizer": name} for name in OPTIMIZERS},
    "sgd with replacement": {"batch_size": 64},
    "sgd without replacement": {"replacement": False, "batch_size": 64},
    "sgd, averaged": {"average": 3},
}
CURVATURE = {"preconditioner": "curvature"}
LATER = Polynomial(offset=30, power=1)


@pytest.fixture(scope="module")
def rookies():
    return task(SGDMAPClassifier, "nba")


def end_of(fit, model, data):
    """Distance from the mode at which a fit ended, and the distance that it reports."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fit.fit(*task(model, data))
    told = [str(w.message) for w in caught if issubclass(w.category, ConvergenceWarning)]
    figures = [float(re.search(r"is (\S+) posterior standard", text).group(1)) for text in told]
    return distance(fit, *newton_mode(model, data)), figures


DIABETES, ROOKIES = (SGDMAPRegressor, "diabetes"), (SGDMAPClassifier, "nba")
LECTURE, HALVES = (SGDMAPRegressor, "short lecture"), (SGDMAPClassifier, "diabetes")
CASES = {("as it comes", *case): {} for case in (ROOKIES, LECTURE)}
for name, rule in RULES.items():
    CASES[name + ", curvature", *ROOKIES] = rule | CURVATURE
    CASES[name + ", 20 passes", *LECTURE] = rule | {"max_iter": 20}
for name in OPTIMIZERS:
    CASES[name + ", curvature", *DIABETES] = RULES[name] | CURVATURE
    if name != "newton":
        CASES[name + ", constant", *HALVES] = RULES[name] | CURVATURE | {"schedule": "constant"}
        CASES[name + ", 1 / t", *LECTURE] = RULES[name] | CURVATURE | {"schedule": LATER}

# in 20 passes in raw units, or with the noise of batches of 64, a rule may end elsewhere
MAY_FAIL = "passes", "replacement"


# the first takes all of its 1,000 passes, and the same rule without a metric takes 20
COSTLY = ("sgd with replacement, curvature", *ROOKIES), ("as it comes", *ROOKIES)


@pytest.mark.parametrize(
    ("name", "model", "data"), [slow(*case) if case in COSTLY else case for case in CASES]
)
def test_every_rule_comes_within_a_tenth_of_a_sd_of_newtons_mode_or_says_how_far_it_is(
    name, model, data
):
    fit = model(random_state=0, **CASES[name, model, data])
    away, told = end_of(fit, model, data)
    if told:
        assert any(words in name for words in MAY_FAIL)
        assert 0.5 * away < told[0] < 2.0 * away
    else:
        assert away < MEASURED * TOL


@pytest.mark.parametrize(
    ("optimizer", "model", "data"),
    [("gd", SGDMAPClassifier, "nba"), ("svrg", SGDMAPRegressor, "diabetes")],
)
def test_rules_without_noise_at_the_mode_reach_it_to_a_millionth(optimizer, model, data):
    settings = {"schedule": "constant", "tol": 1e-6, "random_state": 0}
    away, told = end_of(model(optimizer=optimizer, **settings, **CURVATURE), model, data)
    assert not told
    assert away < 1.001e-6


def test_the_path_climbs_from_the_start_to_the_mode(rookies):
    model = SGDMAPClassifier(optimizer="gd", preconditioner="curvature").fit(*rookies)
    assert model.path_iter_[0] == 0
    assert model.path_iter_[-1] == model.n_iter_ < model.max_iter
    assert np.all(np.diff(model.log_posterior_path_) > 0)
    np.testing.assert_allclose(model.coef_path_[-1], model.coef_[0])
    np.testing.assert_array_equal(model.coef_path_[0], 0.0)


# one pass over the rows ends far from the mode, and fit says so
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("max_iter, temperature", [(1, 4.0), (1000, 1.0)])
def test_laplace_draws_have_the_curvature_of_where_it_ended(rookies, max_iter, temperature):
    X, y = rookies[0][:, :3], rookies[1]
    model = SGDMAPClassifier(max_iter=max_iter, temperature=temperature, random_state=3).fit(X, y)
    end = np.r_[model.coef_[0], model.intercept_]
    A = np.column_stack([X, np.ones(len(X))])
    p = 1 / (1 + np.exp(-(A @ end)))
    covariance = temperature * np.linalg.inv((A.T * (p * (1 - p))) @ A + np.diag([1, 1, 1, 0]))
    draws = model.posterior_.flat
    np.testing.assert_allclose(draws.mean(0), end, atol=1e-12)  # they are pairs about it
    n = len(draws) / 2
    sd = np.sqrt(np.diag(covariance))
    error = np.cov(draws.T) - covariance
    standard_error = np.sqrt((covariance**2 + np.outer(sd, sd) ** 2) / n)
    assert np.all(np.abs(error) < 4 * standard_error)


def test_momentum_is_ten_times_as_fast_as_plain_descent_where_the_density_is_flat():
    curvature = np.array([1.0, 1e-3])
    bowl = FunctionPosterior(
        lambda x: -0.5 * (curvature * x**2).sum(axis=1), lambda x: -curvature * x, 2
    )
    ends = []
    for rule in (SGD(), Momentum(decay=0.9)):
        run = make_run(as_posterior(bowl), sampler=rule, step_size=rule.step_size(1.0, 1.0))
        ends.append(np.abs(run_chains(run, np.ones((1, 2)), n_draws=200).draws[0, -1]))
    assert max(end[0] for end in ends) < 1e-3  # both are stable where it is steep
    np.testing.assert_allclose([end[1] for end in ends], np.exp([-0.2, -2.0]), rtol=0.12)

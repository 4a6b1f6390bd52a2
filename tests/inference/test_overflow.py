"""The advice in the error of an overflow has been tried."""

import numpy as np
import pytest

from skbayes_sgld import SGLDLogisticRegression, SGLDPoissonRegressor
from skbayes_sgld.inference import overflow
from skbayes_sgld.sampling import SGLD, ChainOverflowError

PLAIN = {
    "preconditioner": None,
    "sampler": SGLD("euler"),
    "gradient": "minibatch",
    "batch_size": 30,
    "n_draws": 100,
    "n_burnin": 0,
    "thin": 1,
}


@pytest.fixture(scope="module")
def counts():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((2000, 5))
    return X, rng.poisson(np.exp(0.3 * X[:, 0] + 1.0))


def overflow_of(model, X, y, **settings):
    with pytest.raises(ChainOverflowError) as error:
        model(**PLAIN, **settings).fit(X, y)
    return error.value


@pytest.mark.filterwarnings(
    "ignore::sklearn.exceptions.ConvergenceWarning"
)  # a plain step is short
def test_an_overflow_of_draws_from_the_prior_advises_to_begin_at_zeros(counts):
    settings = {"step_size": 1e-4, "random_state": 1}
    error = overflow_of(SGLDPoissonRegressor, *counts, init="prior", **settings)
    assert error.step < 10
    assert "keep it and set init='zeros'" in str(error)
    SGLDPoissonRegressor(**PLAIN, init="zeros", **settings).fit(*counts)


def test_no_other_start_is_advised_for_steps_that_are_too_long_from_everywhere(counts):
    error = overflow_of(SGLDPoissonRegressor, *counts, step_size=10.0, random_state=0)
    assert error.held < 10.0
    assert "init" not in str(error)


def test_a_step_size_that_holds_is_soon_found_below_an_astronomic_one(counts, monkeypatch):
    tried, run_chains = [], overflow.run_chains

    def counted(run, *arguments, **lengths):
        tried.append(run.step_size)
        return run_chains(run, *arguments, **lengths)

    monkeypatch.setattr(overflow, "run_chains", counted)
    X, y = counts
    error = overflow_of(SGLDLogisticRegression, X, y > 2, step_size=1e300, random_state=0)
    assert error.held in tried
    assert len(tried) <= 25  # of a hundred divisions by a thousand

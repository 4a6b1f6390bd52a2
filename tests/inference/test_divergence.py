"""Steps that are far too long: every sampler stops soon, and its error names a step that holds."""

import pickle

import joblib
import numpy as np
import pytest

from skbayes_sgld.sampling import ChainOverflowError
from tests.inference.divergence import CASES, Case, X, Y, judge, make, right_step
from tests.marks import slow

PLAIN = [
    case
    for case in CASES
    if (case.model, case.metric, case.clip) == ("linear", "curvature", "none")
    and case.factor != 100.0
]
OTHERS = [case for case in CASES if case not in PLAIN]
# the step size that the error named was accepted once in 200 steps, and never in a fit
FEW_ACCEPTED = Case("linear", None, "parallel_tempering", "full", "value", 1e6)
DRAWN = [OTHERS[k] for k in np.random.default_rng(0).choice(len(OTHERS), 8, replace=False)]


@pytest.mark.parametrize("case", [*PLAIN, slow(FEW_ACCEPTED), *DRAWN], ids=str)
def test_no_step_that_is_far_too_long_is_silent_and_wrong(case):
    outcome, wrong = judge(case)
    assert not wrong
    # the steps of a metric that is learned on the way have the same length whatever the gradient's
    assert outcome == "error" or case.factor < 1e6 or case.clip != "none" or case.sampler == "psgld"


def test_a_chain_that_can_accept_nothing_is_the_same_whatever_runs_beside_it():
    hmc = next(case for case in PLAIN if case.sampler == "hmc")
    far = make(hmc, 1e6 * right_step("linear", "curvature", "hmc", "full"))
    found = []
    for n_chains, n_jobs in ((1, None), (2, None), (3, 2)):
        far.set_params(n_chains=n_chains, n_jobs=n_jobs)
        told = pytest.raises(ChainOverflowError, match="50 proposals in a row could never be accep")
        with joblib.parallel_config(backend="threading"), told as raised:
            far.fit(X, Y)
        found.append((str(raised.value), vars(raised.value)))
    assert found[0] == found[1] == found[2]
    again = pickle.loads(pickle.dumps(raised.value))  # as a worker's does
    assert (str(again), vars(again)) == found[0]

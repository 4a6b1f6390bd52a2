"""Models of the user's that fail: each is answered by its name, and with where and what."""

import os
import re
import subprocess
import sys
import traceback
from pathlib import Path

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from skbayes_sgld import sample
from skbayes_sgld.own_models import CustomPosterior, FunctionPosterior, as_posterior
from skbayes_sgld.sampling import ChainOverflowError

SHORT = {"n_draws": 300, "random_state": 0}


def density(x):
    return -0.5 * np.square(x).sum(axis=1)


def gradient(x):
    return -x


def model(log_density=density, grad=gradient):
    return FunctionPosterior(log_density, grad, 2, ["a", "b"])


class Later:
    """A function that is right in its first calls."""

    def __init__(self, right, wrong, calls):
        self.right, self.wrong, self.left = right, wrong, calls

    def __call__(self, x):
        self.left -= 1
        return self.right(x) if self.left >= 0 else self.wrong(x)


def fail(x):
    raise ZeroDivisionError("a mistake")


@pytest.mark.parametrize("calls", [0, 300])
@pytest.mark.parametrize("name", ["log_density", "grad"])
def test_an_error_of_the_users_own_has_a_note_of_where(name, calls):
    right = {"log_density": density, "grad": gradient}
    with pytest.raises(ZeroDivisionError, match="a mistake") as raised:
        sample(model(**right | {name: Later(right[name], fail, calls)}), "hmc", **SHORT)
    told = "".join(traceback.format_exception(raised.value))
    assert re.search(rf"{name} raised it, called at a=\S+, b=\S+ and other points\.", told)


WRONG = {
    "(4, 1) for parameters of shape (4, 2), 4 chains; it must return (4, 2)": lambda x: x[:, :1],
    "grad returned strings at a=": lambda x: x.astype(str),
    "grad returned NoneType of object at a=": lambda x: None,
    "it must return an array of real numbers of shape": lambda x: [[1.0], [1.0, 2.0]],
}


@pytest.mark.parametrize("told", WRONG)
def test_a_wrong_result_in_the_middle_of_a_run_is_refused_by_name(told):
    late = Later(gradient, WRONG[told], 600)
    with pytest.raises((ValueError, TypeError), match=re.escape(told)):
        sample(model(grad=late), **SHORT)


def test_lists_and_whole_numbers_are_taken_as_floats():
    listed = model(lambda x: density(x).tolist(), lambda x: gradient(x).tolist())
    values = sample(listed, **SHORT).values
    np.testing.assert_array_equal(values, sample(model(), **SHORT).values)


def test_a_pair_of_value_and_gradient_is_looked_at_too():
    class Both:
        n_params = 2
        log_density, grad = staticmethod(density), staticmethod(gradient)

        def value_and_grad(self, x):
            return density(x)

    with pytest.raises(TypeError, match=r"value_and_grad returned ndarray; it must return a tup"):
        sample(CustomPosterior(Both()), "hmc", check_gradient=False, **SHORT)


def bounded(x):
    return np.where(x[:, 0] > -1.0, density(x), -np.inf)


def test_draws_where_the_density_is_zero_are_told_and_hmc_makes_none():
    with pytest.warns(
        ConvergenceWarning, match=r"-inf or not a number at 1\d.\d% of the draws, as"
    ):
        told = sample(model(bounded), "sgld", **SHORT)
    share, where = told.undefined
    assert share == pytest.approx((told.values[..., 0] <= -1.0).mean(), abs=0.03)
    assert re.match(r"a=-\S+, b=", where)
    exact = sample(model(bounded), "hmc", **SHORT).values
    # of a normal distribution above -1: phi(1) / Phi(1)
    assert exact[..., 0].min() > -1.0 and abs(exact[..., 0].mean() - 0.2876) < 0.1


def undefined(x):
    return np.where(x > -1.0, -x, np.nan)


def test_a_gradient_without_numbers_in_places_is_told_with_a_point():
    told = r"The gradient is not finite at a=\S+, b=\S+: it must be finite wherever the log density"
    with pytest.raises(ChainOverflowError, match=told):
        sample(model(grad=undefined), "sgld", step_size=1.0, init="zeros", **SHORT)
    # proposals there are refused, and that is told
    told = r"or its gradient, is not a number \(NaN\) at \d+.\d% of the proposals, as at a="
    with pytest.warns(ConvergenceWarning, match=told):
        sample(model(grad=undefined), "hmc", step_size=0.4, init="zeros", **SHORT)
    free = sample(model(grad=undefined), "random_walk", step_size=1.5, init="zeros", **SHORT)
    assert abs(free.values.mean()) < 0.25  # its proposals take no gradient


def test_a_gradient_of_the_wrong_sign_is_refused_by_its_parameter():
    with pytest.raises(ValueError, match=r"grad is wrong: b has the derivative .* by finite diff"):
        sample(model(grad=lambda x: x * [-1.0, 1.0]), **SHORT)


DYING = """
import os, sys
import numpy as np
from skbayes_sgld import sample
from skbayes_sgld.own_models import FunctionPosterior
from skbayes_sgld.sampling import workers
from skbayes_sgld.sampling.tuning.thresholds import Thresholds

workers.THRESHOLDS = Thresholds(shared_seconds=0.0)
parent = os.getpid()

def grad(x):
    if os.getpid() != parent:
        os._exit(3)
    return -x

normal = FunctionPosterior(lambda x: -0.5 * np.square(x).sum(axis=1), grad, 2)
try:
    sample(normal, "sgld", n_jobs=2, n_draws=2000, random_state=0)
except RuntimeError as error:
    print(error)
    print(sample(normal, "sgld", n_draws=200, random_state=0).values.std() > 0.5)
"""


@pytest.mark.slow
def test_a_worker_that_dies_is_told_and_the_next_run_is_right():
    done = subprocess.run(
        [sys.executable, "-c", DYING],
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[2],
        env=os.environ | {"PYTHONWARNINGS": "ignore"},
        timeout=600,
    )
    assert re.search("a process that runs chains .* has ended .* n_jobs=None", done.stdout), done
    assert done.stdout.endswith("True\n")


def test_other_points_are_told_of_where_there_are_some():
    functions = [gradient]
    posterior = as_posterior(model(density, lambda x: functions[-1](x)))
    functions.append(fail)
    for points, others in ((1, False), (2, True)):
        with pytest.raises(ZeroDivisionError) as raised:
            posterior.grad(np.zeros((points, 2)))
        assert ("and other points" in raised.value.__notes__[0]) == others

"""Generated inputs: each ends in a right result or in an error that names the argument.

``python -m tests.soak.inputs`` judges many more of the same cases.
"""

import inspect

import numpy as np
import pytest

import skbayes_sgld
from skbayes_sgld import datasets, diagnostics, metrics, plotting, posterior, sampling, variational
from skbayes_sgld._components import Registry
from tests.inputs import surface
from tests.inputs.cases import closed_form, judge_cases
from tests.inputs.oracle import judge

UNTRIED = {
    "OwnParameter": "a value of a likelihood, which the tests of likelihoods read",
    "Plan": "returned",
    "PosteriorDraws": "returned",
    "SamplingResult": "returned",
    "RowBlocks": "tests/blocks",
    "ChainOverflowError": "raised",
    "ImproperPosteriorError": "raised",
    "NoModeError": "raised",
    "load_sp500_returns": "needs an extra; tests/datasets",
    "LeaveOneOut": "returned",
    "ModelComparisonDisplay": "takes what compare_models takes",
    "gather_warnings": "takes nothing",
    "get_scorer_names": "takes nothing",
    "Scorer": "made by get_scorer",
    "Coordinates": "a base for users' classes",
    "HierarchicalPosterior": "made by the estimators",
    "FunctionPosterior": "as CustomPosterior",
    "GLMPosterior": "made by the estimators",
    "MLPPosterior": "made by the estimators",
    "Posterior": "a protocol",
    "StochasticVolatility": "tests/posterior/examples",
    "TiedGaussianMixture": "tests/posterior/examples",
    "Interval": "a transform of CustomPosterior",
    "Kernel": "tests/sampling/test_kernel.py",
    "KernelState": "made by Kernel",
    "Matrix": "an array stands for it",
    "VariationalPosterior": "made by BayesByBackprop",
}


def test_inputs_are_answered_by_a_right_result_or_by_name():
    found = judge_cases(500)
    assert sum(found.by_family.values()) >= 490
    assert found.failures == {}


def test_everything_public_is_called_or_has_a_reason():
    called = " ".join(call.name for call in surface.surface())
    missing = []
    for module in (skbayes_sgld, metrics, datasets, diagnostics, plotting, posterior, sampling):
        for name in module.__all__:
            member = getattr(module, name)
            if isinstance(member, (dict, Registry)) or name in called or name in UNTRIED:
                continue
            if inspect.isclass(member) and (_is_base(member) or not _takes_something(member)):
                continue
            missing.append(name)
    assert missing == []
    for cls in (*variational.FAMILIES.values(), variational.BayesByBackprop):
        assert cls.__name__ in called or not _takes_something(cls)


def _is_base(cls):
    return bool(cls.__subclasses__())


def _takes_something(cls):
    return not issubclass(cls, Warning) and bool(inspect.signature(cls).parameters)


# ---- the judge can find fault -----------------------------------------------------------------


def divide():
    return np.ones(2) / np.zeros(2)


def blame():
    raise ValueError("step_size=-1 is out of range")


def assert_something():
    raise AssertionError("x")


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        (lambda: np.linalg.cholesky(-np.eye(2)), "LinAlgError"),
        (lambda: np.zeros(2) @ np.zeros(3), "names none of"),
        (lambda: np.linalg.inv(np.zeros(3)), "LinAlgError"),
        (divide, "not finite"),
        (lambda: np.float64(1e300) * 1e300 > 0, "RuntimeWarning"),
        (blame, "names none of X"),
        (assert_something, "AssertionError"),
        (lambda: {"a": [np.nan]}, "not finite"),
    ],
)
def test_the_judge_finds_what_is_wrong(call, reason):
    answer = judge(call, ["X"])
    assert answer.kind == "failure" and reason in answer.reason


def test_the_judge_accepts_what_is_right():
    assert judge(blame, ["step_size"]).kind == "error"
    assert judge(lambda: np.ones(3), ["X"]).kind == "result"


@pytest.mark.parametrize("weight", [None, surface.WEIGHT])
def test_the_closed_form_is_that_of_a_long_fit(weight):
    model = skbayes_sgld.SGLDLinearRegression(random_state=0)
    model.fit(surface.X, surface.Y, weight)
    mean, sd = closed_form(model, surface.X, surface.Y, weight)
    table = model.summary()
    error = table["mcse_mean"].to_numpy()[:2]
    assert np.all(np.abs(table["mean"].to_numpy()[:2] - mean) < 4.5 * error)
    np.testing.assert_allclose(table["sd"].to_numpy()[:2], sd, rtol=0.06)

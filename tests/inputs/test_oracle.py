"""The judge of generated calls finds what is wrong, and accepts what is right."""

import numpy as np
import pytest

from tests.inputs.oracle import judge


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

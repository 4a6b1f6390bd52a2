"""How small an error of a gradient the check finds, and how little it minds rounding."""

import numpy as np
import pytest

from skbayes_sgld.posterior import FunctionPosterior, check_gradient
from tests.references.targets import NormalMean


def quartic(error=0.0, offset=0.0):
    return FunctionPosterior(
        lambda x: offset - (x**4).sum(axis=1) + x[:, 0] * x[:, 1],
        lambda x: (1.0 + error) * (-4 * x**3 + x[:, ::-1]),
        2,
    )


@pytest.mark.parametrize("error", [1e-4, -1e-4, 3e-5])
def test_an_error_of_one_in_ten_thousand_is_found(error):
    with pytest.raises(ValueError, match="grad is wrong"):
        check_gradient(quartic(error), [0.7, -1.1])


@pytest.mark.parametrize("offset", [0.0, 1e3])
def test_a_right_gradient_passes_beside_a_large_constant(offset):
    check_gradient(quartic(offset=offset), [[0.7, -1.1], [2.0, 0.3]])


def test_the_error_that_is_accepted_is_the_one_asked_for():
    check_gradient(quartic(1e-4), [0.7, -1.1], rtol=2e-4)
    with pytest.raises(ValueError, match="grad is wrong"):
        check_gradient(quartic(1e-4), [0.7, -1.1], rtol=5e-5)


@pytest.mark.parametrize("error, found", [(3e-4, False), (1e-2, True)])
def test_in_single_precision_a_small_derivative_beside_a_large_one_is_checked_to_its_rounding(
    error, found
):
    # ten rounding errors of the largest are 1e-3
    slopes = np.array([1000.0, 1.0], dtype=np.float32)
    posterior = FunctionPosterior(
        lambda x: x.astype(np.float32) @ slopes,
        lambda x: np.tile(slopes + np.float32([0.0, error]), (len(x), 1)),
        2,
    )
    if not found:
        check_gradient(posterior, [0.0, 0.0])
        return
    with pytest.raises(ValueError, match="grad is wrong"):
        check_gradient(posterior, [0.0, 0.0])


class Careless(NormalMean):
    """Rows whose sums are off by a share, in a minibatch or where both are computed together."""

    in_rows = in_grads = in_value = in_gradient = 0.0

    def log_likelihood(self, theta, idx=None):
        return super().log_likelihood(theta, idx) * (1.0 + self.in_rows * (idx is not None))

    def grad_log_likelihood(self, theta, idx=None):
        return super().grad_log_likelihood(theta, idx) * (1.0 + self.in_grads * (idx is not None))

    def value_and_grad(self, theta):
        value = super().log_likelihood(theta).sum(axis=1) * (1.0 + self.in_value)
        return value, super().grad_log_likelihood(theta) * (1.0 + self.in_gradient)


@pytest.mark.parametrize(
    "name, message",
    [
        ("in_rows", "^log_likelihood of the batches does not make up"),
        ("in_grads", "^grad_log_likelihood of the batches does not make up"),
        ("in_value", "value_and_grad is wrong: its value"),
        ("in_gradient", "value_and_grad is wrong: its gradient"),
    ],
)
def test_sums_that_differ_by_one_in_ten_million_are_found(name, message):
    posterior, away = Careless(), [[-4.0], [5.0]]  # where no row's terms cancel
    setattr(posterior, name, 1e-9)
    check_gradient(posterior, away)
    setattr(posterior, name, 1e-7)
    with pytest.raises(ValueError, match=message):
        check_gradient(posterior, away)

"""The check of gradients finds small errors and tolerates rounding."""

import numpy as np
import pytest

from skbayes_sgld.own_models import FunctionPosterior, check_gradient
from tests.references.targets import NormalMean


def quartic(error=0.0, offset=0.0):
    return FunctionPosterior(
        lambda x: offset - (x**4).sum(axis=1) + x[:, 0] * x[:, 1],
        lambda x: (1.0 + error) * (-4 * x**3 + x[:, ::-1]),
        2,
    )


@pytest.mark.parametrize("error, rtol", [(1e-4, 1e-5), (-1e-4, 5e-5), (3e-5, 1e-5)])
def test_an_error_above_the_one_that_is_accepted_is_found(error, rtol):
    with pytest.raises(ValueError, match="grad is wrong"):
        check_gradient(quartic(error), [0.7, -1.1], rtol=rtol)
    check_gradient(quartic(error), [0.7, -1.1], rtol=2.0 * abs(error))


def test_right_gradients_pass_whatever_their_size():
    for offset in (0.0, 1e3):  # beside a large constant
        check_gradient(quartic(offset=offset), [[0.7, -1.1], [2.0, 0.3]])
    for scale in (1e-8, 1.0, 1e8):

        def density(x, scale=scale):
            return -scale * np.cosh(x).sum(axis=1)

        def grad(x, scale=scale):
            return -scale * np.sinh(x)

        check_gradient(FunctionPosterior(density, grad, 3))


def test_among_many_parameters_a_share_of_wrong_ones_is_found():
    def normal(slopes):
        return FunctionPosterior(lambda x: -0.5 * (x**2).sum(1), lambda x: x * slopes, 1000)

    check_gradient(normal(-np.ones(1000)))
    with pytest.raises(ValueError, match=r"grad is wrong: theta\[\d*[02468]?3\] has"):
        check_gradient(normal(-np.where(np.arange(1000) % 20 == 3, 2.0, 1.0)))


def test_a_density_without_a_number_near_the_point_is_refused():
    posterior = FunctionPosterior(
        lambda x: np.where(x[:, 0] < 0.5, 0.0, -np.inf), lambda x: 0 * x, 1, start=[0.4]
    )
    with pytest.raises(ValueError, match=r"^grad .* not finite where theta\[0\] moves"):
        check_gradient(posterior, [0.5 - 1e-6])
    with pytest.raises(ValueError, match=r"^theta of shape \(2,\) must be"):
        check_gradient(posterior, [0.1, 0.2])


def test_in_float32_a_small_derivative_beside_a_large_one_is_checked_to_its_rounding():
    slopes = np.array([1000.0, 1.0], dtype=np.float32)

    def linear(error):
        grad = slopes + np.float32([0.0, error])
        return FunctionPosterior(
            lambda x: x.astype(np.float32) @ slopes, lambda x: np.tile(grad, (len(x), 1)), 2
        )

    check_gradient(linear(3e-4), [0.0, 0.0])  # ten rounding errors of the largest are 1e-3
    with pytest.raises(ValueError, match="grad is wrong"):
        check_gradient(linear(1e-2), [0.0, 0.0])


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


class SinglePrecision(NormalMean):
    """Rows whose functions return float32."""

    factor = 1.0

    def log_likelihood(self, theta, idx=None):
        return super().log_likelihood(theta, idx).astype(np.float32)

    def grad_log_likelihood(self, theta, idx=None):
        return (self.factor * super().grad_log_likelihood(theta, idx)).astype(np.float32)


def test_the_tolerance_of_a_gradient_knows_single_precision():
    posterior = SinglePrecision(n_samples=3000)
    check_gradient(posterior)
    posterior.factor = 1.02
    with pytest.raises(ValueError, match=r"^grad_log_likelihood is wrong: mean"):
        check_gradient(posterior)

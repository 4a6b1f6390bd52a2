"""The check of gradients finds small errors and tolerates rounding."""

import numpy as np
import pytest

from skbayes_sgld.posterior import CustomPosterior, FunctionPosterior, check_gradient
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


@pytest.mark.parametrize("offset", [0.0, 1e3])
def test_a_right_gradient_passes_beside_a_large_constant(offset):
    check_gradient(quartic(offset=offset), [[0.7, -1.1], [2.0, 0.3]])


@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e8])
def test_right_gradients_pass_whatever_their_size(scale):
    check_gradient(
        FunctionPosterior(lambda x: -scale * np.cosh(x).sum(1), lambda x: -scale * np.sinh(x), 3)
    )


@pytest.mark.parametrize("factor", [1.0, 2.0])
def test_among_many_parameters_a_share_of_wrong_ones_is_found(factor):
    slopes = -np.where(np.arange(1000) % 20 == 3, factor, 1.0)
    posterior = FunctionPosterior(lambda x: -0.5 * (x**2).sum(1), lambda x: x * slopes, 1000)
    if factor == 1.0:
        check_gradient(posterior)
        return
    with pytest.raises(ValueError, match=r"grad is wrong: theta\[\d*[02468]?3\] has"):
        check_gradient(posterior)


def test_a_density_without_a_number_near_the_point_is_refused():
    posterior = FunctionPosterior(
        lambda x: np.where(x[:, 0] < 0.5, 0.0, -np.inf), lambda x: 0 * x, 1, start=[0.4]
    )
    with pytest.raises(ValueError, match=r"^grad .* not finite where theta\[0\] moves"):
        check_gradient(posterior, [0.5 - 1e-6])
    with pytest.raises(ValueError, match=r"^theta of shape \(2,\) must be"):
        check_gradient(posterior, [0.1, 0.2])


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


class SinglePrecision:
    """A logistic model whose functions compute and return in float32."""

    n_samples, n_params, factor = 3000, 4, 1.0
    rng = np.random.default_rng(0)
    X = rng.standard_normal((3000, 4)).astype(np.float32)
    y = rng.integers(0, 2, 3000).astype(np.float32)

    def _rows(self, b, idx):
        X, y = (self.X, self.y) if idx is None else (self.X[idx], self.y[idx])
        return X, y, (X @ b.astype(np.float32)[:, :, None])[..., 0]

    def log_likelihood(self, b, idx=None):
        _, y, u = self._rows(b, idx)
        return y * u - np.logaddexp(np.float32(0), u)

    def grad_log_likelihood(self, b, idx=None):
        X, y, u = self._rows(b, idx)
        return ((y - 1 / (1 + np.exp(-u)))[:, None] @ X)[:, 0] * np.float32([1, 1, self.factor, 1])

    def log_prior(self, b):
        return -0.5 * np.square(b.astype(np.float32)).sum(axis=1)

    def grad_log_prior(self, b):
        return -b.astype(np.float32)


def test_the_tolerance_of_a_gradient_knows_single_precision():
    # in double precision's tolerance: "grad is wrong: -0.01049, by finite differences -0.0104902"
    check_gradient(CustomPosterior(SinglePrecision()))
    wrong = SinglePrecision()
    wrong.factor = 1.02
    with pytest.raises(ValueError, match=r"^grad_log_likelihood is wrong: theta\[2\]"):
        check_gradient(CustomPosterior(wrong))

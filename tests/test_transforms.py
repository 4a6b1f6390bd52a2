"""Every registered transform: increasing, onto its interval, with the slopes that it gives."""

import numpy as np
import pytest

from skbayes_sgld._components import resolve
from skbayes_sgld.transforms import TRANSFORMS
from tests.numeric import assert_derivative, derivative

T = np.linspace(-4.0, 4.0, 9)


def check_transform(name):
    """Raise where the transform of this name is not the map that it says it is."""
    transform = resolve(name, TRANSFORMS, "transform")
    x = transform.forward(T)
    assert np.all(np.diff(x) > 0), "it does not increase"
    assert np.all((x > transform.low) & (x < transform.high))
    np.testing.assert_allclose(transform.inverse(x), T, atol=1e-9, err_msg="inverse")
    slope = np.diagonal(derivative(transform.forward, T))
    assert_derivative(transform.log_slope(T), np.log(slope), "log_slope")
    bend = np.diagonal(derivative(transform.log_slope, T))
    assert_derivative(transform.grad_log_slope(T), bend, "grad_log_slope")
    ends = transform.forward(np.array([-30.0, 30.0]))
    for end, limit in zip(ends, (transform.low, transform.high), strict=True):
        reached = abs(end - limit) < 1e-9 if np.isfinite(limit) else abs(end) > 1e6
        assert reached, "it does not reach its ends"


@pytest.mark.parametrize("name", TRANSFORMS)
def test_a_transform_is_the_map_that_it_says_it_is(name):
    check_transform(name)

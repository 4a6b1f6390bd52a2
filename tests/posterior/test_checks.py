"""How small an error of a gradient the check finds, and how little it minds rounding."""

import pytest

from skbayes_sgld.posterior import FunctionPosterior, check_gradient


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

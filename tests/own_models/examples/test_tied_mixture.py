"""The mixture with tied means: its distribution, its symmetry, and the exact grid."""

import numpy as np
import pytest
from scipy import integrate, stats

from skbayes_sgld.datasets import make_tied_means_mixture
from skbayes_sgld.own_models import TiedGaussianMixture, check_gradient

FEW = np.array([-1.4, 0.3, 0.9, 2.2, 3.1, -0.2])


def few(**kwargs):
    return TiedGaussianMixture(FEW, **kwargs)


def density(x, theta1, theta2, variance=2.0, prior_variances=(10.0, 1.0)):
    """The unnormalised posterior, by scipy.stats and a loop."""
    value = 1.0
    for theta, v in zip((theta1, theta2), prior_variances, strict=True):
        value = value * stats.norm.pdf(theta, 0, np.sqrt(v))
    for point in x:
        for_first = stats.norm.pdf(point, theta1, np.sqrt(variance))
        value = (
            value * 0.5 * (for_first + stats.norm.pdf(point, theta1 + theta2, np.sqrt(variance)))
        )
    return value


@pytest.mark.parametrize(
    "kwargs", [{}, {"variance": 0.7, "prior_variances": (3.0, 2.0)}], ids=["paper", "other"]
)
def test_density_and_gradient_are_those_of_the_mixture(kwargs):
    posterior = few(**kwargs)
    theta = np.array([[0.2, 1.3], [1.4, -0.8], [-2.0, 0.0]])
    expected = [np.log(density(FEW, *t, **kwargs)) for t in theta]
    np.testing.assert_allclose(posterior.log_density(theta), expected, rtol=1e-12)
    check_gradient(posterior, theta)
    assert posterior.param_names == ["theta1", "theta2"]


def test_points_far_from_both_components_neither_overflow_nor_vanish():
    posterior = TiedGaussianMixture([1e3, -1e3])
    theta = np.array([[0.0, 1.0]])
    assert np.isfinite(posterior.log_density(theta)).all()
    check_gradient(posterior, theta)


def test_the_start_is_no_point_between_the_modes():
    posterior = few()
    # by symmetry the gradient of the likelihood vanishes at (mean, 0): a sampler may begin
    # there, but what looks for a mode must not
    middle = np.array([[FEW.mean(), 0.0]])
    np.testing.assert_allclose(posterior.grad_log_likelihood(middle), 0, atol=1e-12)
    assert posterior.start()[1] == 1.0


def test_the_grid_of_a_tempered_distribution_is_that_of_the_power():
    # few points, so that the grid is wide; the axes differ, so as not to be exchanged
    grid = few().tempered(2.5).grid_density(theta1=(-14, 16), theta2=(-8, 8))
    a, b = np.linspace(-14, 16, 241), np.linspace(-8, 8, 257)
    power = density(FEW, a[:, None], b) ** (1 / 2.5)
    total = integrate.simpson(integrate.simpson(power, x=b), x=a)
    assert grid.log_evidence == pytest.approx(np.log(total), abs=1e-3)
    upper = slice(np.abs(b).argmin(), None)  # from 0, which is among the points
    above = integrate.simpson(integrate.simpson(power[:, upper], x=b[upper]), x=a) / total
    np.testing.assert_allclose(grid.mass, [above, 1 - above], atol=2e-4)
    area = (grid.theta1[1] - grid.theta1[0]) * (grid.theta2[1] - grid.theta2[0])
    assert grid.density.sum() * area == pytest.approx(1.0)
    for axis, got in (
        (a, grid.theta1 @ grid.density.sum(1)),
        (b, grid.density.sum(0) @ grid.theta2),
    ):
        moment = power * (axis[:, None] if axis is a else axis)
        expected = integrate.simpson(integrate.simpson(moment, x=b), x=a) / total
        assert got * area == pytest.approx(expected, abs=2e-3)


@pytest.mark.parametrize(
    "kwargs, match",
    [
        ({"theta1": (0.0, 5.0)}, "goes on beyond theta1"),
        ({"theta1": (3.0, -3.0)}, "^theta1=.* two numbers in order"),
        ({"theta2": 4.0}, "^theta2=4.0 must be two numbers"),
        ({"n_points": 3}, "^n_points=3 is out of range"),
        ({"n_points": 9}, "^n_points=9 is too coarse"),
    ],
)
def test_a_grid_that_would_not_tell_the_truth_is_refused(kwargs, match):
    with pytest.raises(ValueError, match=match):
        TiedGaussianMixture(make_tied_means_mixture(200, random_state=0)[0]).grid_density(**kwargs)


@pytest.mark.parametrize(
    "X, kwargs, match",
    [
        (np.zeros((3, 2)), {}, r"^X of shape \(3, 2\) must be"),
        ([1.0, np.nan], {}, "^X of shape .* must be finite"),
        ([], {}, "^X of shape"),
        ([1.0], {"variance": 0.0}, "^variance=0.0 is out of range"),
        ([1.0], {"prior_variances": (1.0, -1.0)}, r"^prior_variances\[1\]=-1.0 is out"),
        ([1.0], {"prior_variances": 3.0}, "^prior_variances=3.0 must be two"),
    ],
)
def test_bad_input_is_named(X, kwargs, match):
    with pytest.raises(ValueError, match=match):
        TiedGaussianMixture(X, **kwargs)

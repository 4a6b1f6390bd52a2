"""Models of the users' own: their distribution under the samplers, and the errors found."""

import re

import numpy as np
import pytest
from scipy import integrate, stats

from skbayes_sgld.own_models import CustomPosterior, FunctionPosterior, check_gradient
from skbayes_sgld.posterior import Posterior
from skbayes_sgld.transforms import Interval, Positive
from tests.numeric import derivative_by_chain

BOUNDED = [
    pytest.param("positive", stats.gamma(2.5, scale=0.3), 1.6, id="positive"),
    pytest.param("unit_interval", stats.beta(3.0, 2.0), 1.0, id="unit_interval"),
    pytest.param(Interval(-1, 3), stats.beta(2.5, 4.0, loc=-1, scale=4), 0.5, id="interval"),
]


def of_distribution(exact, transform):
    """A FunctionPosterior whose parameter has this distribution; its slope is numerical."""

    def slope(x, h=1e-6):
        return (exact.logpdf(x * (1 + h)) - exact.logpdf(x * (1 - h))) / (2 * h * x)

    return FunctionPosterior(
        lambda x: exact.logpdf(x[:, 0]), slope, 1, ["a"], transforms={"a": transform}, batched=True
    )


class Trend:
    """y ~ N(a + b t, s^2) with weak normal priors on a and b and an exponential one on s."""

    n_params = 3
    param_names = ["a", "b", "s"]

    def __init__(self, n_samples=20):
        self.n_samples = n_samples
        self.t = np.linspace(-1, 1, n_samples)
        self.y = 1 + 2 * self.t + 0.3 * np.random.default_rng(0).standard_normal(n_samples)

    def _residual(self, x, idx):
        t, y = (self.t, self.y) if idx is None else (self.t[idx], self.y[idx])
        return y - x[:, :1] - x[:, 1:2] * t, t

    def log_likelihood(self, x, idx=None):
        residual, _ = self._residual(x, idx)
        return -0.5 * (residual / x[:, 2:]) ** 2 - np.log(x[:, 2:]) - 0.5 * np.log(2 * np.pi)

    def grad_log_likelihood(self, x, idx=None):
        residual, t = self._residual(x, idx)
        s = x[:, 2]
        columns = [
            residual.sum(1) / s**2,
            (residual * t).sum(1) / s**2,
            (residual**2).sum(1) / s**3 - residual.shape[1] / s,
        ]
        return np.stack(columns, axis=1)

    def log_prior(self, x):
        return stats.norm(0, 10).logpdf(x[:, :2]).sum(1) - x[:, 2]

    def grad_log_prior(self, x):
        return np.column_stack([-x[:, :2] / 100, -np.ones(len(x))])


class OfOne:
    """A model whose functions take one theta ``(P,)``, and return lists and numbers."""

    def __init__(self, model):
        self.model = model

    def __getattr__(self, name):
        value = getattr(self.model, name)
        if not callable(value):
            return value

        def function(x, idx=None):
            assert x.shape == (self.n_params,)
            return value(x[None], *([] if idx is None else [idx[None]]))[0].tolist()

        return function


def trend(**kwargs):
    return CustomPosterior(Trend(), transforms={"s": "positive"}, **kwargs)


# ---- the distribution ---------------------------------------------------------------------------


@pytest.mark.parametrize("transform, exact, temperature", BOUNDED)
def test_a_bounded_parameter_has_its_tempered_distribution_in_free_coordinates(
    transform, exact, temperature
):
    posterior = of_distribution(exact, transform).tempered(temperature)
    natural, _ = integrate.quad(lambda x: exact.pdf(x) ** (1 / temperature), *exact.support())
    free, _ = integrate.quad(
        lambda t: np.exp(posterior.log_density(np.array([[t]]))[0] / temperature), -40, 30
    )
    assert free == pytest.approx(natural, rel=1e-6)
    theta = np.array([[-1.0], [0.3], [2.0]])
    slope = derivative_by_chain(posterior.log_density, theta, h=1e-4)
    np.testing.assert_allclose(posterior.grad(theta), slope, rtol=1e-5, atol=1e-6)
    value, grad = posterior.value_and_grad(theta)
    np.testing.assert_array_equal(value, posterior.log_density(theta))
    np.testing.assert_array_equal(grad, posterior.grad(theta))
    values = exact.ppf([[0.01], [0.4], [0.99]])
    np.testing.assert_allclose(posterior.constrain(posterior.unconstrain(values)), values)


def test_the_likelihood_and_the_prior_of_a_model_are_its_laws():
    posterior, model = trend(), Trend()
    a, b, s = 0.9, 1.7, 0.4
    theta = np.array([[a, b, np.log(s)]])
    expected = [stats.norm(a + b * t, s).logpdf(y) for t, y in zip(model.t, model.y, strict=True)]
    np.testing.assert_allclose(posterior.log_likelihood(theta)[0], expected)
    prior = stats.norm(0, 10).logpdf([a, b]).sum() + stats.expon().logpdf(s) + np.log(s)
    assert posterior.log_prior(theta)[0] == pytest.approx(prior)
    assert posterior.log_density(theta)[0] == pytest.approx(sum(expected) + prior)
    assert isinstance(posterior, Posterior)
    check_gradient(posterior)
    check_gradient(posterior.tempered(0.3))


def test_a_model_of_one_theta_gives_the_numbers_of_the_batched_one():
    one = CustomPosterior(OfOne(Trend()), transforms={"s": "positive"}, batched=False)
    all_at_once = trend()
    rng = np.random.default_rng(1)
    theta, idx = rng.standard_normal((4, 3)), rng.integers(0, 20, (4, 7))
    for name in ("log_density", "grad", "log_prior", "grad_log_prior"):
        expected = getattr(all_at_once, name)(theta)
        np.testing.assert_allclose(getattr(one, name)(theta), expected, rtol=1e-12)
    for name in ("log_likelihood", "grad_log_likelihood"):
        expected = getattr(all_at_once, name)(theta, idx)
        np.testing.assert_allclose(getattr(one, name)(theta, idx), expected, rtol=1e-12)
    flat = FunctionPosterior(lambda x: -x @ x, lambda x: -2 * x, 2, batched=False)
    np.testing.assert_allclose(flat.log_density(theta[:, :2]), -(theta[:, :2] ** 2).sum(1))
    check_gradient(flat)


def test_a_transform_stands_for_all_entries_of_its_parameter():
    names = ["tau[0]", "mu", "tau[1]", "taus"]
    posterior = FunctionPosterior(
        lambda x: -np.abs(x).sum(1), lambda x: -np.sign(x), 4, names, transforms={"tau": Positive()}
    )
    assert posterior.param_names == ["log_tau[0]", "mu", "log_tau[1]", "taus"]
    assert posterior.constrained_names == names
    np.testing.assert_allclose(posterior.constrain(np.zeros((1, 4))), [[1, 0, 1, 0]])


def test_the_start_is_given_in_natural_parameters_and_not_shared():
    posterior = trend(start=[1.0, 2.0, 0.5])
    np.testing.assert_allclose(posterior.start(), [1, 2, np.log(0.5)])
    posterior.start()[:] = 7
    np.testing.assert_allclose(posterior.start(), [1, 2, np.log(0.5)])
    np.testing.assert_array_equal(trend().start(), np.zeros(3))


def test_tempering_leaves_the_posterior_as_it_was():
    posterior = trend()
    assert (posterior.tempered(0.2).temperature, posterior.temperature) == (0.2, 1.0)
    with pytest.raises(ValueError, match=r"^temperature=0 is out of range"):
        posterior.tempered(0)


def broken(name, change):
    """A trend whose function ``name`` gives something else."""
    model = Trend()
    right = getattr(model, name)
    setattr(model, name, lambda x, *idx: change(right(x, *idx)))
    return CustomPosterior(model, transforms={"s": "positive"})


def test_the_worst_of_several_wrong_derivatives_is_named_with_both_values():
    wrong = broken("grad_log_likelihood", lambda grad: grad * [1.0001, 1.1, 1.0001])
    theta = np.array([[0.3, -0.4, 0.2]])
    given, right = (model.grad_log_likelihood(theta)[0, 1] for model in (wrong, trend()))
    number = r"(-?[\d.]+(?:e-?\d+)?)"
    with pytest.raises(ValueError, match="^grad_log_likelihood is wrong: b has") as error:
        check_gradient(wrong, theta)
    found = re.search(f"derivative {number} at .* differences {number}\\.$", str(error.value))
    assert [float(v) for v in found.groups()] == pytest.approx([given, right], rel=1e-4)


# ---- bad input ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "function, change, shape",
    [
        ("log_prior", lambda value: value[:, None], r"\(2, 1\)"),
        ("log_likelihood", lambda value: value.sum(1), r"\(2,\)"),
        ("grad_log_prior", lambda value: value[0], r"\(3,\).* take batched=False"),
    ],
)
def test_a_wrong_shape_is_refused_with_the_right_one(function, change, shape):
    with pytest.raises(ValueError, match=f"^{function} returned the shape {shape}"):
        broken(function, change)


@pytest.mark.parametrize(
    "kwargs, match",
    [
        ({"transforms": {"sd": "positive"}}, "key 'sd', which is no parameter.*a, b, s"),
        ({"transforms": {"s": "negative"}}, r"^transforms\['s'\]='negative' is not known"),
        ({"transforms": {"s": Interval(2.0, 1.0)}}, "^transform.high=1.0 is out of range"),
        ({"transforms": "positive"}, "^transforms='positive' .* give a dictionary"),
        ({"transforms": {"s": "positive"}, "start": [0, 0, -2]}, r"^s=-2 is out of range.*\(0, in"),
        ({"start": [1, 2]}, "^start has .* must be 3 finite numbers"),
        ({"start": [0, 0, np.nan]}, "^start has .* all numbers must be finite"),
        ({}, "is not finite at the start, where a=0, b=0, s=0; give a start"),
    ],
)
# the density divides by zero on purpose
@pytest.mark.filterwarnings("ignore:divide by zero|invalid value:RuntimeWarning")
def test_arguments_that_cannot_be_used_are_named(kwargs, match):
    with pytest.raises((TypeError, ValueError), match=match):
        CustomPosterior(Trend(), **kwargs)


def test_a_gradient_that_is_no_function_is_named():
    with pytest.raises(TypeError, match="^grad=3 must be a function"):
        FunctionPosterior(np.sum, 3, 1)

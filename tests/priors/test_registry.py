"""Every registered prior of the coefficients: derivatives, mass, width and what it says of itself.

A new prior is tested by its name in the registry; nothing here has to be edited.
"""

import inspect

import numpy as np
import pytest
from scipy import integrate, stats

from skbayes_sgld._components import resolve
from skbayes_sgld.priors import PRIORS, LocationScale, StudentT
from tests.numeric import assert_derivative, derivative

C, K, D = 4, 2, 3
RNG = np.random.default_rng(0)
COEF = RNG.standard_normal((C, K, D)) * 1.3
GAMMA = np.array([-0.7, 0.1, 0.4, 1.2])


def by_default(name):
    """Prior as it is by default, for columns of one spread."""
    return resolve(name, PRIORS, "prior").for_data(1.3, 1.0)


def variants(name):
    """Prior as it is by default, and with vectors and a matrix where it takes them."""
    given = {
        "scale": np.array([0.4, 1.0, 2.5]),
        "location": np.array([0.3, -0.2, 0.1]),
    }
    names = inspect.signature(PRIORS[name]).parameters
    yield by_default(name)
    matrix = {"covariance": np.array([[1.0, 0.5, 0.2], [0.5, 2.0, -0.3], [0.2, -0.3, 0.6]])}
    for values in (given, matrix | {"location": given["location"]}):
        values = {key: value for key, value in values.items() if key in names}
        if values:
            prior = resolve(PRIORS[name](**values), PRIORS, "prior").for_data(1.3, 1.0)
            prior.check(D)
            yield prior
    for key, value in by_default(name).get_params().items():
        if key in given or not isinstance(value, float):
            continue
        prior = PRIORS[name](**{key: value * np.array([0.6, 1.0, 1.6])}).for_data(1.3, 1.0)
        try:
            prior.check(D)
        except (TypeError, ValueError):
            continue  # a number for all columns
        yield prior


def check_prior(name):
    """Raise where the prior of this name contradicts itself."""
    for prior in variants(name):
        check_derivatives(prior)
        check_smoothed(prior)
        check_noise(prior)
        check_concave(prior)
        check_draws(prior)
    check_mass(by_default(name))
    check_distribution(by_default(name))
    check_automatic(resolve(name, PRIORS, "prior"))


def check_draws(prior):
    """The share of draws below each quantile is the quantile's level."""
    n, levels = 2000, np.array([0.1, 0.3, 0.5, 0.9])  # more than columns
    rng, variance = np.random.default_rng(1), 1.7
    drawn = prior.sample(rng, (n, D), variance)
    quantiles = prior.given_noise(variance).quantiles(levels, D)
    if quantiles is None:
        return
    location = prior.get_params().get("location", 0.0)
    assert quantiles.shape == (len(levels), D), f"quantiles have the shape {quantiles.shape}"
    below = (drawn - location < quantiles[:, None]).mean(axis=1)
    error = np.sqrt(levels * (1.0 - levels) / n)[:, None]
    told = f"draws are not of the quantiles: shares {below.tolist()} at the levels {levels}"
    assert np.all(np.abs(below - levels[:, None]) < 5.0 * error), told


def check_automatic(prior):
    """An automatic scale is that of the data, in the units of each column."""
    spread = np.array([0.5, 1.0, 8.0])
    found = prior.for_data(1.3, spread)
    assert not found.automatic
    if not prior.automatic:
        assert found is prior
        return
    one = prior.for_data(1.3, 1.0)
    np.testing.assert_allclose(found.scale * spread, one.scale, err_msg="units of the columns")
    scaled = 1.0 if prior.scaled_by_noise else 10.0
    np.testing.assert_allclose(prior.for_data(13.0, 1.0).scale, scaled * one.scale)


def check_derivatives(prior):
    """The gradient is the density's derivative, the curvature minus the gradient's."""
    value = prior.log_density(COEF, GAMMA)
    assert value.shape == (C,)
    in_coef, in_gamma = prior.grad(COEF, GAMMA)
    expected = derivative(lambda x: prior.log_density(x, GAMMA), COEF)
    chains = np.arange(C)
    assert_derivative(in_coef, expected[chains, chains], "gradient in the coefficients")
    slope = derivative(lambda g: prior.log_density(COEF, g), GAMMA)[chains, chains]
    assert_derivative(0.0 if in_gamma is None else in_gamma, slope, "gradient in gamma")
    # chains do not see each other
    np.testing.assert_allclose(prior.log_density(COEF[1:2], GAMMA[1:2]), value[1:2], rtol=1e-12)
    for c in range(C):
        check_curvature(prior, COEF[c], GAMMA[c])


def joint_gradient(prior, x):
    """Gradient at coefficients and gamma in one vector."""
    in_coef, in_gamma = prior.grad(x[:-1].reshape(1, K, D), x[-1:])
    return np.r_[np.broadcast_to(in_coef, (1, K, D)).ravel(), 0.0 if in_gamma is None else in_gamma]


def check_curvature(prior, coef, gamma):
    """Minus the Hessian: of the coefficients, with gamma, and gamma's own."""
    hessian = -derivative(lambda x: joint_gradient(prior, x), np.r_[coef.ravel(), gamma])
    of_coef, cross, corner = prior.curvature(coef, float(gamma))
    among = np.zeros((K * D, K * D))
    if np.ndim(of_coef) > 2:  # a matrix a linear predictor
        for k in range(K):
            among[k * D : (k + 1) * D, k * D : (k + 1) * D] = np.broadcast_to(of_coef, (K, D, D))[k]
    else:
        np.fill_diagonal(among, np.broadcast_to(of_coef, (K, D)))
    assert_derivative(among, hessian[:-1, :-1], "curvature in the coefficients")
    cross = np.zeros((K, D)) if cross is None else cross
    assert_derivative(np.ravel(cross), hessian[-1, :-1], "curvature with gamma")
    assert_derivative(corner, hessian[-1, -1], "curvature in gamma")


def check_mass(prior):
    """A proper density has a mass, the same whatever the noise; an improper one has none."""

    def mass(gamma, reach=np.inf):
        def density(beta):
            return np.exp(prior.log_density(np.full((1, 1, 1), beta), np.array([gamma]))[0])

        middle = np.ravel(getattr(prior, "location", 0.0))[0]
        left = integrate.quad(density, middle - reach, middle, limit=400)[0]
        return left + integrate.quad(density, middle, middle + reach, limit=400)[0]

    if not prior.proper:
        assert mass(0.2, 1e6) > 100.0 * mass(0.2, 1e3), "it says that it is improper"
        return
    masses = [mass(gamma) for gamma in (-0.7, 0.2, 1.5)]
    assert np.isfinite(masses).all() and min(masses) > 0
    np.testing.assert_allclose(masses, masses[0], rtol=1e-6, err_msg="the mass follows the noise")


def check_distribution(prior):
    """Quantiles and draws are those of the density: no other function of the prior is asked."""
    if not prior.proper:
        return
    variance, levels, n = 1.7, np.array([0.02, 0.3, 0.5, 0.9]), 200_000
    middle = np.ravel(getattr(prior, "location", 0.0))[0]

    def density(beta):
        return np.exp(prior.log_density(np.full((1, 1, 1), beta), np.log([variance]))[0])

    def mass(low, high):
        return integrate.quad(density, low, high, limit=400)[0]

    left, right = mass(-np.inf, middle), mass(middle, np.inf)

    def share_below(points):
        return [(left + mass(middle, point)) / (left + right) for point in points]

    quantiles = prior.given_noise(variance).quantiles(levels, 1)
    if quantiles is not None:
        found = share_below(middle + quantiles[:, 0])
        np.testing.assert_allclose(found, levels, rtol=1e-5, err_msg="quantiles of the density")
    drawn = prior.sample(np.random.default_rng(1), (n, 1), variance)
    found = share_below(np.quantile(drawn, levels))
    error = np.sqrt(levels * (1.0 - levels) / n)
    told = f"draws are not of the density: shares {found} at the levels {levels}"
    assert np.all(np.abs(found - levels) < 5.0 * error), told


def check_smoothed(prior):
    """Averaged over normal errors it is their integral, with the derivatives of that integral."""
    width = np.full((K, D), 0.6)
    smooth = prior.averaged_over(width)
    check_derivatives(smooth)
    check_derivatives(prior.averaged_over(None))
    if smooth is prior:
        assert not prior.nonsmooth, "a prior with a kink is not its own average"
        return
    errors = np.linspace(-8.0, 8.0, 8001)
    weights = np.exp(-0.5 * errors**2) / np.exp(-0.5 * errors**2).sum()
    moved = (COEF + 0.6 * errors[:, None, None, None]).reshape(-1, K, D)
    values = prior.log_density(moved, np.tile(GAMMA, len(errors))).reshape(-1, C)
    # 24 coefficients; the heavy tails are averaged by a handful of nodes
    np.testing.assert_allclose(smooth.log_density(COEF, GAMMA), weights @ values, atol=0.01)


def check_says(prior, attribute, found):
    """Raise where an attribute is not what its log density shows."""
    said = getattr(prior, attribute)
    assert said == found, f"{attribute}={said}, and its log density shows {attribute}={found}"


def check_noise(prior):
    """Check what a prior says of the noise, and of being normal."""
    value, moved = prior.log_density(COEF, GAMMA), prior.log_density(COEF, GAMMA + 0.5)
    check_says(prior, "scaled_by_noise", not np.allclose(value, moved))
    given = prior.given_noise(float(np.exp(GAMMA[0])))
    assert not given.scaled_by_noise
    same = np.full(C, GAMMA[0])
    difference = given.log_density(COEF, None) - prior.log_density(COEF, same)
    np.testing.assert_allclose(difference, difference[0], atol=1e-9, err_msg="given_noise")
    here, there = (prior.curvature(coef, 0.3)[0] for coef in COEF[:2])
    quadratic = bool(np.allclose(here, there)) and not prior.nonsmooth
    check_says(prior, "normal", quadratic)
    check_says(prior, "flat", not np.any(prior.grad(COEF, GAMMA)[0]))


def check_concave(prior):
    """Check that a prior is log-concave if, and only if, it says so."""
    rng = np.random.default_rng(2)
    way = rng.standard_normal((40, K, D))
    middle = np.broadcast_to(getattr(prior, "location", 0.0), (K, D))
    concave = True
    for gamma in (-0.7, 1.2):
        steps = np.linspace(-30.0, 30.0, 1201)
        line = middle + steps[:, None, None, None] * way  # (steps, lines, K, D)
        flat = line.reshape(-1, K, D)
        value = prior.log_density(flat, np.full(len(flat), gamma)).reshape(len(steps), 40)
        bend = np.diff(value, 2, axis=0)
        concave &= bool(np.all(bend <= 1e-12 * np.abs(value).max()))
    check_says(prior, "log_concave", concave)


class TailsByColumn(StudentT):
    """Degrees of freedom that may be one number per column."""

    def check(self, n_features=None, argument="prior"):
        LocationScale.check(self, n_features, argument)


def test_a_prior_whose_own_parameter_is_a_vector_has_quantiles_of_each_column(monkeypatch):
    monkeypatch.setitem(PRIORS, "tails", TailsByColumn)
    assert any(np.ndim(prior.df) for prior in variants("tails"))
    check_prior("tails")


@pytest.mark.parametrize("name", PRIORS)
def test_a_prior_is_what_it_says_it_is(name):
    check_prior(name)


@pytest.mark.parametrize(
    "scale, location",
    [(0.5, 0.0), (np.array([0.4, 1.0, 2.5]), np.array([0.3, -0.2, 0.1]))],
    ids=["numbers", "vectors"],
)
def test_priors_are_the_laws_they_name(scale, location):
    sigma = np.exp(GAMMA / 2)[:, None, None]
    laws = {
        "normal": stats.norm(location, scale),
        "laplace": stats.laplace(location, scale),
        "conjugate_normal": stats.norm(location, scale * sigma),
        "cauchy": stats.cauchy(location, scale),
        "student_t": stats.t(4.0, location, scale),
    }
    for name, law in laws.items():
        got = PRIORS[name](scale=scale, location=location).log_density(COEF, GAMMA)
        assert np.ptp(got - law.logpdf(COEF).sum(axis=(1, 2))) < 1e-11, name

"""Every registered prior of the coefficients: derivatives, mass, width and what it says of itself.

A new prior is tested by its name in the registry; nothing here has to be edited.
"""

import inspect
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from scipy import integrate, stats

from skbayes_sgld._components import resolve
from skbayes_sgld.priors import PRIORS, CoefficientPrior, LocationScale, StudentT
from tests.numeric import assert_derivative, derivative

C, K = 4, 2
COLUMNS = 3  # of a prior that takes any number of them
GAMMA = np.array([-0.7, 0.1, 0.4, 1.2])


def points(d):
    """Coefficients ``(C, K, d)``."""
    return np.random.default_rng(0).standard_normal((C, K, d)) * 1.3


COEF = points(COLUMNS)


def columns(prior):
    """Number of columns that a prior is checked with: three, or what its own check accepts."""
    for d in (COLUMNS, 2, 1, *range(4, 10)):
        try:
            prior.check(d)
        except (TypeError, ValueError):
            continue
        return d
    prior.check(COLUMNS)  # raises


def by_default(name):
    """Prior as it is by default, for columns of one spread."""
    return resolve(name, PRIORS, "prior").for_data(1.3, 1.0)


def variants(name):
    """Prior as it is by default, and with vectors and a matrix where it takes them."""
    d = columns(by_default(name))
    given = {
        "scale": np.resize([0.4, 1.0, 2.5], d),
        "location": np.resize([0.3, -0.2, 0.1], d),
    }
    names = inspect.signature(PRIORS[name]).parameters
    yield by_default(name)
    matrix = np.eye(d)
    matrix[:3, :3] = np.array([[1.0, 0.5, 0.2], [0.5, 2.0, -0.3], [0.2, -0.3, 0.6]])[:d, :d]
    matrix = {"covariance": matrix}
    for values in (given, matrix | {"location": given["location"]}):
        values = {key: value for key, value in values.items() if key in names}
        if values:
            prior = resolve(PRIORS[name](**values), PRIORS, "prior").for_data(1.3, 1.0)
            prior.check(d)
            yield prior
    for key, value in by_default(name).get_params().items():
        if key in given or not isinstance(value, float):
            continue
        prior = PRIORS[name](**{key: value * np.resize([0.6, 1.0, 1.6], d)}).for_data(1.3, 1.0)
        try:
            prior.check(d)
        except (TypeError, ValueError):
            continue  # a number for all columns
        yield prior


def check_prior(name):
    """Raise where the prior of this name contradicts itself."""
    d = columns(by_default(name))
    for prior in variants(name):
        check_derivatives(prior, points(d))
        check_smoothed(prior, points(d))
        check_noise(prior, points(d))
        check_concave(prior, d)
        check_draws(prior, d)
    try:
        by_default(name).check(1)
    except (TypeError, ValueError):  # no density of one coefficient can be integrated
        check_joint_mass(by_default(name), d)
        check_joint_draws(by_default(name), d)
    else:
        check_mass(by_default(name))
        check_distribution(by_default(name))
    check_automatic(resolve(name, PRIORS, "prior"), d)


def check_joint_mass(prior, d):
    """An improper density of several columns hardly falls along the line of its least curvature."""
    if prior.proper:  # its draws follow it
        return
    curvature = prior.curvature(np.zeros((1, d)), 0.2)[0]
    way = np.linalg.eigh(curvature[0] if curvature.ndim > 2 else np.diag(curvature[0]))[1][:, 0]
    near, far = prior.log_density(np.array([1e3, 1e6])[:, None, None] * way, np.full(2, 0.2))
    assert far - near > -np.log(1e3), "it says that it is improper"


def check_joint_draws(prior, d):
    """Draws of several columns follow the density.

    With it the mean of ``df/dx + f(x) dlog p/dx`` is 0 for every bounded function f (Stein's
    identity), and that of the derivative in gamma is 0 if the mass does not depend on the noise.
    """
    if not prior.proper:
        return
    n, variance = 100_000, 1.7
    x = prior.sample(np.random.default_rng(1), (n, d), variance)
    slope, in_gamma = prior.grad(x[:, None], np.full(n, np.log(variance)))
    slope = np.broadcast_to(slope, (n, 1, d))[:, 0]
    middle = np.median(x, axis=0)
    z = (x - middle) / np.median(np.abs(x - middle), axis=0)
    f, df = np.tanh(z), np.eye(d) / np.cosh(z)[:, :, None] ** 2
    df = df / np.median(np.abs(x - middle), axis=0)
    terms = (df + f[:, :, None] * slope[:, None, :]).reshape(n, -1)
    terms = np.column_stack([terms, slope, np.zeros(n) if in_gamma is None else in_gamma])
    z_scores = terms.mean(axis=0) / np.maximum(terms.std(axis=0) / np.sqrt(n), 1e-12)
    assert np.all(np.abs(z_scores) < 5.0), f"draws are not of the density: {z_scores.round(1)}"


def check_draws(prior, d=COLUMNS):
    """The share of draws below each quantile is the quantile's level."""
    n, levels = 2000, np.array([0.1, 0.3, 0.5, 0.9])  # more than columns
    rng, variance = np.random.default_rng(1), 1.7
    quantiles = prior.given_noise(variance).quantiles(levels, d)
    if quantiles is None:
        return
    drawn = prior.sample(rng, (n, d), variance)
    location = prior.get_params().get("location", 0.0)
    assert quantiles.shape == (len(levels), d), f"quantiles have the shape {quantiles.shape}"
    below = (drawn - location < quantiles[:, None]).mean(axis=1)
    error = np.sqrt(levels * (1.0 - levels) / n)[:, None]
    told = f"draws are not of the quantiles: shares {below.tolist()} at the levels {levels}"
    assert np.all(np.abs(below - levels[:, None]) < 5.0 * error), told


def check_automatic(prior, d):
    """An automatic scale is that of the data, in the units of each column."""
    spread = np.resize([0.5, 1.0, 8.0], d)
    found = prior.for_data(1.3, spread)
    assert not found.automatic
    if not prior.automatic:
        assert found is prior
        return
    one = prior.for_data(1.3, 1.0)
    np.testing.assert_allclose(found.scale * spread, one.scale, err_msg="units of the columns")
    scaled = 1.0 if prior.scaled_by_noise else 10.0
    np.testing.assert_allclose(prior.for_data(13.0, 1.0).scale, scaled * one.scale)


def check_derivatives(prior, coef=COEF):
    """The gradient is the density's derivative, the curvature minus the gradient's."""
    value = prior.log_density(coef, GAMMA)
    assert value.shape == (C,)
    in_coef, in_gamma = prior.grad(coef, GAMMA)
    expected = derivative(lambda x: prior.log_density(x, GAMMA), coef)
    chains = np.arange(C)
    assert_derivative(in_coef, expected[chains, chains], "gradient in the coefficients")
    slope = derivative(lambda g: prior.log_density(coef, g), GAMMA)[chains, chains]
    assert_derivative(0.0 if in_gamma is None else in_gamma, slope, "gradient in gamma")
    # chains do not see each other
    np.testing.assert_allclose(prior.log_density(coef[1:2], GAMMA[1:2]), value[1:2], rtol=1e-12)
    for c in range(C):
        check_curvature(prior, coef[c], GAMMA[c])


def joint_gradient(prior, x):
    """Gradient at coefficients and gamma in one vector."""
    coef = x[:-1].reshape(1, K, -1)
    in_coef, in_gamma = prior.grad(coef, x[-1:])
    return np.r_[
        np.broadcast_to(in_coef, coef.shape).ravel(), 0.0 if in_gamma is None else in_gamma
    ]


def check_curvature(prior, coef, gamma):
    """Minus the Hessian: of the coefficients, with gamma, and gamma's own."""
    hessian = -derivative(lambda x: joint_gradient(prior, x), np.r_[coef.ravel(), gamma])
    d = coef.shape[1]
    of_coef, cross, corner = prior.curvature(coef, float(gamma))
    among = np.zeros((K * d, K * d))
    if np.ndim(of_coef) > 2:  # a matrix a linear predictor
        for k in range(K):
            among[k * d : (k + 1) * d, k * d : (k + 1) * d] = np.broadcast_to(of_coef, (K, d, d))[k]
    else:
        np.fill_diagonal(among, np.broadcast_to(of_coef, (K, d)))
    assert_derivative(among, hessian[:-1, :-1], "curvature in the coefficients")
    cross = np.zeros((K, d)) if cross is None else cross
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


def check_smoothed(prior, coef):
    """Averaged over normal errors it is their integral, with the derivatives of that integral."""
    width = np.full(coef.shape[1:], 0.6)
    smooth = prior.averaged_over(width)
    check_derivatives(smooth, coef)
    check_derivatives(prior.averaged_over(None), coef)
    if smooth is prior:
        assert not prior.nonsmooth, "a prior with a kink is not its own average"
        return
    errors = np.linspace(-8.0, 8.0, 8001)
    weights = np.exp(-0.5 * errors**2) / np.exp(-0.5 * errors**2).sum()
    moved = (coef + 0.6 * errors[:, None, None, None]).reshape(-1, *coef.shape[1:])
    values = prior.log_density(moved, np.tile(GAMMA, len(errors))).reshape(-1, C)
    # the heavy tails are averaged by a handful of nodes
    np.testing.assert_allclose(smooth.log_density(coef, GAMMA), weights @ values, atol=0.01)


def check_says(prior, attribute, found):
    """Raise where an attribute is not what its log density shows."""
    said = getattr(prior, attribute)
    assert said == found, f"{attribute}={said}, and its log density shows {attribute}={found}"


def check_noise(prior, coef):
    """Check what a prior says of the noise, and of being normal."""
    value, moved = prior.log_density(coef, GAMMA), prior.log_density(coef, GAMMA + 0.5)
    check_says(prior, "scaled_by_noise", not np.allclose(value, moved))
    given = prior.given_noise(float(np.exp(GAMMA[0])))
    assert not given.scaled_by_noise
    same = np.full(C, GAMMA[0])
    difference = given.log_density(coef, None) - prior.log_density(coef, same)
    np.testing.assert_allclose(difference, difference[0], atol=1e-9, err_msg="given_noise")
    here, there = (prior.curvature(at, 0.3)[0] for at in coef[:2])
    quadratic = bool(np.allclose(here, there)) and not prior.nonsmooth
    check_says(prior, "normal", quadratic)
    check_says(prior, "flat", not np.any(prior.grad(coef, GAMMA)[0]))


def check_concave(prior, d):
    """Check that a prior is log-concave if, and only if, it says so."""
    rng = np.random.default_rng(2)
    way = rng.standard_normal((40, K, d))
    middle = np.broadcast_to(getattr(prior, "location", 0.0), (K, d))
    concave = True
    for gamma in (-0.7, 1.2):
        steps = np.linspace(-30.0, 30.0, 1201)
        line = middle + steps[:, None, None, None] * way  # (steps, lines, K, d)
        flat = line.reshape(-1, K, d)
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


@dataclass(eq=False, repr=False)
class OfTwo(CoefficientPrior):
    """Normal prior of the difference of two coefficients, and of their sum unless it is flat."""

    scale: Any = 0.5
    sum_scale: Any = 3.0

    normal = log_concave = True

    def check(self, n_features=None, argument="prior"):
        if n_features not in (None, 2):
            raise ValueError(f"{argument} is of two columns.")

    def matrix(self):
        difference, total = np.array([1.0, -1.0]) / self.scale, np.ones(2) / self.sum_scale
        return np.outer(difference, difference) + np.outer(total, total)

    def log_density(self, coef, gamma):
        return -0.5 * np.einsum("ckd,de,cke->c", coef, self.matrix(), coef)

    def grad(self, coef, gamma):
        return -coef @ self.matrix(), None

    def curvature(self, coef, gamma):
        return self.matrix()[None], None, 0.0

    def sample(self, rng, shape, noise_variance):
        return rng.standard_normal(shape) @ np.linalg.cholesky(np.linalg.inv(self.matrix())).T


@dataclass(eq=False, repr=False)
class OfDifference(OfTwo):
    """Improper: flat in the sum."""

    sum_scale: Any = np.inf
    proper = False
    sample = CoefficientPrior.sample


class OfTwoFalselyImproper(OfTwo):
    proper = False


class OfTwoWide(OfTwo):
    """Draws that are too wide."""

    def sample(self, rng, shape, noise_variance):
        return 1.03 * super().sample(rng, shape, noise_variance)


class OfTwoAlone(OfTwo):
    """Draws of the right variances, and no correlation."""

    def sample(self, rng, shape, noise_variance):
        sd = np.sqrt(np.diag(np.linalg.inv(self.matrix())))
        return sd * rng.standard_normal(shape)


def test_a_prior_of_two_columns_is_checked_with_two(monkeypatch):
    for cls in (OfTwo, OfDifference):
        monkeypatch.setitem(PRIORS, "two", cls)
        check_prior("two")
    wrong = {
        **dict.fromkeys((OfTwoWide, OfTwoAlone), "draws are not of the density"),
        OfTwoFalselyImproper: "it says that it is improper",
    }
    for cls, message in wrong.items():
        monkeypatch.setitem(PRIORS, "two", cls)
        with pytest.raises(AssertionError, match=message):
            check_prior("two")


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

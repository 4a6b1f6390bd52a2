"""Priors with hyperparameters: densities, posteriors by quadrature and importance sampling."""

import pickle

import numpy as np
import pytest
from scipy import integrate, stats

from skbayes_sgld import SGLDLinearRegression, SGLDLogisticRegression
from skbayes_sgld._components import resolve
from skbayes_sgld.inference.parameterizations.learned_scales import standardise
from skbayes_sgld.likelihoods import Bernoulli, Categorical, FixedNormalNoise, NormalNoise, Poisson
from skbayes_sgld.posterior import GLMPosterior, HierarchicalPosterior
from skbayes_sgld.posterior.parameterizations.base import Reparameterized
from skbayes_sgld.posterior.parameterizations.hyperparameters import noncentered_scales
from skbayes_sgld.priors import (
    HIERARCHICAL_PRIORS,
    HierarchicalNormal,
    Horseshoe,
    InverseGamma,
    Normal,
)
from tests.numeric import assert_derivative, derivative, derivative_by_chain
from tests.references.closed_forms import adapted_draws, laplace_fit, z_scores
from tests.references.hierarchical import (
    LearnedScale,
    horseshoe_by_importance,
    linear_quadrature,
)

every_prior = pytest.mark.parametrize("name", HIERARCHICAL_PRIORS)


def table(n=60, seed=0):
    """Correlated columns in units of their own."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 3))
    X[:, 2] += X[:, 0]
    X = X * [1.0, 10.0, 0.1] + [3.0, 100.0, 0.0]
    return X, X[:, 0] - 0.05 * X[:, 1] + rng.standard_normal(n)


def model(likelihood, n=60):
    X, y = table(n)
    targets = {
        Bernoulli: (y > np.median(y)) * 1.0,
        Categorical: np.digitize(y, np.quantile(y, [0.3, 0.6])) * 1.0,
    }
    y = targets.get(type(likelihood), y)
    noise = InverseGamma(2.0, 1.0) if likelihood.infers_noise else None
    weight = np.random.default_rng(1).uniform(0.5, 2.0, n)
    return GLMPosterior(
        X, y, likelihood, Normal(), noise, sample_weight=weight, intercept_at_mean=True
    )


@every_prior
@pytest.mark.parametrize(
    "likelihood, temperature",
    [(NormalNoise(), 2.5), (FixedNormalNoise(1.5), 1.0), (Bernoulli(), 1.0), (Categorical(3), 2.5)],
    ids=["noise", "known noise", "classes of two", "classes of three"],
)
def test_density_and_gradient_are_those_of_theta_with_the_jacobian(name, likelihood, temperature):
    from skbayes_sgld.own_models import check_gradient

    prior = HIERARCHICAL_PRIORS[name]()
    joint = HierarchicalPosterior(model(likelihood), prior)
    center, eta = np.split(joint.start(), [joint.n_linear])
    root, power = np.diag(np.linspace(0.5, 1.0, len(eta))), 0.3 * (not likelihood.quadratic)
    posterior = noncentered_scales(joint, center + 0.1, eta + 0.2, root, power, temperature)
    check_gradient(joint)
    check_gradient(posterior)
    phi = 0.3 * np.random.default_rng(0).standard_normal((3, posterior.n_params))
    map_ = posterior.coordinates
    log_jacobian = np.linalg.slogdet(derivative_by_chain(map_.forward, phi))[1]
    expected = joint.log_density(map_.forward(phi)) + temperature * log_jacobian
    np.testing.assert_allclose(np.ptp(posterior.log_density(phi) - expected), 0.0, atol=1e-4)
    value, grad = posterior.bind_value_and_grad()(phi)  # in closed form under normal noise
    plain = Reparameterized(joint, map_, temperature)
    np.testing.assert_allclose(value, plain.log_density(phi), rtol=1e-9)
    np.testing.assert_allclose(grad, plain.grad(phi), atol=1e-7)
    np.testing.assert_allclose(posterior.bind_grad()(phi), grad, atol=1e-7)
    there = pickle.loads(pickle.dumps(posterior))  # to processes that share chains
    np.testing.assert_array_equal(there.log_density(phi), posterior.log_density(phi))
    np.testing.assert_allclose(map_.inverse(map_.forward(phi)), phi, atol=1e-8)


@pytest.mark.parametrize(
    "n, more_columns, settings, most",
    [
        (40, 0, {}, 0.06),
        (40, 0, {"noise_variance": 0.8}, 0.06),
        (12, 12, {"parameterization": "row_space", "n_draws": 2000}, 0.1),
    ],
    ids=["noise", "known noise", "row space"],
)
def test_a_linear_model_has_the_posterior_of_quadrature(n, more_columns, settings, most):
    X, y = table(n)
    X = np.hstack([X, np.random.default_rng(1).standard_normal((n, more_columns))])
    scale = np.r_[1.0, 0.1, 5.0, np.linspace(0.3, 2.0, more_columns)]
    prior, noise_prior = HierarchicalNormal(scale), InverseGamma(6.0, 5.0)
    fit = SGLDLinearRegression(prior=prior, noise_prior=noise_prior, random_state=0, **settings)
    mean, sd = linear_quadrature(X, y, scale, 6.0, 5.0, settings.get("noise_variance"))
    summary = fit.fit(X, y).summary()
    assert summary["ess_bulk"].min() > 500
    error = np.abs(summary["mean"] - mean) / sd * np.sqrt(summary["ess_bulk"])
    assert error.max() < 4.0
    # tau, the last, has a heavy tail: its sd varies more
    assert np.abs(summary["sd"] / sd - 1).iloc[:-1].max() < most
    assert summary.index[-1] == "prior_scale"


@pytest.mark.slow
def test_the_row_space_has_the_tempered_posterior_of_all_columns():
    """Classes, whose coordinates share no code from the row space on."""
    rng = np.random.default_rng(4)
    X = rng.standard_normal((8, 12))
    y = (X[:, 0] + 0.5 * rng.logistic(size=8) > 0) * 1.0
    fits = [
        SGLDLogisticRegression(
            prior="hierarchical_normal",
            parameterization=name,
            temperature=2.0,
            n_draws=2000,
            random_state=0,
        ).fit(X, y)
        for name in ("noncentered", "row_space")
    ]
    draws = [fit.posterior_.flat.copy() for fit in fits]
    for drawn in draws:
        drawn[:, -1] = np.log(drawn[:, -1])
    ess = np.minimum(*(fit.summary()["ess_bulk"] for fit in fits))
    sd = draws[0].std(axis=0)
    difference = np.abs(draws[0].mean(axis=0) - draws[1].mean(axis=0)) / sd * np.sqrt(ess / 2)
    assert difference.max() < 4.0
    assert np.abs(draws[1].std(axis=0) / sd - 1).max() < 0.12


def test_classes_have_the_posterior_of_importance_sampling():
    rng = np.random.default_rng(3)
    X = rng.standard_normal((120, 2)) * [1.0, 3.0]
    y = (0.8 * X[:, 0] - 0.2 + rng.logistic(size=120) > 0) * 1.0
    scale = np.array([1.0, 0.5])
    fit = SGLDLogisticRegression(prior=HierarchicalNormal(scale), random_state=0).fit(X, y)
    draws = fit.posterior_.values.copy()
    draws[..., -1] = np.log(draws[..., -1])
    target = LearnedScale(X, y, scale)
    theta, weight = adapted_draws(target, *laplace_fit(target, start=target.start()))
    assert 1.0 / np.sum(weight**2) > 5000
    assert fit.summary()["ess_bulk"].min() > 1000  # so that the errors are small
    assert np.abs(z_scores(draws, target.values(theta), weight)).max() < 4.5


def test_the_horseshoe_has_the_posterior_of_importance_sampling():
    rng = np.random.default_rng(5)
    X = rng.standard_normal((30, 3)) + [0.0, 1.0, 0.0]
    X[:, 2] += X[:, 1]
    y = 0.8 * X[:, 0] + 3.0 + rng.standard_normal(30)
    fit = SGLDLinearRegression(
        prior=Horseshoe(n_relevant=1.0, slab_scale=0.8),
        noise_prior=InverseGamma(2.0, 1.5),
        n_draws=1000,
        random_state=0,
    ).fit(X, y)
    unit = 2.5 * y.std()
    tau_unit = 1.0 / (3.0 - 1.0) / np.sqrt(30) / unit  # eq. 3.12, over the noise
    mean, sd, worth = horseshoe_by_importance(
        X, y, unit / X.std(axis=0), tau_unit, 0.8, 4.0, 2.0, 1.5
    )
    assert worth > 4000
    draws = fit.posterior_.flat.copy()
    draws[:, 4:] = np.log(draws[:, 4:])
    assert fit.summary()["ess_bulk"].min() > 1000
    error = np.sqrt(1 / 1000 + 1 / worth)  # of a mean, in sds
    assert (np.abs(draws.mean(0) - mean) / sd).max() < 3.5 * error
    assert np.abs(draws.std(0) / sd - 1).max() < 0.08
    assert fit.posterior_.names[4:7] == ["noise_variance", "prior_scale", "local_scale[x0]"]


def test_draws_of_the_prior_have_heavy_tails_before_and_after_a_fit():
    """A normal prior of one scale would never reach where a half-Cauchy scale often does."""
    X, y = table()
    model = SGLDLinearRegression(
        prior="hierarchical_normal",
        noise_prior="half_normal",
        intercept_prior="normal",
        n_draws=300,
        random_state=0,
    )
    before = model.sample_prior(X, 2000, y=y)
    after = model.fit(X, y).sample_prior(X, 2000)
    for drawn in (before, after):
        spread = drawn.std(axis=0)
        assert np.quantile(spread, 0.98) / np.median(spread) > 5.0
    np.testing.assert_allclose(*(np.median(np.std(d, axis=0)) for d in (before, after)), rtol=0.2)


def test_predictions_do_not_know_the_units():
    X, y = table()
    settings = {"prior": "hierarchical_normal", "n_draws": 300, "random_state": 0}
    first = SGLDLinearRegression(**settings).fit(X, y)
    unit = [1e-4, 1e3, 1e4]
    second = SGLDLinearRegression(**settings).fit(X * unit, 100.0 * y)
    interval = first.predict_interval(X)
    width = (interval[:, 1] - interval[:, 0])[:, None]
    there = second.predict_interval(X * unit) / 100.0
    np.testing.assert_allclose(there / width, interval / width, atol=0.05)


@pytest.mark.parametrize(
    "settings, match",
    [
        ({"noise_model": "log_linear"}, "one noise variance"),
        ({"parameterization": "centered"}, "a prior without hyperparameters"),
        ({"prior": HierarchicalNormal("wide")}, r"prior\.scale='wide'"),
        ({"prior": Horseshoe(n_relevant=20)}, r"prior\.n_relevant=20"),
        ({"temperature": 0.5}, "temperature=0.5 does not go with a prior.*set temperature=1"),
        ({"prior": "horseshoe", "temperature": 2.0}, "temperature=2.0 does not go with a prior"),
    ],
)
def test_what_is_refused_says_why(settings, match):
    with pytest.raises(ValueError, match=match):
        SGLDLinearRegression(**{"prior": "hierarchical_normal"} | settings).fit(*table())


def test_a_mode_has_no_prior_with_hyperparameters():
    from skbayes_sgld import SGDMAPRegressor

    with pytest.raises(ValueError, match="prior='hierarchical_normal' is not known"):
        SGDMAPRegressor(prior="hierarchical_normal").fit(*table())


def test_the_published_algorithm_runs_without_a_search():
    X, y = table()
    fit = SGLDLinearRegression(
        prior="hierarchical_normal",
        preconditioner=None,
        step_size=1e-3,
        sampler="sgld",
        init="prior",
        n_draws=20,
        n_burnin=10,
        thin=1,
        random_state=0,
    )
    with pytest.warns(match="effective sample size|not converged"):
        fit.fit(X, y)
    assert fit.result_.mode is None


def check_hierarchical_prior(name):
    """Raise where the hierarchical prior of this name contradicts itself."""
    y = table()[1]
    for likelihood, target in ((NormalNoise(), y), (Bernoulli(), 1.0 * (y > np.median(y)))):
        _check_hyperparameters(
            resolve(name, HIERARCHICAL_PRIORS, "prior").for_model(
                np.array([0.5, 1.0, 2.0]), np.ones(3), likelihood, target, None
            )
        )


def _check_hyperparameters(prior):
    rng, gamma = np.random.default_rng(0), np.array([0.2, -0.5])
    m = len(prior.names(["a", "b", "c"]))
    h = prior.start() + 0.4 * rng.standard_normal((2, m))
    both = np.arange(2)
    _, in_h, in_gamma = prior.value_and_grad(h, gamma)
    slope = derivative(lambda at: prior.value_and_grad(at, gamma)[0], h)[both, both]
    assert_derivative(in_h, slope, "gradient in h")
    slope = derivative(lambda at: prior.value_and_grad(h, at)[0], gamma)[both, both]
    assert_derivative(in_gamma, slope, "gradient in gamma")
    weight = rng.standard_normal((2, 3))
    slope = derivative(lambda at: (prior.log_scale(at) * weight).sum(1), h)[both, both]
    assert_derivative(prior.pull_back(h, weight), slope, "gradient of the scales")
    moved = prior.log_scale(h) - prior.log_scale(prior.start()[None])
    common = m == 1 and np.allclose(moved, moved[:, :1])
    shown = f"its hyperparameters ({m}) {'' if common else 'do not '}scale all columns alike"
    assert prior.common == common, f"common={prior.common}, and {shown}"
    # the hyperparameters are independent given the noise: each coordinate's own distribution
    drawn = np.array([prior.sample_hyper(rng, 0.2) for _ in range(4000)])
    for j in range(m):
        grid = np.linspace(-40.0, 40.0, 16001)
        at = np.tile(prior.start(), (len(grid), 1))
        at[:, j] = grid
        value = prior.value_and_grad(at, np.full(len(grid), 0.2))[0]
        cdf = integrate.cumulative_simpson(np.exp(value - value.max()), x=grid, initial=0.0)
        p = np.interp(drawn[:, j], grid, cdf / cdf[-1])
        assert stats.kstest(p, "uniform").pvalue > 1e-4, "draws that are not of the density"
    log_medians = prior.log_medians(0.2)
    for j in np.flatnonzero(np.isfinite(log_medians)):
        ratio = np.exp(drawn[:, j] - log_medians[j])
        assert stats.kstest(ratio, "halfcauchy").pvalue > 1e-4, (
            "log_medians of another distribution"
        )


@every_prior
def test_a_hierarchical_prior_is_what_it_says_it_is(name):
    check_hierarchical_prior(name)


@every_prior
@pytest.mark.parametrize("likelihood", [NormalNoise(), Bernoulli()], ids=["gaussian", "bernoulli"])
def test_standardised_hyperparameters_have_their_mode_at_zero_and_a_curvature_of_one(
    name, likelihood
):
    posterior = HierarchicalPosterior(model(likelihood), HIERARCHICAL_PRIORS[name]())
    found, mode = standardise(posterior)
    at, n_linear = np.zeros(found.n_params), posterior.n_linear
    np.testing.assert_array_equal(mode.theta, at)
    assert np.abs(found.grad(at[None])[0, n_linear:]).max() < 0.05
    slopes = np.array([found.grad((at + 1e-4 * e)[None])[0] for e in np.eye(found.n_params)])
    curvature = -(slopes - found.grad(at[None]))[n_linear:, n_linear:] / 1e-4
    # no direction is taken for wider than three
    eigenvalues = np.linalg.eigvalsh(0.5 * (curvature + curvature.T))
    assert np.all(eigenvalues < 1.1)
    assert eigenvalues[-1] == pytest.approx(1.0, abs=0.1)


@pytest.mark.parametrize(
    "x, y, likelihood, power",
    [
        (np.repeat([1.0, 20.0], [10, 1]), np.ones(11), Bernoulli(), 1.0),
        (np.geomspace(0.1, 10.0, 10), np.r_[np.ones(8), 2.0, 3.0], Poisson(), 0.0),
    ],
    ids=["one label and a distant row", "counts that grow"],
)
def test_the_information_of_the_rows_follows_that_of_the_prior_by_a_power_from_0_to_1(
    x, y, likelihood, power
):
    """Measured from one sd of the log common scale to the next, the powers are 1.8 and -0.01."""
    model = GLMPosterior(x[:, None], y, likelihood, Normal(), None, fit_intercept=False)
    found, _ = standardise(HierarchicalPosterior(model, HierarchicalNormal(1.0)))
    assert found.coordinates.coefficients.power == power


# ---- tau_0 of the horseshoe: Piironen & Vehtari (2017), eq. 3.12 and Table 1 ---------------------


def pseudo_variance_of_labels(y, w):
    share = np.bincount(y.astype(int), w) / w.sum()
    return 1.0 / np.mean(share * (1.0 - share))


@pytest.mark.parametrize(
    "likelihood, scale, weighted, pseudo_variance",
    [
        (NormalNoise(), "auto", False, lambda y, w: 1.0),  # tau_0 is in units of the noise's sd
        (FixedNormalNoise(2.5), 1.0, False, lambda y, w: 2.5),
        (Bernoulli(), "auto", True, pseudo_variance_of_labels),
        (Categorical(3), "auto", True, pseudo_variance_of_labels),
        (Poisson(), 3.0, True, lambda y, w: w.sum() / (w @ y)),
    ],
    ids=["noise", "known noise", "two classes", "three classes", "counts"],
)
def test_tau_0_of_the_horseshoe_is_that_of_the_paper(likelihood, scale, weighted, pseudo_variance):
    """log tau_0 sqrt(n) (d - p) / p on standardised columns is half the log pseudo-variance."""
    rng = np.random.default_rng(7)
    X = rng.standard_normal((90, 6)) * 10.0 ** np.arange(-3, 3) + 2.0
    largest = 2.0 if isinstance(likelihood, Categorical) else 1.0
    y = np.minimum(rng.poisson(0.3, 90), largest)
    y[:3] = 0.0, 1.0, largest  # every class has a row
    w = rng.integers(1, 4, 90) * 1.0 if weighted else np.ones(90)
    rows = np.repeat(X, w.astype(int), axis=0)
    if scale != "auto":
        X = (X - rows.mean(axis=0)) / rows.std(axis=0)
    prior = Horseshoe(n_relevant=2.0, scale=scale)
    noise = InverseGamma(2.0, 1.0) if likelihood.infers_noise else None
    glm = GLMPosterior(
        X, y, likelihood, prior.conditional(), noise, sample_weight=w if weighted else None
    )
    known = HierarchicalPosterior(glm, prior).prior
    tau_0 = np.exp(known.start()[0])
    # the sd of a column's effect at lambda = 1, in units of the predictor
    columns = rows.std(axis=0) if scale == "auto" else np.ones(6)
    effect = tau_0 * known.scale * columns
    expected = 2.0 / (6.0 - 2.0) * np.sqrt(pseudo_variance(y, w)) / np.sqrt(w.sum())
    np.testing.assert_allclose(effect, expected, rtol=1e-9)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # few draws
def test_a_common_scale_takes_temperatures_above_1():
    settings = {"prior": "hierarchical_normal", "n_draws": 50, "random_state": 0}
    model = SGLDLinearRegression(**settings, temperature=1.5).fit(*table())
    assert model.result_.temperature == 1.5

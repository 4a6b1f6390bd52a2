"""The density of a mixed model with all coefficients integrated out, against a dense normal."""

from functools import partial

import numpy as np
import pandas as pd
import pytest
from scipy.stats import beta, kstest, norm, t

from skbayes_sgld.likelihoods import Bernoulli, NegativeBinomial, NormalNoise, Poisson
from skbayes_sgld.likelihoods.row_values import RowValues
from skbayes_sgld.mixed.bind import bind_mixed
from skbayes_sgld.mixed.collapsed import CollapsedPosterior
from skbayes_sgld.mixed.columns import MixedColumns
from skbayes_sgld.mixed.coordinates import standardise_mixed
from skbayes_sgld.mixed.rows import MixedRows
from skbayes_sgld.posterior import one_hot
from skbayes_sgld.posterior.sparse_design import as_array
from skbayes_sgld.priors import Flat, GroupPrior, HalfNormal, InverseGamma, Normal
from skbayes_sgld.priors.group import LearnedCovariance
from skbayes_sgld.rows.model import LinearModel
from tests.marks import slow

CASES = {
    "intercepts": {"g": "intercept"},
    "slopes": {"g": ["intercept", "x"]},
    "slope alone": {"g": "x"},
    "crossed": {"g": ["intercept", "x"], "h": ["intercept", "z"]},
    "nested": {"h": "intercept", "h:g": "intercept"},
    "curves alone": {},
    "groups and a curve": {"g": ["intercept", "x"]},
}
CURVES = {"curves alone": {"x": 7, "z": 10}, "groups and a curve": {"z": 6}}


def make_rows(n=60, labels=7, seed=0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "g": rng.integers(labels, size=n).astype(str),
            "x": rng.normal(3.0, 2.0, n),
            "h": rng.choice(["u", "v", "w"], n),
            "z": rng.normal(size=n),
        }
    )
    effects = rng.normal(size=(labels, 2))
    codes = frame["g"].astype(int)
    predictor = 0.3 * frame["x"] + effects[codes, 0] + 0.5 * effects[codes, 1] * frame["z"]
    return frame, predictor.to_numpy()


def make_posterior(case, likelihood, own_priors=(), weight=None, prior=None, drops=False):
    """Posterior, X and y; ``drops`` leaves out rows with a weight of 0, as fits do."""
    terms = CASES[case]
    frame, predictor = make_rows()
    rng = np.random.default_rng(1)
    if isinstance(likelihood, NormalNoise):
        y = predictor + rng.normal(size=len(frame))
    elif isinstance(likelihood, Bernoulli):
        y = (predictor > 0.5).astype(float)
    else:
        y = rng.poisson(np.exp(0.3 * predictor)).astype(float)
    return bind_rows(
        frame, y, terms, likelihood, own_priors, weight, prior, drops, CURVES.get(case)
    )


def bind_rows(
    frame, y, terms, likelihood, own_priors=(), weight=None, prior=None, drops=False, curves=None
):
    """Posterior of the rows of a frame, X and y."""
    columns, encoded = MixedColumns.learned(frame, terms or None, list(frame))
    # a column of labels that no term has would be text
    text = [k for k in encoded if not pd.api.types.is_numeric_dtype(encoded[k])]
    encoded = encoded.assign(**dict.fromkeys(text, 0.0))
    X = encoded.to_numpy(dtype=float)
    if curves:
        columns = columns.with_bends(curves, X, weight, list(frame))
    rows = MixedRows(X, RowValues(y=y, weight=weight), names=list(frame), mixed=columns)
    rows = rows.having_weight(weight) if drops else rows
    model = LinearModel(
        likelihood=likelihood,
        prior=prior or Normal(scale=2.0),
        intercept_prior=Flat(),
        own_priors=own_priors,
        noise=None,
        fit_intercept=True,
        intercept_at_mean=True,
        class_names=None,
        prior_choice=None,
        prior_as_given="normal",
    )
    return bind_mixed(model, rows, columns, GroupPrior()), X, y


def check_gradient(posterior, theta, which=None, atol=1e-3):
    _, grad = posterior.value_and_grad(theta)
    for k in range(posterior.n_params) if which is None else which:
        move = np.zeros(posterior.n_params)
        move[k] = 1e-5
        ends = posterior.log_density(theta + move), posterior.log_density(theta - move)
        np.testing.assert_allclose((ends[0] - ends[1]) / 2e-5, grad[:, k], rtol=1e-4, atol=atol)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("weighted", [False, True])
def test_the_density_with_coefficients_integrated_out_is_that_of_a_dense_normal(case, weighted):
    weight = np.random.default_rng(2).integers(1, 4, 60).astype(float) if weighted else None
    posterior, X, y = make_posterior(case, NormalNoise(), (InverseGamma(1.0, 1.0),), weight)
    collapsed = CollapsedPosterior(posterior)
    rng = np.random.default_rng(3)
    theta = collapsed.start() + 0.5 * rng.normal(size=(3, collapsed.n_params))
    w = np.ones(60) if weight is None else weight
    d = posterior.model.n_features
    numbers = posterior.model.X - np.average(posterior.model.X, axis=0, weights=w)
    values = []
    for row in theta:
        h, gamma = row[:-1], row[-1]
        cov = np.diag(np.exp(gamma) / w)
        # the flat intercept is one of a large variance
        fixed = np.diag(np.append(np.broadcast_to(np.square(posterior.prior.scale), d), 1e6))
        columns = np.column_stack([numbers, np.ones(60)])
        cov += columns @ fixed @ columns.T
        covariances = posterior.covariances
        each = zip(posterior.terms, covariances.each, covariances.at, strict=True)
        for term, covariance, at in each:
            Z = as_array(term.matrix(X))
            root = covariance.root(h[None, at])[0]
            cov += Z @ np.kron(np.eye(len(term.labels)), root @ root.T) @ Z.T
        rest = y - np.average(y, weights=w)
        value = -0.5 * (np.linalg.slogdet(cov)[1] + rest @ np.linalg.solve(cov, rest))
        value -= 0.5 * (w.sum() - 60) * gamma  # a row of weight w is w rows
        value += posterior.covariances.value_and_grad(h[None])[0][0]
        values.append(value + posterior.own_priors[0].log_density(np.array([gamma]))[0])
    found = collapsed.log_density(theta)
    np.testing.assert_allclose(found - found[0], np.array(values) - values[0], atol=2e-3)
    check_gradient(collapsed, theta)


def check_coefficients(posterior, draws):
    """Check the distribution of coefficients and effects of draws at one point of the others."""
    n, n_draws = posterior.n_linear, len(draws)
    linear = posterior.reported.theta(draws)[:, :n]
    # mean and precision, from the gradient of the joint density, which is linear in these
    whole = posterior.reported.theta(draws[:1])

    def slope(values):
        at = np.repeat(whole, len(values), axis=0)
        at[:, :n] = values
        return posterior.grad(at)[:, :n]

    at_zero = slope(np.zeros((1, n)))[0]
    precision = at_zero - slope(np.eye(n))
    mean, cov = np.linalg.solve(precision, at_zero), np.linalg.inv(precision)
    sds = np.sqrt(np.diag(cov))
    assert np.abs((linear.mean(axis=0) - mean) / sds).max() < 4.5 / np.sqrt(n_draws)
    whitened = (linear - mean) @ np.linalg.cholesky(precision)
    assert np.abs(np.cov(whitened.T) - np.eye(n)).max() < 6.0 / np.sqrt(n_draws)


def test_coefficients_are_drawn_from_their_normal_distribution_given_the_scales():
    posterior, _, _ = make_posterior("crossed", NormalNoise(), (InverseGamma(1.0, 1.0),))
    collapsed = CollapsedPosterior(posterior)
    theta = np.tile(collapsed.start(), (4000, 1))
    theta[:, 0] += 1e-6 * np.arange(4000)  # each draw of the coefficients belongs to its theta
    draws = collapsed.reported.values(theta)
    np.testing.assert_array_equal(draws[:7], collapsed.reported.values(theta[:7]))
    check_coefficients(posterior, draws)
    np.testing.assert_allclose(collapsed.reported.theta(draws), theta, atol=1e-8)


def test_columns_of_a_factor_beside_effects_have_the_gradient_of_the_rows(monkeypatch):
    # without effects these rows would be sorted by level
    monkeypatch.setattr(one_hot, "_FEWEST_NUMBERS", 0)
    frame, predictor = make_rows()
    levels = pd.DataFrame(np.eye(30)[np.arange(60) % 30]).add_prefix("level")
    frame = frame.drop(columns="h").join(levels)
    posterior, _, _ = bind_rows(frame, predictor > 1.0, {"g": "intercept"}, Bernoulli())
    theta = 0.3 * np.random.default_rng(5).normal(size=(3, posterior.n_params))
    check_gradient(posterior, theta)
    of_rows = posterior.model.log_likelihood(theta[:, : posterior.model.n_params]).sum(axis=1)
    rest = posterior.log_density(theta) - of_rows
    np.testing.assert_allclose(rest, posterior.log_prior(theta), atol=1e-9)


MODELS = {"counts": Poisson(), "dispersed": NegativeBinomial(), "labels": Bernoulli()}
WAYS = [("counts", 0), ("dispersed", 0), ("labels", 1000), ("dispersed", 1000)]
# for each kind of terms two likelihoods, one as of few effects and one as of many
QUICK = [("slopes", 0), ("slopes", 3), ("crossed", 1), ("crossed", 2)]
QUICK += [("curves alone", 1), ("curves alone", 2)]
QUICK += [("groups and a curve", 0), ("groups and a curve", 3)]


@pytest.mark.parametrize(
    ("case", "name", "most"),
    [
        (case, *way) if (case, k) in QUICK else slow(case, *way)
        for case in ("slopes", "crossed", *CURVES)
        for k, way in enumerate(WAYS)
    ],
)
def test_standardised_coordinates_have_an_inverse_and_a_gradient(case, name, most, monkeypatch):
    likelihood = MODELS[name]
    monkeypatch.setattr("skbayes_sgld.mixed.coordinates.MOST_EFFECTS", most)
    own = (HalfNormal(scale=1.0),) * len(likelihood.own)
    posterior, _, _ = make_posterior(case, likelihood, own)
    transformed, mode = standardise_mixed(posterior, 1.0)
    rng = np.random.default_rng(4)
    phi = 0.5 * rng.normal(size=(2, transformed.n_params))
    theta = transformed.coordinates.forward(phi)
    np.testing.assert_allclose(transformed.coordinates.inverse(theta), phi, atol=1e-8)
    check_gradient(transformed, phi)
    # coefficients have their mode, given all others, where their coordinates are 0
    n = posterior.n_linear
    assert np.abs(transformed.grad(mode.theta[None])[0, :n]).max() < 0.5
    # the log Jacobian, by a determinant of differences
    ends = [
        transformed.coordinates.forward(phi[:1] + s * np.eye(len(phi[0]))) for s in (1e-5, -1e-5)
    ]
    jacobian = np.linalg.slogdet((ends[0] - ends[1]) / 2e-5)[1]
    other = [
        transformed.coordinates.forward(phi[1:] + s * np.eye(len(phi[0]))) for s in (1e-5, -1e-5)
    ]
    change = np.linalg.slogdet((other[0] - other[1]) / 2e-5)[1] - jacobian
    np.testing.assert_allclose(
        np.diff(transformed.coordinates.expand(phi).log_jacobian)[0], change, atol=1e-4
    )


@pytest.mark.parametrize("case", ["slopes", "crossed", *CURVES])
def test_coefficients_given_scales_are_standard_normal_under_normal_noise(case):
    """At any scales, small and large, if the noise is that of the centre."""
    posterior, _, _ = make_posterior(case, NormalNoise(), (InverseGamma(),))
    transformed, _ = standardise_mixed(posterior, 1.0)
    n, rng = posterior.n_linear, np.random.default_rng(2)
    phi = rng.normal(size=(3, transformed.n_params))
    phi[:, n:-1] = np.array([[-4.0], [0.0], [3.0]])
    phi[:, -1] = 0.0
    np.testing.assert_allclose(transformed.grad(phi)[:, :n], -phi[:, :n], atol=1e-6)


def test_coordinates_of_many_labels_do_not_depend_on_the_positions_beside_them():
    # with AVX-512, row 14 of a product of 16 with 517 labels is rounded in another way
    frame, predictor = make_rows(1551, 517)
    y = (predictor > 0.5).astype(float)
    posterior, *_ = bind_rows(frame, y, CASES["intercepts"], Bernoulli())
    transformed, _ = standardise_mixed(posterior, 1.0)
    z = 0.3 * np.random.default_rng(5).standard_normal((16, transformed.n_params))
    for function in (transformed.coordinates.forward, transformed.grad):
        alone = np.vstack([function(z[k : k + 1]) for k in range(16)])
        np.testing.assert_array_equal(function(z), alone)


COVARIANCES = {
    "one": LearnedCovariance(np.array([2.0]), 3.0, None, np.array([0.3])),
    "two": LearnedCovariance(np.array([2.0, 0.5]), 3.0, 2.0, np.array([0.3, 0.1])),
    "four": LearnedCovariance(np.arange(1.0, 5.0), 4.0, 1.5, np.full(4, 0.2)),
    "independent": LearnedCovariance(np.arange(1.0, 4.0), 3.0, None, np.full(3, 0.2)),
}


@pytest.mark.parametrize("covariance", COVARIANCES.values(), ids=COVARIANCES)
def test_the_factor_of_a_covariance_has_its_gradient_and_reports(covariance):
    rng = np.random.default_rng(5)
    h = 0.7 * rng.normal(size=(4, covariance.n_hyper))
    weights = rng.normal(size=(4, covariance.n_effects, covariance.n_effects))
    slope, grad = covariance.pull_back(h, weights), covariance.value_and_grad(h)[1]
    for k in range(covariance.n_hyper):
        move = np.zeros(covariance.n_hyper)
        move[k] = 1e-6
        up, down = (
            ((np.tril(weights) * covariance.root(at)).sum((1, 2)), covariance.value_and_grad(at)[0])
            for at in (h + move, h - move)
        )
        np.testing.assert_allclose((up[0] - down[0]) / 2e-6, slope[:, k], atol=1e-6)
        np.testing.assert_allclose((up[1] - down[1]) / 2e-6, grad[:, k], atol=1e-6)
    # reports know no signs: they lead to one of the equivalent factors
    reported = covariance.to_reported(h)
    again = covariance.root(covariance.from_reported(reported))
    cov, other = (root @ root.swapaxes(1, 2) for root in (covariance.root(h), again))
    np.testing.assert_allclose(cov, other, atol=1e-10)


def test_correlations_have_the_marginal_density_of_the_lkj_prior():
    covariance, rng = COVARIANCES["four"], np.random.default_rng(6)
    h = np.array([covariance.sample(rng) for _ in range(20000)])
    correlations = covariance.to_reported(h)[:, 4:]
    shape = 1.5 - 1.0 + 4 / 2.0  # (rho + 1) / 2 is Beta(shape, shape)
    variance = 1.0 / (2.0 * shape + 1.0)
    assert np.abs(correlations.var(axis=0) / variance - 1.0).max() < 5.0 * np.sqrt(2.0 / 20000)


@pytest.mark.parametrize("case", ["crossed", "curves alone"])
def test_draws_from_the_prior_have_its_scales_and_effects(case):
    posterior, *_ = make_posterior(case, NormalNoise(), (InverseGamma(3.0, 2.0),))
    generators = [np.random.default_rng(seed) for seed in range(1200)]
    draws = posterior.draw_prior(generators)
    names = posterior.reported.names
    for term, covariance, at in zip(
        posterior.terms, posterior.covariances.each, posterior.at, strict=True
    ):
        q = covariance.n_effects
        first = names.index(term.scale_names(covariance.pairs)[0])
        scales = draws[:, first : first + q]
        for j in range(q):
            p = kstest(scales[:, j] / covariance.prior.scale[j], partial(_half_t, nu=3.0)).pvalue
            assert p > 1e-4
        # one label each: effects over their standard deviations are standard normal
        white = draws[:, at][:, :q] / scales
        for j in range(q):
            assert kstest(white[:, j], norm.cdf).pvalue > 1e-4
        if covariance.pairs:
            correlation = draws[:, first + q]
            assert kstest(0.5 * (correlation + 1.0), beta(2.0, 2.0).cdf).pvalue > 1e-4
            off = (white.prod(axis=1) - correlation) * np.sign(correlation)
            assert abs(off.mean()) < 4.0 * off.std() / np.sqrt(len(off))
            # given the first effect the second has the rest of the variance
            rest = white[:, 1] - correlation * white[:, 0]
            assert kstest(rest / np.sqrt(1.0 - correlation**2), norm.cdf).pvalue > 1e-4


def _half_t(x, nu):
    return 2.0 * t.cdf(x, nu) - 1.0

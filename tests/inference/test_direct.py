"""Normal noise under normal priors: draws against quadrature written here."""

import numpy as np
import pytest
from scipy import sparse, stats
from sklearn.exceptions import ConvergenceWarning

from skbayes_sgld import SGLDLinearRegression
from skbayes_sgld.diagnostics import convergence_problems, effective_sample_size
from skbayes_sgld.inference.parameterizations.noncentered import noncenter
from skbayes_sgld.inference.strategies import direct
from skbayes_sgld.likelihoods import NormalNoise
from skbayes_sgld.posterior import GLMPosterior
from skbayes_sgld.priors import ConjugateNormal, HalfNormal, InverseGamma, Normal
from skbayes_sgld.sampling.loop import run_chains
from skbayes_sgld.sampling.samplers.direct import Direct
from tests.marks import slow


def data(n=60, d=3, seed=0):
    rng = np.random.default_rng(seed)
    X = 0.5 + rng.standard_normal((n, d))
    return X, X @ rng.standard_normal(d) + 1.0 + rng.standard_normal(n)


def rare_levels():
    X, y = data(120, 1, seed=1)
    return np.column_stack([X, np.arange(120) < 2, np.arange(120) % 40 == 5]), y


def outlying():
    X, y = data(50)
    X[0], y[1] = 200.0 * X[0], 40.0
    return X, y


def copied():
    X, y = data(40, 2)
    return np.column_stack([X, X[:, 0]]), y


SIZES = np.random.default_rng(2).integers(1, 30, 60)
NEAR, FAR = {"prior": Normal(1.5)}, {"prior": Normal(0.3, location=-1.0)}
CASES = {
    "normal": (data, NEAR | {"noise_prior": InverseGamma(2.0, 1.0)}, {}),
    "scaled by the noise": (data, {"prior": ConjugateNormal(0.4)}, {}),
    "rare levels": (rare_levels, NEAR | {"noise_prior": HalfNormal(0.7)}, {}),
    "outlying rows": (outlying, FAR | {"noise_prior": "half_cauchy"}, {}),
    "copied columns": (copied, NEAR | {"noise_prior": "exponential"}, {}),
    "fewer rows than columns": (
        lambda: data(6, 9, seed=3),
        {"prior": Normal(0.5), "noise_prior": InverseGamma(1.0, 1.0)},
        {},
    ),
    "four rows": (lambda: data(4, 1, seed=4), NEAR | {"noise_prior": "log_normal"}, {}),
    "intercept's prior": (data, NEAR | {"intercept_prior": Normal(0.2)}, {}),
    "no intercept": (data, NEAR | {"fit_intercept": False}, {}),
    "weights": (data, NEAR, {"sample_weight": np.linspace(0.0, 2.0, 60)}),
    "averages": (data, NEAR, {"n_averaged": SIZES}),
    "averages, weights": (
        data,
        {"prior": ConjugateNormal(0.4)},
        {"n_averaged": SIZES, "sample_weight": np.linspace(0.1, 2.0, 60)},
    ),
    "sparse": (lambda: (sparse.csr_array(data()[0]), data()[1]), NEAR, {}),
    "temperature": (data, NEAR | {"temperature": 3.0}, {}),
}


def quadrature(model, X, y, sample_weight=1.0, n_averaged=1.0):
    """Weights of values of the log noise variance, and means and sds ``(G, P)`` given each."""
    X = X.toarray() if sparse.issparse(X) else X
    n, d = X.shape
    tau, prior = model.temperature, model.prior_
    weight, size = np.broadcast_to(sample_weight, n), np.broadcast_to(n_averaged, n)
    design = np.column_stack([X, np.ones(n)]) if model.fit_intercept else X
    P, scaled = design.shape[1], isinstance(prior, ConjugateNormal)
    gamma = np.linspace(-12.0, 12.0, 2401)
    t, at, precision = np.exp(-gamma)[:, None], np.zeros(P), np.zeros((len(gamma), P))
    at[:d] = prior.location
    precision[:, :d] = np.square(1.0 / prior.scale) * (t if scaled else 1.0)
    if model.fit_intercept and isinstance(model.intercept_prior_, Normal):
        precision[:, d] = model.intercept_prior_.scale**-2.0
    A = design.T * (weight * size)
    H = t[:, :, None] * (A @ design) + precision[:, :, None] * np.eye(P)
    means = np.linalg.solve(H, (t * (A @ y) + precision * at)[:, :, None])[:, :, 0]
    sds = np.sqrt(tau * np.diagonal(np.linalg.inv(H), axis1=1, axis2=2))
    fit = t[:, 0] * (np.square(y - means @ design.T) @ (weight * size))
    fit += np.sum(precision * np.square(means - at), axis=1)
    log_dets = weight.sum() * gamma + (d * gamma if scaled else 0.0)
    value = -0.5 * (fit + log_dets) / tau - 0.5 * np.linalg.slogdet(H)[1]
    value += model.noise_prior_.log_density(gamma) / tau
    share = np.exp(value - value.max())
    assert max(share[0], share[-1]) < 1e-7
    return gamma, share / share.sum(), means, sds


@pytest.mark.parametrize("case", CASES)
def test_draws_have_the_distribution_functions_of_the_posterior(case):
    make, settings, brought = CASES[case]
    X, y = make()
    model = SGLDLinearRegression(**settings, n_draws=10_000, random_state=0).fit(X, y, **brought)
    assert isinstance(model.sampler_, Direct)
    gamma, share, means, sds = quadrature(model, X, y, **brought)
    draws = np.sort(model.result_.values.reshape(-1, means.shape[1] + 1), axis=0)
    some = np.arange(200, len(draws), 400)
    kept, found = share > 1e-9, []
    for j, column in enumerate(draws[some, :-1].T):
        z = (column[:, None] - means[kept, j]) / sds[kept, j]
        found.append(stats.norm.cdf(z) @ share[kept])
    middle = np.cumsum(share) - 0.5 * share
    found.append(np.interp(np.log(draws[some, -1]), gamma, middle))
    # Kolmogorov's statistic is above 2.2 in one of 8,000 samples
    off = np.abs(np.array(found) - (some + 0.5) / len(draws)).max(axis=1)
    assert np.all(off * np.sqrt(len(draws)) < 2.2), off


@pytest.mark.parametrize("n", [3, 10, slow(1000)])
def test_levels_are_those_of_the_inverse_gamma_distribution(n):
    X, y = data(n, 1)
    prior = ConjugateNormal(2.0), InverseGamma(1.5, 0.8)
    posterior, _ = noncenter(GLMPosterior(X, y, NormalNoise(), *prior, fit_intercept=False), 1.0)
    levels, error = direct.levels_of(posterior, 1.0)
    x = X[:, 0]
    unexplained = y @ y - (x @ y) ** 2 / (x @ x + 0.25)
    at = posterior.coordinates.scale_map.forward(direct._GRID[:, None])[:, 0]
    exact = stats.invgamma.cdf(np.exp(at), 1.5 + n / 2, scale=0.8 + unexplained / 2)
    np.testing.assert_allclose(levels, exact, atol=1e-4)
    assert error < 1e-3


def test_the_diagnosis_says_that_draws_are_exact():
    diagnosis = SGLDLinearRegression(random_state=0).fit(*data()).diagnose()
    assert diagnosis.acceptance == 1.0
    assert diagnosis.bias == diagnosis.halved_bias == 0.0
    assert not any("schedule" in note for note in diagnosis.notes)


@pytest.mark.parametrize("seed", range(3))
def test_chains_that_are_not_compared_would_agree(seed):
    result = SGLDLinearRegression(random_state=seed).fit(*data(n=200)).result_
    assert not result.problems
    assert not convergence_problems(result.values, result.names)


def test_too_few_draws_are_told():
    with pytest.warns(ConvergenceWarning, match="effective"):
        SGLDLinearRegression(n_draws=20, random_state=0).fit(*data(n=200))


def test_means_are_worth_more_than_those_of_independent_draws():
    values = SGLDLinearRegression(random_state=0).fit(*data()).result_.values
    apart = np.square(values - values.mean(axis=(0, 1)))
    assert effective_sample_size(values).min() > 2.0 * 4000
    assert effective_sample_size(apart).min() > 0.7 * 4000


def test_another_strategy_plans_if_the_grid_ends_too_early(monkeypatch):
    monkeypatch.setattr(direct, "_GRID", np.linspace(-2.0, 2.0, 101))
    model = SGLDLinearRegression(n_draws=100, random_state=0).fit(*data())
    assert not isinstance(model.sampler_, Direct)


@pytest.mark.filterwarnings("ignore:The effective sample size")
@pytest.mark.parametrize("given", [{"sampler": "hmc"}, {"step_size": 0.3}, {"clip": "norm"}])
def test_what_the_user_gives_is_not_replaced(given):
    model = SGLDLinearRegression(**given, n_draws=50, random_state=0).fit(*data())
    assert not isinstance(model.sampler_, Direct)


def test_a_chain_s_draws_depend_neither_on_the_other_chains_nor_on_blocks():
    four, two = (
        SGLDLinearRegression(n_chains=k, n_draws=300, random_state=0).fit(*data()) for k in (4, 2)
    )
    np.testing.assert_array_equal(four.result_.values[:2], two.result_.values)
    plan = four.result_.plan
    draws = [
        run_chains(plan.run, plan.start, n_draws=300, thin=2, seed=3, block_size=size).draws
        for size in (None, 7)
    ]
    np.testing.assert_array_equal(*draws)

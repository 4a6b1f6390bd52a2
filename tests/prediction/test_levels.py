"""Quantiles at many levels, of which a few are solved for."""

import numpy as np
import pytest
from scipy import stats

from skbayes_sgld import SGLDGammaRegressor, SGLDNegativeBinomialRegressor
from skbayes_sgld.likelihoods import Gamma, NormalNoise, StudentTNoise
from skbayes_sgld.likelihoods.mixture import Mixture
from skbayes_sgld.prediction.intervals import check_levels
from skbayes_sgld.prediction.levels import quantiles_at

N_DRAWS = 300
LEVELS = {
    "twentieths": np.round(np.arange(0.95, 0.04, -0.05), 2),
    "hundredths": np.linspace(0.01, 0.99, 99),
    "tails": np.concatenate(
        [10.0 ** -np.arange(6.0, 0.0, -1.0), 1.0 - 10.0 ** -np.arange(1.0, 9.0)]
    ),
}
FAMILIES = {
    "normal": (NormalNoise(), (1.0,), lambda u: stats.norm(u[0], np.exp(0.5 * u[1]))),
    "t": (
        StudentTNoise(),
        (1.0, 0.9),
        lambda u: stats.t(np.exp(u[2]), u[0], np.exp(0.5 * u[1])),
    ),
    "gamma": (Gamma(), (0.7,), lambda u: stats.gamma(np.exp(-u[1]), 0, np.exp(u[0] + u[1]))),
}


def mixture_of(means, centers):
    rng = np.random.default_rng(0)
    own = np.array(means)[:, None] + 0.1 * rng.standard_normal((len(means), N_DRAWS))
    eta = centers + 0.2 * rng.standard_normal((4, N_DRAWS))
    u = np.stack([eta, *np.broadcast_to(own[:, None], (len(own), 4, N_DRAWS))], axis=1)
    return Mixture(u, np.full(N_DRAWS, 1.0 / N_DRAWS))


def solved(family, mixture, q):
    """Quantiles, probabilities of at most each, and the levels and rows that were solved for."""
    likelihood, _, law = FAMILIES[family]
    at = []

    def solve(mixture, p):
        at.append((p, len(mixture)))
        return likelihood.averaged_quantile(mixture, p)

    def start(mixture, p):
        return likelihood.quantile_start(mixture.center(), p)[0]

    def level(mixture, t, near):
        at.append((near, len(mixture)))
        return mixture.cdf(likelihood.cdf)(t, np.arange(len(mixture)))

    found = quantiles_at(mixture, solve, start, level, q, logs=family == "gamma")
    levels = [[law(u).cdf(t).mean() for t in row] for u, row in zip(mixture.u, found, strict=True)]
    return found, np.array(levels), at


@pytest.mark.parametrize("levels", LEVELS)
@pytest.mark.parametrize("family", FAMILIES)
def test_they_are_those_of_the_mixture(family, levels):
    mixture, q = mixture_of(FAMILIES[family][1], np.zeros((4, 1))), LEVELS[levels]
    found, reached, at = solved(family, mixture, q)
    np.testing.assert_allclose(reached, np.broadcast_to(q, reached.shape), rtol=0, atol=1e-4)
    assert np.all(np.diff(found[:, np.argsort(q)]) >= 0.0)
    assert len(at) < len(q) or levels == "tails"


def test_levels_that_no_polynomial_describes_are_solved_for():
    """Half of the draws are forty sds away: between them the quantiles jump."""
    apart = np.where(np.arange(N_DRAWS) % 2, 40.0, 0.0) * np.array([[0.0], [1.0], [0.0], [1.0]])
    q = LEVELS["hundredths"]
    _, reached, at = solved("normal", mixture_of((0.0,), apart), q)
    np.testing.assert_allclose(reached, np.broadcast_to(q, reached.shape), rtol=0, atol=1e-4)
    assert {n for p, n in at if p in q} == {2}


def test_levels_between_draws_far_apart_are_solved_for():
    """Some rows have polynomials whose last coefficients are small by chance."""
    rng = np.random.default_rng(0)
    u = np.stack([rng.standard_normal((200, N_DRAWS)), np.full((200, N_DRAWS), -9.0)], axis=1)
    q = LEVELS["twentieths"]
    _, reached, _ = solved("normal", Mixture(u, np.full(N_DRAWS, 1.0 / N_DRAWS)), q)
    np.testing.assert_allclose(reached, np.broadcast_to(q, reached.shape), rtol=0, atol=1e-3)


@pytest.mark.parametrize("q", [[1e-13, 0.5], 1.0 - 1e-13, np.nextafter(1.0, 0.0)])
def test_levels_that_sums_over_draws_round_are_refused(q):
    with pytest.raises(ValueError, match=r"q.* out of range.*give a number in \[1e-12, 1 - 1e-12"):
        check_levels(q)
    check_levels([1e-12, 1.0 - 1e-12])


@pytest.mark.parametrize("n", [1, 2, 10, 300])
@pytest.mark.parametrize("model", [SGLDNegativeBinomialRegressor, SGLDGammaRegressor])
def test_the_farthest_levels_have_quantiles(model, n):
    """At 1 - 1e-14 rounding of the sums over draws made those of some rows infinite."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 2))
    y = rng.poisson(np.exp(X[:, 0])) + 1.0
    fitted = model(n_draws=200, random_state=0).fit(X, y)
    quantiles = fitted.predict_quantiles(np.resize(X, (n, 2)), q=[1e-12, 1.0 - 1e-12])
    assert np.isfinite(quantiles).all() and (quantiles[:, 1] < 1000.0).all()

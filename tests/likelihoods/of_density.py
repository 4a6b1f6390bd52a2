"""Functions of a likelihood for one observation, against its own density."""

import numpy as np
import pytest
from scipy import stats

from skbayes_sgld.likelihoods import LabelLikelihood
from skbayes_sgld.likelihoods.mixture import Mixture

C, B, S = 3, 7, 40_000


def some_u(likelihood, size=B, seed=0):
    u = 0.2 + 0.7 * np.random.default_rng(seed).standard_normal((C, likelihood.n_local, size))
    if [own.name for own in likelihood.own][-1:] == ["degrees_of_freedom"]:
        u[:, -1] += 3.0  # the moments that checks compare exist, and are not of few samples
    return u


def some_y(likelihood, u, seed=0):
    return likelihood.sample(u, np.random.RandomState(seed)).astype(float)


def in_u(function, u, h=1e-5):
    """Central differences of ``function`` in every local parameter, on the axis after the first."""
    columns = []
    for k in range(u.shape[1]):
        step = np.zeros_like(u)
        step[:, k] = h
        columns.append((function(u + step) - function(u - step)) / (2 * h))
    return np.stack(columns, axis=1)


def check_derivatives(likelihood):
    """Raise where score and curvature are not the derivatives, each chain having its own rows."""
    u = some_u(likelihood)
    y = some_y(likelihood, u)
    value, score = likelihood.value_and_score(u, y)
    density = likelihood.log_density(u, y)
    np.testing.assert_allclose(value, density, atol=1e-12, err_msg="value of value_and_score")
    again = likelihood.score(u, y)
    np.testing.assert_allclose(score, again, atol=1e-12, err_msg="score of value_and_score")
    compare_derivatives(likelihood, u, y, "")
    for far in (-4.0, 4.0) if likelihood.own else ():
        u[:, likelihood.n_predictors :] = far
        compare_derivatives(likelihood, u, y, f" where own coordinates are {far:g}", far=True)


def compare_derivatives(likelihood, u, y, where, far=False):
    """Raise where score and curvature at u are not the differences."""
    value, score = likelihood.log_density(u, y), likelihood.score(u, y)
    size, rtol = np.ones_like(value), 1e-7
    if far:  # where numbers of a row are large, their differences have as many digits fewer
        size, rtol = np.maximum(1.0, np.maximum(np.abs(value), np.abs(score).max(axis=1))), 1e-5
    for what, found, expected, error in (
        ("score", score, in_u(lambda v: likelihood.log_density(v, y), u), 1e-8),
        ("curvature", likelihood.curvature(u, y), -in_u(lambda v: likelihood.score(v, y), u), 1e-7),
    ):
        apart = np.abs(found - expected)
        allowed = rtol * np.abs(expected) + error * size.reshape(C, *[1] * (found.ndim - 2), -1)
        of = {"score": "the derivative of log_density", "curvature": "minus that of score"}[what]
        told = f"{what} is not {of}{where}: off by {apart.max():.3g}"
        assert np.all(apart <= allowed), told


def check_cdf(likelihood):
    """Raise where the distribution function is not that of the density."""
    u = some_u(likelihood)
    y = some_y(likelihood, u)
    density = np.exp(likelihood.log_density(u, y))
    if likelihood.whole:
        step = likelihood.cdf(u, y) - likelihood.cdf(u, y - 1.0)
    else:
        # near an edge at 0 a density changes over its distance from there
        above_0 = likelihood.cdf(u, np.zeros_like(y)) == 0.0
        h = 1e-5 * np.where(above_0, y, np.clip(np.abs(y), 1e-3, 1.0))
        step = (likelihood.cdf(u, y + h) - likelihood.cdf(u, y - h)) / (2 * h)
    np.testing.assert_allclose(step, density, rtol=1e-6, err_msg="steps of cdf")
    if likelihood.whole:
        between = likelihood.cdf(u, y + 0.5)
        np.testing.assert_allclose(between, likelihood.cdf(u, y), err_msg="cdf between counts")


def check_ratios(likelihood):
    """Raise where ratios are not those of the steps of the distribution function."""
    u = some_u(likelihood)
    ratio = likelihood.ratios(u)
    for k in range(6):
        counts = np.full((C, 1), float(k))
        at_most = [likelihood.cdf(u, counts + j) for j in (-1.0, 0.0, 1.0)]
        found = ratio(float(k), 2) * (at_most[1] - at_most[0])[:2]
        expected = (at_most[2] - at_most[1])[:2]
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-12, err_msg="ratios")


def check_draws(likelihood):
    """Raise where draws are not of their generator, not independent, or not accepted as y."""
    u = np.repeat(some_u(likelihood, 1)[:1], C, axis=0)
    u = np.repeat(u, 400, axis=2)  # of one distribution
    y = some_y(likelihood, u)
    assert np.array_equal(y, some_y(likelihood, u)), "draws are not those of their generator, rng"
    together = np.corrcoef(y.astype(float))[np.triu_indices(C, 1)]
    # of heavy tails ranks, of counts many of which are equal the numbers
    rank = stats.spearmanr(y, axis=1).statistic[np.triu_indices(C, 1)]
    least = np.minimum(np.abs(together), np.abs(rank)).max()
    assert least < 0.25, f"draws of the rows of u are not independent: correlation {least:.2g}"
    if not likelihood.totals:  # whose targets are records
        taken = likelihood.check_target(y[0])
        np.testing.assert_array_equal(taken, y[0], err_msg="check_target changes draws")
        for wrong in impossible(likelihood):
            with pytest.raises(ValueError, match=f"{wrong:g}"):
                likelihood.check_target(np.append(y[0], wrong))


def impossible(likelihood):
    """Values that no observation has: a further code, or those below the smallest observation."""
    if isinstance(likelihood, LabelLikelihood):
        return [float(likelihood.n_classes)]
    if likelihood.whole:
        return [-1.0]
    u = some_u(likelihood, 1)
    if likelihood.cdf(u, np.zeros((C, 1))).any():
        return []
    # 0 is an observation if the density has a limit there, neither 0 nor infinity
    near = likelihood.log_density(np.repeat(u, 2, axis=2), np.array([1e-20, 1e-10]))
    has_limit = np.abs(np.diff(near)).min() < 1e-3
    return [-1.0] if has_limit else [-1.0, 0.0]


def check_spread(likelihood):
    """Raise where the spread of a mean of four observations is not a fourth of one's."""
    if likelihood.spread_at is None or likelihood.spread_at >= likelihood.n_local:
        return
    u = some_u(likelihood)
    moved = u.copy()
    moved[:, likelihood.spread_at] -= np.log(4.0)
    message = "spread_at is not where the variance is"
    expected = likelihood.variance(u) / 4.0
    np.testing.assert_allclose(likelihood.variance(moved), expected, rtol=1e-9, err_msg=message)


def check_effect(likelihood):
    """Raise where the typical effect of a column is no scale."""
    y = some_y(likelihood, some_u(likelihood, 100))[0]
    for level in (None, 0.3):
        effect = likelihood.typical_effect(y, None, level)
        assert 0.0 < effect < np.inf, f"typical_effect is {effect}"


def check_samples_by_cdf(likelihood):
    """Raise where samples do not follow the distribution function."""
    u = np.repeat(some_u(likelihood, 1), S, axis=2)
    y = some_y(likelihood, u)
    for t in np.quantile(y, [0.1, 0.5, 0.9]):
        assert_shares(y <= t, likelihood.cdf(u, np.full((C, 1), t))[:, 0])


def assert_shares(hits, p):
    """Raise where hits among draws ``(C, S)`` are not of the probabilities ``p (C,)``."""
    # of rare ones the binomial law is far from normal
    n_hits = hits.sum(axis=1)
    told = f"samples are not of the cdf: shares {n_hits / S} where it has {p}"
    assert np.all(stats.binom.cdf(n_hits, S, p) > 1e-6), told
    assert np.all(stats.binom.sf(n_hits - 1, S, p) > 1e-6), told


def check_mixture_quantile(likelihood, q):
    """Raise where a quantile does not solve the mean of the distribution functions."""
    rng = np.random.default_rng(1)
    n, draws = 5, 300
    eta = np.linspace(-2, 6, n)[:, None] + 0.4 * rng.standard_normal((n, draws))
    own = some_u(likelihood, draws)[0, likelihood.n_predictors :]
    share = rng.dirichlet(np.ones(draws))
    u = np.stack([eta, *(np.broadcast_to(each, eta.shape) for each in own)], axis=1)
    t = likelihood.averaged_quantile(Mixture(u, share), q)
    at, sd = likelihood.cdf(u, t[:, None]) @ share, np.sqrt(likelihood.variance(u) @ share)
    if likelihood.whole:
        below = likelihood.cdf(u, t[:, None] - 1.0) @ share
        assert np.all((below < q) & (q <= at)), f"the quantile at {q} is another number"
    else:
        h = 1e-4 * sd
        below, above = (likelihood.cdf(u, end[:, None]) @ share for end in (t - h, t + h))
        assert np.all((below < q) & (q < above)), f"the quantile at {q} is off by over 1e-4 sds"


def check_labels(likelihood):
    """Raise where probabilities, moments or samples are not those of the density."""
    u = some_u(likelihood)
    p, rest = likelihood.probabilities(u)
    for k in range(likelihood.n_classes):
        code = np.full(B, float(k))
        np.testing.assert_allclose(p[:, k], np.exp(likelihood.log_density(u, code)), rtol=1e-12)
    np.testing.assert_allclose(p.sum(axis=1), 1.0, rtol=1e-14)
    np.testing.assert_allclose(p + rest, 1.0, rtol=1e-14)
    log_p, log_rest = likelihood.log_probabilities(u)
    np.testing.assert_allclose(log_p, np.log(p), atol=1e-13)
    np.testing.assert_allclose(log_rest, np.log(rest), atol=1e-13)
    mean = likelihood.mean(u)
    np.testing.assert_allclose(mean, p if mean.ndim == 3 else p[:, 1], rtol=1e-12, err_msg="mean")
    if likelihood.n_classes == 2:
        variance = likelihood.variance(u)
        np.testing.assert_allclose(variance, p[:, 0] * p[:, 1], rtol=1e-9, err_msg="variance")
    own = u[:1, likelihood.n_predictors :]
    eta = u[:, : likelihood.n_predictors]
    p_shared, _ = likelihood.probabilities(np.hstack([eta, np.repeat(own, len(u), axis=0)]))
    weight = np.random.default_rng(3).normal(size=(len(u), 2))
    free = eta[:, :-1] - eta[:, -1:] if likelihood.shift_invariant else eta
    for dtype, error in ((np.float64, 1e-12), (np.float32, 1e-5)):
        found = likelihood.total_probabilities(free.astype(dtype), own[0].T, weight)
        total = np.einsum("nm,nks->mks", weight, p_shared)
        np.testing.assert_allclose(found, total, atol=error * np.abs(weight).sum())
    y, p = some_y(likelihood, np.repeat(u[..., :1], S, axis=2)), p[..., 0]
    for k in range(likelihood.n_classes):
        assert_shares(y == k, p[:, k])


def check_label_means(likelihood):
    """Raise where means over draws, or the likeliest class by them, are not those of each draw."""
    rng, n, K = np.random.default_rng(4), 200, likelihood.n_predictors
    share = rng.dirichlet(np.ones(300))
    own = 0.3 + 0.1 * rng.standard_normal((300, len(likelihood.own)))
    for spread in (0.1, 1.0, 4.0):
        # skewed draws: their mean may be on the other side of the means of probabilities
        away = spread * (rng.standard_exponential((n, K, 300)) - 1.0)
        eta = 2.0 * rng.standard_normal((n, K, 1)) + away
        known = np.broadcast_to(own.T, (n, *own.T.shape))
        p = likelihood.probabilities(np.concatenate([eta, known], axis=1))[0] @ share
        for dtype, error in ((np.float64, 1e-12), (np.float32, 1e-6)):
            seen = eta[:, :-1] - eta[:, -1:] if likelihood.shift_invariant else eta
            each = likelihood.probability_draws(seen.astype(dtype), own)
            np.testing.assert_allclose(each @ share, p, atol=error, err_msg="probability_draws")
            found = likelihood.mean_probabilities(seen.astype(dtype), own, share)
            np.testing.assert_allclose(found, p, atol=error, err_msg="mean_probabilities")
        mean = eta @ share
        if likelihood.symmetric:
            sign = np.where(mean < 0.0, -1.0, 1.0)
            found = likelihood.mean_smaller(sign * eta[:, 0], share)
            smaller = np.where(mean < 0.0, p[:, 1:], p[:, :1])[:, 0]
            np.testing.assert_allclose(found, smaller, rtol=1e-12, err_msg="mean_smaller")
        if likelihood.shift_invariant:
            eta = eta - eta.mean(axis=1, keepdims=True)
            mean = eta @ share
        variance = np.square(eta - mean[..., None]) @ share
        codes = likelihood.decided(mean.T, variance.T, own, share)
        wrong = (codes >= 0) & (codes != p.argmax(axis=1))
        assert not wrong.any(), f"decided has {wrong.sum()} of {n} rows in another class"

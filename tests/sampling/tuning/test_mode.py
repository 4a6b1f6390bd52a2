"""Modes of posteriors of many rows, and how often the rows are read on the way."""

import re
from itertools import chain
from threading import get_ident

import numpy as np
import pytest

from skbayes_sgld import (
    SGLDLinearRegression,
    SGLDLogisticRegression,
    SGLDNegativeBinomialRegressor,
)
from skbayes_sgld.inference.run import run_plan
from skbayes_sgld.inference.settings import Settings
from skbayes_sgld.inference.strategies import make_plan
from skbayes_sgld.likelihoods import Bernoulli, Categorical, NormalNoise, Poisson
from skbayes_sgld.posterior import GLMPosterior
from skbayes_sgld.posterior.row_sum import RowSum
from skbayes_sgld.priors import ConjugateNormal, InverseGamma, Laplace, Normal, StudentT
from skbayes_sgld.sampling import ControlVariate
from skbayes_sgld.sampling.metric import Diagonal
from skbayes_sgld.sampling.tuning import mode as tuning
from tests.references.targets import logistic_posterior, mode_of, posterior_of

N, D = 24_000, 5


def features(seed=0, n=N, d=D):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, d)), rng


def labels(eta, rng):
    return (rng.random(len(eta)) < 1 / (1 + np.exp(-eta))).astype(float)


def logistic(prior=None, weighted=False, level=0.0):
    X, rng = features()
    y = labels(X @ np.linspace(-1, 1, D) + level, rng)
    weight = rng.exponential(size=N) ** 3 if weighted else None
    prior = prior or Normal(scale=2.5)
    return GLMPosterior(X, y, Bernoulli(), prior, intercept_at_mean=True, sample_weight=weight)


def sorted_rows():
    whole = logistic()
    order = np.lexsort((whole.X[:, 0], whole.y))
    return GLMPosterior(
        whole.X[order], whole.y[order], Bernoulli(), Normal(), intercept_at_mean=True
    )


def odd_columns():
    X, rng = features()
    y = labels(X[:, 0], rng)
    X[:, 1] = rng.random(N) < 3e-4
    X[:, 2] = 7.0
    X[:, 3] = X[:, 0]
    X[:, 4] = 1e6 * X[:, 4] + 1e8
    return GLMPosterior(X, y, Bernoulli(), Normal(), intercept_at_mean=True)


def counts_of_heavy_tails():
    X, rng = features()
    y = rng.poisson(np.exp(0.5 * X[:, 0])).astype(float)
    return GLMPosterior(np.sinh(1.5 * X) / 1.5, y, Poisson(), Normal(), intercept_at_mean=True)


POSTERIORS = {
    "a class of a few rows": lambda: logistic(level=-10.0),
    "weights": lambda: logistic(weighted=True),
    "kinks": lambda: logistic(Laplace(scale=0.5)),
    "sorted rows": sorted_rows,
    "odd columns": odd_columns,
    "classes": lambda: posterior_of(Categorical(4), N, D, intercept_at_mean=True),
    "counts of heavy tails": counts_of_heavy_tails,
    "a third of the rows": lambda: logistic_posterior(9000, 250, intercept_at_mean=True),
}


@pytest.mark.parametrize("name", POSTERIORS)
def test_a_subset_leads_to_the_mode_of_all_rows(name):
    posterior = POSTERIORS[name]()
    assert tuning._subset(posterior) is not None
    found = tuning.newton_mode(posterior, posterior.start())
    exact = tuning._find(posterior, found.theta, tuning.TOLERANCE)
    assert np.square(exact.metric.whiten((found.theta - exact.theta)[None])).sum() < tuning._NEAR
    np.testing.assert_allclose(found.metric.marginal_sd, exact.metric.marginal_sd, rtol=0.05)
    newton = mode_of(posterior)
    assert np.square(exact.metric.whiten((newton.theta - exact.theta)[None])).sum() < 1e-8


class Counted(np.ndarray):
    """Rows that note which of them are read in slices, and by which thread."""

    def __array_finalize__(self, parent):
        self.read = getattr(parent, "read", {})

    def __getitem__(self, key):
        if isinstance(key, slice) and key.step is None and self.shape[0] > 1:
            part = (len(self), *key.indices(len(self))[:2])
            seen = self.read.setdefault(get_ident(), [])
            if not seen or seen[-1] != part:  # a block that is still in cache is not read again
                seen.append(part)
        return super().__getitem__(key)


def passes(estimator, likelihood, prior, noise_prior=None):
    n, d = 30_000, 40  # too many to be held as a copy, of which slices would not be counted
    X, rng = features(n=n, d=d)
    eta = X @ np.linspace(-0.2, 0.2, d)
    y = labels(eta, rng) if noise_prior is None else eta + rng.standard_normal(n)
    counted = X.view(Counted)
    counted.read = {}
    posterior = GLMPosterior(counted, y, likelihood, prior, noise_prior, intercept_at_mean=True)
    run_plan(make_plan(posterior, Settings.of(estimator), seed=0))
    reads = chain(*counted.read.values())
    return sum(stop - start for of, start, stop in reads if of == n) / n


@pytest.mark.parametrize("prior", [Normal(), Normal(scale=2.5)], ids=["auto", "given"])
def test_a_logistic_fit_reads_all_rows_four_times_with_moments_and_leverages(prior):
    assert 3.0 < passes(SGLDLogisticRegression(), Bernoulli(), prior) <= 4.0


def test_a_linear_fit_reads_all_rows_once_and_once_for_an_automatic_scale():
    linear, noise = SGLDLinearRegression(), InverseGamma(1.0, 1.0)
    # a block that is still in cache for the second pass is counted once
    assert passes(linear, NormalNoise(), ConjugateNormal(scale=2.0), noise) == 1.0
    assert 1.5 < passes(linear, NormalNoise(), ConjugateNormal(), noise) <= 2.0


def test_control_variates_around_an_expansion_off_the_mode_are_unbiased():
    posterior = logistic()
    mode = tuning.newton_mode(posterior, posterior.start())
    assert mode.expansion is not None
    off = mode.theta + mode.metric.marginal_sd
    expansion = posterior.expand_likelihood(off)
    rows = np.arange(N)[None, None]
    theta = (mode.theta + 3.0 * mode.metric.marginal_sd)[None]
    for order in (1, 2):
        bound = ControlVariate(order).bind(posterior, mode.theta, expansion)
        batch = bound.prepare(rows)[0]
        np.testing.assert_allclose(bound(theta, batch), posterior.grad(theta), rtol=1e-8)
    some = bound.prepare(rows[..., :10])[0]
    np.testing.assert_allclose(bound(off[None], some), posterior.grad(off[None]), rtol=1e-8)


def test_a_subset_has_all_rows_of_a_rare_class_and_counts_for_all_rows():
    posterior = logistic(level=-6.0)
    assert 0 < posterior.y.mean() < 0.01
    subset = posterior.subset(slice(None, None, 8))
    assert subset.y.sum() == posterior.y.sum()
    assert subset.weight.sum() == pytest.approx(N, rel=0.01)
    assert subset.n_samples < N / 6
    theta = np.tile(posterior.start(), (2, 1)) + [[0.0], [0.1]]
    ours, of_all = subset.log_density(theta), posterior.log_density(theta)
    assert ours[1] - ours[0] == pytest.approx(of_all[1] - of_all[0], rel=0.2)
    assert tuning.newton_mode(posterior, posterior.start()).expansion is not None


@pytest.mark.parametrize("guess", [None, 10.0])
def test_a_prior_with_kinks_is_averaged_over_the_width_that_is_found(guess):
    posterior = logistic_posterior(40, 3, Laplace(scale=0.3))
    spread = None if guess is None else guess * np.ones(4)
    found = tuning.newton_mode(posterior, posterior.start(), spread=spread)
    smooth = posterior.averaged_over(found.metric.marginal_sd)
    sds = 1.0 / np.sqrt(np.diag(smooth.curvature(found.theta)))
    assert np.all(np.abs(sds * smooth.grad(found.theta[None])[0]) < 0.03)
    inverse = np.linalg.inv(smooth.curvature(found.theta))
    np.testing.assert_allclose(np.sqrt(np.diag(inverse)), found.metric.marginal_sd, rtol=0.02)


def test_a_mode_is_found_at_the_end_of_a_valley_of_collinear_columns():
    """On the way the weakest curvature is negative, and 1e-7 of the strongest."""
    rng = np.random.default_rng([134, 1])
    X = rng.standard_normal((39, 13))
    X = rng.standard_normal((39, 1)) + 1e-3 * X
    u = 10.0 * (X - X.mean(axis=0)) @ rng.standard_normal(13) / np.sqrt(13.0)
    rng.standard_normal(39), rng.choice(4)  # Newton's steps crept for the counts that come next
    y = rng.poisson(np.exp(np.clip(u, -30.0, 7.5) + 0.5)).astype(float)
    posterior = GLMPosterior(X, y, Poisson(), StudentT(scale=2.5), intercept_at_mean=True)
    found = tuning._search(posterior, posterior.start(), tuning.TOLERANCE)
    assert np.linalg.eigvalsh(posterior.curvature(found.theta))[0] > 0
    left = found.metric.sqrt_t(posterior.grad(found.theta[None]))
    assert np.square(left).sum() < tuning.TOLERANCE


def test_an_approach_ends_where_it_begins_at_the_mode():
    at_mode = tuning.Mode(np.zeros(2), Diagonal(np.ones(2)))
    for last in (np.inf, 0.0):
        assert tuning.approach(lambda theta: at_mode, np.zeros(2), 1e-20, last) is at_mode


def test_an_approach_gives_up_where_its_steps_do_not_become_shorter():
    def away(theta):
        return tuning.Mode(theta + 1.0, Diagonal(np.ones(2)))

    with pytest.raises(tuning.NoModeError, match="do not approach"):
        tuning.approach(away, np.zeros(2), 1e-3)


def test_steps_that_are_cut_short_take_no_second_derivatives(monkeypatch):
    X, rng = features(n=200, d=2)
    posterior = GLMPosterior(X, labels(X[:, 0], rng), Bernoulli(), Normal(1.0))
    at = posterior.expand(posterior.start())
    step = 50.0 * np.linalg.solve(at.curvature, at.grad)  # far beyond the mode
    expand, expanded = GLMPosterior.expand, []
    monkeypatch.setattr(GLMPosterior, "expand", lambda *a: (expanded.append(a), expand(*a))[1])
    end = tuning._line_search(posterior, at, step, float(at.grad @ step))
    fraction = (end.theta - at.theta)[0] / step[0]
    assert np.log2(fraction) == pytest.approx(-5.0, abs=1.01)
    assert end.value > at.value
    assert len(expanded) == 2  # at the whole step, and at the end


def test_a_climb_replaces_newton_steps_that_outlying_rows_make_many(monkeypatch):
    rng = np.random.default_rng(2)
    n, counts, expand = 9000, [], RowSum.expand
    X = rng.lognormal(2.5, 1.2, (n, 1)) * rng.gamma(2.0, 0.5, (n, 6))
    X /= X.std(axis=0)
    y = np.where(rng.random(n) < 0.03, rng.choice(4, n), X[:, 0] > 1.0).astype(float)
    X[rng.choice(n, 6)] *= 8.0
    posterior = GLMPosterior(X, y, Categorical(4), Normal(scale=2.5), intercept_at_mean=True)

    def counted(rows, theta):
        counts.append(rows.design.shape[0] == n)
        return expand(rows, theta)

    monkeypatch.setattr(RowSum, "expand", counted)
    found, of_all = tuning.newton_mode(posterior, posterior.start()), sum(counts)
    assert of_all <= 6  # 8 by Newton's steps alone
    exact = mode_of(posterior)
    assert np.square(found.metric.whiten((found.theta - exact.theta)[None])).sum() < 1e-8


@pytest.mark.parametrize("wide", [1e4, 1e12])
def test_exposures_that_leave_no_mode_are_named(wide):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((100, 2)), rng.poisson(3, 100)
    exposure = np.where(np.arange(100) % 2, wide, 1.0 / wide)
    factor = re.escape(f"{wide**2:.0e}")
    with pytest.raises(tuning.NoModeError, match=f"differ .* by a factor of {factor}"):
        SGLDNegativeBinomialRegressor(random_state=0).fit(X, y, exposure=exposure)

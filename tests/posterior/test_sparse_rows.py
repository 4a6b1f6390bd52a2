"""Fits of few sparse rows, whose trajectories follow the rows in a diagonal metric."""

import numpy as np
import pytest
from scipy import sparse

from skbayes_sgld import SGLDLogisticRegression
from skbayes_sgld.priors import Normal
from skbayes_sgld.sampling.tuning.thresholds import THRESHOLDS


def make_rows(n, d, share=0.1, seed=0):
    rng = np.random.default_rng(seed)
    X = sparse.csr_array(np.where(rng.random((n, d)) < share, rng.random((n, d)), 0.0))
    effects = X @ rng.standard_normal(d)
    y = effects / effects.std() * 2.0 + rng.logistic(size=n) > 0
    return X, y.astype(float)


def test_draws_along_sparse_rows_obey_the_identities_of_their_density(monkeypatch):
    from skbayes_sgld.wide_rows import strategy

    monkeypatch.setattr(strategy, "MAX_DENSE", 250)
    X, y = make_rows(320, 300, 0.05, seed=9)
    model = SGLDLogisticRegression(prior=Normal(scale=0.5), n_draws=120, random_state=0).fit(X, y)
    posterior, center = model.result_.plan.posterior, model.result_.plan.center
    assert center.metric.diagonal is not None
    assert model.result_.plan.n_walkers == 8
    # integration by parts: E[d log p] = 0 and E[-(theta - c) d log p] = 1
    theta = model.result_.theta.reshape(-1, posterior.n_params)
    slopes = posterior.grad(theta)
    error = slopes.mean(axis=0) / (slopes.std(axis=0) / np.sqrt(len(theta)))
    assert np.sqrt(np.square(error).mean()) < 1.6
    virial = -((theta - theta.mean(axis=0)) * slopes).mean(axis=0)
    assert virial.mean() == pytest.approx(1.0, abs=0.02)


def test_a_fit_of_many_sparse_columns_makes_fewer_draws_and_says_so(monkeypatch):
    from skbayes_sgld.wide_rows import pilot, strategy

    monkeypatch.setattr(strategy, "MAX_DENSE", 250)
    monkeypatch.setattr(pilot, "_VERY_LARGE", 0.0)
    monkeypatch.setitem(vars(THRESHOLDS), "max_draw", (1.0, 1.0))
    X, y = make_rows(320, 300, 0.05, seed=8)
    with pytest.warns(UserWarning, match="effective sample size|R-hat"):
        model = SGLDLogisticRegression(prior=Normal(scale=0.5), random_state=0, n_chains=2)
        model.fit(X, y)
    plan = model.result_.plan
    assert plan.choices["n_draws"].value == model.posterior_.values.shape[1] == 16
    assert "too much time" in plan.choices["n_draws"].why
    assert "n_draws=16" in repr(model.result_)
    p = model.predict_proba(X)[:, 1]
    assert np.mean((p > 0.5) == y) > 0.8

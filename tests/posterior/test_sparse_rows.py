"""Fits of few sparse rows, whose trajectories follow the rows in a diagonal metric."""

import numpy as np
import pytest
from scipy import sparse
from scipy.special import expit

from skbayes_sgld import SGLDLogisticRegression
from skbayes_sgld.inference import decisions
from skbayes_sgld.posterior import Normal, averaging
from skbayes_sgld.sampling.tuning import adaptation


def make_rows(n, d, share=0.1, seed=0):
    rng = np.random.default_rng(seed)
    X = sparse.csr_array(np.where(rng.random((n, d)) < share, rng.random((n, d)), 0.0))
    effects = X @ rng.standard_normal(d)
    y = effects / effects.std() * 2.0 + rng.logistic(size=n) > 0
    return X, y.astype(float)


def reference_moments(X, y, scale, *, n_trajectories, seed=0):
    """Means and sds of the coefficients by plain Hamiltonian Monte Carlo in the rows' own space.

    Of b, the coefficients over the prior sds, the likelihood sees ``a = V' b`` alone (X scaled
    ``= U S V'``), and the rest is standard normal.
    """
    U, S, Vt = np.linalg.svd(X * scale, full_matrices=False)
    rows, rng = U * S * (2.0 * y - 1.0)[:, None], np.random.default_rng(seed)
    signs, m = 2.0 * y - 1.0, len(S)
    norm = np.sqrt(np.median(np.square(rows).sum(axis=1)))
    n_steps, a = int(np.ceil(1.5 * norm / 0.6)), np.zeros((32, m + 1))
    center = np.asarray(X.mean(axis=0)) * scale @ Vt.T
    design = np.column_stack([rows - signs[:, None] * center, signs])
    # the intercept's own unit is that of all rows
    unit = np.append(np.ones(m), 2.0 / np.sqrt(len(y)))
    design = design * unit

    def energy(a):
        return np.logaddexp(0.0, -a @ design.T).sum(axis=1) + 0.5 * np.square(a[:, :m]).sum(axis=1)

    kept = []
    for t in range(n_trajectories):
        p = rng.standard_normal(a.shape)
        h = rng.uniform(0.8, 1.2, (32, 1)) * 1.5 / n_steps
        new, before = a + 0.5 * h * p, energy(a) + 0.5 * np.square(p).sum(axis=1)
        for k in range(n_steps):
            force = expit(-new @ design.T) @ design
            force[:, :m] -= new[:, :m]
            p = p + h * force
            new = new + (h if k < n_steps - 1 else 0.5 * h) * p
        gain = before - energy(new) - 0.5 * np.square(p).sum(axis=1)
        # what has not yet reached the posterior is not rejected
        accepted = (np.log(rng.random(32)) < gain) | (t < 3)
        a = np.where(accepted[:, None], new, a)
        if t >= n_trajectories // 8:
            kept.append(a[:, :m])
    draws = np.concatenate(kept)
    moved, inside = (draws - draws.mean(axis=0)) @ Vt, 1.0 - np.square(Vt).sum(axis=0)
    sd = scale * np.sqrt(np.square(moved).mean(axis=0) + inside)
    return scale * (draws.mean(axis=0) @ Vt), sd


@pytest.mark.parametrize(
    "n, d, n_draws, n_trajectories",
    [(30, 2005, 300, 70), pytest.param(300, 2000, 1000, 400, marks=pytest.mark.slow)],
)
def test_few_sparse_rows_agree_with_hamiltonian_monte_carlo_in_their_space(
    n, d, n_draws, n_trajectories
):
    X, y = make_rows(n, d, 0.05, seed=7)
    model = SGLDLogisticRegression(prior=Normal(scale=0.5), n_draws=n_draws, random_state=0).fit(
        X, y
    )
    mean, sd = reference_moments(X.toarray(), y, 0.5, n_trajectories=n_trajectories)
    draws = model.posterior_.flat[:, :d]
    shift, width = (draws.mean(axis=0) - mean) / sd, draws.std(axis=0) / sd
    # chance: of 4 n_draws, and of half as many of the reference's
    chance = np.sqrt(3.0 / (4 * n_draws))
    assert np.sqrt(np.mean(np.square(shift))) < 2.0 * chance
    assert np.abs(width - 1.0).max() < 4.0 * chance
    assert width.mean() == pytest.approx(1.0, abs=0.01)


def test_draws_along_sparse_rows_obey_the_identities_of_their_density(monkeypatch):
    monkeypatch.setattr(averaging, "MAX_DENSE", 250)
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


def test_a_fit_of_thousands_of_sparse_columns_makes_fewer_draws_and_says_so(monkeypatch):
    monkeypatch.setattr(adaptation, "_VERY_LARGE", 0.0)
    monkeypatch.setitem(vars(decisions.THRESHOLDS), "max_draw", (1.0, 1.0))
    X, y = make_rows(3005, 3100, 0.002, seed=8)
    with pytest.warns(UserWarning, match="effective sample size|R-hat"):
        model = SGLDLogisticRegression(random_state=0, n_chains=2).fit(X, y)
    plan = model.result_.plan
    assert plan.choices["n_draws"].value == model.posterior_.values.shape[1] == 16
    assert "too much time" in plan.choices["n_draws"].why
    assert "n_draws=16" in repr(model.result_)
    p = model.predict_proba(X)[:, 1]
    assert np.mean((p > 0.5) == y) > 0.8

"""Sparse rows in the coordinates of a diagonal metric, and fits of few sparse rows."""

import numpy as np
import pytest
from scipy import sparse
from scipy.special import expit

from skbayes_sgld import SGLDLogisticRegression
from skbayes_sgld.inference import decisions
from skbayes_sgld.posterior import Bernoulli, Categorical, Flat, GLMPosterior, Normal, averaging
from skbayes_sgld.posterior.sparse_rows import SparseRows, sparse_rows
from skbayes_sgld.posterior.whitened import WhitenedRows
from skbayes_sgld.sampling.samplers.hamiltonian import along_rows
from skbayes_sgld.sampling.tuning import adaptation


def make_rows(n, d, share=0.1, seed=0):
    rng = np.random.default_rng(seed)
    X = sparse.csr_array(np.where(rng.random((n, d)) < share, rng.random((n, d)), 0.0))
    effects = X @ rng.standard_normal(d)
    y = effects / effects.std() * 2.0 + rng.logistic(size=n) > 0
    return X, y.astype(float)


def make_posterior(n=120, d=40, *, weighted=False, fit_intercept=True, scale=1.5, dense=False):
    X, y = make_rows(n, d)
    X = X.toarray() if dense else X
    weight = np.random.default_rng(1).uniform(0.0, 2.0, n) if weighted else None
    scales = scale * np.geomspace(0.5, 2.0, d)
    return GLMPosterior(
        X,
        y,
        Bernoulli(),
        Normal(location=0.3, scale=scales),
        sample_weight=weight,
        fit_intercept=fit_intercept,
        center=fit_intercept,
    )


MODELS = {
    "plain": make_posterior(),
    "weighted": make_posterior(weighted=True),
    "no intercept": make_posterior(fit_intercept=False),
}


def rows_of(posterior):
    rng = np.random.default_rng(2)
    center = 0.2 * rng.standard_normal(posterior.n_params)
    return SparseRows(posterior, center, rng.uniform(0.1, 3.0, posterior.n_params))


def whitened_rows_of(posterior):
    dense = make_posterior(dense=True)
    center = 0.2 * np.random.default_rng(2).standard_normal(dense.n_params)
    return WhitenedRows(dense, center, np.full(dense.n_samples, 0.1))


@pytest.mark.parametrize("name", MODELS)
def test_density_and_gradient_are_those_of_theta(name):
    posterior, rows = MODELS[name], rows_of(MODELS[name])
    z = 2.0 * np.random.default_rng(3).standard_normal((5, posterior.n_params))
    value, grad = posterior.value_and_grad(rows.center + z * rows.root)
    found, slope = rows.value_and_grad(z)
    np.testing.assert_allclose(found, value, atol=2e-4)
    np.testing.assert_allclose(slope, grad * rows.root, atol=2e-4)
    np.testing.assert_allclose(rows.locate(z), rows.center + z * rows.root)


def leapfrog(rows, z, momentum, step, n_steps):
    """Ends of trajectories that turn by half a step, kick and turn, in double precision."""
    cos, sin = np.cos(0.5 * step)[:, None], np.sin(0.5 * step)[:, None]
    for _ in range(n_steps):
        z, momentum = cos * z + sin * momentum, cos * momentum - sin * z
        momentum = momentum + step[:, None] * (rows.grad(z) + z)
        z, momentum = cos * z + sin * momentum, cos * momentum - sin * z
    return z, momentum


@pytest.mark.parametrize("kind", [rows_of, whitened_rows_of])
def test_trajectories_follow_the_gradient_and_come_back(kind):
    rows, rng = kind(MODELS["plain"]), np.random.default_rng(4)
    z, momentum = rng.standard_normal((2, 3, rows.n_params))
    step = np.array([0.1, 0.2, 0.3])
    ends = along_rows(rows, z, momentum, step[:, None], 7)
    np.testing.assert_allclose(ends, leapfrog(rows, z, momentum, step, 7), atol=2e-5)
    back = along_rows(rows, ends[0], -ends[1], step[:, None], 7)
    np.testing.assert_allclose(back[0], z, atol=2e-5)


def test_a_position_is_rounded_alike_whatever_the_others():
    rows = rows_of(MODELS["plain"])
    z = np.random.default_rng(5).standard_normal((9, rows.n_params))
    step = np.full((9, 1), 0.2)
    np.testing.assert_array_equal(rows.log_density(z)[:1], rows.log_density(z[:1]))
    np.testing.assert_array_equal(rows.grad(z)[:1], rows.grad(z[:1]))
    many, one = along_rows(rows, z, z, step, 5), along_rows(rows, z[:1], z[:1], step[:1], 5)
    np.testing.assert_array_equal(many[0][:1], one[0])


def test_the_metric_matched_to_draws_gives_them_the_temperature_as_variance():
    posterior = MODELS["plain"]
    narrow = sparse_rows(posterior, np.zeros(posterior.n_params))
    rng = np.random.default_rng(6)
    draws = 0.1 + 1.2 * rng.standard_normal((400, posterior.n_params)) * narrow.root
    matched = narrow.matched(draws, 1.0)
    z = (draws - matched.center) / matched.root
    assert z.var(axis=0, ddof=1).mean() == pytest.approx(1.0, rel=1e-6)
    assert np.abs(matched.root / narrow.root).max() > 1.1


@pytest.mark.parametrize("likelihood, prior", [(Bernoulli(), Flat()), (Categorical(2), Normal())])
def test_flat_priors_and_several_predictors_have_no_such_rows(likelihood, prior):
    posterior = MODELS["plain"]
    other = GLMPosterior(posterior.X, posterior.y, likelihood, prior, center=True)
    assert sparse_rows(other, np.zeros(other.n_params)) is None


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

"""Independent proposals: when they are taken, that draws are right, and of what they depend."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import digamma, gammaincinv, polygamma
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler

from skbayes_sgld import (
    SGLDGammaRegressor,
    SGLDLinearRegression,
    SGLDLogisticRegression,
    SGLDPoissonRegressor,
)
from skbayes_sgld.diagnostics import effective_sample_size
from skbayes_sgld.own_models import FunctionPosterior, as_posterior
from skbayes_sgld.priors import Normal
from skbayes_sgld.sampling import HMC, SGLD, Independence
from skbayes_sgld.sampling.gradients import Full
from skbayes_sgld.sampling.loop import run_chains
from tests.marks import slow
from tests.references.closed_forms import (
    laplace_fit,
    logistic_log_density,
    weighted_draws,
    z_scores,
)
from tests.references.targets import logistic_posterior, run_at_mode

RNG = np.random.default_rng(0)
IRIS = load_iris().data[50:] - load_iris().data[50:].mean(axis=0), load_iris().target[50:] - 1
FEW = RNG.standard_normal((40, 2))
COUNTS = RNG.poisson(np.exp(FEW @ [0.6, -0.4])).astype(float)
NOISE = 0.3 * RNG.standard_t(4, 40)
SMALL = {"prior": Normal(scale=1.0), "random_state": 0}


@pytest.mark.parametrize("temperature", [1.0, 2.0])
def test_draws_of_a_small_table_are_independent_proposals_and_right(temperature):
    model = SGLDLogisticRegression(**SMALL, temperature=temperature).fit(*IRIS)
    assert isinstance(model.sampler_, Independence)
    assert "accepts" in model.result_.choices["sampler"].why
    assert model.result_.acceptance > 0.8
    exact = logistic_log_density(*IRIS, 1.0)

    def tempered(theta):
        return exact(theta) / temperature

    theta, weight = weighted_draws(tempered, *laplace_fit(tempered, 5), n_draws=60_000, df=8)
    assert np.abs(z_scores(model.result_.values, theta, weight)).max() < 4.5


@pytest.mark.parametrize("step_size", [0.7, 1.4])
def test_narrower_and_wider_proposals_are_right_too(step_size):
    model = SGLDLogisticRegression(**SMALL, sampler="independence", step_size=step_size).fit(*IRIS)
    density = logistic_log_density(*IRIS, 1.0)
    theta, weight = weighted_draws(density, *laplace_fit(density, 5), n_draws=60_000, df=8)
    assert np.abs(z_scores(model.result_.values, theta, weight)).max() < 4.5


@pytest.mark.parametrize(
    ("model", "y"),
    [
        pytest.param(SGLDPoissonRegressor(**SMALL), COUNTS, id="counts"),
        slow(SGLDGammaRegressor(**SMALL), COUNTS + 0.5, id="gamma"),
        slow(
            SGLDLinearRegression(**SMALL, noise_distribution="student_t"),
            FEW[:, 0] + NOISE,
            id="student_t",
        ),
    ],
)
def test_proposals_by_name_have_the_moments_of_hmc(model, y):
    found, exact = (
        clone(model).set_params(sampler=sampler, n_draws=3000).fit(FEW, y)
        for sampler in ("independence", "hmc")
    )
    a, b = found.summary(), exact.summary()
    assert np.all(np.abs(a["mean"] - b["mean"]) < 4.5 * np.hypot(a["mcse_mean"], b["mcse_mean"]))
    assert np.all(np.abs(a["sd"] - b["sd"]) < 4.5 * np.hypot(a["mcse_sd"], b["mcse_sd"]))


def test_pairs_of_proposals_on_opposite_sides_make_means_worth_more_than_independent_draws():
    values = SGLDLogisticRegression(**SMALL).fit(*IRIS).result_.values
    n_draws = values.shape[0] * values.shape[1]
    apart = np.square(values - values.mean(axis=(0, 1)))
    assert effective_sample_size(values).min() > 1.1 * n_draws
    assert effective_sample_size(apart).min() > 0.4 * n_draws


@pytest.mark.parametrize("step_size", [0.8, 1.0, 1.5])
def test_swaps_of_pairs_leave_a_skewed_posterior_as_it_is(step_size):
    # logarithm of a gamma variable of shape 2, whose skewness is -0.8
    skewed = FunctionPosterior(
        lambda t: (2.0 * t - np.exp(t))[:, 0], lambda t: 2.0 - np.exp(t), n_params=1
    )
    run, _ = run_at_mode(
        as_posterior(skewed), sampler=Independence(), gradient=Full(), step_size=step_size
    )
    draws = run_chains(run, np.zeros((50, 1)), n_draws=4000, n_burnin=200, seed=1).draws
    t = draws[..., 0]
    moments = [t, np.square(t - digamma(2.0)), t < np.log(gammaincinv(2.0, 0.05))]
    for each, exact in zip(moments, [digamma(2.0), polygamma(1, 2.0), 0.05], strict=True):
        of_chains = each.mean(axis=1)
        assert abs(of_chains.mean() - exact) < 4.0 * of_chains.std(ddof=1) / np.sqrt(50)


def test_a_proposal_and_its_partner_may_change_places():
    run, _ = run_at_mode(logistic_posterior(30, 2), sampler=Independence(), step_size=1.0)
    normals = RNG.standard_normal((40_000, 1, 5))
    noise = run.sampler.prepare(normals, normals[0], np.ones(40_000), run.dynamics)[:, 0]
    first, partner = noise[:-1, :3], noise[1:, 4:]
    for power in (1, 2):  # wide proposals have wide partners
        both = np.concatenate([first**power, partner**power], axis=1)
        assert_allclose(both.mean(axis=0)[:3], both.mean(axis=0)[3:], atol=0.08)
        covariance = np.cov(both.T)
        assert_allclose(covariance[:3, :3], covariance[3:, 3:], atol=0.35)
    assert_allclose(np.diag(np.corrcoef(first.T, partner.T)[:3, 3:]), -0.7, atol=0.02)


def test_a_table_whose_weights_vary_is_sampled_by_steps():
    X, y = load_breast_cancer(return_X_y=True)
    X = StandardScaler().fit_transform(X)[:, :20]
    model = SGLDLogisticRegression(prior=Normal(scale=10.0), random_state=0).fit(X, y)
    assert isinstance(model.sampler_, (HMC, SGLD))


@pytest.mark.parametrize(
    "given",
    [
        {"step_size": 0.5},
        {"gradient": "minibatch", "batch_size": 20},
        {"preconditioner": None},
        {"clip": "norm"},
        {"schedule": "polynomial"},
        {"temperature": "cooling"},
    ],
    ids=str,
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # few draws
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_settings_of_the_user_are_sampled_as_before(given):
    model = SGLDLogisticRegression(**SMALL, **given, n_draws=20, n_burnin=5, thin=1).fit(*IRIS)
    assert isinstance(model.sampler_, SGLD)


def test_a_chain_depends_neither_on_other_chains_nor_on_the_block():
    two, four = (SGLDLogisticRegression(**SMALL, n_chains=n).fit(*IRIS) for n in (2, 4))
    np.testing.assert_array_equal(two.result_.values, four.result_.values[:2])
    plan = SGLDLogisticRegression(**SMALL).fit(*IRIS).result_.plan
    runs = [
        run_chains(plan.run, plan.start[:3], n_draws=60, n_burnin=3, thin=2, block_size=size)
        for size in (1, 7, 200)
    ]
    for run in runs[1:]:
        np.testing.assert_array_equal(run.draws, runs[0].draws)
        accepted = (each.state.sampler_state["accepted"] for each in (run, runs[0]))
        np.testing.assert_array_equal(*accepted)


def test_many_steps_at_once_are_those_of_one_after_another(monkeypatch):
    plan = SGLDPoissonRegressor(**SMALL).fit(FEW, COUNTS).result_.plan
    at_once = run_chains(plan.run, plan.start, n_draws=100, n_burnin=3)
    monkeypatch.setattr(Independence, "make_at_once", lambda *_: None)
    stepped = run_chains(plan.run, plan.start, n_draws=100, n_burnin=3)
    np.testing.assert_array_equal(at_once.draws, stepped.draws)
    for name in ("accepted", "lost", "value", "square", "partner", "partner_value", "new", "swaps"):
        np.testing.assert_allclose(
            at_once.state.sampler_state[name], stepped.state.sampler_state[name], rtol=1e-12
        )


def test_chains_go_on_where_those_of_the_last_fit_ended():
    model = SGLDLogisticRegression(**SMALL, warm_start=True).fit(*IRIS)
    last = model.result_.values[:, -1]
    model.fit(*IRIS)
    assert isinstance(model.sampler_, Independence) and model.n_burnin_ == 0
    model.set_params(n_draws=1, thin=1)
    moved = []
    with pytest.warns(ConvergenceWarning):  # so few draws tell nothing
        for _ in range(8):
            last = model.result_.values[:, -1]
            model.fit(*IRIS)
            moved.append((~np.isclose(model.result_.values[:, 0], last)).any(axis=1))
    assert 0.6 < np.mean(moved) < 1.0  # rejections leave a chain where it was

"""Few rows, whose densities have walls: chains leave them, and warnings name the priors."""

import numpy as np
import pytest

from skbayes_sgld import SGLDLinearRegression, SGLDPoissonRegressor
from skbayes_sgld.likelihoods import Bernoulli
from skbayes_sgld.posterior import GLMPosterior, LogLinearNoise
from skbayes_sgld.priors import Normal
from skbayes_sgld.sampling import HMC

datasets = pytest.importorskip("statsmodels.datasets", reason="the data are in statsmodels")

RNG = np.random.default_rng(0)
X = RNG.standard_normal((10, 30))
COUNTS = RNG.poisson(2.0, 10)


def test_no_walker_stands_still_where_counts_are_fewer_than_columns():
    model = SGLDPoissonRegressor(prior="normal", random_state=0).fit(X, COUNTS)  # no warning
    assert repr(model.sampler_) == "HMC()"
    # one that stands still for its 63 draws leaves 110
    assert model.summary()["ess_tail"].min() > 700


def test_every_eighth_trajectory_is_short_where_there_are_walls():
    normals = np.random.default_rng(1).standard_normal((4000, 3, 1))
    eta = np.full((4000, 1), 0.5)
    plain, walls = (HMC().step_sizes(eta, normals, walls) for walls in (False, True))
    assert plain.min() >= 0.4 and plain.max() <= 0.6
    short = walls < 0.2
    assert short.mean() == pytest.approx(0.125, abs=0.012)  # four standard errors
    for steps, size in ((walls[short], 0.125), (walls[~short], 0.5)):
        assert steps.min() / size >= 0.8 and steps.max() / size <= 1.2
        assert steps.mean() / size == pytest.approx(1.0, abs=0.012)


@pytest.mark.parametrize(
    "model, remedy",
    [
        (SGLDLinearRegression(noise_model=LogLinearNoise(columns=[0])), r"LogLinearNoise\(scale="),
        (SGLDPoissonRegressor(), "prior='hierarchical_normal'"),
    ],
    ids=["unequal noise", "counts"],
)
def test_the_remedy_of_few_rows_is_a_prior(model, remedy):
    with pytest.warns(UserWarning, match=f"n_draws.*; or, as 10 rows .* {remedy}"):
        model.set_params(n_draws=40, random_state=0).fit(X[:, :2], COUNTS)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # of two draws
def test_the_mode_is_exact_where_the_step_size_is_given():
    from skbayes_sgld import sample

    rng = np.random.default_rng(2)
    design = rng.standard_normal((320, 300))
    labels = (design @ rng.standard_normal(300) / 9.0 + rng.logistic(size=320) > 0.0).astype(float)
    posterior = GLMPosterior(design, labels, Bernoulli(), Normal(scale=1.0), fit_intercept=False)
    assert posterior.facts.far_from_mode
    length = {"n_draws": 2, "n_burnin": 1, "thin": 1, "n_chains": 2}
    result = sample(posterior, sampler="hmc", step_size=0.1, random_state=0, **length)
    theta = result.mode.theta
    p = 1.0 / (1.0 + np.exp(-design @ theta))
    slope = design.T @ (labels - p) - theta
    curvature = (design.T * p * (1.0 - p)) @ design + np.eye(300)
    assert slope @ np.linalg.solve(curvature, slope) < 1e-3**2


def test_half_of_the_trajectories_of_a_range_of_steps_are_shorter_within_it():
    normals = np.random.default_rng(1).standard_normal((4000, 3, 1))
    steps = HMC(step_range=64.0).step_sizes(np.full((4000, 1), 0.5), normals, True) / 0.5
    short = steps < 0.8
    assert steps.min() >= 1.0 / 64.0 and steps.max() <= 1.2
    error = 0.5 / np.sqrt(steps.size)
    assert short.mean() == pytest.approx(0.5 - 0.5 * np.log(1.25) / np.log(64.0), abs=5.0 * error)
    assert (steps < 0.125).mean() == pytest.approx(0.25, abs=5.0 * error)


def columns_of(frame, target):
    X = frame.drop(columns=target).to_numpy(float)
    return (X - X.mean(axis=0)) / X.std(axis=0), frame[target].to_numpy(float)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # of so few rows
def test_unequal_noise_of_few_rows_a_column_is_sampled_without_an_overflow():
    frame = datasets.cpunish.load_pandas().data.select_dtypes("number")
    settings = {"prior": "normal", "noise_model": "log_linear", "parameterization": "centered"}
    model = SGLDLinearRegression(**settings, random_state=0)
    # 50 proposals in a row were refused, which was an error
    model.fit(*columns_of(frame, "PERPOVERTY"))
    assert "too narrow for them" in model.result_.choices["sampler"].why
    assert model.sampler_.step_range > 1.0


def test_a_normal_is_found_where_the_mode_is_a_few_rows_without_noise():
    frame = datasets.modechoice.load_pandas().data.select_dtypes("number")
    X, y = columns_of(frame.sample(400, random_state=0), "psize")
    model = SGLDLinearRegression(prior="normal", noise_model="log_linear", random_state=0)
    model.fit(X, y)  # Newton's method did not come to its end
    noise = np.exp(model.noise_intercept_ + X @ model.noise_coef_)
    assert 0.5 < np.sqrt(np.mean(np.square((y - model.predict(X)) / noise))) < 1.5

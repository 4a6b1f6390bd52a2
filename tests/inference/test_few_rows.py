"""Few rows, whose densities have walls: chains leave them, and warnings name the priors."""

import warnings

import numpy as np
import pytest

from skbayes_sgld import SGLDLinearRegression, SGLDPoissonRegressor
from skbayes_sgld.posterior import LogLinearNoise
from skbayes_sgld.sampling import HMC

RNG = np.random.default_rng(0)
X = RNG.standard_normal((10, 30))
COUNTS = RNG.poisson(2.0, 10)


def test_no_walker_stands_still_where_counts_are_fewer_than_columns():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = SGLDPoissonRegressor(random_state=0).fit(X, COUNTS)
    assert repr(model.sampler_) == "HMC()"
    # one that stands still for its 63 draws leaves 110
    assert model.summary()["ess_tail"].min() > 700


def test_every_eighth_trajectory_is_short_where_there_are_walls():
    normals = np.random.default_rng(1).standard_normal((4000, 3, 1))
    eta = np.full((4000, 1), 0.5)
    plain, walls = (HMC().steps(eta, normals, walls) for walls in (False, True))
    assert plain.min() >= 0.4 and plain.max() <= 0.6
    short = walls < 0.2
    assert short.mean() == pytest.approx(0.125, abs=0.012)  # four standard errors
    for steps, size in ((walls[short], 0.125), (walls[~short], 0.5)):
        jitter = steps / size
        assert jitter.min() >= 0.8 and jitter.max() <= 1.2
        assert jitter.mean() == pytest.approx(1.0, abs=0.012)


@pytest.mark.parametrize(
    "model, remedy",
    [
        (SGLDLinearRegression(noise_model=LogLinearNoise(columns=[0])), r"LogLinearNoise\(scale="),
        (SGLDPoissonRegressor(), "prior='hierarchical_normal'"),
    ],
    ids=["unequal noise", "counts"],
)
def test_the_remedy_of_few_rows_is_a_prior(model, remedy):
    with pytest.warns(UserWarning, match=f"raise n_draws; .*or, as 10 rows .* {remedy}"):
        model.set_params(n_draws=40, random_state=0).fit(X[:, :2], COUNTS)

"""``sample``: any posterior, by name of the sampler, against distributions known in closed form."""

import numpy as np
import pytest
from scipy import stats

import skbayes_sgld
from skbayes_sgld.datasets import make_tied_means_mixture
from skbayes_sgld.own_models import CustomPosterior, FunctionPosterior, TiedGaussianMixture
from tests.references.targets import assert_moments


class GammaRate:
    """Exponential rows of unknown rate under a gamma prior: the posterior is a gamma too."""

    n_params, param_names = 1, ["rate"]
    shape, prior_rate = 2.0, 1.0

    def __init__(self, n_samples=40):
        self.n_samples = n_samples
        self.y = np.random.default_rng(0).exponential(0.5, n_samples)

    def rows(self, idx):
        return self.y[None] if idx is None else self.y[idx]

    def log_likelihood(self, x, idx=None):
        return np.log(x) - x * self.rows(idx)

    def grad_log_likelihood(self, x, idx=None):
        return (1 / x - self.rows(idx)).sum(axis=1, keepdims=True)

    def log_prior(self, x):
        return ((self.shape - 1) * np.log(x) - self.prior_rate * x)[:, 0]

    def grad_log_prior(self, x):
        return (self.shape - 1) / x - self.prior_rate

    def exact(self, temperature=1.0):
        shape = (self.shape - 1 + self.n_samples) / temperature + 1
        return stats.gamma(shape, scale=temperature / (self.prior_rate + self.y.sum()))


def rate(model=None):
    return CustomPosterior(model or GammaRate(), transforms={"rate": "positive"})


@pytest.mark.parametrize(
    ("sampler", "temperature"), [("auto", 1.0), ("hmc", 0.3), ("mala", 3.0), ("random_walk", 0.3)]
)
def test_a_bounded_parameter_has_its_exact_distribution(sampler, temperature):
    draws = skbayes_sgld.sample(rate(), sampler, temperature=temperature, random_state=0)
    assert draws.names == ["rate"]
    exact = GammaRate().exact(temperature)
    assert_moments(draws, exact.mean(), exact.std())


@pytest.mark.slow
def test_minibatches_of_a_users_model_have_its_distribution():
    settings = {"gradient": "minibatch", "batch_size": 500, "step_size": 0.05, "thin": 20}
    model = GammaRate(1000)
    quiet = skbayes_sgld.sample(rate(model), n_draws=600, random_state=0, **settings)
    assert_moments(quiet, model.exact().mean(), model.exact().std())


@pytest.mark.slow  # tests/own_models/test_sampled.py asks the same of a mixture of two modes
def test_one_call_gives_both_modes_their_mass():
    X, _ = make_tied_means_mixture(100, random_state=0)
    posterior = TiedGaussianMixture(X)
    upper = (skbayes_sgld.sample(posterior, random_state=0)["theta2"] > 0).mean()
    mass = posterior.grid_density().mass
    assert [upper, 1 - upper] == pytest.approx(mass, rel=0.05)


def test_what_is_no_posterior_or_sampler_is_refused():
    with pytest.raises(TypeError, match="^posterior=.*no n_params, log_d.*CustomPosterior"):
        skbayes_sgld.sample(lambda x: -(x**2))
    with pytest.raises(ValueError, match="sampler='nuts' is not known.*'hmc'"):
        skbayes_sgld.sample(rate(), "nuts")


def test_a_region_where_the_density_is_no_number_is_told_and_not_cut_off_in_silence():
    class CutOff:
        n_params, param_names = 1, ["x"]

        def log_density(self, theta):
            return np.where(theta[:, 0] < 1, -0.5 * theta[:, 0] ** 2, np.nan)

        def grad(self, theta):
            return -theta

    match = r"not a number \(NaN\) at \d+\.\d% of the proposals, as at x=\d.*return -inf"
    with pytest.warns(UserWarning, match=match):
        skbayes_sgld.sample(CutOff(), "parallel_tempering", n_draws=300, random_state=0)


def test_what_a_gradient_lacks_is_said_before_what_a_batch_lacks():
    with pytest.raises(TypeError, match=r"gradient=SAGA\(\) needs .*rows"):
        normal = FunctionPosterior(lambda x: -0.5 * (x**2).sum(1), lambda x: -x, n_params=1)
        skbayes_sgld.sample(normal, gradient="saga", batch_size=5)


def test_a_result_is_no_estimator_and_its_reprs_fit_a_screen():
    normal = FunctionPosterior(lambda x: -0.5 * (x**2).sum(1), lambda x: -x, n_params=60)
    result = skbayes_sgld.sample(normal, n_draws=400, random_state=0, check_gradient=False)
    for part in (result, result.draws, result.plan, result.mode, result.plan.center):
        assert not hasattr(part, "get_params")
        assert len(repr(part)) < 600
    assert "step_size=1" in repr(result.plan)

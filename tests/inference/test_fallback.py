"""Fits whose automatic steps would overflow: what they do instead, and that it is right."""

import joblib
import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from skbayes_sgld import SGLDLogisticRegression, SGLDPoissonRegressor
from skbayes_sgld.diagnostics import effective_sample_size
from skbayes_sgld.inference import problems
from skbayes_sgld.inference.choices import Choice
from skbayes_sgld.inference.strategies.condensed import Condensed
from skbayes_sgld.sampling import SGLD, ChainOverflowError, ValueClip
from skbayes_sgld.sampling.samplers import HMC
from skbayes_sgld.sampling.tuning import pilots
from tests.references.closed_forms import importance_sampling, laplace_fit


def few_events(seed):
    """Ten events in a hundred rows."""
    rng = np.random.default_rng(seed)
    X, y = rng.standard_normal((100, 3)), np.zeros(100, dtype=int)
    y[rng.choice(100, 10, replace=False)] = 1
    return X, y


def assert_right(model, X, y):
    """Compare with moments under a Cauchy prior, by importance sampling."""

    def log_density(theta):
        u = theta[:, :-1] @ X.T + theta[:, -1:]
        prior = -np.log1p(np.square(theta[:, :-1] / model.prior_.scale)).sum(axis=1)
        return u @ y - np.exp(u).sum(axis=1) + prior

    exact = importance_sampling(log_density, *laplace_fit(log_density, 4), n_draws=100_000, df=5)
    assert exact.ess > 20_000
    draws = model.result_.values
    error = 1.0 / np.sqrt(effective_sample_size(draws))
    flat, limit = draws.reshape(-1, draws.shape[2]), 4.0 * error + 0.01
    np.testing.assert_array_less(np.abs(flat.mean(axis=0) - exact.mean) / exact.sd, limit)
    np.testing.assert_array_less(np.abs(flat.std(axis=0) / exact.sd - 1.0), limit)


pytestmark = pytest.mark.usefixtures("by_steps")


@pytest.fixture
def unseen(monkeypatch):
    """Pilots that do not see where steps become unstable, so that chains overflow."""
    monkeypatch.setattr(pilots, "holds_far_out", lambda *_: True)


@pytest.mark.parametrize(("prior", "seed"), [("cauchy", 29), ("student_t", 9)])
def test_ten_events_in_a_hundred_rows_under_a_wide_tailed_prior_do_not_overflow(prior, seed):
    X, y = few_events(seed)
    model = SGLDPoissonRegressor(prior=prior, random_state=seed).fit(X, y)
    assert "overflow from far out" in model.result_.choices["sampler"].why
    if prior == "cauchy":
        assert_right(model, X, y)


def test_steps_that_a_pilot_saw_overflow_are_not_taken_by_a_named_sampler_either():
    model = SGLDPoissonRegressor(prior="cauchy", sampler="sgld", random_state=0)
    model.fit(*few_events(0))
    assert model.step_size_ < 0.5
    assert_right(model, *few_events(0))


def test_a_run_that_overflows_begins_again_with_hmc_and_says_so(unseen):
    X, y = few_events(0)
    model = SGLDPoissonRegressor(prior="cauchy", random_state=0).fit(X, y)
    choice = model.result_.choices["sampler"]
    assert isinstance(choice.value, HMC)
    assert choice.why == "SGLD(): chain 1 overflowed at step 3, by steps of 0.5"
    assert "chain 1 overflowed" in " ".join(str(model.result_.plan).split())
    assert_right(model, X, y)


def test_a_run_that_begins_again_is_the_same_however_its_chains_are_shared(unseen):
    X, y = few_events(0)
    fits = []
    for n_jobs in (None, 2):
        with joblib.parallel_config(backend="threading"):
            fits.append(SGLDPoissonRegressor(prior="cauchy", n_jobs=n_jobs, random_state=0))
            fits[-1].fit(X, y)
    np.testing.assert_array_equal(fits[0].result_.values, fits[1].result_.values)
    # three chains, of which one overflows too, are the first three of four
    three = SGLDPoissonRegressor(prior="cauchy", n_chains=3, random_state=0).fit(X, y)
    np.testing.assert_array_equal(three.result_.values, fits[0].result_.values[:3])


def test_a_run_that_began_again_is_resumed_to_the_bit(unseen, tmp_path):
    X, y = few_events(0)
    settings = {"prior": "cauchy", "n_chains": 64, "random_state": 0, "n_burnin": 20, "thin": 1}
    whole = SGLDPoissonRegressor(**settings, n_draws=60, checkpoint=tmp_path / "a.npz").fit(X, y)
    part = SGLDPoissonRegressor(**settings, n_draws=40, checkpoint=tmp_path / "b.npz").fit(X, y)
    assert isinstance(part.sampler_, HMC)
    path = tmp_path / "b.npz"
    rest = SGLDPoissonRegressor(**settings, n_draws=60, checkpoint=path, resume_from=path)
    rest.fit(X, y)
    assert "overflowed" in rest.result_.choices["sampler"].why
    np.testing.assert_array_equal(rest.result_.values, whole.result_.values)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # of a plain step
@pytest.mark.parametrize("settings", [{"preconditioner": None}, {"clip": ValueClip(1e100)}])
def test_where_hmc_is_ruled_out_the_step_is_shortened(settings, unseen):
    X, y = few_events(0)
    model = SGLDPoissonRegressor(prior="cauchy", random_state=0, **settings).fit(X, y)
    assert isinstance(model.sampler_, SGLD)
    assert "shortened: chain" in model.result_.choices["step_size"].why
    assert model.init_ == "mode"


@pytest.mark.parametrize("given", [{"step_size": 0.5}, {"sampler": "sgld"}])
def test_steps_or_samplers_of_the_user_overflow_as_before(given, unseen):
    model = SGLDPoissonRegressor(prior="cauchy", n_chains=64, random_state=0, **given)
    with pytest.raises(ChainOverflowError, match="overflowed at step . in coef"):
        model.fit(*few_events(0))


@pytest.mark.slow
def test_a_step_whose_bias_is_beyond_the_limit_is_not_run_on_automatic_batches(monkeypatch):
    from skbayes_sgld.datasets import make_logistic

    X, y = make_logistic(10_000, random_state=0)
    measure = pilots.measure_bias

    def off_on_batches(run, *args, **kwargs):
        if run.batch_size is None:
            return measure(run, *args, **kwargs)
        return pilots.Bias(0.49, 0.02, 1.0, 100.0, 0.51, 1.0)

    monkeypatch.setattr(pilots, "measure_bias", off_on_batches)
    monkeypatch.setattr(pilots, "n_chains", lambda run: 16)  # so that the pilot takes batches
    monkeypatch.setattr(Condensed, "suits", lambda task: False)
    model = SGLDLogisticRegression(random_state=0).fit(X, y)  # without a warning
    choices = model.result_.choices
    assert model.batch_size_ is None
    assert model.step_size_ > 0.1
    why = "on batches a pilot's moments are off by more than 1.0%"
    assert choices["gradient"].why == choices["batch_size"].why == why
    assert why in choices["sampler"].why
    # batches that are asked for are kept, and the report names what was given
    with pytest.warns(ConvergenceWarning, match="set batch_size to 'auto'"):
        given = SGLDLogisticRegression(batch_size=32, random_state=0).fit(X, y)
    assert (given.batch_size_, given.step_size_) == (32, 0.02)


@pytest.mark.parametrize(
    "given, remedy",
    [
        ({"step_size": 0.5}, "set step_size='auto', or lower it"),
        ({"sampler": "psgld", "clip": "norm"}, "set sampler to 'auto', and set clip=None"),
        ({"gradient": "saga", "batch_size": 9}, "set gradient and batch_size to 'auto'"),
        ({}, "set sampler='hmc'"),
    ],
)
def test_the_remedy_of_a_bias_is_a_setting_that_was_given(given, remedy):
    names = "step_size", "sampler", "preconditioner", "gradient", "batch_size", "clip", "schedule"
    choices = {name: Choice(given.get(name), "why", name in given) for name in names}
    assert problems.remedy_of_bias(choices) == remedy

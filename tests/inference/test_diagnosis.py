"""The report tells the truth: silent on the default fit, and loud on what goes wrong."""

import re
import warnings
from dataclasses import replace

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler

from skbayes_sgld import SGLDLinearRegression, SGLDLogisticRegression
from skbayes_sgld.diagnostics import least_ess
from skbayes_sgld.inference import problems
from skbayes_sgld.inference.choices import Choice
from skbayes_sgld.inference.diagnosis import condition_27_notes, firmer_priors
from skbayes_sgld.likelihoods import NegativeBinomial, NormalNoise, Poisson
from skbayes_sgld.priors import Flat, Normal, StudentT
from skbayes_sgld.sampling import SGLD, Constant, Cyclical, Harmonic, Polynomial
from skbayes_sgld.sampling.tuning.thresholds import THRESHOLDS
from tests.marks import slow
from tests.references.targets import Density


@pytest.mark.parametrize(
    ("family", "load"),
    [(SGLDLinearRegression, load_diabetes), (SGLDLogisticRegression, load_iris)],
)
def test_the_default_fit_is_silent_and_found_usable(family, load):
    X, y = load(return_X_y=True)
    report = family(random_state=0).fit(X, y).diagnose()  # a warning would be an error here
    assert report.usable
    assert repr(report).startswith("Did the sampler work? usable: no problem was found.")


def test_the_published_settings_are_found_not_usable_on_the_rookies(rookies):
    published = {"sampler": SGLD(integrator="euler"), "preconditioner": None, "step_size": 0.015}
    published |= {"schedule": Polynomial(offset=6, power=0.55), "n_burnin": 0, "thin": 1}
    batches = {"gradient": "minibatch", "batch_size": 30}
    plain = SGLDLogisticRegression(**published, **batches, n_draws=5000, random_state=0)
    with pytest.warns(UserWarning, match="^The chains have not converged: R-hat.*minibatches' no"):
        plain.fit(*rookies)
    report = plain.diagnose()
    assert not report.usable
    assert report.noise_ratio > 1.0
    told = repr(report)
    assert told.startswith("Did the sampler work? not usable:\n")
    # no mode was looked for: nothing is known of the distance from it
    assert told.count("not measured: no mode was looked for") == 2
    assert "not normal" not in told
    assert "nan" not in told


def test_draws_that_are_not_usable_say_nothing_of_the_posteriors_shape(default_fit):
    far = replace(default_fit.diagnose(), shift=0.5)
    assert "not normal" in str(far)
    assert "normal" not in str(replace(far, problems=["R-hat is 2"]))


@pytest.mark.slow
def test_the_noise_ratio_is_how_much_wider_the_variance_gets():
    from skbayes_sgld.datasets import make_correlated_pair

    X, y = make_correlated_pair(400, random_state=0)
    batches = {"gradient": "minibatch", "batch_size": 200, "step_size": 0.2, "thin": 10}
    known = {"noise_variance": 0.2, "prior": Flat(), "random_state": 0}
    model = SGLDLinearRegression(**known, **batches, n_draws=2000)
    with pytest.warns(UserWarning, match="times the injected noise"):
        model.fit(X, y)
    exact = SGLDLinearRegression(**known).fit(X, y)
    ratio = (model.summary()["sd"] / exact.summary()["sd"]) ** 2 - 1
    assert model.diagnose().noise_ratio == pytest.approx(ratio.max(), rel=0.25)


# the shortest step mixes too slowly for 300 draws, and fit says so
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_acceptance_is_one_for_small_steps_and_falls_with_them(rookies):
    acceptance = []
    for step in (0.01, 0.2, 0.8):
        length = {"thin": 4, "n_draws": 100, "n_burnin": 100}
        model = SGLDLogisticRegression(step_size=step, **length, random_state=0)
        acceptance.append(model.fit(*rookies).diagnose().acceptance)
    assert acceptance[0] > 0.97
    assert acceptance[0] > acceptance[1] > acceptance[2]


def test_the_distance_from_the_laplace_approximation_tells_when_samples_matter():
    X, y = load_breast_cancer(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    near = SGLDLogisticRegression(prior=Normal(0.05), random_state=0).fit(X, y).diagnose()
    far = SGLDLogisticRegression(prior=Normal(10.0), random_state=0).fit(X, y).diagnose()
    assert abs(near.shift) < 0.3 < abs(far.shift)
    assert "the samples matter" in str(far)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # of so few draws
@pytest.mark.parametrize(
    ("sampler", "label"), [("sgld", "acceptance, were steps tested"), ("hmc", "acceptance")]
)
def test_a_sampler_that_tests_its_steps_has_an_acceptance_of_its_own(sampler, label):
    X, y = load_iris(return_X_y=True)
    short = {"n_draws": 10, "n_burnin": 10, "thin": 1, "step_size": 0.5, "random_state": 0}
    model = SGLDLogisticRegression(sampler=sampler, **short).fit(X[50:], y[50:])
    assert re.search(r"  (acceptance.*?)  ", repr(model.diagnose()))[1] == label


@pytest.mark.parametrize(
    "schedule, told",
    [
        (Polynomial(power=1.5), "sum of its steps is finite"),
        (Polynomial(power=0.5), "squared steps is infinite: weighted averages still converge"),
        (Cyclical(period=100), "squared steps is infinite: the steps do not vanish"),
        (Harmonic(t0=10.0), ""),
        (Polynomial(power=0.0), "squared steps is infinite: the steps do not vanish"),
        (Constant(), "squared steps is infinite: the steps do not vanish"),
    ],
    ids=repr,
)
def test_a_schedule_that_breaks_condition_27_is_told(schedule, told):
    notes = condition_27_notes(schedule)
    assert len(notes) == bool(told) and all(told in note for note in notes)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # of so few draws
def test_a_broken_condition_27_is_a_note_and_no_problem():
    from skbayes_sgld.datasets import make_correlated_pair

    X, y = make_correlated_pair(100, random_state=0)
    model = SGLDLinearRegression(schedule=Polynomial(power=1.5), n_draws=200, random_state=0)
    report = model.fit(X, y).diagnose()
    assert report.notes == condition_27_notes(model.schedule)
    assert "Note: schedule=Polynomial(" in repr(report)
    assert not any("Condition 27" in problem for problem in report.problems)


def test_proposals_out_of_range_name_the_noise_that_nothing_tells_and_a_prior_that_does():
    (problem,) = problems.undefined_problem(0.01, "", False, NormalNoise().own)
    assert "1.0% of the proposals left the range" in problem
    assert "the noise a prior with more weight (noise_prior='half_cauchy')" in problem
    assert "nan" not in problem
    (problem,) = problems.undefined_problem(0.01, "", False, NegativeBinomial().own)
    assert "the dispersion a prior with more weight (dispersion_prior='half_cauchy')" in problem
    (problem,) = problems.undefined_problem(0.01, "", False, Poisson().own)
    assert "noise" not in problem and "the coefficients a prior of a smaller scale" in problem
    assert problems.undefined_problem(0.0009, "", False) == []


def test_the_noise_of_minibatches_is_told_with_the_step_size_and_by_its_size():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((2000, 3))
    y = X @ [1.0, -1.0, 0.5] + rng.standard_normal(2000)
    model = SGLDLinearRegression(
        prior=Normal(1.0), noise_variance=1.0, fit_intercept=False, preconditioner=None,
        sampler=SGLD("euler"), gradient="minibatch", batch_size=20, step_size=3e-5, thin=30,
        n_draws=500, random_state=0,
    )  # fmt: skip
    with pytest.warns(
        ConvergenceWarning, match="Steps of size 3e-05, with the minibatches' noise, b"
    ):
        model.fit(X, y)
    exact = np.sqrt(np.diag(np.linalg.inv(X.T @ X + np.eye(3))))
    wider = model.posterior_.values[..., :3].std(axis=(0, 1)) / exact - 1.0
    assert wider.min() > 0.8
    assert model.diagnose().bias == pytest.approx(wider.mean(), abs=0.2)  # 1.5 by half of variances


def test_a_fit_of_few_draws_is_told_how_many_would_do():
    # four chains of 50 draws were told that their effective sample size is below 400
    X, y = load_diabetes(return_X_y=True)
    few = {"sampler": "sgld", "random_state": 0}
    model = SGLDLinearRegression(n_draws=50, **few)
    with pytest.warns(ConvergenceWarning, match="50 draws a chain are too few .* set n_draws="):
        model.fit(X, y)
    [problem] = model.diagnose().problems
    enough = int(problem.rpartition("n_draws=")[2])
    assert 200 <= enough <= 300
    more = SGLDLinearRegression(n_draws=enough, **few).fit(X, y)  # without a warning
    assert more.diagnose().usable


def test_a_setting_that_spoils_few_draws_is_the_remedy_not_their_number():
    X, y = load_diabetes(return_X_y=True)
    length = {"n_draws": 100, "n_burnin": 500, "thin": 10}
    model = SGLDLinearRegression(sampler="sgld", step_size=1e-3, **length, random_state=0)
    with pytest.warns(ConvergenceWarning, match="set step_size to 'auto'"):
        model.fit(X, y)


@pytest.mark.parametrize(
    ("wrong", "remedy"),
    [
        ("n_draws", "set n_draws=200"),
        ("unknown", "raise n_draws"),
        ("r_hat", "raise n_draws; or, where there are several modes, set sampler='parallel_temp"),
    ],
)
def test_the_remedy_is_of_what_is_wrong(wrong, remedy, default_fit):
    assert problems._remedy({wrong}, default_fit.result_).startswith(remedy)


def test_the_remedy_of_too_small_an_effective_size_is_the_number_of_draws(default_fit):
    result = default_fit.result_
    slow = np.cumsum(result.theta - result.theta.mean(axis=1, keepdims=True), axis=1)
    remedy = problems._remedy({"ess"}, replace(result, values=slow))
    enough = int(remedy.removeprefix("set n_draws="))
    ess = least_ess(slow)[0]
    assert enough == pytest.approx(400 / ess * slow.shape[1], rel=0.1) and ess < 100


def test_a_given_step_size_that_keeps_a_third_of_the_draws_is_not_the_remedy_of_few():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((100, 1))
    y = X[:, 0] + rng.standard_normal(100)
    # three steps of 0.2 leave a correlation of 0.8^3: draws are worth (1 - 0.51) / (1 + 0.51)
    model = SGLDLinearRegression(sampler="sgld", step_size=0.2, thin=3, random_state=0).fit(X, y)
    assert problems._remedy({"n_draws"}, model.result_).startswith("set n_draws=")


def test_the_remedy_of_a_run_that_ended_early_is_its_limit(default_fit):
    choices = default_fit.result_.choices | {"stopped_by": Choice("max_time", "0.4 s were up")}
    result = replace(default_fit.result_, choices=choices)
    assert problems._remedy({"ess"}, result) == "raise max_time"


def test_too_few_effective_draws_of_predictions_are_told_with_their_remedy():
    from skbayes_sgld.neural_network.diagnosis import diagnose_outputs

    cancelling = np.tile([1.0, -1.0], (4, 2))  # 16 draws, which are worth 19 of a mean
    (problem,) = diagnose_outputs(cancelling[..., None, None], 0.0).problems
    assert "of the predictions is 19, below 20; raise thin or n_draws" in problem


def separated(n, d):
    """Classes that a plane separates, so that nothing but the prior's tail bounds a coefficient."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d))
    X[:, 0] += 0.5 * np.sign(X[:, 0])
    return X, (X[:, 0] > 0).astype(int)


def test_the_sd_of_a_separating_coefficient_under_heavy_tails_is_told_to_be_uncertain():
    # over 20 seeds the sd runs from 4.0 to 6.9 (5 columns)
    X, y = separated(30, 5)
    told, shown = 0, ""
    for seed in range(3):
        model = SGLDLogisticRegression(prior=StudentT(7, 2.5), random_state=seed)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model.fit(X, y)
        messages = [str(w.message) for w in caught]
        assert all("The standard deviation of" in m and "quantiles" in m for m in messages)
        report = model.diagnose()
        assert report.usable and len(report.notes) >= len(messages)
        told, shown = told + len(messages), shown + repr(report)
    assert told
    assert "Note: the standard deviation of" in shown


EULERS_NORMAL = Density(lambda x: -0.5 * (x**2).sum(axis=1), lambda x: -x, n_params=1)


# measured by a pilot, and on the draws
@pytest.mark.parametrize(("eta", "metric"), [(0.1, "auto"), (1.0, "auto"), slow(1.0, None)])
def test_the_bias_of_a_step_is_the_sds_relative_error(eta, metric):
    # Euler on N(0, 1): the variance is 1 / (1 - eta / 2), so that at a step of 1 an sd is 41 % too
    # wide; half of the variance's excess, which the pilot told, is 50 %
    from skbayes_sgld import sample

    wide = 1.0 / np.sqrt(1.0 - eta / 2.0) - 1.0
    settings = {"step_size": eta, "preconditioner": metric, "n_draws": 4000, "random_state": 0}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = sample(EULERS_NORMAL, SGLD("euler"), **settings)
    report, (bias, doubt) = result.diagnose(), result.bias
    assert (report.bias, report.bias_error) == (bias, doubt)
    assert abs(bias - wide) < (doubt if metric is None else 1e-9)
    # Euler's step of half the size errs as its closed form does
    halved = 1.0 / np.sqrt(1.0 - eta / 4.0) - 1.0
    assert metric is None or report.halved_bias == pytest.approx(halved)
    assert len(caught) == (wide > THRESHOLDS.warn_inflation)
    for warning in caught:
        told = float(re.search(r"by (\d+)%", str(warning.message))[1])
        assert abs(told - 100 * wide) < 3.0


# three draws are too few to judge convergence, and sample says so
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_three_draws_of_each_of_many_chains_tell_the_bias_of_their_steps():
    from skbayes_sgld import sample

    settings = {"step_size": 1.0, "preconditioner": None, "random_state": 0}
    result = sample(EULERS_NORMAL, SGLD("euler"), **settings, n_draws=3, n_chains=200)
    bias, doubt = result.bias
    wide = np.sqrt(2.0) - 1.0  # as above
    assert abs(bias - wide) < doubt < bias


def test_few_rows_are_told_of_priors_that_the_model_takes():
    names = [f"coef[x{j}]" for j in range(9)]
    assert "hierarchical_normal" in firmer_priors(12, names)
    for own in ("degrees_of_freedom", "sd[group]"):
        advice = firmer_priors(12, [*names, own])
        assert "prior of less scale" in advice
        assert "hierarchical_normal" not in advice
    assert firmer_priors(1_000_000, names) == ""

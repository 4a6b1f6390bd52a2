"""Several modes of heavy-tailed noise: the one that has the mass is sampled."""

import numpy as np
import pytest
from scipy import sparse, special, stats
from sklearn.exceptions import ConvergenceWarning

from skbayes_sgld import SGLDLinearRegression
from skbayes_sgld.likelihoods import StudentTNoise
from skbayes_sgld.likelihoods.robust_starts import regressions
from skbayes_sgld.posterior import GLMPosterior
from skbayes_sgld.priors import GammaPrior, InverseGamma, Normal
from skbayes_sgld.sampling.tuning.mode_survey import survey
from tests.marks import SHORT, short_chains, slow
from tests.references import heavy_tails
from tests.references.closed_forms import adapted_draws, laplace_fit, z_scores
from tests.references.targets import mode_of

PRIORS = {
    "prior": Normal(3.0),
    "intercept_prior": Normal(3.0),
    "noise_prior": InverseGamma(0.5, 0.001),
    "degrees_of_freedom_prior": GammaPrior(2.0, 10.0),
}


def student_t(**settings):
    settings = {"random_state": 0} | settings
    return SGLDLinearRegression(noise_distribution="student_t", **settings)


def shifted(n=200, share=0.3, by=1.5, d=1, seed=0):
    """A line of which a share of the rows is shifted."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    y = X.sum(axis=1) + 0.1 * rng.standard_normal(n)
    y[rng.permutation(n)[: round(share * n)]] += by
    return X, y


def log_density(X, y, weight=1.0):
    """Of slopes, intercept, log squared scale and log degrees of freedom, under ``PRIORS``."""

    def of(theta):
        coef, gamma, t = theta[:, :-2], theta[:, -2], theta[:, -1]
        eta = coef[:, :-1] @ X.T + coef[:, -1:]
        rows = stats.t.logpdf(y, np.exp(t)[:, None], eta, np.exp(0.5 * gamma)[:, None])
        value = (weight * rows).sum(axis=1) + stats.norm.logpdf(coef, 0.0, 3.0).sum(axis=1)
        value += stats.invgamma.logpdf(np.exp(gamma), 0.5, scale=0.001) + gamma
        return value + stats.gamma.logpdf(np.exp(t), 2.0, scale=10.0) + t

    return of


def narrow_and_wide(d=1):
    """Starts at a narrow noise about the line, and at a wide one about all rows."""
    line = np.ones(d)
    return [np.r_[line, 0.0, np.log(0.01), 0.0], np.r_[line, 0.45, np.log(0.5), np.log(20.0)]]


def coordinates(model):
    """Draws of theta."""
    values = model.posterior_.values.copy()
    values[..., -2:] = np.log(values[..., -2:])
    return values


@pytest.mark.parametrize(
    ("share", "by", "wide"), [slow(0.3, 1.5, 0), slow(0.25, 3.0, 0), (0.42, 1.5, 1)]
)
def test_chains_are_in_the_mode_of_most_mass(share, by, wide):
    X, y = shifted(share=share, by=by)
    model = student_t(**PRIORS).fit(X, y)
    of = log_density(X, y)
    other, mode = (laplace_fit(of, start=narrow_and_wide()[k]) for k in (1 - wide, wide))
    mass = [of(m[None])[0] + 0.5 * np.linalg.slogdet(V)[1] for m, V in (other, mode)]
    assert mass[1] > mass[0] + 5.0
    assert np.abs(z_scores(coordinates(model), *adapted_draws(of, *mode, 5000))).max() < 4.5
    choice = model.result_.plan.choices["modes"]
    assert choice.value == 1 and "another has 0.0%" in choice.why
    assert model.diagnose().usable


@pytest.mark.parametrize("seed", [0, slow(1), slow(2)])
def test_a_fifth_of_far_rows_is_no_alarm(seed):
    X, y = shifted(80, 0.25, 3.0, seed=seed)
    model = student_t(random_state=seed).fit(X, y)
    assert model.diagnose().usable and abs(model.intercept_) < 0.06


def sparse_rows(X, y):
    X = np.where(np.abs(X) > 1.0, X, 0.0)
    return sparse.csr_array(X), y - shifted()[0].sum(axis=1) + X.sum(axis=1)


@pytest.mark.filterwarnings("ignore:The effective sample size")  # of few draws
@pytest.mark.parametrize(
    ("prepare", "settings"),
    [
        (lambda X, y: (X, y), {"noise_model": "log_linear"}),
        (lambda X, y: (X.astype(np.float32), y.astype(np.float32)), {}),
        (lambda X, y: (X, y, np.where(np.arange(200) % 5, 1.0, [0.0] * 100 + [2.0] * 100)), {}),
        (sparse_rows, {}),
        (lambda X, y: (X, y), {"prior": "cauchy", "sampler": "hmc"}),
        (lambda X, y: (1e6 * X + 1e7, y), {}),
    ],
    ids=["log-linear", "float32", "weights", "sparse", "hmc", "units"],
)
def test_the_mode_is_found_in_every_kind_of_rows(prepare, settings):
    model = student_t(n_draws=100, **settings).fit(*prepare(*shifted()))
    df = model.posterior_.values[..., -1]
    assert 0.4 < df.mean() < 1.0  # 36 in the other mode
    assert model.result_.plan.choices["modes"].value == 1


@pytest.mark.filterwarnings("ignore:The effective sample size", "ignore:.*misfit|.*intervals hold")
def test_the_modes_of_many_rows_are_seen_in_a_sample_of_them():
    model = student_t(n_draws=100).fit(*shifted(20_000, d=5))
    assert np.abs(model.intercept_) < 0.02 and model.degrees_of_freedom_ < 1.0


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of few draws
def test_a_learned_scale_begins_at_the_mode_of_most_mass():
    model = student_t(prior="hierarchical_normal", n_draws=40).fit(*shifted(d=3))
    assert abs(model.intercept_) < 0.06 and model.degrees_of_freedom_ < 1.0


@pytest.mark.filterwarnings("ignore:The effective sample size|The chains have")  # of ten draws
@pytest.mark.parametrize("df", [1, 3, 30])
@pytest.mark.parametrize(("n", "d"), [(20, 2), (100, 5), slow(3000, 3)])
def test_ordinary_rows_have_one_mode(n, d, df):
    rng = np.random.default_rng(n)
    X = rng.standard_normal((n, d))
    y = X.sum(axis=1) + rng.standard_t(df, n)
    plan = student_t(n_draws=10).fit(X, y).result_.plan
    assert plan.modes == () and plan.choices["modes"].why.endswith("starts end at one mode")


def test_starts_take_a_weight_for_repeated_rows():
    rng = np.random.default_rng(1)
    design = np.column_stack([rng.standard_normal((60, 2)), np.ones(60)])
    line = np.arange(60) % 3 > 0  # the other rows are on a line of their own
    y = np.where(line, design @ [1.0, -1.0, 0.0], design @ [0.5, 2.0, 30.0])
    y += 0.3 * rng.standard_t(3, 60)
    times = rng.integers(4, size=60)
    weighted = regressions(design, y, times.astype(float))
    repeated = regressions(np.repeat(design, times, axis=0), np.repeat(y, times), None)
    assert len(repeated) == 3
    np.testing.assert_allclose(weighted, repeated, rtol=1e-6)


def test_nothing_is_said_of_searches_where_the_rows_suggest_no_other_start():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((7, 2))
    priors = [InverseGamma(5.0, 5.0), GammaPrior(20.0, 2.0)]
    y = X.sum(axis=1) + rng.standard_normal(7)
    options = {"intercept_prior": Normal(1.0)}
    posterior = GLMPosterior(X, y, StudentTNoise(), Normal(1.0), priors, **options)
    assert posterior.other_starts() == []
    found = survey(posterior, mode_of(posterior, posterior.start()), 1.0)
    assert (found.modes, found.finding) == ((), "")


@short_chains
def test_a_single_search_is_said_to_be_one():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((16, 8))
    model = student_t(prior="normal", **SHORT).fit(X, X.sum(axis=1) + rng.standard_t(2, 16))
    assert model.result_.plan.choices["modes"].why == "the search ends at one mode"


# ---- two modes that share the mass -------------------------------------------------------------


def mixture(of, starts, n_draws=4000, df=6):
    """Weighted draws of a density by a t distribution at each of its modes."""
    proposals = []
    for start in starts:
        theta, weight = adapted_draws(of, *laplace_fit(of, start=start), n_draws)
        mean = weight @ theta
        V = (theta - mean).T @ ((theta - mean) * weight[:, None])
        proposals.append(stats.multivariate_t(mean, V, df=df, seed=len(proposals)))
    theta = np.concatenate([each.rvs(n_draws) for each in proposals])
    density = special.logsumexp([each.logpdf(theta) for each in proposals], axis=0)
    return theta, special.softmax(of(theta) - density)


SHARED = shifted(share=0.37)


@pytest.mark.filterwarnings("ignore::skbayes_sgld.ModelMisfitWarning")
@pytest.mark.parametrize("temperature", [1.0, slow(1.5)])
def test_chains_jump_between_modes_that_share_the_mass(temperature):
    of = log_density(*SHARED)
    theta, weight = mixture(lambda theta: of(theta) / temperature, narrow_and_wide())
    model = student_t(**PRIORS, temperature=temperature).fit(*SHARED)
    narrow = weight @ (theta[:, -1] < 1.5)
    assert 0.02 < narrow < 0.98
    draws = coordinates(model)
    by_chain = (draws[..., -1] < 1.5).mean(axis=1)
    assert by_chain.mean() == pytest.approx(narrow, abs=4.0 * by_chain.std(ddof=1) / 2.0 + 0.01)
    assert np.abs(z_scores(draws, theta, weight)[:2]).max() < 4.5
    plan = model.result_.plan
    assert plan.choices["modes"].value == len(plan.modes) == 2
    assert "several modes" in plan.choices["sampler"].why and model.diagnose().usable


@pytest.mark.filterwarnings("ignore::skbayes_sgld.ModelMisfitWarning")
def test_a_share_that_few_jumps_leave_uncertain_is_said():
    with pytest.warns(ConvergenceWarning, match=r"jumped between modes \d+ times in 16 draws"):
        student_t(n_draws=8, n_chains=2).fit(*SHARED)


@pytest.mark.filterwarnings("ignore::skbayes_sgld.ModelMisfitWarning")
def test_a_given_sampler_that_misses_a_mode_is_said_with_the_remedy():
    with pytest.warns(ConvergenceWarning, match="do not cross to it; set sampler to 'auto'"):
        student_t(sampler="hmc", n_draws=300).fit(*SHARED)


@pytest.mark.filterwarnings("ignore")  # of few draws
def test_a_chain_that_jumps_is_the_same_beside_others():
    fits = [student_t(n_chains=n, n_draws=32).fit(*SHARED) for n in (2, 3)]
    first, second = (fit.posterior_.values for fit in fits)
    np.testing.assert_array_equal(first, second[:2])


# ---- few rows a column -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("n", "d", "df", "seed"), [(100, 30, 5, 0), slow(100, 30, 5, 1), (40, 10, 2, 2)]
)
def test_few_rows_a_column_are_right_to_a_tenth_of_an_sd(n, d, df, seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    y = 0.5 * X.sum(axis=1) + 1.5 * rng.standard_t(df, n)
    model = student_t(prior="normal").fit(X, y)
    scale = 2.5 * y.std() / X.std(axis=0)
    mean, sd = heavy_tails.moments(f"student-t-{n}-{d}-{seed}", X, y, scale)
    table = model.summary()
    assert np.abs((table["mean"] - mean) / sd).max() < 0.15  # 0.05 to 0.08 by chance
    assert np.abs(np.log(table["sd"] / sd)).max() < 0.2
    assert model.diagnose().usable

"""A prior that the data contradict is told, with figures that are right; an ordinary one is not."""

import numpy as np
import pytest
from scipy.stats import chi2, norm
from sklearn.datasets import load_diabetes, load_iris
from sklearn.linear_model import LinearRegression, LogisticRegression, PoissonRegressor
from sklearn.preprocessing import StandardScaler

from skbayes_sgld import SGLDLinearRegression, SGLDLogisticRegression, SGLDPoissonRegressor
from skbayes_sgld.likelihoods import FixedNormalNoise, NormalNoise
from skbayes_sgld.posterior import GLMPosterior
from skbayes_sgld.posterior.conflict import own_pull, prior_conflict
from skbayes_sgld.priors import (
    Cauchy,
    ConjugateNormal,
    Flat,
    InverseGamma,
    Laplace,
    Normal,
    StudentT,
)
from skbayes_sgld.sampling.tuning.mode import newton_mode
from tests.marks import SHORT, short_chains, slow

X_RAW, Y = load_diabetes(return_X_y=True)
FEW = {"n_draws": 300, "random_state": 0}


def of_the_prior(report):
    """Notes of a report but for the one on Condition 27, which a constant step always breaks."""
    return [note for note in report.notes if "Condition 27" not in note]


def notes(model, X, y):
    return of_the_prior(model.set_params(**FEW).fit(X, y).diagnose())


def direct(X, y, prior_sd, sigma):
    """Box's and Evans & Moshonov's figures from the distribution of the least squares estimate."""
    X, y = X - X.mean(axis=0), y - y.mean()
    estimate = np.linalg.lstsq(X, y, rcond=None)[0]
    noise = sigma**2 * np.linalg.inv(X.T @ X)
    predictive = noise + np.diag(np.square(prior_sd))
    square = estimate @ np.linalg.solve(predictive, estimate)
    return chi2.sf(square, len(estimate)), estimate, noise


@pytest.mark.parametrize("center", [False, True])
def test_the_joint_figure_is_that_of_the_estimate_under_prior_and_noise(center):
    rng = np.random.default_rng(1)
    X = rng.standard_normal((40, 3)) @ rng.standard_normal((3, 3)) + 2.0
    y = X @ [0.5, -1.0, 0.7] + rng.standard_normal(40)
    sd = np.array([0.3, 0.5, 0.4])
    posterior = GLMPosterior(X, y, FixedNormalNoise(1.0), Normal(sd), intercept_at_mean=center)
    expected, *_ = direct(X, y, sd, 1.0)
    for at in (np.zeros(4), np.array([0.1, 0.2, -0.3, 1.0])):  # whatever it is expanded at
        found = prior_conflict(posterior, at, np.ones(4))
        assert found.probability <= 2.0 * expected * (1.0 + 1e-9)
        assert found.probability == pytest.approx(2.0 * expected) or found.probability < expected


def test_the_distance_of_one_coefficient_is_that_of_two_normal_distributions():
    rng = np.random.default_rng(2)
    x = rng.standard_normal((30, 1))
    y = 2.0 * x[:, 0] + rng.standard_normal(30)
    sd = 0.3
    posterior = GLMPosterior(x, y, FixedNormalNoise(1.0), Normal(sd, 0.1), intercept_at_mean=True)
    _, estimate, noise = direct(x, y, [sd], 1.0)
    moved = float(estimate[0]) - 0.1
    mean = 0.1 + moved * sd**2 / (sd**2 + noise[0, 0])
    found = prior_conflict(posterior, np.array([mean, 0.0]), np.array([0.2, 1.0]))
    assert found.distance[0] == pytest.approx(moved / np.sqrt(sd**2 + noise[0, 0]))
    assert found.pull[0] == pytest.approx((mean - estimate[0]) / 0.2)
    assert found.effective == pytest.approx(sd**2 / (sd**2 + noise[0, 0]))
    # two tests of one coefficient, of which the smaller is doubled
    assert found.probability == pytest.approx(4.0 * norm.sf(found.distance[0]), rel=1e-6)


@pytest.mark.parametrize("prior", [slow(Normal(0.5)), StudentT(3.0, 0.5)])
def test_under_data_that_follow_the_prior_its_figure_is_hardly_ever_small(prior):
    rng = np.random.default_rng(3)
    X, found = rng.standard_normal((25, 2)), []
    X -= X.mean(axis=0)
    for _ in range(150):
        y = X @ prior.sample(rng, (1, 2), 1.0)[0] + rng.standard_normal(25)
        posterior = GLMPosterior(X, y, FixedNormalNoise(1.0), prior, fit_intercept=False)
        found.append(prior_conflict(posterior, np.zeros(2), np.ones(2)).probability)
    assert np.mean(np.array(found) < 0.05) < 0.12  # 0.05 and four standard errors
    if prior.normal:  # and it is no bound that is far from sharp
        assert np.mean(np.array(found) < 0.2) > 0.05


def made(model, n_rows):
    rng = np.random.default_rng(6)
    X = rng.standard_normal((n_rows, 5))
    eta = X @ rng.standard_normal(5) / 2.0
    return X, {
        SGLDLinearRegression: eta + rng.standard_normal(n_rows),
        SGLDLogisticRegression: (eta + rng.logistic(size=n_rows) > 0).astype(float),
        SGLDPoissonRegressor: rng.poisson(np.exp(eta)).astype(float),
    }[model]


MODELS = [SGLDLinearRegression, SGLDLogisticRegression, SGLDPoissonRegressor]
ORDINARY = [
    *((model(prior="normal"), made(model, 60)) for model in MODELS),
    *((SGLDLinearRegression(prior=p), (X_RAW, Y)) for p in ("conjugate_normal", "cauchy", "flat")),
]
CLASSES = load_iris(return_X_y=True)
FAR = [
    (SGLDLinearRegression(prior=ConjugateNormal(0.1)), (X_RAW, Y), "x2"),
    (SGLDLinearRegression(prior=Laplace(1.0)), (X_RAW, Y), "x2"),
    (SGLDLogisticRegression(prior=Normal(0.02)), CLASSES, "0, x2"),
    (SGLDPoissonRegressor(prior=Normal(0.01)), made(SGLDPoissonRegressor, 200), "x"),
]


@pytest.mark.parametrize(("model", "data"), ORDINARY)
def test_ordinary_fits_are_not_told_of_their_prior(model, data):
    assert notes(model, *data) == []


@pytest.mark.parametrize(("model", "data", "name"), FAR)
def test_a_prior_that_is_far_too_narrow_is_told_with_its_remedy(model, data, name):
    (told,) = notes(model, *data)
    assert "prior and data disagree" in told and "scale='auto'" in told
    assert f"coef[{name}" in told
    if data[0] is X_RAW:
        assert "coef[x2] is 12" in told  # 0.59, its correlation with y, times the root of 442


def test_a_heavy_tailed_prior_that_lets_go_is_not_told():
    estimate = np.append(np.linalg.lstsq(X_RAW, Y - Y.mean(), rcond=None)[0], Y.mean())
    found = {}
    for prior in (Normal(1.0), Cauchy(1.0)):
        posterior = GLMPosterior(X_RAW, Y, FixedNormalNoise(2859.0), prior)
        found[type(prior)] = prior_conflict(posterior, estimate, np.ones(11))
    assert found[Normal].probability < 1e-30
    assert found[Cauchy].probability > 1e-3


def test_few_rows_under_a_wide_prior_are_noted_and_under_a_narrow_one_not():
    X, y = X_RAW[:30], Y[:30]
    for prior in ("conjugate_normal", Flat()):
        told = notes(SGLDLinearRegression(prior=prior), X, y)
        assert len(told) == 1 and "30 rows for" in told[0]
    assert "prior moves" in notes(SGLDLinearRegression(prior=Normal(200.0)), X, y)[0]


@short_chains
def test_what_is_learned_or_gone_is_not_measured():
    model = SGLDLinearRegression(prior="hierarchical_normal", random_state=0, **SHORT)
    report = model.fit(X_RAW, Y).diagnose()
    assert report.conflict is None
    assert "pull of the prior" in (told := repr(report))
    assert told.partition("pull of the prior")[2].partition("\n")[0].endswith("not measured")
    kept = SGLDLinearRegression(random_state=0, **SHORT).fit(X_RAW, Y).result_
    assert kept.diagnose().conflict is not None
    assert kept.without_data().diagnose().conflict is None


# posteriors that are nearly the prior in most directions mix slowly, and fit says so
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_classes_of_next_to_no_weight_leave_the_prior_and_the_data_comparable():
    X = 20.0 * np.random.default_rng(0).standard_normal((50, 2))
    y = np.arange(50) % 3
    weight = {0: 1000.0, 1: 1e-4, 2: 1e-4}
    model = SGLDLogisticRegression(n_draws=100, class_weight=weight, random_state=0).fit(X, y)
    conflict = model.diagnose().conflict
    assert np.isfinite(conflict.distance).all()
    assert np.isinf(conflict.pull).all()  # a class without weight is separated from the others


# ---- the pull of the prior of all coefficients --------------------------------------------------


@pytest.mark.parametrize(
    ("model", "reference"),
    [
        (SGLDLinearRegression, LinearRegression()),
        (SGLDLogisticRegression, LogisticRegression(C=np.inf, tol=1e-10, max_iter=10_000)),
        (SGLDPoissonRegressor, PoissonRegressor(alpha=0.0, tol=1e-10, max_iter=10_000)),
    ],
    ids=["linear", "three classes", "counts"],
)
def test_the_pull_is_from_the_estimate_without_a_prior_in_posterior_sds(model, reference):
    rng = np.random.default_rng(4)
    X = rng.standard_normal((120, 4))
    X[:, 1] = X[:, 0] + 0.2 * rng.standard_normal(120)
    y = rng.poisson(np.exp(X @ [0.75, -0.5, 0.25, 0.0])).astype(float)
    if model is SGLDLogisticRegression:
        y = np.minimum(y, 2.0)
    model = model(prior=Normal(0.5), n_draws=2000, random_state=0).fit(X, y)
    summary = model.result_.summary()
    coef = summary.index.str.startswith("coef")
    moved = summary["mean"][coef] - np.ravel(reference.fit(X, y).coef_)
    found = model.diagnose().conflict.pull
    # a mean is beside the mode for its skewness, and known to its Monte Carlo error
    np.testing.assert_allclose(found, moved / summary["sd"][coef], atol=0.2)
    assert np.abs(found).max() > 0.5


def test_the_joint_pull_on_nearly_dependent_columns_is_told_under_an_automatic_scale():
    rng = np.random.default_rng(0)
    z = rng.standard_normal((200, 1))
    X = StandardScaler().fit_transform(z + 0.003 * rng.standard_normal((200, 20)))
    y = 3.0 * z[:, 0] + rng.standard_normal(200)
    model = SGLDLinearRegression(prior="normal", n_draws=1000, random_state=0).fit(X, y)
    flat = LinearRegression().fit(X, y).coef_
    sd = model.result_.summary()["sd"][:20]
    moved = np.abs(model.coef_ - flat) / sd
    assert moved.max() > 4.0
    report = model.diagnose()
    name = f"coef[x{moved.argmax()}]"
    (note,) = of_the_prior(report)
    assert f"the prior moves {name} by " in note
    told = next(line for line in repr(report).splitlines() if "largest pull" in line)
    assert told.endswith(name) and float(told.split()[-2]) == pytest.approx(moved.max(), rel=0.05)
    alone = SGLDLinearRegression(prior="flat", **FEW).fit(X, y)
    assert of_the_prior(alone.diagnose()) == []


def undetermined():
    rng = np.random.default_rng(5)
    x, group = rng.standard_normal((90, 2)), rng.integers(0, 3, 90)
    y = (x[:, 0] + rng.logistic(size=90) > 0).astype(float)
    few = np.arange(90) < 9
    return {
        "a column for each group": (SGLDLinearRegression, np.c_[x, np.eye(3)[group]], y, [2, 3, 4]),
        "a separated group": (SGLDLogisticRegression, np.c_[x, few], np.where(few, 1.0, y), [2]),
        "a group without events": (SGLDPoissonRegressor, np.c_[x, few], y * ~few, [2]),
        "fewer rows than columns": (
            SGLDLinearRegression,
            rng.standard_normal((10, 15)),
            rng.standard_normal(10),
            list(range(15)),
        ),
    }


@pytest.mark.parametrize("case", undetermined())
def test_coefficients_that_the_data_alone_do_not_determine_are_told(case):
    model, X, y, loose = undetermined()[case]
    report = model(prior="normal", **FEW).fit(X, y).diagnose()
    assert np.flatnonzero(np.isinf(report.conflict.pull)).tolist() == loose
    assert np.abs(report.conflict.pull[np.isfinite(report.conflict.pull)]).max(initial=0.0) < 1.0
    told = [note for note in report.notes if "the data alone do not determine coef[x" in note]
    assert len(told) == 1
    assert (f"and {len(loose) - 1} more coefficient" in told[0]) == (len(loose) > 1)
    assert ": not determined by the data" in repr(report)


def test_the_pull_of_an_own_prior_is_that_of_the_mode_without_it():
    """To second order, of an inverse gamma prior on the noise variance of 60 rows."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((60, 1))
    y = x[:, 0] + rng.standard_normal(60)

    def mode(prior):
        posterior = GLMPosterior(x, y, NormalNoise(), Normal(scale=5.0), [prior])
        return posterior, newton_mode(posterior, posterior.start()).theta

    posterior, theta = mode(InverseGamma(shape=1e-9, scale=3.0))
    without = mode(InverseGamma(shape=1e-9, scale=1e-9))[1]
    sd = np.sqrt(np.linalg.inv(posterior.expand(theta).curvature)[-1, -1])
    name, argument, pull = own_pull(posterior, posterior.reported.values(theta[None])[0])
    assert (name, argument) == ("noise_variance", "noise_prior")
    assert pull == pytest.approx((theta[-1] - without[-1]) / sd, rel=0.1)
    assert pull > 0.3

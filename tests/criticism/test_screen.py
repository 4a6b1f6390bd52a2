"""The screen in ``fit``: planted misfits are told, right models are not, and no draw changes."""

import re
import warnings
from unittest import mock

import numpy as np
import pytest
from scipy import special, stats
from sklearn.base import clone

from skbayes_sgld import (
    ModelMisfitWarning,
    RowBlocks,
    SGDMAPRegressor,
    SGLDGammaRegressor,
    SGLDLinearRegression,
    SGLDLogisticRegression,
    SGLDOrdinalClassifier,
    SGLDPoissonRegressor,
    check_model,
)
from skbayes_sgld.criticism import of_fit, screen
from skbayes_sgld.criticism.checks import share_inside
from skbayes_sgld.criticism.settings import advice
from skbayes_sgld.posterior import LogLinearNoise
from tests.marks import slow
from tests.rows import test_fits as by_rows

pytestmark = pytest.mark.filterwarnings("error::skbayes_sgld.ModelMisfitWarning")


def columns(rng, n):
    return rng.uniform(-1.0, 1.0, (n, 2))


def labels(rng, score):
    return (score + rng.gumbel(size=score.shape)).argmax(axis=1)


def unequal(rng, X, wrong):
    sd = np.exp(X[:, 0]) if wrong else 1.0
    return 3.0 * X[:, 0] + sd * rng.standard_normal(len(X))


def heavy(rng, X, wrong):
    return X[:, 0] + (rng.standard_t(1.5, len(X)) if wrong else rng.standard_normal(len(X)))


def in_middle(rng, X, wrong):
    sd = 1.0 + 4.0 * (np.abs(X[:, 0]) < 0.3) * wrong
    return 3.0 * X[:, 0] + sd * rng.standard_normal(len(X))


def heavy_unequal(rng, X, wrong):
    return np.exp(X[:, 0]) * heavy(rng, np.zeros_like(X), wrong)


def peaked_unequal(rng, X, wrong):
    normal, heavy = rng.standard_normal(len(X)), rng.standard_t(2.0, len(X))
    return 3.0 * X[:, 0] + (np.exp(1.5 * X[:, 0]) * heavy if wrong else normal)


def many_zeros(rng, X, wrong):
    y = X[:, 0] + rng.standard_normal(len(X))
    return np.where(rng.random(len(X)) < 0.6, 0.0, y) if wrong else y


def two_values(rng, X, wrong):
    y = 2.0 * X[:, 0] + rng.logistic(size=len(X))
    return (y > 0) * 1.0 if wrong else 2.0 * X[:, 0] + rng.standard_normal(len(X))


def positive(rng, X, wrong):
    return (
        rng.choice([0.1, 1.0, 9.0], len(X)) * np.exp(0.1 * X[:, 0])
        if wrong
        else rng.gamma(2.0, size=len(X))
    )


def overdispersed(rng, X, wrong):
    gamma = rng.gamma(2.0, 0.5, len(X)) if wrong else 1.0
    return rng.poisson(gamma * np.exp(1.0 + X[:, 0]))


def underdispersed(rng, X, wrong):
    mean = np.exp(2.0 + 0.2 * X[:, 0])
    return np.round(mean) if wrong else rng.poisson(mean)


def two(rng, X, wrong):
    eta = 6.0 * np.square(X[:, 0]) - 2.0 + 3.0 * X[:, 0] if wrong else 2.0 * X[:, 0]
    return labels(rng, np.column_stack([np.zeros(len(X)), eta]))


def labels_for_counts(rng, X, wrong):
    rate = np.exp(0.5 * X[:, 0])
    return (rng.random(len(X)) < rate / (1.0 + rate)).astype(int) if wrong else rng.poisson(rate)


def three(rng, X, wrong):
    x = np.sign(X[:, 0]) * 3.0 * (np.abs(X[:, 0]) < 0.5) if wrong else X[:, 0]
    return labels(rng, np.column_stack([-4.0 * x, np.zeros(len(X)), 4.0 * x]))


LINEAR = SGLDLinearRegression(random_state=0)
UNEQUAL = SGLDLinearRegression(noise_model="log_linear", random_state=0)
HEAVY = SGLDLinearRegression(noise_distribution="student_t", random_state=0)
GAMMA = SGLDGammaRegressor(random_state=0)
COUNTS = SGLDPoissonRegressor(random_state=0)
LABELS = SGLDLogisticRegression(random_state=0)
FEW = {"n_draws": 400, "random_state": 0}  # draws
PLANTED = {
    "unequal noise": (LINEAR, unequal, "not the same in all rows; set noise_model='log_linear'"),
    "noise of the middle": (LINEAR, in_middle, "the mean, or the noise, is curved in the columns"),
    "heavy tails": (LINEAR, heavy, r"tails .* hold \d\d %; set .*'student_t'; check"),
    "heavy and unequal": (UNEQUAL, heavy_unequal, "tails are not normal"),
    "unequal and heavy": (HEAVY, unequal, "; set noise_model='log_linear'"),
    "both at once": (LINEAR, peaked_unequal, "nor normal.*='log_linear' and .*'student_t'; check"),
    "many zeros": (LINEAR, many_zeros, r"\d\d % of the rows have the same y; model apart"),
    "two values": (LINEAR, two_values, "y has two values; use SGLDLogisticRegression"),
    "positive": (GAMMA, positive, r"otherwise than the model says, and 50 % .* \d\d %; check"),
    "overdispersed": (COUNTS, overdispersed, r"variance of the numbers is \d\.\d times"),
    "underdispersed": (COUNTS, underdispersed, r"variance of the numbers is 0\.\d+ times"),
    "labels for counts": (COUNTS, labels_for_counts, "y has two values; use SGLDLogisticRegr"),
    "two classes": (LABELS, two, "of the second class, and the model says"),
    "three classes": (LABELS, three, "have their likeliest label, and the model says"),
}


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_misfit_is_told_and_data_from_the_model_are_not(name):
    model, make, said = PLANTED[name]
    rng = np.random.default_rng(0)
    X = columns(rng, 600)
    with pytest.warns(ModelMisfitWarning, match=said):
        model.fit(X, make(rng, X, True))
    model.fit(X, make(rng, X, False))  # a warning would be an error


NEARLY_EXACT = {
    "gamma": (
        GAMMA,
        lambda rng, mean: np.exp(mean) * rng.gamma(1e6, 1e-6, len(mean)),
        "dispersion",
    ),
    "normal": (LINEAR, lambda rng, mean: mean + 1e-4 * rng.standard_normal(len(mean)), "noise"),
}


@pytest.mark.parametrize("name", NEARLY_EXACT)
def test_a_prior_that_decides_the_noise_of_nearly_exact_data_is_named(name):
    model, make, argument = NEARLY_EXACT[name]
    rng = np.random.default_rng(0)
    X = columns(rng, 200)
    y = make(rng, X @ [0.5, -0.3])
    said = rf"{argument}_prior moves the .* posterior sds .*; set {argument}_prior='half_student_t'"
    with pytest.warns(ModelMisfitWarning, match=said):
        fitted = clone(model).fit(X, y)
    notes = fitted.result_.diagnose().notes
    assert any(note.startswith(f"{argument}_prior moves") for note in notes)
    clone(model).set_params(**{f"{argument}_prior": "half_student_t"}).fit(X, y)


def misfit_of(model, X, y, **row_data):
    with pytest.warns(ModelMisfitWarning) as found:
        model.fit(X, y, **row_data)
    return str(found[0].message)


def test_curves_are_named_to_models_that_take_them():
    rng = np.random.default_rng(0)
    X = columns(rng, 600)
    y = in_middle(rng, X, True)
    assert "add their squares or smooth_effects; check" in misfit_of(clone(LINEAR), X, y)
    learned = clone(LINEAR).set_params(prior="hierarchical_normal")
    assert "add their squares; check" in misfit_of(learned, X, y)
    assert "add their squares or smooth_eff" in misfit_of(clone(LABELS), X, two(rng, X, True))
    few = SGLDLogisticRegression(**FEW).fit(X, three(rng, X, False))
    assert screen._curves(few) == "squares"


@pytest.mark.parametrize("times", [0.05, 5.0, 1e4])
def test_a_given_variance_of_another_size_is_named_and_its_remedy_fits(times):
    rng = np.random.default_rng(5)
    X = rng.normal(size=(200, 3))
    y = 2.0 * X[:, 0] + rng.normal(size=200)
    model = SGLDLinearRegression(noise_variance=1.0 / times, **FEW)
    told = misfit_of(model, X, y)
    ratio = float(told.partition("the squared residuals are ")[2].partition(" times noise_var")[0])
    assert ratio == pytest.approx(times, rel=0.25)
    assert "noise_variance; set noise_variance='infer'; check" in told
    model.set_params(noise_variance="infer").fit(X, y)  # a warning would be an error


@pytest.mark.parametrize("make", [unequal, heavy])
def test_other_noise_of_a_given_variance_has_both_settings_as_its_remedy(make):
    rng = np.random.default_rng(0)
    X = columns(rng, 400)
    y = make(rng, X, True)
    one = {unequal: "noise_model='log_linear'", heavy: "noise_distribution='student_t'"}[make]
    model = SGLDLinearRegression(noise_variance=1.0, **FEW)
    assert f"; set noise_variance='infer' and {one}; check" in misfit_of(model, X, y)
    name, _, value = one.partition("=")
    model.set_params(noise_variance="infer", **{name: value.strip("'")}).fit(X, y)


@pytest.mark.slow
def test_no_setting_that_the_model_has_or_does_not_take_is_a_remedy():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(200, 3))
    y = 2.0 * X[:, 0] + rng.normal(size=200)
    far = y.copy()
    far[5] = 1e6
    both = {"noise_model": "log_linear", "noise_distribution": "student_t"}
    for noise in ("log_linear", LogLinearNoise()):
        model = SGLDLinearRegression(**{**both, "noise_model": noise}, **FEW)
        assert "; set " not in misfit_of(model, X, far)
    sizes = rng.integers(1, 4, 200)  # averages have no t-distributed noise
    y[:20] += 9.0 * rng.standard_t(1.0, 20)
    assert "student_t" not in misfit_of(SGLDLinearRegression(**FEW), X, y, n_averaged=sizes)
    for prior in ("normal", "hierarchical_normal"):
        one = SGLDLogisticRegression(prior=prior)
        assert (advice(one, prior=prior), advice(one, noise_model="log_linear")) == ("", "")


def test_totals_that_vary_more_than_binomial_numbers_are_told():
    rng = np.random.default_rng(0)
    X, n = columns(rng, 300), rng.integers(5, 40, 300)
    p = 1.0 / (1.0 + np.exp(-X[:, 0]))
    model = SGLDLogisticRegression(random_state=0).fit(X, rng.binomial(n, p), n_trials=n)
    y = rng.binomial(n, rng.beta(3.0 * p, 3.0 * (1.0 - p)))
    with pytest.warns(ModelMisfitWarning, match="variance of the numbers is") as found:
        model.fit(X, y, n_trials=n)
    ratio = float(str(found[0].message).partition("numbers is ")[2].partition(" ")[0])
    assert ratio == pytest.approx(np.mean((y - n * p) ** 2 / (n * p * (1.0 - p))), rel=0.2)


def test_it_names_the_share_of_the_transforms_in_intervals_as_check_model_does():
    rng = np.random.default_rng(0)
    X = columns(rng, 400)
    y = overdispersed(rng, X, True)
    with pytest.warns(ModelMisfitWarning) as found:
        model = SGLDPoissonRegressor(random_state=0).fit(X, y)
    share = share_inside(model.predict_cdf(X, y - 1), model.predict_cdf(X, y), 0.9)
    told = float(str(found[0].message).partition("hold ")[2].partition(" %")[0])
    assert told == pytest.approx(100.0 * share.mean(), abs=1.5)
    table = check_model(model, X, y, remedies=False).table.set_index("check")
    assert told == pytest.approx(100.0 * table.loc["90 % intervals", "measured"], abs=1.5)


def test_classes_of_which_the_model_is_too_unsure_are_a_matter_of_the_prior():
    X = np.random.default_rng(0).standard_normal((3000, 4))
    with pytest.warns(ModelMisfitWarning, match="set prior='hierarchical_normal', or add squares"):
        SGLDLogisticRegression(random_state=0).fit(X, np.digitize(X[:, 1], [-0.5, 0.5]))


def test_two_classes_of_which_the_model_is_too_unsure_are_a_matter_of_the_prior():
    X = np.random.default_rng(0).standard_normal((400, 2))
    labels = np.square(X[:, 0]) > 1.0
    X = np.column_stack([X, np.square(X)])
    with pytest.warns(ModelMisfitWarning, match="high prob.*set prior='hierarchical_normal'"):
        SGLDLogisticRegression(random_state=0).fit(X, labels)
    SGLDLogisticRegression(prior="hierarchical_normal", random_state=0).fit(X, labels)


@pytest.mark.slow
def test_probabilities_that_a_wide_prior_makes_extreme_are_told():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((200, 20)), rng.integers(0, 5, 200)
    with pytest.warns(ModelMisfitWarning, match="too extreme.*set prior='hierarchical_normal'"):
        SGLDLogisticRegression(prior="normal", **FEW).fit(X, y)
    SGLDLogisticRegression(**FEW).fit(X, y)


def indicators(rng, n, d):
    """Rows of few patterns: of equal rows each without its label is sorted by that label."""
    return (rng.random((n, d)) < 0.4) * 1.0


def normal(rng, n, d):
    return rng.standard_normal((n, d))


@pytest.mark.parametrize("shape", [slow((120, 16)), (200, 2)], ids=str)
@pytest.mark.parametrize("make", [normal, indicators])
@pytest.mark.parametrize("n_classes", [2, 4])
def test_classes_of_the_model_are_not_told_of(n_classes, make, shape):
    for seed in range(1):
        rng = np.random.default_rng(seed)
        X = make(rng, *shape)
        eta = X @ rng.standard_normal((shape[1], n_classes)) / np.sqrt(shape[1])
        y = labels(rng, eta)
        SGLDLogisticRegression(**FEW).fit(X, y)  # a warning would be an error
        if n_classes > 2:
            u = 2.0 * eta[:, 0] + rng.logistic(size=len(X))
            y = np.digitize(u, np.quantile(u, np.arange(1, n_classes) / n_classes))
            SGLDOrdinalClassifier(**FEW).fit(X, y)


@pytest.mark.parametrize("state", [int, np.random.RandomState, np.random.default_rng])
def test_the_screen_changes_no_draw(state):
    rng = np.random.default_rng(1)
    X = columns(rng, 700)
    y = unequal(rng, X, False)
    one, other = state(3), state(3)
    screened = [SGLDLinearRegression(random_state=one).fit(X, y) for _ in range(2)]
    with mock.patch.object(of_fit, "screen_fit"):
        plain = [SGLDLinearRegression(random_state=other).fit(X, y) for _ in range(2)]
    for with_screen, without in zip(screened, plain, strict=True):
        np.testing.assert_array_equal(with_screen.posterior_.flat, without.posterior_.flat)


def test_a_warning_of_the_screen_that_is_an_error_leaves_the_last_fit():
    rng = np.random.default_rng(0)
    X = columns(rng, 600)
    model, fresh = SGLDLinearRegression(random_state=0), SGLDLinearRegression(random_state=0)
    model.fit(X, unequal(rng, X, False))
    draws, known = model.posterior_, sorted(vars(model))
    with warnings.catch_warnings():
        warnings.simplefilter("error", ModelMisfitWarning)
        for each in (model, fresh):
            with pytest.raises(ModelMisfitWarning):
                each.fit(X, unequal(rng, X, True))
    assert model.posterior_ is draws and sorted(vars(model)) == known
    assert not hasattr(fresh, "posterior_") and fresh._fitted is None


def silently(fit):
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        fit()
    return [each for each in found if each.category is ModelMisfitWarning] == []


def test_it_is_silent_where_rows_would_not_judge_the_model():
    rng = np.random.default_rng(0)
    X = columns(rng, 600)
    y = unequal(rng, X, True)
    model = SGLDLinearRegression(random_state=0)
    assert not silently(lambda: model.fit(X, y))
    assert silently(lambda: model.fit(X, y, sample_weight=np.arange(1.0, 601.0)))
    assert silently(lambda: SGLDLinearRegression(random_state=0, temperature=0.5).fit(X, y))
    assert silently(lambda: SGLDLinearRegression(random_state=0).partial_fit(X, y))
    assert silently(lambda: model.fit(RowBlocks(lambda: [(X[:300], y[:300]), (X[300:], y[300:])])))
    assert silently(lambda: model.fit(X[:9], y[:9]))
    assert silently(lambda: SGDMAPRegressor(random_state=0).fit(X, y))


def test_its_p_values_are_those_of_independent_normal_scores():
    rng = np.random.default_rng(0)

    def p_of(score):
        u = special.ndtr(score)
        shares = np.array([share_inside(u, u, level) for level in (0.5, 0.9)])
        return screen._least_p_value(score, shares)

    p = [p_of(rng.standard_normal(60)) for _ in range(4000)]
    assert 0.01 < np.mean(np.array(p) < 0.01) < 0.03  # the least of three
    assert p_of(rng.standard_normal(60) * 2.0) < 1e-6


def test_thirds_are_judged_together_as_independent_tests_are():
    """By Fisher's method, of the least of three p-values of each third."""
    expected = stats.combine_pvalues([0.03, 0.06, 0.6]).pvalue
    assert screen._together([0.01, 0.02, 0.2]) == pytest.approx(expected)


def test_fit_tells_what_thirds_show_together():
    rng = np.random.default_rng(0)
    X = columns(rng, 100)
    for p, expected in [(1e-4, False), (1e-2, True)]:
        with mock.patch.object(screen, "_least_p_value", lambda *of, p=p: p):
            model = SGLDLinearRegression(random_state=0)
            assert silently(lambda model=model: model.fit(X, unequal(rng, X, False))) is expected


@pytest.mark.parametrize("n", [10, 100, 500, 10**6])
def test_its_numbers_of_rows_and_draws_are_bounded(n):
    model = SGLDLinearRegression()._likelihood()
    rows, draws = screen.screen_size(n, model)
    assert rows == min(n, 500) and 10 <= draws <= 400 and rows * draws <= 15_000
    assert screen.screen_size(9, model) == (0, 0)


def test_one_row_far_away_is_told():
    """The shares inside and the sum of squares of 400 rows do not show it."""
    rng = np.random.default_rng(0)
    X = columns(rng, 400)
    y = unequal(rng, X, False)
    y[7] += 9.0
    score = (y - 3.0 * X[:, 0]) ** 2
    assert stats.chi2.sf(score.sum(), 400) > 1e-4
    model = SGLDLinearRegression(random_state=0)
    with pytest.warns(ModelMisfitWarning, match="tails are not normal") as found:
        model.fit(X, y)
    out = np.abs(y - model.predict(X)).max() / np.sqrt(model.noise_variance_)
    said = re.search(
        r"as a row lies (\d\.\d) sds from its prediction, .*set noise_distribution='student_t'",
        str(found[0].message),
    )
    assert float(said[1]) == pytest.approx(out, abs=0.3)  # that of the row left out is larger


def test_an_error_of_the_screen_changes_no_attribute_of_the_last_fit():
    good, skewed = (
        by_rows.X[:, 0] + by_rows.RNG.standard_normal(200),
        np.exp(2.0 * by_rows.RNG.standard_normal(200)),
    )
    model = SGLDLinearRegression(**by_rows.FEW).fit(by_rows.X, good)
    before = by_rows.state(model)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ModelMisfitWarning)
        with pytest.raises(ModelMisfitWarning):
            model.fit(by_rows.X, skewed)
    assert by_rows.state(model) == before
    with pytest.warns(ModelMisfitWarning):
        model.fit(by_rows.X, skewed)
    assert model.result_ is not before["result_"]

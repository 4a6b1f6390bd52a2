"""The table of rookies is what its description says; the generators draw from their models."""

import csv
from collections import Counter, defaultdict
from importlib.resources import files

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import chi2
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import PredefinedSplit, StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skbayes_sgld import datasets
from skbayes_sgld.datasets import load_cars, load_nba_rookies

# of X and y; the time series has tests of its own
GENERATORS = [
    getattr(datasets, name)
    for name in datasets.__all__
    if name.startswith("make_") and name != "make_stochastic_volatility"
]


@pytest.fixture(scope="module")
def rookies():
    return load_nba_rookies()


@pytest.fixture(scope="module")
def raw(rookies):
    """The packaged file without pandas: (name, statistics...) with None for missing, and label."""
    path = files(rookies.data_module) / rookies.filename
    with path.open(encoding="utf-8", newline="") as file:
        _, *rows = csv.reader(file)
    return [((row[0], *(float(v) if v else None for v in row[1:-1])), int(row[-1])) for row in rows]


@pytest.fixture(scope="module")
def labels(raw):
    """The labels under which each distinct (name, statistics) occurs."""
    seen = defaultdict(list)
    for season, label in raw:
        seen[season].append(label)
    return seen


def rows_of(bunch):
    """Loaded data in the form of ``raw``."""
    for name, values, label in zip(bunch.names, bunch.data.to_numpy(), bunch.target, strict=True):
        yield (name, *(None if np.isnan(v) else float(v) for v in values)), int(label)


def test_loader_returns_every_row_of_the_file_in_order(rookies, raw):
    assert list(rows_of(rookies)) == raw


def test_classes_copies_and_contradictions_are_as_documented(raw, labels):
    contradictory = {season: seen for season, seen in labels.items() if len(set(seen)) == 2}
    assert Counter(label for _, label in raw) == {1: 831, 0: 509}
    assert len(raw) - len(set(raw)) == 12
    assert len({name for (name, *_), _ in raw}) == 1294
    assert len(labels) == 1308
    assert len(contradictory) == 20
    assert sum(map(len, contradictory.values())) == 45
    assert len({season[0] for season in contradictory}) == 14


def test_drop_keeps_one_row_of_each_season_with_a_single_label(labels):
    expected = {s: seen[0] for s, seen in labels.items() if len(set(seen)) == 1}
    kept = load_nba_rookies(duplicates="drop")
    assert Counter(rows_of(kept)) == Counter(expected.items())
    assert kept.target.value_counts().to_dict() == {1: 804, 0: 484}
    assert list(kept.frame.index) == list(kept.names.index) == list(range(1288))


def test_missing_values_are_percentages_of_no_attempt(rookies):
    missing = rookies.data.isna().sum()
    assert missing[missing > 0].to_dict() == {"three_point_pct": 11}
    without_attempt = rookies.data.query("three_pointers_attempted == 0")["three_point_pct"]
    assert without_attempt.value_counts(dropna=False)[[np.nan, 0.0]].tolist() == [11, 327]


def test_totals_are_the_sums_of_their_parts_up_to_rounding(rookies):
    f = rookies.data
    rebounds = f["offensive_rebounds"] + f["defensive_rebounds"]
    points = 2 * f["field_goals_made"] + f["three_pointers_made"] + f["free_throws_made"]
    assert (f["rebounds"] - rebounds).abs().max() == pytest.approx(0.1)
    assert (f["points"] - points).abs().max() == pytest.approx(0.2)


def test_correlation_matrix_is_ill_conditioned_as_documented(rookies):
    correlation = np.corrcoef(rookies.data.fillna(0.0), rowvar=False)
    assert np.linalg.cond(correlation) == pytest.approx(5.6e4, rel=0.01)


def test_documented_accuracies_are_reproduced(rookies):
    model = make_pipeline(StandardScaler(), LogisticRegression(C=1.0))
    X, y = rookies.data.fillna(0.0), rookies.target
    stratified = StratifiedKFold(5, shuffle=True, random_state=0)
    assert cross_val_score(model, X, y, cv=stratified).mean() == pytest.approx(0.713, abs=0.002)
    # splits by name of our own: GroupKFold's depend on the version of scikit-learn
    names, code = np.unique(rookies.names, return_inverse=True)
    grouped = [
        cross_val_score(model, X, y, cv=PredefinedSplit(rng.permutation(len(names))[code] % 5))
        for rng in map(np.random.default_rng, range(8))
    ]
    # the sd of one shuffle is 0.004
    assert np.mean(grouped) == pytest.approx(0.708, abs=4 * 0.004 / np.sqrt(8))


def test_description_states_the_facts_and_explains_every_column(rookies):
    facts = (
        "1,340|1980s to 2016|831 rows|11 values of `three_point_pct`|0 is the consistent value"
        "|Twelve rows are exact copies|1,294 distinct names|1,308 distinct|(45 rows, 14 names"
        "|contradictory labels|Twenty groups|1,288 rows (804 / 484)|Group by name|0.713|0.708"
        "|0.620|condition number 5.6e4|no licence stated"
    )
    text = " ".join(rookies.DESCR.split())
    assert [fact for fact in facts.split("|") if fact not in text] == []
    assert [column for column in rookies.frame if f"`{column}`" not in text] == []


@pytest.mark.parametrize("duplicates", ["keep", "drop"])
def test_arrays_and_pairs_hold_the_values_of_the_frames(duplicates):
    frames = load_nba_rookies(duplicates=duplicates)
    arrays = load_nba_rookies(duplicates=duplicates, as_frame=False)
    assert frames.frame.equals(frames.data.assign(career_at_least_5_years=frames.target))
    assert arrays.feature_names == list(frames.data)
    assert arrays.frame is None
    for key in ("data", "target", "names"):
        assert isinstance(arrays[key], np.ndarray)
        np.testing.assert_array_equal(arrays[key], frames[key].to_numpy())
    for bunch, as_frame in ((frames, True), (arrays, False)):
        X, y = load_nba_rookies(duplicates=duplicates, as_frame=as_frame, return_X_y=True)
        assert type(X) is type(bunch.data)
        np.testing.assert_array_equal(X, bunch.data)
        np.testing.assert_array_equal(y, bunch.target)


def test_unknown_duplicates_is_refused_with_the_choices():
    with pytest.raises(ValueError, match="duplicates='remove'.*'keep', 'drop'"):
        load_nba_rookies(duplicates="remove")


# The generators. Every tolerance is a number of Monte Carlo standard errors.
Z = 4.0


def assert_normal(sample, mean, variance):
    """Check both moments of independent normal draws against their sampling distributions."""
    n = len(sample)
    assert abs(np.mean(sample) - mean) < Z * np.sqrt(variance / n)
    assert abs(np.var(sample) - variance) < Z * variance * np.sqrt(2 / n)


def score_statistic(X, y, coef, intercept):
    """Rao's statistic: chi-squared, one degree a parameter, where these are the true ones."""
    design = np.column_stack([np.ones(len(X)), X])
    p = expit(design @ np.concatenate([[intercept], coef]))
    score = design.T @ (y - p)
    return score @ np.linalg.solve((design.T * (p * (1 - p))) @ design, score)


@pytest.mark.parametrize("make", GENERATORS)
def test_same_seed_gives_the_same_data_and_any_other_state_fresh_data(make):
    rng = np.random.RandomState(0)
    X, y = make(50, random_state=0)
    for first, again in zip((X, y), make(50, random_state=rng), strict=True):
        np.testing.assert_array_equal(first, again)
    for state in (1, rng):
        assert not np.isin(X, make(50, random_state=state)[0]).any()


@pytest.mark.parametrize(
    ("make", "bad"),
    [
        *((make, {"n_samples": 0}) for make in GENERATORS),
        (datasets.make_correlated_pair, {"rho": 1.0}),
        (datasets.make_cubic, {"noise": -1.0}),
        (datasets.make_two_clusters, {"std": 0.0}),
        (datasets.make_logistic, {"intercept": np.inf}),
        (datasets.make_logistic, {"coef": [1.0, np.nan]}),
        (datasets.make_tied_means_mixture, {"variance": -2.0}),
        (datasets.make_tied_means_mixture, {"theta2": np.nan}),
    ],
)
def test_an_argument_out_of_range_is_named(make, bad):
    with pytest.raises(ValueError, match=f"^{next(iter(bad))}=.* must be "):
        make(**bad)


@pytest.mark.parametrize(("arguments", "rho"), [({}, 0.9), ({"rho": -0.5}, -0.5)])
def test_correlated_pair_has_the_slope_and_the_noise_of_its_model(arguments, rho):
    X, y = datasets.make_correlated_pair(random_state=0, **arguments)
    x, noise = X[:, 0], 1 - rho**2
    assert_normal(x, 0, 1)
    assert_normal(y - rho * x, 0, noise)
    assert abs(x @ y / (x @ x) - rho) < Z * np.sqrt(noise / (x @ x))
    assert len(X) == 10_000


def test_cubic_without_noise_is_the_relation_at_a_uniform_x_and_its_powers():
    X, y = datasets.make_cubic(10_000, noise=0.0, random_state=0)
    x, variance = X[:, 0], 100 / 12
    np.testing.assert_allclose(X, np.column_stack([x, x * x, x * x * x]))
    np.testing.assert_allclose(y, 0.02 * x**3 + x**2 + 0.3 * x, atol=1e-12)
    assert np.abs(x).max() <= 5
    assert abs(x.mean()) < Z * np.sqrt(variance / 10_000)
    # The fourth central moment of U(-5, 5) is 125, which sets the error of the variance.
    assert abs(x.var() - variance) < Z * np.sqrt((125 - variance**2) / 10_000)


@pytest.mark.parametrize(("arguments", "sd"), [({}, 1.0), ({"noise": 0.2}, 0.2)])
def test_cubic_noise_is_a_standard_deviation_by_default_1(arguments, sd):
    X, y = datasets.make_cubic(random_state=0, **arguments)
    assert len(X) == 250
    assert_normal(y - X @ [0.3, 1.0, 0.02], 0, sd**2)


def test_two_clusters_have_their_centres_and_the_documented_logistic_model():
    X, y = datasets.make_two_clusters(random_state=0)
    assert np.bincount(y).tolist() == [750, 750]
    for label, centre in enumerate([(-2, 2), (2, -2)]):
        for column, mean in zip(X[y == label].T, centre, strict=True):
            assert_normal(column, mean, 1.3**2)
    assert score_statistic(X, y, np.array([4, -4]) / 1.3**2, 0.0) < chi2.ppf(0.9999, 3)


@pytest.mark.parametrize(
    ("arguments", "coef", "intercept"),
    [
        ({}, [2.0, -3.4], 4.2),
        ({"coef": [2.0, -3.5], "intercept": 4.0}, [2.0, -3.5], 4.0),
        ({"coef": 0.7, "intercept": -1.0}, [0.7], -1.0),
    ],
)
def test_logistic_features_are_normal_and_labels_follow_coef(arguments, coef, intercept):
    X, y = datasets.make_logistic(random_state=0, **arguments)
    given = datasets.make_logistic(12_500, coef=coef, intercept=intercept, random_state=0)
    np.testing.assert_array_equal(y, given[1])
    for column in X.T:
        assert_normal(column, 0, 1)
    # A sum of independent features has the sum of their variances, a sum of dependent ones not.
    assert_normal(X.sum(axis=1), 0, X.shape[1])
    assert score_statistic(X, y, coef, intercept) < chi2.ppf(0.9999, len(coef) + 1)


@pytest.mark.parametrize(
    ("arguments", "means", "variance"),
    [({}, (0, 1), 2), ({"theta1": 3.0, "theta2": -4.0, "variance": 0.5}, (3, -1), 0.5)],
)
def test_mixture_components_have_the_tied_means_and_the_variance(arguments, means, variance):
    X, component = datasets.make_tied_means_mixture(random_state=0, **arguments)
    assert len(X) == 1000
    assert abs(component.mean() - 0.5) < Z * 0.5 / np.sqrt(1000)
    for label, mean in enumerate(means):
        assert_normal(X[component == label, 0], mean, variance)


def test_the_table_of_cars_is_as_described():
    cars = load_cars()
    assert cars.frame.shape == (397, 8)
    assert cars.data["origin"].value_counts().to_dict() == {"USA": 248, "Japan": 79, "Europe": 70}
    missing = cars.frame.isna().sum()
    assert missing["horsepower"] == missing.sum() == 5
    assert (cars.target.min(), cars.target.max()) == (9.0, 46.6)
    size = cars.data[["displacement", "cylinders", "weight", "horsepower"]].corr().to_numpy()
    assert (round(size.min(), 2), round(size[size < 1.0].max(), 2)) == (0.84, 0.95)
    data, target = load_cars(return_X_y=True)
    assert data.equals(cars.data)
    assert target.equals(cars.target)

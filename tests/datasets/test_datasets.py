"""The tables are what their descriptions say; the generators draw from their models."""

from collections import Counter

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import chi2, kstest, t

from skbayes_sgld import datasets
from skbayes_sgld.datasets import load_cars, load_nba_rookies


@pytest.fixture(scope="module")
def rookies():
    return load_nba_rookies()


def seasons(bunch):
    """Name and statistics of each row, None where one is missing."""
    for name, values in zip(bunch.names, bunch.data.to_numpy(), strict=True):
        yield (name, *(None if np.isnan(v) else float(v) for v in values))


def test_rookies_copies_and_contradictions_are_as_documented(rookies):
    assert Counter(rookies.target) == {1: 831, 0: 509}
    rows = list(zip(seasons(rookies), rookies.target, strict=True))
    assert len(rows) - len(set(rows)) == 12
    assert rookies.names.nunique() == 1294
    labels = {}
    for season, label in rows:
        labels.setdefault(season, []).append(label)
    both = {season: of for season, of in labels.items() if len(set(of)) == 2}
    assert len(labels) == 1308 and len(both) == 20 and sum(map(len, both.values())) == 45
    assert len({name for name, *_ in both}) == 14
    kept = load_nba_rookies(duplicates="drop")
    expected = {season: of[0] for season, of in labels.items() if season not in both}
    found = list(zip(seasons(kept), kept.target, strict=True))
    assert len(found) == 1288 and dict(found) == expected
    assert Counter(kept.target) == {1: 804, 0: 484}
    assert list(kept.frame.index) == list(kept.names.index) == list(range(1288))
    with pytest.raises(ValueError, match="duplicates='remove'.*'keep', 'drop'"):
        load_nba_rookies(duplicates="remove")


def test_the_statistics_of_rookies_are_as_documented(rookies):
    f = rookies.data
    missing = f.isna().sum()
    assert missing[missing > 0].to_dict() == {"three_point_pct": 11}
    without_attempt = f.query("three_pointers_attempted == 0")["three_point_pct"]
    assert without_attempt.value_counts(dropna=False)[[np.nan, 0.0]].tolist() == [11, 327]
    rebounds = f["offensive_rebounds"] + f["defensive_rebounds"]
    points = 2 * f["field_goals_made"] + f["three_pointers_made"] + f["free_throws_made"]
    assert (f["rebounds"] - rebounds).abs().max() == pytest.approx(0.1)
    assert (f["points"] - points).abs().max() == pytest.approx(0.2)
    correlation = np.corrcoef(f.fillna(0.0), rowvar=False)
    assert np.linalg.cond(correlation) == pytest.approx(5.6e4, rel=0.01)
    assert [column for column in rookies.frame if f"`{column}`" not in rookies.DESCR] == []


def test_arrays_and_pairs_hold_the_values_of_the_frames(rookies):
    arrays = load_nba_rookies(as_frame=False)
    expected = rookies.data.assign(career_at_least_5_years=rookies.target)
    assert rookies.frame.equals(expected)
    assert arrays.feature_names == list(rookies.data)
    assert arrays.frame is None
    for key in ("data", "target", "names"):
        assert isinstance(arrays[key], np.ndarray)
        np.testing.assert_array_equal(arrays[key], rookies[key].to_numpy())
    for bunch, as_frame in ((rookies, True), (arrays, False)):
        X, y = load_nba_rookies(as_frame=as_frame, return_X_y=True)
        assert type(X) is type(bunch.data)
        np.testing.assert_array_equal(X, bunch.data)
        np.testing.assert_array_equal(y, bunch.target)


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


def test_correlated_pair_has_the_slope_and_the_noise_of_its_model():
    X, y = datasets.make_correlated_pair(rho=-0.5, random_state=0)
    x, noise = X[:, 0], 0.75
    assert_normal(x, 0, 1)
    assert_normal(y + 0.5 * x, 0, noise)
    assert abs(x @ y / (x @ x) + 0.5) < Z * np.sqrt(noise / (x @ x))


def test_cubic_is_the_relation_at_a_uniform_x_and_its_powers():
    X, y = datasets.make_cubic(10_000, noise=0.2, random_state=0)
    x, variance = X[:, 0], 100 / 12
    np.testing.assert_allclose(X, np.column_stack([x, x * x, x * x * x]))
    assert_normal(y - (0.02 * x**3 + x**2 + 0.3 * x), 0, 0.2**2)
    assert np.abs(x).max() <= 5
    assert abs(x.mean()) < Z * np.sqrt(variance / 10_000)
    # the fourth central moment of U(-5, 5) is 125, which sets the error of the variance
    assert abs(x.var() - variance) < Z * np.sqrt((125 - variance**2) / 10_000)


def test_two_clusters_have_their_centres_and_the_documented_logistic_model():
    X, y = datasets.make_two_clusters(1500, std=1.3, random_state=0)
    assert np.bincount(y).tolist() == [750, 750]
    for label, centre in enumerate([(-2, 2), (2, -2)]):
        for column, mean in zip(X[y == label].T, centre, strict=True):
            assert_normal(column, mean, 1.3**2)
    assert score_statistic(X, y, np.array([4, -4]) / 1.3**2, 0.0) < chi2.ppf(0.9999, 3)


@pytest.mark.parametrize(("coef", "intercept"), [([2.0, -3.5], 4.0), (0.7, -1.0)])
def test_logistic_features_are_normal_and_labels_follow_coef(coef, intercept):
    X, y = datasets.make_logistic(coef=coef, intercept=intercept, random_state=0)
    coef = np.atleast_1d(coef)
    for column in X.T:
        assert_normal(column, 0, 1)
    # a sum of independent features has the sum of their variances, a sum of dependent ones not
    assert_normal(X.sum(axis=1), 0, len(coef))
    assert score_statistic(X, y, coef, intercept) < chi2.ppf(0.9999, len(coef) + 1)


def test_mixture_components_have_the_tied_means_and_the_variance():
    X, component = datasets.make_tied_means_mixture(
        theta1=3.0, theta2=-4.0, variance=0.5, random_state=0
    )
    assert abs(component.mean() - 0.5) < Z * 0.5 / np.sqrt(len(X))
    for label, mean in enumerate((3, -1)):
        assert_normal(X[component == label, 0], mean, 0.5)


def test_returns_of_stochastic_volatility_follow_the_walk():
    data = datasets.make_stochastic_volatility(20_000, sigma=0.02, nu=9.0, random_state=0)
    steps = np.diff(np.log(data.volatility))
    assert_normal(steps, 0, 0.02**2)
    assert data.volatility[0] == 0.01
    assert kstest(data.returns / data.volatility, t(9.0).cdf).pvalue > 1e-4
    with pytest.raises(ValueError, match="sigma=1000.0 and nu=.* give returns beyond the range"):
        datasets.make_stochastic_volatility(sigma=1000.0, random_state=0)

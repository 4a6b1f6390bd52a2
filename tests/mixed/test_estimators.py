"""Estimators with effects of groups: published data, labels of any kind, and errors."""

import pickle
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skbayes_sgld import SGLDLinearRegression, SGLDLogisticRegression, SGLDPoissonRegressor
from skbayes_sgld.priors import GroupPrior, Normal
from tests.marks import SHORT, short_chains

pl = pytest.importorskip("polars")
pa = pytest.importorskip("pyarrow")

DATA = Path(__file__).parent / "data"

# Means and sds of posteriors by trapezoid grids over the scales and dense covariances of y, under
# N(0, 1000^2) coefficients, half-Student-t scales, LKJ(2) and a flat prior of sigma's logarithm.
# sleepstudy: Belenky et al. (2003), Journal of Sleep Research 12; REML 24.7, 5.92, .066, 25.6.
# penicillin: Davies & Goldsmith (1972), Statistical Methods in Research and Production; REML .847,
# 1.930, .550 (Bates et al. 2015, Fitting linear mixed-effects models using lme4)
REFERENCES = {
    "sleepstudy": {
        "sd[Subject, intercept]": (27.319, 6.940),
        "sd[Subject, Days]": (6.590, 1.512),
        "correlation[Subject, intercept, Days]": (0.0624, 0.2749),
        "sigma": (25.815, 1.544),
    },
    "penicillin": {
        "sd[plate, intercept]": (0.8962, 0.1513),
        "sd[sample, intercept]": (2.4843, 1.0190),
        "sigma": (0.5537, 0.0369),
    },
}
MODELS = {
    "sleepstudy": ("Reaction", {"Subject": ["intercept", "Days"]}, 125.0),
    "penicillin": ("diameter", {"plate": "intercept", "sample": "intercept"}, 5.0),
}


@pytest.mark.parametrize("name", REFERENCES)
def test_published_repeated_measures_have_the_posterior_of_a_grid(name):
    target, terms, scale = MODELS[name]
    frame = pd.read_csv(DATA / f"{name}.csv")
    wide = Normal(scale=1000.0)
    model = SGLDLinearRegression(
        prior=wide,
        intercept_prior=wide,
        noise_prior="flat",
        group_effects=terms,
        group_prior=GroupPrior(scale=scale),
        random_state=0,
    ).fit(frame.drop(columns=target), frame[target])
    draws = dict(zip(model.posterior_.names, model.posterior_.flat.T, strict=True))
    sigma = np.sqrt(draws["noise_variance"])
    # the grid's sigma has the density 1 / sigma, and the model's a flat one
    share = 1.0 / sigma / np.sum(1.0 / sigma)
    for parameter, (mean, sd) in REFERENCES[name].items():
        values = sigma if parameter == "sigma" else draws[parameter]
        found = share @ values
        assert abs(found - mean) < 0.09 * sd, parameter  # four standard errors of 2,000 draws
        spread = np.sqrt(share @ np.square(values - found))
        assert abs(spread / sd - 1.0) < 0.09, parameter


@pytest.fixture(scope="module")
def schools():
    rng = np.random.default_rng(0)
    n = 240
    frame = pd.DataFrame({"school": rng.choice(list("abcdefgh"), n), "x": rng.normal(size=n)})
    effects = dict(zip("abcdefgh", rng.normal(0.0, 2.0, 8), strict=True))
    y = 1.0 + 0.5 * frame["x"] + frame["school"].map(effects) + rng.normal(size=n)
    model = SGLDLinearRegression(group_effects={"school": "intercept"}, random_state=0)
    return frame, y.to_numpy(), model.fit(frame, y)


@pytest.fixture(scope="module")
def few_draws(schools):
    """Model of the schools with few draws, for what is the same to the last digit."""
    frame, y, model = schools
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return frame, y, clone(model).set_params(**SHORT).fit(frame, y)


def test_a_new_label_is_drawn_from_the_population(schools):
    frame, y, model = schools
    rows = pd.DataFrame({"school": ["a", "new", "new", "other"], "x": [0.3] * 4})
    low, high = model.predict_interval(rows, coverage=0.5).T
    assert (high - low)[1] > 2.0 * (high - low)[0]
    assert (low[1], high[1]) == (low[2], high[2])  # two rows of one label share its effect
    assert low[1] != low[3]
    # the same label has the same effect in another call
    np.testing.assert_allclose(model.predict_interval(rows[2:3], 0.5)[0], [low[2], high[2]])
    sds = model.posterior_.flat[:, model.posterior_.names.index("sd[school, intercept]")]
    noise = model.posterior_.flat[:, model.posterior_.names.index("noise_variance")]
    rng = np.random.default_rng(1)
    draws = dict(zip(model.posterior_.names, model.posterior_.flat.T, strict=True))
    expected = draws["intercept"] + 0.3 * draws["coef[x]"] + sds * rng.normal(size=len(sds))
    expected = np.quantile(expected + np.sqrt(noise) * rng.normal(size=len(sds)), [0.25, 0.75])
    np.testing.assert_allclose([low[1], high[1]], expected, atol=0.35)
    # the mean of a new label is that of the population
    population = model.predict(rows, groups="population")
    assert np.ptp(population) == 0.0
    assert abs(model.predict(rows)[1] - population[1]) < 0.2
    assert model.predict(rows)[0] != population[0]


@pytest.mark.parametrize(
    "kind",
    [
        pl.from_pandas,
        pa.Table.from_pandas,
        lambda frame: frame.assign(school=frame["school"].astype("category")),
        lambda frame: frame.assign(school=frame["school"].astype(object)),
    ],
    ids=["polars", "Arrow", "categories", "objects"],
)
@short_chains
def test_labels_of_any_frame_give_one_model(few_draws, kind):
    frame, y, model = few_draws
    other = clone(model).fit(kind(frame), y)
    np.testing.assert_array_equal(other.posterior_.values, model.posterior_.values)
    np.testing.assert_array_equal(other.predict(kind(frame)), model.predict(frame))
    np.testing.assert_array_equal(model.predict(kind(frame)), model.predict(frame))


@short_chains
@pytest.mark.parametrize("kind", [SGLDLinearRegression, SGLDPoissonRegressor])
def test_the_draws_of_a_chain_do_not_depend_on_the_number_of_chains(schools, kind):
    frame, y, _ = schools
    y = y if kind is SGLDLinearRegression else np.rint(np.exp(0.3 * y))
    model = kind(group_effects={"school": "intercept"}, random_state=0, **SHORT)
    many, few = (model.set_params(n_chains=n).fit(frame, y).posterior_.values for n in (3, 1))
    np.testing.assert_array_equal(many[:1], few)


@short_chains
def test_arrays_take_labels_by_position(few_draws):
    frame, y, model = few_draws
    array = frame.to_numpy(dtype=object)
    by_position = clone(model).set_params(group_effects={0: "intercept"}).fit(array, y)
    np.testing.assert_allclose(by_position.predict(array), model.predict(frame), atol=1e-9)
    codes = np.column_stack([pd.factorize(frame["school"])[0], frame["x"]])
    np.testing.assert_allclose(
        clone(by_position).fit(codes, y).predict(codes), model.predict(frame), atol=1e-9
    )


def test_predictions_are_of_the_fit_whatever_is_set_after_it(few_draws):
    frame, _, model = few_draws
    predicted = model.predict(frame[:5])
    later = pickle.loads(pickle.dumps(model)).set_params(group_effects=None)
    np.testing.assert_array_equal(later.predict(frame[:5]), predicted)


@short_chains
def test_counts_and_labels_of_two_columns():
    rng = np.random.default_rng(2)
    n = 300
    frame = pd.DataFrame(
        {"a": rng.choice(list("pqrs"), n), "b": rng.integers(3, size=n), "x": rng.normal(size=n)}
    )
    pairs = frame["a"] + frame["b"].astype(str)
    effects = dict(zip(sorted(set(pairs)), rng.normal(0.0, 0.7, 12), strict=True))
    predictor = 0.2 + 0.3 * frame["x"] + pairs.map(effects)
    terms = {"a:b": "intercept"}
    counts = SGLDPoissonRegressor(group_effects=terms, random_state=0)
    counts.fit(frame, rng.poisson(np.exp(predictor)))
    assert counts.n_features_in_ == 3
    assert counts.coef_.shape == (1,)
    names = [name for name in counts.posterior_.names if name.startswith("effect")]
    assert len(names) == 12
    assert all(name.startswith("effect[a:b=") for name in names)
    found = counts.posterior_.flat[:, counts.posterior_.names.index("sd[a:b, intercept]")]
    assert 0.4 < found.mean() < 1.1
    labels = SGLDLogisticRegression(group_effects=terms, random_state=0, **SHORT)
    labels.fit(frame, rng.random(n) < expit(predictor))
    assert labels.predict_proba(frame).shape == (n, 2)


@short_chains
def test_searches_pipelines_and_pickles(schools):
    frame, y, model = schools
    short = clone(model).set_params(**SHORT)
    scale = ColumnTransformer([("x", StandardScaler(), ["x"])], remainder="passthrough")
    scale.set_output(transform="pandas")
    of_column = {"group_effects": {"remainder__school": "intercept"}}
    pipeline = make_pipeline(scale, clone(short).set_params(**of_column))
    scores = cross_val_score(pipeline, frame, y, cv=GroupKFold(3), groups=frame["school"])
    assert scores.shape == (3,) and np.isfinite(scores).all()
    priors = [GroupPrior(scale=s) for s in (0.1, 3.0)]
    search = GridSearchCV(short, {"group_prior": priors}, cv=2)
    scores = search.fit(frame, y).cv_results_["mean_test_score"]
    assert np.isfinite(scores).all() and scores[0] != scores[1]
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(frame), model.predict(frame))


def test_what_cannot_be_used_is_refused(schools):
    frame, y, model = schools
    for terms, message in [
        ({"class": "intercept"}, "'class'"),
        ({"school": "school"}, "labels"),
        ({"school": []}, "empty"),
        ({"school": ["intercept", "intercept"]}, "twice"),
    ]:
        with pytest.raises(ValueError, match=message):
            SGLDLinearRegression(group_effects=terms).fit(frame, y)
    with pytest.raises(TypeError, match="group_effects"):
        SGLDLinearRegression(group_effects="school").fit(frame, y)
    gap = frame.assign(school=[None, *frame["school"][1:]])
    with pytest.raises(ValueError, match="no label in column 'school' in 1 rows"):
        SGLDLinearRegression(group_effects={"school": "intercept"}).fit(gap, y)
    with pytest.raises(ValueError, match="population"):
        model.predict(gap)
    assert np.isfinite(model.predict(gap, groups="population")).all()
    with pytest.raises(ValueError, match="of type number, and the fit had .* of type str"):
        model.predict(frame.assign(school=1))
    with pytest.raises(ValueError, match="groups='all'"):
        model.predict(frame, groups="all")
    with pytest.raises(ValueError, match="one for each class"):
        SGLDLogisticRegression(group_effects={"school": "intercept"}).fit(frame, np.arange(240) % 3)
    with pytest.raises(ValueError, match="horseshoe"):
        SGLDLinearRegression(group_effects={"school": "intercept"}, prior="horseshoe").fit(frame, y)


@short_chains
def test_rows_of_another_shape_are_refused_and_mapped_ones_are_taken(tmp_path):
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=(60, 2)), rng.integers(5, size=60)])
    y = rng.normal(size=60)
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    model = SGLDLinearRegression(group_effects={2: "intercept"}, random_state=0, **SHORT).fit(X, y)
    same = clone(model).fit(mapped, y)
    np.testing.assert_array_equal(same.predict(mapped), model.predict(X))
    for rows, message in [(X[0], "1D array"), (X[None], "dim 3"), (X[:, :2], "2 features")]:
        with pytest.raises(ValueError, match=message):
            model.predict(rows)

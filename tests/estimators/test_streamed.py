"""``partial_fit``: batches, one after the other, are the posterior of all rows."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

from skbayes_sgld import SGLDLinearRegression, SGLDLogisticRegression, SGLDPoissonRegressor
from skbayes_sgld.priors import Flat, Normal
from skbayes_sgld.rows import stream as streams
from tests.marks import slow

RNG = np.random.default_rng(5)
N, D = 2500, 3
X = RNG.normal(size=(N, D)) * [1.0, 20.0, 0.1] + [0.0, 60.0, 0.0]
ETA = (X - [0.0, 60.0, 0.0]) @ [0.8, 0.05, -5.0]
TARGETS = {
    "linear": ETA + 40.0 + RNG.normal(size=N),
    "binary": (RNG.random(N) < 1.0 / (1.0 + np.exp(-ETA))).astype(int),
    "three classes": np.digitize(ETA + RNG.logistic(size=N), [-1.0, 1.0]),
    "poisson": RNG.poisson(np.exp(0.5 * ETA)),
}
MODELS = {
    "linear": SGLDLinearRegression(random_state=0),
    "binary": SGLDLogisticRegression(random_state=0),
    "three classes": SGLDLogisticRegression(random_state=0),
    "poisson": SGLDPoissonRegressor(random_state=0),
}
CLASSIFIERS = ("binary", "three classes")


def stream(name, n_batches=5, X=X, **params):
    """A model after batches of all rows."""
    model, y = clone(MODELS[name]).set_params(**params), TARGETS[name]
    for k in range(n_batches):
        more = {"classes": np.unique(y)} if name in CLASSIFIERS and k == 0 else {}
        model.partial_fit(X[k::n_batches], y[k::n_batches], **more)
    return model


def assert_near(model, whole, mean, sd):
    """Means of two fits within so many sds, and sds within this part; 0.06 sds are chance."""
    ours, theirs = model.posterior_.flat, whole.posterior_.flat
    far = np.abs(ours.mean(axis=0) - theirs.mean(axis=0)) / theirs.std(axis=0)
    assert far.max() < mean
    np.testing.assert_allclose(ours.std(axis=0), theirs.std(axis=0), rtol=sd)


@pytest.fixture(scope="module")
def wholes():
    """One fit of all rows for each model."""
    return {
        name: clone(model).set_params(random_state=9).fit(X, TARGETS[name])
        for name, model in MODELS.items()
    }


@pytest.mark.parametrize(
    ("name", "kept"),
    [("linear", False), ("binary", True), ("three classes", False), ("poisson", False)],
)
def test_batches_have_the_posterior_of_one_fit_and_nearly_so_once_rows_are_forgotten(
    name, kept, wholes, monkeypatch
):
    if not kept:
        monkeypatch.setattr(streams, "_KEPT", 0)
    model = stream(name)
    assert (model._fitted.stream.rows is None) == (not kept)
    assert_near(model, wholes[name], *((0.08, 0.06) if kept else (0.14, 0.09)))


@pytest.mark.parametrize(("name", "kept"), [("linear", False), ("binary", True), ("binary", False)])
def test_forgetting_multiplies_the_weights_of_earlier_rows(name, kept, monkeypatch):
    if not kept:
        monkeypatch.setattr(streams, "_KEPT", 0)
    y = TARGETS[name]
    model = clone(MODELS[name]).set_params(forgetting=0.5, prior=Normal(1.0))
    for k in range(3):
        model.partial_fit(X[k::3], y[k::3], **({"classes": [0, 1]} if name == "binary" else {}))
    weight = np.repeat([0.25, 0.5, 1.0], [len(y[k::3]) for k in range(3)])
    rows = np.concatenate([np.arange(N)[k::3] for k in range(3)])
    whole = clone(model).set_params(random_state=2).fit(X[rows], y[rows], weight)
    assert_near(model, whole, *((0.08, 0.06) if kept or name == "linear" else (0.14, 0.07)))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # of so few
def test_a_flat_prior_is_proper_beside_the_density_of_earlier_rows(monkeypatch):
    monkeypatch.setattr(streams, "_KEPT", 0)
    y = TARGETS["binary"]
    model = clone(MODELS["binary"]).set_params(prior="flat", n_draws=100)
    before = model.partial_fit(X, y, classes=[0, 1]).coef_
    after = model.partial_fit(X[:2], y[:2]).coef_
    np.testing.assert_allclose(after, before, rtol=0.2)


def test_few_rows_are_kept_and_many_are_not(monkeypatch):
    y, kept = TARGETS["binary"], []
    monkeypatch.setattr(streams, "_KEPT", 500 * (D + 2))
    model = clone(MODELS["binary"]).set_params(n_draws=300)
    for k in range(4):
        model.partial_fit(X[200 * k : 200 * (k + 1)], y[200 * k : 200 * (k + 1)], classes=[0, 1])
        kept.append(0 if model._fitted.stream.rows is None else len(model._fitted.stream.rows.y))
    assert kept == [200, 400, 0, 200]


SHORT = {"n_draws": 50, "n_chains": 2, "n_burnin": 20}
# 50 draws of two chains are too few, and fit says so
shortly = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@shortly
# weights of next to nothing leave the posterior as it is
@pytest.mark.filterwarnings("ignore:sample_weight sums to")
def test_every_batch_draws_new_random_numbers():
    model, y, drawn = stream("binary", n_batches=1, **SHORT), TARGETS["binary"], []
    for _ in range(2):  # rows of no weight leave the posterior as it is
        model.partial_fit(X[:9], y[:9], sample_weight=np.full(9, 1e-15))
        drawn.append(model.posterior_.values[:, 10:])
    for a, b in zip(*(values.transpose(2, 0, 1) for values in drawn), strict=True):
        assert abs(np.corrcoef(a.ravel(), b.ravel())[0, 1]) < 0.5


@shortly
@pytest.mark.parametrize("name", ["linear", "binary"])
def test_sparse_batches_and_pickles_between_batches_go_on_alike(name):
    model, y = clone(MODELS[name]).set_params(**SHORT), TARGETS[name]
    for k in range(2):
        more = {"classes": np.unique(y)} if name in CLASSIFIERS else {}
        model = pickle.loads(pickle.dumps(model))
        model.partial_fit(sparse.csr_array(X[k::8]), y[k::8], **more)
    dense = clone(MODELS[name]).set_params(**SHORT)
    for k in range(2):
        dense.partial_fit(X[k::8], y[k::8], **more)
    np.testing.assert_allclose(model.coef_, dense.coef_, rtol=1e-3, atol=1e-4)


@shortly
def test_fit_after_batches_starts_anew_and_batches_after_a_fit_too_with_a_warning():
    y = TARGETS["linear"]
    model = stream("linear", 2, **SHORT)
    np.testing.assert_array_equal(
        model.fit(X[:50, :2], y[:50]).coef_, clone(model).fit(X[:50, :2], y[:50]).coef_
    )
    with pytest.warns(UserWarning, match="the rows that fit had do not count"):
        again = model.partial_fit(X, y)
    np.testing.assert_array_equal(again.coef_, stream("linear", 1, **SHORT).coef_)
    assert again.n_features_in_ == D


@shortly
def test_errors_name_what_is_wrong_and_leave_the_model_as_it_was():
    y = TARGETS["binary"]
    model = clone(MODELS["binary"]).set_params(**SHORT)
    with pytest.raises(ValueError, match="classes must be passed on the first call"):
        model.partial_fit(X, y)
    model.partial_fit(X, y, classes=[0, 1])
    before = model.coef_.copy()
    with pytest.raises(ValueError, match="label 2, which is not among the classes"):
        model.partial_fit(X, np.full(N, 2))
    with pytest.raises(ValueError, match="2 features"):
        model.partial_fit(X[:, :2], y)
    with pytest.raises(ValueError, match="not the same as on last call"):
        model.partial_fit(X, y, classes=[0, 1, 2])
    with pytest.raises(ValueError, match=r"forgetting=1\.5.*\(0, 1\]"):
        clone(model).set_params(forgetting=1.5).fit(X, y)
    with pytest.raises(ValueError, match="class_weight='balanced' depends on rows"):
        clone(model).set_params(class_weight="balanced").partial_fit(X, y, classes=[0, 1])
    np.testing.assert_array_equal(model.coef_, before)
    assert model.partial_fit(X[:5], np.ones(5, int)).coef_.shape == (1, D)  # one class may come


@pytest.mark.parametrize(
    ("name", "kept"), [("binary", 2**20), slow("three classes", 100), ("poisson", 100)]
)
def test_sorted_rows_end_at_the_posterior_of_one_fit(name, kept, wholes, monkeypatch):
    monkeypatch.setattr(streams, "_KEPT", kept)
    y = TARGETS[name]
    order, model = np.argsort(y, kind="stable"), clone(MODELS[name])
    first, last = order[: np.count_nonzero(y == 0)], order[np.count_nonzero(y == 0) :]
    for rows in (first[::2], first[1::2], last):
        more = {"classes": np.unique(y)} if name in CLASSIFIERS else {}
        model.partial_fit(X[rows], y[rows], **more)
        waits = rows is not last
        assert isinstance(model.intercept_prior_, Normal if waits else Flat)
        if waits:  # rows of one class are no normal density
            assert model._fitted.stream.rows is not None
        if waits and name in CLASSIFIERS:
            assert np.all(model.predict(X) == 0)
    assert (model._fitted.stream.rows is None) == (kept == 100)
    assert_near(model, wholes[name], 0.1, 0.07)  # the scales are of other rows


@shortly
def test_the_first_batch_may_lack_one_of_three_classes():
    model, y = clone(MODELS["three classes"]).set_params(**SHORT), TARGETS["three classes"]
    two = y < 2
    model.partial_fit(X[two], y[two], classes=[0, 1, 2])
    assert isinstance(model.intercept_prior_, Normal)
    assert model.predict_proba(X)[:, 2].max() < 0.2
    model = clone(model).set_params(intercept_prior=Normal(scale=5.0))
    model.partial_fit(X[two], y[two], [0, 1, 2])
    assert model.intercept_prior_.scale == 5.0
    assert model.partial_fit(X, y).predict_proba(X[:3]).shape == (3, 3)


def test_a_batch_of_several_outputs_is_refused_and_a_fit_of_them_ends_a_stream():
    model = stream("linear", 1, n_draws=200)
    both = np.column_stack([TARGETS["linear"], TARGETS["poisson"]])[:200]
    with pytest.raises(ValueError, match=r"y has shape \(200, 2\); partial_fit takes one output"):
        model.partial_fit(X[:200], both)
    model.fit(X[:200], both)
    with pytest.warns(UserWarning, match="the rows that fit had do not count"):
        model.partial_fit(X[:200], TARGETS["linear"][:200])
    alone = clone(model).partial_fit(X[:200], TARGETS["linear"][:200])
    np.testing.assert_array_equal(model.coef_, alone.coef_)

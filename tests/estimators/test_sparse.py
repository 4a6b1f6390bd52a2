"""Sparse rows: estimators draw from the posterior that the same rows have as an array."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler
from sklearn.utils import get_tags

from skbayes_sgld import (
    SGLDLinearRegression,
    SGLDLogisticRegression,
    SGLDPoissonRegressor,
    predict_proba_interval,
)
from skbayes_sgld.posterior import ConstantNoise, LogLinearNoise
from tests.annexes import later, made
from tests.numeric import sparse_normals

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # short

N, D = 120, 5
RNG = np.random.default_rng(3)
X = sparse_normals(RNG, (N, D))
X = sparse.csr_array(X + sparse.csr_array(5.0 * (np.arange(D) == D - 1) * np.ones((N, 1))))
DENSE = X.toarray()
ETA = DENSE @ RNG.normal(size=D)
ETA -= ETA.mean()
BINARY = (RNG.random(N) < 1.0 / (1.0 + np.exp(-ETA))).astype(int)
SHORT = {"n_draws": 100, "n_chains": 2, "random_state": 0}
FITS = {
    "linear": (SGLDLinearRegression(**SHORT), ETA + RNG.normal(size=N)),
    "binary": (SGLDLogisticRegression(**SHORT), BINARY),
    "flat": (SGLDLogisticRegression(prior="flat", **SHORT), BINARY),
    "three classes": (SGLDLogisticRegression(**SHORT), np.digitize(ETA, [-0.7, 0.7])),
    "poisson": (SGLDPoissonRegressor(**SHORT), RNG.poisson(np.exp(0.3 * ETA))),
    "map": (later("SGDMAPRegressor", random_state=0), ETA + RNG.normal(size=N)),
}
METHODS = (
    "predict_proba",
    "predict_log_proba",
    "decision_function",
    "predict",
    "predict_interval",
    "predict_proba_interval",
    "predict_quantiles",
    "predict_proba_quantiles",
    "sample_y",
)
every_fit = pytest.mark.parametrize("name", FITS)


@cache
def pair(name):
    """A model fitted to sparse and to dense rows."""
    model, y = FITS[name]
    return tuple(clone(made(model)).fit(A, y) for A in (X, DENSE))


@every_fit
def test_draws_have_the_moments_of_a_dense_fit(name):
    ours, theirs = (fit.posterior_.flat for fit in pair(name))
    sd = theirs.std(axis=0)
    # the same random numbers: what differs is rounding, and where it turns, a proposal's fate
    np.testing.assert_array_less(np.abs(ours.mean(axis=0) - theirs.mean(axis=0)), 0.1 * sd)
    np.testing.assert_allclose(ours.std(axis=0), sd, rtol=0.1)


@every_fit
def test_predictions_equal_those_for_the_same_rows_as_an_array(name):
    fit, y = pair(name)[0], FITS[name][1]
    for method in METHODS:
        if hasattr(fit, method):
            of = getattr(fit, method)
            np.testing.assert_allclose(of(X), of(DENSE), rtol=2e-4, atol=2e-5, err_msg=method)
    np.testing.assert_allclose(fit.log_likelihood(X, y), fit.log_likelihood(DENSE, y), rtol=1e-6)
    assert fit.score(X, y) == pytest.approx(fit.score(DENSE, y))


@pytest.mark.parametrize("kind", ["csc_matrix", "dok_array"])
def test_other_formats_are_converted(kind):
    model, y = FITS["linear"]
    fit = clone(model).fit(getattr(sparse, kind)(X), y)
    np.testing.assert_array_equal(fit.coef_, pair("linear")[0].coef_)


@every_fit
def test_rows_are_never_made_dense(name, monkeypatch):
    def refuse(self, *args, **kwargs):
        # blocks of the linear programme of flat priors are small
        assert self.shape != X.shape or name == "flat", "sparse rows were made dense"
        return toarray(self, *args, **kwargs)

    toarray = sparse.csr_array.toarray
    for kind in (sparse.csr_array, sparse.csc_array, sparse.csr_matrix, sparse.csc_matrix):
        monkeypatch.setattr(kind, "toarray", refuse)
    model, y = made(FITS[name][0]), FITS[name][1]
    sampled = {"n_draws": 5, "n_burnin": 5} if "n_draws" in model.get_params() else {}
    clone(model).set_params(**sampled).fit(X, y).predict(X)


@pytest.mark.parametrize("gradient", ["minibatch", "control_variate", "saga"])
def test_minibatches_of_sparse_rows_are_those_of_dense_rows(gradient):
    model, y = FITS["three classes"]
    few = {"n_draws": 20, "n_burnin": 5, "thin": 1}
    model = clone(model).set_params(gradient=gradient, batch_size=10, step_size=0.1, **few)
    ours, theirs = (clone(model).fit(A, y).posterior_.values for A in (X, DENSE))
    np.testing.assert_allclose(ours, theirs, rtol=1e-6, atol=1e-8)


def test_sparse_rows_go_through_pipelines_and_back_to_intervals():
    model, y = FITS["binary"]
    fit = make_pipeline(MaxAbsScaler(), clone(model)).fit(X, y)
    ends = [predict_proba_interval(fit, A, coverage=0.9) for A in (X, DENSE)]
    np.testing.assert_allclose(*ends, rtol=1e-4)


def test_networks_refuse_sparse_rows_and_their_tags_say_so():
    from skbayes_sgld import SGLDMLPClassifier

    assert not get_tags(SGLDMLPClassifier()).input_tags.sparse
    with pytest.raises(TypeError, match=r"Sparse data was passed for X.*toarray"):
        SGLDMLPClassifier().fit(X, BINARY)


def test_log_linear_noise_refuses_sparse_rows_and_its_tags_say_so():
    y = FITS["linear"][1]
    for noise in ("log_linear", LogLinearNoise(columns=[0])):
        model = SGLDLinearRegression(noise_model=noise, **SHORT)
        assert not get_tags(model).input_tags.sparse
        with pytest.raises(TypeError, match=r"X is sparse.*toarray.*noise_model='constant'"):
            model.fit(X, y)
    for noise in ("constant", ConstantNoise()):
        assert get_tags(SGLDLinearRegression(noise_model=noise)).input_tags.sparse

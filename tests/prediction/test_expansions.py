"""Partial dependence by an expansion about the mean draw, beside all rows under all draws."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.compose import TransformedTargetRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import SplineTransformer

from skbayes_sgld import (
    SGLDGammaRegressor,
    SGLDLinearRegression,
    SGLDLogisticRegression,
    SGLDOrdinalClassifier,
    SGLDPoissonRegressor,
)
from skbayes_sgld.prediction.effects import dependence
from skbayes_sgld.prediction.predictors import LinearPredictor
from skbayes_sgld.prediction.response import Response

# the runs are short
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

N = 1500
DRAWS = {"n_draws": 500, "n_chains": 2, "random_state": 0}
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 3)) * [1.0, 2.0, 0.5]
ETA = X @ [0.5, -0.3, 0.6]
LABELS = np.array(["a", "b", "c", "d"])[RNG.integers(0, 4, N)]


def rows_of(model, rows, by_row=None, n_rows=200):
    return Response.of("test", model, rows, by_row or {}, n_rows, 0)


def errors(model, rows, by_row=None, j=0):
    """Largest errors of means and ends of intervals, in sds, at one value to three of a column."""
    found, known = [], []
    part, whole = (rows_of(model, rows, by_row, n_rows) for n_rows in (200, None))
    for level in (0.5, 0.1, 0.9):
        value = np.quantile(rows[:, j], level)
        expanded = part.at_number(j, value)._expanded()
        if expanded is None and level != 0.5:  # means are perhaps skewed there
            continue
        assert expanded is not None
        assert_array_equal(part.at_number(j, value).expanded_mean(), expanded)
        found.append(expanded)
        known.append(whole.at_number(j, value).mean().reshape(expanded.shape))
    found, known = np.array(found), np.array(known)
    ends = [np.quantile(each, [0.05, 0.95], axis=1) for each in (found, known)]
    sd = known.std(axis=1)
    of_means = np.abs(found.mean(axis=1) - known.mean(axis=1)) / sd
    return max(of_means.max(), np.abs((ends[0] - ends[1]) / sd).max())


def counts():
    exposure = RNG.uniform(0.5, 2.0, N)
    model = SGLDPoissonRegressor(**DRAWS)
    y = RNG.poisson(exposure * np.exp(ETA))
    return model.fit(X, y, exposure=exposure), X, {"exposure": exposure}


def binary():
    return SGLDLogisticRegression(**DRAWS).fit(X, ETA + RNG.logistic(size=N) > 1.0), X, {}


def classes():
    each = np.column_stack([ETA, X[:, 0], 0.0 * ETA])
    y = (each + RNG.gumbel(size=each.shape)).argmax(axis=1)
    return SGLDLogisticRegression(**DRAWS).fit(X, y), X, {}


def ordered():
    y = np.digitize(ETA + RNG.logistic(size=N), [-1.0, 0.0, 1.0])
    return SGLDOrdinalClassifier(**DRAWS).fit(X, y), X, {}


def log_of_target():
    model = SGLDLinearRegression(noise_model="log_linear", **DRAWS)
    of_log = TransformedTargetRegressor(model, func=np.log, inverse_func=np.exp)
    return of_log.fit(X, np.exp(ETA + RNG.normal(size=N))), X, {}


def large_numbers():
    return SGLDLinearRegression(**DRAWS).fit(X, 2e5 + 1e5 * (ETA + RNG.normal(size=N))), X, {}


def outputs():
    y = np.column_stack([ETA, -ETA]) + RNG.normal(size=(N, 2))
    return SGLDLinearRegression(**DRAWS).fit(X, y), X, {}


def splines():
    steps = make_pipeline(SplineTransformer(), SGLDPoissonRegressor(**DRAWS))
    return steps.fit(X, RNG.poisson(np.exp(np.sin(X[:, 0]) + ETA))), X, {}


def groups():
    rows = np.column_stack([X, RNG.integers(0, 20, N)])
    model = SGLDLinearRegression(group_effects={3: ["intercept", 0]}, **DRAWS)
    y = ETA + 0.5 * RNG.normal(size=20)[rows[:, 3].astype(int)] + RNG.normal(size=N)
    model.fit(rows, y)
    return model, rows, {}


CASES = (
    *(counts, binary, classes, ordered, log_of_target),
    *(large_numbers, outputs, splines, groups),
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_an_expansion_gives_the_mean_over_all_rows_under_all_draws(case):
    assert errors(*case()) < 0.04  # at most 0.012 over 10 seeds, and 0.026 of splines


def test_dependence_takes_the_expansion():
    model, rows, by_row = counts()
    grid, found = dependence(model, rows, 0, "average", 3, None, 200, 0, None, by_row)[1:]
    assert_array_equal(found[1], rows_of(model, rows, by_row).at_number(0, grid[1])._expanded())


def test_skewed_means_are_not_expanded():
    model, rows, _ = splines()
    at = rows_of(model, rows).at_number(0, rows[:, 0].min())  # few rows are so far out
    assert at._expanded() is None
    assert_array_equal(at.expanded_mean(), at.mean())


def test_means_whose_ends_are_wrong_are_not_expanded():
    """Few rows far out have most of the mean, which sixteen draws do not show."""
    rng = np.random.default_rng(2)
    rows = rng.normal(size=(800, 3))
    rows[:3] *= 20
    y = rng.gamma(2, np.exp(np.clip(rows @ [0.5, -0.3, 0.6], -4, 4)))
    response = rows_of(SGLDGammaRegressor(**DRAWS).fit(rows, y), rows)
    for j in range(3):
        for value in (rows[:, j].min(), rows[:, j].max()):
            at = response.at_number(j, value)
            if (expanded := at._expanded()) is not None:
                known = replace(at, n_rows=None).mean().reshape(expanded.shape)
                ends = np.quantile(np.hstack([expanded, known]), [0.005, 0.995], axis=0)
                assert np.abs(np.diff(ends, axis=1)).max() < 0.1 * known.std()


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_sums_over_rows_are_those_of_their_predictors(kind):
    rows = X[:50] if kind == "dense" else sparse.csr_array(X[:50])
    predictor = LinearPredictor(RNG.normal(size=(7, 3, 3)) + 4.0, RNG.normal(size=(7, 3)))
    for one in (predictor, predictor.contrasts()):
        eta, share = one(rows), np.full(7, 1.0 / 7.0)
        K = len(eta)
        weight = RNG.normal(size=(50, 2))
        sums = np.einsum("kns,nm->kms", eta, weight)
        assert_allclose(one.sums(rows, weight), sums, rtol=1e-10)
        middle = one.at_mean(share)
        away = eta - middle(rows)
        pairs = {(a, b): RNG.normal(size=(2, 50)) for a in range(K) for b in range(a, K)}
        known = sum(
            (1.0 if a == b else 2.0) * np.einsum("ln,ns->ls", w, away[a] * away[b])
            for (a, b), w in pairs.items()
        )
        found = one.squares(rows, pairs, middle)
        assert_allclose(found, known, atol=1e-5 * np.abs(known).max())

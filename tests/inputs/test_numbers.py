"""Numbers: single and double precision, and units that are far apart."""

import warnings

import numpy as np
import pytest
from sklearn.base import clone

from skbayes_sgld import (
    SGLDLinearRegression,
    SGLDLogisticRegression,
    SGLDPoissonRegressor,
)
from tests.inputs.cases import closed_form
from tests.marks import SHORT

# the runs are too short for usable draws, and fit says so
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

RNG = np.random.default_rng(7)
X = (RNG.standard_normal((60, 3)) * [1.0, 5.0, 0.2]).astype(np.float32)
ETA = X @ [1.0, 0.2, -2.0]
TARGETS = {
    "linear": (SGLDLinearRegression, ETA + RNG.standard_normal(60)),
    "binary": (SGLDLogisticRegression, ETA + RNG.logistic(size=60) > 0),
    "three classes": (SGLDLogisticRegression, np.digitize(ETA + RNG.logistic(size=60), [-1, 1])),
    "counts": (SGLDPoissonRegressor, RNG.poisson(np.exp(0.5 * ETA))),
}


@pytest.mark.parametrize("kind", TARGETS)
@pytest.mark.parametrize("prior", ["normal", "laplace"])
def test_the_same_numbers_in_single_precision_have_the_same_posterior(kind, prior):
    cls, y = TARGETS[kind]
    model = cls(prior=prior, n_draws=100, random_state=0)
    single, double = clone(model).fit(X, y), clone(model).fit(X.astype(float), y)
    a, b = single.posterior_.flat, double.posterior_.flat
    sd = b.std(axis=0)
    assert np.all(np.abs(a.mean(axis=0) - b.mean(axis=0)) < 1e-3 * sd)
    np.testing.assert_allclose(a.std(axis=0), sd, rtol=1e-3)


UNITS = [
    ([1e-12, 1e12, 1.0], 1.0, 0.0, 0.0),
    ([1e12, 1e-12, 1e6], 1e12, 0.0, 0.0),
    ([1.0, 1e-12, 1e3], 1e-12, 0.0, 0.0),
    ([1.0, 1.0, 1.0], 1.0, 1e8, 0.0),
    ([1.0, 1.0, 1.0], 1.0, 0.0, 1e8),
    ([1e-6, 1.0, 1e6], 1e6, 1e8, 1e8),
]


@pytest.mark.parametrize(("of_x", "of_y", "offset", "level"), UNITS)
@pytest.mark.parametrize("weight", [None, RNG.uniform(0.5, 2.0, 60)], ids=["", "weights"])
def test_far_apart_units_have_the_posterior_of_the_closed_form(of_x, of_y, offset, level, weight):
    rows = (X.astype(float) + offset) * np.array(of_x)
    y = (TARGETS["linear"][1] + level) * of_y
    model = SGLDLinearRegression(prior="conjugate_normal", n_draws=500, random_state=0)
    model.fit(rows, y, weight)
    mean, sd = closed_form(model, rows, y, weight)
    table = model.summary()
    error = table["mcse_mean"].to_numpy()[:3]
    assert np.all(np.abs(table["mean"].to_numpy()[:3] - mean) < 4.5 * error)
    np.testing.assert_allclose(table["sd"].to_numpy()[:3], sd, rtol=0.12)


@pytest.mark.parametrize(
    "labels, n_rows, said",
    [
        (np.arange, 84, True),
        (np.arange, 105, False),
        (lambda n: np.arange(n).astype(str), 84, False),
    ],
    ids=["four rows a number", "five rows a number", "four rows a name"],
)
def test_numbers_that_hardly_repeat_are_said_to_be_no_labels(labels, n_rows, said):
    y = np.resize(labels(21), n_rows)
    X = np.random.default_rng(0).standard_normal((n_rows, 1))
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        SGLDLogisticRegression(**SHORT, random_state=0).fit(X, y)
    about_numbers = [str(w.message) for w in found if "different numbers" in str(w.message)]
    assert len(about_numbers) == said
    if said:
        assert "y has 21 different numbers in 84 rows" in about_numbers[0]
        assert "use SGLDLinearRegression" in about_numbers[0]

"""Saved models: no data in them, the same predictions in a fresh process, and what skops trusts."""

import importlib
import io
import pickle
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import skbayes_sgld
from skbayes_sgld import (
    SGLDLinearRegression,
    SGLDLogisticRegression,
    SGLDPoissonRegressor,
)
from tests.annexes import later

# 25 draws a chain are too few, and fit says so
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

ROOT = Path(__file__).parents[2]
RNG = np.random.default_rng(0)
X = RNG.standard_normal((2000, 3))
Y = X @ [1.0, -2.0, 0.5] + RNG.standard_normal(2000)
SHORT = {"n_draws": 25, "random_state": 0}
NETWORK = {"hidden_layer_sizes": (2,), "random_state": 0}
FEW = {"n_draws": 5, "n_burnin": 10, "thin": 1}
MODELS = {
    "linear": lambda: SGLDLinearRegression(**SHORT),
    "horseshoe": lambda: SGLDLinearRegression(prior="horseshoe", **SHORT),
    "priors of columns": lambda: SGLDLinearRegression(prior={0: "laplace"}, **SHORT),
    "noise by row": lambda: SGLDLinearRegression(noise_model="log_linear", **SHORT),
    "minibatches": lambda: SGLDLogisticRegression(gradient="minibatch", batch_size=50, **SHORT),
    "logistic": lambda: SGLDLogisticRegression(**SHORT),
    "counts": lambda: SGLDPoissonRegressor(**SHORT),
    "map": later("SGDMAPRegressor", random_state=0),
    "map classifier": later("SGDMAPClassifier", random_state=0),
    "network": later("SGLDMLPRegressor", **NETWORK, **FEW),
    "backprop": later("BayesByBackpropClassifier", max_iter=5, batch_size=1, **NETWORK),
    "stream": lambda: SGLDLogisticRegression(**SHORT),
    "linear stream": lambda: SGLDLinearRegression(**SHORT),
}


def fit(name, n):
    model, y = MODELS[name](), Y[:n]
    if "Poisson" in type(model).__name__:
        y = np.rint(np.abs(y))
    if "Class" in type(model).__name__ or "Logistic" in type(model).__name__:
        y = (y > 0).astype(int)
    if "stream" in name:
        more = {"classes": [0, 1]} if "Logistic" in type(model).__name__ else {}
        return model.partial_fit(X[: n // 2], y[: n // 2], **more).partial_fit(
            X[n // 2 : n], y[n // 2 :]
        )
    return model.fit(X[:n], y)


@cache
def fitted(name):
    return fit(name, 200)


class Arrays(pickle.Pickler):
    """Pickler that notes the shapes of the arrays."""

    def __init__(self):
        super().__init__(io.BytesIO())
        self.shapes = []

    def reducer_override(self, value):
        if isinstance(value, np.ndarray):
            self.shapes.append(value.shape)
        return NotImplemented


@pytest.mark.parametrize(
    ("prior", "n_rows", "n_matrices"),
    # the curvature at the mode, by its root; under a learned scale the mode is not kept
    [("normal", 200, 1), ("hierarchical_normal", 200, 0), ("auto", 20, 0)],
)
def test_a_pickle_holds_no_matrix_of_the_columns_but_a_root(prior, n_rows, n_matrices):
    wide = np.random.default_rng(3).standard_normal((n_rows, 40))
    model = SGLDLogisticRegression(prior=prior, n_draws=10, n_chains=2, random_state=0)
    model.fit(wide, wide[:, 0] > 0)
    pickler = Arrays()
    pickler.dump(model)
    # from 20 rows on there are as many coordinates
    large = [shape for shape in pickler.shapes if len(shape) == 2 and min(shape) >= 20]
    assert len(large) == n_matrices
    if n_matrices:
        mode, known = pickle.loads(pickle.dumps(model)).result_.mode, model.result_.mode
        np.testing.assert_array_equal(mode.metric.marginal_sd, known.metric.marginal_sd)
        unit = np.eye(wide.shape[1] + 1)
        np.testing.assert_allclose(mode.metric.whiten(unit), known.metric.whiten(unit), atol=1e-9)


# the next batch is fitted together with the rows that the stream of a classifier keeps
@pytest.mark.parametrize("name", sorted(MODELS.keys() - {"stream"}))
def test_a_pickle_holds_no_data(name):
    small = pickle.dumps(fitted(name))
    # no number of the data is in it
    for value in [*X[:200].ravel(), *Y[:200]]:
        assert np.float64(value).tobytes() not in small
    if name in ("linear", "logistic", "counts", "map", "linear stream"):
        # and it does not grow with the rows, of which there are 57,600 bytes more
        large = pickle.dumps(fit(name, 2000))
        assert len(large) < 1.02 * len(small) + 2000


FRESH = """
import pickle, sys
import numpy as np
models, rows, expected = pickle.load(open(sys.argv[1], "rb"))
for name, model in models.items():
    found = model.predict(rows), model.sample_y(rows, 3), model.summary()
    assert all(map(np.array_equal, found, expected[name])), name
print(len(models))
"""


def test_a_fresh_process_predicts_the_same(tmp_path):
    models = {name: fitted(name) for name in MODELS}
    expected = {
        name: (model.predict(X[:50]), model.sample_y(X[:50], 3), model.summary())
        for name, model in models.items()
    }
    path = tmp_path / "models.pickle"
    path.write_bytes(pickle.dumps((models, X[:50], expected)))
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", FRESH, str(path)],
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=600,
    )
    assert done.stdout.strip() == str(len(models)), done.stderr


def documented():
    """Types that the page on saved models names."""
    page = (ROOT / "docs" / "guide" / "persistence.md").read_text(encoding="utf-8")
    names = re.search(r'TRUSTED = """(.*?)"""', page, re.DOTALL).group(1)
    return {f"skbayes_sgld.{name}" for name in names.replace("...", "").split()}


def test_skops_needs_the_documented_types_and_no_others():
    skops_io = pytest.importorskip("skops.io")
    needed, trusted = set(), documented()
    for name, model in ((name, fitted(name)) for name in MODELS):
        saved = skops_io.dumps(model)
        types = set(skops_io.get_untrusted_types(data=saved))
        assert types <= trusted, (name, types - trusted)
        again = skops_io.loads(saved, trusted=sorted(types))
        np.testing.assert_array_equal(again.predict(X[:50]), model.predict(X[:50]))
        np.testing.assert_array_equal(again.posterior_.values, model.posterior_.values)
        needed |= types
    # those of fits that are not made here are estimators, and components of their samplers
    others = {path.rpartition(".")[2] for path in trusted - needed}
    assert others <= {*skbayes_sgld.__all__, *skbayes_sgld.sampling.__all__}


def test_every_documented_type_has_a_public_path():
    for path in documented():
        module, _, name = path.rpartition(".")
        assert not any(part.startswith("_") for part in path.split(".")), path
        assert isinstance(getattr(importlib.import_module(module), name), type)

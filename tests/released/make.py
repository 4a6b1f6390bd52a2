"""Pickles and a checkpoint of the installed version, for later versions to load or to refuse.

Run it in an environment in which the release is installed, with the oldest libraries that it
admits, whose pickles newer ones read: ``python -m tests.released.make``. The files go into the
folder of the version, with the predictions that they make in ``expected.json``.
"""

from __future__ import annotations

import json
import pickle
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

import skbayes_sgld
from skbayes_sgld.inference.checkpoint import read

FOLDER = Path(__file__).parent
STEP = np.arange(24.0)
X = np.column_stack([np.sin(STEP), np.cos(0.7 * STEP)])
TARGET = X @ [1.0, -0.5] + 0.3 * np.sin(13.0 * STEP)
LABELS = np.array(["no", "yes"])[(TARGET > 0).astype(int)]
NEW = np.array([[0.2, -0.4], [1.5, 0.3]])
SHORT = {"n_draws": 20, "n_chains": 2, "n_burnin": 50, "thin": 2, "random_state": 0}


def fits() -> dict[str, object]:
    """A small fit of every family of estimators, by name."""
    counts = np.round(np.exp(TARGET)).astype(int)
    network = {"hidden_layer_sizes": (3,), "random_state": 0, "n_draws": 20}
    one = {"fit_intercept": False, "random_state": 0}  # its file has 4,000 draws
    return {
        "linear": skbayes_sgld.SGLDLinearRegression(**SHORT).fit(X, TARGET),
        "logistic": skbayes_sgld.SGLDLogisticRegression(**SHORT).fit(X, LABELS),
        "poisson": skbayes_sgld.SGLDPoissonRegressor(**SHORT).fit(X, counts),
        "map": skbayes_sgld.SGDMAPClassifier(**one, max_iter=5).fit(X[:, :1], LABELS),
        "mlp": skbayes_sgld.SGLDMLPRegressor(**network, n_chains=2).fit(X, TARGET),
        "backprop": skbayes_sgld.BayesByBackpropClassifier(**network).fit(X, LABELS),
    }


def predictions(model: Any) -> list[float]:
    """What a model says of two new rows: its means, or its probabilities of the second class."""
    new = NEW[:, : model.n_features_in_]
    if hasattr(model, "predict_proba"):
        return model.predict_proba(new)[:, 1].tolist()
    return model.predict(new).tolist()


def resumable(**more: object) -> skbayes_sgld.SGLDLinearRegression:
    """The model whose run is in the checkpoint."""
    return skbayes_sgld.SGLDLinearRegression(**SHORT | {"sampler": "sgld", "step_size": 0.5} | more)


def main() -> None:
    """Write the files of the installed version."""
    import warnings

    warnings.simplefilter("ignore")  # so few draws are not to be relied on
    place = FOLDER / version("skbayes-sgld")
    place.mkdir(exist_ok=True)
    expected = {}
    for name, model in fits().items():
        (place / f"{name}.pkl").write_bytes(pickle.dumps(model, protocol=5))
        expected[name] = predictions(model)
    path = place / "run.npz"
    path.unlink(missing_ok=True)
    resumable(checkpoint=path).fit(X, TARGET)
    expected["run"] = read(path).chains.draws.mean(axis=(0, 1)).tolist()
    (place / "expected.json").write_text(json.dumps(expected, indent=1) + "\n")


if __name__ == "__main__":
    main()

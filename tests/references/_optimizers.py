"""How near each optimizer comes to the mode: ``python -m tests.references._optimizers``.

Distances are those of the worst coordinate, in its posterior sds; the mode is by scikit-learn
(``LogisticRegression``) or in closed form.
"""

from __future__ import annotations

import time
import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import SGDClassifier

from skbayes_sgld import SGDMAPClassifier
from skbayes_sgld.sampling import OPTIMIZERS, Polynomial
from tests.references.modes import TASKS, TWELVE, distance, newton_mode, task

RULES = {
    **{name: {"optimizer": name} for name in OPTIMIZERS},
    "sgd, average=5": {"average": 5},
}
SCHEDULES = {
    "polynomial": "polynomial",
    "constant": "constant",
    "Polynomial(30, 1)": Polynomial(offset=30, power=1),
    "harmonic": "harmonic",
}
CURVED = {"preconditioner": "curvature"}


def climb(model, data, **settings):
    """How far from the mode a fit ended, whether it warned, its passes and seconds."""
    X, y = task(model, data)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        began = time.process_time()
        fit = model(random_state=0, **settings).fit(X, y)
        seconds = time.process_time() - began
    told = any(issubclass(w.category, ConvergenceWarning) for w in caught)
    return distance(fit, *newton_mode(model, data)), told, fit, seconds


def table(head, rows):
    for cells in (head, ["---"] * len(head), *rows):
        print("| " + " | ".join(cells) + " |")
    print(flush=True)


def name_of(model, data):
    return f"{data}, {model.__name__.removeprefix('SGDMAP').lower()}"


def twelve():
    """Print the default fit of each of the twelve problems."""
    rows = []
    for model, data in TWELVE:
        X, _ = task(model, data)
        away, told, fit, seconds = climb(model, data)
        said = f"{fit.distance_:.3f}" if told else "-"
        curved, also, other, _ = climb(model, data, **CURVED)
        beside = f"{curved:.3f} ({other.n_iter_:,}){' *' * also}"
        shape = f"{X.shape[0]:,} x {X.shape[1]}"
        cells = [name_of(model, data), shape, f"{away:.3f}", said, f"{fit.n_iter_:,}"]
        rows.append([*cells, f"{seconds:.2f}", beside])
    head = ["problem", "rows x columns", "distance", "warned", "passes", "seconds", "curvature"]
    table(head, rows)


def every_rule(tasks, **settings):
    """Print each rule's distances and passes; a star where it warned."""
    rows = []
    for rule, own in RULES.items():
        found = [climb(*t, **settings, **own) for t in tasks]
        cells = [f"{away:.3f} ({fit.n_iter_:,}){' *' * told}" for away, told, fit, _ in found]
        rows.append([rule, *cells])
    table(["optimizer", *(name_of(*t) for t in tasks)], rows)


def by_schedule():
    rows = []
    for rule, own in RULES.items():
        if rule == "newton":
            continue
        worst = [
            max(climb(*t, schedule=schedule, **own, **CURVED)[0] for t in TASKS)
            for schedule in SCHEDULES.values()
        ]
        rows.append([rule, *(f"{away:.2g}" for away in worst)])
    table(["optimizer", *SCHEDULES], rows)


def averages():
    rough = {"schedule": "constant", "step_size": 0.05, "batch_size": 32, "tol": 0.0, **CURVED}
    rows = []
    for label, average in (("last iterate", False), ("average=25", 25)):
        found = [climb(*t, average=average, max_iter=100, **rough)[0] for t in TASKS]
        rows.append([label, *(f"{away:.2f}" for away in found)])
    table(["", *(name_of(*t) for t in TASKS)], rows)


def beside_scikit_learn(n_rounds=5):
    """Print the seconds of fits of 200,000 x 30, in turns with scikit-learn's ``SGDClassifier``."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200_000, 30))
    y = rng.random(200_000) < 1.0 / (1.0 + np.exp(-X @ rng.standard_normal(30) / 5.0))
    rows = []
    for label, data in (("normal columns", (X, y)), ("make_classification", task(*TWELVE[-1]))):
        ours, theirs = [], []
        for seed in range(n_rounds):
            for times, model in (
                (ours, SGDMAPClassifier(random_state=seed)),
                (theirs, SGDClassifier(loss="log_loss", random_state=seed)),
            ):
                began = time.process_time()
                model.fit(*data)
                times.append(time.process_time() - began)
        a, b = np.median(ours), np.median(theirs)
        rows.append([label, f"{a:.2f}", f"{b:.2f}", f"{a / b:.2f}"])
    table(["200,000 x 30", "SGDMAPClassifier", "SGDClassifier", "ratio"], rows)


def main():
    print("Twelve problems, default settings (* warned):\n")
    twelve()
    print("Every rule, default settings, distance (passes), * warned:\n")
    every_rule(TASKS)
    print("Every rule, preconditioner='curvature':\n")
    every_rule(TASKS, **CURVED)
    print("The largest of the six distances, by schedule, preconditioner='curvature':\n")
    by_schedule()
    print("Distance after 100 passes of steps of 0.05 with batches of 32:\n")
    averages()
    print("Processor seconds, medians of five fits in turns:\n")
    beside_scikit_learn()


if __name__ == "__main__":
    main()

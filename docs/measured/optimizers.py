"""Distance of each optimizer from the mode, for ``docs/optimizers.md``; about four minutes.

Distances are those of the worst coordinate, in its posterior sds; the mode is by scikit-learn
(``LogisticRegression``) or in closed form. A fit is the same each time on one machine; rounding on
another may move a distance by a few parts in a thousand.
"""

from __future__ import annotations

import time
import warnings

import numpy as np
from _figure import parse, show_rows
from _numbers import measured
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import SGDClassifier

from skbayes_sgld import SGDMAPClassifier
from skbayes_sgld.optimizers import OPTIMIZERS
from skbayes_sgld.sampling import Polynomial
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


HASTE = {"nba, classifier", "diabetes, classifier", "lecture, regressor", "iris, classifier"}


def climb(model, data, **settings):
    """Distance from the mode at which a fit ended, whether it warned, its passes and seconds."""
    X, y = task(model, data)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        began = time.process_time()
        fit = model(random_state=0, **settings).fit(X, y)
        seconds = time.process_time() - began
    told = any(issubclass(w.category, ConvergenceWarning) for w in caught)
    return distance(fit, *newton_mode(model, data)), told, fit, seconds


def name_of(model, data):
    return f"{data}, {model.__name__.removeprefix('SGDMAP').lower()}"


def distance_cell(away, told, fit, seconds):
    """Distance with its passes in brackets, and a star where the fit warned."""
    return measured(away, 0.005 * away, f".3f ({fit.n_iter_:,}){' *' * told}")


def twelve(quick):
    """The default fit of each of the twelve problems."""
    rows = {}
    for model, data in TWELVE:
        name = name_of(model, data)
        if quick and name not in HASTE:
            continue
        X, _ = task(model, data)
        away, told, fit, seconds = climb(model, data)
        rows[name] = {
            "problem": name,
            "rows x columns": f"{X.shape[0]:,} x {X.shape[1]}",
            "distance": measured(away, 0.005 * away, ".3f"),
            "warned": measured(fit.distance_, 0.005 * away, ".3f") if told else "-",
            "passes": measured(fit.n_iter_, show=",.0f"),
            "seconds": measured(seconds, None),
        }
        if not quick:
            rows[name]["curvature"] = distance_cell(*climb(model, data, **CURVED))
    show_rows(rows)
    arrived = [row for row in rows.values() if row["warned"] == "-"]
    summary = {"arrived": measured(len(arrived), show=".0f"), "of": measured(len(rows), show=".0f")}
    return {"default": rows} if quick else {"default": rows} | summary


def every_rule(tasks, **settings):
    """Each rule's distances and passes."""
    rows = {}
    for rule, own in RULES.items():
        rows[rule] = {"optimizer": rule}
        rows[rule] |= {name_of(*t): distance_cell(*climb(*t, **settings, **own)) for t in tasks}
    show_rows(rows)
    return rows


def by_schedule():
    """The largest of the six distances by rule and schedule."""
    rows = {}
    for rule, own in RULES.items():
        if rule == "newton":
            continue
        rows[rule] = {"optimizer": rule}
        for name, schedule in SCHEDULES.items():
            away = max(climb(*t, schedule=schedule, **own, **CURVED)[0] for t in TASKS)
            rows[rule][name] = measured(away, 0.005 * away, ".2g")
    show_rows(rows)
    return rows


def averages():
    """Distances of the last iterate and of an average under a constant step size."""
    rough = {"schedule": "constant", "step_size": 0.05, "batch_size": 32, "tol": 0.0, **CURVED}
    rows = {}
    for label, average in (("last iterate", False), ("average=25", 25)):
        rows[label] = {"": label}
        for t in TASKS:
            away = climb(*t, average=average, max_iter=100, **rough)[0]
            rows[label][name_of(*t)] = measured(away, 0.005 * away)
    show_rows(rows)
    return rows


def beside_scikit_learn(n_rounds=5):
    """Seconds of fits of 200,000 x 30, in turns with scikit-learn's ``SGDClassifier``."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200_000, 30))
    y = rng.random(200_000) < 1.0 / (1.0 + np.exp(-X @ rng.standard_normal(30) / 5.0))
    rows = {}
    for label, data in (("normal columns", (X, y)), ("make_classification", task(*TWELVE[-1]))):
        times = {"SGDMAPClassifier": [], "SGDClassifier": []}
        for seed in range(n_rounds):
            for model in (
                SGDMAPClassifier(random_state=seed),
                SGDClassifier(loss="log_loss", random_state=seed),
            ):
                began = time.process_time()
                model.fit(*data)
                times[type(model).__name__].append(time.process_time() - began)
        median = {name: float(np.median(seconds)) for name, seconds in times.items()}
        rows[label] = {"200,000 x 30": label}
        rows[label] |= {name: measured(seconds, None) for name, seconds in median.items()}
        ratio = median["SGDMAPClassifier"] / median["SGDClassifier"]
        rows[label]["ratio"] = measured(ratio, None)
    show_rows(rows)
    return rows


def main(arguments=None):
    options = parse(__doc__, arguments)
    found = twelve(options.quick)
    if options.quick:
        return found
    return found | {
        "rules": every_rule(TASKS),
        "rules, curvature": every_rule(TASKS, **CURVED),
        "schedules": by_schedule(),
        "averages": averages(),
        "seconds": beside_scikit_learn(),
    }


if __name__ == "__main__":
    main()

"""How near each optimiser comes to Newton's mode: ``python -m tests.references._optimizers``.

Distances are root mean squares over the parameters, in posterior sds; the mode is by scikit-learn
(``LogisticRegression``) or in closed form.
"""

from __future__ import annotations

import warnings

from sklearn.exceptions import ConvergenceWarning

from skbayes_sgld.sampling import OPTIMIZERS, Polynomial
from tests.references.modes import TASKS, distance, newton_mode, task

RULES = {
    **{name: {"optimizer": name} for name in OPTIMIZERS},
    "sgd, no replacement": {"replacement": False},
}
SCHEDULES = {
    "polynomial": "polynomial",
    "constant": "constant",
    "Polynomial(30, 1)": Polynomial(offset=30, power=1),
    "harmonic": "harmonic",
}


def climb(model, data, **settings):
    """Return the distance from the mode at which a fit stopped, and its steps."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        fit = model(random_state=0, **settings).fit(*task(model, data))
    return distance(fit, *newton_mode(model, data)), fit.n_iter_


def table(head, rows):
    for cells in (head, ["---"] * len(head), *rows):
        print("| " + " | ".join(cells) + " |")
    print(flush=True)


def main():
    names = [f"{data}, {model.__name__.removeprefix('SGDMAP').lower()}" for model, data in TASKS]
    rows = []
    for rule, settings in RULES.items():
        found = [climb(*t, **settings) for t in TASKS]
        rows.append([rule, *(f"{away:.3f} ({steps:,})" for away, steps in found)])
    print("Distance (steps), default settings:\n")
    table(["optimizer", *names], rows)
    rows = []
    for rule, settings in RULES.items():
        worst = [
            max(climb(*t, schedule=schedule, **settings)[0] for t in TASKS)
            for schedule in SCHEDULES.values()
        ]
        rows.append([rule, *(f"{away:.2g}" for away in worst)])
    print("The largest of the six distances, by schedule:\n")
    table(["optimizer", *SCHEDULES], rows)
    rows, rough = [], {"schedule": "constant", "step_size": 0.05, "batch_size": 32, "tol": 0.0}
    for label, average in (("last iterate", False), ("average=1000", 1000)):
        found = [climb(*t, average=average, max_iter=4000, **rough)[0] for t in TASKS]
        rows.append([label, *(f"{away:.2f}" for away in found)])
    print("Distance after 4,000 steps of 0.05 with batches of 32:\n")
    table(["", *names], rows)


if __name__ == "__main__":
    main()

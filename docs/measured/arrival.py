"""How near optimizers come to the mode, and how right their own figure is, for optimizers.md."""

from __future__ import annotations

import warnings
from itertools import product

import numpy as np
from _figure import parse, say
from _numbers import measured
from sklearn.exceptions import ConvergenceWarning

from skbayes_sgld import SGDMAPClassifier, SGDMAPRegressor
from tests.references.modes import TASKS, distance, mode_of, newton_mode, task

FINE = {"schedule": "constant", "preconditioner": "curvature", "tol": 1e-6}
NOISE = (1e-6, 1e-4, 1e-2, 0.1, 1.0)  # sds; that of the linear predictor is about 2
SHAPES = ((40, 3), (100, 8), (300, 10), (1000, 20), (2000, 2))
RULES = ("gd", "sgd", "momentum", "svrg")
PASSES = (1, 3, 10)


def make_linear(noise, shape, seed):
    """Rows of a linear model."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal(shape)
    slopes = rng.standard_normal(shape[1])
    slopes *= 2.0 / np.linalg.norm(slopes)
    return X, X @ slopes + noise * rng.standard_normal(len(X))


def fit(model, X, y, **settings):
    """A fit that may stop too early."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the error is measured
        return model(random_state=0, **settings).fit(X, y)


def finest(rule):
    """Largest distance from the mode over the six tasks, with ``tol=1e-6``."""
    return max(
        distance(fit(m, *task(m, d), optimizer=rule, **FINE), *newton_mode(m, d)) for m, d in TASKS
    )


def off(estimate, mode):
    """Relative error of the distance that a fit has found itself."""
    return abs(estimate.distance_ / distance(estimate, *mode) - 1.0)


def main(arguments=None):
    options = parse(__doc__, arguments)
    shapes, seeds = (SHAPES[:2], range(1)) if options.quick else (SHAPES, range(5))
    sets = [make_linear(*each) for each in product(NOISE, shapes, seeds)]
    modes = [mode_of(SGDMAPRegressor, *each) for each in sets]
    arrived, regressor = {}, 0.0
    for rule in RULES:
        fits = [fit(SGDMAPRegressor, *each, optimizer=rule) for each in sets]
        away = [distance(each, *mode) for each, mode in zip(fits, modes, strict=True)]
        arrived[rule] = sum(each < 0.1 * 1.005 for each in away)  # by the default tol
        if rule in ("gd", "sgd"):
            for (data, mode), n_passes in product(zip(sets, modes, strict=True), PASSES):
                early = fit(SGDMAPRegressor, *data, optimizer=rule, max_iter=n_passes)
                regressor = max(regressor, off(early, mode))
    labels = [(m, d) for m, d in TASKS if m is SGDMAPClassifier]
    classifier = max(
        off(fit(m, *task(m, d), optimizer=rule, max_iter=n_passes), newton_mode(m, d))
        for rule, n_passes, (m, d) in product(("gd", "sgd"), PASSES, labels)
    )
    say(
        f"Of {len(sets)} sets arrive {arrived}. The fit's own distance after 1, 3 and 10 passes is "
        f"off by at most {regressor:.2%} (regressor) and {classifier:.1%} (classifier)."
    )
    if options.quick:
        return {"reported": {"classifier": measured(classifier, 0.002, ".0f %")}}
    return {
        "finest": {rule: measured(finest(rule), None, ".1e") for rule in ("gd", "svrg")},
        "sets": measured(len(sets), show=".0f"),
        "arrived": {rule: measured(n, show=".0f") for rule, n in arrived.items()},
        "reported": {
            "regressor": measured(regressor, None, ".0e"),
            "classifier": measured(classifier, 0.002, ".0f %"),
        },
    }


if __name__ == "__main__":
    main()

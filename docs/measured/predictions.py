"""Processor time, on one core, of predictions of each family, for ``docs/benchmarks.md``.

It takes half a minute.
Intervals of numbers and counts come with the error of their levels beside the mixture over all
draws, labels with the probabilities of their classes.
"""

from __future__ import annotations

import time
import warnings

import numpy as np
from _figure import parse, show_rows
from _numbers import measured

import skbayes_sgld
from benchmarks._data import FAMILIES, of_family
from benchmarks._machine import one_core

_BOUND = 50.0  # goal, in microseconds a row
_EXACT = 100  # rows: so few are summed over all draws
_LEVELS = np.array([0.05, 0.95])


def processor_time(n, function, *arguments, **named):
    """Least processor time of three calls, in microseconds a row, and the last one's result."""
    taken = []
    for _ in range(3):
        start = time.process_time()
        found = function(*arguments, **named)
        taken.append(time.process_time() - start)
    return 1e6 * min(taken) / n, found


def level_error(model, X, ends, given):
    """Largest difference of a level from the probability of at most the interval's end."""
    some = {name: value[:_EXACT] for name, value in given.items()}
    at_most = model.predict_cdf(X[:_EXACT], ends[:_EXACT], **some)
    if np.any(ends != np.rint(ends)):
        return np.abs(at_most - _LEVELS).max()
    below = model.predict_cdf(X[:_EXACT], ends[:_EXACT] - 1.0, **some)
    return np.maximum(np.maximum(_LEVELS - at_most, below - _LEVELS), 0.0).max()


def rows(n, d):
    """A line of the table for each family."""
    for name, (model, settings) in FAMILIES.items():
        X, y, given = of_family(name, n, d)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # predictions are timed, whatever the fit says
            fitted = getattr(skbayes_sgld, model)(random_state=0, **settings).fit(X, y, **given)
        labels = "classes" in name
        method = "predict_proba" if labels else "predict_interval"
        taken, found = processor_time(n, getattr(fitted, method), X, **given)
        cells = {"family": name, "method": method, "us a row": measured(taken, None, ".0f")}
        at_label = processor_time(n, fitted.predict, X, **given)[0]
        cells["of predict"] = measured(at_label, None, ".1f")
        density = processor_time(n, fitted.log_predictive_density, X, y, **given)[0]
        cells["of the log density"] = measured(density, None, ".0f")
        error = "–"
        if not labels:
            error = measured(level_error(fitted, X, found, given), None, ".0e")
        cells["error of a level"] = error
        yield name, cells | {"times the bound": measured(taken / _BOUND, None, ".1f")}


def bare(n, d):
    """Microseconds a row of one float32 product with 4,000 draws and one exp."""
    X, draws = (np.ones(shape, np.float32) for shape in ((n, d), (d, 4000)))

    def product():
        for start in range(0, n, 128):
            block = X[start : start + 128] @ draws
            np.exp(block, out=block)

    return processor_time(n, product)[0]


def main(arguments=None):
    options = parse(__doc__, arguments)
    n, d = (1_000, 5) if options.quick else (5_000, 20)
    with one_core():
        found = dict(rows(n, d))
        taken = bare(n, d)
    show_rows(found)
    return {"families": found, "bare": measured(taken, None, ".1f")}


if __name__ == "__main__":
    main()

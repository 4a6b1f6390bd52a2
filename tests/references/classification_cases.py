"""The cases of logistic and softmax regression."""

from __future__ import annotations

from functools import partial

import numpy as np

from . import data
from .cases import Case
from .references import Prior

logistic = partial(partial, data.logistic)
classes = partial(partial, data.classes)
UNITS = np.geomspace(1e-6, 1e6, 7)


def case(name, source, **options):
    return Case(name, "logistic", source, **options)


CASES = [
    # two classes: real data
    case("nba-rookies", data.rookies),
    case("breast-cancer-sd-1", data.breast_cancer),
    case("breast-cancer-sd-2.5", data.breast_cancer, prior=Prior("normal", 2.5)),
    case("breast-cancer-sd-10", data.breast_cancer, prior=Prior("normal", 10.0)),
    case("spector", data.spector, method="importance"),
    case("affairs-flat", data.affairs, prior=Prior("flat")),
    case("star98-counts", data.star98),
    case("digits-3-8", partial(data.digits, 3, 8)),
    # two classes: size
    case("logistic-ten-rows", logistic(10, 2, signal=2.0), method="importance"),
    case("logistic-wide", logistic(40, 100)),
    case("logistic-300-columns", logistic(1000, 300), draws=500),
    case(
        "logistic-100000-rows",
        logistic(100_000, 10, "correlated"),
        method="importance",
        draws=12_000,
    ),
    case("logistic-1000000-rows", logistic(1_000_000, 8, "binary")),
    # conditioning, units, outlying rows
    case("logistic-condition-1e8", logistic(1000, 8, "collinear", signal=3.0)),
    case("logistic-copies", logistic(300, 6, "copies")),
    case("logistic-all-units", logistic(300, 7, "units", unit=1 / UNITS)),
    case(
        "logistic-all-units-prior-too",
        logistic(300, 7, "units", unit=1 / UNITS),
        prior=Prior("normal", 2.0 / UNITS),
    ),
    case("logistic-leverage", logistic(300, 4, "leverage", signal=0.1)),
    case("logistic-heavy-columns", logistic(500, 6, "heavy", signal=0.5)),
    # scales in the units of the data
    case("spector-units", data.spector, prior=Prior("normal", "auto"), method="importance"),
    case(
        "logistic-all-units-units",
        logistic(300, 7, "units", unit=1 / UNITS),
        prior=Prior("normal", "auto"),
        method="importance",
    ),
    # priors
    # (under a Cauchy prior the posterior of separable classes has no mean: Ghosh, Li & Mitra 2018)
    case(
        "separable-student-t",
        logistic(40, 3, signal=20.0),
        prior=Prior("student_t", 2.5, df=7.0),
        draws=2000,
    ),
    case("spector-cauchy", data.spector, prior=Prior("cauchy", [2.5, 0.5, 2.5]), draws=2000),
    case("logistic-laplace", data.rookies, prior=Prior("laplace", 0.1)),
    case(
        "logistic-student-t",
        logistic(60, 4),
        prior=Prior("student_t", [0.5, 1.0, 2.0, 0.5], [0.0, 0.0, 0.0, 1.0], df=4.0),
        draws=1000,
    ),
    # weights, temperature, precision
    case("one-in-a-hundred", logistic(3000, 5, intercept=-5.3)),
    case("one-in-a-hundred-balanced", logistic(3000, 5, intercept=-5.3), class_weight="balanced"),
    case("logistic-weights", lambda: data.weighted(data.logistic(150, 4), "fractional")),
    case("logistic-cold", logistic(100, 4), temperature=0.1),
    case("logistic-hot", logistic(300, 4), temperature=10.0, draws=1000),
    case(
        "logistic-float32",
        lambda: data.single(data.logistic(20_000, 10)),
        method="importance",
        draws=15_000,
    ),
    case("logistic-no-intercept", logistic(200, 4), fit_intercept=False),
    # more classes
    case("iris", data.iris),
    case("wine", data.wine),
    case("ten-classes", classes(1000, 5, 10)),
    case("digits-0-to-4", partial(data.digits, *range(5)), draws=400),
    case("three-classes-flat", classes(300, 2, 3), prior=Prior("flat")),
    case("three-classes-one-rare", classes(2000, 3, 3, rare=5.5)),
    case("four-classes-laplace", classes(300, 5, 4, signal=0.5), prior=Prior("laplace", 0.3)),
]

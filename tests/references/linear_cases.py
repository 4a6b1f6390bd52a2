"""The cases of linear regression."""

from __future__ import annotations

from functools import partial

import numpy as np

from skbayes_sgld.datasets import make_correlated_pair

from . import data
from .cases import Case
from .references import Noise, Prior

linear = partial(partial, data.linear)
UNITS = np.geomspace(1e-6, 1e6, 7)


def _heavy():
    return data.linear(300, 8, "heavy")


def case(name, source, **options):
    return Case(name, "linear", source, **options)


CASES = [
    # size
    case("lecture", partial(make_correlated_pair, random_state=0)),
    case("eight-rows", linear(8, 1)),
    case("sixteen-rows", linear(16, 3)),
    case("wide", linear(30, 60)),
    case(
        "wide-normal-prior", linear(50, 200), prior=Prior("normal", 0.5), noise=Noise("half_normal")
    ),
    case("300-columns", linear(1000, 300, "correlated")),
    case("1000-columns", linear(3000, 1000)),
    case("100000-rows", linear(100_000, 50, "correlated")),
    case("1000000-rows", linear(1_000_000, 5)),
    # conditioning, units, outlying rows
    case("condition-1e8", linear(500, 10, "collinear")),
    case("condition-1e8-normal-prior", linear(500, 10, "collinear"), prior=Prior("normal", 1.0)),
    case("copied-columns", linear(200, 6, "copies")),
    case("columns-of-all-units", linear(200, 7, "units")),
    case(
        "columns-of-all-units-prior-too",
        linear(200, 7, "units", unit=1 / UNITS),
        prior=Prior("normal", 2.0 / UNITS),
    ),
    case(
        "all-units-y-1e6",
        linear(200, 7, "units", unit=1 / UNITS, y_unit=1e6),
        prior=Prior("conjugate_normal", 3.0 / UNITS),
    ),
    case("uncentred-y-1e-6", linear(150, 4, "offset", y_unit=1e-6)),
    case("leverage", linear(200, 5, "leverage")),
    case("heavy-tailed-columns", _heavy),
    # scales in the units of the data
    case("diabetes-units", data.diabetes, prior=Prior("conjugate_normal", "auto")),
    case("diabetes-units-normal", data.diabetes, prior=Prior("normal", "auto")),
    case("ccard-units-normal", data.ccard, prior=Prior("normal", "auto")),
    case(
        "all-units-y-1e6-units",
        linear(200, 7, "units", unit=1 / UNITS, y_unit=1e6),
        prior=Prior("conjugate_normal", "auto"),
    ),
    # priors
    case("diabetes", data.diabetes),
    case("diabetes-flat", data.diabetes, prior=Prior("flat"), noise=Noise("flat")),
    case(
        "diabetes-half-cauchy",
        partial(data.diabetes, True),
        prior=Prior("normal", 5.0, 10.0),
        noise=Noise("half_cauchy"),
    ),
    case(
        "few-rows-half-t",
        linear(12, 4),
        prior=Prior("normal", [0.5, 1.0, 2.0, 4.0], [1.0, 0.0, -1.0, 0.0]),
        noise=Noise("half_student_t", df=4.0),
    ),
    case("ccard-exponential", data.ccard, prior=Prior("normal", 100.0), noise=Noise("exponential")),
    case(
        "stackloss-half-normal", data.stackloss, prior=Prior("normal"), noise=Noise("half_normal")
    ),
    case("longley", data.longley),
    case("longley-flat", data.longley, prior=Prior("flat"), noise=Noise("flat")),
    case("engel", data.engel),
    case(
        "prior-against-data",
        linear(20, 3, noise=0.3),
        prior=Prior("normal", 0.1, 3.0),
        noise=Noise("inverse_gamma", 1.0, 3.0),
    ),
    case(
        "diabetes-laplace",
        partial(data.diabetes, True),
        prior=Prior("laplace", 5.0),
    ),
    case("diabetes-cauchy", partial(data.diabetes, True), prior=Prior("cauchy", 2.5)),
    case("wide-laplace", linear(40, 60), prior=Prior("laplace", 0.3), draws=8000),
    case(
        "student-t-vectors",
        linear(25, 4),
        prior=Prior("student_t", [0.3, 1.0, 3.0, 0.3], [0.0, 0.0, 0.0, 1.0], df=3.0),
        noise=Noise("flat"),
    ),
    case("laplace-fixed-noise", linear(60, 5), prior=Prior("laplace", 0.2), variance=1.0),
    # noise known, temperature, weights, precision
    case("fixed-noise", partial(data.diabetes, True), variance=3000.0),
    case("fixed-noise-hot", linear(100, 5), variance=2.0, prior=Prior("normal"), temperature=10.0),
    case("cold", linear(60, 3), temperature=0.1),
    case("warm", linear(60, 3), temperature=2.0),
    case("hot-normal-prior", linear(400, 4), prior=Prior("normal"), temperature=5.0),
    case("integer-weights", lambda: data.weighted(data.linear(100, 4), "integer")),
    case("fractional-weights", lambda: data.weighted(data.linear(100, 4), "fractional")),
    case("float32", lambda: data.single(data.linear(2000, 10, "offset"))),
    case("no-intercept", data.diabetes, fit_intercept=False),
]

"""Estimators of a few draws, and good data for them."""

from dataclasses import replace

import numpy as np
from sklearn.base import is_classifier

import skbayes_sgld
from skbayes_sgld.rows.targets import Totals

N, D = 20, 2
RNG = np.random.default_rng(0)
X = RNG.standard_normal((N, D))
Y = X @ [1.0, -2.0] + 0.5 + RNG.standard_normal(N)
LABELS = (Y + RNG.standard_normal(N) > 0).astype(float)
COUNTS = RNG.poisson(np.exp(0.3 * X[:, 0] + 0.5)).astype(float)
WEIGHT = RNG.uniform(0.5, 2.0, N)

FEW = {
    "SGDMAP": {"max_iter": 10},
    "SGLDMLP": {"hidden_layer_sizes": (2,), "n_draws": 10, "n_burnin": 10, "thin": 1},
    "BayesByBackprop": {"hidden_layer_sizes": (2,), "max_iter": 10, "n_draws": 20},
    "SGLD": {"n_draws": 20, "n_chains": 2},
}


class Of100Trials(Totals):
    """Totals of 100 trials where none are given."""

    def with_arguments(self, arguments):
        return super().with_arguments(("n_trials",))

    def check_by_row(self, X, by_row):
        return super().check_by_row(X, by_row if by_row.get("n_trials") is not None else TRIALS)

    def encode(self, rows):
        target, encoded = super().encode(rows)
        given = np.any(rows.values.others["trials"] != 100)
        return replace(target, arguments=("n_trials",) if given else ()), encoded  # as methods are


class SGLDBetaBinomialRegressor(skbayes_sgld.SGLDBetaBinomialRegressor):
    """Totals of 100 trials where none are given: the other families are given X and y alone."""

    def _target(self, rows):
        return Of100Trials(likelihood=self._likelihood())


TRIALS = {"n_trials": 100}
OF_TRIALS = {"SGLDBetaBinomialRegressor": SGLDBetaBinomialRegressor}
NAMES = [
    name
    for name in skbayes_sgld.__all__
    if name.endswith(("Regressor", "Regression", "Classifier"))
]


def estimator(name):
    """The class of this name, of totals where it needs them."""
    return OF_TRIALS.get(name, getattr(skbayes_sgld, name))


def make(cls, **params):
    """An estimator of a few draws."""
    few = next(values for start, values in FEW.items() if cls.__name__.startswith(start))
    return cls(**{"random_state": 0, **few, **params})


def is_positive(cls):
    """Whether y must not be negative: counts are what all such families take."""
    return cls().__sklearn_tags__().target_tags.positive_only


def of_support(cls, numbers):
    """Numbers, or counts where the family takes no others; 1 and more for a Gamma model."""
    counts = np.rint(np.minimum(np.abs(numbers), 50.0))
    return counts + (cls is skbayes_sgld.SGLDGammaRegressor) if is_positive(cls) else numbers


def target(cls):
    """Good y."""
    if is_classifier(cls()):
        return LABELS
    return of_support(cls, COUNTS if is_positive(cls) else Y)

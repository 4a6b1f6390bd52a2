"""The cases: what is fitted with default settings, and how its reference is found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from skbayes_sgld import SGLDLinearRegression, SGLDLogisticRegression
from skbayes_sgld.priors import NOISE_PRIORS, PRIORS

from .references import Noise, Prior, Problem, Reference, quadrature
from .samplers import METHODS

CACHE = Path(__file__).parent / "cached"
FIELDS = ("mean", "sd", "quantiles", "kurtosis")
_CACHED = ("hmc", "gibbs")  # what takes long


@dataclass(frozen=True)
class Case:
    """One default fit and its reference.

    ``prior``, ``noise`` and the like are None where the case leaves the estimator's default.
    """

    name: str
    model: str  # "linear" or "logistic"
    data: Callable
    prior: Prior | None = None
    noise: Noise | None = None
    variance: float | None = None
    temperature: float = 1.0
    fit_intercept: bool = True
    class_weight: object = None
    method: str = "auto"
    draws: int | None = None  # of the reference
    settings: dict = field(default_factory=dict)

    @property
    def asked(self):
        """Prior: where the case names none, the default's numbers for standardised columns."""
        default = Prior("normal", 1.0)
        if self.model == "linear":
            default = Prior("conjugate_normal", 10.0)
        return self.prior or default

    def estimator(self):
        """Estimator: default settings, except what the case demands."""
        arguments = dict(self.settings, random_state=0)
        arguments["prior"] = _component(PRIORS[self.asked.family], self.asked)
        if self.noise is not None:
            arguments["noise_prior"] = _component(NOISE_PRIORS[self.noise.family], self.noise)
        if self.variance is not None:
            arguments["noise_variance"] = self.variance
        if self.temperature != 1.0:
            arguments["temperature"] = self.temperature
        if not self.fit_intercept:
            arguments["fit_intercept"] = False
        if self.class_weight is not None:
            arguments["class_weight"] = self.class_weight
        linear = self.model == "linear"
        return (SGLDLinearRegression if linear else SGLDLogisticRegression)(**arguments)

    def problem(self):
        """Problem with the documented defaults as numbers."""
        X, y, *weight = self.data()
        weight = np.asarray(weight[0], dtype=float) if weight else np.ones(len(y))
        n_classes, linear = 0, self.model == "linear"
        if not linear:
            classes, y = np.unique(y, return_inverse=True)
            n_classes = len(classes)
        if self.class_weight == "balanced":
            counts = np.bincount(y, weights=weight)
            weight = weight * (counts.sum() / (n_classes * counts))[y]
        infers = linear and self.variance is None
        prior = self.asked
        if isinstance(prior.scale, str):
            prior = replace(prior, scale=automatic_scale(prior.family, X, y, weight, linear))
        return Problem(
            X.astype(float),
            np.asarray(y, dtype=float),
            weight,
            prior,
            (self.noise or Noise("inverse_gamma")) if infers else None,
            self.variance,
            self.temperature,
            self.fit_intercept,
            n_classes,
        )

    def how(self):
        """Kind of the reference."""
        if self.method != "auto":
            return self.method
        if self.model == "logistic":
            return "hmc"
        return (
            "quadrature" if self.asked.family in ("normal", "conjugate_normal", "flat") else "gibbs"
        )

    def reference(self):
        """Reference, from its file in ``cached`` where it is dear and the problem is the same."""
        problem, how = self.problem(), self.how()
        if how == "quadrature":
            return quadrature(problem)
        options = {} if self.draws is None else {"n_draws": self.draws}
        if how not in _CACHED and not options:
            return METHODS[how](problem)
        path, fingerprint = CACHE / f"{self.name}.npz", problem.fingerprint()
        if path.exists():
            with np.load(path) as kept:
                same = np.shape(kept["fingerprint"]) == fingerprint.shape
                if same and np.allclose(kept["fingerprint"], fingerprint, rtol=1e-6, atol=1e-9):
                    values = {name: kept[name] for name in FIELDS}
                    worth, problems = str(kept["worth"]), [str(p) for p in kept["problems"]]
                    return Reference(str(kept["kind"]), worth, **values, problems=problems)
        found = METHODS[how](problem.collapsed() if how != "gibbs" else problem, **options)
        CACHE.mkdir(exist_ok=True)
        values = {name: getattr(found, name).astype(np.float32) for name in FIELDS}
        about = {"kind": found.kind, "worth": found.worth, "problems": found.problems}
        np.savez_compressed(path, fingerprint=fingerprint, **about, **values)
        return found


def automatic_scale(family, X, y, weight, linear):
    """Documented scale of a prior in the units of the data, one for each column."""
    counted = weight > 0
    mean = np.average(X, axis=0, weights=weight)
    spread = np.sqrt(np.average((X - mean) ** 2, axis=0, weights=weight))
    for j, column in enumerate(X[counted].T):
        if len(np.unique(column)) == 2:
            spread[j] = np.ptp(column)
    if family == "conjugate_normal":
        return 10.0 / spread
    level = np.average(y, weights=weight)
    return (2.5 * np.sqrt(np.average((y - level) ** 2, weights=weight)) if linear else 1.0) / spread


def _component(cls, stated):
    """Package's component for a stated prior, of the parameters that it has."""
    names = cls().get_params()
    given = {name: getattr(stated, name) for name in names if hasattr(stated, name)}
    return cls(**{name: value for name, value in given.items() if value is not None})


def all_cases():
    """Every case by name."""
    from .classification_cases import CASES as logistic
    from .linear_cases import CASES as linear

    return {case.name: case for case in [*linear, *logistic]}

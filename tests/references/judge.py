"""Fit a case, compare it with its reference, and say what breaks a bound."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass, field

import numpy as np
from threadpoolctl import threadpool_limits

from skbayes_sgld import ModelMisfitWarning

from .references import LEVELS

MAX_MEAN, MAX_SD, MAX_QUANTILE, MIN_ESS = 0.1, 0.05, 0.15, 1000
# standard errors that the largest of the 8,000 errors of all cases has by chance, 1 time in 20
BY_CHANCE = 4.5
_DRAWS = 4000  # of a default fit


@dataclass
class Verdict:
    """The figures of one case."""

    name: str
    n: int
    d: int
    kind: str
    worth: str
    mean: float
    sd: float
    quantile: float
    ess: float
    seconds: float
    used: str
    broken: list[str] = field(default_factory=list)  # bounds
    wrong: set[str] = field(default_factory=set)  # errors beyond bound and chance
    notes: list[str] = field(default_factory=list)


def _fit(case, X, y, weight, seed):
    model = case.estimator()
    if seed is not None:
        model.set_params(random_state=seed)
    started = time.perf_counter()
    model.fit(X, y, *weight)
    return model, time.perf_counter() - started


def judge(case, seed=None):
    """Verdict on one case, with its own seed or another one."""
    X, y, *weight = case.data()
    n, d = X.shape
    with threadpool_limits(1):  # small products: a second thread costs more than it brings
        reference = case.reference()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        # whether the draws are right is judged, and not whether the model is
        warnings.simplefilter("ignore", ModelMisfitWarning)
        model, seconds = _fit(case, X, y, weight, seed)
    if seconds < 3:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            seconds = min(seconds, _fit(case, X, y, weight, seed)[1])
    head = (case.name, n, d, reference.kind, reference.worth)
    verdict = Verdict(*head, *_figures(model, reference), seconds, _used(model))
    verdict.notes = sorted({f"{w.category.__name__}: {w.message}" for w in caught})
    verdict.notes += reference.problems
    verdict.broken = _broken(verdict, model, reference)
    verdict.wrong = _wrong(verdict, model, reference)
    return verdict


def _errors(model, reference):
    draws = model.posterior_.flat
    mean = np.abs(draws.mean(0) - reference.mean) / reference.sd
    sd = np.abs(draws.std(0) / reference.sd - 1)
    quantile = np.abs(np.quantile(draws, LEVELS, axis=0) - reference.quantiles) / reference.sd
    return mean, sd, quantile


def _figures(model, reference):
    mean, sd, quantile = _errors(model, reference)
    return mean.max(), sd.max(), quantile.max(), model.summary()["ess_bulk"].min()


def _used(model):
    parts = [
        getattr(model.sampler_, "integrator", type(model.sampler_).__name__),
        f"{model.step_size_:.2g}",
    ]
    if model.batch_size_ is not None:
        parts.append(f"batch {model.batch_size_}")
    return " ".join([*parts, f"thin {model.thin_}"])


def sd_bounds(reference):
    """Bound on the error of each sd.

    From S independent draws the sd of a distribution of kurtosis k varies by
    ``sqrt((k - 1) / (4 S))``; four times that are within the bound for a normal distribution, and
    may not be for a heavy tail.
    """
    chance = np.sqrt((reference.kurtosis - 1) / (4 * _DRAWS))
    return np.maximum(MAX_SD, 4 * chance)


def by_chance(model, reference):
    """Errors that chance allows every mean, sd and quantile, in the units of a verdict."""
    table, draws = model.summary(), model.posterior_.flat
    ess = table[["ess_bulk", "ess_tail"]].min(axis=1).to_numpy()
    quantile = np.empty((len(LEVELS), draws.shape[1]))
    for j, values in enumerate(draws.T):
        for k, level in enumerate(LEVELS):
            error = np.sqrt(level * (1 - level) / ess[j])
            low, high = np.quantile(values, [max(level - error, 0.0), min(level + error, 1.0)])
            quantile[k, j] = 0.5 * (high - low) / reference.sd[j]
    sd = np.sqrt((reference.kurtosis - 1) / (4 * ess))
    errors = {"mean": 1 / np.sqrt(ess), "sd": sd, "quantile": quantile}
    return {name: BY_CHANCE * error for name, error in errors.items()}


def _over(model, reference, allowed=None):
    """Errors over their bounds, by parameter; a bound is at least what is ``allowed``."""
    errors = dict(zip(("mean", "sd", "quantile"), _errors(model, reference), strict=True))
    bounds = {"mean": MAX_MEAN, "sd": sd_bounds(reference), "quantile": MAX_QUANTILE}
    if allowed is not None:
        bounds = {name: np.maximum(bound, allowed[name]) for name, bound in bounds.items()}
    return {name: np.atleast_2d(errors[name] / bounds[name]).max(axis=0) for name in errors}


def _broken(verdict, model, reference):
    """Name every bound that is broken, and where."""
    names, broken = model.posterior_.names, []
    for name, figure in _over(model, reference).items():
        if not np.all(figure <= 1):
            worst = int(np.argmax(figure))
            beyond = f"{np.sum(~(figure <= 1))} of {len(figure)}"
            broken.append(f"{name} ({names[worst]}; {beyond} beyond the bound)")
    if not verdict.ess >= MIN_ESS:
        broken.append("ess")
    return broken


def _wrong(verdict, model, reference):
    """Name every error that is beyond its bound and beyond chance."""
    names, over = model.posterior_.names, _over(model, reference, by_chance(model, reference))
    wrong = {
        f"{name} of {names[j]}"
        for name, figure in over.items()
        for j in np.flatnonzero(~(figure <= 1))
    }
    return wrong if verdict.ess >= MIN_ESS else wrong | {"ess"}

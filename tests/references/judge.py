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
    broken: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def _fit(case, X, y, weight):
    model = case.estimator()
    started = time.perf_counter()
    model.fit(X, y, *weight)
    return model, time.perf_counter() - started


def judge(case):
    """Verdict on one case."""
    X, y, *weight = case.data()
    n, d = X.shape
    with threadpool_limits(1):  # small products: a second thread costs more than it brings
        reference = case.reference()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        # whether the draws are right is judged, and not whether the model is
        warnings.simplefilter("ignore", ModelMisfitWarning)
        model, seconds = _fit(case, X, y, weight)
    if seconds < 3:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            seconds = min(seconds, _fit(case, X, y, weight)[1])
    head = (case.name, n, d, reference.kind, reference.worth)
    verdict = Verdict(*head, *_figures(model, reference), seconds, _used(model))
    verdict.notes = sorted({f"{w.category.__name__}: {w.message}" for w in caught})
    verdict.notes += reference.problems
    verdict.broken = _broken(verdict, model, reference)
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


def _broken(verdict, model, reference):
    """Name every bound that is broken, and where."""
    mean, sd, quantile = _errors(model, reference)
    names, broken = model.posterior_.names, []
    figures = {
        "mean": mean / MAX_MEAN,
        "sd": sd / sd_bounds(reference),
        "quantile": quantile.max(0) / MAX_QUANTILE,
    }
    for name, figure in figures.items():
        if not np.all(figure <= 1):
            worst = int(np.argmax(figure))
            beyond = f"{np.sum(~(figure <= 1))} of {len(figure)}"
            broken.append(f"{name} ({names[worst]}; {beyond} beyond the bound)")
    if not verdict.ess >= MIN_ESS:
        broken.append("ess")
    return broken

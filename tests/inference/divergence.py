"""Cases of steps that are far too long, for every sampler, and their judge.

Every sampler runs with 10, 100 and 1e6 times the step that suits it, with all rows and minibatches,
with and without a bound on the gradient, in the metric of the curvature and without one. A run may
end in an error, which names step, chain, parameter and a step size that holds, at most 100 steps
after the overflow; or in a warning; or in draws that agree with the posterior. None may be silent
and wrong.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from itertools import product

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from skbayes_sgld import SGLDLinearRegression, SGLDLogisticRegression
from skbayes_sgld.inference import run as running
from skbayes_sgld.sampling import SAMPLERS, ChainOverflowError, NormClip, ValueClip

RNG = np.random.default_rng(0)
X = RNG.standard_normal((40, 2)) * [1.0, 5.0]
Y = X @ [1.0, -2.0] + RNG.standard_normal(40)
MODELS = {"linear": (SGLDLinearRegression, Y), "logistic": (SGLDLogisticRegression, Y > 0)}
GRADIENTS = {"full": {"gradient": "full"}, "minibatch": {"gradient": "minibatch", "batch_size": 10}}
CLIPS = {"none": None, "value": ValueClip(5.0), "norm": NormClip(5.0)}
FACTORS = (10.0, 100.0, 1e6)
LATEST = 100  # steps after the overflow
MATCH = (
    r"step_size=(\S+): chain (\d) overflowed at step (\d+) in ([^\s,]+?)[.,] "
    r".*With step_size=(\S+) a run of (\d+) steps did not overflow"
)
FAR = 0.35  # sds, of a mean or relative of an sd: five standard errors of 200 draws


@dataclass(frozen=True)
class Case:
    """One run whose step is too long."""

    model: str
    metric: str | None
    sampler: str
    gradient: str
    clip: str
    factor: float


CASES = [
    Case(model, metric, sampler, gradient, clip, factor)
    for model, metric, (sampler, kind), gradient, clip, factor in product(
        MODELS, ("curvature", None), SAMPLERS.items(), GRADIENTS, CLIPS, FACTORS
    )
    if gradient == "full" or not kind.full_gradient
]


def make(case: Case, step_size: float | str, clip: str | None = None):
    """Estimator of a case, with another step size."""
    return MODELS[case.model][0](
        sampler=case.sampler,
        step_size=step_size,
        preconditioner=case.metric,
        clip=CLIPS[clip or case.clip],
        init="mode",
        n_draws=300,
        n_burnin=0,
        thin=1,
        n_chains=2,
        random_state=0,
        **GRADIENTS[case.gradient],
    )


@cache
def right_step(model: str, metric: str | None, sampler: str, gradient: str) -> float:
    """Step size that suits a sampler."""
    if metric is not None:
        return float(SAMPLERS[sampler]().step_and_time(np.ones(4))[0])
    case = Case(model, metric, sampler, gradient, "none", 1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return float(make(case, "auto").fit(X, MODELS[model][1]).step_size_)


@cache
def reference(model: str) -> tuple[np.ndarray, np.ndarray]:
    """Means and sds of the posterior."""
    cls, y = MODELS[model]
    draws = cls(sampler="hmc", n_draws=4000, random_state=1).fit(X, y).posterior_.flat
    return draws.mean(axis=0), draws.std(axis=0)


@contextmanager
def counted(sampler: type) -> Iterator[list[int]]:
    """Steps of the chains until an overflow was found, without pilots and what comes after."""
    step, begin, explain = sampler.step, running.run_chains, running.explain_overflow
    counts, seen, made = [0], [], []

    def started(*args, **kwargs):
        counts[0], seen[:] = 0, []
        return begin(*args, **kwargs)

    def counting(self, state, *args):
        seen[:] = seen or [state]
        counts[0] += state is seen[0]  # what finds the step afterwards goes over a copy
        return step(self, state, *args)

    def explaining(error, *args):
        made.append(counts[0])
        return explain(error, *args)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sampler, "step", counting)
        patch.setattr(running, "run_chains", started)
        patch.setattr(running, "explain_overflow", explaining)
        yield made


def judge(case: Case) -> tuple[str, str]:
    """Outcome of a case, "error", "warning" or "right", and what is wrong with it, if anything."""
    y = MODELS[case.model][1]
    size = case.factor * right_step(case.model, case.metric, case.sampler, case.gradient)
    model = make(case, size)
    with warnings.catch_warnings(record=True) as told, counted(SAMPLERS[case.sampler]) as made:
        warnings.simplefilter("always")
        try:
            model.fit(X, y)
        except ChainOverflowError as error:
            wrong = _wrong_error(error, made) or _wrong_step(model, error, y)
            return "error", wrong
    others = [each for each in told if not issubclass(each.category, ConvergenceWarning)]
    if others:
        return "warning", f"another warning: {others[0].message}"
    if told:
        text = str(told[0].message)
        remedy = "step_size" in text or "clip=" in text
        return "warning", "" if remedy else f"no remedy: {text}"
    draws, (mean, sd) = model.posterior_.flat, reference(case.model)
    shift = np.abs(draws.mean(axis=0) - mean) / sd
    width = np.abs(draws.std(axis=0) / sd - 1.0)
    off = max(shift.max(), width.max())
    return "right", "" if off < FAR else f"silent, and off by {off:.2f} sds"


def _wrong_error(error: ChainOverflowError, made: list[int]) -> str:
    named = re.search(MATCH, str(error))
    if named is None:
        return f"the error does not name everything: {error}"
    if error.held is None or f"{error.held:g}" != named.group(5):
        return f"held={error.held}, and the error says {named.group(5)}"
    if (error.chain, error.step) != (int(named.group(2)), int(named.group(3))):
        return f"chain {error.chain}, step {error.step}: {error}"
    # none are counted where a block of steps was made at once, which is looked at as a whole
    late = made[-1] - error.step
    return "" if made[-1] == 0 or 0 <= late <= LATEST else f"stopped {late} steps after"


def _wrong_step(model, error: ChainOverflowError, y: np.ndarray) -> str:
    """Fault of a run with the advised step size and number of steps, or ""."""
    length = int(re.search(MATCH, str(error)).group(6))
    shorter = clone(model).set_params(step_size=error.held, n_draws=length)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        shorter.fit(X, y)
    finite = np.isfinite(shorter.posterior_.values).all() and shorter.result_.acceptance != 0.0
    smaller = error.held < model.step_size
    return "" if finite and smaller else f"step_size={error.held:g} does not hold"

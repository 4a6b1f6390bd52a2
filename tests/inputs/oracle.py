"""Judge of public calls: a right result, or an error that names the argument.

``judge`` makes one call and says which of them it was, or what is wrong: an error of another kind,
one that names no argument or comes from inside NumPy or SciPy, a ``RuntimeWarning``, numbers that
are not finite, more than ten seconds. Infinities are right where a warning says so of their rows.
"""

import re
import signal
import threading
import traceback
import warnings
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, is_classifier
from sklearn.exceptions import NotFittedError

from skbayes_sgld import PosteriorDraws, SamplingResult

SECONDS = 10
# measures of few draws, and the share of throws that were right of those who threw none
_MAY_LACK = [
    "r_hat",
    "ess_bulk",
    "ess_tail",
    "mcse_mean",
    "mcse_sd",
    "three_point_pct",
]  # of no value, and of no attempt
_FOREIGN = re.compile(r"site-packages/(numpy|scipy|pandas|joblib|threadpoolctl)[./]")


def numbers_of(value, path="result"):
    """Arrays of floats within a result, with where they are."""
    if isinstance(value, (PosteriorDraws, SamplingResult)):
        yield path + ".values", np.asarray(value.values, dtype=float)
    elif isinstance(value, BaseEstimator):
        for name, part in vars(value).items():
            if name in ("intercept_", "intercept_path_") and is_classifier(value):
                part = np.where(np.isneginf(part), 0.0, part)  # of a class without any weight
            if name.endswith("_") and not name.startswith("_"):
                yield from numbers_of(part, f"{path}.{name}")
    elif isinstance(value, dict):
        for name, part in value.items():
            if name == "data" and isinstance(part, np.ndarray):
                part = part[:, ~np.isin(value["feature_names"], list(_MAY_LACK))]
            yield from numbers_of(part, f"{path}[{name!r}]")
    elif isinstance(value, (list, tuple)) and len(value) < 50:
        for k, part in enumerate(value):
            yield from numbers_of(part, f"{path}[{k}]")
    elif isinstance(value, pd.DataFrame):
        for name in value.columns.difference(_MAY_LACK):
            yield from numbers_of(value[name].to_numpy(), f"{path}[{name!r}]")
    elif isinstance(value, (float, np.floating, np.ndarray)):
        array = np.asarray(value)
        if array.dtype.kind in "fc":
            yield path, array


def not_finite(value):
    """Path to a number of a result that is not finite; None if all are."""
    for path, array in numbers_of(value):
        if not np.isfinite(array).all():
            return f"{path} is not finite: {array[~np.isfinite(array)].ravel()[0]}"
    return None


@dataclass(frozen=True)
class Answer:
    """Outcome of a call: ``"result"``, ``"error"`` or, with a reason, ``"failure"``."""

    kind: str
    reason: str = ""
    value: object = None


class TooLong(BaseException):
    """A call took more than ten seconds."""


def judge(call, names, finite=not_finite):
    """Answer of ``call()``, whose error may name any of ``names``.

    ``finite(result)`` says what is wrong with a result, or returns None.
    """
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        try:
            with _limit(SECONDS):
                value = call()
                wrong = finite(value)
        except TooLong:
            return Answer("failure", f"no end in {SECONDS} s")
        except (ValueError, TypeError, NotFittedError) as error:
            return _judge_error(error, names) or _judge_warnings(heard, names) or Answer("error")
        except Exception as error:
            return Answer("failure", f"{_describe(error)}")
    if wrong and not _is_told(value, heard):
        return Answer("failure", wrong, value)
    return _judge_warnings(heard, names) or Answer("result", "", value)


def _is_told(value, heard):
    """Whether a result has infinities, and no nan, that a warning tells of."""
    told = any("may be infinite there" in str(warning.message) for warning in heard)
    return told and not any(np.isnan(array).any() for _, array in numbers_of(value))


def _judge_error(error, names):
    message = str(error)
    frames = traceback.extract_tb(error.__traceback__)
    within = [frame.filename for frame in frames]
    if "*" in names and (
        "/sklearn/" in within[-1] or any("/sklearn/metrics/" in p for p in within)
    ):
        return None
    if _FOREIGN.search(frames[-1].filename):
        return Answer("failure", f"from inside a library: {_describe(error)}")
    if not any(re.search(rf"(?<!\w){re.escape(name)}(?!\w)", message) for name in names):
        return Answer("failure", f"names none of {', '.join(names)}: {_describe(error)}")
    return None


def _judge_warnings(heard, names):
    for warning in heard:
        if "*" in names and "/sklearn/" in warning.filename:
            continue
        if issubclass(warning.category, RuntimeWarning):
            where = f"{warning.filename}:{warning.lineno}"
            return Answer("failure", f"RuntimeWarning: {warning.message} at {where}")
    return None


def _describe(error):
    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__}: {str(error)[:300]} at {last.filename}:{last.lineno}"


@contextmanager
def _limit(seconds):
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(*_):
        raise TooLong

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)  # of work, however busy the machine
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)

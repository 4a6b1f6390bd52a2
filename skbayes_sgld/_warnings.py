"""Warnings that point at the user's line, name the fit of a search, and can be gathered."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import tempfile
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from types import FrameType
from typing import Any, Self

import joblib
import pandas as pd
import sklearn
from sklearn.exceptions import ConvergenceWarning

from skbayes_sgld._checks import escaped

# the package, and code between it and its caller: pipelines, searches, callbacks
_PASSED = tuple(
    f"{Path(file).parent}{os.sep}" for file in (__file__, sklearn.__file__, joblib.__file__)
)
_NUMBERED = re.compile(r"(\[(?:[^\],]*, )?)x(\d+)(?=[\],])")  # coef[x19], coef[label, x19]
_PARAMETER = re.compile(r" of (\w+(?:\[[^\]]+\])?) is ")  # intercept, coef[age]

_HINT = (
    " x0, x1 ... number the columns that the pipeline's steps produce; to see names call "
    "set_output(transform='pandas') on the pipeline."
)


@dataclass(frozen=True)
class _Record:
    """A warning, and the fit of a search that issued it.

    Attributes
    ----------
    message : str
    convergence : bool
        Whether draws or a mode should not be trusted.
    candidate, n_candidates, split, n_splits : int
        Numbers of the search's candidate and split, from 1; 0 outside a search.
    settings : str
        Parameters that the search set.
    """

    message: str
    convergence: bool
    candidate: int = 0
    n_candidates: int = 0
    split: int = 0
    n_splits: int = 0
    settings: str = ""


class ModelMisfitWarning(UserWarning):
    """The model is decisively wrong about the rows that it was fitted to.

    ``fit`` leaves out at most 500 rows in turn, and warns if far too few or too many of them are in
    their predictive intervals. The message has the figure and a remedy. A fit without this warning
    may be wrong too, if so quick a test cannot tell it from chance.
    """


def warn(message: str, category: type[Warning]) -> None:
    """Issue a warning at the user's own line; inside a search it names candidate and split."""
    origin: dict[str, Any] = {}
    frames, frame = [], sys._getframe(1)
    # not the caller's frame, whose variables would stay alive
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PASSED):
        origin |= _known_of(frame)
        frames.append(frame)
        frame = frame.f_back
    message = _name_columns(message, frames)
    record = _Record(message, issubclass(category, ConvergenceWarning), **origin)
    if _gather(record):
        return
    if record.candidate:
        message += (
            f" This is of candidate {record.candidate} of {record.n_candidates} "
            f"({record.settings}), split {record.split} of {record.n_splits}; the "
            "context gather_warnings() makes one warning of all."
        )
    warnings.warn(message, category, stacklevel=len(frames) + 2)


def _known_of(frame: FrameType) -> dict[str, Any]:
    """Candidate, split and settings in a frame of scikit-learn's search; empty for other frames."""
    name, module = frame.f_code.co_name, frame.f_globals.get("__name__")
    if module != "sklearn.model_selection._validation" or name != "_fit_and_score":
        return {}
    names = frame.f_locals
    candidate, split = names.get("candidate_progress"), names.get("split_progress")
    if candidate is None or split is None:  # cross_validate has one candidate
        return {}
    settings = names.get("parameters") or {}
    return {
        "candidate": candidate[0] + 1,
        "n_candidates": candidate[1],
        "split": split[0] + 1,
        "n_splits": split[1],
        "settings": ", ".join(f"{key}={value!r}" for key, value in settings.items()),
    }


def _name_columns(message: str, frames: Iterable[FrameType]) -> str:
    """Message with column names in place of numbers, or a sentence on how to get names.

    The frames, from the inside out, contain the model that is being fitted and its pipelines. A
    pipeline counts if its last step is the model, or another pipeline that counts; an ensemble in
    between may choose columns.
    """
    model: Any = None
    rows: Any = None
    outermost: Any = None
    pipelines: list[Any] = []
    in_pipeline = False
    for frame in frames:
        module: str = frame.f_globals.get("__name__", "")
        outer: Any = frame.f_locals.get("self")
        if module.startswith("skbayes_sgld.") and hasattr(outer, "fit"):
            model = outermost = outer
            rows = frame.f_locals.get("rows", rows)  # of a fit, which writes nothing until its end
        if frame.f_code.co_name != "fit" or not module.startswith("sklearn."):
            continue
        last = getattr(outer, "regressor_", None)  # a TransformedTargetRegressor has it
        if module == "sklearn.pipeline" and hasattr(outer, "steps"):
            in_pipeline, last = True, outer.steps[-1][1]
        if last is not None and last is outermost:
            outermost = outer
            if hasattr(outer, "steps"):
                pipelines.insert(0, outer)
    n_columns = getattr(rows, "n_features", getattr(model, "n_features_in_", None))
    known = getattr(rows, "names", getattr(model, "feature_names_in_", None))
    if n_columns is None or known is not None:
        return message
    names = names_behind(pipelines, n_columns)
    if names is not None:
        return with_names(message, names)
    return message + _HINT if in_pipeline and _NUMBERED.search(message) else message


def names_behind(pipelines: Iterable[Any], n_columns: int) -> list[str] | None:
    """Names of the columns that leave pipelines, which are given outermost first.

    None if a step has no ``get_feature_names_out``, or if the number of names is not ``n_columns``.
    """
    names = None
    for pipeline in pipelines:
        if len(pipeline) > 1:
            try:
                names = pipeline[:-1].get_feature_names_out(names)
            except (AttributeError, TypeError, ValueError):
                return None
    if names is None or len(names) != n_columns:
        return None
    return [escaped(name) for name in names]


def with_names(text: str, names: Sequence[str]) -> str:
    """Text with column names in place of numbers: coef[age] for coef[x0]."""
    return _NUMBERED.sub(lambda match: match[1] + names[int(match[2])], text)


# ---- gathered -----------------------------------------------------------------------------------

# folders of gathered warnings: those of this process's contexts, and that of the process which
# sent an estimator to this one
_OF_CONTEXTS: list[str] = []
_OF_SENDER: list[str] = []


def gathering_folder() -> str | None:
    """Folder of the innermost context, which pickles of estimators take to other processes."""
    return _OF_CONTEXTS[-1] if _OF_CONTEXTS else None


def gather_into(folder: str | None) -> None:
    """Gather the warnings of this process in the folder of another; None: issue them."""
    _OF_SENDER[:] = [] if folder is None else [folder]


def _gather(record: _Record) -> bool:
    """Write a warning into the folder of the context; False if there is none."""
    folders = _OF_CONTEXTS or _OF_SENDER
    if not folders:
        return False
    try:
        with (Path(folders[-1]) / f"{os.getpid()}.jsonl").open("a") as file:
            file.write(json.dumps(asdict(record)) + "\n")
    except OSError:  # the sender's context has ended, or is on another machine
        _OF_SENDER.clear()
        return False
    return True


class gather_warnings:  # noqa: N801  (a context, as warnings.catch_warnings is)
    """Context in which all fits together issue one warning.

    It names the candidates, splits and parameters of a search, and columns by name. The fits may be
    made by other processes (``n_jobs=2``).

    Attributes
    ----------
    table : pandas.DataFrame
        A row for each warning, once the context has ended: ``candidate``, ``n_candidates``,
        ``split``, ``n_splits``, ``settings``, ``message`` and ``convergence`` (whether draws or a
        mode should not be trusted). Candidates and splits are numbered from 1; 0 is a fit outside a
        search, such as the final fit of the best candidate.

    Warns
    -----
    ConvergenceWarning or UserWarning
        At the end of the context, if there were any warnings.

    Examples
    --------
    >>> import warnings
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.model_selection import GridSearchCV
    >>> from skbayes_sgld import SGLDLinearRegression, gather_warnings
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> model = SGLDLinearRegression(n_draws=20, random_state=0)
    >>> search = GridSearchCV(model, {"temperature": [1.0, 2.0]}, cv=3)
    >>> with warnings.catch_warnings(record=True) as found:
    ...     warnings.simplefilter("always")
    ...     with gather_warnings() as gathered:
    ...         search = search.fit(X, y)
    >>> len(found), len(gathered.table)
    (1, 7)
    """

    def __init__(self) -> None:
        self._records: list[_Record] = []

    def __enter__(self) -> Self:
        """Gather the warnings of this process and of its workers."""
        self._folder = tempfile.mkdtemp(prefix="skbayes_sgld-warnings-")
        _OF_CONTEXTS.append(self._folder)
        return self

    def __exit__(self, kind: Any, *exception: object) -> None:
        """Issue the one warning."""
        _OF_CONTEXTS.remove(self._folder)
        files = sorted(Path(self._folder).iterdir())
        lines = [line for file in files for line in file.read_text().splitlines()]
        self._records += [_Record(**json.loads(line)) for line in lines]
        shutil.rmtree(self._folder, ignore_errors=True)
        if self._records and kind is None:
            convergence = any(each.convergence for each in self._records)
            warn(str(self), ConvergenceWarning if convergence else UserWarning)

    @property
    def table(self) -> pd.DataFrame:
        """A row for each warning, once the context has ended."""
        return pd.DataFrame(
            [asdict(each) for each in self._records], columns=list(_Record.__annotations__)
        )

    def __str__(self) -> str:
        """Summary: a line for each candidate with a warning."""
        by_candidate: dict[tuple[int, str], list[_Record]] = {}
        for each in sorted(self._records, key=lambda one: (one.candidate == 0, one.candidate)):
            by_candidate.setdefault((each.candidate, each.settings), []).append(each)
        n_fits = max((each.n_candidates * each.n_splits for each in self._records), default=0)
        fits = {(each.candidate, each.split) for each in self._records if each.candidate}
        of = f" {len(fits)} of the {n_fits} fits of a search have some." if n_fits else ""
        lines = [f"{len(self._records)} warnings were gathered.{of}"]
        for (candidate, settings), several in by_candidate.items():
            splits = ", ".join(map(str, sorted({each.split for each in several})))
            where = (
                f"candidate {candidate} ({settings}), splits {splits}"
                if candidate
                else "fits outside a search"
            )
            names = dict.fromkeys(n for each in several for n in _PARAMETER.findall(each.message))
            about = f"; {', '.join(names)}" if names else ""
            more = f" (and {len(several) - 1} more)" if len(several) > 1 else ""
            lines.append(f"* {where}{about}: {several[0].message.removesuffix(_HINT)}{more}")
        if any(each.message.endswith(_HINT) for each in self._records):
            lines.append(_HINT.strip())
        return "\n".join(lines)

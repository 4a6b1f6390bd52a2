"""Warnings that point at the user's own line, name their fit of a search, and can be gathered."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import tempfile
import warnings
from dataclasses import asdict, dataclass
from pathlib import Path
from types import FrameType
from typing import Any, Self

import joblib
import pandas as pd
import sklearn
from sklearn.exceptions import ConvergenceWarning

# the package, and what stands between it and its caller: pipelines, searches, callbacks
_PASSED = tuple(
    f"{Path(file).parent}{os.sep}" for file in (__file__, sklearn.__file__, joblib.__file__)
)
_PARAMETER = re.compile(r" of (\w+(?:\[[^\]]+\])?) is ")  # intercept, coef[age]
_NUMBERED = re.compile(r"\[(?:[^\],]*, )?x\d+\]")  # coef[x19]

_HINT = (
    " x0, x1 ... count the columns that the steps before hand on; to see their names call "
    "set_output(transform='pandas') of the pipeline."
)


@dataclass(frozen=True)
class _Told:
    """A warning, and the fit of a search that it is of.

    Attributes
    ----------
    message : str
    convergence : bool
        Whether the draws, or the mode, are not to be relied on.
    candidate, n_candidates, split, n_splits : int
        Numbers of the search's candidate and of its split, from 1; 0 outside a search.
    settings : str
        What the search set.
    """

    message: str
    convergence: bool
    candidate: int = 0
    n_candidates: int = 0
    split: int = 0
    n_splits: int = 0
    settings: str = ""

    @property
    def fit(self) -> str:
        """Clause that names the fit."""
        if not self.candidate:
            return ""
        return (
            f"candidate {self.candidate} of {self.n_candidates} ({self.settings}), split "
            f"{self.split} of {self.n_splits}"
        )


def warn(message: str, category: type[Warning]) -> None:
    """Issue a warning at the innermost line of the call stack that is the caller's own.

    Inside a search it names the candidate and the split.
    """
    known: dict[str, Any] = {}
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PASSED):
        level, frame = level + 1, frame.f_back
        known |= _known_of(frame)
    if known.pop("in_pipeline", False) and _NUMBERED.search(message):
        message += _HINT
    told = _Told(message, issubclass(category, ConvergenceWarning), **known)
    gathers = _gathering()
    if gathers is not None:
        gathers._told.append(told)
    elif not _write(told):
        where = f" This is of {told.fit}." if told.fit else ""
        warnings.warn(f"{message}{where}", category, stacklevel=level)


def _known_of(frame: FrameType) -> dict[str, Any]:
    """Candidate, split and settings in a frame of scikit-learn's search; empty for other frames."""
    name, module = frame.f_code.co_name, frame.f_globals.get("__name__")
    if module == "sklearn.pipeline" and name == "fit":
        return {"in_pipeline": True}
    if module != "sklearn.model_selection._validation" or name != "_fit_and_score":
        return {}
    names = frame.f_locals
    candidate, split = names.get("candidate_progress"), names.get("split_progress")
    if candidate is None or split is None:  # cross_validate, which has one candidate
        return {}
    settings = names.get("parameters") or {}
    return {
        "candidate": candidate[0] + 1,
        "n_candidates": candidate[1],
        "split": split[0] + 1,
        "n_splits": split[1],
        "settings": ", ".join(f"{key}={value!r}" for key, value in settings.items()),
    }


# ---- gathered -----------------------------------------------------------------------------------

_GATHERED: list[gather_warnings] = []  # the contexts that this process is in
_FOLDERS: list[Path] = []  # of a worker: where the process that gathers reads warnings


class gather_warnings:  # noqa: N801  (a context, as warnings.catch_warnings is)
    """Context in which the warnings of all fits become one, which names them.

    Of a search, it names the candidates, the splits and the parameters, with columns by name; the
    fits may be made by other processes (``n_jobs=2``).

    Attributes
    ----------
    table : pandas.DataFrame
        A row for each warning: ``candidate``, ``n_candidates``, ``split``, ``n_splits``,
        ``settings``, ``message`` and ``convergence``, whether draws or a mode are not to be relied
        on. Candidates and splits are numbered from 1; 0 is a fit outside a search, such as that of
        the best candidate to all rows.

    Warns
    -----
    ConvergenceWarning or UserWarning
        At the end of the context, where there were any warnings.

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
        self._told: list[_Told] = []
        self._process = os.getpid()
        self._folder: Path | None = None  # for the warnings of other processes

    def __enter__(self) -> Self:
        """Gather the warnings of this process, and of workers that are sent estimators from now."""
        _GATHERED.append(self)
        return self

    def __exit__(self, kind: Any, *exception: object) -> None:
        """Warn once of all that was gathered."""
        _GATHERED.remove(self)
        if self._folder is not None:
            self._told += _read(self._folder)
            shutil.rmtree(self._folder, ignore_errors=True)
        if self._told and kind is None:
            convergence = any(each.convergence for each in self._told)
            warn(str(self), ConvergenceWarning if convergence else UserWarning)

    @property
    def table(self) -> pd.DataFrame:
        """A row for each warning."""
        return pd.DataFrame(
            [asdict(each) for each in self._told], columns=list(_Told.__annotations__)
        )

    def __str__(self) -> str:
        """Summary: a line for each candidate with a warning."""
        by_candidate: dict[tuple[int, str], list[_Told]] = {}
        for each in sorted(self._told, key=lambda told: (told.candidate == 0, told.candidate)):
            by_candidate.setdefault((each.candidate, each.settings), []).append(each)
        n_fits = max((each.n_candidates * each.n_splits for each in self._told), default=0)
        fits = {(each.candidate, each.split) for each in self._told if each.candidate}
        of = f" {len(fits)} of the {n_fits} fits of a search have some." if n_fits else ""
        lines = [f"{len(self._told)} warnings were gathered.{of}"]
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
        if any(each.message.endswith(_HINT) for each in self._told):
            lines.append(_HINT.strip())
        return "\n".join(lines)


def _gathering() -> gather_warnings | None:
    """The innermost context of this process; a forked one is not in those of its parent."""
    own = [each for each in _GATHERED if each._process == os.getpid()]
    return own[-1] if own else None


def gathering_folder() -> str | None:
    """Folder that goes with an estimator to another process; None where nothing is gathered."""
    gathers = _gathering()
    if gathers is None:
        return None
    if gathers._folder is None:
        gathers._folder = Path(tempfile.mkdtemp(prefix="skbayes_sgld-warnings-"))
    return str(gathers._folder)


def gather_into(folder: str | None) -> None:
    """Write the warnings of this process, a worker's, into a folder; None: issue them here."""
    _FOLDERS[:] = [] if folder is None else [Path(folder)]


def _write(told: _Told) -> bool:
    """Whether the warning was written for another process, which gathers it."""
    for folder in _FOLDERS:
        try:
            with (folder / f"{os.getpid()}.jsonl").open("a") as file:
                file.write(json.dumps(asdict(told)) + "\n")
            return True
        except OSError:  # the context has ended, or is on another machine
            _FOLDERS.clear()
    return False


def _read(folder: Path) -> list[_Told]:
    """Warnings that other processes wrote."""
    lines = [line for path in sorted(folder.iterdir()) for line in path.read_text().splitlines()]
    return [_Told(**json.loads(line)) for line in lines]

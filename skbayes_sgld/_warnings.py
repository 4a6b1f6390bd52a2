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

    @property
    def fit(self) -> str:
        """Candidate, settings and split, in words."""
        if not self.candidate:
            return ""
        return (
            f"candidate {self.candidate} of {self.n_candidates} ({self.settings}), split "
            f"{self.split} of {self.n_splits}"
        )


def warn(message: str, category: type[Warning]) -> None:
    """Issue a warning at the user's own line; inside a search it names candidate and split."""
    known: dict[str, Any] = {}
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PASSED):
        level, frame = level + 1, frame.f_back
        known |= _known_of(frame)
    if known.pop("in_pipeline", False) and _NUMBERED.search(message):
        message += _HINT
    record = _Record(message, issubclass(category, ConvergenceWarning), **known)
    gathers = _gathering()
    if gathers is not None:
        gathers._records.append(record)
    elif not _write(record):
        where = f" This is of {record.fit}." if record.fit else ""
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
    """Context in which all fits together issue one warning.

    It names the candidates, splits and parameters of a search, and columns by name. The fits may be
    made by other processes (``n_jobs=2``).

    Attributes
    ----------
    table : pandas.DataFrame
        A row for each warning: ``candidate``, ``n_candidates``, ``split``, ``n_splits``,
        ``settings``, ``message`` and ``convergence`` (whether draws or a mode should not be
        trusted). Candidates and splits are numbered from 1; 0 is a fit outside a search, such as
        the final fit of the best candidate.

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
        self._process = os.getpid()
        self._folder: Path | None = None  # for the warnings of other processes

    def __enter__(self) -> Self:
        """Gather the warnings of this process and of its workers."""
        _GATHERED.append(self)
        return self

    def __exit__(self, kind: Any, *exception: object) -> None:
        """Issue the one warning."""
        _GATHERED.remove(self)
        if self._folder is not None:
            self._records += _read(self._folder)
            shutil.rmtree(self._folder, ignore_errors=True)
        if self._records and kind is None:
            convergence = any(each.convergence for each in self._records)
            warn(str(self), ConvergenceWarning if convergence else UserWarning)

    @property
    def table(self) -> pd.DataFrame:
        """A row for each warning."""
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


def _gathering() -> gather_warnings | None:
    """Innermost context of this process; a forked process does not inherit its parent's."""
    own = [each for each in _GATHERED if each._process == os.getpid()]
    return own[-1] if own else None


def gathering_folder() -> str | None:
    """Folder in which workers write warnings; None outside a context."""
    gathers = _gathering()
    if gathers is None:
        return None
    if gathers._folder is None:
        gathers._folder = Path(tempfile.mkdtemp(prefix="skbayes_sgld-warnings-"))
    return str(gathers._folder)


def gather_into(folder: str | None) -> None:
    """Make this worker write its warnings into a folder; None: issue them."""
    _FOLDERS[:] = [] if folder is None else [Path(folder)]


def _write(record: _Record) -> bool:
    """Write a warning for the gathering process; False if there is none."""
    for folder in _FOLDERS:
        try:
            with (folder / f"{os.getpid()}.jsonl").open("a") as file:
                file.write(json.dumps(asdict(record)) + "\n")
            return True
        except OSError:  # the context has ended, or is on another machine
            _FOLDERS.clear()
    return False


def _read(folder: Path) -> list[_Record]:
    """Warnings that other processes wrote."""
    lines = [line for path in sorted(folder.iterdir()) for line in path.read_text().splitlines()]
    return [_Record(**json.loads(line)) for line in lines]

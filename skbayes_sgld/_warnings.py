"""Warnings that point at the user's own line, name their fit of a search, and can be gathered."""

from __future__ import annotations

import os
import re
import sys
import warnings
from dataclasses import asdict, dataclass
from multiprocessing import AuthenticationError
from multiprocessing.connection import Client, Connection, Listener
from pathlib import Path
from threading import Thread
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

Address = tuple[Any, bytes]


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
    elif not _send(told):
        where = f" This is of {told.fit}." if told.fit else ""
        warnings.warn(f"{message}{where}", category, stacklevel=level)


def _known_of(frame: FrameType) -> dict[str, Any]:
    """What a frame of scikit-learn's knows of the fit; nothing where it is another one."""
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
_CONNECTIONS: dict[Address | None, Connection] = {}  # of a worker: to the process that gathers


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
        self._listener: Listener | None = None
        self._address: Address | None = None

    def __enter__(self) -> Self:
        """Gather the warnings of this process, and of workers that are sent estimators from now."""
        _GATHERED.append(self)
        return self

    def __exit__(self, kind: Any, *exception: object) -> None:
        """Warn once of all that was gathered."""
        _GATHERED.remove(self)
        if self._listener is not None:
            self._listener.close()
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

    def _listen(self) -> Address:
        """Address that other processes send to; opened when the first one is needed."""
        if self._listener is None or self._address is None:
            key = os.urandom(32)
            self._listener = Listener(authkey=key, backlog=128)
            self._address = self._listener.address, key
            Thread(target=self._accept, args=(self._listener,), daemon=True).start()
        return self._address

    def _accept(self, listener: Listener) -> None:
        while True:
            try:
                connection = listener.accept()
            except OSError:  # closed
                return
            Thread(target=self._receive, args=(connection,), daemon=True).start()

    def _receive(self, connection: Connection) -> None:
        try:
            while True:
                self._told.append(connection.recv())
                connection.send(None)  # so that no worker ends before its warning is here
        except (EOFError, OSError):
            return


def _gathering() -> gather_warnings | None:
    """The innermost context of this process; a forked one is not in those of its parent."""
    own = [each for each in _GATHERED if each._process == os.getpid()]
    return own[-1] if own else None


def gathering_address() -> Address | None:
    """Address that goes with an estimator to another process; None where nothing is gathered."""
    gathers = _gathering()
    return None if gathers is None else gathers._listen()


def send_to(address: Address | None) -> None:
    """Send the warnings of this process, a worker's, to an address; None: issue them here."""
    if address in _CONNECTIONS or _gathering() is not None:
        return
    while _CONNECTIONS:
        _CONNECTIONS.popitem()[1].close()
    if address is not None:
        try:
            _CONNECTIONS[address] = Client(address[0], authkey=address[1])
        except (OSError, AuthenticationError):  # read later, or on another machine
            return


def _send(told: _Told) -> bool:
    """Whether another process gathers the warning."""
    for connection in _CONNECTIONS.values():
        try:
            connection.send(told)
            connection.recv()
            return True
        except (EOFError, OSError):
            return False
    return False

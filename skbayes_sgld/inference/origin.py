"""The start of a run, and the door to the files that it is resumed from and written to."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import monotonic
from typing import Any, Protocol

from skbayes_sgld._doors import Door
from skbayes_sgld._typing import Array
from skbayes_sgld.inference.plan import Plan
from skbayes_sgld.inference.planning.task import Finding
from skbayes_sgld.inference.settings import Settings
from skbayes_sgld.sampling.run import Chains

FILES = Door("skbayes_sgld.checkpoints", "Files")
Inputs = Callable[[], dict[str, Any]]  # makes the data and settings of a run, by name


@dataclass(frozen=True)
class Origin:
    """Start of a run: seed, positions and time.

    Attributes
    ----------
    seed : int
    positions : ndarray of shape (n_chains, n_params) or None
        Last positions of an earlier fit, from which the chains start.
    finding : Finding or None
        Finding against an earlier plan, which overflowed.
    begin : float
        Start of the work, on the monotonic clock.
    """

    seed: int
    positions: Array | None = None
    finding: Finding | None = None
    begin: float = field(default_factory=monotonic)


class Journal(Protocol):
    """Files of a run: the one that it resumes, and the one that it writes."""

    origin: Origin

    def resume(self, plan: Plan, most: int) -> Chains | None:
        """Steps so far, None if nothing is resumed; raise unless the plan is the same.

        ``most`` is the largest number of draws per chain of the resumed run.
        """

    def open(self, plan: Plan, chains: Chains | None) -> Chains | None:
        """Write the steps so far for the first time; None if nothing is written."""

    @property
    def due(self) -> bool:
        """Whether it is time to write the run again."""

    def write(self, chains: Chains, finished: bool = False) -> None:
        """Write the steps so far."""

    def begin_again(self, origin: Origin) -> None:
        """Discard the steps so far, since another plan begins."""

    def interrupted(self) -> KeyboardInterrupt:
        """KeyboardInterrupt that names the file to resume from."""


@contextmanager
def open_journal(settings: Settings, inputs: Inputs, origin: Origin) -> Iterator[Journal | None]:
    """Context of the files that the settings name, or of None if they name none.

    Checkpoints are imported, and the ``inputs`` by which they recognise a run are put together,
    only if a file is named.

    Raises
    ------
    KeyboardInterrupt
        If the user interrupts; it then names the file to resume from.
    """
    if not settings.names_files:
        yield None
        return
    journal: Journal = FILES.open()(settings, inputs(), origin)
    try:
        yield journal
    except KeyboardInterrupt:
        raise journal.interrupted() from None

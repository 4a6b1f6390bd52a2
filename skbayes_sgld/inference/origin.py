"""Where a run begins, and the door to files that it is resumed from and written to."""

from __future__ import annotations

from dataclasses import dataclass, field
from time import monotonic
from typing import Any, Protocol

from skbayes_sgld._doors import Door
from skbayes_sgld._typing import Array
from skbayes_sgld.inference.plan import Plan
from skbayes_sgld.inference.settings import Settings
from skbayes_sgld.inference.strategies.task import Finding
from skbayes_sgld.sampling.run import Chains

FILES = Door("skbayes_sgld.checkpoints", "Files")


@dataclass(frozen=True)
class Origin:
    """Where a run begins.

    Attributes
    ----------
    seed : int
    positions : ndarray of shape (n_chains, n_params) or None
        Last positions of an earlier fit, where the chains begin.
    finding : Finding or None
        What was found against an earlier plan, which overflowed.
    begin : float
        When the work began, on the monotonic clock.
    """

    seed: int
    positions: Array | None = None
    finding: Finding | None = None
    begin: float = field(default_factory=monotonic)


class Journal(Protocol):
    """The files of a run: the one that it resumes, and the one that it is written to."""

    origin: Origin

    def resume(self, plan: Plan, most: int) -> Chains | None:
        """Steps made so far, None where nothing is resumed; raise unless the plan is the same.

        ``most`` is the largest number of draws a chain that it may reach.
        """

    def open(self, plan: Plan, chains: Chains | None) -> Chains | None:
        """Steps so far, written for the first time; None where nothing is written."""

    @property
    def due(self) -> bool:
        """Whether the run is to be written again."""

    def write(self, chains: Chains, finished: bool = False) -> None:
        """Write the steps so far."""

    def begin_again(self, origin: Origin) -> None:
        """Forget the steps so far: another plan begins."""

    def interrupted(self) -> KeyboardInterrupt:
        """Interrupt that names the file to resume from."""


def open_journal(settings: Settings, inputs: dict[str, Any], origin: Origin) -> Journal | None:
    """Files that the settings name, by which checkpoints come in; None where they name none."""
    if not settings.names_files:
        return None
    journal: Journal = FILES.open()(settings, inputs, origin)
    return journal

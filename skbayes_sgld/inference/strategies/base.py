"""A strategy: a way to sample a posterior."""

from __future__ import annotations

from typing import ClassVar

from skbayes_sgld.inference.plan import Plan
from skbayes_sgld.inference.planning.task import Task


class Strategy:
    """A way to sample a posterior: what it suits, and how it plans a run.

    Attributes
    ----------
    only : tuple of str
        Facts of a model, by their names in :class:`~skbayes_sgld.posterior.protocol.Facts`, one of
        which must hold; empty for a strategy of any model. A door has them instead of its class.
    """

    only: ClassVar[tuple[str, ...]] = ()

    @classmethod
    def suits(cls, task: Task) -> bool:
        """Whether the strategy suits the settings and the findings so far; by default it does.

        One that would override what the user gave asks for ``task.settings.left_to_tuning``. It is
        called only for models with one of the facts ``only``.
        """
        return True

    @classmethod
    def plan(cls, task: Task) -> Plan | Task:
        """Plan of a run; or the task, for the next strategy that suits.

        A finding added to the task rules out :class:`Langevin`; to leave all the others their
        turn, return the task as it is.
        """
        raise NotImplementedError(f"{cls.__name__} must define plan.")

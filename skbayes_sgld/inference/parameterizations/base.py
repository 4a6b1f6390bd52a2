"""A parameterization: coordinates in which a model is sampled."""

from __future__ import annotations

from typing import Any, ClassVar

from skbayes_sgld.inference.choices import Choice
from skbayes_sgld.inference.settings import Settings
from skbayes_sgld.posterior.base import BasePosterior
from skbayes_sgld.sampling.tuning.mode import Mode


class Parameterization:
    """Coordinates of some models: when they are better than others, and how they are made.

    Attributes
    ----------
    needs : str
        What a model must have, for the error of one that does not offer them.
    """

    needs: ClassVar[str]

    @classmethod
    def suits(cls, posterior: Any) -> bool:
        """Whether a model that offers the name of these coordinates is of their kind."""
        return True

    @classmethod
    def choose(
        cls, name: str, posterior: Any, settings: Settings
    ) -> tuple[BasePosterior, Mode | None, Choice] | None:
        """Posterior that "auto" takes, its mode and the reason; None if others are better."""
        reason = cls.reason(posterior, settings)
        if reason is None:
            return None
        return *cls.apply(posterior, settings), Choice(name, reason)

    @classmethod
    def reason(cls, posterior: Any, settings: Settings) -> str | None:
        """Reason for "auto" to take these coordinates; None if others are better."""
        raise NotImplementedError

    @classmethod
    def apply(cls, posterior: Any, settings: Settings) -> tuple[BasePosterior, Mode | None]:
        """Posterior in these coordinates, and its mode there if it is found on the way."""
        raise NotImplementedError


def takes_metric_and_rows(settings: Settings) -> bool:
    """Whether the metric is the curvature's, and steps may take all rows.

    Other metrics and minibatches refer to the coefficients themselves.
    """
    return settings.uses_curvature and settings.may_take_all_rows

"""The model's own coordinates."""

from __future__ import annotations

from typing import Any

from skbayes_sgld.inference.parameterizations.base import Parameterization
from skbayes_sgld.inference.settings import Settings
from skbayes_sgld.posterior.base import BasePosterior


class Centered(Parameterization):
    """The model's own coordinates, for all models whose prior learns no scale."""

    needs = "a prior without hyperparameters"

    @classmethod
    def reason(cls, posterior: Any, settings: Settings) -> str:
        """Why others are not taken, if the model offers some."""
        if len(posterior.facts.parameterizations) == 1:
            return "the model's own coordinates"
        if not settings.uses_curvature:
            return f"preconditioner={settings.preconditioner!r} is of the model's own coordinates"
        if not settings.may_take_all_rows:
            return "minibatches are of the model's own coordinates"
        return "the model's own coordinates"

    @classmethod
    def apply(cls, posterior: Any, settings: Settings) -> tuple[BasePosterior, None]:
        """The posterior itself."""
        return posterior, None

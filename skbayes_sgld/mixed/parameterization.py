"""The coordinates of mixed models: scales alone under normal noise, all parameters otherwise."""

from __future__ import annotations

from typing import Any

from skbayes_sgld.inference.parameterizations.base import Parameterization
from skbayes_sgld.inference.settings import Settings
from skbayes_sgld.mixed.collapsed import CollapsedPosterior
from skbayes_sgld.mixed.coordinates import standardise_mixed
from skbayes_sgld.posterior.base import BasePosterior
from skbayes_sgld.sampling.tuning.mode import Mode


class Integrated(Parameterization):
    """Scales and noise variance, with all coefficients integrated out."""

    needs = "group_effects or smooth_effects, normal noise and a normal prior"

    @classmethod
    def reason(cls, posterior: Any, settings: Settings) -> str | None:
        """Given these, all coefficients are normal; a temperature is of the joint density."""
        if settings.tau != 1.0 or not settings.may_take_all_rows:
            return None
        return "given scales and noise, all coefficients are normal and drawn exactly"

    @classmethod
    def apply(cls, posterior: Any, settings: Settings) -> tuple[BasePosterior, Mode | None]:
        """Posterior of scales and noise variance."""
        return CollapsedPosterior(posterior), None


class Standardised(Parameterization):
    """All parameters, standardised at the mode of scales and own parameters."""

    needs = "group_effects or smooth_effects"

    @classmethod
    def reason(cls, posterior: Any, settings: Settings) -> str:
        """They are always better than the model's own coordinates, which have funnels."""
        return "effects of labels with few rows are standardised by their scales"

    @classmethod
    def apply(cls, posterior: Any, settings: Settings) -> tuple[BasePosterior, Mode | None]:
        """Posterior in these coordinates, and its mode there."""
        return standardise_mixed(posterior, settings.tau)

"""The coordinates of mixed models: scales alone, all but the effects, or all parameters."""

from __future__ import annotations

from typing import Any

from skbayes_sgld.inference.choices import Choice
from skbayes_sgld.inference.parameterizations.base import Parameterization
from skbayes_sgld.inference.parameterizations.learned_scales import check_temperature_of_scales
from skbayes_sgld.inference.setting_checks import AUTO
from skbayes_sgld.inference.settings import Settings
from skbayes_sgld.mixed.by_label_fit import fit_by_label
from skbayes_sgld.mixed.collapsed import CollapsedPosterior
from skbayes_sgld.mixed.coordinates import standardise_mixed
from skbayes_sgld.mixed.crossed_fit import crossed_terms, fit_crossed
from skbayes_sgld.mixed.cubic import with_cubic
from skbayes_sgld.mixed.given_scales import MOST_EFFECTS
from skbayes_sgld.posterior.base import BasePosterior
from skbayes_sgld.sampling.tuning.mode import Mode


class Integrated(Parameterization):
    """Scales and noise variance, with all coefficients integrated out."""

    needs = "group_effects or smooth_effects, normal noise and a normal prior"

    @classmethod
    def reason(cls, posterior: Any, settings: Settings) -> str:
        """Given these, all coefficients are normal."""
        return "given scales and noise, all coefficients are normal and drawn exactly"

    @classmethod
    def apply(cls, posterior: Any, settings: Settings) -> tuple[BasePosterior, Mode | None]:
        """Posterior of scales and noise variance."""
        check_settings(settings)
        crossed = crossed_terms(posterior)
        fitted = fit_crossed(posterior, crossed) if crossed else None
        return fitted or CollapsedPosterior(posterior), None


class ByLabel(Parameterization):
    """All parameters but the effects, which are integrated out label by label."""

    needs = "group_effects with one term"

    @classmethod
    def choose(
        cls, name: str, posterior: Any, settings: Settings
    ) -> tuple[BasePosterior, None, Choice] | None:
        """Posterior without the effects, if polynomials are close to its likelihood."""
        check_settings(settings)
        fitted = fit_by_label(posterior)
        reason = "effects are integrated out label by label, and drawn given all other parameters"
        return None if fitted is None else (fitted, None, Choice(name, reason))


class Standardised(Parameterization):
    """All parameters, standardised at the mode of scales and own parameters."""

    needs = "group_effects or smooth_effects"

    @classmethod
    def reason(cls, posterior: Any, settings: Settings) -> str:
        """They are always better than the model's own coordinates, which have funnels."""
        if posterior.n_linear <= MOST_EFFECTS:
            return "coefficients and effects are standardised given their scales"
        return "effects of labels with few rows are standardised by their scales"

    @classmethod
    def apply(cls, posterior: Any, settings: Settings) -> tuple[BasePosterior, Mode | None]:
        """Posterior in these coordinates, and its mode there."""
        check_settings(settings)
        standardised, mode = standardise_mixed(posterior, settings.tau)
        return with_cubic(standardised), mode


def check_settings(settings: Settings) -> None:
    """Raise if the settings are not of a posterior with learned scales, or do not take all rows."""
    check_temperature_of_scales(settings, "group_effects and smooth_effects")
    if not settings.may_take_all_rows:
        name = "gradient" if settings.batch_size is AUTO else "batch_size"
        raise ValueError(
            f"{name}={getattr(settings, name)!r} asks for minibatches, and a model with "
            "group_effects or smooth_effects takes all rows at every step; set "
            f"{name}='auto', or leave these out."
        )

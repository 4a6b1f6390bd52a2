"""Coordinates in which a dispersion that may be 0 is nearly normal."""

from __future__ import annotations

from typing import Any

from skbayes_sgld._timings import stage
from skbayes_sgld.inference.choices import Choice
from skbayes_sgld.inference.parameterizations.base import Parameterization, takes_metric_and_rows
from skbayes_sgld.inference.settings import Settings
from skbayes_sgld.posterior.base import BasePosterior
from skbayes_sgld.posterior.parameterizations.quantiles import in_quantiles
from skbayes_sgld.posterior.propriety import check_mode
from skbayes_sgld.sampling.tuning.mode import Mode, NoModeError, newton_mode

# sd of a log dispersion below which it is nearly normal itself: at 0.08 (2,000 rows) steps of 1
# are without bias in both coordinates, at 0.3 (200 rows) only in quantiles
_KNOWN = 0.1


class Quantiles(Parameterization):
    """A dispersion or correlation by its quantiles, if data hardly exclude that it is 0.

    The smallest effective sample size a second rises by 6 to 20 times (4,360 rows of 32 columns and
    27,765 of 11, of counts that vary no more than Poisson's): steps of SGLD are without bias.
    """

    needs = "a dispersion of counts or a correlation of totals"

    @classmethod
    @stage("mode")
    def choose(
        cls, name: str, posterior: Any, settings: Settings
    ) -> tuple[BasePosterior, Mode | None, Choice] | None:
        """Quantiles of a parameter of which little is known; else its own coordinate."""
        if not takes_metric_and_rows(settings):
            return None
        try:
            mode = newton_mode(posterior, posterior.start())
        except NoModeError:
            return None
        check_mode(posterior, mode.theta)
        sd, called = float(mode.metric.marginal_sd[-1]), posterior.own_parameters[0].name
        if sd < _KNOWN:
            return posterior, mode, Choice("centered", f"the {called} is known to {sd:.0%}")
        transformed = _transformed(posterior, mode, settings)
        if transformed is None:
            return posterior, mode, Choice("centered", f"the {called} has no quantiles")
        return *transformed, Choice(name, f"the logarithm of the {called} has a long tail")

    @classmethod
    def apply(cls, posterior: Any, settings: Settings) -> tuple[BasePosterior, Mode | None]:
        """Posterior in these coordinates, and its mode there."""
        mode = newton_mode(posterior, posterior.start())
        check_mode(posterior, mode.theta)
        transformed = _transformed(posterior, mode, settings)
        if transformed is None:
            raise ValueError(
                f"parameterization='quantiles' needs {cls.needs}; set parameterization='auto' or "
                "'centered'."
            )
        return transformed


def _transformed(
    posterior: Any, mode: Mode, settings: Settings
) -> tuple[BasePosterior, Mode] | None:
    """Posterior in quantiles, and its mode there; None if the quantiles are not determined."""
    sd = float(mode.metric.marginal_sd[-1])
    transformed = in_quantiles(posterior, mode.theta, sd, settings.tau)
    if transformed is None:
        return None
    start = mode.theta.copy()
    start[-1] = 0.0
    return transformed, newton_mode(transformed, start)

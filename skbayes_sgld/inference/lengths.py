"""Lengths of a run: draws, steps before the first, steps from one to the next."""

from __future__ import annotations

from math import ceil

from skbayes_sgld.inference.choices import GIVEN, Choice
from skbayes_sgld.inference.settings import Settings
from skbayes_sgld.posterior.base import BasePosterior
from skbayes_sgld.sampling.tuning.thresholds import THRESHOLDS
from skbayes_sgld.sampling.tuning.tune import Tuned, choose_spacing

_PUBLISHED_THIN = 10  # steps from draw to draw where nothing is known of the posterior
_SETTLED = 0.06  # of a chain's draws: most of the burn-in of four walkers that are settled already
_FEWEST_DRAWS = 16  # that a chain makes, whatever they cost


def choose_number(
    tuned: Tuned, settings: Settings, posterior: BasePosterior
) -> tuple[int, dict[str, Choice]]:
    """Number of draws of each chain; a choice only where it is not what was asked for."""
    wanted, size = settings.n_draws, settings.n_chains * len(posterior.constrained_names)
    held, made = int(THRESHOLDS.max_numbers // size), ceil(tuned.share * wanted)
    n_draws = max(min(wanted, held, made), min(wanted, _FEWEST_DRAWS))
    if n_draws == wanted:
        return wanted, {}
    limit = "memory" if held < made else "time"
    why = (
        f"{wanted:,} of {len(posterior.constrained_names):,} parameters would take too much {limit}"
    )
    return n_draws, {"n_draws": Choice(n_draws, why)}


def choose_lengths(
    tuned: Tuned, settings: Settings, n_draws: int, goes_on: bool
) -> tuple[int, int, dict[str, Choice]]:
    """Burn-in and thinning, in steps."""
    n_burnin, thin = settings.n_burnin, settings.thin
    if tuned.time is None:
        spacing, why_thin = _PUBLISHED_THIN, "nothing is known of the posterior's widths"
        burnin, why_burnin = n_draws * (thin or spacing), "half of the run"
    else:
        burnin, spacing = choose_spacing(tuned.time)
        why_thin = f"{tuned.time:.3g} steps to an independent draw"
        if tuned.most_spaced < spacing:
            spacing = tuned.most_spaced
            why_thin += ", and more steps a draw would take too long"
        elif spacing + 1 <= tuned.time:
            why_thin += "; closer draws cost less"
        settled = tuned.run.dynamics.whitened is not None
        burnin = min(burnin, (ceil(_SETTLED * n_draws) if settled else n_draws) * (thin or spacing))
        why_burnin = "ten independent draws' worth, at most half of the run"
    if settings.temperature.n_hot:
        burnin += settings.temperature.n_hot
        why_burnin += " after the temperature has settled"
    if goes_on:
        burnin, why_burnin = 0, "the chains of the last fit go on"
    return (
        burnin if n_burnin is None else n_burnin,
        thin or spacing,
        {
            "n_burnin": Choice(burnin, why_burnin) if n_burnin is None else Choice(n_burnin, GIVEN),
            "thin": Choice(spacing, why_thin) if thin is None else Choice(thin, GIVEN),
        },
    )

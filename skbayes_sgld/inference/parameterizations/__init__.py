"""The coordinates in which a model is sampled: the first of the list that is better.

Each file says whom its coordinates suit, and makes them by a map of
``posterior/parameterizations/``, about the model's mode.
"""

from __future__ import annotations

from typing import Any

from skbayes_sgld._doors import Door
from skbayes_sgld.inference.choices import Choice
from skbayes_sgld.inference.parameterizations.base import Parameterization
from skbayes_sgld.inference.parameterizations.centered import Centered
from skbayes_sgld.inference.parameterizations.learned_scales import LearnedScales
from skbayes_sgld.inference.parameterizations.noncentered import Noncentered
from skbayes_sgld.inference.parameterizations.unequal_noise import UnequalNoise
from skbayes_sgld.inference.setting_checks import AUTO, PARAMETERIZATION_NAMES
from skbayes_sgld.inference.settings import Settings
from skbayes_sgld.posterior.base import BasePosterior
from skbayes_sgld.sampling.tuning.mode import Mode

Kind = type[Parameterization]

PARAMETERIZATIONS: list[tuple[str, Kind | Door]] = [
    ("integrated", Door("skbayes_sgld.mixed.parameterization", "Integrated")),
    ("by_label", Door("skbayes_sgld.mixed.parameterization", "ByLabel")),
    ("standardised", Door("skbayes_sgld.mixed.parameterization", "Standardised")),
    ("row_space", Door("skbayes_sgld.wide_rows.parameterization", "RowSpace")),
    ("noncentered", LearnedScales),
    ("noncentered", UnequalNoise),
    ("noncentered", Noncentered),
    ("quantiles", Door("skbayes_sgld.inference.parameterizations.quantiles", "Quantiles")),
    ("centered", Centered),
]
"""All parameterizations by their names, in order of preference."""


def reparameterize(posterior: Any, settings: Settings) -> tuple[BasePosterior, Mode | None, Choice]:
    """Posterior in the coordinates to be sampled, its mode there, if known, and the reason.

    Raises
    ------
    ValueError
        If the parameterization is not available for this model.
    """
    given, offered = settings.parameterization, posterior.facts.parameterizations
    if given is not AUTO and given not in offered:
        needs = [
            _opened(entry).needs for name, entry in reversed(PARAMETERIZATIONS) if name == given
        ]
        other = next(name for name in offered if name in PARAMETERIZATION_NAMES)
        raise ValueError(
            f"parameterization={given!r} needs {', or '.join(needs)}; set parameterization='auto' "
            f"or {other!r}."
        )
    for name, entry in PARAMETERIZATIONS:
        if name not in offered or given not in (AUTO, name):
            continue
        kind = _opened(entry)
        if not kind.suits(posterior):
            continue
        if given is not AUTO:
            return *kind.apply(posterior, settings), Choice.by_user(given)
        chosen = kind.choose(name, posterior, settings)
        if chosen is not None:
            return chosen
    raise RuntimeError(f"no parameterization of {offered} suits {posterior.called}.")


def _opened(entry: Kind | Door) -> Any:
    return entry.open() if isinstance(entry, Door) else entry

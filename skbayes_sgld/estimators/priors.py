"""The parameter ``prior``: a name, "auto", an instance or a dict by column; and the prior of rows.

Data flow: :func:`read_prior` makes a :class:`GivenPrior` of the parameter, and its method
:meth:`GivenPrior.of_columns` the prior of the columns of a fit, with the reason for it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from skbayes_sgld._checks import column_position, escaped
from skbayes_sgld._components import Component, Registry, resolve
from skbayes_sgld.inference.choices import GIVEN, Choice
from skbayes_sgld.likelihoods import Likelihood
from skbayes_sgld.priors import PRIORS
from skbayes_sgld.priors.by_column import LearnedByColumn, Part, joined

_ACCEPTED = "a name of a column, its position, or a tuple of these"


@dataclass(frozen=True)
class GivenPrior:
    """Priors that the user gives to all columns, or to some of them by a dict.

    Attributes
    ----------
    parameter : str, Prior or dict
        The estimator's parameter, unchanged.
    named : dict
        Prior of each of the dict's keys that has one; empty unless the parameter is a dict.
    others : Prior or None
        Prior of all other columns; None if it is "auto".
    registry : Registry
        Priors by name.
    """

    parameter: Any
    named: dict[Any, Any]
    others: Any
    registry: Registry[Any]

    def of_columns(
        self,
        d: int,
        names: Sequence[str] | None,
        places: Mapping[Any, int] | None,
        choose: Callable[[], Choice],
    ) -> tuple[Any, Choice]:
        """Prior of all d columns, which may have names, and its entry in the plan.

        ``places`` are those of columns among the d by their names and positions in X, if X has
        others besides. ``choose`` is called if a column is left to "auto": it chooses the name of
        a prior.
        """
        positions, automatic, others = self._positions(d, names, places), None, self.others
        named_at = np.concatenate([np.arange(0), *positions.values()])
        others_at = np.setdiff1d(np.arange(d), named_at)
        if others is None and (others_at.size or not d):
            automatic = choose()
            others = self.registry[automatic.value]()
        if not self.named:
            name = self.parameter if isinstance(self.parameter, str) else type(others).__name__
            return others, automatic or Choice.by_user(name)
        parts = []
        for key, at in positions.items():
            self.named[key].check(len(at), f"prior[{key!r}]")
            parts.append(Part(repr(key), at, self.named[key]))
        if others_at.size:
            parts.append(Part("other columns", others_at, others))
        why = f"{GIVEN} for {', '.join(map(repr, self.named))}"
        if automatic is not None:
            why += f"; {automatic.value!r} for the others: {automatic.why}"
        return _together(parts, d), Choice.by_user("by column", why)

    def check_noise(self, likelihood: Likelihood) -> None:
        """Raise if a prior that the user gives is scaled by noise that the model does not have."""
        for key, prior in self.named.items():
            check_noise_scales(f"prior[{key!r}]", self.parameter[key], prior, likelihood)
        if self.others is not None and not isinstance(self.parameter, Mapping):
            check_noise_scales("prior", self.parameter, self.others, likelihood)

    def _positions(
        self, d: int, names: Sequence[str] | None, places: Mapping[Any, int] | None
    ) -> dict[Any, NDArray[np.intp]]:
        """Positions of each key's columns; raise, naming the column, if X has none or two keys."""
        found: dict[Any, NDArray[np.intp]] = {}
        taken: dict[int, Any] = {}
        for key in self.named:
            each = key if isinstance(key, tuple) else (key,)
            at = [_position(column, d, names, places) for column in each]
            for j in at:
                if j in taken:
                    called = f"{j} ({escaped(names[j])})" if names is not None else str(j)
                    raise ValueError(
                        f"prior names column {called} twice, in {taken[j]!r} and {key!r}; give "
                        "each column one prior."
                    )
                taken[j] = key
            found[key] = np.array(at)
        return found


def _position(
    column: Any, d: int, names: Sequence[str] | None, places: Mapping[Any, int] | None
) -> int:
    """Place of a column among those with coefficients; raise, naming it, if it has none."""
    if places is None:
        return column_position(column, d, names, "prior")
    if isinstance(column, bool) or column not in places:
        named = [key for key in places if isinstance(key, str)]
        known = named or [key for key in places if key >= 0]
        raise ValueError(
            f"prior has the column {column!r}, which has no coefficient: it holds labels of "
            f"group_effects, or is not in X; the columns of numbers are {known}."
        )
    return places[column]


def _together(parts: list[Part], d: int) -> Any:
    """Prior of all d columns, from the priors of some each."""
    (first, *rest) = parts
    if not rest and np.array_equal(first.columns, np.arange(d)):
        return first.prior
    learns = any(part.prior.hierarchical for part in parts)
    return LearnedByColumn(parts) if learns else joined(parts)


def read_prior(parameter: Any, registry: Registry[Any], default: Any) -> GivenPrior:
    """Priors that the parameter gives, checked.

    ``default`` is the prior of the columns that a dict leaves out, or gives "auto". If it is
    "auto" itself, the parameter may be so too.
    """
    also = ("auto",) if isinstance(default, str) and default == "auto" else ()

    def resolved(value: Any) -> Any:
        if also and isinstance(value, str) and value == "auto":
            return None
        return resolve(value, registry, "prior", also)

    if not isinstance(parameter, Mapping):
        return GivenPrior(parameter, {}, resolved(parameter), registry)
    named = {}
    for key, prior in parameter.items():
        argument = f"prior[{key!r}]"
        for column in key if isinstance(key, tuple) and key else (key,):
            if isinstance(column, bool) or not isinstance(column, (str, Integral)):
                raise TypeError(f"{argument} is not of a column of X; a key is {_ACCEPTED}.")
        if not (isinstance(prior, str) and prior == "auto"):
            named[key] = resolve(prior, registry, argument, ("auto",))
    return GivenPrior(parameter, named, resolved(default), registry)


def check_noise_scales(name: str, given: Any, prior: Any, likelihood: Likelihood) -> None:
    """Raise if the noise scales the prior, and the model has no normal noise that it infers.

    ``name`` is the argument in errors, and ``given`` its value.
    """
    if not prior.scaled_by_noise or likelihood.quadratic:
        return
    if likelihood.infers_noise:
        raise ValueError(
            f"{name}={given!r} is conjugate to normal noise, and the noise of this model is "
            f"{type(likelihood).__name__}; set {name}='normal'."
        )
    unscaled = sorted(repr(k) for k, v in PRIORS.items() if not v.scaled_by_noise)
    raise ValueError(
        f"{name}={given!r} is scaled by the noise, and this model has none; choose one of "
        f"{', '.join(unscaled)}."
    )


# ---- parameters of parameters -------------------------------------------------------------------


def _label(key: Any) -> str:
    """Name of a key in nested parameters: ``"age"``, ``"0"``, ``"age,bmi"``."""
    return ",".join(map(str, key)) if isinstance(key, tuple) else str(key)


def nested_params(prior: Mapping[Any, Any]) -> dict[str, Any]:
    """Parameters of the priors: ``prior__age``, ``prior__age__scale``, ..."""
    found = {}
    for key, value in prior.items():
        name = f"prior__{_label(key)}"
        found[name] = value
        if isinstance(value, Component):
            found |= {f"{name}__{k}": v for k, v in value.get_params().items()}
    return found


def with_params(
    prior: Mapping[Any, Any], params: dict[str, Any], registry: Registry[Any]
) -> dict[Any, Any]:
    """Copy of the priors with other parameters (``age__scale``) or another prior (``age``)."""
    new, keys = dict(prior), {_label(key): key for key in prior}
    # a column's name may contain two underscores, like those of ColumnTransformer
    found = {
        name: max((k for k in keys if name == k or name.startswith(f"{k}__")), key=len, default="")
        for name in params
    }
    for name in sorted(params, key=len):  # a prior is set before its parameters
        if name not in keys and not found[name]:
            listed = ", ".join(keys) or "none"
            raise ValueError(
                f"prior__{name}={params[name]!r} has nothing to be set on: the columns with a "
                f"prior of their own are {listed}; give prior a key for the column."
            )
        key, part = keys[found[name]], name.removeprefix(f"{found[name]}__")
        if name == found[name]:
            new[key] = params[name]
            continue
        current = new[key]
        if isinstance(current, str):
            current = "normal" if current == "auto" else current
            current = resolve(current, registry, f"prior[{key!r}]")
        new[key] = clone(current).set_params(**{part: params[name]})
    return new

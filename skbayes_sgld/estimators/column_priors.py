"""Priors of single columns: ``prior={"age": Normal(scale=1.0), "bmi": "laplace"}``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from skbayes_sgld._checks import column_position, escaped
from skbayes_sgld._components import Component, Registry, resolve
from skbayes_sgld.priors.by_column import LearnedByColumn, Part, joined

_ACCEPTED = "a name of a column, its position, or a tuple of these"


@dataclass(frozen=True)
class ColumnPriors:
    """Priors of the columns that the user names, and of all others.

    Attributes
    ----------
    given : dict
        Prior of each of the user's keys.
    others : Prior
        Prior of the columns that are not named.
    """

    given: dict[Any, Any]
    others: Any

    def positions(self, d: int, names: Sequence[str] | None) -> dict[Any, NDArray[np.intp]]:
        """Positions of each key's columns; the d columns may have names.

        Raises
        ------
        ValueError
            If X does not have a column, or two keys name the same one; the error names it.
        """
        found: dict[Any, NDArray[np.intp]] = {}
        taken: dict[int, Any] = {}
        for key in self.given:
            each = key if isinstance(key, tuple) else (key,)
            at = [column_position(column, d, names, "prior") for column in each]
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

    def others_at(self, d: int, names: Sequence[str] | None) -> NDArray[np.intp]:
        """Columns that are not named."""
        named = [np.arange(0), *self.positions(d, names).values()]
        return np.setdiff1d(np.arange(d), np.concatenate(named))

    def bound(self, d: int, names: Sequence[str] | None) -> Any:
        """Prior of all d columns together."""
        parts = []
        for key, at in self.positions(d, names).items():
            self.given[key].check(len(at), f"prior[{key!r}]")
            parts.append(Part(repr(key), at, self.given[key]))
        others = self.others_at(d, names)
        if len(others):
            parts.append(Part("other columns", others, self.others))
        (first, *rest) = parts
        if not rest and np.array_equal(first.columns, np.arange(d)):
            return first.prior
        learns = any(part.prior.hierarchical for part in parts)
        return LearnedByColumn(parts) if learns else joined(parts)


def resolve_columns(value: Mapping[Any, Any], registry: Registry[Any], others: Any) -> ColumnPriors:
    """Priors for the names in ``value``; ``others`` is the prior of columns that it does not name.

    ``"auto"`` stands for the prior of the others.
    """
    given = {}
    for key, prior in value.items():
        argument = f"prior[{key!r}]"
        for column in key if isinstance(key, tuple) and key else (key,):
            if isinstance(column, bool) or not isinstance(column, (str, Integral)):
                raise TypeError(f"{argument} is not of a column of X; a key is {_ACCEPTED}.")
        if not (isinstance(prior, str) and prior == "auto"):
            given[key] = resolve(prior, registry, argument, ("auto",))
    return ColumnPriors(given, others)


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

"""Components: the parts of an estimator that have names, such as priors and samplers.

A user gives each as a name or as an instance. The registry of its family, a dict in the family's
``__init__`` or at the foot of its file, maps names to classes; :func:`resolve` makes the component.
"""

from __future__ import annotations

from collections import ChainMap, UserDict
from functools import cache
from typing import Any, TypeVar

import numpy as np
from sklearn.base import BaseEstimator, clone


class Component(BaseEstimator):
    """Base of every component: cloneable, with named parameters that :func:`resolve` checks.

    Subclasses are decorated with ``@dataclass(eq=False, repr=False)``: ``get_params``,
    ``set_params`` and ``clone`` read the generated constructor. (A frozen dataclass would break
    ``clone``.)
    """

    @classmethod
    @cache
    def _get_param_names(cls) -> list[str]:
        """Names of the parameters, read from the constructor once per class."""
        names: list[str] = super()._get_param_names()
        return names

    def check(self) -> None:
        """Raise ValueError or TypeError if a parameter is out of range."""

    def check_as(self, argument: str) -> None:
        """Check; errors may name the argument, as a prior serves slopes and intercepts."""
        self.check()

    def _undefined(self, member: str) -> NotImplementedError:
        """Error of a member that a subclass must define."""
        return NotImplementedError(f"{type(self).__name__} must define {member}.")


T = TypeVar("T", bound=Component)


class Registry(UserDict[str, type[T]]):
    """Classes of a family of components, by name.

    Parameters
    ----------
    family : type
    *parts : Registry
        Registries whose members belong to this one too, including members added later.
    **classes : type
    """

    def __init__(self, family: type[T], *parts: Registry[Any], **classes: type[T]) -> None:
        super().__init__()
        self.data = ChainMap(dict(classes), *(part.data for part in parts))  # type: ignore[assignment]
        self.family = family

    def __setitem__(self, name: str, item: type[T]) -> None:
        """Add a class."""
        if isinstance(item, Component):
            raise TypeError(f"{name!r} is given {item!r}; enter the class, without brackets.")
        super().__setitem__(name, item)


def resolve(value: Any, registry: Registry[T], argument: str, also: tuple[str, ...] = ()) -> T:
    """Component that ``value`` names, or a copy of the one that it is.

    Parameters
    ----------
    value : str or Component
        What the user wrote.
    registry : Registry
        Classes of the family, by the names that are accepted.
    argument : str
        Name of the argument in errors.
    also : tuple of str, default=()
        Further names, such as "auto", that the argument takes; listed in errors.

    Returns
    -------
    component : Component
        Checked copy; the user's instance is never changed.

    Raises
    ------
    ValueError
        When the name is not in the registry, or a parameter is out of range.
    TypeError
        When ``value`` is neither a name nor an instance of the registry's family.
    """
    names = ", ".join(map(repr, sorted([*registry, *also])))
    if isinstance(value, str):
        kind = registry.get(value)
        if kind is None:
            raise ValueError(f"{argument}={value!r} is not known; choose one of {names}.")
        component = kind()
    elif isinstance(value, registry.family):
        component = clone(value)
        for name, given in component.get_params(deep=False).items():
            if isinstance(given, np.generic):  # a small NumPy number may overflow
                setattr(component, name, given.item())
    else:
        raise TypeError(
            f"{argument}={value!r} is not accepted; give one of the names {names}, "
            f"or an instance of a {registry.family.__name__}."
        )
    component.check_as(argument)
    return component

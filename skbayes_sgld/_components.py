"""Users' arguments: components by name, checked numbers, and random streams from a seed.

Components are the small parts (priors, schedules, samplers, ...) that estimators are built from,
each given as a name or as an instance. The registry of each family, a dict in the family's
``__init__`` or at the foot of its file, maps names to classes. :func:`resolve` makes components of
users' arguments. The checks raise errors that name the argument. ``random_state`` gives a seed, and
the seed gives the streams of the chains: a stream depends on the seed and its chain's number alone.
"""

from __future__ import annotations

import re
from collections import ChainMap, UserDict
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache, cached_property
from numbers import Integral
from os import fspath
from typing import Any, Self, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.utils import check_random_state

Array = NDArray[Any]

SMALLEST, LARGEST = 1e-50, 1e50  # sizes of data whose products of four stay in floats' range

_LARGEST_COUNT = 2**53  # beyond which floats skip whole numbers
_START, _INDEX, _NOISE = range(3)  # what a stream of a chain is for

RandomSource = int | np.random.RandomState | np.random.Generator | None


# ---- components ---------------------------------------------------------------------------


class Component(BaseEstimator):
    """Base of every component: cloneable, with named parameters that :func:`resolve` checks.

    Subclasses are decorated with ``@dataclass(eq=False, repr=False)``: ``get_params``,
    ``set_params`` and ``clone`` read the generated constructor. (A frozen dataclass would break
    ``clone``.)
    """

    @classmethod
    @cache
    def _get_param_names(cls) -> list[str]:
        """Names of the parameters, read from the constructor once a class."""
        names: list[str] = super()._get_param_names()
        return names

    def check(self) -> None:
        """Raise ValueError or TypeError where a parameter is out of range."""


T = TypeVar("T", bound=Component)


class Registry(UserDict[str, type[T]]):
    """The classes of a family of components, by name.

    Parameters
    ----------
    family : type
    *parts : Registry
        Registries whose members belong to this one too, including those entered later.
    **classes : type
    """

    def __init__(self, family: type[T], *parts: Registry[Any], **classes: type[T]) -> None:
        super().__init__()
        self.data = ChainMap(dict(classes), *(part.data for part in parts))  # type: ignore[assignment]
        self.family = family

    def check(self, component: T, argument: str) -> None:
        """Raise where a parameter of ``component`` is out of range."""
        component.check()


class ByColumn(Component):
    """A component whose parameters are numbers for each column of X, or single ones for all.

    A scale may be ``"auto"``, which the data then set.
    """

    def check(self, n_features: int | None = None, argument: str = "prior") -> None:
        """Raise where a parameter is out of range, or is not one number per column of X."""
        for name, value in self._by_column().items():
            if name == "scale" and isinstance(value, str):
                if value != "auto":
                    raise ValueError(
                        f"{argument}.scale={value!r} is not known; give 'auto', a positive number "
                        "or one for each column of X."
                    )
                continue
            positive = name == "scale"
            check_array_or_number(value, f"{argument}.{name}", n_features, positive=positive)

    @property
    def automatic(self) -> bool:
        """Whether the data set the scale."""
        return isinstance(self._by_column().get("scale"), str)

    def for_data(self, unit: float, spread: float | Array) -> Self:
        """Component whose ``scale="auto"`` is ``unit / spread``; itself with a scale of its own.

        Parameters
        ----------
        unit : float
            Size of an effect that one spread of a column may have, in units of the predictor.
        spread : float or ndarray of shape (d,)
            Spread of each column.
        """
        if not self.automatic:
            return self
        return clone(self).set_params(scale=unit / spread)

    def _by_column(self) -> dict[str, Any]:
        """Parameters that are single numbers, or one number per column of X."""
        return self.get_params(deep=False)


C = TypeVar("C", bound=ByColumn)


class ByColumnRegistry(Registry[C]):
    """A registry whose errors name the argument: priors serve slopes and intercepts."""

    def check(self, component: C, argument: str) -> None:
        """Raise where a parameter of ``component`` is out of range."""
        component.check(argument=argument)


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
    names = ", ".join(repr(name) for name in sorted([*registry, *also]))
    if isinstance(value, str):
        if value not in registry:
            raise ValueError(f"{argument}={value!r} is not known; choose one of {names}.")
        component = registry[value]()
    elif isinstance(value, registry.family):
        component = clone(value)
    else:
        raise TypeError(
            f"{argument}={value!r} is not accepted; give one of the names {names}, "
            f"or an instance of a {registry.family.__name__}."
        )
    registry.check(component, argument)
    return component


# ---- numbers ------------------------------------------------------------------------------


def check_number(
    value: Any,
    argument: str,
    *,
    low: float = -np.inf,
    high: float = np.inf,
    closed: str = "neither",
    integer: bool = False,
    any_size: bool = False,
) -> None:
    """Raise where ``value`` is not a number in the interval from ``low`` to ``high``.

    Parameters
    ----------
    value : object
        What the user wrote.
    argument : str
        Name of the argument in errors.
    low, high : float, default=-inf and inf
        Ends of the interval.
    closed : {"neither", "left", "right", "both"}, default="neither"
        Ends that belong to the interval.
    integer : bool, default=False
        Whether ``value`` must be a whole number.
    any_size : bool, default=False
        Whether its square may leave the range of floating point numbers.

    Raises
    ------
    TypeError
        When ``value`` is not a number, or not a whole one.
    ValueError
        When it is out of range.
    """
    kind = "a whole number" if integer else "a number"
    left, right = closed in ("left", "both"), closed in ("right", "both")
    bounds = f"{'[' if left else '('}{low:g}, {high:g}{']' if right else ')'}"
    accepted = f"it must be {kind} in {bounds}"
    # fractions and the like pass for real numbers, but NumPy cannot reckon with them
    family: Any = Integral if integer else (int, float, np.integer, np.floating)
    if not isinstance(value, family) or isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{argument}={value!r} is not {kind}; {accepted}.")
    # in half precision the ends of the interval would overflow
    size = float(value) if isinstance(value, np.floating) else value
    inside = (size >= low if left else size > low) and (size <= high if right else size < high)
    if not inside:
        raise ValueError(f"{argument}={value!r} is out of range; {accepted}.")
    if integer and abs(value) > _LARGEST_COUNT:
        raise ValueError(
            f"{argument}={value!r} is out of range; whole numbers must be within {_LARGEST_COUNT}."
        )
    least, most = SMALLEST**2, LARGEST**2
    if not (integer or any_size or value == 0 or least <= abs(float(value)) <= most):
        raise ValueError(
            f"{argument}={value!r} is out of range; its size must be in [{least:g}, {most:g}], "
            "beyond which squares leave the range of floating point numbers."
        )


def as_int(value: Any) -> Any:
    """A whole number as Python's int, since one of NumPy's may overflow; all else as it is."""
    whole = isinstance(value, Integral) and not isinstance(value, (bool, np.bool_))
    return int(value) if whole else value


def check_flag(value: Any, argument: str) -> bool:
    """A bool; raise where the value is something else."""
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{argument}={value!r} is not accepted; give True or False.")
    return bool(value)


def check_array_or_number(
    value: Any, argument: str, size: int | None, *, positive: bool = False
) -> None:
    """Raise where ``value`` is neither one number nor a vector of ``size`` numbers."""
    array = array_of(value)
    if array.dtype.kind not in "fiu":
        raise TypeError(f"{argument}={value!r} is not a number or an array of numbers.")
    if not np.all(np.isfinite(array)) or (positive and np.any(array <= 0)):
        accepted = "positive and finite" if positive else "finite"
        raise ValueError(f"{argument}={value!r} is out of range; it must be {accepted}.")
    sizes = np.abs(array[array != 0].astype(float))
    if sizes.size and not SMALLEST**2 <= sizes.min() <= sizes.max() <= LARGEST**2:
        raise ValueError(
            f"{argument}={value!r} is out of range; sizes must be in [{SMALLEST**2:g}, "
            f"{LARGEST**2:g}], beyond which squares leave the range of floating point numbers."
        )
    if array.ndim > 1 or (array.ndim == 1 and size is not None and array.size != size):
        wanted = "a vector" if size is None else f"a vector of {size}, one per column of X"
        raise ValueError(
            f"{argument} has shape {array.shape}; it must be a single number or {wanted}."
        )


def array_of(value: Any) -> Any:
    """Array of a value; of objects where its rows have different lengths."""
    try:
        return np.asarray(value)
    except ValueError:
        return np.asarray(None)


@contextmanager
def naming(*arguments: str) -> Iterator[None]:
    """Put the names in front of errors that name none of the arguments."""
    try:
        yield
    except (TypeError, ValueError) as error:
        message = str(error)
        if any(re.search(rf"\b{name}\b", message) for name in arguments):
            raise
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"{' and '.join(arguments)}: {message}") from None


def printable(text: Any) -> str:
    """Text of a file on one line of a message: escapes stand for what a terminal would obey."""
    line = " ".join(str(text).split())
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in line)


def check_path(value: Any, argument: str) -> None:
    """Raise where no file can have such a path."""
    if "\0" in fspath(value):
        raise ValueError(
            f"{argument}={value!r} has a null character, which no path has; give another."
        )


# ---- random numbers -----------------------------------------------------------------------


def as_random_state(random_state: Any) -> np.random.RandomState:
    """RandomState from a seed or from a Generator, which advances; a RandomState itself."""
    check_seed(random_state)
    if isinstance(random_state, np.random.Generator):
        entropy = random_state.integers(2**32, size=4, dtype=np.uint32)
        return np.random.RandomState(np.random.MT19937(np.random.SeedSequence(entropy.tolist())))
    return check_random_state(random_state)


def draw_seed(random_state: Any) -> int:
    """Seed of a run; a RandomState or Generator advances."""
    return int(as_random_state(random_state).randint(np.iinfo(np.int32).max))


def check_seed(value: Any) -> None:
    """Raise where ``random_state`` seeds nothing; nothing advances."""
    if isinstance(value, (np.random.Generator, np.random.RandomState)):
        return
    if isinstance(value, Integral) and 0 <= int(value) < 2**32:  # without a generator of it
        return
    try:
        check_random_state(value)
    except (TypeError, ValueError):
        error = ValueError if isinstance(value, (int, float, np.number)) else TypeError
        raise error(
            f"random_state={value!r} is not accepted; give None, a whole number in [0, 2**32 - 1], "
            "a numpy.random.RandomState or a numpy.random.Generator."
        ) from None


class ChainStreams:
    """The streams of one chain: one for minibatches, one for the injected noise."""

    def __init__(self, seed: int, chain: int) -> None:
        self._of = seed, chain
        self._noise = _generator(seed, chain, _NOISE)

    @cached_property
    def _index(self) -> np.random.Generator:
        # made where rows are drawn: sixty-four walkers that take all of them have no use for it
        return _generator(*self._of, _INDEX)

    @classmethod
    def of(cls, generator: np.random.Generator) -> ChainStreams:
        """Streams that are both one generator."""
        streams = cls.__new__(cls)
        vars(streams).update(_noise=generator, _index=generator)
        return streams

    @property
    def state(self) -> dict[str, Any]:
        """State of both streams, in numbers and words that JSON can hold."""
        streams = {"index": self._index, "noise": self._noise}
        return {name: stream.bit_generator.state for name, stream in streams.items()}

    @classmethod
    def resumed(cls, state: dict[str, Any]) -> ChainStreams:
        """Streams that go on from a state."""
        streams = cls(0, 0)
        streams._index.bit_generator.state = state["index"]
        streams._noise.bit_generator.state = state["noise"]
        return streams

    def normals(self, n_steps: int, n_params: int) -> Array:
        """Standard normals ``(n_steps, n_params)``."""
        return self._noise.standard_normal((n_steps, n_params))

    def rows(self, n_steps: int, n_samples: int, batch_size: int, replacement: bool) -> Array:
        """Rows of each step's minibatch ``(n_steps, batch_size)``."""
        if replacement:
            return self._index.integers(0, n_samples, size=(n_steps, batch_size))
        if batch_size * batch_size > 8 * n_samples:
            keys = self._index.random((n_steps, n_samples))
            return np.argpartition(keys, batch_size - 1, axis=1)[:, :batch_size]
        return _floyd(self._index.random((n_steps, batch_size)), n_samples)


def _generator(seed: int, chain: int, purpose: int) -> np.random.Generator:
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(chain, purpose)))


def start_generators(seed: int, chains: range) -> list[np.random.Generator]:
    """Generators of the chains' starts, one a chain."""
    return [_generator(seed, c, _START) for c in chains]


def start_normals(seed: int, chains: range, n_params: int) -> Array:
    """Standard normals ``(C, n_params)`` for the chains' starting points."""
    rows = [g.standard_normal(n_params) for g in start_generators(seed, chains)]
    return np.array(rows).reshape(len(chains), n_params)


def _floyd(uniforms: Array, n_samples: int) -> Array:
    """Random subsets, one a row of uniforms, by Floyd's algorithm (Bentley & Floyd 1987)."""
    n_steps, size = uniforms.shape
    chosen = np.empty((n_steps, size), dtype=np.int64)
    for j in range(size):
        last = n_samples - size + j
        candidate = (uniforms[:, j] * (last + 1)).astype(np.int64)
        taken = (chosen[:, :j] == candidate[:, None]).any(axis=1)
        chosen[:, j] = np.where(taken, last, candidate)
    return chosen

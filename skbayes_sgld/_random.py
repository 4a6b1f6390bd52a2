"""Random numbers from what users give as ``random_state``."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

RandomSource = int | np.random.RandomState | np.random.Generator | None


def as_random_state(random_state: Any) -> np.random.RandomState:
    """RandomState from a seed, from a generator that advances by it, or the one that is given."""
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

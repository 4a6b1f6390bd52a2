"""Random numbers: ``random_state`` gives a seed, and the seed gives each chain's streams.

A stream depends only on the seed and the number of its chain.
"""

from __future__ import annotations

from functools import cached_property
from hashlib import blake2b
from numbers import Integral
from threading import local
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from skbayes_sgld._typing import Array

RandomSource = int | np.random.RandomState | np.random.Generator | None

_PROBE_ENTROPY = 0x5B1A7E50F2C94D6381E7A03DC4B8965F
_START, _INDEX, _NOISE, _SCREEN = range(4)  # purposes of a chain's streams


class _Reused(local):
    """RandomState of a thread: setting its seed takes 2 us, making one 240."""

    def __init__(self) -> None:
        self.state = np.random.RandomState(0)


_REUSED = _Reused()


def as_random_state(random_state: Any) -> np.random.RandomState:
    """RandomState from a seed or from a Generator, which advances; a RandomState itself."""
    check_seed(random_state)
    if isinstance(random_state, np.random.Generator):
        entropy = random_state.integers(2**32, size=4, dtype=np.uint32)
        return np.random.RandomState(np.random.MT19937(np.random.SeedSequence(entropy.tolist())))
    return check_random_state(random_state)


def draw_seed(random_state: Any) -> int:
    """Seed of a run; a RandomState or Generator advances."""
    check_seed(random_state)
    if isinstance(random_state, Integral):
        source = _REUSED.state
        source.seed(int(random_state))
    else:
        source = as_random_state(random_state)
    return int(source.randint(np.iinfo(np.int32).max))


def check_seed(value: Any) -> None:
    """Raise if ``random_state`` cannot be a seed; no generator advances."""
    if isinstance(value, (np.random.Generator, np.random.RandomState)):
        return
    if isinstance(value, Integral) and 0 <= int(value) < 2**32:  # faster than making a generator
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
        # made when first needed: walkers that take all rows do not need it
        return _generator(*self._of, _INDEX)

    @classmethod
    def of(cls, generator: np.random.Generator) -> ChainStreams:
        """Streams that both use one generator."""
        streams = cls.__new__(cls)
        vars(streams).update(_noise=generator, _index=generator)
        return streams

    @property
    def state(self) -> dict[str, Any]:
        """State of both streams, as numbers and strings for JSON."""
        streams = {"index": self._index, "noise": self._noise}
        return {name: stream.bit_generator.state for name, stream in streams.items()}

    @classmethod
    def resumed(cls, state: dict[str, Any]) -> ChainStreams:
        """Streams that continue from a state."""
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
    """Generators of the chains' starts, one for each chain."""
    return [_generator(seed, c, _START) for c in chains]


def screen_generator(seed: int) -> np.random.Generator:
    """Generator of a fit's screen, independent of the streams of its chains."""
    return _generator(seed, 0, _SCREEN)


def probe_generator() -> np.random.Generator:
    """Generator of probes that are the same in every fit, from the package's own seed.

    With seed 0 a probe would equal rows that a user draws from seed 0.
    """
    return np.random.default_rng(np.random.SeedSequence(_PROBE_ENTROPY))


def start_normals(seed: int, chains: range, n_params: int) -> Array:
    """Standard normals ``(C, n_params)`` for the chains' starting points."""
    rows = [g.standard_normal(n_params) for g in start_generators(seed, chains)]
    return np.array(rows).reshape(len(chains), n_params)


def _floyd(uniforms: Array, n_samples: int) -> Array:
    """Random subsets, one for each row of uniforms, by Floyd's algorithm (Bentley & Floyd 1987)."""
    n_steps, size = uniforms.shape
    sample = np.empty((n_steps, size), dtype=np.int64)
    for j in range(size):
        last = n_samples - size + j
        candidate = (uniforms[:, j] * (last + 1)).astype(np.int64)
        duplicate = (sample[:, :j] == candidate[:, None]).any(axis=1)
        sample[:, j] = np.where(duplicate, last, candidate)
    return sample


def normals_of(seeds: Array, out: Array) -> None:
    """Fill each row of ``out`` with the standard normals that a row of ``seeds (S, P)`` gives.

    They are the same where these numbers differ by rounding errors only: draws that belong to the
    parameters of a chain are given by these, whatever the chain's other draws.
    """
    stream = np.random.Philox(key=0)
    generator, state = np.random.Generator(stream), stream.state
    for row, numbers in zip(out, seeds.astype(np.float32), strict=True):
        key = blake2b(numbers.tobytes(), digest_size=16).digest()
        state["state"]["key"] = np.frombuffer(key, np.uint64)
        stream.state = state  # a third of the time of another generator
        generator.standard_normal(dtype=out.dtype, out=row)

"""Checkpoints: the state and the draws of a run in one file, from which it can go on.

The file is an ``npz`` archive of plain arrays, one of which is a header in JSON. It is written
beside its place and moved there when it is whole and on the disk, so that whatever happens, the
last checkpoint that was written is there.
"""

from __future__ import annotations

import json
import operator
import platform
from dataclasses import dataclass
from hashlib import blake2b
from importlib.metadata import version
from pathlib import Path
from pickle import PicklingError
from time import monotonic
from typing import Any, Protocol

import joblib
import numpy as np
import scipy
from numpy.typing import NDArray

from skbayes_sgld._components import ChainStreams, printable
from skbayes_sgld._warnings import warn
from skbayes_sgld.inference.archive import read_arrays, remove_leftovers, write_arrays
from skbayes_sgld.inference.choices import Fallback
from skbayes_sgld.inference.settings import LongRunSettings
from skbayes_sgld.posterior.base import BasePosterior
from skbayes_sgld.sampling.chains import Chains, Run, RunState, run_chains

Array = NDArray[Any]

_FORMAT = 1  # of the file; a change of what is in it is a new one
_SECONDS = 10.0  # from one checkpoint to the next, at the least
_SHARE = 20.0  # times what writing the last one took: so much of the run goes into writing
_BLOCK = 2**20  # numbers of an array that are digested at a time
_LENGTH = 60  # characters of a setting that an error shows
_STATE = "state."  # prefix of the sampler's arrays
_ARRAYS = {"draws", "weights", "clipped", "first", "positions"}  # and the others, beside the header
# what a run may be resumed with in another way: it changes no draw, or only how many there are
_FREE = {
    *("checkpoint", "resume_from", "max_time", "target_ess", "n_draws", "n_jobs", "verbose"),
    *("warm_start", "random_state", "check_gradient"),
}


class ChainPlan(Protocol):
    """What the chains of a run that may stop and go on are made from, and how they are judged."""

    @property
    def posterior(self) -> BasePosterior:
        """Target, in the coordinates that are sampled."""

    @property
    def run(self) -> Run:
        """Sampler, gradient, metric, step size, schedule and temperature."""

    @property
    def start(self) -> Array:
        """Starting points of the chains ``(C, P)``."""

    @property
    def seed(self) -> int:
        """Seed of the chains."""

    @property
    def n_draws(self) -> int:
        """Draws of each chain."""

    @property
    def n_burnin(self) -> int:
        """Steps of each chain before the first draw."""

    @property
    def thin(self) -> int:
        """Steps from draw to draw."""

    @property
    def settings(self) -> LongRunSettings:
        """What ends the run, and its files."""

    def effective_size(self, draws: Array) -> tuple[float, str]:
        """Effective sample size of draws ``(C, S, P)``, and a clause that says of what."""


@dataclass(frozen=True)
class Checkpoint:
    """A run as it was when it was written.

    Attributes
    ----------
    path : Path
    chains : Chains
        All steps so far.
    seed : int
    positions : ndarray or None
        Last positions of an earlier fit, where the chains began.
    inputs : dict
        Digest and short text of the data and of every setting, by name.
    first : ndarray
        Start, first positions and log densities of the chains, which a resumed run must repeat.
    lengths : dict of str to int
        Burn-in and thinning.
    libraries : dict of str to str
        Versions of the libraries that round, and the machine.
    finished : bool
        Whether the run came to its end.
    fallback : Fallback or None
        What the run does otherwise, since it overflowed before.
    """

    path: Path
    chains: Chains
    seed: int
    positions: Array | None
    inputs: dict[str, list[str]]
    first: Array
    lengths: dict[str, int]
    libraries: dict[str, str]
    finished: bool
    fallback: Fallback | None

    def check_inputs(self, inputs: dict[str, list[str]]) -> None:
        """Raise where data or settings are others than those of the run."""
        for name in sorted(self.inputs.keys() | inputs.keys()):
            then, now = self.inputs.get(name, ["", "absent"]), inputs.get(name, ["", "absent"])
            if then[0] != now[0]:
                there, here = printable(then[1]), printable(now[1])
                both = f"{there} there, {here} here"
                raise ValueError(
                    f"resume_from={str(self.path)!r} is a run with another {printable(name)}: "
                    f"{both if there != here else f'both are {here}, of other values'}. "
                    "Give what it was run with, or leave resume_from out to begin anew."
                )

    def check_plan(self, plan: ChainPlan, most: int) -> None:
        """Raise where the plan is not, to the bit, the one that the run was begun with.

        ``most`` is how many draws a chain it may come to.
        """
        if self.chains.draws.shape[1] > most:
            raise ValueError(
                f"resume_from={str(self.path)!r} has {self.chains.draws.shape[1]} draws a chain "
                f"already, and n_draws={plan.n_draws} asks for fewer; give at least as many."
            )
        for name, then in self.lengths.items():
            if getattr(plan, name) != then:
                raise ValueError(
                    f"resume_from={str(self.path)!r} has {name}={then}, and these settings lead to "
                    f"{getattr(plan, name)}: give n_draws as it was, or {name}={then}."
                )
        ours = run_chains(plan.run, plan.start, n_draws=0, seed=plan.seed).state.sampler_state
        state = self.chains.state.sampler_state
        if _shapes(state) != _shapes(ours):
            raise ValueError(
                f"resume_from={str(self.path)!r} is a run of another kind: its chains have the "
                f"state {_shapes(state)}, and those of these settings {_shapes(ours)}."
            )
        for name, array in state.items():
            if np.isfinite(ours[name]).all() and not np.isfinite(array).all():
                raise ValueError(
                    f"resume_from={str(self.path)!r} is not a whole checkpoint: {name} of its "
                    "chains is not finite."
                )
        if not np.array_equal(first_steps(plan), self.first, equal_nan=True):
            raise ValueError(
                f"resume_from={str(self.path)!r} cannot be gone on with: the same settings lead to "
                "other numbers here. The posterior is another one, or the machine or its "
                f"libraries round differently: there were {_listed(self.libraries)}, here are "
                f"{_listed(_libraries())}."
            )


def read(path: Path) -> Checkpoint:
    """Checkpoint in a file.

    Raises
    ------
    FileNotFoundError
        Where there is no file.
    ValueError
        Where the file is not a whole checkpoint, or one of another version.
    """
    if not path.exists():
        raise FileNotFoundError(f"resume_from={str(path)!r}: there is no such file.")
    try:
        arrays = read_arrays(path)
        header = json.loads(arrays.pop("header").tobytes())
        theirs = header["version"], header["format"]
    except Exception as error:  # whatever a broken file makes its readers raise
        raise _broken(path, error) from None
    if theirs != (version("skbayes-sgld"), _FORMAT):
        raise ValueError(
            f"resume_from={str(path)!r} was written by skbayes-sgld {printable(theirs[0])} "
            f"(format {printable(theirs[1])}), and this is {version('skbayes-sgld')} (format "
            f"{_FORMAT}); install the version that wrote it, or begin anew."
        )
    try:
        return _assembled(path, header, arrays)
    except Exception as error:
        raise _broken(path, error) from None


def _broken(path: Path, error: Exception) -> ValueError:
    what = str(error) if isinstance(error, ValueError) else f"{type(error).__name__}: {error}"
    return ValueError(
        f"resume_from={str(path)!r} is not a checkpoint, or not a whole one ({printable(what)})."
    )


def _assembled(path: Path, header: dict[str, Any], arrays: dict[str, Array]) -> Checkpoint:
    """Checkpoint of what a file holds; raise where its parts do not belong together."""
    draws, weights, clipped = (arrays[name] for name in ("draws", "weights", "clipped"))
    state = {
        name.removeprefix(_STATE): array
        for name, array in arrays.items()
        if name.startswith(_STATE)
    }
    unknown = {name for name in arrays if not name.startswith(_STATE)} - _ARRAYS
    if unknown:
        raise ValueError(f"it has entries that are not a checkpoint's: {sorted(unknown)}")
    (C, S, P), step = draws.shape, header["step"]
    lengths = {name: int(header["lengths"][name]) for name in ("n_burnin", "thin")}
    expected = {"weights": (S,), "clipped": (C,), "first": (C, 2 * P + 1), "state.theta": (C, P)}
    for name, shape in expected.items():
        if arrays[name].shape != shape:
            raise ValueError(f"{name} has the shape {arrays[name].shape}, and draws {draws.shape}")
    per_chain = [*state.values(), header["streams"], arrays.get("positions", draws)]
    if C < 1 or P < 1 or any(len(each) != C for each in per_chain):
        raise ValueError(f"its parts are not of the same {C} chains")
    shares = (clipped >= 0.0) & (clipped <= 1.0)
    if not (np.isfinite(draws).all() and (weights > 0.0).all() and shares.all()):
        raise ValueError("its draws, their weights or the shares of clipped steps are no numbers")
    made = max(0, step - lengths["n_burnin"]) // lengths["thin"]
    if type(step) is not int or step < 0 or made != S:
        raise ValueError(f"{S} draws do not come from {step} steps")
    seed, inputs = operator.index(header["seed"]), header["inputs"]
    if seed < 0 or any(len(both) != 2 for both in inputs.values()):
        raise ValueError("its seed is negative, or its inputs are no pairs")
    streams = [ChainStreams.resumed(each) for each in header["streams"]]
    return Checkpoint(
        path,
        Chains(draws, weights, clipped, RunState(step, state, streams), step),
        seed,
        arrays.get("positions"),
        {str(name): [str(text) for text in both] for name, both in inputs.items()},
        arrays["first"],
        lengths,
        {str(name): str(what) for name, what in header["libraries"].items()},
        bool(header["finished"]),
        _fallback(header.get("fallback")),
    )


def _fallback(saved: Any) -> Fallback | None:
    """Fallback that the header of a checkpoint holds; None where its run had none."""
    if saved is None:
        return None
    why, step_size = saved
    if step_size is not None and not 0.0 < float(step_size) < np.inf:
        raise ValueError("the step size that it fell back to is not a positive number")
    return Fallback(str(why), None if step_size is None else float(step_size))


def _shapes(state: dict[str, Array]) -> dict[str, tuple[int, ...]]:
    return {name: state[name].shape for name in sorted(state)}


def _libraries() -> dict[str, str]:
    return {"numpy": np.__version__, "scipy": scipy.__version__, "machine": platform.machine()}


def _listed(libraries: dict[str, str]) -> str:
    return printable(", ".join(f"{name} {what}" for name, what in libraries.items()))


def digest(inputs: dict[str, Any], random_state: Any) -> dict[str, list[str]]:
    """Digest and short text of each of the inputs of a run that its draws depend on."""
    found = {name: [_digest(v), _shown(v)] for name, v in inputs.items() if name not in _FREE}
    if isinstance(random_state, (int, np.integer)):  # any other one may have moved on since
        found["random_state"] = [str(int(random_state)), str(int(random_state))]
    return found


def _digest(value: Any) -> str:
    if isinstance(value, np.ndarray) and value.ndim and value.dtype.kind in "biuf":
        sums = blake2b(f"{value.dtype.str} {value.shape}".encode(), digest_size=16)
        size = max(1, _BLOCK // max(1, value[0].size)) if len(value) else 1
        for first in range(0, len(value), size):
            sums.update(np.ascontiguousarray(value[first : first + size]).data)
        return sums.hexdigest()
    try:
        return str(joblib.hash(value))
    except (TypeError, AttributeError, ValueError, PicklingError):  # of what cannot be pickled
        return type(value).__qualname__


def _shown(value: Any) -> str:
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        return f"arrays {value.shape} of {value.dtype}"
    text = repr(value)
    return text if len(text) <= _LENGTH else f"{text[:_LENGTH]}..."


def first_steps(plan: ChainPlan) -> Array:
    """Start, first positions and log densities of the chains ``(C, 2 P + 1)``."""
    with np.errstate(all="ignore"):
        moved = run_chains(plan.run, plan.start, n_draws=1, seed=plan.seed).draws[:, 0]
        value = plan.posterior.log_density(plan.start)
    return np.concatenate([plan.start, moved, value[:, None]], axis=1)


class Writer:
    """What writes a run to its file: at once where it begins, and then at intervals.

    Where the file cannot be written at the beginning that is an error; later it is a warning, and
    the run goes on: its draws are in memory, and the last checkpoint stays as it is.
    """

    def __init__(
        self,
        path: Path,
        plan: ChainPlan,
        seed: int,
        inputs: dict[str, list[str]],
        positions: Array | None,
        fallback: Fallback | None = None,
    ) -> None:
        self.path = path
        self._header = {
            "format": _FORMAT,
            "version": version("skbayes-sgld"),
            "libraries": _libraries(),
            "seed": seed,
            "inputs": inputs,
            "lengths": {"n_burnin": plan.n_burnin, "thin": plan.thin},
            "fallback": fallback,
        }
        self._arrays = {"first": first_steps(plan)}
        if positions is not None:
            self._arrays["positions"] = positions
        self._next, self.n_draws = 0.0, 0  # of the checkpoint in the file

    def begin(self, chains: Chains) -> None:
        """Write the first checkpoint.

        Raises
        ------
        OSError
            Where the file cannot be written.
        """
        remove_leftovers(self.path, "header", b'{"format": ')
        try:
            self._write(chains, False)
        except OSError as error:
            raise type(error)(
                error.errno,
                f"checkpoint={str(self.path)!r} cannot be written ({error.strerror}); give a path "
                "in a folder that can be written to and has room, or checkpoint=None",
            ) from None

    @property
    def due(self) -> bool:
        """Whether the last checkpoint is old enough."""
        return monotonic() >= self._next

    def write(self, chains: Chains, finished: bool = False) -> bool:
        """Write a checkpoint, and tell whether it is there; warn where it is not."""
        try:
            self._write(chains, finished)
        except OSError as error:
            self._next = monotonic() + _SECONDS
            warn(
                f"checkpoint={str(self.path)!r} could not be written ({error.strerror}): the run "
                f"goes on, and its {chains.draws.shape[1]} draws a chain are in memory; the file "
                f"still has the checkpoint of {self.n_draws} of them.",
                UserWarning,
            )
            return False
        return True

    def _write(self, chains: Chains, finished: bool) -> None:
        begin = monotonic()
        state = chains.state
        header = {
            **self._header,
            "step": state.step,
            "streams": [streams.state for streams in state.streams],
            "finished": finished,
        }
        arrays = {
            "header": np.frombuffer(json.dumps(header).encode(), dtype=np.uint8),
            "draws": chains.draws,
            "weights": chains.weights,
            "clipped": chains.clipped,
            **self._arrays,
            **{_STATE + name: array for name, array in state.sampler_state.items()},
        }
        write_arrays(self.path, arrays)
        self.n_draws = chains.draws.shape[1]
        end = monotonic()
        self._next = end + max(_SECONDS, _SHARE * (end - begin))


def check_free(settings: LongRunSettings) -> None:
    """Raise where the checkpoint would replace another run that has not come to its end."""
    path = settings.checkpoint
    if path is None or not path.exists():
        return
    source = settings.resume_from
    if source is not None and source.exists() and path.samefile(source):
        return
    try:
        finished = read(path).finished
    except (OSError, ValueError):
        finished = False
    if not finished:
        raise FileExistsError(
            f"checkpoint={str(path)!r} is a file already, and not that of a finished run; give "
            f"resume_from={str(path)!r} to go on with it, remove it, or give another path."
        )

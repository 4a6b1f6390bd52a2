"""Checkpoints: state and draws of a run in one file, from which the run can continue.

A run imports this module only if its settings name a checkpoint.

The file is an ``npz`` archive of plain arrays, one of which is a header in JSON, followed by a
digest of all earlier bytes. It is written under another name, and renamed once it is complete and
on disk, so that the last checkpoint survives whatever happens.
"""

from __future__ import annotations

import io
import json
import os
import platform
from contextlib import suppress
from dataclasses import dataclass, replace
from hashlib import blake2b, file_digest
from importlib.metadata import version
from numbers import Integral
from pathlib import Path
from pickle import PicklingError
from time import monotonic
from typing import Any
from zipfile import BadZipFile

import joblib
import numpy as np
import scipy

from skbayes_sgld._checks import printable
from skbayes_sgld._random import ChainStreams
from skbayes_sgld._typing import Array
from skbayes_sgld._warnings import warn
from skbayes_sgld.inference.origin import Origin
from skbayes_sgld.inference.plan import Plan
from skbayes_sgld.inference.planning.task import Finding
from skbayes_sgld.inference.settings import Settings
from skbayes_sgld.sampling.loop import run_chains
from skbayes_sgld.sampling.run import Chains, RunState

_FORMAT = 4  # version of the file format
_SECONDS = 10.0  # least time between checkpoints
_SHARE = 20.0  # least time between checkpoints, relative to the time that writing takes
_DIGEST = blake2b().digest_size  # bytes at the end of a file
_STATE = "state."  # prefix of the sampler's arrays
# settings that may differ in a resumed run: they change no draw, or only the number of draws
_FREE = {
    *("checkpoint", "resume_from", "max_time", "target_ess", "n_draws", "n_jobs", "verbose"),
    *("warm_start", "random_state", "check_gradient"),
}


@dataclass(frozen=True)
class Checkpoint:
    """State of a run, as it was written to a file.

    Attributes
    ----------
    path : Path
    chains : Chains
        All steps so far.
    origin : Origin
        Seed and first positions of the run.
    inputs : dict
        Digest and short text of the data and of every setting, by name.
    first : ndarray
        Starting points, first positions and log densities of the chains, which a resumed run must
        reproduce.
    lengths : dict of str to int
        Burn-in and thinning.
    libraries : str
        Machine, and versions of the libraries that affect rounding.
    finished : bool
        Whether the run was completed.
    """

    path: Path
    chains: Chains
    origin: Origin
    inputs: dict[str, list[str]]
    first: Array
    lengths: dict[str, int]
    libraries: str
    finished: bool

    def check_inputs(self, inputs: dict[str, list[str]]) -> None:
        """Raise unless data and settings are the run's; the error names the first difference."""
        earlier, absent = self.inputs, ["", "absent"]
        for name in sorted(earlier.keys() | inputs.keys()):
            then, now = earlier.get(name, absent), inputs.get(name, absent)
            if then[0] != now[0]:
                there, here = printable(then[1]), printable(now[1])
                both = f"{there} there, {here} here"
                raise ValueError(
                    f"resume_from={str(self.path)!r} is a run with another {printable(name)}: "
                    f"{both if there != here else f'both are {here}, of other values'}. "
                    "Give what it was run with, or leave resume_from out to begin anew."
                )

    def check_plan(self, plan: Plan, most: int) -> None:
        """Raise unless the plan is bit by bit the one that the run began with.

        ``most`` is the largest number of draws per chain of the resumed run.
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
        if not np.array_equal(first_steps(plan), self.first, equal_nan=True):
            raise ValueError(
                f"resume_from={str(self.path)!r} cannot be gone on with: the same settings lead to "
                "other numbers here. The posterior is another one, or the machine or its "
                f"libraries round differently: there were {printable(self.libraries)}, here are "
                f"{_libraries()}."
            )
        fresh = plan.run.initial_state(plan.start)
        state = self.chains.state.sampler_state
        for name, array in fresh.items():
            if name not in state or state[name].shape != array.shape:
                raise _forged(self.path, ValueError(f"{name} is not the state of this sampler"))


def read(path: Path) -> Checkpoint:
    """Checkpoint in a file.

    Raises
    ------
    FileNotFoundError
        If there is no file.
    ValueError
        If the file is not a whole checkpoint, or one of another version.
    """
    if not path.exists():
        raise FileNotFoundError(f"resume_from={str(path)!r}: there is no such file.")
    whole = memoryview(path.read_bytes() if path.is_file() else b"")
    if blake2b(whole[:-_DIGEST]).digest() != whole[-_DIGEST:]:
        raise ValueError(f"resume_from={str(path)!r} is not a checkpoint, or not a whole one.")
    try:
        with np.load(io.BytesIO(whole), allow_pickle=False) as file:
            arrays = dict(file)
        header = json.loads(arrays.pop("header").tobytes())
        theirs = header["version"], header["format"]
    except _MALFORMED as error:
        raise _forged(path, error) from None
    if theirs != (version("skbayes-sgld"), _FORMAT):
        raise ValueError(
            f"resume_from={str(path)!r} was written by skbayes-sgld {printable(theirs[0])} "
            f"(format {printable(theirs[1])}), and this is {version('skbayes-sgld')} (format "
            f"{_FORMAT}); install the version that wrote it, or begin anew."
        )
    try:
        return _from_content(path, arrays, header)
    except _MALFORMED as error:
        raise _forged(path, error) from None


_MALFORMED = (KeyError, TypeError, ValueError, AttributeError, IndexError, EOFError, BadZipFile)


def _forged(path: Path, error: Exception) -> ValueError:
    """Error for a file with a valid digest whose content is not that of a checkpoint."""
    what = printable(f"{type(error).__name__}: {error}")
    return ValueError(
        f"resume_from={str(path)!r} has not the content of a checkpoint ({what}): it was not "
        "written by a fit; begin anew without resume_from."
    )


def _from_content(path: Path, arrays: dict[str, Array], header: dict[str, Any]) -> Checkpoint:
    """Checkpoint from the arrays and the header of a file, after a check of shapes and types."""
    state = {k.removeprefix(_STATE): v for k, v in arrays.items() if k.startswith(_STATE)}
    streams = [ChainStreams.resumed(each) for each in header["streams"]]
    draws, step, finding = arrays["draws"], header["step"], header["finding"]
    weights, clipped = arrays["weights"], arrays["clipped"]
    (n_chains, n_draws, n_params), lengths = draws.shape, header["lengths"]
    shapes = {"weights": (n_draws,), "clipped": (n_chains,), "theta": (n_chains, n_params)}
    found = {"weights": weights.shape, "clipped": clipped.shape, "theta": state["theta"].shape}
    sizes = {len(streams), *(len(each) for each in state.values())}
    if found != shapes or sizes != {n_chains}:
        raise ValueError(f"its arrays have the shapes {found}, for {shapes}")
    if any(each.dtype.kind not in "fiub" for each in arrays.values()):
        raise TypeError("its arrays are not of numbers")
    whole = [step, header["seed"], lengths["n_burnin"], lengths["thin"]]
    if not all(type(each) is int and 0 <= each < 2**64 for each in whole) or step > 2**53:
        raise TypeError("its seed, step and lengths are not whole numbers")
    if finding is not None and not (isinstance(finding, list) and isinstance(finding[0], str)):
        raise TypeError("the reason for its second plan is not text")
    change = None if finding is None else Finding(*finding)
    inputs = {str(name): [str(each[0]), str(each[1])] for name, each in header["inputs"].items()}
    return Checkpoint(
        path,
        Chains(draws, weights, clipped, RunState(step, state, streams), step),
        Origin(header["seed"], arrays.get("positions"), change),
        inputs,
        arrays["first"],
        {name: lengths[name] for name in ("n_burnin", "thin")},
        str(header["libraries"]),
        bool(header["finished"]),
    )


def write_arrays(path: Path, arrays: dict[str, Array]) -> None:
    """Write arrays and their digest to a temporary file, and rename it to ``path`` once on disk.

    A temporary file that a killed process left is replaced.
    """
    part = path.with_name(f".{path.name}.part")
    part.unlink(missing_ok=True)
    try:
        with open(part, "xb+") as file:
            np.savez(file, **arrays)  # type: ignore[arg-type]
            file.seek(0)
            file.write(file_digest(file, "blake2b").digest())
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    with suppress(OSError):  # not every system can open a folder
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def _libraries() -> str:
    machine = platform.machine()
    return f"numpy {np.__version__}, scipy {scipy.__version__}, machine {machine}"


class Files:
    """Files of a run: the checkpoint to resume, and the checkpoint to write, if any.

    Parameters
    ----------
    settings : Settings
    inputs : dict
        Data and settings, by name.
    origin : Origin
        Start of a new run; a resumed run takes seed and positions from its checkpoint.

    Raises
    ------
    FileNotFoundError, FileExistsError, ValueError
        If the checkpoint cannot be resumed, or would replace an unfinished run.
    """

    def __init__(self, settings: Settings, inputs: dict[str, Any], origin: Origin) -> None:
        check_free(settings)
        digests = {name: _known_by(v) for name, v in inputs.items() if name not in _FREE}
        if isinstance(settings.random_state, Integral):  # a generator may have advanced since
            digests["random_state"] = [str(int(settings.random_state))] * 2
        self.path, self.inputs, self.origin = settings.checkpoint, digests, origin
        self.saved: Checkpoint | None = None
        self._writer: Writer | None = None
        if settings.resume_from is not None:
            saved = read(settings.resume_from)
            saved.check_inputs(digests)
            self.inputs, self.origin = saved.inputs, replace(saved.origin, begin=origin.begin)
            self.saved = saved

    def resume(self, plan: Plan, most: int) -> Chains | None:
        """Steps so far, None if nothing is resumed; raise unless the plan is the same."""
        if self.saved is None:
            return None
        self.saved.check_plan(plan, most)
        return self.saved.chains

    def open(self, plan: Plan, chains: Chains | None) -> Chains | None:
        """Write the steps so far for the first time; None if nothing is written."""
        if self.path is None:
            return None
        if chains is None:
            chains = run_chains(plan.run, plan.start, n_draws=0, seed=plan.seed)
        self._writer = Writer(self.path, plan, self.origin, self.inputs, chains)
        return chains

    @property
    def due(self) -> bool:
        """Whether the last checkpoint is old enough."""
        return self._writer is not None and self._writer.due

    def write(self, chains: Chains, finished: bool = False) -> None:
        """Write a checkpoint, if the settings name one; warn on failure."""
        if self._writer is not None:
            self._writer.write(chains, finished)

    def begin_again(self, origin: Origin) -> None:
        """Discard the steps so far, since another plan begins."""
        self.origin, self.saved, self._writer = origin, None, None

    def interrupted(self) -> KeyboardInterrupt:
        """KeyboardInterrupt that names the checkpoint to resume."""
        last = self.saved
        with suppress(OSError, ValueError):
            own = None if self.path is None else read(self.path)
            # the file may be that of another, completed run
            if own and (own.origin.seed, own.inputs) == (self.origin.seed, self.inputs):
                last = own
        if last is None:
            return KeyboardInterrupt(
                f"interrupted; nothing was written to checkpoint={str(self.path)!r} yet, so begin "
                "anew"
            )
        return KeyboardInterrupt(
            f"interrupted; resume_from={str(last.path)!r} goes on from "
            f"{last.chains.draws.shape[1]} draws a chain"
        )


def _known_by(value: Any) -> list[str]:
    """Digest and short text of an input."""
    try:  # the digest of an array does not depend on its memory layout
        value = np.ascontiguousarray(value) if isinstance(value, np.ndarray) else value
        digest = str(joblib.hash(value))
    except (TypeError, AttributeError, ValueError, PicklingError):  # it cannot be pickled
        digest = type(value).__qualname__
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        return [digest, f"arrays {value.shape} of {value.dtype}"]
    text = repr(value)
    return [digest, text if len(text) <= 60 else f"{text[:60]}..."]


def first_steps(plan: Plan) -> Array:
    """Starting points, first positions and log densities of the chains ``(C, 2 P + 1)``."""
    with np.errstate(all="ignore"):
        positions = run_chains(plan.run, plan.start, n_draws=1, seed=plan.seed).positions
        value = plan.posterior.log_density(plan.start)
    return np.concatenate([plan.start, positions, value[:, None]], axis=1)


class Writer:
    """Writer of a run's checkpoints: one at the beginning, and then at intervals.

    A failure at the beginning is an OSError. Later it is a warning, and the run continues: its
    draws are in memory, and the last checkpoint remains.
    """

    def __init__(
        self,
        path: Path,
        plan: Plan,
        origin: Origin,
        inputs: dict[str, list[str]],
        chains: Chains,
    ) -> None:
        self.path = path
        self._header = {
            "format": _FORMAT,
            "version": version("skbayes-sgld"),
            "libraries": _libraries(),
            "seed": origin.seed,
            "inputs": inputs,
            "lengths": {"n_burnin": plan.n_burnin, "thin": plan.thin},
            "finding": origin.finding,
        }
        self._arrays = {"first": first_steps(plan)}
        if origin.positions is not None:
            self._arrays["positions"] = origin.positions
        try:
            self._write(chains, False)
        except OSError as error:
            raise type(error)(
                error.errno,
                f"checkpoint={str(path)!r} cannot be written ({error.strerror}); give a path "
                "in a folder that can be written to and has room, or checkpoint=None",
            ) from None

    @property
    def due(self) -> bool:
        """Whether the last checkpoint is old enough."""
        return monotonic() >= self._next

    def write(self, chains: Chains, finished: bool = False) -> None:
        """Write a checkpoint; warn on failure."""
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
        self.n_draws = chains.draws.shape[1]  # draws in the file
        end = monotonic()
        self._next = end + max(_SECONDS, _SHARE * (end - begin))


def check_free(settings: Settings) -> None:
    """Raise if the checkpoint would replace another, unfinished run."""
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

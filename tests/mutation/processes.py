"""Pytest in a process forked from one that has imported the libraries, in a copy of the tree."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import shutil
import signal
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any

from tests.mutation.mutants import PACKAGE, ROOT

_PRELOADED = (
    "numpy",
    "scipy.stats scipy.optimize scipy.sparse scipy.integrate scipy.linalg scipy.fft scipy.special",
    "pandas",
    "sklearn.linear_model sklearn.model_selection sklearn.pipeline sklearn.datasets",
    "arviz_stats.base pytest",
)
FORK = multiprocessing.get_context("fork")


def preload() -> None:
    """Import the libraries once, for all processes that are forked from this one."""
    os.environ |= {"MPLBACKEND": "Agg", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    for name in " ".join(_PRELOADED).split():
        __import__(name)


def copy_tree(place: str) -> Path:
    """Copy of what the tests need, in a folder."""
    target = Path(place) / "copy"
    left_out = shutil.ignore_patterns(".*", "_build", "build", "dist", "__pycache__")
    shutil.copytree(ROOT, target, ignore=left_out)
    return target


def start_pytest(
    folder: Path,
    tests: Sequence[str],
    output: Path,
    variables: Mapping[str, str] | None = None,
    plugins: Sequence[Any] = (),
) -> Any:
    """Process that runs pytest in ``folder``; its exit code is pytest's."""
    process = FORK.Process(target=_run, args=(folder, tests, output, variables or {}, plugins))
    process.start()
    return process


def stop(process: Any) -> None:
    """End a process and those that it started."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.join()


class Sessions:
    """Sessions of pytest that share tasks among them."""

    def __init__(self, n_jobs: int, folder: Path, tests: Sequence[str], plugin: Any) -> None:
        self._processes: dict[Any, Any] = {}
        for job in range(n_jobs):
            ours, theirs = FORK.Pipe()
            self._output = folder.parent / f"{job}.txt"
            plugins = [plugin(theirs)]
            self._processes[ours] = start_pytest(folder, tests, self._output, plugins=plugins)
            theirs.close()

    def answers(self, tasks: Iterable[Any]) -> Iterator[Any]:
        """Each task with its answer, as they come."""
        idle, busy, rest = [*self._processes], [], iter(tasks)
        while True:
            while idle and (task := next(rest, None)) is not None:
                idle[-1].send(task)
                busy.append(idle.pop())
            if not busy:
                return
            for connection in wait(busy):
                try:
                    yield connection.recv()  # type: ignore[union-attr]
                except EOFError:
                    raise RuntimeError(self._output.read_text()[-2000:]) from None
                busy.remove(connection)
                idle.append(connection)

    def stop(self) -> None:
        """End them."""
        for process in self._processes.values():
            stop(process)


def _run(
    folder: Path,
    tests: Sequence[str],
    output: Path,
    variables: Mapping[str, str],
    plugins: Sequence[Any],
) -> None:
    os.setpgid(0, 0)
    os.chdir(folder)
    sys.path[:] = [str(folder), *(p for p in sys.path if Path(p or ".").resolve() != ROOT)]
    os.environ |= {"PYTHONPATH": str(folder), **variables}
    for name in [name for name in sys.modules if name.partition(".")[0] in ("tests", PACKAGE)]:
        del sys.modules[name]
    with output.open("wb") as stream:
        os.dup2(stream.fileno(), 1)
        os.dup2(stream.fileno(), 2)
    import pytest

    options = ["-q", "-x", "-p", "no:cacheprovider", "--tb=no"]
    listed = output.with_suffix(".tests")
    listed.write_text("\n".join(tests))
    status = pytest.main([*options, f"@{listed}"], plugins=list(plugins))
    sys.stdout.flush()
    os._exit(int(status))

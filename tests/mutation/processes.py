"""Pytest in a process forked from one that has imported the libraries, in a copy of the tree."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import resource
import shutil
import signal
import sys
from pathlib import Path

from tests.mutation.mutants import PACKAGE, ROOT

_PRELOADED = (
    "numpy",
    "scipy.stats scipy.optimize scipy.sparse scipy.integrate scipy.linalg scipy.fft scipy.special",
    "pandas",
    "sklearn.linear_model sklearn.model_selection sklearn.pipeline sklearn.datasets",
    "arviz_stats.base pytest",
)


def preload() -> None:
    """Import the libraries once, for all processes that are forked from this one."""
    os.environ |= {"MPLBACKEND": "Agg", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    for name in " ".join(_PRELOADED).split():
        __import__(name)


def copy_tree(place: str) -> Path:
    """Copy of what the tests need, in a temporary folder."""
    target = Path(place) / "copy"
    left_out = shutil.ignore_patterns(".*", "_build", "build", "dist", "__pycache__")
    shutil.copytree(ROOT, target, ignore=left_out)
    return target


def run_pytest(
    folder: Path, arguments: list[str], tests: list[str], cpu: float
) -> tuple[int | None, str]:
    """Exit code (None: it took longer than its limit in CPU seconds) and output."""
    output = folder / "output.txt"
    (folder / "tests.txt").write_text("\n".join(tests))
    process = multiprocessing.get_context("fork").Process(
        target=_child, args=(folder, [*arguments, "@tests.txt"], output, int(cpu) + 1)
    )
    process.start()
    process.join(20.0 * cpu)  # one that waits takes no CPU time
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid or 0, signal.SIGKILL)
    process.join()
    code = process.exitcode
    text = output.read_text(errors="replace") if output.exists() else ""
    return (None if code is None or code < 0 else code), text


def _child(folder: Path, arguments: list[str], output: Path, cpu: int) -> None:
    os.setpgid(0, 0)
    resource.setrlimit(resource.RLIMIT_CPU, (cpu, cpu + 5))
    os.chdir(folder)
    sys.path[:] = [str(folder), *(p for p in sys.path if Path(p or ".").resolve() != ROOT)]
    os.environ["PYTHONPATH"] = str(folder)
    for name in [name for name in sys.modules if name.partition(".")[0] in ("tests", PACKAGE)]:
        del sys.modules[name]
    with output.open("wb") as stream:
        os.dup2(stream.fileno(), 1)
        os.dup2(stream.fileno(), 2)
    import pytest

    status = pytest.main(["-q", "-p", "no:cacheprovider", "--tb=no", *arguments])
    sys.stdout.flush()
    os._exit(int(status))

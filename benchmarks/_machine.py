"""Conditions of a measurement: the machine, the versions, and the SIMD features in use."""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_info, threadpool_limits

PACKAGES = (
    *("skbayes-sgld", "numpy", "scipy", "scikit-learn", "arviz-stats"),
    *("jax", "numpyro", "blackjax"),
)
THREADS = "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"


def features() -> dict[str, list[str]]:
    """SIMD features that NumPy uses ("found") and does without ("not found"), above its baseline.

    What NPY_DISABLE_CPU_FEATURES names is among those that are not found.
    """
    return np.show_config(mode="dicts")["SIMD Extensions"]


def avx512() -> list[str]:
    """The features in force that need AVX-512."""
    return [f for f in features().get("found", []) if f.startswith(("X86_V4", "AVX512"))]


def hidden() -> dict[str, str]:
    """Environment of a process that is to do without AVX-512."""
    return {
        "NPY_DISABLE_CPU_FEATURES": " ".join(avx512()),
        "OPENBLAS_CORETYPE": "Haswell",
        "XLA_FLAGS": f"{os.environ.get('XLA_FLAGS', '')} --xla_cpu_max_isa=AVX2".strip(),
    }


def describe() -> dict[str, Any]:
    """Machine, versions and features, as they are in this process."""
    pools = [p for p in threadpool_info() if p["user_api"] == "blas"]
    blas = next((p for p in pools if "numpy" in p["filepath"]), {})  # SciPy may have its own
    return {
        "cpu": _cpu(),
        "cores": os.cpu_count(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "versions": {name: _version(name) for name in PACKAGES},
        "commit": _commit(),
        "numpy_simd": [*features().get("baseline", []), *features().get("found", [])],
        "avx512": bool(avx512()),
        "blas": f"{blas.get('internal_api')} {blas.get('version')}, {blas.get('architecture')}",
        "blas_threads": blas.get("num_threads"),
        "threads_set": {name: os.environ[name] for name in THREADS if name in os.environ},
        "xla_flags": os.environ.get("XLA_FLAGS", ""),
    }


def heading(machine: dict[str, Any]) -> str:
    """Three lines about the machine."""
    names = ", ".join(f"{k} {v}" for k, v in machine["versions"].items() if v)
    limited = ", ".join(f"{k}={v}" for k, v in machine["threads_set"].items())
    return "\n".join(
        [
            f"{machine['cpu']}, {machine['cores']} cores; Python {machine['python']}; "
            f"{machine['system']}",
            f"{names}; commit {machine['commit']}",
            f"NumPy's SIMD: {' '.join(machine['numpy_simd'])} "
            f"(AVX-512 {'in use' if machine['avx512'] else 'not in use'}); BLAS: {machine['blas']},"
            f" {machine['blas_threads']} threads{f' ({limited})' if limited else ''}",
        ]
    )


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""


def _commit() -> str:
    command = ["git", "describe", "--always", "--dirty"]
    found = subprocess.run(command, cwd=Path(__file__).parent, capture_output=True, text=True)
    return found.stdout.strip()


def _cpu() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or "unknown CPU"


@contextmanager
def one_core() -> Iterator[None]:
    """One core and one thread of BLAS: threads that wait for each other count as processor time."""
    every = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else None  # on Linux
    if every:
        os.sched_setaffinity(0, {max(every)})
    try:
        with threadpool_limits(1):
            yield
    finally:
        if every:
            os.sched_setaffinity(0, every)

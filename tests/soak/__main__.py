"""Every soak run, two at a time: ``python -m tests.soak``, three quarters of an hour on two cores.

Each is a module of this folder that can be run by itself; what they found is in
``docs/reliability.md``.
"""

from __future__ import annotations

import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).parent
LONGEST_FIRST = (
    "automatic",
    "long_run",
    "inputs",
    "interrupts",
    "precision",
    "files",
    "divergence",
)


def run(name: str) -> bool:
    """Run one part, print all of it at its end, and tell whether it failed."""
    done = subprocess.run(
        [sys.executable, "-m", f"tests.soak.{name}"],
        cwd=HERE.parents[1],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    print(f"---- {name} ----\n\n{done.stdout}", flush=True)
    return done.returncode != 0


def main() -> None:
    """Run every part, and leave with 1 where one failed."""
    begin = time.monotonic()
    with ThreadPoolExecutor(2) as pool:
        failures = dict(zip(LONGEST_FIRST, pool.map(run, LONGEST_FIRST), strict=True))
    minutes = (time.monotonic() - begin) / 60.0
    failed = ", ".join(name for name in failures if failures[name])
    print(f"{', '.join(failures)}: {minutes:.0f} minutes; failed: {failed or 'none'}")
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()

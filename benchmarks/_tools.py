"""What the benchmarks share: interleaved timing, tables, and rivals that may be missing."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from time import perf_counter
from typing import Any

import numpy as np


def rival(name: str) -> Any:
    """Import the adapter of another library, or stop with a line that says how to get it."""
    try:
        return import_module(f"benchmarks._{name}")
    except ModuleNotFoundError as error:
        sys.exit(f'{error.name} is not installed; try: pip install "skbayes_sgld[bench]"')


def interleave(tasks: dict[str, Callable[[], Any]], rounds: int) -> dict[str, np.ndarray]:
    """Seconds of each task, one figure a round; in a round they run one by one.

    What else the machine does then falls on all of them alike.
    """
    seconds: dict[str, list[float]] = {name: [] for name in tasks}
    for _ in range(rounds):
        for name, task in tasks.items():
            start = perf_counter()
            task()
            seconds[name].append(perf_counter() - start)
    return {name: np.array(values) for name, values in seconds.items()}


def heading(text: str | None) -> None:
    """Print what is compared: a benchmark's docstring."""
    title, _, rest = (text or "").strip().partition("\n")
    print(f"\n{title}\n{'=' * len(title)}\n{rest.strip()}\n")


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print columns aligned to the right, the first one to the left."""
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    for row in (head, ["-" * w for w in widths], *rows):
        cells = [c.rjust(w) for c, w in zip(row, widths, strict=True)]
        cells[0] = row[0].ljust(widths[0])
        print("  ".join(cells).rstrip())
    print(flush=True)

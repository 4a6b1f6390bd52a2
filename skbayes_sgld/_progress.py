"""Progress reporting: a bar of tqdm (an extra), or lines of plain text without it.

A fit shows a bar on request (:func:`progress_bar`). Functions whose stages have names, such as the
columns of ``effects``, print the current stage once they have taken some seconds (:func:`stages`).
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Self

# Takes the number of steps since the last call; True asks to end the run
Progress = Callable[[int], bool]

_PATIENCE = 2.0  # seconds before the first line of a named stage, and between lines


class TextProgress:
    """A line on standard error at every tenth of a run; a terminal shows only the last."""

    def __init__(self, total: int, desc: str, unit: str):
        self.total, self.desc, self.unit = total, desc, unit
        self.done, self.tenths, self.start = 0, 0, time.monotonic()
        self.terminal = sys.stderr.isatty()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        if self.terminal and self.tenths:
            print(file=sys.stderr)

    def update(self, n: int) -> None:
        """Count ``n`` further units; print a line if another tenth is complete."""
        self.done += n
        tenths = 10 * self.done // self.total
        if tenths > self.tenths:
            self.tenths = tenths
            line = f"{self.desc}: {self.done} of {self.total} {self.unit}s "
            line += f"({100 * self.done // self.total} %), {time.monotonic() - self.start:.1f} s"
            start, end = ("\r", "") if self.terminal else ("", "\n")
            print(start + line, end=end, file=sys.stderr, flush=True)


@contextmanager
def progress_bar(verbose: bool | int, total: int, description: str) -> Iterator[Progress | None]:
    """Context with a function that takes the number of finished steps; None if ``verbose`` is 0."""
    if not verbose:
        yield None
        return
    try:
        from tqdm.auto import tqdm as bar_type
    except ImportError:
        bar_type = TextProgress
    with bar_type(total=total, desc=description, unit="step") as bar:

        def report(n_done: int) -> bool:
            bar.update(n_done)  # returns whether the bar was drawn
            return False

        yield report


@contextmanager
def stages(task: str, unit: str, total: int = 0) -> Iterator[Callable[..., None]]:
    """Context with a function that takes the name of each stage as it begins.

    Once the task has taken two seconds, lines on standard error show its progress:
    ``effects: column 5 of 39: hour, 7 s``. A task that finds its stages on the way passes their
    current number with each name.
    """
    start, terminal = time.monotonic(), sys.stderr.isatty()
    n_begun, due, width = 0, start + _PATIENCE, 0

    def begin(name: str, total: int = total) -> None:
        nonlocal n_begun, due, width
        n_begun, now = n_begun + 1, time.monotonic()
        if now < due:
            return
        due = now + (0.0 if terminal else _PATIENCE)
        line = f"{task}: {unit} {n_begun} of {total}: {name}, {now - start:.0f} s"
        text = f"\r{line:{width}s}" if terminal else f"{line}\n"
        print(text, end="", file=sys.stderr, flush=True)
        width = len(line)

    try:
        yield begin
    finally:
        if terminal and width:
            print(file=sys.stderr)

"""Seconds that each stage of a fit takes, and lines that say which stage runs.

:func:`timed` begins the timings of a fit. Code below it names the stages by :func:`stage`, whatever
lies between the two; without :func:`timed` a stage is not timed. A moment counts for the innermost
stage only, so the seconds of all stages add up to those of the fit. Loops call :func:`beat`: a fit
that takes long says what it does, even if it is not verbose.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_REST = "rest"
_PATIENCE = 10.0  # seconds before the first line of a fit that is not verbose, and between lines
Timings = dict[str, float]  # seconds of each stage, in the order in which they began


def as_line(timings: Timings) -> str:
    """Seconds of the fit and of each stage."""
    each = ", ".join(f"{name} {seconds:.3g}" for name, seconds in timings.items())
    return f"{sum(timings.values()):.3g} s: {each}"


class _Clock:
    """Clock that adds the time since its last call to the stage that runs."""

    def __init__(self, task: str, verbose: bool) -> None:
        self.timings: Timings = {}
        self.task, self.verbose, self.running, self.shown = task, verbose, _REST, _REST
        self.start = self.last = time.perf_counter()
        self.told, self.due = False, self.start + _PATIENCE

    def enter(self, name: str) -> str:
        """Begin a stage, or go on with it; the stage that ran until now is returned."""
        now = time.perf_counter()
        self.timings[self.running] = self.timings.get(self.running, 0.0) + now - self.last
        before, self.running, self.last = self.running, name, now
        if self.verbose and name not in (_REST, self.shown):
            self.shown = name
            print(f"{self.task}, {now - self.start:.1f} s: {name}", file=sys.stderr, flush=True)
        return before

    def beat(self, what: str) -> None:
        """Show a line if one is due."""
        now = time.perf_counter()
        if self.verbose or now < self.due:
            return
        line = f"{self.task}, {now - self.start:.0f} s: {self.running}{what}"
        if not self.told:
            line += "; verbose=1 shows more, and the page 'Why is it slow?' has causes"
        self.told, self.due = True, now + _PATIENCE
        print(line, file=sys.stderr, flush=True)


_CLOCK: ContextVar[_Clock | None] = ContextVar("clock of the fit", default=None)


@contextmanager
def timed(task: str, verbose: bool | int = 0) -> Iterator[Timings]:
    """Context of a fit whose stages are timed.

    If it is verbose, a line on standard error names each stage as it begins, and the last line has
    the seconds of all.
    """
    clock = _Clock(task, bool(verbose))
    token = _CLOCK.set(clock)
    try:
        yield clock.timings
    finally:
        _CLOCK.reset(token)
        clock.enter(_REST)
        clock.timings[_REST] = clock.timings.pop(_REST)  # the last
    if verbose:
        print(f"{task}, {as_line(clock.timings)}", file=sys.stderr, flush=True)


@contextmanager
def stage(name: str) -> Iterator[None]:
    """Context of a stage of the fit around it; the stage that ran before goes on after it."""
    clock = _CLOCK.get()
    if clock is None:
        yield
        return
    before = clock.enter(name)
    try:
        yield
    finally:
        clock.enter(before)


def beat(what: str = "") -> None:
    """Say once in ten seconds what a fit that is not verbose does; ``what`` follows its stage."""
    clock = _CLOCK.get()
    if clock is not None:
        clock.beat(what)


def timings_of_fit() -> Timings:
    """Timings of the fit that runs; they go on to its end. Empty outside a fit."""
    clock = _CLOCK.get()
    return {} if clock is None else clock.timings

"""How far a reader of one ``fit`` has to go: ``python -m tests.structure``.

One default logistic regression is fitted under ``sys.setprofile``, and every Python function of
the package that is entered counts once it is called. What is counted:

files, functions, classes
    Distinct source files, functions and methods, and classes that define a method, that were
    entered during the whole fit. Lambdas and comprehensions count as their function.
depth
    The most frames of the package that lay on the stack at once.
hops
    How often the estimator's own ``self`` was handed to a method of another class (of its bases)
    than the method before it on that estimator, in the order of the calls, until the sampler's
    first ``step``: what a reader does who follows ``self`` through its mixins.
turns
    How often ``type(self)`` changes along the stack from ``fit`` down to that first ``step``:
    the objects that pass the work on.
all turns
    The same over every call until that step, side branches included (a search for the mode calls
    the posterior, its likelihood and its prior at every iteration): for information.

None of these is limited: they are a map for a reader, and a file is one idea however long it is.
"""

from __future__ import annotations

import ast
import inspect
import os
import sys
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from types import FrameType
from typing import Any

from sklearn.datasets import make_classification

import skbayes_sgld
from skbayes_sgld import SGLDLogisticRegression
from skbayes_sgld.sampling import Sampler

ROOT = Path(skbayes_sgld.__file__).parent


@dataclass(frozen=True)
class Call:
    """One function of the package that was entered."""

    file: str
    name: str  # qualified
    owner: Any  # its self, or None
    depth: int

    @property
    def function(self) -> tuple[str, str]:
        """File and name, an inner function counted as the one around it."""
        return self.file, self.name.partition(".<locals>")[0]

    @property
    def defined_in(self) -> tuple[str, str] | None:
        """File and name of the class that defines it."""
        file, name = self.function
        return (file, name.rpartition(".")[0]) if "." in name else None


@dataclass
class Trace:
    """Every call of one fit, in order, and where the sampler took its first step."""

    calls: list[Call] = field(default_factory=list)
    stack: list[Call] = field(default_factory=list)  # of the first step, the outermost first
    n_before_step: int = 0

    def enter(self, frame: FrameType, event: str, arg: Any) -> None:
        """Note a call: the function that ``sys.setprofile`` takes."""
        if event != "call" or not is_ours(frame):
            return
        frames = [f for f in outwards(frame) if is_ours(f)]
        self.calls.append(as_call(frame, len(frames)))
        last = self.calls[-1]
        if not self.stack and frame.f_code.co_name == "step" and isinstance(last.owner, Sampler):
            self.stack = [as_call(f, 0) for f in reversed(frames)]
            self.n_before_step = len(self.calls)

    def counts(self) -> dict[str, int]:
        """All that the module's docstring names, by name."""
        if not self.stack:
            raise RuntimeError("no step of a sampler was seen")
        estimator = self.calls[0].owner
        before = self.calls[: self.n_before_step]
        own = [call.defined_in for call in before if call.owner is estimator]
        owners = [type(call.owner) for call in self.stack if call.owner is not None]
        return {
            "files": len({call.file for call in self.calls}),
            "functions": len({call.function for call in self.calls}),
            "classes": len({call.defined_in for call in self.calls} - {None}),
            "depth": max(call.depth for call in self.calls),
            "hops": changes(own),
            "turns": changes(owners),
            "all turns": changes([type(c.owner) for c in before if c.owner is not None]),
        }


def is_ours(frame: FrameType) -> bool:
    """Whether the frame runs the package's source."""
    return frame.f_code.co_filename.startswith(f"{ROOT}{os.sep}")


def outwards(frame: FrameType | None) -> list[FrameType]:
    """All frames of the stack, the innermost first."""
    found = []
    while frame is not None:
        found.append(frame)
        frame = frame.f_back
    return found


def as_call(frame: FrameType, depth: int) -> Call:
    """What is kept of a frame."""
    file = Path(frame.f_code.co_filename).relative_to(ROOT).as_posix()
    return Call(file, frame.f_code.co_qualname, frame.f_locals.get("self"), depth)


def changes(items: list[Any]) -> int:
    """How many neighbours differ."""
    return sum(a != b for a, b in pairwise(items))


def trace_fit() -> Trace:
    """The calls of one default fit of 1,000 rows and 5 columns."""
    X, y = make_classification(1000, 5, flip_y=0.3, random_state=0)
    model, trace = SGLDLogisticRegression(n_draws=300, random_state=0), Trace()
    before, fit = sys.getprofile(), inspect.unwrap(type(model).fit)  # a decorator is not read
    sys.setprofile(trace.enter)
    try:
        fit(model, X, y)
    finally:
        sys.setprofile(before)
    return trace


def describe(trace: Trace) -> str:
    """A table of the counts, the files in the order of entry, and the stack of the first step."""
    rows = [f"{name:<12}{value:>6}" for name, value in trace.counts().items()]
    estimator = trace.calls[0].owner
    rows += ["", "files, in the order of entry, how many functions of each, and what is in them"]
    functions = {call.function for call in trace.calls}
    for file in dict.fromkeys(call.file for call in trace.calls):
        idea = (ast.get_docstring(ast.parse((ROOT / file).read_text())) or "").partition("\n")[0]
        rows.append(f"  {file:<34}{sum(f == file for f, _ in functions):>4}  {idea}")
    rows += ["", "methods of the estimator until the first step, in the order of the calls"]
    own = [c.function for c in trace.calls[: trace.n_before_step] if c.owner is estimator]
    rows += [
        f"  {name:<44}{file}" for file, name in [own[0], *(b for a, b in pairwise(own) if a != b)]
    ]
    rows += ["", "the stack at the first step"]
    for call in trace.stack:
        owner = "" if call.owner is None else type(call.owner).__name__
        rows.append(f"  {call.name:<44}{owner:<24}{call.file}")
    return "\n".join(rows)


if __name__ == "__main__":
    print(describe(trace_fit()))

"""What every soak run ends with: a table to read, what went wrong, and an exit code."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import pandas as pd

_SHOWN = 20  # failures


@dataclass
class Report:
    """Counts of a soak run.

    ``seconds`` bounds the run: what does not fit is left out, and the notes say how much.
    """

    title: str
    seconds: float = float("inf")
    failures: list[str] = field(default_factory=list)
    begin: float = field(default_factory=time.monotonic)

    @property
    def is_over(self) -> bool:
        """Whether the time is up."""
        return time.monotonic() - self.begin > self.seconds

    def check(self, right: bool, what: str) -> bool:
        """Note what went wrong, unless it is right."""
        if not right:
            self.failures.append(what)
        return right

    def end(self, table: pd.DataFrame, notes: Sequence[str] = ()) -> None:
        """Print everything, and leave with 1 where something failed."""
        print(f"{self.title}\n\n{table.to_string(index=False)}\n")
        for note in notes:
            print(note)
        print(f"{time.monotonic() - self.begin:.0f} s, {len(self.failures)} failures")
        for failure in self.failures[:_SHOWN]:
            print(f"  * {failure}")
        print(flush=True)
        if self.failures:
            sys.exit(1)


def options(module: str, cases: int, seconds: float) -> argparse.Namespace:
    """Options of a soak run from the command line: ``--cases``, ``--seconds`` and ``--seed``."""
    parser = argparse.ArgumentParser(prog=f"python -m {module}")
    parser.add_argument("--cases", type=int, default=cases, help="how many, at the most")
    parser.add_argument("--seconds", type=float, default=seconds, help="that it may take")
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()

"""Report at the end of a soak run: a table, the failures, and an exit code."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

import pandas as pd

import skbayes_sgld

RESULTS = Path(__file__).parent / "results.json"
_SHOWN = 20  # failures


@dataclass
class Report:
    """Counts of a soak run.

    ``seconds`` bounds the run: what does not fit is left out, and the notes say how much.
    ``keep`` is the name under which the counts are kept for ``docs/reliability.md``; "": nowhere.
    """

    title: str
    seconds: float = float("inf")
    keep: str = ""
    failures: list[str] = field(default_factory=list)
    begin: float = field(default_factory=time.monotonic)

    @property
    def is_over(self) -> bool:
        """Whether the time is up."""
        return time.monotonic() - self.begin > self.seconds

    def each(self, cases: Iterable[Any]) -> Iterator[Any]:
        """Yield the cases until the time is up."""
        for case in cases:
            if self.is_over:
                return
            yield case

    def check(self, right: bool, what: str) -> bool:
        """Note what went wrong, unless it is right."""
        if not right:
            self.failures.append(what)
        return right

    def end(
        self, table: pd.DataFrame, notes: Sequence[str] = (), counts: dict[str, Any] | None = None
    ) -> None:
        """Print everything, keep the counts, and leave with 1 where something failed."""
        if self.keep:
            kept = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
            kept[self.keep] = {
                "version": skbayes_sgld.__version__,
                "date": date.today().isoformat(),
                "seconds": round(time.monotonic() - self.begin),
                "failures": len(self.failures),
                **(counts or {}),
            }
            RESULTS.write_text(json.dumps(kept, indent=1, sort_keys=True, default=int) + "\n")
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
    """Options of a soak run from the command line: cases, seconds, seed, and where to keep it."""
    parser = argparse.ArgumentParser(prog=f"python -m {module}")
    parser.add_argument("--cases", type=int, default=cases, help="how many, at the most")
    parser.add_argument("--seconds", type=float, default=seconds, help="that it may take")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--keep",
        action="store_const",
        const=module.rpartition(".")[2],
        default="",
        help=f"write the counts to {RESULTS.name}, for docs/reliability.md",
    )
    return parser.parse_args()

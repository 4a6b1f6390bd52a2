"""Generated inputs, counted: ``python -m tests.soak.inputs --cases 20000``.

Each case calls something public with an argument that is wrong, extreme or oddly dressed, and must
end in a right result or in an error that names the argument (tests/inputs/oracle.py).
"""

from __future__ import annotations

import pandas as pd

from tests.inputs.cases import judge_cases

from .report import Report, options

KINDS = ("result", "error", "failure")


def main() -> None:
    """Judge the cases and print their counts; leave with 1 where one failed."""
    given = options("tests.soak.inputs", cases=20_000, seconds=3600.0)
    report = Report("Generated inputs")
    found = judge_cases(
        given.cases, given.seed, given.seconds, lambda *what: print(*what, sep="\n    ", flush=True)
    )
    counts = pd.Series(found.by_family).unstack(fill_value=0).reindex(columns=KINDS, fill_value=0)
    table = pd.concat([counts, counts.sum().to_frame("all").T]).rename_axis("calls").reset_index()
    for label, reason in found.failures.items():
        report.check(False, f"{label}: {reason}")
    seconds, label = found.slowest
    report.end(
        table, [f"{counts.to_numpy().sum():,} cases; the longest took {seconds:.1f} s: {label}"]
    )


if __name__ == "__main__":
    main()

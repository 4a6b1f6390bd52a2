"""Generated inputs, counted: ``python -m tests.soak.inputs --cases 20000``.

Each case calls something public with an argument that is wrong, extreme or oddly dressed, and must
end in a right result or in an error that names the argument (tests/inputs/oracle.py). Two processes
judge them in blocks of 500, each of a seed of its own: Hypothesis varies what it has drawn before,
and a new seed begins elsewhere.
"""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context

import pandas as pd

from tests.inputs.cases import Counts, judge_cases

from .report import Report, options

KINDS = ("result", "error", "failure")
BLOCK = 500
WORKERS = 2


def main() -> None:
    """Judge the cases and print their counts; leave with 1 where one failed."""
    given = options("tests.soak.inputs", cases=20_000, seconds=1500.0)
    report, found = Report("Generated inputs", given.seconds, given.keep), Counts(Counter(), {})
    sizes = [min(BLOCK, given.cases - first) for first in range(0, given.cases, BLOCK)]
    seeds = [1000 * given.seed + block for block in range(len(sizes))]
    with ProcessPoolExecutor(WORKERS, mp_context=get_context("spawn")) as pool:
        blocks = [pool.submit(judge_cases, *each) for each in zip(sizes, seeds, strict=True)]
        for block in as_completed(blocks):
            if block.cancelled():
                continue
            for label, reason in block.result().failures.items():
                if label not in found.failures:
                    print(label, reason, sep="\n    ", flush=True)
            found += block.result()
            kinds = Counter()
            for (_, kind), n in found.by_family.items():
                kinds[kind] += n
            print(f"{kinds.total():,} cases: {dict(kinds)}", flush=True)
            if report.is_over:
                for other in blocks:
                    other.cancel()
    counts = pd.Series(found.by_family).unstack(fill_value=0).reindex(columns=KINDS, fill_value=0)
    table = pd.concat([counts, counts.sum().to_frame("all").T]).rename_axis("calls").reset_index()
    for label, reason in found.failures.items():
        report.check(False, f"{label}: {reason}")
    seconds, label = found.slowest
    report.end(
        table,
        [
            f"{counts.to_numpy().sum():,} cases, {len(found.labels):,} different ones; the longest "
            f"took {seconds:.1f} s of work: {label}"
        ],
        {"cases": int(counts.to_numpy().sum()), **counts.sum()},
    )


if __name__ == "__main__":
    main()

"""Generated inputs, counted: ``python -m tests.maintainer.soak.inputs --cases 20000``.

Each case calls something public with an argument that is wrong, extreme or oddly dressed, and must
end in a right result or in an error that names the argument (tests/inputs/oracle.py). Two processes
judge them in blocks of 500, each of a seed of its own.
"""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context

import pandas as pd

from tests.inputs.cases import judge_cases

from .report import Report, options

BLOCK = 500
WORKERS = 2


def main() -> None:
    """Judge the cases and print their counts; leave with 1 where one failed."""
    given = options("tests.maintainer.soak.inputs", cases=20_000, seconds=1500.0)
    report, found = Report("Generated inputs", given.seconds, given.keep), []
    cases = [range(min(BLOCK, given.cases - first)) for first in range(0, given.cases, BLOCK)]
    seeds = [1000 * given.seed + block for block in range(len(cases))]
    with ProcessPoolExecutor(WORKERS, mp_context=get_context("spawn")) as pool:
        blocks = [pool.submit(judge_cases, *each) for each in zip(cases, seeds, strict=True)]
        for block in as_completed(blocks):
            if block.cancelled():
                continue
            found += block.result()
            print(f"{len(found):,} cases", flush=True)
            if report.is_over:
                for other in blocks:
                    other.cancel()
    table = pd.DataFrame(found, columns=["calls", "kind", "label", "reason", "seconds"])
    for row in table[table["kind"] == "failure"].drop_duplicates("label").itertuples():
        report.check(False, f"{row.label}: {row.reason}")
    longest = table.loc[table["seconds"].idxmax()]
    report.end(
        pd.crosstab(table["calls"], table["kind"], margins=True, margins_name="all").reset_index(),
        [
            f"{len(table):,} cases, {table['label'].nunique():,} different ones; the longest "
            f"took {longest['seconds']:.1f} s of work: {longest['label']}"
        ],
        {"cases": len(table), "failure": 0, **table["kind"].value_counts()},
    )


if __name__ == "__main__":
    main()

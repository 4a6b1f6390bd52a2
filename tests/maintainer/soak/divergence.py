"""Steps that are far too long, for every sampler: ``python -m tests.maintainer.soak.divergence``.

Each of the cases of ``tests/inference/divergence.py`` is run and judged.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from tests.inference.divergence import CASES, judge

from .report import Report, options


def main() -> None:
    """Run every case."""
    given = options("tests.maintainer.soak.divergence", len(CASES), float("inf"))
    report = Report("Steps that are far too long", given.seconds, given.keep)
    order, rows = np.random.default_rng(given.seed).permutation(len(CASES)), []
    for number in report.each(order[: given.cases]):
        case = CASES[number]
        outcome, wrong = judge(case)
        report.check(not wrong, f"{case}: {wrong}")
        rows.append({"sampler": case.sampler, "times": f"{case.factor:g}", "outcome": outcome})
    found = pd.DataFrame(rows)
    table = pd.crosstab([found["sampler"], found["times"]], found["outcome"]).reset_index()
    each: dict[str, dict[str, str]] = {}
    for (sampler, times), of in found.groupby(["sampler", "times"])["outcome"]:
        told = [str(sum(of == kind)) for kind in ("error", "warning", "right")]
        each.setdefault(sampler, {})[times] = " / ".join(told)
    counts = {"cases": len(rows), **found["outcome"].value_counts(), "by sampler": each}
    report.end(table, [f"{len(rows)} of {len(CASES)} cases"], counts)


if __name__ == "__main__":
    main()

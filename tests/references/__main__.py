"""Print the table: ``python -m tests.references [pattern] [--recompute]``.

``--pooled 20`` fits every case with 20 seeds instead and prints the errors of all draws together:
their bias, with the standard errors of chance. ``docs/measured/truth.py`` and ``truth_bias.py``
make the tables of ``docs/truth.md``.
"""

from __future__ import annotations

import argparse
import re
import sys
import time

import pandas as pd

from .cases import all_cases
from .judge import MAX_MEAN, MAX_QUANTILE, MAX_SD, MIN_ESS, judge
from .pooled import CHANCE, pool
from .pooled import MAX_MEAN as MAX_POOLED_MEAN
from .pooled import MAX_SD as MAX_POOLED_SD


def judged(cases, recompute):
    """Row of each case, and every bound that it breaks, every warning and error."""
    rows, said = [], []
    for case in cases:
        verdict = judge(case, recompute)
        names = ("name", "n", "d", "kind", "worth", "mean", "sd", "quantile", "ess", "seconds")
        rows.append({name: getattr(verdict, name) for name in (*names, "used")})
        told = verdict.broken + ["slow"] * verdict.slow + verdict.notes
        said += [f"{case.name}: {text}" for text in (*told, *filter(None, [verdict.error]))]
        print(case.name, *told, file=sys.stderr, flush=True)
    bounds = f"mean {MAX_MEAN} sd, sd {MAX_SD:.0%}, quantiles {MAX_QUANTILE} sd, ESS {MIN_ESS}"
    return rows, said, bounds


def pooled(cases, n_seeds):
    """Row of each case with the draws of many seeds, and the bounds that it breaks."""
    rows, said = [], []
    for case in cases:
        found = pool(case, n_seeds)
        rows.append(
            {"name": case.name, "worth": found.worth, **found.largest(), "used": found.used}
        )
        said += [f"{case.name}: {text}" for text in found.broken()]
        print(case.name, *found.broken(), file=sys.stderr, flush=True)
    bounds = f"mean {MAX_POOLED_MEAN} sd, sd {MAX_POOLED_SD:.1%}, or {CHANCE} standard errors"
    return rows, said, bounds


def main():
    parser = argparse.ArgumentParser(prog="python -m tests.references", description=__doc__)
    parser.add_argument("pattern", nargs="?", default="", help="regular expression of case names")
    parser.add_argument("--recompute", action="store_true", help="make the cached references anew")
    parser.add_argument("--pooled", type=int, metavar="SEEDS", help="pool the draws of many seeds")
    options = parser.parse_args()
    chosen = [c for name, c in all_cases().items() if re.search(options.pattern, name)]
    started = time.perf_counter()
    if options.pooled:
        rows, said, bounds = pooled(chosen, options.pooled)
    else:
        rows, said, bounds = judged(chosen, options.recompute)
    print(pd.DataFrame(rows).to_string(index=False, float_format="{:.3g}".format))
    print(f"\n{len(chosen)} cases in {time.perf_counter() - started:.0f} s; bounds: {bounds}.")
    print(*(f"- {text}" for text in said or ["no bound is broken"]), sep="\n")
    return bool(said)


if __name__ == "__main__":
    sys.exit(main())

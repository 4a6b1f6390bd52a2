"""Print the table: ``python -m tests.references [pattern] [--recompute] [--markdown]``.

``--pooled 20`` fits every case with 20 seeds instead and prints the errors of all draws together:
what is left there is bias, beside the chance that the standard errors tell.
"""

from __future__ import annotations

import argparse
import re
import sys
import time

from . import pooled
from .cases import all_cases
from .judge import MAX_MEAN, MAX_QUANTILE, MAX_SD, MIN_ESS, judge

HEAD = ["case", "n", "d", "reference", "worth", "mean", "sd", "quantile", "ess", "seconds", "used"]
WIDTHS = (31, 8, 6, 10, 24, 7, 7, 8, 7, 8, 30)


def cells(verdict):
    """A row's cells, what breaks a bound marked with an exclamation mark."""
    marks = {word: "!" for text in verdict.broken for word in text.split()[:1]}
    return [
        verdict.name,
        f"{verdict.n:,}",
        f"{verdict.d:,}",
        verdict.kind,
        verdict.worth,
        f"{verdict.mean:.3f}" + marks.get("mean", ""),
        f"{verdict.sd:.1%}" + marks.get("sd", ""),
        f"{verdict.quantile:.3f}" + marks.get("quantile", ""),
        f"{verdict.ess:.0f}" + marks.get("ess", ""),
        f"{verdict.seconds:.2f}" + "!" * verdict.slow,
        verdict.used,
    ]


def line(texts, markdown):
    if markdown:
        return "| " + " | ".join(texts) + " |"
    parts = [
        t.rjust(w) if i in (1, 2, 5, 6, 7, 8, 9) else t.ljust(w)
        for i, (t, w) in enumerate(zip(texts, WIDTHS, strict=True))
    ]
    return "  ".join(parts).rstrip()


def main():
    parser = argparse.ArgumentParser(prog="python -m tests.references", description=__doc__)
    parser.add_argument("pattern", nargs="?", default="", help="regular expression of case names")
    parser.add_argument("--recompute", action="store_true", help="make the cached references anew")
    parser.add_argument("--markdown", action="store_true", help="print the table for the docs")
    parser.add_argument("--pooled", type=int, metavar="SEEDS", help="pool the draws of many seeds")
    options = parser.parse_args()
    chosen = [c for name, c in all_cases().items() if re.search(options.pattern, name)]
    if options.pooled:
        return print_pooled(chosen, options.pooled)
    print(line(HEAD, options.markdown))
    if options.markdown:
        print(line(["---"] * len(HEAD), True))
    started, verdicts = time.perf_counter(), []
    for case in chosen:
        verdicts.append(judge(case, options.recompute))
        print(line(cells(verdicts[-1]), options.markdown), flush=True)
    report(verdicts, time.perf_counter() - started)
    return any(v.broken or v.notes for v in verdicts)


def print_pooled(cases, n_seeds):
    """Print the table of biases; whether a bound is broken."""
    print(pooled.line(pooled.HEAD))
    broken = []
    for case in cases:
        found = pooled.pool(case, n_seeds)
        broken += found.broken()
        print(pooled.line(found.cells()), flush=True)
    print(
        f"\n{len(cases)} cases, {n_seeds} seeds each; bounds {pooled.MAX_MEAN} sd and "
        f"{pooled.MAX_SD:.1%}, and {pooled.CHANCE} standard errors: {len(broken)} broken."
    )
    return bool(broken)


def report(verdicts, seconds):
    """Print below the table what failed, what was warned of and what was slow."""
    print(
        f"\n{len(verdicts)} cases in {seconds:.0f} s; mean error, in sds, up to {MAX_MEAN}; sd up "
        f"to {MAX_SD:.0%}; 5 % and 95 % quantiles, in sds, up to {MAX_QUANTILE}; ESS from "
        f"{MIN_ESS}."
    )
    for verdict in verdicts:
        for text in verdict.broken + ["slow"] * verdict.slow + verdict.notes:
            print(f"- {verdict.name}: {text}")
        if verdict.error:
            print(f"- {verdict.name}: {verdict.error}")
    if not any(v.broken for v in verdicts):
        print("No bound is broken.")


if __name__ == "__main__":
    sys.exit(main())

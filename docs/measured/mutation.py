"""Breakages that a test fails for, for ``docs/reliability.md``, from what ``make mutate`` kept."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from pathlib import Path

from _figure import parse
from _numbers import measured

from tests.maintainer.mutation.mutants import RESULTS, sample_mutants

OUTCOMES = {"killed": "a test fails", "equivalent": "equivalent", "open": "open"}
NOT_RUN = "not run since the code changed"


def main(arguments=None):
    options = parse(__doc__, arguments)
    if options.quick:  # the breakages follow the code, whose every change changes them
        return {}
    results = json.loads(RESULTS.read_text())
    counts = defaultdict(Counter)
    for mutant in sample_mutants():
        known = results.get(mutant.key)
        is_current = known is not None and known["digest"] == mutant.digest
        outcome = OUTCOMES[known["outcome"]] if is_current else NOT_RUN
        for part in (Path(mutant.path).parts[1].removesuffix(".py"), "all"):
            counts[part][outcome] += 1
    rows = {}
    for part in sorted(counts, key=lambda name: (name == "all", name)):
        rows[part] = {"part": part, "changes": measured(counts[part].total(), None, ".0f")}
        for outcome in (*OUTCOMES.values(), NOT_RUN):
            rows[part][outcome] = measured(counts[part][outcome], None, ".0f")
    return {"rows": rows}


if __name__ == "__main__":
    print(main())

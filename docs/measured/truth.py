"""Every default fit of the proof beside its reference, for ``docs/truth.md``; about a minute."""

from __future__ import annotations

import numpy as np
from _figure import parse, show_rows
from _numbers import measured

from tests.references.cases import all_cases
from tests.references.judge import judge

QUICK = ("lecture", "sixteen-rows", "nba-rookies", "spector", "iris", "logistic-leverage")


def row(verdict):
    """Row of the table, with the standard errors that draws of that effective size have.

    A figure is the worst over parameters, and varies less than that of one.
    """
    broken = {text.split()[0] for text in verdict.broken}
    error = 1.0 / np.sqrt(verdict.ess)
    figures = {
        "mean": measured(verdict.mean, error, ".3f" + " !" * ("mean" in broken)),
        "sd": measured(verdict.sd, error, ".1f %" + "!" * ("sd" in broken)),
        "quantile": measured(verdict.quantile, 2.0 * error, ".3f" + " !" * ("quantile" in broken)),
        "ess": measured(verdict.ess, 0.1 * verdict.ess, ",.0f" + " !" * ("ess" in broken)),
        "seconds": measured(verdict.seconds, None, ".2f"),
    }
    head = {"case": verdict.name, "n": f"{verdict.n:,}", "d": f"{verdict.d:,}"}
    head |= {"reference": f"{verdict.kind}, {verdict.worth}"}
    return head | figures


def main(arguments=None):
    options = parse(__doc__, arguments)
    cases = all_cases()
    chosen = QUICK if options.quick else cases
    verdicts = {name: judge(cases[name]) for name in chosen}
    rows = {name: row(verdict) for name, verdict in verdicts.items()}
    if options.quick:
        return {"rows": rows}
    for name, verdict in verdicts.items():
        rows[name]["used"] = verdict.used  # a step size may differ where a pilot is undecided
    show_rows(rows)
    breaks = {name: v.broken for name, v in verdicts.items() if v.broken}
    print(breaks)
    return {
        "rows": rows,
        "cases": measured(len(rows), show=".0f"),
        "break a bound": measured(len(breaks), None, ".0f"),
        "told something": measured(sum(bool(v.notes) for v in verdicts.values()), show=".0f"),
    }


if __name__ == "__main__":
    main()

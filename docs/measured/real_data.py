"""Coverage of default fits on real data sets, for ``docs/real_data.md``.

``make real-data`` measures the sets (``benchmarks.real_data``), and writes the page from the kept.
"""

from __future__ import annotations

import json
import re
import sys
from math import floor, isfinite, log10, nan, sqrt
from pathlib import Path

import numpy as np
from scipy.stats import binomtest

sys.path[:0] = [str(Path(__file__).resolve().parents[2] / "examples")]

from _figure import parse, show_rows  # noqa: E402
from _numbers import measured  # noqa: E402

from benchmarks._real_scores import GROUPS, holds, wrong  # noqa: E402
from benchmarks._real_sets import SETS  # noqa: E402
from benchmarks.real_data import RESULTS, measure  # noqa: E402

QUICK = "stackloss", "spector"
KINDS = tuple(dict.fromkeys(each.kind for each in SETS.values()))
_SHARES = ("90 %", *GROUPS[1:], "±", "± of a third", "50 %")
_REPLICATES = 4_000  # of a set whose model is right
_FLIPS = 0.01  # share of rows that another seed's draws move to the other side of an interval's end


def percent(cell, n):
    """Share, with ! where it does not hold; its error is that of the draws, as rows are given."""
    return measured(cell[0], sqrt(_FLIPS / n), ".0f %" + " !" * (not holds(*cell)))


def figure(value, error):
    """Number of three digits."""
    digits = 2 - floor(log10(abs(value))) if value else 2
    return measured(value, error, f",.{max(0, digits)}f")


def warned(kept):
    """Whether the fit to all rows told a misfit."""
    return any(text.startswith("ModelMisfitWarning") for text in kept["said"])


def told(said):
    """Categories of warnings, and of a misfit its reason."""
    reasons = [text.rpartition(": ")[2] for text in said if text.startswith("ModelMisfitWarning")]
    others = [text.partition(": ")[0] for text in said if "ModelMisfitWarning" not in text]
    words = [text.partition(";")[0] for text in reasons]
    return ", ".join(dict.fromkeys([*words, *others])) or "nothing"


def shares(found, n):
    """Columns of one method's coverage."""
    cells, thirds = found["coverage"]["0.9"], GROUPS[1:]
    figures = [percent(cells["all"], n), *(percent(cells[group], n / 3) for group in thirds)]
    errors = cells["all"][2], max(cells[group][2] for group in thirds)
    figures += [measured(error, 0.01, ".0f %") for error in errors]
    figures.append(percent(found["coverage"]["0.5"]["all"], n))
    return dict(zip(_SHARES, figures, strict=True))


def row(first, columns, cells):
    """Row of a table; "-" where there is no such cell."""
    return first | {name: cells.get(name, "-") for name in columns}


def default_row(name, kept):
    """Row of a default fit."""
    found, n = kept["methods"]["default"], kept["n"]
    first = {"set": name, "n": f"{n:,}", "d": f"{kept['d']}", "fit said": told(kept["said"])}
    first["check_model finds"] = ", ".join(kept["misfits"]) or "nothing"
    if "raised" in found:
        columns = (*_SHARES, "score", "fit, s", "check_model, s")
        return row(first | {"fit said": found["raised"].partition(":")[0]}, columns, times_of(kept))
    score = figure(found["score"], 0.02 * abs(found["score"]))
    return first | shares(found, n) | {"score": score} | times_of(kept)


def times_of(kept):
    """Seconds of the fit and of ``check_model``."""
    return {
        "fit, s": measured(kept["seconds"], None, ".2f"),
        "check_model, s": measured(kept["check_seconds"], None, ".1f"),
    }


def worst_third(found):
    """Third whose coverage is farthest from what is expected."""
    return max((found["coverage"]["0.9"][g] for g in GROUPS[1:]), key=lambda c: abs(c[0] - c[1]))


def beside_row(name, kept):
    """Row of all methods: coverage, that of the worst third, and the score over the default's."""
    cells, columns, n = {}, [], kept["n"]
    for method, found in kept["methods"].items():
        if method == "suggestion":
            continue
        names = [method, f"{method}, worst third"]
        names += [f"{method}, score / default"] * (method != "default")
        columns += names
        if "raised" not in found:
            cells[names[0]] = percent(found["coverage"]["0.9"]["all"], n)
            cells[names[1]] = percent(worst_third(found), n / 3)
        if isfinite(found.get("ratio", [nan])[0]):  # intervals without an end have no score
            cells[names[2]] = measured(found["ratio"][0], 0.02, ".2f")
    return row({"set": name}, columns, cells)


def suggestion_row(name, kept):
    """Row of what ``check_model`` suggests."""
    found = kept["methods"]["suggestion"]
    remedies = re.match(r"Suggestion: (.+?)\. Its ", kept["reason"])[1]
    first = {"set": name, "suggestion": remedies}
    if "raised" in found:
        return row(first, _SHARES + ("score / default",), {})
    cells = shares(found, kept["n"])
    if "ratio" in found:  # not where the default raised
        cells["score / default"] = measured(found["ratio"][0], 0.02, ".2f")
    return row(first, (*_SHARES, "score / default"), cells)


def set_row(name):
    """Row of the table of sources."""
    one = SETS[name]
    target = one.target if not one.size else f"{one.target}, of {one.size}"
    return {"set": name, "target": target, "source": one.source, "licence": one.licence}


def wrong_in(kept, method):
    """Groups that a method's intervals do not hold; without a suggestion, those of the default."""
    found = kept["methods"].get(method, kept["methods"]["default"])
    return ["raised"] if "raised" in found else wrong(found["coverage"])


def verdicts(results):
    """Numbers of sets on which the intervals of each method hold, by kind."""
    rows = {}
    for kind in (*KINDS, "all"):
        of_kind = {n: k for n, k in results.items() if kind in ("all", SETS[n].kind)}
        if not of_kind:
            continue
        methods = ["default"] if kind == "all" else list(next(iter(of_kind.values()))["methods"])
        for method in [*(m for m in methods if m != "suggestion"), "suggestion"]:
            groups = {name: wrong_in(kept, method) for name, kept in of_kind.items()}
            overall = [n for n, g in groups.items() if not {"raised", "all", "50 %"} & set(g)]
            thirds = [n for n, g in groups.items() if not {"raised", *GROUPS[1:]} & set(g)]
            rows[f"{kind}, {method}"] = {
                "kind": kind,
                "method": method,
                "sets": number(len(groups)),
                "raised": number(sum(g == ["raised"] for g in groups.values())),
                "hold overall": number(len(overall)),
                "hold in every third": number(len(thirds)),
                "hold in both": number(sum(not g for g in groups.values())),
            }
    return rows


def sayings(results):
    """Numbers of sets whose default intervals do not hold, and that do, by what is said of them."""
    rows = {}
    for kind in (*KINDS, "all"):
        of_kind = [k for n, k in results.items() if kind in ("all", SETS[n].kind)]
        for holding in (False, True):
            some = [k for k in of_kind if bool(wrong_in(k, "default")) is not holding]
            found = [(warned(kept), bool(kept["misfits"])) for kept in some]
            rows[f"{kind}, {'hold' if holding else 'do not hold'}"] = {
                "kind": kind,
                "default intervals": "hold" if holding else "do not hold",
                "sets": number(len(some)),
                "fit warned": number(sum(fit for fit, _ in found)),
                "check_model says it": number(sum(check for _, check in found)),
                "silent": number(sum(not fit and not check for fit, check in found)),
            }
    return rows


def groups_of(kept):
    """Number of rows and cell of each share that is judged: 50 and 90 % of all, 90 % of thirds."""
    n, found = kept["n"], kept["methods"]["default"]["coverage"]
    thirds = [len(part) for part in np.array_split(np.arange(n), 3)]
    cells = [found["0.5"]["all"], *(found["0.9"][group] for group in GROUPS)]
    return list(zip([n, n, *thirds], cells, strict=True))


def chance(kept):
    """P-value of the five shares together (binomial, Bonferroni), as a right model would give."""
    p = [
        binomtest(round(share * n), n, min(expected, 1.0)).pvalue
        for n, (share, expected, _) in groups_of(kept)
    ]
    return min(1.0, len(p) * min(p))


def named(results):
    """Row of each set whose intervals do not hold by default, or after the suggestion."""
    rows = {}
    for name, kept in results.items():
        before, after = (wrong_in(kept, method) for method in ("default", "suggestion"))
        if before or after:
            suggested = "suggestion" in kept["methods"]
            rows[name] = {
                "set": name,
                "n": f"{kept['n']:,}",
                "default does not hold": ", ".join(before) or "-",
                "p-value": "-" if "raised" in before else measured(chance(kept), None, ".1g"),
                "fit warned": "yes" if warned(kept) else "no",
                "check_model says it": "yes" if kept["misfits"] else "no",
                "suggestion does not hold": (", ".join(after) or "-") if suggested else "none",
            }
    return rows


def by_chance(results):
    """Expected number of sets that would be judged not to hold, were every model right."""
    rng, total = np.random.default_rng(0), 0.0
    for kept in results.values():
        if "raised" in kept["methods"]["default"]:
            continue
        (n, half), _, *parts = groups_of(kept)
        inside = [rng.binomial(size, cell[1], _REPLICATES) for size, cell in parts]
        of_half = rng.binomial(n, half[1], _REPLICATES)
        numbers = zip([of_half, sum(inside), *inside], groups_of(kept), strict=True)
        held = [holds(k / size, *cell[1:]) for k, (size, cell) in numbers]
        total += 1.0 - np.mean(np.all(held, axis=0))
    return measured(total, sqrt(total / _REPLICATES), ".1f")


def number(value):
    return measured(value, None, ".0f")


def tables(results):
    """Tables of the page: fits, other libraries and suggestions by kind of target."""
    found = {"sets": {name: set_row(name) for name in results}}
    makers = {"default": default_row, "beside": beside_row, "suggestion": suggestion_row}
    for part, make in makers.items():
        for kind in KINDS:
            of_kind = {n: k for n, k in results.items() if SETS[n].kind == kind}
            if part == "suggestion":
                of_kind = {n: k for n, k in of_kind.items() if part in k["methods"]}
            if of_kind:
                made = {name: make(name, kept) for name, kept in of_kind.items()}
                found.setdefault(part, {})[kind] = made
    return found


def main(arguments=None):
    options = parse(__doc__, arguments)
    if options.quick:
        return tables({name: measure(name) for name in QUICK})
    results = json.loads(RESULTS.read_text())
    found = tables(results) | {"verdicts": verdicts(results), "sayings": sayings(results)}
    show_rows(found["verdicts"])
    show_rows(found["sayings"])
    found |= {"named": named(results), "by chance": by_chance(results)}
    show_rows(found["named"])
    found["number"] = measured(len(results), show=".0f")
    return found


if __name__ == "__main__":
    main()

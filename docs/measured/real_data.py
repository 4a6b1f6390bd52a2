"""Coverage of default fits on real data sets, for ``docs/real_data.md``.

``make real-data`` measures the sets (``benchmarks.real_data``), and writes the page from the kept.
"""

from __future__ import annotations

import json
import re
import sys
from math import floor, isfinite, log10, nan, sqrt
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[2] / "examples")]

from _figure import parse, show_rows  # noqa: E402
from _numbers import measured  # noqa: E402

from benchmarks._real_scores import GROUPS, holds, wrong  # noqa: E402
from benchmarks._real_sets import SETS  # noqa: E402
from benchmarks.real_data import RESULTS, measure  # noqa: E402

QUICK = "stackloss", "spector"
KINDS = tuple(dict.fromkeys(each.kind for each in SETS.values()))
_SHARES = ("90 %", *GROUPS[1:], "±", "± of a third", "50 %")
_FLIPS = 0.01  # share of rows that another seed's draws move to the other side of an interval's end


def percent(cell, n):
    """Share, with ! where it does not hold; its error is that of the draws, as rows are given."""
    return measured(cell[0], sqrt(_FLIPS / n), ".0f %" + " !" * (not holds(*cell)))


def figure(value, error):
    """Number of three digits."""
    digits = 2 - floor(log10(abs(value))) if value else 2
    return measured(value, error, f",.{max(0, digits)}f")


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
    first = {"set": name, "n": f"{n:,}", "d": f"{kept['d']}", "said": told(kept["said"])}
    if "raised" in found:
        return row(first | {"said": found["raised"]}, _SHARES + ("score", "seconds"), {})
    score = figure(found["score"], 0.02 * abs(found["score"]))
    return first | shares(found, n) | {"score": score, "seconds": time_of(kept)}


def time_of(kept):
    return measured(kept["seconds"], None, ".2f")


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
    text = re.sub(r" at 0x[0-9a-f]+", "", kept["suggestion"])
    first = {"set": name, "suggestion": f"`{text}`"}
    if "raised" in found:
        return row(first, _SHARES + ("score / default",), {})
    ratio = measured(found["ratio"][0], 0.02, ".2f")
    return first | shares(found, kept["n"]) | {"score / default": ratio}


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
        if any("suggestion" in kept for kept in of_kind.values()):
            methods = [*(m for m in methods if m != "suggestion"), "suggestion"]
        for method in methods:
            asked = [n for n in of_kind if method != "suggestion" or "suggestion" in of_kind[n]]
            groups = {name: wrong_in(of_kind[name], method) for name in asked}
            silent = [n for n, g in groups.items() if g and not of_kind[n]["said"]]
            overall = [n for n, g in groups.items() if not {"raised", "all", "50 %"} & set(g)]
            thirds = [n for n, g in groups.items() if not {"raised", *GROUPS[1:]} & set(g)]
            of_fits = method == "default"
            rows[f"{kind}, {method}"] = {
                "kind": kind,
                "method": method,
                "sets": number(len(groups)),
                "raised": number(sum(g == ["raised"] for g in groups.values())),
                "hold overall": number(len(overall)),
                "hold in every third": number(len(thirds)),
                "wrong in silence": number(len(silent)) if of_fits else "",
            }
    return rows


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
    found = tables(results) | {"verdicts": verdicts(results)}
    show_rows(found["verdicts"])
    found["number"] = measured(len(results), show=".0f")
    return found


if __name__ == "__main__":
    main()

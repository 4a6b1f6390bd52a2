"""Tables of effects by group beside other libraries, from what ``benchmarks.group_peers`` kept."""

from __future__ import annotations

import json
from math import floor, log10

from _figure import parse
from _numbers import measured

from benchmarks.group_peers import NUTS, OURS, RESULTS, code, library

_NONE = "–"
_NAMES = {
    OURS: OURS,
    "bambi": "bambi",
    "statsmodels": "statsmodels, MixedLM",
    "gpboost": "GPBoost",
    "numpyro": "NumPyro, NUTS",
}
_SCALES = {
    "slopes": {"sd 0": ("sd, intercept", ".1f"), "sd 1": ("sd, Days", ".2f")}
    | {"correlation": ("correlation", "+.2f"), "sigma": ("residual sd", ".1f")},
    "binary": {"sd 0": ("sd of groups", ".3f")},
    "normal": {"sd 0": ("sd of groups", ".3f"), "sigma": ("residual sd", ".3f")},
}
_RACES = {
    "slopes": "sleepstudy, 180 x 18, with slopes",
    "binary": "binary, 1,000 x 50",
    "normal": "normal, 100,000 x 1,000",
}
_BESIDE_ESTIMATES = {
    "normal": "normal, 100,000 x 1,000",
    "binary, 100,000 rows": "binary, 100,000 x 1,000",
    "counts, 100,000 rows": "counts, 100,000 x 1,000",
    "binary, 1,000,000 rows": "binary, 1,000,000 x 10,000",
    "counts, 1,000,000 rows": "counts, 1,000,000 x 10,000",
}
_CROSSED = {
    "crossed, 20,000 rows": "normal, 20,000 x 1,000 x 300",
    "crossed, 70,000 rows": "normal, 70,000 x 3,000 x 1,100",
}
_CURVES = "curves, normal", "curves, binary", "curves, counts"
_PROCESSOR = 1  # of the two times that are kept, on the clock and of the processor


def digits(value, unit=""):
    """Two digits or more of a time, a rate or a ratio."""
    places = min(max(0, 1 - floor(log10(value))), 4)
    return measured(value, None, f",.{places}f{unit}")


def row(task, method, about, ours):
    """Line of a library: what its user writes and waits for, and what it estimates."""
    name = _NAMES[method]
    if task == "binary" and method == "statsmodels":
        name = "statsmodels, variational"
    cells = {"library": name, "lines": measured(about["lines"], 0.0, ".0f")}
    cells["seconds"] = digits(about["processor"])
    cells["× ours"] = digits(about["processor"] / ours["processor"])
    for key, (title, show) in _SCALES[task].items():
        found = about["estimates"].get(key)
        if found is None:
            cells[title] = _NONE
        else:
            mean, sd = found
            cells[title] = measured(mean, 0.0 if sd != sd else sd, f"±{show}")
    for part, show in (("means", ".2f sd"), ("sds", ".1f %")):
        far = about["agreement"][part]
        cells[part] = _NONE if far is None else measured(far, 0.0, show)
    return cells


def race(title, methods):
    """Effective draws a second of the worst scale beside the best of NUTS."""
    ours, found = methods[OURS]["ess a second"]["with compilation"][_PROCESSOR], {}
    for kind, counted in (("without", ""), ("with compilation", ", compile counted")):
        known = {m: methods[m].get("ess a second", {}) for m in NUTS if m in methods}
        rates = {m: rate[kind][_PROCESSOR] for m, rate in known.items() if kind in rate}
        if not rates:
            continue
        best = max(rates, key=rates.__getitem__)
        name = best.replace("numpyro", "NUTS")
        sides = digits(ours, " 1/s"), digits(rates[best], " 1/s")
        met = ours >= 10.0 * rates[best]
        found[f"{title}{counted}"] = line(
            f"{title}, ESS/s", f"{name}{counted}", sides, ours / rates[best], "at least 10", met
        )
    return found


def beside_estimate(title, methods):
    """Seconds of a posterior beside those of GPBoost's estimate."""
    ours, theirs = (methods[name]["processor"] for name in (OURS, "gpboost"))
    sides = digits(ours, " s"), digits(theirs, " s")
    met = ours <= 4.0 * theirs
    work = f"{title}, seconds"
    return line(work, "GPBoost's estimate", sides, ours / theirs, "at most 4", met)


def crossed(title, methods):
    """Scales of two crossed terms, beside GPBoost's estimates."""
    cells = {"rows": title}
    for method in (OURS, "gpboost"):
        about, name = methods[method], _NAMES[method]
        for key, term in (("sd 0", "groups"), ("sd 1", "items")):
            mean, sd = about["estimates"][key]
            show = measured(mean, 0.0 if sd != sd else sd, "±.3f")
            cells[f"sd of {term}, {name}"] = show
    cells["means"] = measured(methods["gpboost"]["agreement"]["means"], 0.0, ".2f sd")
    return cells


def curve(task, methods):
    """Seconds of two curves, and the distance of the first one from that of pygam."""
    ours, theirs = methods[OURS], methods["pygam"]
    cells = {"y": task.removeprefix("curves, "), "ours": digits(ours["processor"], " s")}
    cells["pygam"] = digits(theirs["processor"], " s")
    cells["ratio"] = digits(ours["processor"] / theirs["processor"])
    for part, show in (("means", ".2f sd"), ("sds", ".0f %")):
        cells[part] = measured(theirs["agreement"][part], 0.0, show)
    return cells


def line(work, beside, sides, ratio, bound, met):
    """Line of the table of bounds."""
    cells = {"work": work, "beside": beside, "ours": sides[0], "theirs": sides[1]}
    return cells | {"ratio": digits(ratio), "bound": bound, "met": "yes" if met else "**no**"}


def main(arguments=None):
    parse(__doc__, arguments)
    kept = json.loads(RESULTS.read_text())
    tables, bounds = {}, {}
    for task, found in kept["tasks"].items():
        methods = found["methods"]
        for method, about in methods.items():
            if about["code"] != code(task, method):
                raise ValueError(f"the snippet of {method} for {task} is not the measured one")
        if task in _RACES:
            shown = {m: methods[m] for m in _NAMES if m in methods}
            tables[task] = {_NAMES[m]: row(task, m, a, methods[OURS]) for m, a in shown.items()}
            if any(method in NUTS for method in methods):
                bounds |= race(_RACES[task], methods)
    for task, title in (_BESIDE_ESTIMATES | _CROSSED).items():
        if task in kept["tasks"]:
            bounds[f"{title}, seconds"] = beside_estimate(title, kept["tasks"][task]["methods"])
    curves = {t: curve(t, kept["tasks"][t]["methods"]) for t in _CURVES if t in kept["tasks"]}
    known = [task for task in _CROSSED if task in kept["tasks"]]
    both = {t: crossed(_CROSSED[t], kept["tasks"][t]["methods"]) for t in known}
    versions = {}
    for found in kept["tasks"].values():
        versions |= {library(m): about["version"] for m, about in found["methods"].items()}
    missing = {
        f"{task}: {method}": why
        for task, found in kept["tasks"].items()
        for method, why in found["missing"].items()
    }
    return tables | {
        "bounds": bounds,
        "crossed": both,
        "curves": curves,
        "versions": versions,
        "missing": missing,
    }


if __name__ == "__main__":
    print(main())

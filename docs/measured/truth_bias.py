"""Bias of every default fit, from twenty seeds, for ``docs/truth.md``; about ten minutes."""

from __future__ import annotations

import re
import warnings
from dataclasses import dataclass

import numpy as np
from _figure import parse, show_rows
from _numbers import measured
from threadpoolctl import threadpool_limits

from tests.references.cases import all_cases

QUICK, N_SEEDS = ("lecture", "spector"), 20
MAX_MEAN, MAX_SD = 0.01, 0.005
CHANCE = 3.5  # standard errors that the largest of a case's errors may be beyond a bound


@dataclass
class Pooled:
    """Errors of every mean, in sds, and of every sd, relative; standard errors of each."""

    name: str
    worth: str
    mean: np.ndarray
    mean_error: np.ndarray
    sd: np.ndarray
    sd_error: np.ndarray
    used: str

    def broken(self):
        """Bounds that are broken by more than chance explains."""
        found = []
        if np.any(np.abs(self.mean) > MAX_MEAN + CHANCE * self.mean_error):
            found.append("mean")
        if np.any(np.abs(self.sd) > MAX_SD + CHANCE * self.sd_error):
            found.append("sd")
        return found

    def largest(self):
        """The largest errors with their standard errors, and mean squares less those of chance."""
        found = {}
        parts = (("mean", self.mean, self.mean_error), ("sd", self.sd, self.sd_error))
        for name, error, chance in parts:
            worst = np.argmax(np.abs(error))
            found[name], found[f"its se, {name}"] = abs(error[worst]), chance[worst]
            found[f"all {name}s"] = np.sqrt(max(0.0, np.mean(error**2 - chance**2)))
        return found


def reference_error(reference):
    """Standard errors of a reference's means, in sds, and sds, relative."""
    width = np.sqrt((reference.kurtosis - 1.0) / 4.0)
    found = re.fullmatch(r"ESS ([\d,]+)", reference.worth)
    if found:
        size = float(found[1].replace(",", ""))
        return 1.0 / np.sqrt(size), width / np.sqrt(size)
    found = re.fullmatch(r"2 seeds: ([\d.]+), ([\d.]+)%", reference.worth)
    if found:  # the largest difference of two halves, and so above two standard errors of most
        return float(found[1]) / 4.0, float(found[2]) / 400.0
    return 0.0, 0.0


def pool(case, n_seeds):
    """Errors of the draws of ``n_seeds`` fits together."""
    X, y, *weight = case.data()
    with threadpool_limits(1):
        reference = case.reference()
    means, sds, used = [], [], []
    for seed in range(1, n_seeds + 1):
        model = case.estimator().set_params(random_state=seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the draws are compared with the reference
            model.fit(X, y, *weight)
        draws = model.posterior_.flat
        means.append((draws.mean(0) - reference.mean) / reference.sd)
        sds.append(draws.std(0) / reference.sd)
        used.append(f"{type(model.sampler_).__name__} {model.step_size_:.1g}")
    means, sds = np.array(means), np.array(sds)
    of_mean, of_sd = reference_error(reference)
    # of the pooled draws: their variance is that within the fits and that between them
    pooled = np.sqrt(np.mean(sds**2, axis=0) + means.var(axis=0))
    share = np.sqrt(n_seeds)
    return Pooled(
        case.name,
        reference.worth,
        means.mean(axis=0),
        np.hypot(means.std(axis=0, ddof=1) / share, of_mean),
        pooled - 1.0,
        np.hypot(sds.std(axis=0, ddof=1) / share, of_sd),
        ", ".join(f"{name} x{used.count(name)}" for name in sorted(set(used))),
    )


def row(found):
    """The largest errors, with their own errors, and what is typical."""
    marks, size = found.broken(), found.largest()
    mean_error, sd_error = size["its se, mean"], size["its se, sd"]
    return {
        "case": found.name,
        "reference": found.worth,
        "mean": measured(size["mean"], mean_error, "±.3f" + " !" * ("mean" in marks)),
        "sd": measured(size["sd"], sd_error, "±.1f %" + "!" * ("sd" in marks)),
        "all means": measured(size["all means"], mean_error, ".3f"),
        "all sds": measured(size["all sds"], sd_error, ".1f %"),
    }


def main(arguments=None):
    options = parse(__doc__, arguments)
    cases, n_seeds = all_cases(), 5 if options.quick else N_SEEDS
    found = {name: pool(cases[name], n_seeds) for name in (QUICK if options.quick else cases)}
    rows = {name: row(one) for name, one in found.items()}
    if options.quick:
        return {"rows": rows}
    for name, one in found.items():
        rows[name]["used"] = one.used
    show_rows(rows)
    broken = sum(bool(one.broken()) for one in found.values())
    return {"rows": rows, "break a bound": measured(broken, None, ".0f")}


if __name__ == "__main__":
    main()

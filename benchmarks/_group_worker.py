"""One snippet of the comparison of groups, run by the Python that has its library.

``python -m benchmarks._group_worker LIBRARY SNIPPET DATA SEED OUT`` executes the snippet for the
data frame in ``DATA``. It writes to ``OUT.npz`` the draws ``(chain, draw)`` of each parameter, and
to ``OUT.json`` the seconds, and the estimates of a library without draws. It needs NumPy, pandas
and the library alone.
"""

from __future__ import annotations

import json
import logging
import re
import resource
import sys
import warnings
from importlib.metadata import version
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import pandas as pd

_ENOUGH = 10.0  # seconds after which a fit is not repeated
_REPEATS = 3
_LONG = 120.0  # seconds of processor time beside which those of a compiler are few


def clock() -> np.ndarray:
    """Time on the clock, and processor time of this process and its children."""
    used = [resource.getrusage(w) for w in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return np.array([perf_counter(), sum(u.ru_utime + u.ru_stime for u in used)])


# ---- what a snippet leaves: draws (chain, draw), or an estimate and its standard error -----------
# Names are those of all libraries: intercept, slope K, sd K, correlation, sigma.


def of_skbayes_sgld(space: dict[str, Any]) -> dict[str, Any]:
    if getattr(space["model"], "smooth_effects", None) is not None:
        return curve_of(space)
    posterior = space["model"].posterior_
    found = {"intercept": posterior["intercept"]}
    found |= {f"slope {k}": v for k, v in enumerate(np.moveaxis(posterior["coef"], 2, 0))}
    found |= {f"sd {k}": v for k, v in enumerate(np.moveaxis(posterior["sd"], 2, 0))}
    if "noise_variance" in posterior:
        found["sigma"] = np.sqrt(posterior["noise_variance"])
    for name in posterior:
        if name.startswith("correlation["):
            found["correlation"] = posterior[name]
    return found


def curve_of(space: dict[str, Any]) -> dict[str, list[float]]:
    """Mean of y along the first column, and its standard deviation."""
    model, names = space["model"], list(space["data"].columns.drop("y"))
    rows = pd.DataFrame(np.zeros((7, len(names))), columns=names)
    rows["x0"] = np.linspace(-0.9, 0.9, len(rows))
    if hasattr(model, "confidence_intervals"):  # pygam
        mean, ends = model.predict_mu(rows), model.confidence_intervals(rows, width=0.9)
    elif hasattr(model, "predict_proba_interval"):
        mean, ends = model.predict_proba(rows)[:, 1], model.predict_proba_interval(rows)[:, 1]
    else:
        mean, ends = model.predict(rows), model.predict_interval(rows, kind="mean")
    sds = np.ptp(ends, axis=1) / (2.0 * 1.6449)
    pairs = np.column_stack([mean, sds]).astype(float).tolist()
    return {f"curve {k}": pair for k, pair in enumerate(pairs)}


def of_bambi(space: dict[str, Any]) -> dict[str, np.ndarray]:
    posterior = space["idata"].posterior
    names = [str(name) for name in posterior.data_vars if posterior[name].ndim == 2]
    found, slopes = {}, []
    for name in names:
        values = posterior[name].to_numpy()
        if name.endswith("_sigma"):
            found[f"sd {int(not name.startswith('1|'))}"] = values
        elif name in ("sigma", "Intercept"):
            found[name.lower()] = values
        else:
            slopes.append(values)
    return found | {f"slope {k}": values for k, values in enumerate(slopes)}


def of_numpyro(space: dict[str, Any]) -> dict[str, np.ndarray]:
    draws = {k: np.asarray(v) for k, v in space["mcmc"].get_samples(group_by_chain=True).items()}
    found = {"intercept": draws["level"]}
    slopes = draws["coef"] if "coef" in draws else draws["slope"][..., None]
    found |= {f"slope {k}": v for k, v in enumerate(np.moveaxis(slopes, 2, 0))}
    sds = draws["sd"].reshape(*draws["sd"].shape[:2], -1)
    found |= {f"sd {k}": v for k, v in enumerate(np.moveaxis(sds, 2, 0))}
    if "variance" in draws:
        found["sigma"] = np.sqrt(draws["variance"])
    if "correlation" in draws:
        found["correlation"] = draws["correlation"][..., 1, 0]
    return found


def of_statsmodels(space: dict[str, Any]) -> dict[str, list[float]]:
    found = space["found"]
    if hasattr(found, "vcp_mean"):  # variational Bayes: means and sds of logs
        coefs, errors = found.fe_mean, found.fe_sd
        sds = np.exp(found.vcp_mean)
        pairs = np.column_stack([sds, sds * found.vcp_sd]).tolist()
        others = {f"sd {k}": pair for k, pair in enumerate(pairs)}
    else:
        coefs, errors = np.asarray(found.fe_params), np.asarray(found.bse_fe)
        cov = np.asarray(found.cov_re)
        sds = np.sqrt(np.diag(cov))
        others = {f"sd {k}": [float(value), np.nan] for k, value in enumerate(sds)}
        others["sigma"] = [float(found.scale**0.5), np.nan]
        if len(sds) == 2:
            others["correlation"] = [float(cov[0, 1] / sds.prod()), np.nan]
    return _coefficients(coefs, errors) | others


def of_gpboost(space: dict[str, Any]) -> dict[str, list[float]]:
    table = space["model"].get_cov_pars()
    names = ["sigma"] * ("Error_var" in table) + [f"sd {k}" for k in range(2)]
    sds = dict(zip(names, np.sqrt(np.ravel(table)), strict=False))
    coefs = np.ravel(space["model"].get_coef())
    others = {name: [float(value), np.nan] for name, value in sds.items()}
    return _coefficients(coefs, np.full(len(coefs), np.nan)) | others


def _coefficients(values: Any, errors: Any) -> dict[str, list[float]]:
    """Estimates and standard errors by name; the intercept is the first."""
    names = ["intercept", *(f"slope {k}" for k in range(len(values) - 1))]
    pairs = np.column_stack([values, errors]).astype(float).tolist()
    return dict(zip(names, pairs, strict=True))


READ = {
    "skbayes_sgld": of_skbayes_sgld,
    "bambi": of_bambi,
    "numpyro": of_numpyro,
    "statsmodels": of_statsmodels,
    "gpboost": of_gpboost,
    "pygam": curve_of,
}


def compiled(space: dict[str, Any], fit: str) -> list[float]:
    """Seconds of NumPyro without those of its compiler.

    JAX keeps compiled programs, but a second run is traced again, which takes longer than the draws
    of a small model do. So a short run is subtracted from a long one of ten times as many draws.
    What is left tells the time of a draw, and a step of the warm-up counts as one.
    """
    n_warmup, n_draws = (int(n) for n in re.findall(r"num_(?:warmup|samples)=(\d+)", fit))
    long = fit.replace(f"num_samples={n_draws}", f"num_samples={11 * n_draws}")
    seconds = []
    for text in (fit, long):
        begin = clock()
        exec(text, space)
        of_numpyro(space)
        seconds.append(clock() - begin)
    of_draw = (seconds[1] - seconds[0]) / (10 * n_draws)
    return (of_draw * (n_warmup + n_draws)).tolist()


def main() -> None:
    library, snippet, data, seed, out = sys.argv[1:6]
    warnings.simplefilter("ignore")  # a snippet is measured, whatever its library says
    logging.disable(logging.ERROR)
    text = Path(snippet).read_text().replace("key(0)", f"key({seed})")
    text = text.replace("random_state=0", f"random_state={seed}")
    text = text.replace("random_seed=0", f"random_seed={seed}")
    imports, fit = text.split("\n\n", 1)
    frame = pd.read_csv(data)
    runs: list[list[float]] = []
    repeats = 1 if library == "numpyro" else _REPEATS  # its later runs find compiled programs
    while not runs or (len(runs) < repeats and sum(run[0] for run in runs) < _ENOUGH):
        space: dict[str, Any] = {"data": frame}
        exec(imports, space)
        begin = clock()
        exec(fit, space)
        found = READ[library](space)
        runs.append((clock() - begin).tolist())
    draws = {k: v for k, v in found.items() if isinstance(v, np.ndarray)}
    np.savez(f"{out}.npz", **draws)
    about = {"version": version(library.replace("_", "-")), "runs": runs}
    if library == "numpyro":
        about["compiled"] = runs[0] if runs[0][1] > _LONG else compiled(space, fit)
    about["estimates"] = {k: v for k, v in found.items() if k not in draws}
    Path(f"{out}.json").write_text(json.dumps(about))


if __name__ == "__main__":
    main()

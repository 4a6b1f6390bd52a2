"""Coverage of default fits on real data sets, beside other libraries: ``docs/real_data.md``.

    python -m benchmarks.real_data              measure the sets that have no result yet
    python -m benchmarks.real_data --again      forget the results, and measure all of them anew
    python -m benchmarks.real_data engel iris   measure these anew
    python -m benchmarks.real_data --fits       make the fits to all rows anew: what they say

Each set is cut into ten folds, or three where a fit takes ten seconds. The rows of each fold are
predicted from those of the others: by the default fit, by other libraries
(``benchmarks._real_peers``) and, where ``check_model`` has one, by its suggestion. The results are
in ``benchmarks/results/real_data.json``, which is written after every set: a measurement that was
stopped goes on without ``--again``.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import KFold, StratifiedKFold

import skbayes_sgld as package
from benchmarks._real_peers import PEERS
from benchmarks._real_scores import LEVELS, Judged, coverage, joined, of_intervals, of_probabilities
from benchmarks._real_sets import SETS, Data
from skbayes_sgld.criticism.remedies import fit_like

RESULTS = Path(__file__).parent / "results" / "real_data.json"
_N_FOLDS, _FEWER_FOLDS, _LONG = 10, 3, 10.0  # fewer folds from so many seconds a fit
_N_SAMPLES = 2_000
_LABELS = "classes", "ordered classes"


def default(kind: str) -> Any:
    """Estimator that a user would begin with."""
    name = {"numbers": "SGLDLinearRegression", "counts": "SGLDPoissonRegressor"}.get(kind)
    if kind == "ordered classes":
        name = "SGLDOrdinalClassifier"
    return getattr(package, name or "", package.SGLDLogisticRegression)(random_state=0)


# ---- one fit -------------------------------------------------------------------------------------


def of_rows(data: Data) -> dict[str, np.ndarray]:
    """Exposures or numbers of trials, by the name that the methods take them."""
    name = "n_trials" if data.kind == "totals" else "exposure"
    return {} if data.size is None else {name: data.size}


def fit(model: Any, data: Data) -> Any:
    """Fitted model, or wrappers around one."""
    return fit_like(model, data.X, data.y, of_rows(data))


def ours(model: Any, train: Data, test: Data) -> Judged:
    """Judged predictions of an estimator of the package, or of wrappers around one."""
    model = fit(clone(model), train)
    if train.kind in _LABELS:
        return of_probabilities(test.y, model.predict_proba(test.X), model.classes_)
    rows = of_rows(test)
    if train.kind == "numbers":
        ends = package.predict_interval(model, test.X, coverage=LEVELS)
        return of_intervals(test.y, model.predict(test.X), ends, None)
    draws = package.sample_y(model, test.X, n_samples=_N_SAMPLES, random_state=0, **rows)
    if train.kind == "totals":
        tails = [(1.0 - np.array(LEVELS)) / 2.0, (1.0 + np.array(LEVELS)) / 2.0]
        ends = np.quantile(draws, tails, axis=1, method="inverted_cdf").transpose(2, 0, 1)
        return of_intervals(test.y, draws.mean(axis=1), ends, _held(draws, ends))
    ends = package.predict_interval(model, test.X, coverage=LEVELS, **rows)
    return of_intervals(test.y, model.predict(test.X, **rows), ends, _held(draws, ends))


def _held(draws: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """Share of the draws of every row inside its intervals."""
    inside = (ends[:, 0, :, None] <= draws[:, None]) & (draws[:, None] <= ends[:, 1, :, None])
    return inside.mean(axis=2)


# ---- one set -------------------------------------------------------------------------------------


Folds = list[tuple[Data, Data, np.ndarray]]


def cut(data: Data, n_folds: int) -> Folds:
    """Rows to fit and rows to predict, with the positions of the latter."""
    splitter = StratifiedKFold if data.kind in _LABELS else KFold
    splits = splitter(n_folds, shuffle=True, random_state=0).split(data.X, data.y)
    return [(data.rows(train), data.rows(test), test) for train, test in splits]


def judge(method: Callable[[Data, Data], Judged], folds: Folds) -> Judged | str:
    """Judged rows of all folds; text: what was raised."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what a fit says is noted by the fit to all rows
            parts = [(rows, method(train, test)) for train, test, rows in folds]
        return joined(parts)
    except Exception as error:  # noqa: BLE001  (the table says what a library raises)
        return f"{type(error).__name__}: {error}"


def summary(judged: Judged | str, beside: Judged | None = None) -> dict[str, Any]:
    """Coverage, score, and the score over that of the default fit with its standard error."""
    if isinstance(judged, str):
        return {"raised": judged}
    score = judged.score
    found = {"coverage": coverage(judged), "score": float(score.mean())}
    if beside is not None:
        ratio = score.mean() / beside.score.mean()
        error = (score - ratio * beside.score).std() / np.sqrt(len(score)) / beside.score.mean()
        found["ratio"] = [float(ratio), float(error)]
    return found


def fit_to_all(name: str) -> tuple[Any, dict[str, Any]]:
    """Default fit to all rows; what it says, and its processor time."""
    data, model = SETS[name].data(), default(SETS[name].kind)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        begin = time.process_time()
        fitted = fit(model, data)
        seconds = time.process_time() - begin
    said = [f"{each.category.__name__}: {each.message}" for each in caught]
    return fitted, {"seconds": seconds, "said": said}


def check(fitted: Any, data: Data) -> tuple[Any, dict[str, Any]]:
    """Suggestion of ``check_model``, if any; the kinds of misfit it finds, and its seconds."""
    begin = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what the fit says is noted before
        found = package.check_model(fitted, data.X, data.y, **of_rows(data))
    seconds = time.process_time() - begin
    wrong = found.table["verdict"] == "misfit"
    kinds = [each.kind for each, bad in zip(found._checks, wrong, strict=True) if bad]
    text = "" if found.suggestion is None else " ".join(str(found.suggestion).split())
    about = {"misfits": list(dict.fromkeys(kinds)), "check_seconds": seconds}
    return found.suggestion, about | {"suggestion": text, "reason": found.reason}


def measure(name: str) -> dict[str, Any]:
    """Everything that is kept of a set."""
    data, model = SETS[name].data(), default(SETS[name].kind)
    fitted, of_fit = fit_to_all(name)
    folds = cut(data, _FEWER_FOLDS if of_fit["seconds"] > _LONG else _N_FOLDS)
    reference = judge(lambda train, test: ours(model, train, test), folds)
    beside = None if isinstance(reference, str) else reference
    methods = {"default": summary(reference)}
    for peer, method in PEERS[data.kind].items():
        methods[peer] = summary(judge(method, folds), beside)
    suggestion, of_check = check(fitted, data)
    if suggestion is not None:
        suggested = judge(lambda train, test: ours(suggestion, train, test), folds)
        methods["suggestion"] = summary(suggested, beside)
    about = {"n": len(data.y), "d": data.X.shape[1], "folds": len(folds)}
    return about | of_fit | of_check | {"methods": methods}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.real_data", description=__doc__)
    parser.add_argument("sets", nargs="*", help=f"some of {', '.join(SETS)}")
    parser.add_argument("--again", action="store_true", help="forget what has been measured")
    parser.add_argument("--fits", action="store_true", help="what the fits to all rows say, alone")
    options = parser.parse_args()
    unknown = set(options.sets) - set(SETS)
    if unknown:
        parser.error(f"no set is {', '.join(map(repr, unknown))}; choose from {', '.join(SETS)}")
    forget = options.again and not options.sets
    kept = json.loads(RESULTS.read_text()) if RESULTS.exists() and not forget else {}
    for name in kept if options.fits else ():
        kept[name] |= fit_to_all(name)[1]
    if options.fits:
        RESULTS.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n")
        return
    for name in options.sets or SETS:
        if options.sets or name not in kept:
            begin = time.perf_counter()
            kept[name] = measure(name)
            ordered = {each: kept[each] for each in SETS if each in kept}
            RESULTS.write_text(json.dumps(ordered, indent=1, ensure_ascii=False) + "\n")
            print(f"{name}: {time.perf_counter() - begin:.1f} s", flush=True)


if __name__ == "__main__":
    main()

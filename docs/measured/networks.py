"""Networks beside scikit-learn's, in five-fold cross-validation, for the guide; four minutes.

`SGLDMLPClassifier` and `SGLDMLPRegressor` with every setting at its default; `MLPClassifier` and
`MLPRegressor` with one hidden layer of the same 50 units, with their default of 200 iterations and
with 3,000. Columns are standardised in each training set. `SGLDMLPRegressor` standardises y itself,
`MLPRegressor` does not, so it is there on y as it comes and on y standardised. Log loss of iris and
wine (lower is better), twice with other folds, and R² of diabetes (higher is better): mean over the
folds and its standard error; then the CPU seconds of five fits, and how many of all fits warned
that they had not converged.
"""

from __future__ import annotations

import warnings
from time import process_time

from _figure import parse, show_rows
from _numbers import measured
from sklearn.compose import TransformedTargetRegressor
from sklearn.datasets import load_diabetes, load_iris, load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import KFold, RepeatedStratifiedKFold, cross_val_score
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skbayes_sgld.neural_network import SGLDMLPClassifier, SGLDMLPRegressor

SIZE = {"hidden_layer_sizes": (50,), "random_state": 0}
LONG = SIZE | {"max_iter": 3000}
COLUMNS = ("`SGLDMLP*`", "`MLP*` (200 iterations)", "`MLP*`, `max_iter=3000`")
CLASSIFIERS = SGLDMLPClassifier(random_state=0), MLPClassifier(**SIZE), MLPClassifier(**LONG)
REGRESSORS = SGLDMLPRegressor(random_state=0), MLPRegressor(**SIZE), MLPRegressor(**LONG)


def standardised(model):
    """Network that is fitted to y in units of its sd; ``SGLDMLPRegressor`` does so by itself."""
    if isinstance(model, SGLDMLPRegressor):
        return model
    return TransformedTargetRegressor(model, transformer=StandardScaler())


TASKS = {
    "iris, log loss": (load_iris, "neg_log_loss", CLASSIFIERS),
    "wine, log loss": (load_wine, "neg_log_loss", CLASSIFIERS),
    "diabetes, R²": (load_diabetes, "r2", REGRESSORS),
    "diabetes, R², y standardised too": (load_diabetes, "r2", tuple(map(standardised, REGRESSORS))),
}


def judge(task, model):
    """Score over folds, seconds of five fits, and how many warned."""
    load, score, _ = TASKS[task]
    X, y = load(return_X_y=True)
    folds = KFold(5, shuffle=True, random_state=0)
    if score == "neg_log_loss":
        folds = RepeatedStratifiedKFold(n_splits=5, n_repeats=2, random_state=1)
    start = process_time()
    with warnings.catch_warnings(record=True) as caught:  # 200 iterations are too few
        warnings.simplefilter("always", ConvergenceWarning)
        found = cross_val_score(
            make_pipeline(StandardScaler(), model), X, y, scoring=score, cv=folds
        )
    seconds = 5 * (process_time() - start) / len(found)
    sign = -1.0 if score == "neg_log_loss" else 1.0
    # the folds are the same each time: what differs from run to run is less than between folds
    shown = measured(sign * found.mean(), found.std(ddof=1) / len(found) ** 0.5, "±.3f")
    warned = sum(issubclass(one.category, ConvergenceWarning) for one in caught)
    return shown, seconds, f"{warned} of {len(found)}"


def main(arguments=None):
    options = parse(__doc__, arguments)
    if options.quick:
        task = "iris, log loss"
        return {"rows": {task: {COLUMNS[1]: judge(task, CLASSIFIERS[1])[0]}}}
    rows = {}
    for task, (*_, models) in TASKS.items():
        found = [judge(task, model) for model in models]
        scores, seconds, warned = zip(*found, strict=True)
        rows[task] = {"": task} | dict(zip(COLUMNS, scores, strict=True))
        name = task.partition(",")[0]
        if "standardised" in task:
            continue
        rows[f"{name}, warned"] = {"": f"{name}, fits that warn"}
        rows[f"{name}, warned"] |= dict(zip(COLUMNS, warned, strict=True))
        rows[f"{name}, seconds"] = {"": f"{name}, CPU seconds of five fits"}
        cells = (measured(value, None, ".1f") for value in seconds)
        rows[f"{name}, seconds"] |= dict(zip(COLUMNS, cells, strict=True))
    show_rows(rows)
    return {"rows": rows}


if __name__ == "__main__":
    main()

"""Networks beside scikit-learn's, in five-fold cross-validation.

`SGLDMLPClassifier` and `SGLDMLPRegressor` with every setting at its default; `MLPClassifier` and
`MLPRegressor` with one hidden layer of the same 50 units, with their default of 200 iterations and
with 3,000. Columns are standardised in each training set. `SGLDMLPRegressor` standardises y itself,
`MLPRegressor` does not, so it is there on y as it comes and on y standardised. Log loss of iris and
wine (lower is better), twice with other folds, and R² of diabetes (higher is better): mean over the
folds and its standard error; then the CPU seconds of five fits, and how many of all fits warned
that they had not converged.
"""

from __future__ import annotations

import sys
import warnings
from time import process_time

from sklearn.compose import TransformedTargetRegressor
from sklearn.datasets import load_diabetes, load_iris, load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import KFold, RepeatedStratifiedKFold, cross_val_score
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks._tools import heading, table
from skbayes_sgld.neural_network import SGLDMLPClassifier, SGLDMLPRegressor

LOADERS = {"iris": load_iris, "wine": load_wine, "diabetes": load_diabetes}
SIZE = {"hidden_layer_sizes": (50,), "random_state": 0}
CLASSIFIERS = {
    "SGLDMLPClassifier": SGLDMLPClassifier(random_state=0),
    "MLPClassifier": MLPClassifier(**SIZE),
    "MLPClassifier, max_iter=3000": MLPClassifier(max_iter=3000, **SIZE),
}
LONGER = MLPRegressor(max_iter=3000, **SIZE)
REGRESSORS = {
    "SGLDMLPRegressor": SGLDMLPRegressor(random_state=0),
    "MLPRegressor": MLPRegressor(**SIZE),
    "MLPRegressor, max_iter=3000": LONGER,
    "MLPRegressor, y standardised": TransformedTargetRegressor(
        MLPRegressor(**SIZE), transformer=StandardScaler()
    ),
    "MLPRegressor, y standardised, max_iter=3000": TransformedTargetRegressor(
        LONGER, transformer=StandardScaler()
    ),
}


def main(*names: str) -> None:
    heading(__doc__)
    for name in names or LOADERS:
        X, y = LOADERS[name](return_X_y=True)
        rows = []
        models = REGRESSORS if name == "diabetes" else CLASSIFIERS
        folds = RepeatedStratifiedKFold(n_splits=5, n_repeats=2, random_state=1)
        score, sign = "neg_log_loss", -1.0
        if name == "diabetes":
            score, folds, sign = "r2", KFold(5, shuffle=True, random_state=0), 1.0
        for label, model in models.items():
            start = process_time()
            with warnings.catch_warnings(record=True) as caught:  # 200 iterations are too few
                warnings.simplefilter("always", ConvergenceWarning)
                found = cross_val_score(
                    make_pipeline(StandardScaler(), model), X, y, scoring=score, cv=folds
                )
            seconds = 5 * (process_time() - start) / len(found)
            error = found.std(ddof=1) / len(found) ** 0.5
            warned = sum(issubclass(one.category, ConvergenceWarning) for one in caught)
            shown = f"{sign * found.mean():.3f} ± {error:.3f}"
            rows.append([label, shown, f"{seconds:.1f}", f"{warned} of {len(found)}"])
        table([name, "R²" if name == "diabetes" else "log loss", "seconds", "warned"], rows)


if __name__ == "__main__":
    main(*sys.argv[1:])

"""Estimators as ArviZ data: their draws, and predictions and log likelihoods of rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.utils.validation import _num_samples, check_is_fitted

from skbayes_sgld._checks import naming
from skbayes_sgld._memory import check_memory
from skbayes_sgld._random import as_random_state
from skbayes_sgld.arviz.draws import (
    BY_ROW_AND_DRAW,
    DRAWS,
    ROWS,
    as_arviz,
    dataset,
    draw_coords,
    join_outputs,
    sample_stats,
    wanted_groups,
)
from skbayes_sgld.prediction.predicted_rows import split_columns


def to_arviz(
    model: Any, X: Any, y: Any, random_state: Any, only: Any, by_row: dict[str, Any]
) -> Any:
    """ArviZ data of a fitted estimator; ``by_row`` has the exposures or trials of the rows X."""
    check_is_fitted(model)
    if X is None and y is not None:
        raise ValueError("y is given and X is None; give the rows of y as X.")
    names = wanted_groups(only, X is not None, y is not None)
    if X is not None:
        _check_fits(model, X, names)
    data = _groups(model, X, y, random_state, names, by_row)
    return as_arviz({name: data[name] for name in data if name in names})


def _check_fits(model: Any, X: Any, names: Sequence[str]) -> None:
    """Raise if the groups of rows take more memory than is available."""
    large = BY_ROW_AND_DRAW & set(names)
    with naming("X"):
        n = _num_samples(X)
    n_draws, n_outputs = len(model.posterior_.flat), len(getattr(model, "estimators_", [0]))
    n_arrays = len(large) * n_outputs
    if n_outputs > 1 and large:
        n_arrays += n_outputs  # for the arrays of the group that are joined
    check_memory(
        8 * n * n_draws * n_arrays,
        f"to_arviz of X with {n} rows, under {n_draws} draws, for the groups "
        f"{' and '.join(sorted(large))},",
        "give fewer rows, or name the other groups alone in only=",
    )


def _groups(
    model: Any, X: Any, y: Any, random_state: Any, names: Sequence[str], by_row: dict[str, Any]
) -> dict[str, Any]:
    """Data set of each group by its name; some that cost nothing even if they are not asked for."""
    models = vars(model).get("estimators_")
    if models is not None:
        columns, stream = split_columns(y, len(models)), as_random_state(random_state)
        parts = [
            _groups(each, X, column, stream, names, by_row)
            for each, column in zip(models, columns, strict=True)
        ]
        joined = join_outputs(parts, model.output_names_)
        return joined | {"posterior": model.posterior_.to_xarray()}
    groups = {"posterior": model.posterior_.to_xarray()}
    if "result_" in vars(model) and "sample_stats" in names:
        groups["sample_stats"] = sample_stats(model.result_)
    if X is not None:
        groups |= _row_groups(model, X, y, random_state, names, by_row)
    return groups


def _row_groups(
    model: Any, X: Any, y: Any, random_state: Any, groups: Sequence[str], by_row: dict[str, Any]
) -> dict[str, Any]:
    """Groups of rows: predictions or the posterior predictive, log likelihoods, and the data."""
    observed = None
    if y is None:
        rows, row_values = model._rows_of(X, by_row)
    else:
        rows, observed, row_values = model._observed(X, y, by_row)
    numbers = model._fitted.target.check_by_row(X, by_row)
    predictive, shape = model._predictive(), model.posterior_.values.shape[:2]
    labels = {}  # what the numbers stand for, by the CF conventions
    if hasattr(model, "classes_"):
        classes = list(map(str, model.classes_))
        labels = {"flag_values": list(range(len(classes))), "flag_meanings": " ".join(classes)}
    row_coords = {ROWS: np.arange(rows.shape[0])}

    def by_draw(name: str, make: Any, attrs: dict[str, Any]) -> Any:
        """Data set of y under every draw; empty if the group is not asked for."""
        data = {}
        if name in groups:
            values = make().T.reshape(*shape, -1)
            data["y"] = (*DRAWS, ROWS), values, attrs
        return dataset(data, draw_coords(shape) | row_coords)

    def sample() -> Any:
        return predictive.sample(rows, as_random_state(random_state), row_values)

    constant: dict[str, Any] = {}
    coords: dict[str, Any] = row_coords
    for name, values in numbers.items():
        constant[name] = (ROWS,), values
    names = model._feature_names() or [f"x{j}" for j in range(model.n_features_in_)]
    kept = np.arange(len(names))
    mixed = getattr(model._fitted, "mixed", None)
    if mixed is not None:
        kept = mixed.fixed
        constant |= {name: ((ROWS,), values) for name, values in mixed.labels.given(X).items()}
    if not issparse(rows):  # a data set would hold all of its zeros
        constant["X"] = (ROWS, "feature"), np.asarray(rows)[:, kept]
        coords = row_coords | {"feature": [names[j] for j in kept]}
    data = dataset(constant, coords)
    if observed is None:
        predictions = by_draw("predictions", sample, labels)
        return {"predictions": predictions, "predictions_constant_data": data}
    values = observed.astype(int) if labels else observed
    return {
        "posterior_predictive": by_draw("posterior_predictive", sample, labels),
        "log_likelihood": by_draw(
            "log_likelihood", lambda: predictive.log_likelihood(rows, observed, row_values), {}
        ),
        "observed_data": dataset({"y": ((ROWS,), values, labels)}, row_coords),
        "constant_data": data,
    }

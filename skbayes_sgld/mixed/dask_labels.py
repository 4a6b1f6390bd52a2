"""Labels of groups in Dask's arrays and frames, and codes in place of them."""

from __future__ import annotations

from typing import Any

import pandas as pd

from skbayes_sgld.blocks.dask_rows import check_columns, is_frame
from skbayes_sgld.mixed.groups import resolve_groups
from skbayes_sgld.mixed.labels import Labels


def encode_dask(X: Any, estimator: Any) -> tuple[Any, Labels]:
    """Rows with codes, computed when they are needed, and the labels, by a pass over them."""
    names = None
    if is_frame(X) and all(isinstance(name, str) for name in X.columns):
        names = list(X.columns)
    _, called = resolve_groups(estimator.group_effects, X.shape[1], names)
    if not called:
        return X, Labels({}, {})
    labels = _labels(X, called)
    if not is_frame(X):
        X = check_columns(X)
        return X.map_blocks(labels.encoded, dtype=float, meta=X._meta.astype(float)), labels
    dtypes = {c: float if j in called else t for j, (c, t) in enumerate(X.dtypes.items())}
    meta = pd.DataFrame({c: pd.Series([], dtype=t) for c, t in dtypes.items()})
    return X.map_partitions(labels.encoded, meta=meta), labels


def _labels(X: Any, called: dict[int, str]) -> Labels:
    """Labels in the columns of the rows."""
    import dask
    import dask.array as da

    found = {}
    for j in called:
        if is_frame(X):
            column = X[X.columns[j]].map_partitions(pd.Series.drop_duplicates)
        else:
            column = da.unique(X[:, j])
        found[j] = column
    columns = dask.compute(*found.values())
    learned = {}
    for j, values in zip(called, columns, strict=True):
        if pd.isna(values).any():
            raise ValueError(
                f"X has no label in column {called[j]!r} in some rows; give each row a label, such "
                "as 'none', or leave these rows out."
            )
        frame = pd.DataFrame({"labels": values})
        learned[j] = Labels.learned(frame, {0: called[j]}).of_columns[0]
    return Labels(learned, called)

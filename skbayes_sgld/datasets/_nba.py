"""The table of NBA rookies."""

from __future__ import annotations

import numpy as np
import pandas as pd
from sklearn.utils import Bunch

from .._checks import check_flag
from ._tables import read_table

_NAME = "name"
_TARGET = "career_at_least_5_years"
_DUPLICATES = ("keep", "drop")


def load_nba_rookies(
    *, return_X_y: bool = False, as_frame: bool = True, duplicates: str = "keep"
) -> Bunch | tuple[pd.DataFrame, pd.Series] | tuple[np.ndarray, np.ndarray]:
    """The NBA rookies: 19 statistics of a first season, and whether a career lasted five years.

    Two of the statistics are sums of others up to rounding, so the correlation matrix has
    condition number 5.6e4: a hard posterior from a small, real data set. 11 values of
    ``three_point_pct`` are missing (NaN); all belong to rookies without an attempt, for whom 0 is
    the natural value.

    Parameters
    ----------
    return_X_y : bool, default=False
        Whether to return ``(data, target)`` instead of a Bunch.
    as_frame : bool, default=True
        Whether to return pandas objects, which keep the column names, or NumPy arrays.
    duplicates : {"keep", "drop"}, default="keep"
        ``"keep"`` is the table as it circulates, for comparison with published results: 1,340
        rows, 831 positive. ``"drop"`` drops the 45 rows of namesakes with the same statistics
        and contradictory labels, and the copies of the others: 1,288 rows, 804 positive.

    Returns
    -------
    bunch : :class:`~sklearn.utils.Bunch`
        With these attributes; arrays where ``as_frame=False``:

        data : DataFrame of shape (n_rows, 19)
            Averages per game, percentages from 0 to 100; ``games_played`` is a count.
        target : Series of shape (n_rows,)
            1 where the career lasted at least five years, else 0.
        names : Series of shape (n_rows,)
            Names of the rookies, to be the groups of
            :class:`~sklearn.model_selection.GroupKFold`: a split that ignores them can put one
            season on both sides.
        frame : DataFrame of shape (n_rows, 20)
            ``data`` and ``target`` together; None where ``as_frame=False``.
        feature_names : list of str
            The columns of ``data``.
        target_names : ndarray of shape (2,)
            Meanings of 0 and 1.
        DESCR : str
            Full description, in Markdown. Read it before you publish a result.
        filename, data_module : str
            Packaged CSV file, and the package that contains it.

        With ``return_X_y=True``, the tuple ``(data, target)`` instead.

    Raises
    ------
    ValueError
        If ``duplicates`` is neither ``"keep"`` nor ``"drop"``.

    References
    ----------
    "5-Year Career Longevity for NBA Rookies", public box-score figures; used in S. Chen, "Dive
    into Bayesian Learning via Stochastic Gradient Langevin Dynamics", Section 3.2.

    Examples
    --------
    >>> from skbayes_sgld.datasets import load_nba_rookies
    >>> rookies = load_nba_rookies(duplicates="drop")
    >>> rookies.data.shape
    (1288, 19)
    >>> int(rookies.target.sum())
    804
    >>> X = rookies.data.fillna({"three_point_pct": 0.0})
    >>> int(X.isna().sum().sum())
    0
    """
    check_flag(return_X_y, "return_X_y")
    check_flag(as_frame, "as_frame")
    if not isinstance(duplicates, str) or duplicates not in _DUPLICATES:
        accepted = ", ".join(map(repr, _DUPLICATES))
        raise ValueError(f"duplicates={duplicates!r} is not known; choose one of {accepted}.")

    table, about = read_table("nba_rookies")
    if duplicates == "drop":
        table = _drop_duplicates(table)

    frame = table.drop(columns=_NAME)
    bunch = Bunch(
        data=frame.drop(columns=_TARGET),
        target=frame[_TARGET],
        names=table[_NAME],
        frame=frame,
        feature_names=frame.columns.drop(_TARGET).tolist(),
        target_names=np.array(["shorter", "at least 5 years"]),
        **about,
    )
    if not as_frame:
        arrays = {key: bunch[key].to_numpy() for key in ("data", "target", "names")}
        bunch.update(arrays, frame=None)
    return (bunch.data, bunch.target) if return_X_y else bunch


def _drop_duplicates(table: pd.DataFrame) -> pd.DataFrame:
    """Table without copies, and without the seasons that occur with both labels."""
    rookie_season = table.columns.drop(_TARGET).tolist()
    distinct = table.drop_duplicates()
    # without copies, a season that still occurs twice has both labels, and nothing in the table
    # says which one is right
    return distinct.drop_duplicates(rookie_season, keep=False, ignore_index=True)

"""The table of cars."""

from __future__ import annotations

import pandas as pd
from sklearn.utils import Bunch

from .._checks import check_flag
from ._tables import read_table

_TARGET = "miles_per_gallon"


def load_cars(*, return_X_y: bool = False) -> Bunch | tuple[pd.DataFrame, pd.Series]:
    """Fuel economy of 397 cars of the years 1970 to 1982: a table with words and gaps.

    ``origin`` is a word, and ``horsepower`` is missing (NaN) for five cars. The fuel economy of
    economical cars scatters more than that of thirsty ones, and falls along a curve with the
    weight: a linear model with one noise variance does not fit, which a fit and
    :func:`~skbayes_sgld.check_model` say.

    Parameters
    ----------
    return_X_y : bool, default=False
        Whether to return ``(data, target)`` instead of a Bunch.

    Returns
    -------
    bunch : :class:`~sklearn.utils.Bunch`
        With these attributes:

        data : DataFrame of shape (397, 7)
            ``origin`` ("Europe", "Japan" or "USA"), ``year``, ``cylinders``, ``displacement``
            (cubic inches), ``horsepower``, ``weight`` (pounds), ``acceleration`` (seconds from 0 to
            60 miles an hour).
        target : Series of shape (397,)
            Miles per gallon.
        names : Series of shape (397,)
            Names of the cars.
        frame : DataFrame of shape (397, 8)
            ``data`` and ``target`` together.
        feature_names : list of str
            The columns of ``data``.
        DESCR : str
            Full description, in Markdown.
        filename, data_module : str
            Packaged CSV file, and the package that contains it.

        With ``return_X_y=True``, the tuple ``(data, target)`` instead.

    References
    ----------
    Quinlan, R. (1993), Auto MPG, UCI Machine Learning Repository,
    https://doi.org/10.24432/C5859H (CC BY 4.0).

    Examples
    --------
    >>> from skbayes_sgld.datasets import load_cars
    >>> cars = load_cars()
    >>> cars.data.shape
    (397, 7)
    >>> int(cars.data["horsepower"].isna().sum())
    5
    """
    check_flag(return_X_y, "return_X_y")
    table, about = read_table("cars")
    frame = table.drop(columns="name")
    data, target = frame.drop(columns=_TARGET), frame[_TARGET]
    if return_X_y:
        return data, target
    names, columns = table["name"], data.columns.tolist()
    return Bunch(data=data, target=target, names=names, frame=frame, feature_names=columns, **about)

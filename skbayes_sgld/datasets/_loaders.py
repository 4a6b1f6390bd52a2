"""Loaders of real data: cars, NBA rookies, and S&P 500 returns from the package arch."""

from __future__ import annotations

from importlib.resources import files

import numpy as np
import pandas as pd
from sklearn.utils import Bunch

from .._checks import check_choice, check_flag
from .._numpy_errors import numpy_defaults


@numpy_defaults
def load_cars(*, return_X_y: bool = False) -> Bunch | tuple[pd.DataFrame, pd.Series]:
    """Fuel economy of 397 cars of the years 1970 to 1982: a table with words and gaps.

    ``origin`` is a word, and ``horsepower`` is missing (NaN) for five cars. The fuel economy of
    economical cars varies more than that of others, and falls along a curve with the weight. So a
    linear model with one noise variance does not fit; a fit and :func:`~skbayes_sgld.check_model`
    say so.

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
    table, about = _read_table("cars")
    frame = table.drop(columns="name")
    data, target = frame.drop(columns="miles_per_gallon"), frame["miles_per_gallon"]
    if return_X_y:
        return data, target
    names, columns = table["name"], data.columns.tolist()
    return Bunch(data=data, target=target, names=names, frame=frame, feature_names=columns, **about)


@numpy_defaults
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
        ``"keep"`` is the published table, for comparison with other results: 1,340 rows, 831
        positive. ``"drop"`` drops the 45 rows of namesakes with the same statistics
        and contradictory labels, and the copies of the others: 1,288 rows, 804 positive.

    Returns
    -------
    bunch : :class:`~sklearn.utils.Bunch`
        With these attributes; arrays if ``as_frame=False``:

        data : DataFrame of shape (n_rows, 19)
            Averages per game, percentages from 0 to 100; ``games_played`` is a count.
        target : Series of shape (n_rows,)
            1 if the career lasted at least five years, else 0.
        names : Series of shape (n_rows,)
            Names of the rookies. Use them as groups of
            :class:`~sklearn.model_selection.GroupKFold`, since other splits can put one season on
            both sides.
        frame : DataFrame of shape (n_rows, 20)
            ``data`` and ``target`` together; None if ``as_frame=False``.
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
    check_choice(duplicates, "duplicates", ("keep", "drop"))
    table, about = _read_table("nba_rookies")
    label = "career_at_least_5_years"
    if duplicates == "drop":
        # without copies, a season that still occurs twice has contradictory labels, and the table
        # does not say which one is right
        season = table.columns.drop(label).tolist()
        table = table.drop_duplicates()
        table = table.drop_duplicates(season, keep=False, ignore_index=True)
    frame = table.drop(columns="name")
    bunch = Bunch(
        data=frame.drop(columns=label),
        target=frame[label],
        names=table["name"],
        frame=frame,
        feature_names=frame.columns.drop(label).tolist(),
        target_names=np.array(["shorter", "at least 5 years"]),
        **about,
    )
    if not as_frame:
        arrays = {key: bunch[key].to_numpy() for key in ("data", "target", "names")}
        bunch.update(arrays, frame=None)
    return (bunch.data, bunch.target) if return_X_y else bunch


@numpy_defaults
def load_sp500_returns(*, start: str | None = None, end: str | None = None) -> Bunch:
    """Daily log returns of the S&P 500 from January 1999 to December 2018.

    The prices come with the package arch, which the extra ``finance`` installs; nothing is
    downloaded.

    Parameters
    ----------
    start, end : str or None, default=None
        First and last day, both included: anything that pandas reads as a date, such as
        ``"2008-05-01"``, or a year. None is the first or the last day of the data.

    Returns
    -------
    bunch : :class:`~sklearn.utils.Bunch`
        ``returns (T,)``, the log of each day's adjusted close over the previous trading day's;
        ``dates (T,)``, the trading days, ``datetime64[D]``.

    Raises
    ------
    ImportError
        If arch is not installed.
    ValueError
        If ``start`` or ``end`` is no date, or fewer than two trading days lie between them.

    References
    ----------
    B. Keng, "Bayesian Learning via Stochastic Gradient Langevin Dynamics and Bayes by Backprop",
    Section 5.2, models such returns from May 2008 to November 2019.

    Examples
    --------
    >>> from skbayes_sgld.datasets import load_sp500_returns
    >>> crisis = load_sp500_returns(start="2008", end="2009")  # doctest: +SKIP
    >>> crisis.returns.shape  # doctest: +SKIP
    (505,)
    """
    try:
        from arch.data import sp500
    except ImportError as error:
        raise ImportError(
            'load_sp500_returns takes its prices from the package "arch", which could not be '
            f'imported ({error}): pip install "skbayes-sgld[finance]"'
        ) from error
    price = sp500.load()["Adj Close"]
    returns = np.log(price).diff().iloc[1:]  # before the selection, whose first day has a return
    for name, day in {"start": start, "end": end}.items():
        try:
            if day is not None:
                pd.Timestamp(day)
        except ValueError as error:
            raise ValueError(f"{name}={day!r} is not a date, such as '2008-05-01'.") from error
    returns = returns.loc[start:end]
    if len(returns) < 2:
        first, last = price.index[[1, -1]].strftime("%Y-%m-%d")
        raise ValueError(
            f"start={start!r} and end={end!r} leave {len(returns)} trading days; at least two are "
            f"needed, and the data run from {first} to {last}."
        )
    return Bunch(returns=returns.to_numpy(), dates=returns.index.to_numpy("datetime64[D]"))


def _read_table(name: str) -> tuple[pd.DataFrame, dict[str, str]]:
    """Table of a packaged file, and ``DESCR``, ``filename`` and ``data_module`` of its Bunch."""
    package = files("skbayes_sgld.datasets")
    with package.joinpath("data", f"{name}.csv").open(encoding="utf-8") as file:
        table = pd.read_csv(file)
    description = package.joinpath("descr", f"{name}.md").read_text(encoding="utf-8")
    about = {"filename": f"{name}.csv", "data_module": "skbayes_sgld.datasets.data"}
    return table, {"DESCR": description} | about

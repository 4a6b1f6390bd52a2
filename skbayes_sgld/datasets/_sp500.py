"""Daily returns of the S&P 500, from the data that the package arch ships."""

from __future__ import annotations

import numpy as np
import pandas as pd
from sklearn.utils import Bunch

from .._numpy_errors import numpy_defaults


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

"""The S&P 500 loader: log returns of the prices that arch ships, and who is to install it."""

import sys
from types import ModuleType

import numpy as np
import pandas as pd
import pytest

from skbayes_sgld.datasets import load_sp500_returns

DAYS = ["2001-12-31", "2002-01-02", "2002-01-03", "2002-12-31", "2003-01-02"]
RETURNS = [0.25, -0.5, 0.125, 1.0]


@pytest.fixture
def fake_prices(monkeypatch):
    """Stand-ins for arch and its data, so that the code runs where arch is not installed."""
    price = 100.0 * np.exp(np.cumsum([0.0, *RETURNS]))
    sp500 = ModuleType("arch.data.sp500")
    sp500.load = lambda: pd.DataFrame({"Adj Close": price}, index=pd.to_datetime(DAYS))
    data = ModuleType("arch.data")
    data.sp500 = sp500
    for name, module in {"arch": ModuleType("arch"), "arch.data": data}.items():
        monkeypatch.setitem(sys.modules, name, module)


def test_returns_are_the_differences_of_the_log_prices(fake_prices):
    loaded = load_sp500_returns()
    np.testing.assert_allclose(loaded.returns, RETURNS, rtol=1e-12)
    assert loaded.dates.astype(str).tolist() == DAYS[1:]


def test_both_ends_are_included_and_the_first_day_keeps_its_return(fake_prices):
    loaded = load_sp500_returns(start="2002", end="2002-12-31")
    np.testing.assert_allclose(loaded.returns, RETURNS[:3], rtol=1e-12)


@pytest.mark.parametrize(
    "dates, message",
    [
        ({"start": "2003"}, "start='2003' and end=None leave 1 trading days"),
        ({"start": "2003", "end": "2002"}, "leave 0 trading days.*from 2002-01-02 to 2003-01-02"),
        ({"end": "Tuesday?"}, "end='Tuesday\\?' is not a date"),
    ],
)
def test_dates_without_data_are_refused_by_name(fake_prices, dates, message):
    with pytest.raises(ValueError, match=message):
        load_sp500_returns(**dates)


def test_without_arch_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "arch.data", None)
    with pytest.raises(ImportError, match=r'pip install "skbayes-sgld\[finance\]"'):
        load_sp500_returns()


def test_the_crisis_of_2008_is_in_the_prices_that_arch_ships():
    pytest.importorskip("arch", reason="the prices need the extra 'finance'")
    loaded = load_sp500_returns(start="2008", end="2009")
    assert len(loaded.returns) == 505
    assert str(loaded.dates[loaded.returns.argmin()]) == "2008-10-15"
    np.testing.assert_allclose(loaded.returns.min(), np.log(907.84 / 998.01), atol=1e-4)

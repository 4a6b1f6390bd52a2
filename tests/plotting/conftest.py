"""Displays are drawn without a window, and closed after each test."""

import pytest


@pytest.fixture(autouse=True)
def close_figures():
    pyplot = pytest.importorskip("matplotlib.pyplot", reason="the displays need the extra 'plot'")
    yield
    pyplot.close("all")

"""Set-up of every process that runs tests, and a fixture of tests that draw."""

import gc

import pytest


def pytest_collection_finish(session):
    """Keep modules and tests, which stay to the end, from every search for garbage."""
    gc.collect()
    gc.freeze()


@pytest.fixture
def draw_fast(monkeypatch):
    """Leave out layout and fine lines: half of a script's time, and no test looks at them."""
    pytest.importorskip("matplotlib", reason="the figures need the extra 'plot'")
    from matplotlib.figure import Figure

    engine = "matplotlib.layout_engine.ConstrainedLayoutEngine.execute"
    monkeypatch.setattr(engine, lambda engine, figure: None)
    savefig = Figure.savefig
    fast = lambda self, path, dpi, **more: savefig(self, path, dpi=50, **more)  # noqa: E731
    monkeypatch.setattr(Figure, "savefig", fast)

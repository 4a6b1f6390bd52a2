"""Set-up of every process that runs tests, and fixtures that folders share."""

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


@pytest.fixture
def often(monkeypatch):
    """Checkpoints are written after every part, and parts are of a few draws."""
    from skbayes_sgld import checkpoints as files  # an annex
    from skbayes_sgld.inference import in_parts as running

    monkeypatch.setattr(files, "_SECONDS", 0.0)
    monkeypatch.setattr(files, "_SHARE", 0.0)
    monkeypatch.setattr(running, "_SECONDS", 1e-4)
    monkeypatch.setattr(files.os, "fsync", lambda handle: None)


@pytest.fixture
def stops(monkeypatch):
    """Function that makes the third write of a run raise an error, once the file is there."""
    from skbayes_sgld import checkpoints as files  # an annex

    write, left = files.Writer.write, [3]

    def stop(error):
        def stopping(self, chains, finished=False):
            write(self, chains, finished)
            left[0] -= 1
            if left[0] == 0:
                raise error

        monkeypatch.setattr(files.Writer, "write", stopping)

    return stop


@pytest.fixture
def by_steps(monkeypatch):
    """Strategies without independent proposals: small tables are sampled as larger ones are."""
    from skbayes_sgld.inference.strategies.cubic import Cubic
    from skbayes_sgld.inference.strategies.independent import Independent

    for strategy in (Cubic, Independent):
        monkeypatch.setattr(strategy, "suits", lambda task: False)

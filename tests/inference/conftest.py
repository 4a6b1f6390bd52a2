"""What the tests of long runs share."""

import pytest

from skbayes_sgld.inference import checkpoint as files
from skbayes_sgld.inference import long_run


@pytest.fixture
def often(monkeypatch):
    """Checkpoints are written after every part, and parts are of a few draws."""
    monkeypatch.setattr(files, "_SECONDS", 0.0)
    monkeypatch.setattr(files, "_SHARE", 0.0)
    monkeypatch.setattr(long_run, "_SECONDS", 1e-4)
    monkeypatch.setattr(files.os, "fsync", lambda handle: None)


@pytest.fixture
def stops(monkeypatch):
    """Function that makes the third write of a run raise an error, once the file is there."""
    write, left = files.Writer.write, [3]

    def stop(error):
        def stopping(self, chains, finished=False):
            there = write(self, chains, finished)
            left[0] -= 1
            if left[0] == 0:
                raise error
            return there

        monkeypatch.setattr(files.Writer, "write", stopping)

    return stop

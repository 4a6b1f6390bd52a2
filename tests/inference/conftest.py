"""Data and fixtures that several tests of inference share."""

import numpy as np
import pytest
from sklearn.preprocessing import StandardScaler

from skbayes_sgld import SGLDLogisticRegression
from skbayes_sgld.inference import in_parts as running


@pytest.fixture
def often(monkeypatch):
    """Checkpoints are written after every part, and parts are of a few draws."""
    from skbayes_sgld import checkpoints as files  # an annex

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


@pytest.fixture(scope="session")
def rookies():
    """Standardised columns and labels of the rookies."""
    from skbayes_sgld.datasets import load_nba_rookies

    X, y = load_nba_rookies(return_X_y=True, as_frame=False)
    return StandardScaler().fit_transform(np.nan_to_num(X)), y


@pytest.fixture(scope="session")
def default_fit(rookies):
    """Default fit of the rookies, which tests only read."""
    return SGLDLogisticRegression(random_state=0).fit(*rookies)

"""Data and fixtures that several tests of inference share."""

import numpy as np
import pytest
from sklearn.preprocessing import StandardScaler

from skbayes_sgld import SGLDLogisticRegression


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

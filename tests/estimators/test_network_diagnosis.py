"""Problems that a network's draws of predictions are found to have."""

import numpy as np

from skbayes_sgld.inference.diagnosis import diagnose_outputs


def problems(outputs, clipped=0.0):
    return diagnose_outputs(outputs[..., None], clipped).problems


def test_chains_that_predict_otherwise_are_named():
    rng = np.random.default_rng(0)
    apart = rng.standard_normal((4, 200, 5)) + 3.0 * np.arange(4)[:, None, None]
    assert "R-hat of the predictions" in problems(apart)[0]
    slow = np.cumsum(rng.standard_normal((4, 200, 5)), axis=1)
    assert problems(slow)
    assert problems(rng.standard_normal((4, 200, 5))) == []
    assert "too few" in problems(rng.standard_normal((4, 3, 5)))[0]
    assert "bounded on 5.0%" in problems(rng.standard_normal((4, 200, 5)), 0.05)[0]

"""Some of the fits of the long run, and that its judges see what is wrong."""

import sys

import numpy as np
import pytest

if sys.platform != "linux":
    pytest.skip("reads /proc, and bounds its own process", allow_module_level=True)

from .long_run import PROBE, SLOPE, run, slope  # noqa: E402
from .report import Report  # noqa: E402


@pytest.mark.slow
def test_fits_in_one_process_leave_nothing_behind():
    report = Report("")
    found, notes = run(report, 200, seed=1)
    assert not report.failures, report.failures
    assert len(found) == 200 and len(notes) >= 3


def test_memory_that_grows_is_seen_and_noise_is_not():
    noise = 2e5 * np.random.default_rng(0).standard_normal(60)
    for growth, grows in ((0.0, False), (20 * SLOPE, True)):
        beta, error = slope(1e8 + growth * PROBE * np.arange(60) + noise)
        assert abs(beta - growth) < 4.0 * error and (beta - 4.0 * error > SLOPE) == grows

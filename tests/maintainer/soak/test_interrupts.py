"""The interrupt keys at some random moments, and what they leave behind."""

import sys

import pytest

if sys.platform != "linux":
    pytest.skip("reads /proc, and bounds its own process", allow_module_level=True)

from .interrupts import run  # noqa: E402
from .report import Report  # noqa: E402


def test_the_keys_leave_everything_as_it_was_at_any_moment():
    report = Report("")
    found = run(report, {"serial": 9, "threads": 6}, seed=0, seconds=600.0)
    assert not report.failures, report.failures
    assert len(found) == 15 and (found["outcome"] == "interrupted").sum() >= 5

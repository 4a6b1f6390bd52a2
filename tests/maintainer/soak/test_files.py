"""Some of the changed checkpoints of the soak run, in a process of their own."""

import subprocess
import sys
from pathlib import Path

import pytest

if sys.platform != "linux":
    pytest.skip("reads /proc, and bounds its own process", allow_module_level=True)


def test_changed_checkpoints_are_refused_by_name_or_harmless():
    # of its own, since it bounds the memory of its process
    done = subprocess.run(
        [sys.executable, "-m", "tests.maintainer.soak.files", "--cases", "60"],
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[3],
        timeout=600,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "60 files" in done.stdout

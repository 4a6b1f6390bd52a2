"""Tests neither read nor write the home folder of whoever runs them."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def files_below(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_a_run_of_tests_leaves_the_home_of_its_user_empty(tmp_path):
    pytest.importorskip("arviz")
    test = "tests/inference/test_arviz.py"  # ArviZ keeps a stamp of the day below the home
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("XDG_", "PYTEST_"))}
    environment |= {"HOME": str(tmp_path), "USERPROFILE": str(tmp_path), "MPLBACKEND": "Agg"}
    options = ["-q", "--maxfail=1", "-p", "no:cacheprovider", "-k", "loo"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, test],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert files_below(tmp_path) == []

"""Every example runs, and draws the figures that it names."""

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"


def run_example(name, output, *options):
    environment = os.environ | {"MPLBACKEND": "Agg", "PYTHONWARNINGS": "error"}
    command = [sys.executable, EXAMPLES / name, "--output", output, *options]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_main_job_goes_from_the_table_to_decisions(tmp_path):
    pytest.importorskip("matplotlib", reason="the figures need the extra 'plot'")
    printed = run_example("nba_rookies.py", tmp_path, "--fast")
    for figure in ("coefficients.png", "six_rookies.png", "coverage.png"):
        assert (tmp_path / figure).stat().st_size > 10_000
        assert figure in printed
    for part in ("log loss", "temperature", "R-hat", "90 % band", "95 %"):
        assert part in printed


@pytest.mark.slow
def test_the_lectures_paths_end_where_they_must(tmp_path):
    pytest.importorskip("matplotlib", reason="the figure needs the extra 'plot'")
    printed = run_example("plot_lecture_sgd_paths.py", tmp_path)
    assert (tmp_path / "lecture_sgd_paths.png").stat().st_size > 10_000
    found = re.findall(r"([\d.]+) \+- ([\d.]+) \(([\d.]+)\)", printed)
    assert len(found) == 9
    for size, error, law in np.array(found, dtype=float):
        assert abs(size - law) < 4.0 * error
    assert "To see: with a constant step size no path converges" in printed

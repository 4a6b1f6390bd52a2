"""Every example runs, and draws the figures that it names."""

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[1]
EXAMPLES = ROOT / "examples"
PLOTS = sorted(path.name for path in EXAMPLES.glob("plot_*.py"))


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


@pytest.mark.parametrize("name", PLOTS)
def test_every_example_runs_without_a_warning_and_draws_what_it_names(name, tmp_path):
    pytest.importorskip("matplotlib", reason="the figures need the extra 'plot'")
    printed = run_example(name, tmp_path, "--quick")
    figures = list(tmp_path.iterdir())
    assert figures
    for figure in figures:
        assert figure.stat().st_size > 10_000
        assert figure.name in printed


@pytest.mark.parametrize("name", PLOTS)
def test_the_gallery_has_every_example(name):
    assert f"`examples/{name}`" in (ROOT / "docs" / "gallery.md").read_text()


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

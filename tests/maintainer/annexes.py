"""Take an annex out of a copy of the package, and run the core's tests.

``python -m tests.maintainer.annexes [--together] [annex ...]``

The folder or file of the annex, and the folder of its tests, are left out of the copy. A test of
the core that fails since it asks for the annex by its door, a name or a setting, is counted; any
other failure is a fault: the core needs what it must not. Without names every annex is taken out in
turn, for some minutes each; with ``--together`` all of them are taken out at once.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET
from pathlib import Path

from tests.test_layers import ANNEXES

ROOT = Path(__file__).parents[2]
CORE = (
    *("estimators", "inference", "likelihoods", "posterior", "prediction", "priors", "rows"),
    "sampling",
)


def without(modules: list[str], folder: Path) -> None:
    """Copy of the repository without the modules of an annex and their tests."""
    listed = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    for name in listed.stdout.split():
        if not (ROOT / name).exists():
            continue
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, target)
    for module in modules:
        path = folder / "skbayes_sgld" / module.replace(".", "/")
        shutil.rmtree(path, ignore_errors=True)
        path.with_suffix(".py").unlink(missing_ok=True)
        shutil.rmtree(folder / "tests" / module.replace(".", "/"), ignore_errors=True)


def run(modules: list[str]) -> tuple[int, int, list[str]]:
    """Numbers of tests that pass and that ask for the modules, and names of those that fail."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        without(modules, folder)
        tests = [f"tests/{each}" for each in CORE if (folder / "tests" / each).exists()]
        options = ["-q", "-p", "no:cacheprovider", "--continue-on-collection-errors"]
        report = folder / "report.xml"
        command = [sys.executable, "-m", "pytest", *options, f"--junitxml={report}", *tests]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        if not report.exists():
            raise RuntimeError(f"without {modules} no test ran:\n{done.stderr[-2000:]}")
        return read(report, modules)


def read(report: Path, modules: list[str]) -> tuple[int, int, list[str]]:
    """Counts of a report of pytest."""
    those = "|".join(re.escape(module) for module in modules)
    missing = re.compile(rf"No module named '(skbayes_sgld|tests)\.({those})|cannot import name")
    passed, asking, failed = 0, 0, []
    for case in ET.parse(report).iter("testcase"):
        faults = [each for each in case if each.tag in ("failure", "error")]
        if not faults:
            passed += not any(each.tag == "skipped" for each in case)
        elif any(missing.search((each.text or "") + each.get("message", "")) for each in faults):
            asking += 1
        else:
            failed.append(f"{case.get('classname')}::{case.get('name')}")
    return passed, asking, failed


def main(arguments: list[str]) -> int:
    """Status 1 where a test of the core fails for another reason than its annex."""
    names = [each for each in arguments if each != "--together"] or list(ANNEXES)
    left_out = {name: ANNEXES[name] for name in names}
    if "--together" in arguments:
        left_out = {", ".join(names): sorted(set().union(*left_out.values()))}
    worst = 0
    for annex, modules in left_out.items():
        passed, asking, failed = run(modules)
        print(
            f"without {annex}: {passed} pass, {asking} ask for it, {len(failed)} fail", flush=True
        )
        for name in failed:
            print(f"  {name}")
        worst |= bool(failed)
    return worst


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Run all benchmarks, or those that are named."""

from __future__ import annotations

import argparse
import ast
import pkgutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
NAMES = sorted(m.name for m in pkgutil.iter_modules([str(HERE)]) if not m.name.startswith("_"))


def describe(name: str) -> str:
    """First line of a benchmark's docstring, without importing it."""
    source = (HERE / f"{name}.py").read_text(encoding="utf-8")
    return (ast.get_docstring(ast.parse(source)) or "").partition("\n")[0]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    # no `choices`: argparse would refuse an empty list of names
    parser.add_argument("names", nargs="*", metavar="name", help=f"one of {', '.join(NAMES)}")
    parser.add_argument("--list", action="store_true", help="say what there is, and stop")
    options = parser.parse_args()
    if options.list:
        width = max(map(len, NAMES))
        print("\n".join(f"{name:{width}}  {describe(name)}" for name in NAMES))
        return 0
    unknown = sorted(set(options.names) - set(NAMES))
    if unknown:
        parser.error(f"{', '.join(unknown)}: not known; choose from {', '.join(NAMES)}")
    failed = 0
    for name in options.names or NAMES:
        # a process each: what one rival sets up for itself is not to slow the next one down
        failed |= subprocess.run([sys.executable, "-m", f"benchmarks.{name}"]).returncode
    return failed


if __name__ == "__main__":
    sys.exit(main())

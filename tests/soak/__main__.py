"""Every soak run, one after the other: ``python -m tests.soak``, half an hour.

Each is a module of this folder that can be run by itself; what they found is in
``docs/reliability.md``.
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).parent
OTHERS = ("__", "test_", "report")


def main() -> None:
    """Run every part, and leave with 1 where one failed."""
    names = sorted(path.stem for path in HERE.glob("*.py") if not path.stem.startswith(OTHERS))
    begin, failed = time.monotonic(), []
    for name in names:
        print(f"---- {name} ----\n", flush=True)
        done = subprocess.run([sys.executable, "-m", f"tests.soak.{name}"], cwd=HERE.parents[1])
        failed += [name] * (done.returncode != 0)
    minutes = (time.monotonic() - begin) / 60.0
    print(f"{', '.join(names)}: {minutes:.0f} minutes; failed: {', '.join(failed) or 'none'}")
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()

"""Run both proofs and print their tables: ``python -m tests.calibration [--replications N]``.

The progress goes to the standard error.
"""

from __future__ import annotations

import argparse
import time

import pandas as pd

from .calibration import calibrate, family_p_value
from .coverage import cover
from .models import MODELS


def main() -> None:
    """Run every model of both proofs."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.calibration", description="Run both proofs and print their tables."
    )
    parser.add_argument("--replications", type=int, help="of each model")
    options = parser.parse_args()
    for title, proof in (("Simulation-based calibration", calibrate), ("Coverage", cover)):
        start = time.perf_counter()
        parts = [proof(name, options.replications) for name in MODELS]
        seconds = time.perf_counter() - start
        table = pd.concat([part for part, _ in parts], ignore_index=True)
        warned = ", ".join(f"{name} {n}" for name, (_, n) in zip(MODELS, parts, strict=True))
        notes = f"{seconds:.0f} s; "
        notes += f"fits that warned: {warned}."
        if proof is calibrate:
            notes += f" Smallest p-value times {len(table)}: {family_p_value(table):.3f}."
        print(f"{title}\n\n{table.round(3).to_string(index=False)}\n\n{notes}\n", flush=True)


if __name__ == "__main__":
    main()

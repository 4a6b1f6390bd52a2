"""Pieces of code on the pages about extending, as modules."""

import importlib.util
import sys
from pathlib import Path

EXTENDING = Path(__file__).parents[1] / "docs" / "extending"


def load(piece):
    """Module of a piece."""
    path = EXTENDING / "pieces" / f"{piece}.py"
    spec = importlib.util.spec_from_file_location(f"extending_{piece}", path)
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module

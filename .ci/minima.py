"""The oldest versions that pyproject.toml admits, one requirement a line: ``minima.py EXTRA ...``.

Those of the run-time dependencies are always among them. Linters are left out.
"""

import re
import sys
import tomllib
from pathlib import Path

LEFT_OUT = {"mypy", "pandas-stubs", "ruff"}


def minima(extras: list[str]) -> list[str]:
    """Requirements ``name==version`` of the run-time dependencies and of some extras."""
    text = (Path(__file__).parents[1] / "pyproject.toml").read_text()
    project = tomllib.loads(text)["project"]
    listed = list(project["dependencies"])
    for extra in extras:
        listed += project["optional-dependencies"][extra]
    found = {}
    for requirement in listed:
        name, version = re.fullmatch(
            r"([\w-]+(?:\[[\w,]+\])?)(?:>=|~=)([\d.]+)", requirement
        ).groups()
        if name not in LEFT_OUT:
            found[name] = version
    return [f"{name}=={version}" for name, version in found.items()]


if __name__ == "__main__":
    print("\n".join(minima(sys.argv[1:])))

"""Refuse a release that is not ready: ``release.py TAG`` prints every reason."""

import re
import sys
from pathlib import Path


def reasons(root: Path, tag: str) -> list[str]:
    """Sentences on what is missing; none where the clone can be released as ``tag``."""
    package, pyproject, citation, changelog = (
        (root / name).read_text(encoding="utf-8")
        for name in ("skbayes_sgld/__init__.py", "pyproject.toml", "CITATION.cff", "CHANGELOG.md")
    )
    version = re.search(r'^__version__ = "(.+)"$', package, re.M)[1]
    cited, date = (
        re.search(rf"^{key}: (.+)$", citation, re.M)[1] for key in ("version", "date-released")
    )
    found = []
    if tag != f"v{version}":
        found.append(f"The tag is {tag}, and __version__ is {version}: tag v{version}.")
    if "OWNER" in pyproject:
        found.append("pyproject.toml: put the account in place of every OWNER.")
    if cited != version:
        found.append(f"CITATION.cff: version is {cited}, and __version__ is {version}.")
    if f"\n## {version} ({date})\n" not in changelog:
        found.append(f"CHANGELOG.md: no heading '## {version} ({date})', CITATION.cff's date.")
    return found


if __name__ == "__main__":
    if found := reasons(Path(__file__).parents[1], sys.argv[1]):
        sys.exit("\n".join(found))

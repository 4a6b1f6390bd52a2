"""Address of an estimator's page in the documentation."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, metadata
from pathlib import Path

BUILT = Path(__file__).resolve().parents[1] / "docs" / "_build" / "html"


def doc_link_template() -> str:
    """Address of an estimator's page, with a place for ``{estimator_name}``.

    In a clone it is in the documentation built there, if any. Otherwise it is below the
    ``Documentation`` address of the installed distribution, unless that still has the placeholder
    OWNER. Without either it is empty, and scikit-learn shows no link.
    """
    if BUILT.is_dir():
        root = BUILT.as_uri()
    else:
        try:
            addresses = metadata("skbayes-sgld").get_all("Project-URL") or []
        except PackageNotFoundError:  # a copy on the path, not installed
            addresses = []
        named = dict(address.split(", ", 1) for address in addresses)
        root = str(named.get("Documentation", "")).rstrip("/")
    if not root or "//OWNER." in root:
        return ""
    return f"{root}/api/generated/skbayes_sgld.{{estimator_name}}.html"

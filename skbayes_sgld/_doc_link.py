"""Address of an estimator's page in the documentation."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, metadata
from pathlib import Path

BUILT = Path(__file__).resolve().parents[1] / "docs" / "_build" / "html"


def doc_link_template() -> str:
    """Address of an estimator's page, with a place for ``{estimator_name}``.

    In a clone the page is that of the documentation built there, if it is. Otherwise it is below
    the ``Documentation`` address of the installed distribution, unless that still names no account
    (OWNER, until a release). Without either it is empty, and scikit-learn shows no link.
    """
    root = BUILT.as_uri() if BUILT.is_dir() else _published()
    return root and f"{root.rstrip('/')}/api/generated/skbayes_sgld.{{estimator_name}}.html"


def _published() -> str:
    try:
        addresses = metadata("skbayes-sgld").get_all("Project-URL") or []
    except PackageNotFoundError:  # a copy on the path, not installed
        return ""
    named = dict(address.split(", ", 1) for address in addresses)
    address = str(named.get("Documentation", ""))
    return "" if "//OWNER." in address else address

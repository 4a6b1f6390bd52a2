"""The documentation names what there is: extras, extension pages and their sources."""

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))


@pytest.mark.parametrize("page", [*PAGES, ROOT / "README.md"], ids=lambda page: page.name)
def test_every_extra_that_is_named_can_be_installed(page):
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    known = set(extras["optional-dependencies"])
    text = page.read_text()
    listed = re.findall(r"pip install [\"']?\.\[([\w,]+)\]", text)
    assert {name for names in listed for name in names.split(",")} <= known
    for sentence in re.findall(r"^Extras?:(.*?)\.$", text, re.M | re.S):
        assert set(re.findall(r"`(\w+)` \(", sentence)) <= known


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_an_included_source_is_there(page):
    text = page.read_text()
    included = re.findall(r"\{literalinclude\} (\S+)\n(?::.*\n)*", text)
    for name in included:
        assert (page.parent / name).is_file(), name
    for name, cls in re.findall(
        r"\{literalinclude\} (\S+)\n(?::language:.*\n)?:pyobject: (\w+)", text
    ):
        assert re.search(rf"^class {cls}\b", (page.parent / name).read_text(), re.M), cls


def test_every_page_on_extending_shows_the_packages_own_source_and_runs():
    pages = sorted((DOCS / "extending").glob("add_a_*.md"))
    assert len(pages) >= 3
    for page in pages:
        text = page.read_text()
        assert "{literalinclude} ../../skbayes_sgld/" in text, page.name
        assert ">>> " in text, page.name

"""The source distribution holds what a release is made of."""

import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_the_sdist_takes_every_document_and_folder_at_the_top():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    included = settings["tool"]["hatch"]["build"]["targets"]["sdist"]["include"]
    documents = {f"/{path.name}" for path in ROOT.glob("*.md")} | {
        "/LICENSE",
        "/Makefile",
        "/CITATION.cff",
    }
    folders = {"/skbayes_sgld", "/tests", "/docs", "/examples", "/benchmarks"}
    assert documents | folders <= set(included)
    assert all((ROOT / name[1:]).exists() for name in included)

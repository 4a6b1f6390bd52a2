"""The source distribution holds what a release is made of."""

import ast
import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
MAINTAINER = Path(__file__).parent


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


def test_figures_and_kept_results_stay_out_of_the_sdist_with_the_maintainers_tests():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    excluded = set(settings["tool"]["hatch"]["build"]["targets"]["sdist"]["exclude"])
    assert {"/docs/figures", "/docs/results", "/benchmarks/results"} <= excluded
    assert "/tests/maintainer" in excluded


def test_the_tests_of_the_package_stand_alone():
    """They run in the sdist, without kept results, figures and the maintainer's tests."""
    tools = {ROOT / "tests" / "structure.py"}  # which draws a figure, and no test of these imports
    files = {path for path in (ROOT / "tests").rglob("*.py") if MAINTAINER not in path.parents}
    assert len(files) > 100
    others = r"(from|import) (benchmarks|tests\.maintainer|tests\.structure)"
    others += r"|\"(results|figures|benchmarks)\""
    for path in sorted(files - tools):
        found = re.search(others, path.read_text(encoding="utf-8"))
        assert not found, f"{path.relative_to(ROOT)}: {found and found[0]}"


def optional_libraries():
    """Names under which the libraries of extras are imported, where no run needs them."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = [entry for listed in project["optional-dependencies"].values() for entry in listed]
    found, needed = (
        {re.match(r"[\w-]+", entry)[0].replace("-", "_") for entry in entries}
        for entries in (extras, project["dependencies"])
    )
    return found - needed - {"pytest"}


def imported_at_once(path):
    """Names that a module imports when it is itself imported."""
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield (node.module or "").partition(".")[0]


def test_without_extras_every_test_is_collected_or_skipped():
    optional = optional_libraries()
    assert {"matplotlib", "dask", "statsmodels"} <= optional
    for path in sorted((ROOT / "tests").rglob("*.py")):
        of_folder = re.findall(
            r'^pytest.importorskip\("(\w+)"', (path.parent / "__init__.py").read_text(), re.M
        )
        wanted = optional.intersection(imported_at_once(path)).difference(of_folder)
        assert not wanted, f"{path.relative_to(ROOT)}: use pytest.importorskip for {wanted}"

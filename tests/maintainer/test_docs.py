"""The documentation names what there is: extras, extension pages and their sources."""

import contextlib
import doctest
import importlib
import io
import pkgutil
import re
import tomllib
import warnings
from pathlib import Path

import pytest
from sklearn.preprocessing import StandardScaler

import skbayes_sgld
from skbayes_sgld.datasets import load_nba_rookies

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))


@pytest.mark.parametrize("page", [*PAGES, ROOT / "README.md"], ids=lambda page: page.name)
def test_every_extra_that_is_named_can_be_installed(page):
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    known = set(extras["optional-dependencies"])
    text = page.read_text()
    listed = re.findall(r"pip install [\"']?(?:\.|skbayes-sgld)\[([\w,]+)\]", text)
    assert {name for names in listed for name in names.split(",")} <= known
    for sentence in re.findall(r"^Extras?:(.*?)\.$", text, re.M | re.S):
        assert set(re.findall(r"`(\w+)` \(", sentence)) <= known


def test_every_message_names_the_command_that_installs_an_extra():
    known = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    sources = [
        path
        for name in ("skbayes_sgld", "examples", "benchmarks")
        for path in ROOT.glob(f"{name}/**/*.py")
    ]
    named = [
        line.strip()
        for path in sources
        for line in path.read_text(encoding="utf-8").splitlines()
        if re.search(r"skbayes[-_]sgld\[(?!\{)", line)
    ]
    assert len(named) >= 6
    for line in named:
        extra = re.search(r'pip install "skbayes-sgld\[(\w+)\]"', line)
        assert extra and extra[1] in known["optional-dependencies"], line


@pytest.mark.parametrize(
    "page", [DOCS / "index.md", ROOT / "README.md"], ids=lambda page: page.name
)
def test_every_extra_for_users_is_listed(page):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for_users = set(project["optional-dependencies"]) - {"bench", "comparison", "docs", "test"}
    sentence = re.search(r"\bExtras: (.*?)\.\n", page.read_text(encoding="utf-8"), re.S)[1]
    assert set(re.findall(r"`(\w+)`\s\(", sentence)) == for_users


def listed():
    """Names and modules of the API reference; a module's page lists its `__all__`."""
    tables = re.findall(
        r"autosummary::\n((?:   :.*\n)*)\n((?:   \S+\n)+)", (DOCS / "api" / "index.rst").read_text()
    )
    names = {
        name for options, rows in tables if "module.rst" not in options for name in rows.split()
    }
    return names, {
        name for options, rows in tables if "module.rst" in options for name in rows.split()
    }


def test_every_public_name_is_in_the_api_reference():
    names, modules = listed()
    own = {name for name in names if "." not in name}
    assert own == set(skbayes_sgld.__all__)
    # behind what the others export
    internal = {"arviz", "blocks", "checkpoints", "criticism", "estimators", "inference"} | {
        "mixed",
        "prediction",
        "rows",
        "wide_rows",
    }
    twice = {"linear_model"}  # whose estimators stand at the top
    found = {module.name for module in pkgutil.iter_modules(skbayes_sgld.__path__)}
    assert modules == {name for name in found if name[0] != "_"} - internal - twice
    for name in twice:
        assert set(importlib.import_module(f"skbayes_sgld.{name}").__all__) <= own
    for name in modules:
        assert importlib.import_module(f"skbayes_sgld.{name}").__all__


def test_estimators_come_first_in_the_api_reference():
    text = (DOCS / "api" / "index.rst").read_text()
    first = [text.index(f"   {name}\n") for name in skbayes_sgld.linear_model.__all__]
    assert max(first) < min(text.index("   sample\n"), text.index("   metrics\n"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_block_without_prompts_runs_by_itself(page, capsys):
    """The others go on from the blocks above them, and are doctests."""
    for block in re.findall(r"```python\n((?!>>> ).*?)```", page.read_text(), re.S):
        exec(compile(block, str(page), "exec"), {})


def test_every_page_is_in_a_table_of_contents():
    """Or the build of the site warns, which is an error there."""
    contents = {(DOCS / "index.md").resolve()}
    for page in PAGES:
        for table in re.findall(r"```{toctree}\n(.*?)```", page.read_text(), re.S):
            lines = [line for line in table.splitlines() if line and line[0] != ":"]
            names = [re.sub(r".*<(.*)>", r"\1", line) for line in lines]
            contents |= {(page.parent / f"{name}.md").resolve() for name in names}
            for name in names if ":glob:" in table else ():
                contents |= {path.resolve() for path in page.parent.glob(f"{name}.md")}
    assert [page.name for page in PAGES if page.resolve() not in contents] == []


def test_every_page_with_prompts_is_a_doctest():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["pytest"]["ini_options"]
    command = r"pytest -n 2 (tests/maintainer .*) \$\(PYTEST_ARGS\)"
    maintainers = re.search(command, (ROOT / "Makefile").read_text())[1].split()
    paths = {path for name in settings["testpaths"] + maintainers for path in ROOT.glob(name)}
    globs = [option.split("=")[1] for option in settings["addopts"] if "--doctest-glob" in option]
    for page in PAGES:
        if re.search(r"^>>> ", page.read_text(), re.M):
            assert paths & {page, *page.parents}, f"{page} is run by no target of make"
            assert any(page.match(glob) for glob in globs), f"{page} has no --doctest-glob"


def test_the_plan_that_is_shown_is_the_one_that_is_made():
    shown = re.search(r"```text\n(prior .*?)```", (DOCS / "how_auto_works.md").read_text(), re.S)
    rookies = load_nba_rookies()
    X = StandardScaler().fit_transform(rookies.data.fillna(0.0))
    model = skbayes_sgld.SGLDLogisticRegression(random_state=0).fit(X, rookies.target)
    figures = re.compile(r"[\d.]+%")  # of the pilot: the last digit is the machine's
    made = str(model.result_.plan)
    assert figures.sub("%", shown[1].rstrip()) == figures.sub("%", made)


def run(page, source):
    """Output and warnings of the prompts of a page, all of which run in one session."""
    examples = doctest.DocTestParser().get_examples(source)
    session, printed = {}, io.StringIO()
    with warnings.catch_warnings(record=True) as found, contextlib.redirect_stdout(printed):
        warnings.simplefilter("always")
        for example in examples:
            exec(compile(example.source, page.name, "single"), session)
    return printed.getvalue(), [str(each.message) for each in found]


QUICKSTART = DOCS / "guide" / "quickstart.md"


def check_names(printed, said):
    """Columns have names in all that is printed and said, and no numbers."""
    for text in (printed, *said):
        assert not re.search(r"\bx\d+\b|set_output", text)
    for name in ("coef[origin_USA]", "coef[weight]", "column: horsepower"):
        assert name in printed


def test_the_quickstart_prints_short_lines_with_names_and_shows_the_warning_of_its_fit():
    source = QUICKSTART.read_text(encoding="utf-8")
    printed, said = run(QUICKSTART, source)
    assert len(printed.splitlines()) > 60
    assert [line for line in printed.splitlines() if len(line) > 100] == []
    assert [line for line in source.splitlines() if line[:4] == ">>> " and len(line) > 104] == []
    assert "ModelMisfitWarning: " + said[0] in " ".join(source.split())
    check_names(printed, said)


def test_every_function_of_the_quickstart_is_imported_from_the_package():
    imports = re.findall(r">>> from (skbayes_sgld\S*) import (.*)", QUICKSTART.read_text())
    names = {name for module, listed in imports for name in listed.split(", ")}
    assert {"check_model", "effects", "predict_interval", "sample_y", "summary"} <= names
    assert {module for module, _ in imports} == {"skbayes_sgld", "skbayes_sgld.datasets"}

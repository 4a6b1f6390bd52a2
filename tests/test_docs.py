"""The documentation names what there is: extras, extension pages and their sources."""

import importlib
import inspect
import pkgutil
import re
import tomllib
from pathlib import Path

import pytest
from sklearn.preprocessing import StandardScaler

import skbayes_sgld
from skbayes_sgld.datasets import load_nba_rookies

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


def documented():
    """The objects of the API reference: `automodule` follows a module's `__all__`."""
    text = (DOCS / "api.md").read_text()
    found = []
    for name in re.findall(r"automodule:: (\S+)", text):
        module = importlib.import_module(name)
        own = [
            key
            for key, value in vars(module).items()
            if getattr(value, "__module__", None) == name and not key.startswith("_")
        ]
        found += [getattr(module, key) for key in getattr(module, "__all__", own)]
    for name in re.findall(r"auto(?:class|function):: (\S+)", text):
        module, _, key = name.rpartition(".")
        found.append(getattr(importlib.import_module(module), key))
    return found


def public_modules():
    names = [module.name for module in pkgutil.iter_modules(skbayes_sgld.__path__)]
    internal = {"estimators", "inference", "prediction"}  # behind what the others export
    return ["skbayes_sgld"] + [
        f"skbayes_sgld.{name}" for name in names if name[0] != "_" and name not in internal
    ]


@pytest.mark.parametrize("name", public_modules())
def test_every_public_name_is_in_the_api_reference(name):
    module = importlib.import_module(name)
    shown = {id(value) for value in documented()}
    names = getattr(module, "__all__", [])
    missing = [key for key in names if id(getattr(module, key)) not in shown]
    assert missing == []
    assert f"automodule:: {name}\n" in (DOCS / "api.md").read_text()


def test_what_a_fit_gives_back_is_in_the_api_reference():
    shown = {value.__name__ for value in documented() if inspect.isclass(value)}
    assert {"Diagnosis", "SGLDLinearRegression"} <= shown
    functions = {value.__name__ for value in documented() if inspect.isfunction(value)}
    assert {
        "sample",
        "effective_sample_size",
        "potential_scale_reduction",
        "summarize",
    } <= functions


def test_the_plan_that_is_shown_is_the_one_that_is_made():
    shown = re.search(r"```text\n(sampler .*?)```", (DOCS / "how_auto_works.md").read_text(), re.S)
    rookies = load_nba_rookies()
    X = StandardScaler().fit_transform(rookies.data.fillna(0.0))
    model = skbayes_sgld.SGLDLogisticRegression(random_state=0).fit(X, rookies.target)
    figures = re.compile(r"[\d.]+%")  # of the pilot: the last digit is the machine's
    made = str(model.result_.plan)
    assert figures.sub("%", shown[1].rstrip()) == figures.sub("%", made)

"""The built documentation: every public name has its entry, every link and image its target."""

import functools
import importlib
import inspect
import os
import pkgutil
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

import skbayes_sgld

pytestmark = pytest.mark.docs

ROOT = Path(__file__).parents[2]
SITE = ROOT / "docs" / "_build" / "html"
INTERNAL = {"criticism", "estimators", "inference", "prediction"}
ESTIMATORS = [
    name for name in skbayes_sgld.__all__ if hasattr(getattr(skbayes_sgld, name), "get_params")
]
sys.path.insert(0, str(ROOT / "docs"))


@pytest.fixture(scope="session")
def site():
    """Folder of the pages, brought up to date as by `make docs`: a warning is an error."""
    for name in ("sphinx", "pydata_sphinx_theme", "sphinx_gallery"):
        pytest.importorskip(name, reason="the pages need the extra 'docs'")
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html"]
    environment = os.environ | {"MPLBACKEND": "Agg"}
    done = subprocess.run(
        [*command, ROOT / "docs", SITE],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return SITE


def test_the_pages_are_built_in_a_folder_whose_path_has_a_space(tmp_path):
    pytest.importorskip("sphinx_gallery", reason="the pages need the extra 'docs'")
    clone = tmp_path / "a clone"
    built = shutil.ignore_patterns(".*", "_build", "auto_examples", "generated", "__pycache__")
    shutil.copytree(ROOT, clone, ignore=built)
    # examples are not run: they are read from the same folder either way
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "-b", "dummy", "-D", "plot_gallery=0"]
    done = subprocess.run(
        [*command, clone / "docs", tmp_path / "built"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


class Page(HTMLParser):
    """Links, anchors, and references of the Python domain that are not links."""

    def __init__(self, text):
        super().__init__()
        self.links, self.anchors, self.unresolved, self._within = [], set(), [], 0
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.links += [attrs[key] for key in ("href", "src") if attrs.get(key)]
        self.anchors |= {attrs[key] for key in ("id", "name") if attrs.get(key)}
        self._within += tag == "a"
        if "xref py " in attrs.get("class", "") and not self._within:
            self.unresolved.append(self.getpos())

    def handle_endtag(self, tag):
        self._within -= tag == "a"


@functools.cache
def read(path):
    return Page(path.read_text())


def pages(site):
    return sorted(path for path in site.rglob("*.html") if "_static" not in path.parts)


def public_objects():
    """Every name of an `__all__`, by the names under which it may be documented."""
    modules = [skbayes_sgld] + [
        importlib.import_module(f"skbayes_sgld.{module.name}")
        for module in pkgutil.iter_modules(skbayes_sgld.__path__)
        if module.name[0] != "_" and module.name not in INTERNAL
    ]
    for module in modules:
        for name in module.__all__:
            value = getattr(module, name)
            names = {f"{module.__name__}.{name}", f"skbayes_sgld.{name}"}
            yield value, names


def test_every_public_name_and_method_is_in_the_inventory(site):
    from sphinx.util.inventory import InventoryFile

    with (site / "objects.inv").open("rb") as file:
        inventory = InventoryFile.load(file, "", lambda base, uri: uri)
    known = {name for role in inventory if role.startswith("py:") for name in inventory[role]}
    missing, n_methods = [], 0
    for value, names in public_objects():
        if not names & known:
            missing.append(sorted(names))
        if inspect.isclass(value):
            for method, _ in inspect.getmembers(value, inspect.isroutine):
                if method[0] != "_" and not issubclass(value, Exception):
                    n_methods += 1
                    if not {f"{name}.{method}" for name in names} & known:
                        missing.append(f"{sorted(names)[0]}.{method}")
    assert missing == []
    assert n_methods > 200
    for name in ("fit", "predict_interval", "sample_posterior", "sample_y", "diagnose"):
        assert f"skbayes_sgld.SGLDLinearRegression.{name}" in known


def test_no_page_shows_a_class_that_is_not_public(site):
    """No private base of an estimator and no base without a page, but where families are added."""
    public = {value for value, _ in public_objects() if inspect.isclass(value)}
    bases = {base for name in ESTIMATORS for base in getattr(skbayes_sgld, name).__mro__}
    private = {
        base.__name__ for base in bases - public if base.__module__.startswith("skbayes_sgld.")
    }
    assert {"SampledEstimator", "NormalRegressor", "SGLDNetwork"} <= private
    allowed = {each.__name__ for each in public} | {"ValueError", "RuntimeError", "UserWarning"}
    found = []
    for path in pages(site):
        if {"_modules", "extending"} & set(path.parts):
            continue
        text = re.sub(r"<[^>]*>", "", path.read_text())
        found += [(path.name, name) for name in private if re.search(rf"\b{name}\b", text)]
        for line in re.findall(r"Bases: (.*)", text):
            found += [(path.name, base) for base in line.split(", ") if base not in allowed]
    assert found == []


def test_the_page_of_an_estimator_shows_at_most_ten_parameters_first():
    pytest.importorskip("numpydoc", reason="the pages need the extra 'docs'")
    import reference

    known = [set(inspect.signature(getattr(skbayes_sgld, name)).parameters) for name in ESTIMATORS]
    assert all(5 <= len(each & set(reference.FIRST)) <= 10 for each in known)
    assert set(reference.FIRST) <= set().union(*known)


def test_every_relative_link_and_image_has_its_target(site):
    broken = []
    for path in pages(site):
        for link in read(path).links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if target.is_dir():
                target = target / "index.html"
            if not target.is_file() or (
                parts.fragment
                and target.suffix == ".html"
                and unquote(parts.fragment) not in read(target).anchors
            ):
                broken.append((path.name, link))
    assert broken == []


@pytest.mark.parametrize("page", sorted((ROOT / "docs").rglob("*.md")), ids=lambda page: page.stem)
def test_code_of_a_markdown_page_is_coloured(site, page):
    """A block whose text is not its source is a parsed literal to Sphinx, grey and not copied."""
    html = (site / page.relative_to(ROOT / "docs").with_suffix(".html")).read_text()
    blocks = len(re.findall(r"^```python", page.read_text(), re.M))
    coloured = re.findall(r'<div class="highlight-(?:python|pycon)[^>]*>.*?</pre>', html, re.S)
    assert len(coloured) >= blocks
    assert all('<span class="' in block for block in coloured)
    assert '<pre class="literal-block">' not in html
    assert "BLANKLINE" not in html


def test_the_gallery_has_a_section_of_tasks_and_one_of_the_sources_figures(site):
    text = (site / "examples.html").read_text()
    assert re.findall(r"<h2>(.*?)<a", text) == ["Tasks", "The sources' figures"]
    assert text.count("sphx-glr-thumbcontainer") == len(list((ROOT / "examples").glob("[!_]*.py")))


def test_the_page_of_a_class_begins_with_what_it_is(site):
    """Its base classes come after its members."""
    n_bases = 0
    for path in (site / "api" / "generated").glob("*.html"):
        text = path.read_text()
        described = re.search(r"<dd>\s*<p>(.*?)</p>", text, re.S)
        assert described is None or not described[1].startswith("Bases"), path.name
        n_bases += "<p>Bases: " in text
    assert n_bases > 50


def test_nothing_is_fetched_from_another_host(site):
    """Mathematics, fonts and search are there without a network."""
    pattern = re.compile(r"<(?:script|img|link)\b[^>]*(?:src|href)=\"(?:https?:)?//[^\"]+\"[^>]*>")
    for path in pages(site):
        found = [tag for tag in pattern.findall(path.read_text()) if "canonical" not in tag]
        assert found == [], path.name
    assert (site / "_static" / "tex-svg.js").stat().st_size > 1_000_000


def test_every_estimators_link_leads_to_its_page(site):
    for name in importlib.import_module("skbayes_sgld.linear_model").__all__:
        link = getattr(skbayes_sgld, name)()._get_doc_link()
        assert Path(unquote(urlsplit(link).path)).is_file(), link

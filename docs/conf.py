"""Sphinx configuration. Build with ``make docs``; nothing is fetched from outside."""

import importlib.util
import json
import re
import sys
import tomllib
from pathlib import Path

from docutils import nodes
from matplotlib import pyplot
from sphinx.util.typing import restify
from sphinx_gallery.scrapers import matplotlib_scraper

import skbayes_sgld

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "examples")]
import reference  # noqa: E402
from _figure import save_panel  # noqa: E402

project = "skbayes_sgld"
author = "the skbayes_sgld developers"
copyright = author
release = version = skbayes_sgld.__version__
URLS = tomllib.loads((HERE.parent / "pyproject.toml").read_text())["project"]["urls"]

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.intersphinx",
    "sphinx.ext.mathjax",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build", "inventories"]
smartquotes = False  # `default="auto"` is to be copied
suppress_warnings = [
    "config.cache",  # a sort key is a class
    "sphinx_gallery.space_in_filename",  # of the clone's folder: no file has one
]
templates_path = ["_templates"]

# ---- pages ----------------------------------------------------------------------------------

html_theme = "pydata_sphinx_theme"
html_title = f"{project} {version}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_favicon = "_static/logo.svg"
html_context = {"default_mode": "auto"}  # the theme logs an error where there is none
html_copy_source = False
html_show_sourcelink = False
html_theme_options = {
    "logo": {
        "text": project,
        "alt_text": "",  # the name is beside it
        "image_light": "_static/logo.svg",
        "image_dark": "_static/logo.svg",
    },
    "icon_links": [
        {"name": "Repository", "url": URLS["Source"], "icon": "fa-brands fa-github"},
    ],
    "switcher": {"json_url": "_static/switcher.json", "version_match": version},
    "check_switcher": False,  # it is written at the end of the build
    "navbar_end": ["version-switcher", "theme-switcher", "navbar-icon-links"],
    "header_links_before_dropdown": 6,
    "navigation_with_keys": False,
    "secondary_sidebar_items": ["page-toc"],
    "show_prev_next": True,
    "show_toc_level": 2,
    "footer_start": ["copyright"],
    "footer_end": [],
}
html_sidebars = {"index": [], "changelog": []}

copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

# MathJax in one file, from the package that ships it.
_MATHJAX = importlib.util.find_spec("sphinx-mathjax-offline").submodule_search_locations[0]
mathjax_path = "tex-svg.js"
html_static_path.append(str(Path(_MATHJAX) / "static" / "mathjax" / mathjax_path))

myst_enable_extensions = ["amsmath", "attrs_inline", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3

# ---- the reference --------------------------------------------------------------------------

autosummary_ignore_module_all = False  # a module's page lists its `__all__`
autodoc_default_options = {"members": True}
autodoc_member_order = "bysource"
autodoc_typehints = "none"  # the docstrings say the types
toc_object_entries_show_parents = "hide"
maximum_signature_line_length = 88
numpydoc_class_members_toctree = False  # methods are on the page of their class
numpydoc_show_class_members = True

# ---- examples -------------------------------------------------------------------------------

# Those on a task are run. The others take minutes: they are shown with the figures of their full
# runs, from figures/, and the tests run them.
_ORDER = re.findall(r"\.\./examples/(\S+)", (HERE / "examples.md").read_text())


class _AsOnThePage:
    """Sort key: the order of examples.md."""

    def __init__(self, folder=None):
        pass

    def __call__(self, path):
        return _ORDER.index(Path(path).name)


def _keep_a_panel(block, block_vars, gallery_conf):
    """Scrape figures as Sphinx-Gallery does; the first panel of the first one is the thumbnail."""
    script = Path(block_vars["src_file"]).stem
    path = Path(gallery_conf["src_dir"]) / "auto_examples" / "images" / f"panel_{script}.png"
    if pyplot.get_fignums() and len(block_vars["image_path_iterator"]) == 0:
        save_panel(pyplot.figure(pyplot.get_fignums()[0]).axes[0], path)
    return matplotlib_scraper(block, block_vars, gallery_conf)


sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "auto_examples",
    "filename_pattern": r"/how_to_",
    "ignore_pattern": r"^_",
    "image_scrapers": (_keep_a_panel,),
    "within_subsection_order": _AsOnThePage,
    "minigallery_sort_order": _AsOnThePage(),
    "backreferences_dir": "auto_examples/backreferences",
    "doc_module": ("skbayes_sgld",),
    "reference_url": {"skbayes_sgld": None},
    "remove_config_comments": True,
    "show_memory": False,
    "write_computation_times": False,
    "abort_on_example_error": True,
}


def _list_examples(app, docname, source):
    """Give each section of examples.md its table of contents, and the gallery's own index none."""
    if docname == "examples":
        for section in source[0].split("\n## ")[1:]:
            names = re.findall(r"\.\./examples/(\w+)\.py", section)
            pages = "\n".join(f"auto_examples/{name}" for name in names)
            caption = section.partition("\n")[0]
            source[0] += f"\n```{{toctree}}\n:hidden:\n:caption: {caption}\n\n{pages}\n```\n"
    if docname == "auto_examples/index":
        begin, end = (
            source[0].index(".. raw:: html"),
            source[0].rindex(".. only:: html\n\n  .. con"),
        )
        source[0] = source[0][:begin] + source[0][end:]


def _show_figures(app, docname, source):
    """Put the figures of an example that is not run above its code."""
    script = HERE.parent / "examples" / f"{Path(docname).name}.py"
    if not docname.startswith("auto_examples/") or not script.is_file():
        return
    text = script.read_text()
    for module in re.findall(r"^from (_[a-z]\w*) import", text, re.M):
        text += script.with_name(f"{module}.py").read_text()
    figures = "".join(
        f".. image:: /figures/{name}.png\n   :alt: {name.replace('_', ' ')}\n\n"
        for name in dict.fromkeys(re.findall(r'"(\w+)\.png"', text))
        if (HERE / "figures" / f"{name}.png").is_file()
    )
    before, code, after = source[0].partition(".. code-block:: Python\n")
    source[0] = before + figures + code + after


# ---- other projects -------------------------------------------------------------------------

INVENTORIES = {
    "matplotlib": "https://matplotlib.org/stable/",
    "numpy": "https://numpy.org/doc/stable/",
    "pandas": "https://pandas.pydata.org/docs/",
    "python": "https://docs.python.org/3/",
    "scipy": "https://docs.scipy.org/doc/scipy/",
    "sklearn": "https://scikit-learn.org/stable/",
}
intersphinx_mapping = {
    name: (url, str(HERE / "inventories" / f"{name}.inv")) for name, url in INVENTORIES.items()
}


def _join_lines(app, what, name, obj, options, lines):
    """Join the lines of a parameter list that go on after a backslash; numpydoc takes one line."""
    lines[:] = re.sub(r"\s*\\\n\s*", " ", "\n".join(lines)).split("\n")


def _bases(name):
    """Public bases of a class as links."""
    return ", ".join(restify(base, "smart") for base in reference.public_bases(name))


def _give_to_templates(app):
    """Hand functions to the templates of autosummary; in a setting they could not be cached."""
    app.config.autosummary_context |= {
        "estimator": reference.describe,
        "bases": _bases,
    }


def _trim_code(app, doctree):
    """Leave out the blank line that ends a doctest in Markdown.

    Sphinx colours a block only if its text is its source, so both change.
    """
    for block in doctree.findall(nodes.literal_block):
        if block.rawsource == block.astext():
            block.rawsource = block.astext().rstrip()
            block[:] = [nodes.Text(block.rawsource)]


def _show_source(app, pagename, templatename, context, doctree):
    """Break a module's name at its dots, and drop links to names with a page under another one."""
    if pagename.startswith("_modules/"):
        known = app.env.get_domain("py").objects
        context["body"] = re.sub(
            r'<a class="viewcode-back" href="[^"#]*#([^"]+)">.*?</a>',
            lambda link: link[0] if link[1] in known else "",
            re.sub("<h1>.*?</h1>", lambda head: head[0].replace(".", ".<wbr>"), context["body"]),
        )


def _write_versions(app, exception):
    """Write the versions that the switcher shows: the one at the published address."""
    if exception is None and app.builder.format == "html":
        shown = [{"name": version, "version": version, "url": URLS["Documentation"]}]
        (Path(app.outdir) / "_static" / "switcher.json").write_text(json.dumps(shown))


def setup(app):
    app.connect("doctree-read", _trim_code)
    app.connect("html-page-context", _show_source)
    app.connect("build-finished", _write_versions)
    app.connect("builder-inited", _give_to_templates, priority=100)  # before autosummary
    app.connect("autodoc-process-docstring", _join_lines, priority=100)  # before numpydoc
    app.connect("source-read", _show_figures)
    app.connect("source-read", _list_examples)

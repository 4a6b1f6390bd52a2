"""Sphinx configuration. Build with ``make docs``."""

import re

import skbayes_sgld

project = "skbayes_sgld"
author = "the skbayes_sgld developers"
copyright = author
release = version = skbayes_sgld.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
]
exclude_patterns = ["_build"]

html_theme = "furo"
html_title = f"{project} {version}"

myst_enable_extensions = ["amsmath", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3

# `automodule` follows the module's `__all__`, re-exported names included.
autodoc_default_options = {"members": True, "show-inheritance": True}
autodoc_member_order = "bysource"
autodoc_typehints = "none"  # the docstrings say the types
autosummary_generate = False
numpydoc_show_class_members = False

_METADATA_ROUTING = re.compile(r"set_\w+_request|get_metadata_routing")


def _skip_member(app, what, name, obj, skip, options):
    """Leave out the methods that scikit-learn generates on every estimator.

    Their docstrings refer to sections of scikit-learn's own user guide.
    """
    return True if _METADATA_ROUTING.fullmatch(name) else None


def _join_lines(app, what, name, obj, options, lines):
    """Join the lines of a parameter list that go on after a backslash; numpydoc takes one line."""
    for i in reversed(range(len(lines) - 1)):
        if lines[i].endswith("\\"):
            lines[i : i + 2] = [lines[i][:-1].rstrip() + " " + lines[i + 1].lstrip()]


def setup(app):
    app.connect("autodoc-process-docstring", _join_lines, priority=100)  # before numpydoc
    app.connect("autodoc-skip-member", _skip_member)

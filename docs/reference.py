"""Contents of the pages of the reference: conf.py hands these functions to their templates.

The page of an estimator leads with what it is, its example and a picture. The parameters that
people set first come next, then the others by the group in which a class documents them.
"""

import importlib
import json
import pkgutil
import re
from inspect import cleandoc, getdoc, getmembers, isclass, isroutine, signature
from pathlib import Path
from pydoc import locate

from numpydoc.docscrape_sphinx import SphinxDocString

import skbayes_sgld
from skbayes_sgld.estimators.parameters import parameter_groups, split_sections

PICTURES = json.loads((Path(__file__).parent / "results" / "estimators.json").read_text())["values"]
FIRST = (
    "prior",
    "fit_intercept",
    "hidden_layer_sizes",
    "activation",
    "class_weight",
    "noise_model",
    "noise_distribution",
    "optimizer",
    "sampler",
    "step_size",
    "temperature",
    "n_draws",
    "n_chains",
    "max_iter",
    "random_state",
)
GROUPS = {"Parameters": "model", "Sampler": "sampler", "Optimizer": "optimizer", "Run": "run"}


def describe(name):
    """Parts of an estimator's page, as reStructuredText."""
    cls = getattr(skbayes_sgld, name)
    text, sections = split_sections(cleandoc(cls.__doc__))
    sampled = re.match(r"Bayesian (.+?)(?: sampled)? by ", text)
    paragraphs = text.split("\n\n")
    groups = parameter_groups(cls)
    entries = {key: entry for group in groups.values() for key, entry in group.items()}
    first = [key for key in FIRST if key in entries]
    others = {
        GROUPS[group]: {key: entry for key, entry in found.items() if key not in first}
        for group, found in groups.items()
    }
    methods = [key for key, _ in getmembers(cls, isroutine) if key[0] != "_"]
    plumbing = [key for key in methods if key.startswith(("get_", "set_"))]
    return {
        "signature": shortened(cls),
        "model": sampled[1] if sampled else "posterior mode",
        "lead": "\n\n".join(paragraphs[:2]),
        "more": "\n\n".join(paragraphs[2:]),
        "example": sections["Examples"],
        "picture": PICTURES[name],
        "first": entry_list([entries[key] for key in first]),
        "others": {
            group: {"names": names_of(found), "entries": entry_list(found.values())}
            for group, found in others.items()
            if found
        },
        "attributes": entry_list([sections["Attributes"]]),
        "see_also": str(SphinxDocString(f"\n\nSee Also\n--------\n{sections['See Also']}"))
        if "See Also" in sections
        else "",
        "notes": sections.get("Notes", ""),
        "references": sections.get("References", ""),
        "methods": {key: first_sentence(cls, key) for key in in_order(methods, plumbing)},
        "plumbing": plumbing,
    }


def shortened(cls):
    """Signature with the first of the parameters that people set."""
    defaults = {key: each.default for key, each in signature(cls).parameters.items()}
    first = next(key for key in FIRST if key in defaults)
    return f"(*, {first}={defaults[first]!r}, ...)"


def in_order(methods, plumbing):
    """The estimator's own methods: those that fit, then those that predict, then the others."""

    def rank(name):
        kinds = ("fit", "partial_fit", "predict")
        return next((i for i, kind in enumerate(kinds) if name.startswith(kind)), len(kinds)), name

    return sorted(set(methods) - set(plumbing), key=rank)


def first_sentence(cls, name):
    """First paragraph of a method's documentation."""
    return " ".join(getdoc(getattr(cls, name)).partition("\n\n")[0].split())


def names_of(entries):
    """Names of parameters as code; an entry may document several."""
    names = [name for entry in entries.values() for name in entry.partition(" :")[0].split(", ")]
    return ", ".join(f"``{name}``" for name in names)


def entry_list(entries):
    """Entries of a docstring's section, as numpydoc writes them, without the section's name."""
    text = "\n".join(entries)
    shown = str(SphinxDocString(f"\n\nParameters\n----------\n{text}"))
    return cleandoc(shown.partition(":Parameters:")[2])


def public_classes():
    """Classes that a module of the package lists in its ``__all__``."""
    names = [each.name for each in pkgutil.iter_modules(skbayes_sgld.__path__, "skbayes_sgld.")]
    modules = [skbayes_sgld, *map(importlib.import_module, names)]
    named = (getattr(each, name) for each in modules for name in getattr(each, "__all__", ()))
    return {each for each in named if isclass(each)}


PUBLIC = public_classes()


def public_bases(cls):
    """Nearest bases of a class that have a page, and errors and warnings of Python's."""
    cls = locate(cls) if isinstance(cls, str) else cls
    found = []
    for base in cls.__bases__:
        known = base in PUBLIC or issubclass(base, Exception)
        found += [base] if known else public_bases(base)
    return list(dict.fromkeys(found))

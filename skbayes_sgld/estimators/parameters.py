"""Constructor parameters as fields of a class, and docstrings that subclasses inherit."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, fields
from inspect import Signature, cleandoc, signature
from textwrap import fill, indent
from typing import Any, dataclass_transform

from skbayes_sgld.rows.arguments import documentation

# Sections of a docstring that document parameters: those of the model, and those of the inference.
_GROUPS = ("Parameters", "Sampler", "Optimizer", "Run")


@dataclass_transform(kw_only_default=True)
def parameters(cls: Any) -> Any:
    """Class decorator: annotated fields of an estimator become its keyword-only parameters.

    Every parameter is written once, with its default, in the class that uses it, whose docstring
    documents it. The constructor, ``get_params`` and the signature have the fields of the class and
    its bases; the docstring has their ``Parameters``, in the same order, group by group, their
    ``Attributes``, and as ``Notes`` paragraphs on the rows and the notes of the nearest class that
    has some. A class documents the parameters of the inference under ``Sampler``, ``Optimizer`` and
    ``Run``.
    """
    cls = dataclass(cls, kw_only=True, eq=False, repr=False)
    text, sections = split_sections(cleandoc(cls.__doc__ or ""))
    inherited_sections = *_GROUPS, "Attributes", "Notes"
    cls._documented = {name: sections.pop(name, "") for name in inherited_sections}
    documented = [vars(base).get("_documented", {}) for base in cls.__mro__]
    groups = parameter_groups(cls).values()
    parameter_entries = {name: entry for group in groups for name, entry in group.items()}
    cls.__init__.__signature__ = _in_order(signature(cls.__init__), list(parameter_entries))
    attribute_entries = _entries(each.get("Attributes", "") for each in documented)
    inherited = {
        "Parameters": parameter_entries.values(),
        "Attributes": attribute_entries.values(),
        "Notes": [_notes_on_rows(cls)]
        + [each["Notes"] for each in documented if each.get("Notes")][:1],
    }
    sections = {
        name: ("\n\n" if name == "Notes" else "\n").join(filter(None, parts))
        for name, parts in inherited.items()
    } | sections
    order = ["Parameters", "Attributes", "See Also", "Notes", "References", "Examples"]
    for name in filter(sections.get, order):
        text += f"\n\n{name}\n{'-' * len(name)}\n{sections[name]}"
    cls.__doc__ = indent(text, "    ").lstrip() + "\n    "
    return cls


def _in_order(taken: Signature, documented: list[str]) -> Signature:
    """Signature in the order of the documentation, where an entry may have several parameters."""
    rank, last = dict[str, int](), -1
    for name in taken.parameters:
        last = documented.index(name) if name in documented else last
        rank[name] = last
    in_order = sorted(taken.parameters.values(), key=lambda each: rank[each.name])
    return taken.replace(parameters=in_order)


def _notes_on_rows(cls: Any) -> str:
    """Paragraphs on what y holds, and on the arguments by row."""
    target = fill(f"``y`` holds {cls._y_holds}", 96) if getattr(cls, "_y_holds", "") else ""
    arguments = documentation(getattr(cls, "_row_arguments", ()))
    return "\n\n".join(filter(None, [target, arguments]))


def parameter_groups(cls: Any) -> dict[str, dict[str, str]]:
    """Documentation of the parameters by group and name, in the order of the fields."""
    sections = [_sections_of(base) for base in cls.__mro__]
    groups = {group: _entries(each.get(group, "") for each in sections) for group in _GROUPS}
    return {
        group: {each.name: entries[each.name] for each in fields(cls) if each.name in entries}
        for group, entries in groups.items()
    }


def _sections_of(base: Any) -> dict[str, str]:
    """Sections of a class's own docstring, even if the class is not an estimator."""
    if "_documented" in vars(base) or "__dataclass_fields__" not in vars(base):
        return vars(base).get("_documented", {})
    return split_sections(cleandoc(base.__doc__ or ""))[1]


def split_sections(doc: str) -> tuple[str, dict[str, str]]:
    """Text before the first section, and the text of each section by its name."""
    text, *rest = re.split(r"^([A-Z][\w ]+)\n-{3,}\n", doc, flags=re.MULTILINE)
    return text.strip(), dict(zip(rest[::2], map(str.strip, rest[1::2]), strict=True))


def _entries(sections: Iterable[str]) -> dict[str, str]:
    """Entries of sections by the first name in each; of two with the same name the first counts."""
    entries: dict[str, str] = {}
    for entry in (e for section in sections for e in re.split(r"\n(?=\S)", section) if e):
        entries.setdefault(re.split(r"[ ,:]", entry, maxsplit=1)[0], entry)
    return entries

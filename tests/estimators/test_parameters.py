"""Parameters are fields, and documented where they are declared."""

import re
from inspect import cleandoc, signature

import pytest

import skbayes_sgld
from skbayes_sgld.estimators.parameters import parameter_groups, parameters
from tests.inputs.good import NAMES


def names(doc, section):
    """Names documented in a section, in order."""
    _, *rest = re.split(r"^([A-Z][\w ]+)\n-{3,}\n", cleandoc(doc), flags=re.MULTILINE)
    entries = dict(zip(rest[::2], rest[1::2], strict=True))[section]
    heads = [line.partition(" :")[0] for line in entries.splitlines() if re.match(r"\w", line)]
    return [name for head in heads for name in head.split(", ")]


@pytest.mark.parametrize("name", NAMES)
def test_every_parameter_is_documented_once_with_its_default_in_one_group(name):
    cls = getattr(skbayes_sgld, name)
    known, found, groups = signature(cls).parameters, [], parameter_groups(cls)
    assert names(cls.__doc__, "Parameters") == list(known)
    for entry in (entry for group in groups.values() for entry in group.values()):
        head, _, default = entry.partition("\n")[0].partition(", default=")
        for parameter in head.partition(" :")[0].split(", "):
            actual = known[parameter].default
            assert default == (f'"{actual}"' if isinstance(actual, str) else repr(actual))
            found.append(parameter)
    assert sorted(found) == sorted(known)
    assert "prior" in groups["Parameters"] and "random_state" in groups["Run"]
    assert "step_size" in groups["Sampler"] | groups["Optimizer"]


@pytest.mark.parametrize("name", NAMES)
def test_every_documented_attribute_is_documented_once(name):
    found = names(getattr(skbayes_sgld, name).__doc__, "Attributes")
    assert len(set(found)) == len(found) > 5
    assert {"posterior_", "n_features_in_"} <= set(found)


def test_a_subclass_redefines_what_it_documents_anew_and_inherits_the_rest():
    @parameters
    class Base:
        """A base.

        Parameters
        ----------
        a : int
            First.
        b : int
            Second.

        Notes
        -----
        Of the base.
        """

        a: int = 1
        b: int = 2

    @parameters
    class Sub(Base):
        """A subclass.

        Parameters
        ----------
        b : float
            Another.

        Examples
        --------
        None.
        """

        b: float = 3.0
        c: int = 4

    assert list(signature(Sub).parameters) == ["a", "b", "c"]
    doc = cleandoc(Sub.__doc__)
    assert doc.index("a : int\n    First.\nb : float\n    Another.\n") > doc.index("Parameters")
    assert "Second" not in doc and doc.index("Of the base.") < doc.index("Examples")

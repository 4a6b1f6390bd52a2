"""`skbayes_sgld.sampling` exports what users compose, all of it and nothing else."""

from skbayes_sgld import sampling
from skbayes_sgld._components import Component, Registry

EXPORTED = {name: getattr(sampling, name) for name in sampling.__all__}
REGISTRIES = {name: value for name, value in EXPORTED.items() if isinstance(value, Registry)}


def test_machinery_is_imported_from_its_own_module():
    others = {
        name
        for name, value in EXPORTED.items()
        if name not in REGISTRIES and not (isinstance(value, type) and issubclass(value, Component))
    }
    assert others == {"ChainOverflowError", "NoModeError"}


def test_every_member_of_a_registry_is_exported():
    members = {member for registry in REGISTRIES.values() for member in registry.values()}
    assert members <= {value for value in EXPORTED.values() if isinstance(value, type)}
    assert len(REGISTRIES) == 5

"""Imports only point down: what each layer may know of the others, read from the source."""

import ast
import sys
from functools import cache
from pathlib import Path

import pytest

import skbayes_sgld
from tests.fresh import imports

PACKAGE = "skbayes_sgld"
ROOT = Path(skbayes_sgld.__file__).parent
OPTIONAL = {
    *("arviz", "arviz_base", "dask", "distributed", "jax", "matplotlib", "pyarrow", "tqdm"),
    "xarray",
}
ARRAYS = {"numpy", "scipy", "pandas", "arviz_stats"}

# Layers that each layer below the public estimators may import, and modules _x that each module _x
# may import. Every layer may import every module _x.
_MODEL = {"likelihoods", "posterior", "priors", "transforms"}
BELOW_LAYER = {
    "rows": _MODEL,
    "blocks": {*_MODEL, "rows", "sampling"},
    "datasets": set(),
    "diagnostics": set(),
    "transforms": set(),
    "likelihoods": {"transforms"},
    "priors": {"likelihoods"},
    "posterior": _MODEL - {"posterior"},
    "sampling": {"posterior"},
    "own_models": {*_MODEL, "inference", "sampling"},
    "wide_rows": {*_MODEL, "inference", "sampling"},
    "mixed": {
        *(*_MODEL, "blocks", "diagnostics", "inference", "prediction", "rows", "sampling"),
    },
    "kernels": {"optimizers", "own_models", "posterior", "sampling"},
    "variational": {*_MODEL, "optimizers", "own_models", "sampling"},
    "checkpoints": {"inference", "sampling"},
    "prediction": {*_MODEL, "diagnostics"},
    "criticism": {*_MODEL, "blocks", "diagnostics", "prediction", "rows"},
    "metrics": {"blocks", "criticism", "diagnostics", "prediction", "rows"},
    "plotting": {"criticism", "diagnostics", "metrics", "prediction", "rows"},
    "arviz": {"inference", "posterior", "prediction", "transforms"},
    "inference": {*_MODEL, "diagnostics", "sampling"},
    "estimators": {
        *(*_MODEL, "blocks", "criticism", "diagnostics", "inference", "prediction"),
        *("rows", "sampling", "variational"),
    },
}
# Annexes, by the modules that each consists of. The core imports none of them: it opens what it
# needs by a door, where a fact of a posterior, a setting or an argument asks for it. Taking one out
# leaves the core's tests green (`python -m tests.maintainer.annexes`).
ANNEXES = {
    "rows out of memory": ["blocks"],
    "modes by stochastic gradients": ["optimizers"],
    "loops of a user's own": ["kernels"],
    "networks": ["neural_network"],
    "variational inference": ["variational", "neural_network"],
    "users' own models": ["own_models", "kernels"],
    "wide rows": ["wide_rows"],
    "criticism": ["criticism", "metrics", "plotting"],
    "metrics": ["metrics", "plotting"],
    "plotting": ["plotting"],
    "checkpoints": ["checkpoints"],
    "data sets": ["datasets"],
    "ArviZ": ["arviz"],
    "mixed models": ["mixed"],
}
BELOW_MODULE = {
    "_linalg": {"_random", "_sparse"},
    "_numpy_errors": {"_linalg"},
    "_warnings": {"_checks"},
}


def find_modules():
    """Path of every module of the package by its full name."""
    found = {}
    for path in sorted(ROOT.rglob("*.py")):
        parts = path.relative_to(ROOT.parent).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imported(nodes, module, is_package=False):
    """Full names of all that is imported by some nodes, relative ones resolved."""
    names = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = []
            if node.level:
                parents = module.split(".")
                base = parents[: len(parents) + is_package - node.level]
            base += [node.module] if node.module else []
            names |= {".".join([*base, alias.name]) for alias in node.names}
    return names


def run_on_import(node):
    """Statements below a node but those that run later (functions) or never (``TYPE_CHECKING``)."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return
    never = isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
    for child in node.orelse if never else ast.iter_child_nodes(node):
        if isinstance(child, ast.stmt | ast.ExceptHandler | ast.match_case):
            yield child
            yield from run_on_import(child)


def library(name):
    return name.partition(".")[0]


def layer(module):
    """Part of a module's name below the package's own."""
    return (module.split(".") + [""])[1]


def module_of(name):
    """Module of the package that a full name is, or is in."""
    while name and name not in MODULES:
        name = name.rpartition(".")[0]
    return name


MODULES = find_modules()


@cache
def all_imports():
    """Full names of all that each module imports, and of what it imports on its own import.

    Found where a test asks, as it takes half a second. Trees are not kept: searches for garbage
    would go through them in all later tests.
    """
    found = {}
    for name, path in MODULES.items():
        tree, is_package = ast.parse(path.read_text()), path.name == "__init__.py"
        found[name] = [imported(walk(tree), name, is_package) for walk in (ast.walk, run_on_import)]
    return found


def imports_of(on_import=False):
    """Full names of all that each module imports, or imports on its own import."""
    return {name: each[on_import] for name, each in all_imports().items()}


@cache
def below():
    """Other modules of the package that each imports."""
    return {
        name: {module_of(other) for other in others if library(other) == PACKAGE} - {name}
        for name, others in imports_of().items()
    }


@pytest.mark.parametrize(
    ("code", "module", "is_package", "expected"),
    [
        ("import a.b", "p.q", False, "a.b"),
        ("from a import b", "p.q", False, "a.b"),
        ("from . import b", "p.q.r", False, "p.q.b"),
        ("from .s import b", "p.q", True, "p.q.s.b"),
        ("from ..s import b", "p.q.r", False, "p.s.b"),
        ("from ... import s", "p.q.r", True, "p.s"),
        ("def f():\n    if x:\n        from ..s import b", "p.q.r", False, "p.s.b"),
    ],
)
def test_the_walk_sees_imports_of_every_kind(code, module, is_package, expected):
    assert imported(ast.walk(ast.parse(code)), module, is_package) == {expected}


def test_the_walk_tells_what_runs_on_import():
    code = "if TYPE_CHECKING:\n    import a\nelse:\n    import b\ndef f():\n    import c\n"
    code += "try:\n    import d\nexcept ImportError:\n    pass\nclass C:\n    import e\n"
    assert imported(run_on_import(ast.parse(code)), "p.q") == {"b", "d", "e"}


def test_the_walk_covers_every_layer():
    assert set(BELOW_LAYER) | set(BELOW_MODULE) <= {layer(name) for name in MODULES}
    assert any(layer(other) == "linear_model" for other in below()[PACKAGE])
    users = {layer(name) for name in MODULES if f"{PACKAGE}._linalg" in below()[name]}
    assert {"posterior", "sampling"} <= users  # or the walk is blind


def test_a_layer_imports_only_what_lies_below_it():
    wrong = {}
    for name in MODULES:
        own = layer(name)
        others = {layer(other) for other in below()[name]} - {own}
        if own in BELOW_LAYER:
            others = {other for other in others if not other.startswith("_")} - BELOW_LAYER[own]
        elif own.startswith("_"):
            others -= BELOW_MODULE.get(own, set()) | {"_typing"}
        else:
            others = set()
        if others:
            wrong[name] = others
    assert wrong == {}


def annexes_of(module):
    """Annexes that a module belongs to."""
    own = module.removeprefix(f"{PACKAGE}.")
    return {
        name
        for name, parts in ANNEXES.items()
        if any(own == part or own.startswith(f"{part}.") for part in parts)
    }


def test_the_core_imports_no_annex():
    core = [name for name in MODULES if name != PACKAGE and not annexes_of(name)]
    wrong = {name: {other for other in below()[name] if annexes_of(other)} for name in core}
    assert {name: others for name, others in wrong.items() if others} == {}
    assert len(core) > 100


def test_algorithms_know_posteriors_by_their_protocol_alone():
    known = {
        (name, other)
        for name in MODULES
        for other in below()[name]
        if layer(name) == "sampling" and layer(other) == "posterior"
    }
    protocol = ("protocol", "base", "facts", "boundary", "whitening")
    allowed = {f"{PACKAGE}.posterior.{module}" for module in protocol}
    assert {pair for pair in known if pair[1] not in allowed} == set()


def test_the_estimators_are_imported_by_the_package_alone():
    # the names of the package itself are the estimators
    estimators = {PACKAGE, f"{PACKAGE}.linear_model", f"{PACKAGE}.neural_network"}
    found = {name: estimators & below()[name] for name in MODULES if name != PACKAGE}
    assert {name: above for name, above in found.items() if above} == {}


def test_no_module_imports_itself_through_others():
    reached, before = below(), None
    while reached != before:
        before = reached
        reached = {n: some.union(*(below()[m] for m in some)) for n, some in reached.items()}
    assert [name for name in MODULES if name in reached[name]] == []


def test_diagnostics_know_arrays_only():
    libraries = {library(other) for other in imports_of()[f"{PACKAGE}.diagnostics"]}
    assert libraries - set(sys.stdlib_module_names) <= ARRAYS | {PACKAGE}


def test_optional_libraries_are_imported_only_where_they_are_used():
    found = {}
    for name, others in imports_of(on_import=True).items():
        found[name] = {library(other) for other in others} & OPTIONAL
    assert {name: others for name, others in found.items() if others} == {}


def test_importing_the_package_loads_no_optional_library():
    found = set(imports()["all loaded"])
    assert set(MODULES) <= found | {PACKAGE}
    assert found & OPTIONAL == set()


def test_importing_the_package_does_not_take_scikit_learns_wrappers_along():
    found = imports()["loaded"]
    assert "skbayes_sgld.prediction.wrappers" in found
    assert {"sklearn.pipeline", "sklearn.compose"} & set(found) == set()


def test_every_public_module_is_there_after_importing_the_package():
    modules = imports()["public"]
    assert {"datasets", "metrics", "plotting", "priors"} <= set(modules) <= set(dir(skbayes_sgld))
    assert "skbayes_sgld.plotting" not in imports()["loaded"]

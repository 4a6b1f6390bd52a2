"""Draws of parameters for xarray and ArviZ: variables with named dimensions, in groups.

The groups and their names are those of ArviZ's schema. ArviZ before 1.0 keeps them in an
``InferenceData``, later releases in an ``xarray.DataTree``; the data sets within are the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from itertools import combinations, product
from math import prod
from typing import Any

import numpy as np

from skbayes_sgld.inference.choices import shown
from skbayes_sgld.posterior.base import Array, BasePosterior
from skbayes_sgld.transforms import by_name

Coords = Mapping[str, Sequence[Any]]
Draws = Any  # PosteriorDraws of inference/result.py, which opens the door to this module

DRAWS = ("chain", "draw")
ROWS = "obs_id"


def to_xarray(draws: Draws) -> Any:
    """Data set of the draws ``(chain, draw, parameter)``, one variable for each shared name.

    The parameters ``coef[age]``, ``coef[bmi]``, ... become one variable ``coef``, whose dimension
    is that of ``coords`` with these labels, or several of them. Where ``variables`` says so they
    become several variables.
    """
    values, names, coords = draws.values, draws.names, draws.coords
    settings = {name: shown(choice.value) for name, choice in draws.choices.items()}
    data, data_coords = {}, draw_coords(values.shape)
    for variable, columns in by_name(names).items():
        if variable in draws.variables:
            each = _split(draws.variables[variable], columns, coords)
        else:
            labels = [names[k].partition("[")[2].removesuffix("]") for k in columns]
            each = [(variable, columns, _dimensions(variable, labels, coords))]
        for name, some, dims in each:
            shape = *values.shape[:2], *(len(labels) for labels in dims.values())
            data[name] = (*DRAWS, *dims), values[..., some].reshape(shape)
            data_coords |= dims
    return dataset(data, data_coords, settings)


def _split(
    variables: Mapping[str, Sequence[str]], columns: Sequence[int], coords: Coords
) -> list[tuple[str, Sequence[int], dict[str, Any]]]:
    """Variables with the positions of their parameters, which follow each other in columns."""
    found, first = [], 0
    for name, at in variables.items():
        dims = {dim: list(coords[dim]) for dim in at}
        size = prod(len(labels) for labels in dims.values())
        found.append((name, columns[first : first + size], dims))
        first += size
    return found


def _dimensions(variable: str, labels: list[str], coords: Coords) -> dict[str, Any]:
    """Dimensions of a variable, with their labels; a new one if none of ``coords`` fits."""
    if labels == [""]:
        return {}
    for size in range(1, len(coords) + 1):
        for dims in combinations(coords, size):
            if prod(len(coords[dim]) for dim in dims) != len(labels):
                continue
            each = product(*(map(str, coords[dim]) for dim in dims))
            if labels == [", ".join(label) for label in each]:
                return {dim: list(coords[dim]) for dim in dims}
    numbered = labels == [str(k) for k in range(len(labels))]
    return {f"{variable}_dim_0": range(len(labels)) if numbered else labels}


def to_arviz(result: Draws) -> Any:
    """Draws of a run, and the statistics of the run, as an ArviZ object."""
    return as_arviz({"posterior": to_xarray(result), "sample_stats": sample_stats(result)})


def sample_stats(result: Draws) -> Any:
    """Data set of the statistics of a run for each draw ``(chain, draw)``."""
    plan, shape = result.plan, result.values.shape[:2]
    figures = {
        "lp": log_densities(plan.posterior, result.theta) if plan.has_data else None,
        "step_size": result._step_sizes,
        "acceptance_rate": 1.0 if result.acceptance is None else result.acceptance,
        "weight": result.weights,
    }
    data = {
        name: (DRAWS, np.broadcast_to(np.asarray(values, dtype=float), shape))
        for name, values in figures.items()
        if values is not None
    }
    return dataset(data, draw_coords(shape))


def log_densities(posterior: BasePosterior, theta: Array) -> Array:
    """Log posterior density of the draws ``theta (C, S, P)``, up to a constant ``(C, S)``."""
    flat = theta.reshape(-1, theta.shape[2])
    size = max(32, 2**16 // max(posterior.n_samples, 1))  # draws to compute at a time
    parts = [posterior.log_density(flat[k : k + size]) for k in range(0, len(flat), size)]
    return np.concatenate(parts).reshape(theta.shape[:2])


_OFDRAWS = "posterior", "sample_stats"
_OBSERVED = "posterior_predictive", "log_likelihood", "observed_data", "constant_data"
_PREDICTED = "predictions", "predictions_constant_data"
BY_ROW_AND_DRAW = {"posterior_predictive", "log_likelihood", "predictions"}
"""Groups with a number for every row and draw."""


def wanted_groups(only: Any, rows: bool, observed: bool) -> Sequence[str]:
    """Names of the groups to make; None is all of them.

    Parameters
    ----------
    only : object
        Value of the user's argument.
    rows, observed : bool
        Whether X and y are given.
    """
    names = (*_OFDRAWS, *_OBSERVED, *_PREDICTED)
    made = _OFDRAWS + (() if not rows else _OBSERVED if observed else _PREDICTED)
    if only is None:
        return made
    if isinstance(only, str) or not isinstance(only, Iterable):
        raise TypeError(
            f"only={only!r} is not accepted; give a list of names, such as ['posterior', "
            "'log_likelihood'], or None for all."
        )
    selection = list(only)
    unknown = [name for name in selection if name not in names]
    if unknown or not selection:
        what = f"has {unknown[0]!r}, which is not known" if unknown else "is empty"
        raise ValueError(f"only={only!r} {what}; choose among {', '.join(map(repr, names))}.")
    for name in selection:
        if name not in made:
            needs = "X and y" if name in _OBSERVED else "X without y"
            raise ValueError(f"only={only!r} has {name!r}, which needs {needs}.")
    return selection


def join_outputs(parts: Sequence[dict[str, Any]], names: Sequence[str]) -> dict[str, Any]:
    """Groups of several outputs as one each, with a dimension ``"output"``."""
    xarray = _xarray()
    output = xarray.DataArray(np.array(names), dims="output", name="output")
    joined = {}
    for group in list(parts[0]):
        each = [part.pop(group) for part in parts]  # so that its memory is freed once it is joined
        if group.endswith("constant_data"):
            joined[group] = each[0]
            continue
        data = xarray.concat(
            each, output, data_vars="all", coords="minimal", compat="override", join="override"
        )
        joined[group] = data.transpose(*DRAWS, ROWS, "output", ..., missing_dims="ignore")
    return joined


def as_arviz(groups: Mapping[str, Any]) -> Any:
    """Groups of data sets in the type of the installed ArviZ: InferenceData, or DataTree."""
    groups = {name: group for name, group in groups.items() if group.data_vars}
    try:
        inference_data = int(version("arviz").partition(".")[0]) < 1
    except PackageNotFoundError:  # arviz-base and the packages around it take trees
        inference_data = False
    if inference_data:
        from arviz import InferenceData

        return InferenceData(**groups)
    return _xarray().DataTree.from_dict(groups)


def draw_coords(shape: tuple[int, ...]) -> dict[str, Any]:
    """Coordinates of chains and draws, the first two axes of a shape."""
    return {name: np.arange(size) for name, size in zip(DRAWS, shape[:2], strict=True)}


def dataset(
    data: Mapping[str, Any], coords: Mapping[str, Any], settings: Mapping[str, str] | None = None
) -> Any:
    """Data set of variables by name; its attributes hold the library and the settings."""
    library = {
        "inference_library": "skbayes-sgld",
        "inference_library_version": version("skbayes-sgld"),
    }
    return _xarray().Dataset(data, coords, library | dict(settings or {}))


def _xarray() -> Any:
    try:
        import xarray
    except ImportError as error:
        raise ImportError(
            'Draws for ArviZ and xarray need both: pip install "skbayes-sgld[arviz]"'
        ) from error
    return xarray

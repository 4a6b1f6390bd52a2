"""Settings that a remedy may change: those that a model takes and does not have yet."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def has_setting(model: Any, name: str, value: Any) -> bool:
    """Whether a setting of the model equals the value, or the component that the value names."""
    registry, current = model._registry(name), getattr(model, name)
    if registry is None or not isinstance(value, str) or isinstance(current, Mapping):
        return bool(current is value or repr(current) == repr(value))
    if name == "prior" and isinstance(current, str) and current == "auto":
        return bool(model.posterior_.choices[name].value == value)
    return repr(model._resolve(name)) == repr(registry[value]())


def can_set(model: Any, name: str, value: Any) -> bool:
    """Whether the model, with the rows of its fit, takes a setting and has another value."""
    if name == "noise_distribution" and "n_averaged" in model._arguments_of_fit:
        return False  # not for averages
    if name == "noise_distribution" and _has_wide_terms(model):
        return False  # a trial takes half a minute
    if name == "noise_model" and model._is_mixed:
        return False  # effects of groups, and curves, are of models with one noise variance
    return name in model._get_param_names() and not has_setting(model, name, value)


def _has_wide_terms(model: Any) -> bool:
    """Whether the labels of a term have more than two effects each, such as several slopes."""
    terms = model._fitted.mixed.terms if model._is_mixed else ()
    return any(term.by_label and len(term.effects) > 2 for term in terms)


def variance_is_given(model: Any) -> bool:
    """Whether the user gave the variance of the noise, so that it is not inferred."""
    return not isinstance(getattr(model, "noise_variance", "infer"), str)


def takes_effects(model: Any) -> bool:
    """Whether ``group_effects`` and ``smooth_effects`` can be set.

    The errors of what they do not go with are in ``mixed/bind.py`` and
    ``mixed/parameterization.py``.
    """
    given = model.get_params(deep=False)
    if "smooth_effects" not in given:
        return False
    settings, prior = model._settings(), model.prior_
    known = given["prior"] == "auto" or not (prior.hierarchical or prior.scaled_by_noise)
    return (
        known
        and settings.tau == 1.0
        and settings.may_take_all_rows
        and given.get("noise_model", "constant") == "constant"
        and model._fitted.target.likelihood.n_predictors == 1
    )


def advice(model: Any, **wanted: Any) -> str:
    """``; set ...`` for the settings that the model takes and does not have; "" if none.

    A given variance is among them, as other noise needs an inferred one.
    """
    left = {name: value for name, value in wanted.items() if can_set(model, name, value)}
    if left and variance_is_given(model) and any(name.startswith("noise_") for name in left):
        left = {"noise_variance": "infer", **left}
    listed = " and ".join(f"{name}={value!r}" for name, value in left.items())
    return f"; set {listed}" if left else ""

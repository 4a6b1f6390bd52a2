"""Settings are written once: estimators, ``sample`` and a run have the same ones."""

import copy
import pickle
from dataclasses import fields
from inspect import signature

import numpy as np
import pytest

import skbayes_sgld
from skbayes_sgld import SGLDLinearRegression
from skbayes_sgld.estimators.parameters import parameter_groups
from skbayes_sgld.inference.setting_checks import AUTO
from skbayes_sgld.inference.settings import RunSettings, Settings, registries
from tests.references.targets import Density

NORMAL = Density(lambda x: -0.5 * np.square(x).sum(axis=1), lambda x: -x, n_params=2)
NAMES = [each.name for each in fields(RunSettings)]


def test_every_setting_is_a_parameter_of_estimators_an_argument_of_sample_and_documented():
    taken, params = signature(skbayes_sgld.sample).parameters, SGLDLinearRegression().get_params()
    groups = parameter_groups(SGLDLinearRegression)
    documented = groups["Sampler"] | groups["Run"]
    for each in fields(RunSettings):
        assert taken[each.name].default == params[each.name] == each.default
        assert documented[each.name].startswith(f"{each.name} : ")
        assert each.name in skbayes_sgld.sample.__doc__
    assert set(taken) == {"posterior", "check_gradient", *NAMES}


def test_defaults_are_accepted_by_their_own_checks_and_what_the_owner_lacks_has_them():
    plain = Settings.of(object())
    given = Settings.of(SGLDLinearRegression())
    for name in NAMES:
        assert repr(getattr(plain, name)) == repr(getattr(given, name))
    assert plain.left_to_tuning and plain.tau == 1.0


def test_what_is_left_to_the_plan_is_auto_and_nothing_else_is():
    left = {each.name for each in fields(RunSettings) if each.default == "auto"}
    plain = Settings.of(object())
    assert {name for name in NAMES if getattr(plain, name) is AUTO} == left
    assert {"sampler", "preconditioner", "batch_size", "init", "thin"} <= left
    given = {"sampler": "hmc", "preconditioner": None, "batch_size": 5, "init": "zeros", "thin": 2}
    chosen = Settings.of(SGLDLinearRegression(**given))
    assert not any(getattr(chosen, name) in (AUTO, None) for name in given)
    assert copy.deepcopy(plain).sampler is pickle.loads(pickle.dumps(plain)).sampler is AUTO


@pytest.mark.parametrize("name", NAMES)
def test_a_setting_refuses_an_object_by_its_own_name(name):
    refused = "no such" if name == "preconditioner" else object()
    for call in (
        lambda: Settings.of(SGLDLinearRegression(**{name: refused})),
        lambda: skbayes_sgld.sample(NORMAL, **{name: refused}),
    ):
        with pytest.raises((TypeError, ValueError), match=name):
            call()


def test_components_have_their_registries():
    assert set(registries()) == {
        *("sampler", "schedule", "temperature", "gradient", "preconditioner", "clip"),
    }
    nested = SGLDLinearRegression(sampler="hmc").set_params(sampler__path_length=1.0)
    assert nested.sampler.path_length == 1.0


def test_a_setting_that_does_not_exist_is_refused_with_those_that_do():
    with pytest.raises(TypeError, match="unexpected keyword argument 'n_drws'; it takes .*n_draws"):
        skbayes_sgld.sample(NORMAL, n_drws=3)
    with pytest.raises(TypeError, match="unexpected keyword argument 'warm_start'"):
        skbayes_sgld.sample(NORMAL, warm_start=True)


@pytest.mark.parametrize(
    ("given", "allowed"),
    [
        ({}, True),
        ({"max_time": 5.0}, False),  # a run in parts
        ({"init": np.zeros((4, 2))}, False),  # a start of each chain
        ({"step_size": 0.1, "schedule": "harmonic"}, False),
        ({"temperature": 2.0}, True),
    ],
)
def test_walkers_share_a_chain_that_is_stationary_and_runs_in_one(given, allowed):
    assert Settings.of(SGLDLinearRegression(**given)).allows_walkers is allowed

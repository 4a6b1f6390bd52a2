"""The list of parameterizations: each says by itself which models it is for."""

import numpy as np
import pytest

from skbayes_sgld._doors import Door
from skbayes_sgld.inference.parameterizations import PARAMETERIZATIONS
from skbayes_sgld.likelihoods import Bernoulli, NormalNoise
from skbayes_sgld.posterior import GLMPosterior, HierarchicalPosterior, LogLinearNoise
from skbayes_sgld.priors import HierarchicalNormal, Normal

RNG = np.random.default_rng(0)
X = RNG.standard_normal((20, 3))
Y = {Bernoulli: np.arange(20) % 2.0, NormalNoise: RNG.standard_normal(20)}


def plain(likelihood):
    return GLMPosterior(X, Y[type(likelihood)], likelihood, Normal())


def learned(likelihood):
    return HierarchicalPosterior(plain(likelihood), HierarchicalNormal())


MODELS = {
    "LearnedScales": [learned(NormalNoise()), learned(Bernoulli())],
    "UnequalNoise": [LogLinearNoise().bind(X, Y[NormalNoise], NormalNoise(), Normal(), None)],
    "Noncentered": [plain(NormalNoise())],
}


@pytest.mark.parametrize("kind", MODELS)
def test_one_parameterization_of_a_name_suits_a_model_wherever_it_stands(kind):
    for model in MODELS[kind]:
        offered = model.facts.parameterizations
        assert "noncentered" in offered
        entries = [entry for name, entry in PARAMETERIZATIONS if name == "noncentered"]
        assert [entry.__name__ for entry in entries if entry.suits(model)] == [kind]


def test_every_parameterization_says_what_it_needs():
    for _, entry in PARAMETERIZATIONS:
        kind = entry.open() if isinstance(entry, Door) else entry
        assert kind.needs and kind.__doc__

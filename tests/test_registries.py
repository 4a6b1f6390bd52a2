"""The registries are complete as soon as the package is imported, and their tests can fail.

A new member is registered in its family's ``__init__`` and is tested by the family's check
without any test being edited; here wrong members are planted to see that each check bites.
"""

import importlib
import inspect
import pkgutil
from copy import copy
from dataclasses import dataclass

import numpy as np
import pytest
from scipy import stats

import skbayes_sgld
from skbayes_sgld import (
    likelihoods,
    optimizers,
    posterior,
    priors,
    sampling,
    transforms,
    variational,
)
from skbayes_sgld.likelihoods.given_own import GivenOwn
from skbayes_sgld.priors.by_column import ByColumn, LearnedByColumn
from skbayes_sgld.priors.hierarchical import SideBySide
from skbayes_sgld.sampling.gradients.minibatch import MinibatchGradient
from skbayes_sgld.sampling.metric import Diagonal
from skbayes_sgld.sampling.samplers.direct import Direct
from skbayes_sgld.sampling.samplers.jumping import JumpingHMC
from skbayes_sgld.sampling.samplers.split_hmc import SplitHMC
from skbayes_sgld.wide_rows.collapsed_hmc import CollapsedHMC
from tests.fresh import imports
from tests.likelihoods.tails import check_gains
from tests.likelihoods.test_registry import check_likelihood
from tests.marks import slow
from tests.optimizers.test_projections import check_projection
from tests.optimizers.test_registry import check_optimizer
from tests.posterior.test_hierarchical import check_hierarchical_prior
from tests.posterior.test_log_linear_noise import check_noise_model
from tests.priors.test_group_registry import check_group_prior
from tests.priors.test_noise_registry import check_noise_prior
from tests.priors.test_registry import check_prior
from tests.sampling.gradients.test_registry import check_gradient
from tests.sampling.preconditioners.test_registry import check_preconditioner
from tests.sampling.samplers.test_registry import check_sampler
from tests.sampling.test_clip_registry import check_clip
from tests.sampling.test_schedules import check_schedule
from tests.test_transforms import check_transform

REGISTRIES = {
    "LIKELIHOODS": likelihoods.LIKELIHOODS,
    "PRIORS": priors.PRIORS,
    "HIERARCHICAL_PRIORS": priors.HIERARCHICAL_PRIORS,
    "GROUP_PRIORS": priors.GROUP_PRIORS,
    "NOISE_MODELS": posterior.NOISE_MODELS,
    "NOISE_PRIORS": priors.NOISE_PRIORS,
    "TRANSFORMS": transforms.TRANSFORMS,
    "CLIPS": sampling.CLIPS,
    "GRADIENTS": sampling.GRADIENTS,
    "OPTIMIZERS": optimizers.OPTIMIZERS,
    "PRECONDITIONERS": sampling.PRECONDITIONERS,
    "PROJECTIONS": optimizers.PROJECTIONS,
    "SAMPLERS": sampling.SAMPLERS,
    "SCHEDULES": sampling.SCHEDULES,
    "FAMILIES": variational.FAMILIES,
}
CHECKS = {
    "LIKELIHOODS": check_likelihood,
    "PRIORS": check_prior,
    "HIERARCHICAL_PRIORS": check_hierarchical_prior,
    "GROUP_PRIORS": check_group_prior,
    "NOISE_MODELS": check_noise_model,
    "NOISE_PRIORS": check_noise_prior,
    "TRANSFORMS": check_transform,
    "CLIPS": check_clip,
    "GRADIENTS": check_gradient,
    "OPTIMIZERS": check_optimizer,
    "PRECONDITIONERS": check_preconditioner,
    "PROJECTIONS": check_projection,
    "SAMPLERS": check_sampler,
    "SCHEDULES": check_schedule,
}
NAMELESS = {
    sampling.Matrix: "an array stands for it",
    ByColumn: "a dict of priors stands for it",
    LearnedByColumn: "a dict of priors stands for it",
    SideBySide: "it is of columns that are given several such priors",
    GivenOwn: "it is another likelihood whose own parameters are known",
    CollapsedHMC: "it needs a posterior that the automatic settings find",
    Direct: "it needs quantiles that the automatic settings find",
    JumpingHMC: "it needs modes that the automatic settings find",
    SplitHMC: "it needs steep rows that the automatic settings find",
}

every_registry = pytest.mark.parametrize("registry", REGISTRIES.values(), ids=REGISTRIES)


def all_modules():
    found = pkgutil.walk_packages(skbayes_sgld.__path__, "skbayes_sgld.")
    return [importlib.import_module(module.name) for module in found]


def concrete(family):
    """Classes of a family's own package that nothing is derived from."""
    package = family.__module__.rpartition(".")[0]
    leaves, seen = set(), [family]
    while seen:
        cls = seen.pop()
        below = [sub for sub in cls.__subclasses__() if sub.__module__.startswith(package)]
        seen += below
        if not below:
            leaves.add(cls)
    return {cls for cls in leaves if not cls.__name__.startswith("_")}


@every_registry
def test_every_public_member_of_a_family_has_a_name(registry):
    all_modules()
    missing = concrete(registry.family) - set(registry.values()) - set(NAMELESS)
    assert missing == set()


@every_registry
def test_a_name_gives_a_documented_member_of_the_family(registry):
    for name, cls in registry.items():
        assert name == name.lower()
        assert issubclass(cls, registry.family)
        cls().check()
        assert cls is registry.family or inspect.getdoc(cls) != inspect.getdoc(registry.family)


def test_no_later_import_adds_to_a_registry():
    found = imports()
    first, last = ({i: names for i, *names in found[k]} for k in ("registries", "all registries"))
    assert first == {i: names for i, names in last.items() if i in first}
    assert len(first) > 5
    assert len(last) == len(REGISTRIES)


# ---- wrong members, each of which its family's check must catch -------------------------------


@dataclass(eq=False, repr=False)
class Negative(sampling.Schedule):
    """
    >>> 1
    1
    """

    def __call__(self, t):
        return -np.ones_like(t, dtype=float)


class WrongDecay(sampling.Harmonic):
    decay_power = 0.9


class NeverSettles(sampling.FlatDecayFlat):
    settles_at = 5.0


class WrongVariance(likelihoods.Poisson):
    def variance(self, u):
        return 1.01 * super().variance(u)


class WrongRatios(likelihoods.NegativeBinomial):
    def ratios(self, u):
        return lambda k, rows: super(WrongRatios, self).ratios(u)(k + 1.0, rows)


class WrongScore(likelihoods.FixedNormalNoise):
    def score(self, u, y):
        return super().score(u, y) + 1e-6


class OwnScoreAlone(likelihoods.Bernoulli):
    """A score that no fit calls, since the kernel has its own."""

    def score(self, u, y):
        return 2.0 * super().score(u, y)


def scaled(kernel, factor, dtype=None):
    """Kernel whose score is wrong by a factor, in one precision or in both."""

    class Scaled(kernel):
        def derivatives(self, u, *orders):
            found = list(super().derivatives(u, *orders))
            if 1 in orders and 2 not in orders:
                found[-1] = found[-1] * u.dtype.type(factor if dtype in (None, u.dtype) else 1.0)
            return found

    return Scaled


class WrongKernel(likelihoods.Bernoulli):
    kernel = scaled(likelihoods.Bernoulli.kernel, 1.001)


class WrongKernelInFloat32(likelihoods.Poisson):
    kernel = scaled(likelihoods.Poisson.kernel, 1.001, np.float32)


class WrongRowCurvature(likelihoods.Bernoulli):
    class kernel(likelihoods.Bernoulli.kernel):
        def derivatives(self, u, *orders):
            found = list(super().derivatives(u, *orders))
            return [*found[:-1], found[-1] * (1.001 if 2 in orders else 1.0)]


class WrongBatches(likelihoods.Bernoulli):
    """Scores of gathered rows, which each chain has of its own, are those of other labels."""

    class kernel(likelihoods.Bernoulli.kernel):
        def derivatives(self, u, *orders):
            found, batch = super().derivatives(u, *orders), self.y.ndim > 2 and len(self.y) > 1
            return [each * (1.001 if batch and orders == (1,) else 1.0) for each in found]


class WrongFarOut(likelihoods.NegativeBinomial):
    """A score that is wrong where the dispersion is above 20."""

    kernel = likelihoods.Likelihood.kernel

    def log_density(self, u, y):
        return likelihoods.NegativeBinomial().log_density(u, y)

    def curvature(self, u, y):
        return likelihoods.NegativeBinomial().curvature(u, y)

    def score(self, u, y):
        return likelihoods.NegativeBinomial().score(u, y) + 1e-3 * (u[:, 1:] > 3.0)


class OthersGenerator(likelihoods.Poisson):
    def sample(self, u, rng):
        return np.random.RandomState().poisson(np.exp(u[:, 0]))


class SharedDraws(likelihoods.NormalNoise):
    """One draw for all rows of u."""

    def sample(self, u, rng):
        normal = rng.standard_normal(u.shape[2])
        return u[:, 0] + np.exp(0.5 * u[:, 1]) * normal


class Refuses(likelihoods.Poisson):
    """Refuses ones, which it draws."""

    def check_target(self, y):
        if np.any(y == 1.0):
            raise ValueError("y has the value 1.")
        return super().check_target(y)


class TakesAll(likelihoods.Poisson):
    def check_target(self, y):
        return np.asarray(y, dtype=float)


class TakesZero(likelihoods.Gamma):
    """Accepts the edge of its support, where the density has no value."""

    def check_target(self, y):
        return np.asarray(y, dtype=float) if y.min() == 0.0 else super().check_target(y)


class TakesNegatives(likelihoods.Gamma):
    def check_target(self, y):
        return np.asarray(y, dtype=float)


class WholeAlone(likelihoods.Poisson):
    """A distribution function that is right at whole numbers only."""

    def cdf(self, u, y):
        return super().cdf(u, y) * np.where(y == np.floor(y), 1.0, 0.5)


class NoSpread(likelihoods.NegativeBinomial):
    spread_at = 1


class NoEffect(likelihoods.Poisson):
    def typical_effect(self, y, weight, level=None):
        return np.nan


class Warns(likelihoods.Poisson):
    def variance(self, u):
        return super().variance(u) + 0.0 * np.log(np.zeros(1))


class WideLabels(likelihoods.Bernoulli):
    def variance(self, u):
        return 1.1 * super().variance(u)


class OthersMeans(likelihoods.Categorical):
    def mean_probabilities(self, eta, own, share):
        return super().mean_probabilities(eta, own, share)[:, ::-1]


class WideMeans(likelihoods.Bernoulli):
    def mean_smaller(self, eta, share):
        return 1.001 * super().mean_smaller(eta, share)


class DecidesAll(likelihoods.Bernoulli):
    def decided(self, mean, variance, own, share):
        return (mean[0] > 0.0).astype(np.intp)


class DecidesByMeans(likelihoods.Ordinal):
    """The likeliest class at the mean predictor, however uncertain it is."""

    def decided(self, mean, variance, own, share):
        return super().decided(mean, 0.0 * variance, own, share)


class FarStart(likelihoods.Poisson):
    def start(self, y, weight, has_level):
        return super().start(y, weight, has_level) + 50.0 * has_level


class StartWithoutWeights(likelihoods.Poisson):
    def start(self, y, weight, has_level):
        return super().start(y, None, has_level)


class NeverFree(likelihoods.Bernoulli):
    def level_weight(self, y, weight=None):
        return super().level_weight(y, weight) + (weight is None)


class AlwaysHeld(likelihoods.Poisson):
    def level_weight(self, y, weight=None):
        return np.inf


class WrongGains(likelihoods.Poisson):
    def gains(self, design, y):
        return -super().gains(design, y)


class FalselyIncreasing(likelihoods.NegativeBinomial):
    increasing = True

    def mean(self, u):
        return np.exp(-u[:, 0])


class NoLink(likelihoods.Gamma):
    log_link = ()


class NoWalls(likelihoods.Poisson):
    bounded_curvature = True


class NotConcave(likelihoods.Likelihood):
    """Noise of Student's t with 9 degrees of freedom: right, but for what posteriors promise."""

    def check_target(self, y):
        return np.asarray(y, dtype=float)

    def log_density(self, u, y):
        return stats.t.logpdf(y - u[:, 0], 9.0)

    def score(self, u, y):
        residual = y[..., None, :] - u
        return 10.0 * residual / (9.0 + np.square(residual))

    def curvature(self, u, y):
        square = np.square(y[..., None, :] - u)
        return (10.0 * (9.0 - square) / np.square(9.0 + square))[:, None]

    def mean(self, u):
        return u[:, 0]

    def sample(self, u, rng):
        return u[:, 0] + rng.standard_t(9.0, u[:, 0].shape)

    def variance(self, u):
        return np.full(u[:, 0].shape, 9.0 / 7.0)

    def cdf(self, u, y):
        return stats.t.cdf(y - u[:, 0], 9.0)


class FalselyConcave(priors.StudentT):
    log_concave = True


class WrongGradient(priors.Normal):
    def grad(self, coef, gamma):
        return 1.0001 * super().grad(coef, gamma)[0], None


class WrongCurvature(priors.Normal):
    def curvature(self, coef, gamma):
        return np.broadcast_to(np.divide(1.0, self.scale), coef.shape), None, 0.0

    def __init__(self, scale=2.0, location=0.0):
        super().__init__(scale, location)


class WideQuantiles(priors.Laplace):
    def quantiles(self, u, d):
        return 1.001 * super().quantiles(u, d)


class WideDraws(priors.StudentT):
    """Draws and quantiles that agree, of another scale than the density."""

    def quantiles(self, u, d):
        return 1.1 * super().quantiles(u, d)

    def sample(self, rng, shape, noise_variance):
        return 1.1 * super().sample(rng, shape, noise_variance)


class OthersDraws(priors.Normal):
    """The scale of the first column in all."""

    def sample(self, rng, shape, noise_variance):
        return np.repeat(super().sample(rng, shape, noise_variance)[:, :1], shape[1], axis=1)


class FalselyFlat(priors.Normal):
    flat = True


class WrongMass(priors.ConjugateNormal):
    """The sign of the handout's (4.2), with a gradient that belongs to it."""

    def log_density(self, coef, gamma):
        return super().log_density(coef, gamma) + coef.shape[1] * coef.shape[2] * gamma

    def grad(self, coef, gamma):
        in_coef, in_gamma = super().grad(coef, gamma)
        return in_coef, in_gamma + coef.shape[1] * coef.shape[2]


class WrongUnits(priors.HalfNormal):
    def for_data(self, variance):
        return priors.HalfNormal(variance)


class WideSigma(priors.HalfCauchy):
    def sample(self, rng, size):
        return 1.1 * super().sample(rng, size)


class WrongSlopes(posterior.LogLinearNoise):
    """A gradient that is not that of its density."""

    def bind(self, *arguments, **options):
        bound = super().bind(*arguments, **options)
        bound.grad = lambda theta: 1.001 * type(bound).grad(bound, theta)
        return bound


class NoJacobian(priors.HierarchicalNormal):
    """A density of tau in place of that of its logarithm."""

    def value_and_grad(self, h, gamma):
        value, in_h, in_gamma = super().value_and_grad(h, gamma)
        return value - h[:, 0], in_h - 1.0, in_gamma


class FalselyCommon(priors.Horseshoe):
    """It says that one hyperparameter scales all columns alike."""

    common = True


class OtherMedians(priors.HierarchicalNormal):
    """A scale with another median than that of its density."""

    def log_medians(self, gamma):
        return np.full(1, 0.3)


class UnequallyCommon(priors.HierarchicalNormal):
    """One hyperparameter, which scales columns by powers of it."""

    def log_scale(self, h):
        return np.log(self.scale) + h * np.arange(1.0, len(self.scale) + 1.0)

    def pull_back(self, h, in_log_scale):
        powers = np.arange(1.0, len(self.scale) + 1.0)
        return (in_log_scale * powers).sum(axis=1, keepdims=True)


class NotCommon(priors.HierarchicalNormal):
    """It does not say so, and each step would take a Cholesky factor."""

    common = False


class OthersRoot(sampling.Preconditioner):
    """Preconditioner whose noise has another matrix than its drift."""

    def bind(self, n_params, metric):
        metric = Diagonal(np.linspace(1.0, 2.0, n_params))
        metric.sqrt = Diagonal(np.linspace(1.0, 2.001, n_params)).sqrt
        return metric


class Undeclared(sampling.Curvature):
    """Needs the curvature, and does not ask for it."""

    uses_curvature = False

    def bind(self, n_params, metric):
        assert metric is not None, "no curvature"
        return metric


class Biased(sampling.Minibatch):
    def bind(self, target, center):
        return _BiasedGradient(target)


class _BiasedGradient(MinibatchGradient):
    """Rescaled by n / (B + 1)."""

    def __call__(self, theta, batch, memory=None):
        size = batch[0].size
        prior = self.posterior.grad_log_prior(theta)
        return prior + (super().__call__(theta, batch, memory) - prior) * size / (size + 1)


class WrongInRuns(sampling.Full):
    """The gradient that a run binds is off by one per cent."""

    def bind(self, target, center):
        bound = super().bind(target, center)
        bind = bound.posterior.bind_grad
        bound.posterior = copy(bound.posterior)
        bound.posterior.bind_grad = lambda n: lambda theta: 1.01 * bind(n)(theta)
        return bound


class TooWide(sampling.SGLD):
    """Euler's error, which it does not declare."""

    def candidates(self, full_gradient):
        return [self]

    def __init__(self, integrator="euler"):
        super().__init__(integrator)

    def gaussian_inflation(self, eta):
        return 1.0


class OneTemperature(sampling.RandomWalk):
    """The first chain's temperature for all chains, of a sampler whose other tests have one."""

    def step(self, state, eta, noise, batch, dynamics):
        first = copy(dynamics)
        first.temperature = np.ravel(dynamics.temperature)[0]
        super().step(state, eta, noise, batch, first)


class OneTemperatureOfSteps(sampling.SGLD):
    """The first step's temperature for all steps."""

    def prepare(self, normals, previous, eta, dynamics):
        first = copy(dynamics)
        first.temperature = np.ravel(dynamics.temperature)[0]
        return super().prepare(normals, previous, eta, first)


class StrongForce(sampling.SGHMC):
    """A force that is off by three per cent."""

    def step(self, state, eta, noise, batch, dynamics):
        strong = copy(dynamics)
        strong.force = lambda *at: 1.03 * dynamics.force(*at)
        super().step(state, eta, noise, batch, strong)


class StrongDrift(sampling.SGLD):
    """The same of a sampler in the coordinates of the posterior, which declares no variance."""

    def gaussian_inflation(self, eta):
        return None

    def step(self, state, eta, noise, batch, dynamics):
        state["theta"] = state["theta"] + 1.03 * eta * dynamics.drift(state["theta"], batch) + noise


class StrongDriftOfWaves(sampling.SGLD):
    """The same of steps that are not linear on a normal target, so that draws have to show it."""

    def step(self, state, eta, noise, batch, dynamics):
        theta = state["theta"]
        move = 1.03 * eta * dynamics.drift(theta, batch) + 1e-4 * np.sin(30.0 * theta)
        state["theta"] = theta + move + noise


class StrongProposals(sampling.MALA):
    """A force off by one per cent: the draws are right, and fewer of them are independent."""

    def evaluate(self, theta, dynamics):
        found = super().evaluate(theta, dynamics)
        return found | {"force": 1.01 * found["force"]}


class NoInit(sampling.MALA):
    def init(self, theta):
        return {"theta": theta, "force": np.zeros_like(theta)}


class StartWithoutLevel(likelihoods.Gamma):
    """A start that is right with an intercept alone."""

    def start(self, y, weight, has_level):
        return super().start(y, weight, has_level) + [0.0, 1.0 - has_level]


class Uphill(optimizers.SGD):
    def direction(self, state, gradient):
        return gradient * [1.0, 0.0]


class TooFast(optimizers.Momentum):
    def step_size(self, steepest, away):
        return 10.0 * super().step_size(steepest, away)


class StepInSds(optimizers.RMSprop):
    """A step in standard deviations where coordinates have other units."""

    def step_size(self, steepest, away):
        return away / 20.0


class NotNearest(optimizers.Ball):
    def nearest(self, coef):
        length = np.linalg.norm(coef, axis=1, keepdims=True)
        return np.where(length > self.radius, coef / np.square(length), coef)


class NoBound(sampling.NormClip):
    def __call__(self, gradient):
        fired = np.linalg.norm(gradient, axis=1) > self.threshold
        return np.where(fired[:, None], 0.5 * gradient, gradient), fired


class WrongSlope(transforms.Positive):
    def log_slope(self, t):
        return 2.0 * t


class WideScales(priors.GroupPrior):
    def for_term(self, unit, least):
        covariance = super().for_term(unit, least)
        wide = super().for_term(1.1 * unit, least)
        covariance.sample = wide.sample
        return covariance


PLANTED = {
    Negative: ("SCHEDULES", "not positive"),
    WrongDecay: ("SCHEDULES", "decay_power=0.9, and it is 1.00"),
    NeverSettles: ("SCHEDULES", "settles_at"),
    WrongVariance: ("LIKELIHOODS", "variance"),
    WrongRatios: ("LIKELIHOODS", "ratios"),
    WrongScore: ("LIKELIHOODS", "score"),
    OwnScoreAlone: ("LIKELIHOODS", "score"),
    WrongRowCurvature: ("LIKELIHOODS", "curvature"),
    WrongKernel: ("LIKELIHOODS", "score|bound gradient"),
    WrongKernelInFloat32: ("LIKELIHOODS", "in float32"),
    WrongBatches: ("LIKELIHOODS", "score|bound batch"),
    WrongFarOut: ("LIKELIHOODS", "score .* where own coordinates are 4"),
    OthersGenerator: ("LIKELIHOODS", "generator"),
    SharedDraws: ("LIKELIHOODS", "not independent"),
    Refuses: ("LIKELIHOODS", "y has the value 1"),
    TakesAll: ("LIKELIHOODS", "DID NOT RAISE"),
    TakesZero: ("LIKELIHOODS", "DID NOT RAISE"),
    TakesNegatives: ("LIKELIHOODS", "DID NOT RAISE"),
    WholeAlone: ("LIKELIHOODS", "between counts"),
    NoSpread: ("LIKELIHOODS", "spread_at"),
    NoEffect: ("LIKELIHOODS", "typical_effect is nan"),
    Warns: ("LIKELIHOODS", "divide by zero"),
    WideLabels: ("LIKELIHOODS", "variance"),
    OthersMeans: ("LIKELIHOODS", "mean_probabilities"),
    WideMeans: ("LIKELIHOODS", "mean_smaller"),
    DecidesAll: ("LIKELIHOODS", "decided has"),
    DecidesByMeans: ("LIKELIHOODS", "decided has"),
    FarStart: ("LIKELIHOODS", "nats a row worse"),
    StartWithoutWeights: ("LIKELIHOODS", "a weight of w is w rows"),
    NeverFree: ("LIKELIHOODS", "without weights"),
    AlwaysHeld: ("LIKELIHOODS", "level_weight"),
    WrongGains: ("LIKELIHOODS", "gains"),
    FalselyIncreasing: ("LIKELIHOODS", "increasing=True"),
    NoLink: ("LIKELIHOODS", "log_link"),
    NoWalls: ("LIKELIHOODS", "bounded_curvature"),
    NotConcave: ("LIKELIHOODS", "not concave"),
    FalselyConcave: ("PRIORS", "log_concave"),
    WrongGradient: ("PRIORS", "gradient in the coefficients"),
    WrongCurvature: ("PRIORS", "curvature in the coefficients"),
    WideQuantiles: ("PRIORS", "quantiles of the density"),
    WideDraws: ("PRIORS", "density"),
    OthersDraws: ("PRIORS", "draws"),
    FalselyFlat: ("PRIORS", "flat=True"),
    WrongMass: ("PRIORS", "curvature|mass|given_noise"),
    WrongUnits: ("NOISE_PRIORS", "units of y"),
    WideSigma: ("NOISE_PRIORS", "draws"),
    WrongSlopes: ("NOISE_MODELS", "Not equal"),
    WideScales: ("GROUP_PRIORS", "draws of the density"),
    NoJacobian: ("HIERARCHICAL_PRIORS", "not of the density"),
    OtherMedians: ("HIERARCHICAL_PRIORS", "log_medians of another distribution"),
    FalselyCommon: ("HIERARCHICAL_PRIORS", "common=True, and its hyperparameters .5. do not"),
    UnequallyCommon: ("HIERARCHICAL_PRIORS", "common=True, and its hyperparameters .1. do not"),
    NotCommon: ("HIERARCHICAL_PRIORS", "common=False, and its hyperparameters .1. scale"),
    OthersRoot: ("PRECONDITIONERS", "root"),
    Undeclared: ("PRECONDITIONERS", "no curvature"),
    Biased: ("GRADIENTS", "mean of the estimates"),
    WrongInRuns: ("GRADIENTS", "mean of the estimates"),
    TooWide: ("SAMPLERS", "variance"),
    OneTemperature: ("SAMPLERS", "steps of chains of two temperatures"),
    OneTemperatureOfSteps: ("SAMPLERS", "noise of steps of two temperatures"),
    StrongForce: ("SAMPLERS", "variance"),
    StrongDrift: ("SAMPLERS", "variance"),
    StrongDriftOfWaves: ("SAMPLERS", "variance"),
    StrongProposals: ("SAMPLERS", "rejections"),
    NoInit: ("SAMPLERS", r"init lacks \['accepted', 'value'\]"),
    StartWithoutLevel: ("LIKELIHOODS", "without an intercept a start"),
    Uphill: ("OPTIMIZERS", "sds away"),
    TooFast: ("OPTIMIZERS", "step_size"),
    StepInSds: ("OPTIMIZERS", "step_size"),
    NotNearest: ("PROJECTIONS", "convex|nearer"),
    NoBound: ("CLIPS", "no bound"),
    WrongSlope: ("TRANSFORMS", "log_slope"),
}


WRONG = AssertionError, ValueError, RuntimeWarning


# faults that show in draws alone, or late in a check
COSTLY = StrongDriftOfWaves, WideScales, FalselyIncreasing, WideDraws


@pytest.mark.parametrize(
    "wrong",
    [slow(cls) if cls in COSTLY else cls for cls in PLANTED],
    ids=lambda cls: cls.__name__,
)
def test_a_wrong_member_is_caught_by_its_familys_check(wrong, monkeypatch):
    registry, message = PLANTED[wrong]
    monkeypatch.setitem(REGISTRIES[registry], "planted", wrong)
    with pytest.raises((*WRONG, pytest.fail.Exception), match=message):
        CHECKS[registry]("planted")


class LevelsOff(likelihoods.Likelihood):
    """A row that rises to its mode at 0, and falls from there to a bound as the predictor rises."""

    def sample(self, u, rng):
        return np.zeros(u[:, 0].shape)

    def log_density(self, u, y):
        return -np.square(np.expm1(-u[:, 0]))

    def gains(self, design, y):
        return design


class LevelsOffSlowly(LevelsOff):
    """The same, and at the end of a path the falls are still of 1e-5."""

    def log_density(self, u, y):
        return -np.square(np.expm1(-0.35 * u[:, 0]))


def test_a_row_that_falls_to_a_bound_gains_as_one_that_rises():
    check_gains("levels off", LevelsOff())
    check_gains("levels off slowly", LevelsOffSlowly())
    falls = type(
        "Falls", (LevelsOff,), {"gains": lambda self, design, y: np.vstack([design, -design])}
    )
    with pytest.raises(AssertionError, match=r"^gains of row 1, y=0: along .* does not go to -inf"):
        check_gains("levels off", falls())


def test_a_member_that_is_not_defined_is_named_and_an_instance_is_no_member():
    with pytest.raises(NotImplementedError, match="^Bare must define curvature"):
        type("Bare", (priors.CoefficientPrior,), {})().curvature(np.zeros((1, 2)), None)
    with pytest.raises(TypeError, match=r"'mine' is given Laplace\(\); enter the class"):
        priors.PRIORS["mine"] = priors.Laplace()

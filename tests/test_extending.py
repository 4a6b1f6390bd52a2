"""The pieces that the pages on extending show are right by the checks of the package's families."""

import ast
import functools
import importlib
import importlib.util
import inspect
import pkgutil
import re
import types
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from scipy import special
from sklearn.datasets import load_iris
from sklearn.preprocessing import StandardScaler

import skbayes_sgld
from skbayes_sgld import (
    SGLDLogisticRegression,
    likelihoods,
    priors,
    sample,
    sampling,
    variational,
)
from skbayes_sgld.estimators.counts import CountRegressor
from skbayes_sgld.estimators.parameters import parameters
from skbayes_sgld.estimators.regression import RegressionModel
from skbayes_sgld.estimators.sampled import SampledEstimator
from skbayes_sgld.inference import strategies
from skbayes_sgld.inference.planning.task import Task
from skbayes_sgld.inference.settings import Settings
from skbayes_sgld.inference.strategies.accept_reject import AdaptedRun
from skbayes_sgld.inference.strategies.base import Strategy
from skbayes_sgld.likelihoods import OwnParameter
from skbayes_sgld.linear_model import SampledClassifier
from skbayes_sgld.own_models import as_posterior
from skbayes_sgld.own_models.boundary import UserPosterior
from skbayes_sgld.plotting.draws import DrawsDisplay
from skbayes_sgld.posterior import GLMPosterior, ImproperPosteriorError
from skbayes_sgld.posterior.propriety import check_proper
from skbayes_sgld.priors.hierarchical import HierarchicalPrior
from skbayes_sgld.rows.arguments import RowArgument
from skbayes_sgld.sampling.dynamics import Dynamics
from skbayes_sgld.sampling.metric import Metric
from skbayes_sgld.sampling.tuning.adaptation import Adaptation
from skbayes_sgld.transforms import Interval
from tests.marks import slow
from tests.pieces import EXTENDING, load
from tests.test_registries import CHECKS, REGISTRIES

PIECES = sorted((EXTENDING / "pieces").glob("*.py"))
FAMILIES = {
    "likelihood": ("LIKELIHOODS", "Waiting"),
    "prior": ("PRIORS", "Logistic"),
    "noise_prior": ("NOISE_PRIORS", "LogLogistic"),
    "gradient": ("GRADIENTS", "Around"),
    "preconditioner": ("PRECONDITIONERS", "MarginalVariances"),
    "sampler": ("SAMPLERS", "Heun"),
    "adjusted_sampler": ("SAMPLERS", "Barker"),
    "schedule": ("SCHEDULES", "Geometric"),
    "clip": ("CLIPS", "LargestClip"),
    "optimizer": ("OPTIMIZERS", "SignDescent"),
    "projection": ("PROJECTIONS", "HalfSpace"),
}


@pytest.mark.parametrize("piece", FAMILIES)
def test_a_piece_passes_the_check_of_its_family_under_a_name_of_its_own(piece, monkeypatch):
    registry, name = FAMILIES[piece]
    monkeypatch.setitem(REGISTRIES[registry], "mine", getattr(load(piece), name))
    CHECKS[registry]("mine")


def test_the_variational_piece_has_the_draws_gradient_and_entropy_that_it_says(monkeypatch):
    family, rng = load("family").LaplaceFamily(), np.random.default_rng(0)
    phi, noise = rng.standard_normal((1, 4)), rng.standard_normal((1, 100_000, 2))
    draws = family.transform(phi, noise)[0]
    scale = np.exp(phi[0, 2:])
    np.testing.assert_allclose(np.abs(draws - phi[0, :2]).mean(axis=0), scale, rtol=0.02)
    np.testing.assert_allclose(draws.var(axis=0), family.covariance(phi[0]), rtol=0.05)
    log_density = -np.abs(draws - phi[0, :2]) / scale - np.log(2.0 * scale)
    assert family.entropy(phi, 2)[0] == pytest.approx(-log_density.sum(axis=1).mean(), abs=0.02)
    few, step = noise[:, :5], 1e-6
    for k in range(4):
        moved = phi + step * (np.arange(4) == k)
        change = (family.transform(moved, few) - family.transform(phi, few)).sum() / step
        slope = family.pull_back(phi, few, np.ones((1, 5, 2)))[0, k]
        assert slope == pytest.approx(change, rel=1e-4)
    monkeypatch.setitem(variational.FAMILIES, "mine", type(family))
    assert variational.BayesByBackprop(family="mine").family == "mine"


class ChangePoint:
    """Counts whose rate changes once: exponential priors of both rates, in logs, and the year."""

    n_params, param_names = 3, ["log_before", "log_after", "year"]
    widths = 0.2, 0.2, 4.0

    def __init__(self, y):
        self.n, self.sums, self.middle = len(y), np.append(0, np.cumsum(y)), np.log(y.mean())

    def start(self):
        return np.array([self.middle, self.middle, self.n / 2])

    def parts(self, theta):
        year = np.floor(np.clip(theta[:, 2], 0, self.n)).astype(int)
        before = self.sums[year]
        return theta[:, 0], theta[:, 1], before, self.sums[-1] - before, year

    def log_density(self, theta):
        a, b, before, after, year = self.parts(theta)
        value = (before + 1) * a - (year + 1) * np.exp(a)
        value += (after + 1) * b - (self.n - year + 1) * np.exp(b)
        return np.where((theta[:, 2] >= 0) & (theta[:, 2] < self.n + 1), value, -np.inf)

    def grad(self, theta):
        a, b, before, after, year = self.parts(theta)
        of_a = before + 1 - (year + 1) * np.exp(a)
        of_b = after + 1 - (self.n - year + 1) * np.exp(b)
        return np.column_stack([of_a, of_b, np.zeros(len(theta))])

    def shares(self):
        """Probability of each year, the rates integrated out."""
        year, before = np.arange(self.n + 1), self.sums
        after = before[-1] - before
        logs = special.gammaln(before + 1) - (before + 1) * np.log(year + 1)
        logs += special.gammaln(after + 1) - (after + 1) * np.log(self.n - year + 1)
        return special.softmax(logs)


def test_a_strategy_samples_the_models_that_it_suits_and_no_others(monkeypatch):
    walk, rng = load("strategy").Walk, np.random.default_rng(0)
    monkeypatch.setattr(strategies, "STRATEGIES", [walk, *strategies.STRATEGIES])
    model = ChangePoint(np.append(rng.poisson(3.0, 25), rng.poisson(0.8, 15)))
    result = sample(model, check_gradient=False, random_state=0)
    assert isinstance(result.choices["sampler"].value, sampling.RandomWalk)
    assert "the model gives its widths" in str(result.plan)
    shares, middle = model.shares(), np.arange(model.n + 1) + 0.5
    mean = shares @ middle
    year = result.summary().loc["year"]
    assert abs(year["mean"] - mean) < 4.0 * year["mcse_mean"]
    variance = shares @ (middle - mean) ** 2 + 1.0 / 12.0
    assert abs(year["sd"] - np.sqrt(variance)) < 4.0 * year["mcse_sd"]
    given = Settings.of(SGLDLogisticRegression(sampler="hmc", step_size=0.1))
    plan = strategies.make_plan(as_posterior(model), given, seed=0)
    assert isinstance(plan.run.sampler, sampling.HMC)
    X = rng.standard_normal((80, 2))
    labels = X[:, 0] + rng.logistic(size=80) > 0
    other = SGLDLogisticRegression(random_state=0).fit(X, labels)
    assert not isinstance(other.sampler_, sampling.RandomWalk)


def test_every_piece_is_shown_by_one_page_and_every_family_is_named():
    pages = {page.name: page.read_text() for page in EXTENDING.glob("add_*.md")}
    text = "\n".join(pages.values())
    for path in PIECES:
        assert text.count(f"{{literalinclude}} pieces/{path.name}") == 1, path.name
    assert len(pages) == len(PIECES)
    index = (EXTENDING / "index.md").read_text()
    for registry in ("noise model", "transform"):
        assert registry in index  # closed, and the page says why


# the base whose members a table names, by the page and the head of the table's first column
BASES = {
    ("add_a_likelihood", "member"): likelihoods.Likelihood,
    ("add_a_prior", "member of a `LocationScale`"): priors.LocationScale,
    ("add_a_prior", "member of a `CoefficientPrior`"): priors.CoefficientPrior,
    ("add_a_prior", "member of a `HierarchicalPrior`"): HierarchicalPrior,
    ("add_a_sampler", "member"): sampling.Sampler,
    ("add_a_sampler", "member of `dynamics`"): Dynamics,
    ("add_a_strategy", "member"): Strategy,
    ("add_a_strategy", "attribute of `task`"): Task,
    ("add_a_strategy", "attribute of `AdaptedRun`"): AdaptedRun,
    ("add_a_strategy", "attribute of `Adaptation`"): Adaptation,
    ("add_an_adjusted_sampler", "member"): sampling.Adjusted,
    ("add_an_argument_by_row", "attribute"): RowArgument,
}


def first_columns():
    """Names in the first column of each table of members, by page and head."""
    for page in EXTENDING.glob("add_*.md"):
        rows = [
            line.split(" | ")[0][2:] for line in page.read_text().split("\n") if line[:2] == "| "
        ]
        for row in rows:
            if not row.startswith("`"):
                head = page.stem, row
            else:
                yield head, re.findall(r"`(\w+)", row)


def test_every_member_that_a_page_names_is_one_of_its_base():
    found = list(first_columns())
    assert {head for head, _ in found if head[1].startswith(("member", "attribute"))} == set(BASES)
    for head, names in found:
        if head in BASES:
            known = {*dir(BASES[head]), *getattr(BASES[head], "__dataclass_fields__", {})}
            assert set(names) <= known, f"{head}: {set(names) - known}"


ROOT = EXTENDING.parents[1]
# classes of the objects that pages name, with the attributes that their methods set
OBJECTS = {
    "found": Adaptation,
    "metric": Metric,
    "original": UserPosterior,
    "posterior": GLMPosterior,
    "self": DrawsDisplay,
    "task": Task,
    "u": np.ndarray,
}


def prose_names(text):
    """Spans in backticks that begin with a name, such as `task.mode` or `theta (C, P)`."""
    prose = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    spans = re.findall(r"`([^`\n]+)`", prose)
    found = (re.fullmatch(r"([A-Za-z_][\w.]*)( ?[\[(].*| = .*)?", span) for span in spans)
    return {match[1] for match in found if match}


def code_imports(text):
    """Modules that the code of a page imports, and the names from them."""
    for block in re.findall(r"```{code-block} python\n(.*?)```", text, re.DOTALL):
        for node in ast.walk(ast.parse(block)):
            if isinstance(node, ast.ImportFrom):
                yield from (f"{node.module}.{name.name}" for name in node.names)
            elif isinstance(node, ast.Import):
                yield from (name.name for name in node.names)


def exists(name):
    """Whether a dotted name is that of a module or of something in one."""
    parts = name.split(".")
    for k in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:k]))
        except ModuleNotFoundError:
            continue
        for part in parts[k:]:
            if not hasattr(found, part):
                return False
            found = getattr(found, part)
        return True
    return False


def attributes(cls):
    """Members of a class, fields and what its methods set."""
    bases = [base for base in cls.__mro__ if base.__module__.startswith("skbayes_sgld")]
    set_there = re.findall(r"self\.(\w+)", "\n".join(map(inspect.getsource, bases)))
    return {*dir(cls), *(name for base in bases for name in base.__annotations__), *set_there}


def names_in(code):
    """Names that occur in compiled code: of attributes, arguments and variables, and in strings."""
    yield from (code.co_name, *code.co_names, *code.co_varnames, *code.co_cellvars)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from names_in(constant)
        else:
            texts = constant if isinstance(constant, tuple) else (constant,)
            yield from (text for text in texts if isinstance(text, str) and text.isidentifier())


@functools.cache
def identifiers():
    """Names that occur in the code of the package, of the pieces and of the families' checks."""
    modules = pkgutil.walk_packages(skbayes_sgld.__path__, "skbayes_sgld.")
    loaders = [(m.module_finder.find_spec(m.name).loader, m.name) for m in modules]
    codes = [loader.get_code(name) for loader, name in loaders]
    codes += [compile(piece.read_text(), piece.name, "exec") for piece in PIECES]
    names = {name for code in codes for name in names_in(code)}
    return names | {"CHECKS", "False", *(check.__name__ for check in CHECKS.values())}


def is_identifier(name):
    """Whether a name occurs; also as a fitted attribute, or as the coordinate of a parameter."""
    return bool({name, name.removesuffix("_"), re.sub("^log(it)?_", "", name)} & identifiers())


def unknown_names(text):
    """Names of a page that nothing has."""
    unknown = {name for name in code_imports(text) if not exists(name)}
    for name in prose_names(text):
        head, *rest = name.split(".")
        if not rest:
            known = is_identifier(name)
        elif rest == ["py"]:
            known = False  # a file is named with its folder, from the root
        elif head in ("skbayes_sgld", "numpy", "np"):
            known = exists(name.replace("np.", "numpy."))
        elif exists(f"skbayes_sgld.{name}"):
            known = True
        else:
            cls = OBJECTS.get(head) or getattr(likelihoods, head, None)
            known = cls is not None and rest[0] in attributes(cls) and {*rest} <= identifiers()
        if not known:
            unknown.add(name)
    paths = re.findall(r"`(\w+/[\w/]+\.py)`", text)
    return unknown | {path for path in paths if not (ROOT / path).exists()}


@pytest.mark.parametrize("page", sorted(EXTENDING.glob("*.md")), ids=lambda page: page.stem)
def test_every_name_that_a_page_has_in_backticks_or_imports_exists(page):
    assert unknown_names(page.read_text()) == set()


def test_a_name_that_moved_or_went_is_seen():
    page = """`inference.planning.plans.draft`, `task.mode`, `AdaptedRun`, `theta (C, P)`.
    `plans.draft`, `skbayes_sgld.sampling.tuning.bias`, `task.modus`, `AdoptedRun`, `langevin.py`,
    `pilot_time`, `tests/nothing.py`, `averaged_by = False`.
    """
    gone = {"plans.draft", "skbayes_sgld.sampling.tuning.bias", "task.modus", "AdoptedRun"}
    gone |= {"langevin.py", "pilot_time", "tests/nothing.py", "averaged_by"}
    assert unknown_names(page) == gone
    code = "```{code-block} python\nfrom skbayes_sgld.priors import PRIORS, Gone\n```\n"
    assert unknown_names(code) == {"skbayes_sgld.priors.Gone"}


def test_a_prior_by_name_has_the_units_of_each_column(monkeypatch):
    from skbayes_sgld import SGLDLinearRegression

    monkeypatch.setitem(priors.PRIORS, "mine", load("prior").Logistic)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 2))
    y = X @ [1.0, -1.0] + rng.standard_normal(60)
    unit, scale = np.array([1e3, 1e-3]), 1e4
    plain = SGLDLinearRegression(prior="mine", random_state=0).fit(X, y)
    moved = SGLDLinearRegression(prior="mine", random_state=0).fit(X / unit, y * scale)
    np.testing.assert_allclose(moved.predict(X / unit) / scale, plain.predict(X), rtol=1e-6)


def test_an_own_parameter_without_a_transform_is_refused():
    with pytest.raises(TypeError, match="'transform'"):
        OwnParameter("share", "share_prior", "exponential")


def test_an_own_parameter_names_its_prior_so_that_estimators_find_it():
    with pytest.raises(ValueError, match=r"^argument='excess' of 'excess' must .*'excess_prior'"):
        OwnParameter("excess", "excess", "exponential", transform="positive")


def test_a_default_prior_of_an_own_parameter_that_is_not_known_is_refused(
    monkeypatch,
):
    class Family(likelihoods.NegativeBinomial):
        own = (OwnParameter("excess", "excess_prior", "exponentia", transform="positive"),)

    told = r"^OwnParameter\('excess'\)\.default='exponentia' is not known; .*'exponential'"
    with pytest.raises(ValueError, match=told):
        GLMPosterior(np.ones((3, 1)), np.ones(3), Family(), priors.Normal(1.0))
    monkeypatch.setitem(likelihoods.LIKELIHOODS, "mine", Family)
    with pytest.raises(ValueError, match=told):
        CHECKS["LIKELIHOODS"]("mine")


def test_a_model_that_names_no_inference_is_told_which_base_it_lacks():
    @parameters
    class Regressor(CountRegressor):
        def _likelihood(self):
            return likelihoods.Poisson()

    with pytest.raises(TypeError, match="^Regressor is a model without an inference; .*SampledEst"):
        Regressor().fit(np.zeros((9, 1)), np.arange(9))


def test_an_own_parameter_of_a_new_name_has_its_prior_by_an_argument_of_the_estimator():
    @dataclass(eq=False, repr=False)
    class Family(likelihoods.NegativeBinomial):
        own = (OwnParameter("excess", "excess_prior", "exponential", transform="positive"),)

    @parameters
    class Regressor(RegressionModel, SampledEstimator):
        excess_prior: Any = "exponential"

        def _likelihood(self):
            return Family()

    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((60, 1)), rng.poisson(2.0, 60)
    wide = Regressor(n_draws=200, random_state=0).fit(X, y)
    assert list(wide.summary().index) == ["coef[x0]", "intercept", "excess"]
    narrow = Regressor(n_draws=200, random_state=0).set_params(excess_prior__scale=0.01)
    assert narrow.fit(X, y).excess_ < 0.1 * wide.excess_
    with pytest.raises(ValueError, match=r"excess_prior='none' is not known; choose one of"):
        Regressor(excess_prior="none").fit(X, y)

    @parameters
    class Undeclared(RegressionModel, SampledEstimator):
        def _likelihood(self):
            return Family()

    field = "declare the field `excess_prior: Any = 'exponential'` in the class"
    with pytest.raises(TypeError, match=f"^Undeclared has no parameter excess_prior, .*{field}"):
        Undeclared().fit(X, y)


def test_an_intercept_that_a_new_likelihood_does_not_hold_is_refused_with_the_reason():
    class Held(likelihoods.Gamma):
        def level_weight(self, y, weight=None):
            return 0.0

        def gains(self, design, y):
            return design

    @parameters
    class Regressor(RegressionModel, SampledEstimator):
        dispersion_prior: Any = "exponential"

        def _likelihood(self):
            return Held()

    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((60, 1)), 1e-3 * rng.gamma(2.0, 1.0, 60)
    with pytest.raises(ValueError, match="does not go to 0 as the intercept.*intercept_prior='nor"):
        Regressor().fit(X, y)
    proper = Regressor(prior="flat", intercept_prior="normal", n_draws=500, random_state=0)
    assert np.isfinite(proper.fit(X, y).coef_).all()  # densities of 1e3 are no certainty
    with pytest.raises(ValueError, match="^along some combination of the columns the likelihood"):
        proper.fit(np.abs(X), y)


def test_rows_that_fall_in_neither_direction_leave_coefficients_to_the_others():
    class Inflated(likelihoods.Poisson):
        """Counts of 0 say nothing, as those that an inflation explains."""

        def gains(self, design, y):
            return np.concatenate([design[y > 0], -design[y > 0]])

    rng = np.random.default_rng(0)
    X, y = 1e6 + rng.standard_normal((80, 2)), np.zeros(80)
    y[[3, 7]] = 2.0, 1.0
    flat = {"prior": priors.Flat(), "intercept_prior": priors.Flat()}
    with pytest.raises(ImproperPosteriorError, match="would go to infinity; .*prior='normal'"):
        check_proper(GLMPosterior(X, y, Inflated(), **flat))
    check_proper(GLMPosterior(X, y, likelihoods.Poisson(), **flat))
    y[[11, 20]] = 1.0
    check_proper(GLMPosterior(X, y, Inflated(), **flat))


def test_two_classes_need_no_more_than_their_probabilities():
    class Plain(likelihoods.Bernoulli):
        increasing = symmetric = False

    @parameters
    class Classifier(SampledClassifier):
        def _label_likelihood(self, n_classes):
            return Plain()

    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 2))
    y = np.where(X[:, 0] + rng.logistic(size=80) > 0, "yes", "no")
    plain, logistic = (
        each(random_state=0).fit(X, y) for each in (Classifier, SGLDLogisticRegression)
    )
    np.testing.assert_allclose(plain.predict_proba(X), logistic.predict_proba(X), rtol=1e-6)
    intervals = [model.predict_proba_interval(X) for model in (plain, logistic)]
    np.testing.assert_allclose(*intervals, rtol=1e-5)


def test_a_family_whose_curvature_has_the_wrong_sign_is_refused_as_one_without_a_mode():
    @dataclass(eq=False, repr=False)
    class Convex(likelihoods.Poisson):
        kernel = likelihoods.Likelihood.kernel

        def log_density(self, u, y):
            return u[:, 0] ** 2

        def score(self, u, y):
            return 2.0 * u

        def curvature(self, u, y):
            return np.full_like(u, -2.0)[:, None]

    @parameters
    class Regressor(RegressionModel, SampledEstimator):
        def _likelihood(self):
            return Convex()

    X = np.random.default_rng(0).standard_normal((60, 1))
    plain = {"preconditioner": None, "n_draws": 100, "random_state": 0}
    with pytest.raises(ValueError, match="not positive definite.*prior='normal'"):
        Regressor(prior="hierarchical_normal", **plain).fit(X, np.arange(60.0))


@pytest.mark.parametrize(
    "transform, told",
    [
        ("logit", "transform='logit' is not known; choose one of 'positive', 'unit_interval'"),
        (np.exp, "transform=.* is not accepted; give one of the names 'positive'"),
        (Interval(1.0, -1.0), "transform.high=-1.0 is out of range"),
    ],
)
def test_the_transform_of_an_own_parameter_that_is_not_known_is_refused(transform, told):
    with pytest.raises((ValueError, TypeError), match=told):
        OwnParameter("share", "share_prior", "exponential", transform=transform)


def test_the_transform_of_an_own_parameter_is_given_by_name_or_as_an_instance():
    of_name, of_ends = (
        OwnParameter("share", "share_prior", "exponential", transform=transform)
        for transform in ("unit_interval", Interval(-1.0, 1.0))
    )
    assert of_name.coordinate == of_ends.coordinate == "logit_share"
    assert (of_name.transform.low, of_ends.transform.low) == (0.0, -1.0)


def test_a_sampler_that_only_says_that_it_accepts_or_rejects_is_refused_with_its_base():
    with pytest.raises(TypeError, match=r"^Mine sets adjusted=True; derive it from .*Adjusted"):
        type("Mine", (sampling.Sampler,), {"adjusted": True})


@pytest.mark.parametrize(
    "settings", [{}, slow({"preconditioner": None}), slow({"temperature": 0.5})]
)
def test_an_adjusted_sampler_of_the_page_has_the_posterior_of_hmc(settings):
    X, y = load_iris(return_X_y=True)
    mine, hmc = (
        SGLDLogisticRegression(sampler=sampler, random_state=0, **settings).fit(
            StandardScaler().fit_transform(X[50:]), y[50:]
        )
        for sampler in (load("adjusted_sampler").Barker(), "hmc")
    )
    assert mine.result_.problems == ()
    apart = mine.posterior_.flat.mean(axis=0) - hmc.posterior_.flat.mean(axis=0)
    error = np.hypot(mine.summary()["mcse_mean"], hmc.summary()["mcse_mean"])
    assert np.all(np.abs(apart) < 4.5 * error)
    width = mine.posterior_.flat.std(axis=0) / hmc.posterior_.flat.std(axis=0)
    error = np.hypot(mine.summary()["mcse_sd"], hmc.summary()["mcse_sd"]) / hmc.summary()["sd"]
    assert np.all(np.abs(width - 1.0) < 4.5 * error)

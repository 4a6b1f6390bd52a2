"""The protocol is what it says: four members are a posterior, and abilities are found once."""

import ast
from pathlib import Path

import numpy as np
import pytest

import skbayes_sgld
from skbayes_sgld.likelihoods import Bernoulli, FixedNormalNoise
from skbayes_sgld.neural_network import MLPPosterior
from skbayes_sgld.own_models import CustomPosterior, FunctionPosterior, as_posterior
from skbayes_sgld.posterior import GLMPosterior, Posterior
from skbayes_sgld.posterior.base import BasePosterior, require
from skbayes_sgld.posterior.protocol import MEMBERS, Facts
from skbayes_sgld.priors import Normal
from skbayes_sgld.sampling import SAGA, SAMPLERS, SGLD, SVRG, ControlVariate, Minibatch
from tests.references.targets import NormalMean, assert_moments


class Ellipse:
    """Two independent normal parameters, with the four members of the protocol and no more."""

    n_params, param_names = 2, ["a", "b"]
    mean, sd = np.array([1.0, -2.0]), np.array([2.0, 0.1])

    def log_density(self, theta):
        return -0.5 * np.square((theta - self.mean) / self.sd).sum(axis=1)

    def grad(self, theta):
        return -(theta - self.mean) / self.sd**2


class Centered(BasePosterior, Ellipse):
    """Posterior that knows a normal distribution near it."""

    log_density, grad = Ellipse.log_density, Ellipse.grad

    def centered_normal(self, anyway=False):
        return self.mean + 0.5, np.diag(self.sd**-2)


def test_a_normal_that_a_posterior_knows_is_the_centre_of_its_plan():
    mode = skbayes_sgld.sample(Centered(), n_draws=200, random_state=0).mode
    np.testing.assert_array_equal(mode.theta, Centered.mean + 0.5)
    np.testing.assert_allclose(mode.metric.marginal_sd, Centered.sd)


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_four_members_are_enough_for_every_sampler_with_automatic_settings(sampler):
    assert isinstance(Ellipse(), Posterior)
    draws = skbayes_sgld.sample(Ellipse(), sampler, n_draws=500, random_state=0)
    assert draws.names == ["a", "b"]
    assert_moments(
        draws, Ellipse.mean, Ellipse.sd, rough=0.03
    )  # of the samplers that do not reject


@pytest.mark.parametrize("gradient", [Minibatch(), SVRG(period=7), SAGA(), ControlVariate(1)])
def test_rows_without_local_parameters_give_the_gradient_that_gathered_ones_do(gradient):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((30, 2)), rng.integers(0, 2, 30).astype(float)
    gathered = GLMPosterior(X, y, Bernoulli(), Normal())

    class RowsAlone:
        n_samples, n_params, param_names = 30, 3, ["a", "b", "c"]
        log_likelihood, grad_log_likelihood = gathered.log_likelihood, gathered.grad_log_likelihood
        log_prior, grad_log_prior = gathered.log_prior, gathered.grad_log_prior

    theta, results = rng.standard_normal((4, 3)), []
    steps = rng.standard_normal((10, 4, 3))
    idx = np.stack([[rng.permutation(30)[:6] for _ in range(4)] for _ in range(10)])
    for posterior in (gathered, as_posterior(RowsAlone())):
        bound = gradient.bind(posterior, theta[0])
        memory, prepared = bound.begin(theta), bound.prepare(idx)
        at = [bound(theta + steps[t], prepared[t], memory) for t in range(10)]
        results.append([*at, bound(theta, prepared[3])])
    np.testing.assert_allclose(results[1], results[0], rtol=1e-10)


def test_a_users_arrays_are_not_written_to():
    class Cached(NormalMean):
        known = np.full((4, 1), 3.0)

        def grad_log_likelihood(self, theta, idx=None):
            return np.full((len(theta), 1), 3.0) if len(theta) != 4 else self.known

    bound = Minibatch().bind(as_posterior(Cached()))
    for _ in range(2):
        bound(np.zeros((4, 1)), bound.prepare(np.zeros((1, 4, 5), int))[0])
    assert np.all(Cached.known == 3.0)


def test_what_a_model_has_of_its_own_is_used():
    class Knowing(Ellipse):
        def curvature(self, theta):
            return np.diag([4.0, 9.0])

        def start(self):
            return np.array([7.0, 8.0])

        def constrain(self, theta):
            return np.exp(theta)

        def unconstrain(self, values):
            return np.log(values)

        constrained_names = ["A", "B"]

    plain, knowing = as_posterior(Ellipse()), as_posterior(Knowing())
    assert plain.abilities == {"density"}
    assert knowing.abilities == {"density", "curvature", "start", "constrain"}
    np.testing.assert_array_equal(knowing.curvature(knowing.start()), np.diag([4.0, 9.0]))
    np.testing.assert_allclose(
        plain.curvature(plain.start()), np.diag(Ellipse.sd**-2.0), rtol=1e-6, atol=1e-6
    )
    assert (plain.reported.names, knowing.reported.names) == (["a", "b"], ["A", "B"])
    theta = np.array([[0.5, 2.0]])
    np.testing.assert_array_equal(plain.reported.values(theta), theta)
    np.testing.assert_array_equal(knowing.reported.values(theta), np.exp(theta))
    np.testing.assert_allclose(knowing.reported.theta(np.exp(theta)), theta, rtol=1e-15)
    np.testing.assert_array_equal(plain.start(), [0.0, 0.0])


def test_a_posterior_of_the_package_passes_the_boundary_as_it_is():
    X, y = np.ones((4, 1)), np.arange(4.0)
    glm = GLMPosterior(X, y, FixedNormalNoise(1.0), Normal())
    network = MLPPosterior(X, y, FixedNormalNoise(1.0), Normal(), hidden_layer_sizes=(2,))
    density = FunctionPosterior(lambda x: -(x**2).sum(1), lambda x: -2 * x, 1)
    for posterior in (glm, network, density, CustomPosterior(NormalMean())):
        assert isinstance(posterior, BasePosterior)
        assert as_posterior(posterior) is posterior
    assert {"rows", "local_rows", "row_curvature", "subset", "curvature"} <= glm.abilities
    assert "rows" in network.abilities and "local_rows" not in network.abilities
    assert "rows" not in density.abilities
    assert "rows" in CustomPosterior(NormalMean()).abilities


class Wrong(Ellipse):
    def __init__(self, **members):
        self.__dict__.update(members)


@pytest.mark.parametrize(
    "member, value, kind, match",
    [
        ("grad", lambda theta, y: -theta, TypeError, r"^grad takes \(theta, y\).*take \(theta\)"),
        ("log_density", lambda t: np.zeros((2, 1)), ValueError, r"shape \(2, 1\) .* return \(2,\)"),
        ("log_density", lambda t: t[:, 0] * 1j, TypeError, "returned complex numbers at a=0"),
        ("grad", lambda t: t * np.nan, ValueError, "grad is not finite at the start, where a=0"),
        ("n_params", 0, ValueError, "posterior.n_params=0 is out of range"),
        ("param_names", ["a", "a"], ValueError, "must be 2 different names"),
        ("start", lambda: np.zeros(3), ValueError, r"start\(\) returned the shape \(3,\)"),
    ],
)
def test_members_of_the_wrong_kind_are_named(member, value, kind, match):
    with pytest.raises(kind, match=match):
        as_posterior(Wrong(**{member: value}))


def test_missing_members_are_named_and_rows_need_their_numbers():
    class NoGrad:
        n_params, param_names, log_density = 2, ["a", "b"], Ellipse.log_density

    with pytest.raises(TypeError, match=r"it has no grad\. A posterior has n_params, param_names"):
        skbayes_sgld.sample(NoGrad())

    class NoIndices(NormalMean):
        def log_likelihood(self, theta):
            return super().log_likelihood(theta)

    with pytest.raises(TypeError, match=r"^log_likelihood takes \(theta\); .* \(theta, idx=None\)"):
        as_posterior(NoIndices())


def test_a_gradient_says_what_it_needs_and_what_else_would_do():
    with pytest.raises(
        TypeError, match=r"^gradient=Minibatch\(\) needs .* rows .*Ellipse has no n"
    ):
        Minibatch().bind(as_posterior(Ellipse()))
    with pytest.raises(TypeError, match="CustomPosterior has no n_samples, log_likelihood"):
        Minibatch().bind(CustomPosterior(Ellipse()))
    with pytest.raises(TypeError, match=r"local rows .*NormalMean has no bind_batches.*order=1"):
        skbayes_sgld.sample(NormalMean(), gradient="control_variate", batch_size=5)
    with pytest.raises(ValueError, match=r"^sampler=SGLD\(\) requires 'rowz', which is no ability"):
        require(as_posterior(Ellipse()), "rowz", "sampler", SGLD(), "")


def test_every_ability_has_a_default_or_an_error_that_names_it():
    posterior = as_posterior(Ellipse())
    for ability in set(MEMBERS) - posterior.abilities:
        assert posterior.lacks(ability)
        with pytest.raises(TypeError, match="Ellipse has no"):
            require(posterior, ability, "sampler", "x", "y")
        for member in MEMBERS[ability]:
            default = "reported" if ability == "constrain" else member
            assert hasattr(BasePosterior, default), f"{ability}: {member} has no default"


def test_nothing_below_the_boundary_asks_a_model_what_it_has():
    root, found = Path(skbayes_sgld.__file__).parent, []
    for path in [
        p for part in ("posterior", "sampling", "inference") for p in root.rglob(f"{part}/**/*.py")
    ]:
        if path.name == "boundary.py":
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                about = ast.unparse(node.args[0]) if node.args else ""
                if node.func.id in ("hasattr", "getattr") and (
                    "posterior" in about or "model" in about
                ):
                    found.append(f"{path.name}: {ast.unparse(node)}")
    assert found == []


def test_names_have_a_default_and_a_class_is_not_an_instance():
    class Unnamed:
        n_params = 2
        log_density, grad, mean, sd = Ellipse.log_density, Ellipse.grad, Ellipse.mean, Ellipse.sd

    assert as_posterior(Unnamed()).param_names == ["theta[0]", "theta[1]"]
    with pytest.raises(TypeError, match="is a class; give an instance"):
        skbayes_sgld.sample(Unnamed)
    with pytest.raises(ValueError, match="batch_size=3 needs a posterior with rows.*'auto'"):
        skbayes_sgld.sample(Unnamed(), batch_size=3)


def test_a_subclass_may_find_out_for_itself_whether_it_has_several_modes():
    class Several(CustomPosterior):
        facts = property(lambda self: Facts(multimodal=self.n_params > 1))

    assert Several(Ellipse()).facts.multimodal
    assert not CustomPosterior(Ellipse()).facts.multimodal

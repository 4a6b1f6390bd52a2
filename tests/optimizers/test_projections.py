"""Projections: the nearest point in any metric, and the constrained mode at the path's end."""

import warnings
from functools import cache

import numpy as np
import pytest
from scipy import linalg, optimize
from sklearn.exceptions import ConvergenceWarning

from skbayes_sgld import SGDMAPClassifier, SGDMAPRegressor
from skbayes_sgld._components import resolve
from skbayes_sgld.optimizers import OPTIMIZERS, PROJECTIONS, Ball, Box
from skbayes_sgld.optimizers.projections import BoundProjection
from tests.references.modes import point, task

SETS = {
    "box": Box(low=-0.2, high=0.3),
    "half-open box": Box(low=[-np.inf, 0.0, -0.1, -np.inf], high=[0.2, np.inf, 0.5, np.inf]),
    "ball": Ball(radius=0.5),
    "ball elsewhere": Ball(radius=0.5, center=[1.0, 0.0, -1.0, 0.2]),
}
D, P = 4, 6


C = 40


def check_projection(name, n_coef=3):
    """Raise where the projection of this name is not the nearest point of a convex set."""
    projection = resolve(name, PROJECTIONS, "projection")
    projection.check_size(n_coef)
    rng = np.random.default_rng(0)
    coef = 3.0 * rng.standard_normal((C, n_coef))
    near = projection.nearest(coef)
    members = projection.nearest(3.0 * rng.standard_normal((C, n_coef)))
    for inside in (near, 0.5 * (members + members[::-1]), 0.3 * members + 0.7 * near):
        np.testing.assert_allclose(projection.nearest(inside), inside, atol=1e-9, err_msg="convex")
    # no member is in the direction that was cut off (which is what makes a point the nearest)
    beyond = np.einsum("cd,cmd->cm", coef - near, members[None] - near[:, None])
    assert beyond.max() < 1e-9, "a member is nearer"
    outside = (near != coef).any(axis=1)
    assert outside.any(), "nothing is outside"
    correlated = np.linalg.cholesky(linalg.toeplitz(0.5 ** np.arange(n_coef)))
    for root in (correlated, np.diag(np.linspace(0.5, 2.0, n_coef))):
        for size in (1e-8, 1.0, 1e8):  # the units of the metric do not matter
            check_shortest(projection, coef[outside], members, size * root, size)


def check_shortest(projection, outside, members, root, size):
    """The move ends in the set, and no member is nearer in the metric."""
    roots = np.broadcast_to(root, (len(outside), *root.shape))
    y, reached = projection.shortest(outside, roots)
    np.testing.assert_allclose(outside + y @ root.T, reached, atol=1e-7)
    np.testing.assert_allclose(projection.nearest(reached), reached, atol=1e-9)
    ways = (members[None] - reached[:, None]) @ np.linalg.inv(root).T
    assert np.einsum("cd,cmd->cm", -y, ways).max() < 1e-6 / size**2, (
        "a member is nearer in the metric"
    )


def metric_roots(n_chains):
    """Roots of metrics, no two alike, with correlations."""
    A = np.random.default_rng(1).standard_normal((n_chains, P, P))
    return np.linalg.cholesky(A @ A.swapaxes(1, 2) / P + 0.05 * np.eye(P))


# ---- the nearest point ------------------------------------------------------------------------


@pytest.mark.parametrize("name", PROJECTIONS)
def test_a_projection_is_the_nearest_point_of_a_convex_set(name):
    check_projection(name)


@pytest.mark.parametrize("name", SETS)
def test_a_set_of_any_place_and_size_has_its_nearest_points(name):
    check_projection(SETS[name], n_coef=D)


@pytest.mark.parametrize("name", ["box", "ball"])
def test_points_inside_stay_and_chains_do_not_depend_on_each_other(name):
    theta = 2.0 * np.random.default_rng(3).standard_normal((6, P))
    root, project = metric_roots(6), BoundProjection(SETS[name], D)
    found = project(theta, root)
    np.testing.assert_array_equal(project(found, root), found)
    for c in range(6):
        alone = project(theta[c : c + 1], root[c])
        np.testing.assert_allclose(alone[0], found[c], rtol=1e-12, atol=1e-14)


# ---- the constrained mode ---------------------------------------------------------------------

CASES = {
    "rookies, box": (SGDMAPClassifier, "nba", Box(low=-0.1, high=0.3)),
    "rookies, ball": (SGDMAPClassifier, "nba", Ball(radius=0.3)),
    "diabetes, box": (SGDMAPRegressor, "diabetes", Box(high=0.25)),
    "diabetes, ball": (SGDMAPRegressor, "diabetes", Ball(radius=0.4)),
    "lecture, box": (SGDMAPRegressor, "short lecture", Box(high=0.85)),
}


@cache
def data_of(name):
    X, y = task(*CASES[name][:2])
    if name.startswith("diabetes"):
        return X / X.std(axis=0), (y - y.mean()) / y.std()
    return X, y


def negative_log_posterior(name):
    """Mode, under the default priors and with its gradient, by hand."""
    X, y = data_of(name)
    n, d = X.shape
    A, sign, phi, psi = np.column_stack([X, np.ones(n)]), 2.0 * y - 1.0, 1e-3, 1e-3 * y.var()
    shrink = np.r_[np.full(d, 1.0 if CASES[name][0] is SGDMAPClassifier else 0.01), 0.0]

    def logistic(theta):
        margin = sign * (A @ theta)
        value = np.logaddexp(0.0, -margin).sum() + 0.5 * shrink @ theta**2
        return value, shrink * theta - A.T @ (sign / (1.0 + np.exp(margin)))

    def normal(theta):
        beta, gamma = theta[:-1], theta[-1]
        residual, weight = y - A @ beta, phi + 0.5 * (n + d)
        total = 0.5 * (residual @ residual + shrink @ beta**2) + psi
        slope = (shrink * beta - A.T @ residual) * np.exp(-gamma)
        value = weight * gamma + total * np.exp(-gamma)
        return value, np.r_[slope, weight - total * np.exp(-gamma)]

    return logistic if CASES[name][0] is SGDMAPClassifier else normal


def scipys_constraints(projection, n_params, d):
    """The set as scipy's minimisers take it."""
    if isinstance(projection, Box):
        low, high = (np.broadcast_to(b, d) for b in (projection.low, projection.high))
        free = np.full(n_params - d, np.inf)
        return {"bounds": optimize.Bounds(np.r_[low, -free], np.r_[high, free])}
    center = np.broadcast_to(projection.center, d)

    def room(theta):
        return projection.radius**2 - np.sum((theta[:d] - center) ** 2)

    def slope(theta):
        return np.r_[-2.0 * (theta[:d] - center), np.zeros(n_params - d)]

    return {"constraints": {"type": "ineq", "fun": room, "jac": slope}}


@cache
def constrained_mode(name):
    """Mode in the set by scipy, and the sds of the posterior without it."""
    loss, d = negative_log_posterior(name), data_of(name)[0].shape[1]
    n_params = d + 1 + (CASES[name][0] is SGDMAPRegressor)
    settings = {"jac": True, "method": "SLSQP", "options": {"ftol": 1e-13, "maxiter": 2000}}
    set_ = scipys_constraints(CASES[name][2], n_params, d)
    # where scipy's line search tries a step that is too long, and its older ones leave the bounds
    # by a rounding error
    with np.errstate(over="ignore"), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Values in x were outside bounds", RuntimeWarning)
        inside = optimize.minimize(loss, np.zeros(n_params), **settings, **set_)
        mode = optimize.minimize(loss, np.zeros(n_params), **settings).x
    slopes = [loss(mode + h)[1] - loss(mode - h)[1] for h in 1e-5 * np.eye(n_params)]
    return inside.x, np.sqrt(np.diag(np.linalg.inv(slopes)) * 2e-5)


def errors(fit, name):
    """Distance of the parameters from the constrained mode, in sds."""
    mode, sd = constrained_mode(name)
    return (point(fit) - mode) / sd


@pytest.mark.parametrize(
    ("optimizer", "name"),
    [
        *(("sgd", name) for name in CASES),
        *((rule, "diabetes, ball") for rule in OPTIMIZERS if rule not in ("newton", "sgd")),
    ],
)
def test_every_rule_comes_to_rest_at_the_constrained_mode(optimizer, name):
    model, _, projection = CASES[name]
    fit = model(optimizer=optimizer, projection=projection, preconditioner="curvature")
    fit.set_params(random_state=0).fit(*data_of(name))
    # tol=0.1 is in sds of the posterior about the constrained mode, up to twice as wide
    assert np.sqrt(np.mean(errors(fit, name) ** 2)) < 0.2


@pytest.mark.parametrize(
    ("optimizer", "name"), [*(("gd", name) for name in CASES), ("svrg", "rookies, box")]
)
def test_rules_without_noise_reach_it_to_the_digits_that_scipy_gives(optimizer, name):
    model, _, projection = CASES[name]
    settings = {"tol": 1e-6, "preconditioner": "curvature", "random_state": 0}
    fit = model(optimizer=optimizer, projection=projection, **settings).fit(*data_of(name))
    assert np.abs(errors(fit, name)).max() < 1e-3
    mode, d = constrained_mode(name)[0], fit.n_features_in_
    if isinstance(projection, Box):
        for bound in (projection.low, projection.high):  # to the last bit
            held = np.ravel(fit.coef_) == bound
            np.testing.assert_array_equal(held, np.abs(mode[:d] - bound) < 1e-6)
    else:
        assert np.linalg.norm(fit.coef_) == pytest.approx(projection.radius, rel=1e-14)


@pytest.mark.parametrize("name", ["rookies, ball", "diabetes, box"])
def test_every_point_of_the_path_and_every_draw_is_in_the_set(name):
    model, _, projection = CASES[name]
    fit = model(projection=projection, average=3, random_state=0).fit(*data_of(name))
    d = fit.n_features_in_
    for coef in (fit.coef_path_, fit.posterior_.flat[:, :d]):
        inside = projection.nearest(coef)
        np.testing.assert_allclose(coef, inside, rtol=1e-12, atol=1e-15)


# ---- closed forms -----------------------------------------------------------------------------

LINEAR = {"prior": "flat", "noise_variance": 0.5, "fit_intercept": False, "optimizer": "gd"}


def test_a_bound_far_outside_of_the_posterior_is_reached():
    X, y = task(SGDMAPRegressor, "lecture")  # the slope is 0.9, and its sd 0.004
    model = SGDMAPRegressor(projection=Box(high=0.3), optimizer="gd", tol=1e-6)
    fit = model.fit(X, y)
    rest = y - 0.3 * X[:, 0]
    total = np.sum((rest - rest.mean()) ** 2) + 0.01 * 0.3**2 + 2e-3 * y.var()
    assert fit.coef_[0] == 0.3
    assert fit.intercept_ == pytest.approx(rest.mean(), abs=1e-6)
    assert fit.noise_variance_ == pytest.approx(total / (len(y) + 1 + 2e-3), rel=1e-6)


def test_without_a_preconditioner_it_is_plain_projected_gradient_descent():
    X, y = data_of("diabetes, box")
    settings = {"preconditioner": None, "schedule": "constant", "step_size": 1e-4, "tol": 0.0}
    model = SGDMAPRegressor(projection=Box(-0.01, 0.05), max_iter=50, **{**LINEAR, **settings})
    with pytest.warns(ConvergenceWarning):
        model.fit(X, y)
    beta = np.zeros(X.shape[1])
    for t in range(51):
        np.testing.assert_allclose(model.coef_path_[t], beta, rtol=1e-9, atol=1e-12)
        beta = np.clip(beta + 1e-4 * X.T @ (y - X @ beta) / 0.5, -0.01, 0.05)
    assert {-0.01, 0.05} < set(model.coef_)


# ---- what is refused --------------------------------------------------------------------------

REFUSED = [
    (Box(low=1.0, high=0.0), r"projection\.low=1\.0 and projection\.high=0\.0 leave"),
    (Box(low=np.inf), r"projection\.low=inf and .* leave nothing"),
    (Box(high=[0.1, np.nan, 1.0]), r"projection\.high has .* must be finite"),
    (Box(low="none"), r"projection\.low='none' is not a number"),
    (Box(low=[0.0, 0.0]), r"projection\.low has shape \(2,\).*vector of 3"),
    (Ball(radius=0.0), r"projection\.radius=0\.0 is out of range.*\(0, inf\)"),
    (Ball(center=[0.0, 0.0]), r"projection\.center has shape \(2,\).*vector of 3"),
]


@pytest.mark.parametrize("projection, message", REFUSED)
def test_sets_that_cannot_be_used_are_refused(projection, message):
    X, y = np.random.default_rng(0).standard_normal((20, 3)), np.arange(20) % 2
    with pytest.raises((ValueError, TypeError), match=message):
        SGDMAPClassifier(projection=projection).fit(X, y)


@pytest.mark.parametrize("name", PROJECTIONS)
def test_more_than_two_classes_are_refused(name):
    X, y = np.random.default_rng(0).standard_normal((30, 3)), np.arange(30) % 3
    with pytest.raises(ValueError, match=rf"projection='{name}' is of one vector.*3 classes"):
        SGDMAPClassifier(projection=name).fit(X, y)

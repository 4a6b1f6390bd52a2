"""The sums over rows that fits take, against differences of sums of the log density."""

import numpy as np

from skbayes_sgld.posterior import GLMPosterior
from skbayes_sgld.priors import InverseGamma, Normal
from tests.likelihoods.known import reference
from tests.numeric import assert_derivative, derivative_by_chain

N, D, CHAINS = 400, 3, 5  # enough numbers for sums in single precision
ROUNDED = 5e-5  # of the largest: a score that is off by a thousandth is not within it


class Table:
    """Rows, weights, offsets and the sum of the log densities, by a loop over nothing but numpy."""

    def __init__(self, name, likelihood, weighted, center):
        rng = np.random.default_rng(3)
        self.likelihood, self.of_row = likelihood, reference(name, likelihood)
        self.X = rng.standard_normal((N, D)) * [1.0, 0.5, 2.0] + [0.3, 0.0, -0.2]
        self.weight = rng.uniform(0.3, 2.0, N) if weighted else None
        self.offset = rng.standard_normal(N) if weighted else None
        K = likelihood.n_predictors
        linear = 0.5 * rng.standard_normal((CHAINS, K, D + 1))
        self.theta = linear.reshape(CHAINS, -1)
        own = 0.3 * rng.standard_normal((CHAINS, len(likelihood.own)))
        self.theta = np.column_stack([self.theta, own])
        self.center = self.X.mean(axis=0) if center else np.zeros(D)
        self.y = np.zeros(N)
        self.y = likelihood.sample(self.local(self.theta[:1]), np.random.RandomState(0))[0] * 1.0
        priors = Normal(2.0), [InverseGamma(2.0, 1.5)] * len(likelihood.own)
        options = {"sample_weight": self.weight, "offset": self.offset, "intercept_at_mean": center}
        self.posterior = GLMPosterior(
            self.X, self.y, likelihood, *priors, intercept_prior=Normal(3.0), **options
        )
        if center and self.weight is not None:
            self.center = np.average(self.X, axis=0, weights=self.weight)

    def local(self, theta, rows=slice(None)):
        """Local parameters ``(C, n_local, B)``."""
        K = self.likelihood.n_predictors
        linear = theta[:, : K * (D + 1)].reshape(len(theta), K, D + 1)
        u = linear[..., :-1] @ (self.X[rows] - self.center).T + linear[..., -1:]
        if self.offset is not None:
            u[:, 0] += self.offset[rows]
        own = theta[:, K * (D + 1) :, None]
        return np.concatenate([u, np.repeat(own, u.shape[2], axis=2)], axis=1)

    def value(self, theta, rows=slice(None)):
        """Log likelihood of some rows ``(C,)``."""
        u = self.local(theta, rows)
        y = np.broadcast_to(self.y[rows], (len(theta), u.shape[2]))
        w = np.ones(N) if self.weight is None else self.weight
        return self.of_row(u, y) @ w[rows]

    def grad(self, theta, rows=slice(None)):
        """Gradient ``(C, P)`` by differences."""
        return derivative_by_chain(lambda at: self.value(at, rows), theta, h=1e-4, at_once=True)


def check_of_fits(name, likelihood):
    """Raise where a sum over rows that a fit takes is not that of the log density."""
    for weighted in (False, True):
        table = Table(name, likelihood, weighted, center=weighted)
        posterior, theta = table.posterior, table.theta
        prior = posterior.grad_log_prior(theta)
        value = table.value(theta) + posterior.log_prior(theta)
        grad = table.grad(theta) + prior
        check_sums(posterior, theta, value, grad)
        check_batches(table)
        check_curvature(table)
        check_given_own(table)


def check_sums(posterior, theta, value, grad):
    """Values and gradients of all rows, as the bound functions of both precisions have them."""
    size = np.abs(value).max()
    for what, form, rtol, of_value in (
        ("", posterior, 1e-7, 1e-9 * size),
        (" in float32", posterior.rounded(density=True), ROUNDED, 1e-6 * size),
    ):
        found, slope = form.bind_value_and_grad()(theta)
        for each in (found, form.bind_log_density()(theta)):
            apart = each - each[0] - (value - value[0])
            of = f"bound log density{what}, by log_density or the kernel"
            assert_derivative(apart, 0.0 * apart, of, rtol=of_value)
        for gradient in (slope, form.bind_grad()(theta)):
            of = f"bound gradient{what}, by score or the kernel"
            assert_derivative(gradient, grad, of, rtol=rtol)


def check_batches(table):
    """Gradients of batches, which are gathered and bound."""
    idx = np.random.default_rng(4).integers(0, N, (2, CHAINS, 20))
    bound = table.posterior.bind_batches(CHAINS, 20)
    for t, batch in enumerate(bound.gather(idx)):
        by_chain = [
            table.grad(theta[None], at)[0] for theta, at in zip(table.theta, idx[t], strict=True)
        ]
        found = bound.gradient(table.theta, batch)
        assert_derivative(found, np.array(by_chain), "bound batch", rtol=1e-7)


def check_curvature(table):
    """The expansion that the search for the mode and the metric take."""
    at = table.theta[1]
    expected = -derivative_by_chain(table.grad, at[None], h=1e-3, at_once=True)[0]
    found = table.posterior.expand_likelihood(at)
    # of differences of differences
    assert_derivative(found.curvature, expected, "curvature", rtol=2e-5)
    assert_derivative(found.grad, table.grad(at[None])[0], "expanded gradient", rtol=ROUNDED)
    np.testing.assert_allclose(
        found.value, table.value(at[None])[0], rtol=ROUNDED, err_msg="expanded value"
    )


def check_given_own(table):
    """The likelihood where its own parameters are known, as a function of the others."""
    theta, n_own = table.theta.copy(), len(table.likelihood.own)
    if not n_own:
        return
    theta[:, -n_own:] = theta[0, -n_own:]
    given = table.posterior.given_own(theta[0, -n_own:]).row_sum()
    value, grad = given.value_and_grad(theta[:, :-n_own])
    exact = table.value(theta)
    assert_derivative(value - value[0], exact - exact[0], "value given own parameters")
    assert_derivative(grad, table.grad(theta)[:, :-n_own], "gradient given own parameters")
    curvature = table.posterior.expand_likelihood(theta[0]).curvature[:-n_own, :-n_own]
    found = given.expand(theta[0, :-n_own]).curvature
    assert_derivative(found, curvature, "curvature given own parameters")

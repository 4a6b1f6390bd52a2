"""The functions of a likelihood that fits call, against differences of its log density."""

import numpy as np
from scipy import optimize, special, stats

from skbayes_sgld.likelihoods import LabelLikelihood
from skbayes_sgld.posterior import GLMPosterior
from skbayes_sgld.priors import InverseGamma, Normal
from tests.numeric import assert_derivative, derivative_by_chain

N, D, CHAINS = 400, 3, 5  # enough numbers for sums in single precision
ROUNDED = 5e-5  # of the largest: a score that is off by a thousandth is not within it


def _categorical(u, y):
    shares = special.softmax(u, axis=1)
    return np.log(np.take_along_axis(shares, y.astype(int)[:, None], axis=1)[:, 0])


def _beta_binomial(u, y):
    p, r = special.expit(u[:, 0]), np.exp(-u[:, 1])
    return stats.betabinom.logpmf(y, 1, p * r, (1.0 - p) * r)


def _negative_binomial(u, y):
    r, odds = np.exp(-u[:, 1]), u[:, 0] + u[:, 1]  # scipy's has no digits of small odds
    ways = special.gammaln(y + r) - special.gammaln(r) - special.gammaln(y + 1.0)
    return ways + y * odds - (y + r) * np.logaddexp(0.0, odds)


def _ordinal(u, y):
    cut_points = np.cumsum(np.concatenate([np.zeros_like(u[:, :1]), np.exp(u[:, 1:])], 1), axis=1)
    ends = np.pad(cut_points, ((0, 0), (1, 1), (0, 0)), constant_values=np.inf) - u[:, :1]
    ends[:, 0] = -np.inf
    code = y.astype(int)[:, None]
    low, high = (np.take_along_axis(ends, code + k, axis=1)[:, 0] for k in (0, 1))
    upper = low + np.minimum(high, 1e9) > 0  # by the smaller tails, whose digits are not lost
    near, far = np.where(upper, (low, high), (-high, -low))
    larger, smaller = stats.logistic.logsf(near), stats.logistic.logsf(far)
    return larger + np.log(-np.expm1(smaller - larger))


# log densities (C, B) of y (C, B) at u (C, n_local, B), of scipy's distributions
KNOWN = {
    "gaussian": lambda u, y: stats.norm.logpdf(y, u[:, 0], np.exp(0.5 * u[:, 1])),
    "heteroscedastic_gaussian": lambda u, y: stats.norm.logpdf(y, u[:, 0], np.exp(0.5 * u[:, 1])),
    "fixed_gaussian": lambda u, y: stats.norm.logpdf(y, u[:, 0], 1.0),
    "bernoulli": lambda u, y: stats.bernoulli.logpmf(y, special.expit(u[:, 0])),
    "beta_binomial": _beta_binomial,
    "binomial": lambda u, y: stats.binom.logpmf(y, 1, special.expit(u[:, 0])),
    "categorical": _categorical,
    "gamma": lambda u, y: stats.gamma.logpdf(y, np.exp(-u[:, 1]), scale=np.exp(u[:, 0] + u[:, 1])),
    "negative_binomial": _negative_binomial,
    "ordinal": _ordinal,
    "student_t": lambda u, y: stats.t.logpdf(y, np.exp(u[:, 2]), u[:, 0], np.exp(0.5 * u[:, 1])),
    "poisson": lambda u, y: stats.poisson.logpmf(y, np.exp(u[:, 0])),
}


def reference(name, likelihood):
    """Log density by scipy; of a new member its own, whose mass and moments are checked too."""
    return KNOWN.get(name, likelihood.log_density)


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
        options = {"sample_weight": self.weight, "offset": self.offset, "center": center}
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
        return derivative_by_chain(lambda at: self.value(at, rows), theta, h=1e-4)


def check_in_fits(name, likelihood):
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
        apart = found - found[0] - (value - value[0])
        assert_derivative(apart, 0.0 * apart, f"bound log density{what}", rtol=of_value)
        for gradient in (slope, form.bind_grad()(theta)):
            assert_derivative(gradient, grad, f"bound gradient{what}", rtol=rtol)


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
    expected = -derivative_by_chain(table.grad, at[None], h=1e-3)[0]
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


# ---- what a likelihood says of itself ------------------------------------------------------------


def wide(likelihood, reach, seed=6):
    """Local parameters ``(1, n_local, B)`` over a wide range, and observations beside them."""
    rng = np.random.default_rng(seed)
    u = rng.uniform(-reach, reach, (1, likelihood.n_local, 4000))
    some = 0.3 * u + rng.standard_normal(u.shape)
    if likelihood.whole:
        some = np.minimum(some, 4.0)
    return u, likelihood.sample(some, np.random.RandomState(seed))[0].astype(float)


def check_shape(name, likelihood):
    """Raise where the curvature is not of the sign, or of the size, that is promised.

    A posterior under a log-concave prior is taken for log-concave, so that a likelihood must be
    so in its predictors.
    """
    K = likelihood.n_predictors
    of_row = reference(name, likelihood)
    u, y = wide(likelihood, 8.0)
    direction = np.random.default_rng(7).standard_normal((1, K, u.shape[2]))
    direction /= np.linalg.norm(direction, axis=1, keepdims=True)
    step = np.zeros_like(u)
    step[:, :K] = 0.02 * direction
    with np.errstate(invalid="ignore"):  # where all three densities are 0, nothing is said
        bend = of_row(u + step, y[None]) - 2.0 * of_row(u, y[None]) + of_row(u - step, y[None])
    scale = np.abs(of_row(u, y[None])) * 1e-14
    concave = not np.any(bend > 4.0 * scale + 1e-15)
    assert concave or not likelihood.log_concave, "the log density is not concave in the predictors"
    assert likelihood.log_concave or not concave, "the log density is concave: log_concave=True"
    largest = []
    for reach in (5.0, 10.0):
        u, y = wide(likelihood, reach)
        H = likelihood.curvature(u, y)[0]
        largest.append(np.abs(np.linalg.eigvalsh(np.moveaxis(H, 2, 0))).max())
    bounded = largest[1] < 3.0 * largest[0]
    said = likelihood.bounded_curvature
    assert bounded == said, f"bounded_curvature={said}, and it grows by {largest[1] / largest[0]:g}"


def check_link(name, likelihood):
    """Raise where predictions overflow, and no error would name what to check."""
    with np.errstate(all="ignore"):
        mean = likelihood.mean(np.full((1, likelihood.n_local, 1), 800.0))
    assert likelihood.log_link or np.isfinite(mean).all(), "log_link is empty, and means overflow"


def check_increasing(name, likelihood):
    """Raise where the mean does not increase with the predictor alone, as is promised."""
    if not likelihood.increasing:
        return
    eta = np.linspace(-8.0, 8.0, 161)
    mean = likelihood.mean(eta[None, None])  # without own parameters, as predictions call it
    assert np.all(np.diff(mean) > 0), "increasing=True, and the mean does not increase"


def check_start(name, likelihood):
    """Raise where the search for the mode begins far below the best constant predictor."""
    of_row = reference(name, likelihood)
    rng = np.random.default_rng(8)
    weight = rng.uniform(0.5, 2.0, 300)
    for level in (-1.5, 0.0, 2.0):
        u = np.zeros((1, likelihood.n_local, 300))
        u[:, 0] = level
        y = likelihood.sample(u, np.random.RandomState(1))[0].astype(float)

        def mean_value(local, y=y):
            return of_row(np.repeat(local[None, :, None], 300, axis=2), y[None])[0] @ weight / 300

        start = likelihood.start(y, weight, True)
        best = optimize.minimize(lambda local: -mean_value(local), start).fun
        # equal probabilities of all classes cost at most the log of their number
        most = np.log(likelihood.n_classes) if isinstance(likelihood, LabelLikelihood) else 0.01
        worse = -best - mean_value(start)
        assert worse <= most * weight.mean() + 1e-9, f"a start that is {worse:.3g} nats a row worse"
        times = rng.integers(1, 4, 300)  # a weight of w counts as w rows
        repeated = likelihood.start(np.repeat(y, times), None, True)
        weighted = likelihood.start(y, times.astype(float), True)
        np.testing.assert_allclose(weighted, repeated, rtol=1e-3, atol=1e-3)
        bare = likelihood.start(y, weight, False)
        assert not bare[: likelihood.n_predictors].any(), "predictors without a level are zero"


def accepts(likelihood, y):
    """Whether the observations are ones that the likelihood can have."""
    try:
        likelihood.check_target(y)
    except ValueError:
        return False
    return True


def check_level(name, likelihood):
    """Raise where the tails of an intercept are not those that are promised."""
    of_row, K = reference(name, likelihood), likelihood.n_predictors
    weight = np.array([0.5, 1.0, 2.0, 0.25])
    samples = [[0.0] * 4, [1.0] * 4, [0.0, 1.0, 0.0, 0.0], [1.0, 1.0, 0.0, 1.0]]
    if isinstance(likelihood, LabelLikelihood) and likelihood.n_classes > 2:
        samples += [[0.0, 1.0, 2.0, 1.0], [2.0] * 4]
    if likelihood.whole and not accepts(likelihood, np.zeros(4)):  # counts of at least 1
        samples = np.array(samples) + 1.0
    if not (likelihood.whole or isinstance(likelihood, LabelLikelihood)):
        at_zero = np.zeros((3, likelihood.n_local, 4))
        samples = likelihood.sample(at_zero, np.random.RandomState(2))
    for y in map(np.array, samples):
        falls = []
        for direction in np.vstack([np.eye(K), -np.eye(K)]):
            at = []
            for far in (30.0, 31.0):
                u = np.zeros((1, likelihood.n_local, 4))
                u[0, :K] = far * direction[:, None]
                at.append(float(of_row(u, y[None])[0] @ weight))
            falls.append(at[0] - at[1])
        held = likelihood.level_weight(y, weight)
        free = min(falls) < 1e-6
        without = likelihood.level_weight(y) == 0.0
        assert without == free, "level_weight without weights is not that of the tail"
        if np.isfinite(held):
            assert abs(min(falls) - held) < 1e-6, "level_weight is not the slope of the tail"
        else:
            least = 10.0 if likelihood.log_concave else 0.0  # where it falls like a power
            assert min(falls) > least, "level_weight is not the slope of the tail"


def check_gains(name, likelihood):
    """Raise where a row goes to 0 along a direction of which its gains say otherwise."""
    rng, of_row, K = np.random.default_rng(9), reference(name, likelihood), likelihood.n_predictors
    u, y = wide(likelihood, 1.0)
    design = rng.standard_normal((40, 3))
    if likelihood.gains(design, y[:40]) is None:
        here = u[..., :40]  # the parameters that the observations were drawn under
        there = here.copy()
        there[:, 0] += rng.choice([-200.0, 200.0], 40)
        with np.errstate(over="ignore"):
            falls = of_row(there, y[None, :40]) < of_row(here, y[None, :40])
        near = np.abs(y[:40] - here[0, 0]) < 100.0  # of heavy tails, some are nearer to there
        assert falls[0, near].all(), "rows that do not fall have no gains"
        return
    for i in range(40):
        gains = likelihood.gains(design[i : i + 1], y[i : i + 1])
        for _ in range(4):
            v, way = rng.standard_normal(K * 3), np.zeros(likelihood.n_local)
            way[:K] = v.reshape(K, 3) @ design[i]
            way /= np.abs(way).max()
            path = u[0, :, i, None] + way[:, None] * np.linspace(0.0, 30.0, 61)
            with np.errstate(all="ignore"):  # beyond the range of numbers there is no difference
                change = np.diff(of_row(path[None], np.full((1, 61), y[i]))[0])
            rises, settles = not np.any(change < -1e-12), not np.any(change[-4:] < -1e-9)
            held = bool(np.all(gains @ v >= 0.0))
            assert held == (rises or settles), "gains are not what they say"


def check_averaged(name, likelihood):
    """Raise where averages over normal errors are not those of quadrature, nearly."""
    if not likelihood.averages:
        return
    nodes, share = np.polynomial.hermite_e.hermegauss(80)
    share = share / share.sum()
    u, y = np.linspace(-4.0, 4.0, 17), np.tile([0.0, 1.0], 17)
    u = np.repeat(u, 2)
    for variance in (1e-5, 0.01, 0.5, 4.0):
        score, bend = likelihood.error_averaged(u, np.full(len(u), variance), y)
        moved = (u[None] + np.sqrt(variance) * nodes[:, None])[:, None]
        expected = share @ likelihood.score(moved, y)[:, 0]
        np.testing.assert_allclose(score, expected, atol=0.025, err_msg="averaged score")
        expected = share @ likelihood.curvature(moved, y)[:, 0, 0]
        np.testing.assert_allclose(bend, expected, atol=0.025, err_msg="averaged curvature")
        if variance == 1e-5:  # which hardly changes anything
            exact = likelihood.score(u[None, None], y)[0, 0]
            np.testing.assert_allclose(score, exact, atol=1e-3, err_msg="averaged score")

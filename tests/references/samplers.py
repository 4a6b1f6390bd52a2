"""References by simulation: importance sampling, Hamiltonian Monte Carlo, Gibbs."""

from __future__ import annotations

import numpy as np
from scipy import linalg, special

from .closed_forms import weighted_draws
from .references import Reference, from_draws, variance_of

# Between the halves of a run, the worst parameter; their mean is off by about half of it.
MEAN_TOLERANCE, SD_TOLERANCE = 0.05, 0.04


# ---- logistic and softmax models ---------------------------------------------------------------


class Classification:
    """The log density of (coefficients, intercepts) on standardised columns.

    ``theta (C, P)`` is class by class for softmax. The common shift of the classes that neither
    data nor prior see is given a normal density; the parameters reported do not depend on it.
    """

    def __init__(self, problem):
        self.problem, self.K = problem, 1 if problem.n_classes == 2 else problem.n_classes
        self.unit = np.sqrt(np.mean(problem.centred**2, axis=0))
        self.unit[self.unit == 0] = 1.0  # a constant column
        self.A = problem.centred / self.unit
        if problem.fit_intercept:
            self.A = np.column_stack([self.A, np.ones(len(self.A))])
        self.d, self.width = problem.X.shape[1], self.A.shape[1]
        self.P = self.K * self.width
        self.scale, self.location = problem.scale * self.unit, problem.location * self.unit
        self.pin = np.zeros(self.width)
        if self.K > 1:
            self.pin[self.d :] = problem.weight.sum() / self.K
            if problem.prior.family == "flat":
                self.pin[: self.d] = problem.weight.sum() / self.K
            observed = problem.y[:, None] == np.arange(self.K)
            self.observed = (observed * problem.weight[:, None]).T
        else:
            self.observed = (problem.y * problem.weight)[None]

    def __call__(self, theta, value=True):
        """Log density ``(C,)`` (None unless asked for) and gradient ``(C, P)``."""
        linear = theta.reshape(len(theta), self.K, self.width)
        eta = (linear.reshape(-1, self.width) @ self.A.T).reshape(len(theta), self.K, -1)
        log_p = None
        if self.K == 1:
            p = 0.5 + 0.5 * np.tanh(0.5 * eta)
            if value:
                log_p = np.einsum("ckn,kn->c", eta, self.observed)
                log_p -= (np.maximum(eta, 0) + np.log1p(np.exp(-np.abs(eta))))[
                    :, 0
                ] @ self.problem.weight
        else:
            top = eta.max(1, keepdims=True)
            p = np.exp(eta - top)
            norm = p.sum(1, keepdims=True)
            p /= norm
            if value:
                log_p = np.einsum("ckn,kn->c", eta, self.observed)
                log_p -= (np.log(norm) + top)[:, 0] @ self.problem.weight
        residual = self.observed - p * self.problem.weight
        grad = (residual.reshape(-1, len(self.A)) @ self.A).reshape(linear.shape)
        prior, in_prior = self._prior(linear[..., : self.d])
        grad[..., : self.d] += in_prior
        if self.K > 1:
            shift = linear.sum(1)
            grad -= (self.pin * shift)[:, None]
            if value:
                log_p = log_p - 0.5 * (self.pin * shift**2).sum(1)
        tau = self.problem.temperature
        return (log_p + prior) / tau if value else None, grad.reshape(theta.shape) / tau

    def _prior(self, coef):
        z, prior = (coef - self.location) / self.scale, self.problem.prior
        if prior.family == "flat":
            return 0.0, np.zeros_like(coef)
        if prior.family == "normal":
            return -0.5 * (z**2).sum((1, 2)), -z / self.scale
        if prior.family == "laplace":
            return -np.abs(z).sum((1, 2)), -np.sign(z) / self.scale
        df = 1.0 if prior.family == "cauchy" else prior.df
        value = -(df + 1) / 2 * np.log1p(z**2 / df).sum((1, 2))
        return value, -(df + 1) * z / (df + z**2) / self.scale

    def hessian(self, theta):
        """Minus the Hessian at ``theta (P,)``, a normal prior standing for any other."""
        linear = theta.reshape(self.K, self.width)
        eta, w = linear @ self.A.T, self.problem.weight
        p = special.expit(eta) if self.K == 1 else special.softmax(eta, axis=0)
        H = np.zeros((self.K, self.width, self.K, self.width))
        for a in range(self.K):
            for b in range(self.K):
                local = w * p[a] * ((a == b) - p[b])
                H[a, :, b] = (self.A * local[:, None]).T @ self.A
                H[a, :, b] += np.diag(self.pin)
            if self.problem.prior.family != "flat":
                j = np.arange(self.d)
                H[a, j, a, j] += 1 / self.scale**2
        return H.reshape(self.P, self.P) / self.problem.temperature

    def laplace_fit(self):
        """Mode and covariance, by Newton's method (under the normal prior)."""
        theta, step = np.zeros(self.P), np.inf
        surrogate = self.problem.prior.family not in ("normal", "flat")
        for _ in range(200):
            grad = self(theta[None])[1][0]
            if surrogate:
                coef = theta.reshape(1, self.K, self.width)[..., : self.d]
                change = (self.location - coef) / self.scale**2 - self._prior(coef)[1]
                grad = grad.reshape(self.K, self.width).copy()
                grad[:, : self.d] += change[0] / self.problem.temperature
                grad = grad.ravel()
            H = self.hessian(theta)
            step = linalg.solve(H, grad, assume_a="pos")
            size = np.sqrt(step @ H @ step)
            theta = theta + step / max(1.0, size / 2)
            if size < 1e-8:
                break
        return theta, np.linalg.inv(self.hessian(theta))

    def constrain(self, theta):
        """Parameters that users see ``(S, P)``."""
        linear = theta.reshape(len(theta), self.K, self.width).copy()
        if self.K > 1:
            linear -= linear.mean(1, keepdims=True)
        linear[..., : self.d] /= self.unit
        if self.problem.fit_intercept:
            linear[..., -1] -= linear[..., : self.d] @ self.problem.x_mean
        return linear.reshape(theta.shape)


def importance(problem, n_draws=100_000, df=8, seed=0):
    """Posterior by importance sampling from a multivariate t, refitted twice."""
    target = Classification(problem)
    proposal = target.laplace_fit()
    rng = np.random.default_rng(seed)
    for n in (n_draws // 5, n_draws // 5, n_draws):
        theta, weight = weighted_draws(lambda t: target(t)[0], *proposal, n, df, rng)
        proposal = weight @ theta, np.cov(theta.T, aweights=weight, ddof=0)
    ess = 1 / (weight**2).sum()
    problems = [] if ess > 5000 else [f"the reference has an ESS of {ess:.0f} only"]
    return Reference(
        "importance", f"ESS {ess:,.0f}", *from_draws(target.constrain(theta), weight), problems
    )


def hamiltonian(problem, n_draws=800, n_chains=64, n_warmup=100):
    """Posterior by HMC in whitened coordinates, from two seeds."""
    target = Classification(problem)
    centre, covariance = target.laplace_fit()
    rounds = 0 if target.P > 120 else 4
    halves = []
    for seed in (1, 2):
        rng = np.random.default_rng(seed)
        root, middle = np.linalg.cholesky(covariance), centre
        z, step = 0.3 * rng.standard_normal((n_chains, target.P)), 0.2
        for _ in range(rounds):
            z, step, draws = _run(target, middle, root, z, step, n_warmup, rng, adapt=True)
            theta = middle + z @ root.T
            kept = middle + draws[n_warmup // 3 :].reshape(-1, target.P) @ root.T
            middle, root = kept.mean(0), np.linalg.cholesky(np.cov(kept.T).reshape(target.P, -1))
            z = linalg.solve_triangular(root, (theta - middle).T, lower=True).T
        z, step, _ = _run(target, middle, root, z, step, n_warmup, rng, adapt=True)
        draws = _run(target, middle, root, z, step, n_draws, rng)[2]
        halves.append(target.constrain(middle + draws.reshape(-1, target.P) @ root.T))
    return from_halves("HMC", *halves)


def _run(target, middle, root, z, step, n_steps, rng, adapt=False):
    def density(z, value=True):
        log_p, grad = target(middle + z @ root.T, value)
        return log_p, grad @ root

    draws = np.empty((n_steps, *z.shape))
    log_p, grad = density(z)
    for t in range(n_steps):
        # short and varying steps: a long one turns a normal target by half a circle, again and
        # again, and does not turn back; now and then one short enough for the steepest part
        size = min(step, 0.6) * np.exp(rng.uniform(-1.2, 0.1))
        n_leaps = int(np.clip(np.ceil(rng.uniform(0.6, 1.4) * np.pi / 2 / size), 1, 60))
        speed = rng.standard_normal(z.shape)
        energy = log_p - 0.5 * (speed**2).sum(1)
        new, slope = z, grad
        for leap in range(n_leaps):
            half = speed + 0.5 * size * slope
            new = new + size * half
            new_log_p, slope = density(new, leap == n_leaps - 1)
            speed = half + 0.5 * size * slope
        gain = np.nan_to_num(new_log_p - 0.5 * (speed**2).sum(1) - energy, nan=-np.inf)
        accept = np.log(rng.random(len(z))) < gain
        z = np.where(accept[:, None], new, z)
        log_p, grad = np.where(accept, new_log_p, log_p), np.where(accept[:, None], slope, grad)
        draws[t] = z
        if adapt:
            step *= np.exp((np.minimum(1, np.exp(np.minimum(gain, 0))).mean() - 0.85) * 0.3)
    return z, step, draws


def from_halves(kind, first, second):
    """Reference of both halves of a run, and how well they agree."""
    both = np.concatenate([first, second])
    moments = from_draws(both)
    mean = np.max(np.abs(first.mean(0) - second.mean(0)) / moments[1])
    sd = np.max(np.abs(np.log(first.std(0) / second.std(0))))
    problems = []
    if mean > MEAN_TOLERANCE or sd > SD_TOLERANCE:
        problems = [f"two seeds differ by {mean:.3f} sd, {sd:.1%} in the sd"]
    return Reference(kind, f"2 seeds: {mean:.3f}, {sd:.1%}", *moments, problems)


# ---- linear models with a prior that is a scale mixture of normals -------------------------------


def gibbs(problem, n_draws=2500, n_chains=64):
    """Posterior by Gibbs sampling of the scale mixture, from two seeds.

    Laplace: beta_j | t_j ~ N(mu_j, t_j), t_j ~ Exp(mean 2 b_j^2) (Park & Casella 2008, with b_j
    not in units of the noise). Student's t: t_j ~ IG(df / 2, df s_j^2 / 2).
    """
    assert problem.temperature == 1.0
    halves = [_gibbs(problem, n_draws, n_chains, np.random.default_rng(seed)) for seed in (1, 2)]
    return from_halves("Gibbs", *halves)


def _gibbs(problem, n_draws, n_chains, rng):
    family, d, w = problem.prior.family, problem.X.shape[1], problem.weight
    unit = np.sqrt(np.mean(problem.centred**2, axis=0))
    A, scale = problem.centred / unit, problem.scale * unit
    total = w.sum()
    level = w @ problem.y / total if problem.fit_intercept else 0.0
    target = problem.y - level - problem.centred @ problem.location
    gram, cross, square = (A * w[:, None]).T @ A, A.T @ (w * target), w @ target**2
    shape, rate = None, None
    if problem.variance is None:
        noise = problem.noise
        shape, rate = {
            "inverse_gamma": (noise.shape, noise.scale),
            "flat": (-0.5, 0.0),
        }[noise.family]
        rate = noise.shape * variance_of(problem) if rate is None else rate
    variance = np.full(n_chains, problem.variance or variance_of(problem))
    mixing = np.tile(scale**2, (n_chains, 1))
    kept = np.empty((n_draws, n_chains, d + 2))
    for t in range(-n_draws // 5, n_draws):
        precision = gram / variance[:, None, None]
        precision[:, np.arange(d), np.arange(d)] += 1 / mixing
        root = np.linalg.cholesky(precision)
        half = np.linalg.solve(root, (cross / variance[:, None])[..., None])
        half += rng.standard_normal(half.shape)
        beta = np.linalg.solve(root.swapaxes(1, 2), half)[..., 0]
        size = np.maximum(np.abs(beta), 1e-12 * scale)
        if family == "laplace":
            # 1 / t | beta ~ inverse NormalNoise(1 / (b |beta|), 1 / b^2); t is at least 1e-14 b^2
            inverse = rng.wald(1 / (scale * size), np.broadcast_to(1 / scale**2, size.shape))
            mixing = np.maximum(1 / inverse, 1e-14 * scale**2)
        else:
            df = 1.0 if family == "cauchy" else problem.prior.df
            rate_t = (df * scale**2 + beta**2) / 2
            mixing = rate_t / rng.gamma((df + 1) / 2, size=beta.shape)
        if problem.variance is None:
            rest = square - 2 * beta @ cross + np.einsum("cd,de,ce->c", beta, gram, beta)
            a = shape + (total - problem.fit_intercept) / 2
            variance = (rate + rest / 2) / rng.gamma(a, size=n_chains)
        if t >= 0:
            kept[t, :, :d], kept[t, :, -1] = beta / unit + problem.location, variance
            middle = level + np.sqrt(variance / total) * rng.standard_normal(n_chains)
            kept[t, :, d] = middle - kept[t, :, :d] @ problem.x_mean
    kept = kept.reshape(-1, d + 2)
    columns = [*range(d)] + [d] * problem.fit_intercept + [d + 1] * (problem.variance is None)
    return kept[:, columns]


METHODS = {"importance": importance, "hmc": hamiltonian, "gibbs": gibbs}

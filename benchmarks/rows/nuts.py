"""Effective draws a second, beside NumPyro's No-U-Turn sampler with a dense mass matrix.

Both sides sample the same posterior, which every row checks. Ours is a default fit, and its time
that of the whole `fit`; NUTS has 4 chains, and its time is that of warm-up and draws, with the
compiler's told apart. ESS is the smallest bulk effective sample size of a parameter, by one
function.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from time import perf_counter
from typing import Any

import numpy as np
from scipy.special import expit
from sklearn.base import clone

from benchmarks import _data
from benchmarks._tools import (
    Figure,
    agreement,
    compare,
    interleave,
    rival,
    row,
    smallest_ess,
    within,
)
from skbayes_sgld import (
    SGLDGammaRegressor,
    SGLDLinearRegression,
    SGLDLogisticRegression,
    SGLDPoissonRegressor,
)
from skbayes_sgld.priors import Horseshoe, InverseGamma, Laplace, Normal, StudentT

_FEWEST, _MOST = 3, 15  # fits of ours a round, which take a fraction of the time of theirs
_LIMIT = 600.0  # seconds that a rival may take where it might take hours


class Timed:
    """Rates of a sampler, one a call, and its draws."""

    def __init__(self, sample: Callable[[int], tuple[np.ndarray, float]]) -> None:
        self._sample, self.draws, self.ess = sample, [], []
        self.seconds, self.compiling = [], []

    def __call__(self, seed: int) -> float:
        """ESS a second without the compiler."""
        start = perf_counter()
        draws, compiling = self._sample(seed)
        self.seconds.append(perf_counter() - start - compiling)
        self.compiling.append(compiling)
        self.ess.append(smallest_ess(draws))
        self.draws.append(draws.reshape(-1, draws.shape[2]))
        return self.ess[-1] / self.seconds[-1]


def beside_nuts(
    work: str,
    fit: Callable[[int], object],
    model: tuple,
    rounds: int,
    *,
    at_least: float,
    counted: float | None = None,
    n_draws: int = 1000,
    methods: tuple[str, ...] = ("parallel", "vectorized"),
    dense_mass: bool = True,
    view: Callable[[np.ndarray], np.ndarray] = np.asarray,
) -> Iterator[Figure]:
    """Figures of ESS a second, the faster of the ways to run four chains being the peer.

    Parameters
    ----------
    counted : float or None
        Bound of a second figure, in which the compiler's time counts.
    view : callable
        Takes our draws to the parameters that the model of the peer draws.
    """
    numpyro = rival("numpyro")
    ours = Timed(lambda seed: (view(fit(seed).posterior_.values), 0.0))
    how: dict[str, Any] = {"n_draws": n_draws, "dense_mass": dense_mass}
    theirs = {m: Timed(numpyro.Sampler(model, chain_method=m, **how)) for m in methods}
    ours(1000)
    first = {method: nuts(1000) for method, nuts in theirs.items()}
    best = max(first, key=first.__getitem__)
    nuts = theirs[best]
    compile_seconds = nuts.compiling[0]
    # as long as theirs take, since for half a second a processor that had little to do is slow
    n_ours = int(np.clip(nuts.seconds[0] / ours.seconds[0], _FEWEST, _MOST))
    rates, counting = [], []
    for i in range(rounds):
        mine = [ours(n_ours * i + j) for j in range(n_ours)]
        # the first round's is timed already, without the compiler: some runs take minutes
        other = nuts(i) if i else first[best]
        rates.append((float(np.median(mine)), other))
        counting.append(nuts.ess[-1] / (nuts.seconds[-1] + compile_seconds))
    mine, other = np.transpose(rates)
    a, b = np.concatenate(ours.draws), np.concatenate(nuts.draws)
    about = agreement(a, b, (sum(ours.ess), sum(nuts.ess)))
    ways = ", ".join(f"{m} {rate:.0f} ESS/s" for m, rate in first.items())
    note = (
        f"{about}; ours: {np.median(ours.ess):.0f} ESS in {np.median(ours.seconds):.2f} s, NUTS: "
        f"{np.median(nuts.ess):.0f} in {np.median(nuts.seconds):.2f} s, after {compile_seconds:.1f}"
        f" s of compiling; its chains: {ways}"
    )
    work, peer = f"{work}, ESS/s", "NUTS dense" if dense_mass else "NUTS"
    yield compare(work, peer, mine, other, unit="1/s", at_least=at_least, note=note)
    if counted is not None:
        peer = "NUTS dense, compile counted"
        yield compare(work, peer, mine, counting, unit="1/s", at_least=counted)


@row("nba", rounds=4)
def nba(rounds: int, quick: bool) -> Iterator[Figure]:
    """NBA rookies, default fit: NUTS, and 2,000 bare full gradients of four chains."""
    X, y = _data.rookies()

    def fit(seed: int) -> SGLDLogisticRegression:
        return SGLDLogisticRegression(random_state=seed).fit(X, y)

    columns, theta = np.column_stack([X, np.ones(len(y))]), np.zeros((4, X.shape[1] + 1))
    theta[:] = np.linspace(-0.5, 0.5, theta.size).reshape(theta.shape)
    eta = np.empty((4, len(y)))

    def gradients() -> None:
        for _ in range(2000):
            np.matmul(theta, columns.T, out=eta)
            expit(eta, out=eta)
            np.subtract(y, eta, out=eta)
            (eta @ columns) - theta

    tasks = {"ours": lambda: fit(0), "bare": gradients}
    taken = interleave(tasks, max(rounds, 7))
    yield compare(
        "NBA, default fit, seconds",
        "2,000 bare full gradients of 4 chains",
        taken["ours"],
        taken["bare"],
        at_most=1.2,
    )
    model = rival("numpyro").logistic(X, y)
    yield from beside_nuts("NBA, default fit", fit, model, rounds, at_least=10, counted=30)


def _classifier(
    work: str,
    data: tuple[np.ndarray, np.ndarray],
    sd: float,
    rounds: int,
    aim: float = 10,
    **of_nuts: Any,
) -> Iterator[Figure]:
    X, y = data
    peer = rival("numpyro")
    model = (peer.logistic if y.max() == 1 else peer.softmax)(X, y, sd)

    def fit(seed: int) -> SGLDLogisticRegression:
        return SGLDLogisticRegression(prior=Normal(scale=sd), random_state=seed).fit(X, y)

    return beside_nuts(work, fit, model, rounds, at_least=aim, **of_nuts)


@row("breast-cancer-1", rounds=3)
def breast_cancer_1(rounds: int, quick: bool) -> Iterator[Figure]:
    """Breast cancer, prior sd 1: NUTS."""
    return _classifier("breast cancer, prior sd 1", _data.breast_cancer(), 1.0, rounds)


@row("breast-cancer-2.5", rounds=3)
def breast_cancer_2(rounds: int, quick: bool) -> Iterator[Figure]:
    """Breast cancer, prior sd 2.5: NUTS."""
    return _classifier("breast cancer, prior sd 2.5", _data.breast_cancer(), 2.5, rounds)


@row("breast-cancer-10", rounds=2)
def breast_cancer_10(rounds: int, quick: bool) -> Iterator[Figure]:
    """Breast cancer, prior sd 10: NUTS."""
    return _classifier("breast cancer, prior sd 10", _data.breast_cancer(), 10.0, rounds)


@row("wine", rounds=3)
def wine(rounds: int, quick: bool) -> Iterator[Figure]:
    """Wine, three classes: NUTS."""
    return _classifier("wine, 3 classes", _data.wine(), 1.0, rounds)


@row("diabetes-laplace", rounds=3)
def diabetes_laplace(rounds: int, quick: bool) -> Iterator[Figure]:
    """Diabetes, linear, Laplace prior: NUTS."""
    X, y = _data.diabetes()

    def fit(seed: int) -> SGLDLinearRegression:
        return SGLDLinearRegression(prior=Laplace(scale=5.0), random_state=seed).fit(X, y)

    model = rival("numpyro").linear_laplace(X, y, 5.0)
    return beside_nuts("diabetes, Laplace prior", fit, model, rounds, at_least=10)


def _regression(
    work: str,
    model: Any,
    data: tuple[np.ndarray, np.ndarray],
    make_peer: Any,
    rounds: int,
    aim: int,
) -> Iterator[Figure]:
    """A family that NumPyro's distributions have; ``make_peer`` takes its adapter."""
    numpyro = rival("numpyro")
    prior, observe, own = make_peer(numpyro)
    peer = numpyro.regression(*data, prior, observe, **own)

    def fit(seed: int) -> Any:
        return clone(model).set_params(random_state=seed).fit(*data)

    return beside_nuts(work, fit, peer, rounds, at_least=aim)


@row("iris-small", rounds=3)
def iris_small(rounds: int, quick: bool) -> Iterator[Figure]:
    """Iris, two of the classes, prior sd 1: NUTS."""
    X, y = _data.iris()
    X, y = X[50:] - X[50:].mean(axis=0), y[50:] - 1
    return _classifier("iris, 100 x 4", (X, y), 1.0, rounds, 8)


@row("logistic-small", rounds=3)
def logistic_small(rounds: int, quick: bool) -> Iterator[Figure]:
    """Logistic, 80 rows of 30 columns, prior sd 1: NUTS."""
    return _classifier("logistic 80 x 30", _data.logistic(80, 30), 1.0, rounds, 8)


@row("poisson-small", rounds=3)
def poisson_small(rounds: int, quick: bool) -> Iterator[Figure]:
    """Counts, 1,000 rows of 15 columns, prior sd 1: NUTS."""
    X, y, _ = _data.of_family("Poisson", 1000, 15)
    model = SGLDPoissonRegressor(prior=Normal(scale=1.0))

    def peer(numpyro: Any) -> tuple:
        dist = numpyro.dist

        return dist.Normal(0.0, 1.0), lambda eta: dist.Poisson(numpyro.jnp.exp(eta)), {}

    return _regression("Poisson 1,000 x 15", model, (X, y), peer, rounds, 8)


@row("gamma-small", rounds=3)
def gamma_small(rounds: int, quick: bool) -> Iterator[Figure]:
    """Gamma, 600 rows of 12 columns, prior sd 1: NUTS."""
    X, y, _ = _data.of_family("gamma", 600, 12)
    own = InverseGamma(shape=1.0, scale=1.0)
    model = SGLDGammaRegressor(prior=Normal(scale=1.0), dispersion_prior=own)

    def peer(numpyro: Any) -> tuple:
        dist = numpyro.dist

        def observe(eta: Any, alpha: Any) -> Any:
            return dist.Gamma(1.0 / alpha, numpyro.jnp.exp(-eta) / alpha)

        return dist.Normal(0.0, 1.0), observe, {"dispersion": dist.InverseGamma(1.0, 1.0)}

    return _regression("gamma 600 x 12", model, (X, y), peer, rounds, 5)


@row("student-t-small", rounds=3)
def student_t_small(rounds: int, quick: bool) -> Iterator[Figure]:
    """Noise with heavy tails, 600 rows of 12 columns, prior sd 1: NUTS."""
    X, y, _ = _data.of_family("Student-t noise", 600, 12)
    model = SGLDLinearRegression(
        prior=Normal(scale=1.0),
        noise_distribution="student_t",
        noise_prior=InverseGamma(shape=1.0, scale=1.0),
    )

    def peer(numpyro: Any) -> tuple:
        dist = numpyro.dist

        def observe(eta: Any, variance: Any, df: Any) -> Any:
            return dist.StudentT(df, eta, variance**0.5)

        # the default prior of the degrees of freedom (Juarez & Steel 2010)
        own = {"noise_variance": dist.InverseGamma(1.0, 1.0), "df": dist.Gamma(2.0, 0.1)}
        return dist.Normal(0.0, 1.0), observe, own

    return _regression("Student-t noise 600 x 12", model, (X, y), peer, rounds, 5)


@row("student-t-prior", rounds=3)
def student_t_prior(rounds: int, quick: bool) -> Iterator[Figure]:
    """Diabetes, linear, Student-t prior: NUTS."""
    X, y = _data.diabetes()
    prior = StudentT(scale=5.0, df=3.0)
    own = InverseGamma(shape=1.0, scale=1.0)

    def peer(numpyro: Any) -> tuple:
        dist = numpyro.dist

        def observe(eta: Any, variance: Any) -> Any:
            return dist.Normal(eta, variance**0.5)

        own = {"noise_variance": dist.InverseGamma(1.0, 1.0)}
        return dist.StudentT(3.0, 0.0, 5.0), observe, own

    model = SGLDLinearRegression(prior=prior, noise_prior=own)
    return _regression("diabetes, Student-t prior", model, (X, y), peer, rounds, 8)


def _horseshoe(
    work: str, model: Any, data: tuple[np.ndarray, np.ndarray], rounds: int
) -> Iterator[Figure]:
    """Default NUTS, whose mass is diagonal, on the horseshoe of scale 1."""
    (X, y), linear = data, isinstance(model, SGLDLinearRegression)
    n, d = X.shape
    # Piironen & Vehtari (2017), eq. 3.12 and Section 3.5, of a tenth of the columns
    log_tau = np.log(0.1 / 0.9) - 0.5 * np.log(n) - np.log(X.std(axis=0)).mean()
    if not linear:
        log_tau -= 0.5 * np.log(y.mean() * (1.0 - y.mean()))
    peer = rival("numpyro").horseshoe(X, y, float(log_tau), linear=linear)

    def fit(seed: int) -> Any:
        return clone(model).set_params(prior=Horseshoe(scale=1.0), random_state=seed).fit(X, y)

    def view(values: np.ndarray) -> np.ndarray:
        return np.concatenate([values[..., : d + 1], np.log(values[..., d + 1 :])], axis=2)

    return beside_nuts(work, fit, peer, rounds, at_least=5, dense_mass=False, view=view)


def _few_matter(n: int, d: int, effect: float, n_effects: int) -> tuple[np.ndarray, np.ndarray]:
    """Standard normal columns, of which the first have an effect, and standard normal noise."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d))
    return X, effect * X[:, :n_effects].sum(axis=1) + rng.standard_normal(n)


@row("horseshoe", rounds=1)
def horseshoe(rounds: int, quick: bool) -> Iterator[Figure]:
    """Horseshoe prior: logistic of three sizes and a linear model of more columns: NUTS."""
    for n, d in ((60, 4), (200, 10)):
        X, latent = _few_matter(n, d, 1.0, 2)
        data = X, (latent > 0).astype(int)
        yield from _horseshoe(
            f"horseshoe, logistic {n} x {d}", SGLDLogisticRegression(), data, rounds
        )
    data = _data.breast_cancer()
    yield from _horseshoe("horseshoe, breast cancer", SGLDLogisticRegression(), data, rounds)
    data = _few_matter(100, 60, 2.0, 5)
    yield from _horseshoe("horseshoe, linear 100 x 60", SGLDLinearRegression(), data, rounds)


@row("digits", rounds=1)
def digits(rounds: int, quick: bool) -> Iterator[Figure]:
    """Digits 0 to 4, five classes of 64 columns: NUTS with 4 chains of 250 draws."""
    long = {"n_draws": 250, "methods": ("parallel",)}  # a thousand take it a quarter of an hour
    return _classifier("digits 0-4, 5 classes", _data.digits(), 1.0, rounds, **long)


@row("thousand-columns", rounds=1)
def thousand_columns(rounds: int, quick: bool) -> Iterator[Figure]:
    """Logistic, 3,000 rows of 1,000 columns: NUTS with 4 chains of 250 draws, within 10 minutes."""
    n, d, n_draws = (300, 100, 100) if quick else (3000, 1000, 250)
    X, y = _data.wide(n, d)
    ours = Timed(lambda s: (SGLDLogisticRegression(random_state=s).fit(X, y).posterior_.values, 0))
    mine = [ours(seed) for seed in range(_FEWEST)]
    numpyro = rival("numpyro")
    found = within(_LIMIT, numpyro.draw_logistic, X, y, n_draws)
    about = f"ours: {np.median(ours.ess):.0f} ESS in {np.median(ours.seconds):.1f} s"
    if found is None:
        peer, other = "NUTS dense, at most", numpyro.N_CHAINS * n_draws / _LIMIT
        note = (
            f"{about}; NUTS had not ended after {_LIMIT:.0f} s of {n_draws} steps of warm-up and "
            f"{n_draws} draws a chain: were all its draws independent, it would have at most this"
        )
    else:
        peer, (draws, seconds) = "NUTS dense", found
        ess, flat = smallest_ess(draws), draws.reshape(-1, draws.shape[2])
        agreed = agreement(np.concatenate(ours.draws), flat, (sum(ours.ess), ess))
        other, note = ess / seconds, f"{agreed}; {about}, NUTS: {ess:.0f} in {seconds:.1f} s"
    work, rate = f"logistic {n:,} x {d:,}, ESS/s", [float(np.median(mine))]
    yield compare(work, peer, rate, [other], unit="1/s", at_least=3, note=note)

"""Nodes of the polynomials of crossed terms: about the mode of scales and noise, and checked."""

from __future__ import annotations

from typing import Any

import numpy as np

from skbayes_sgld._memory import check_memory
from skbayes_sgld._typing import Array
from skbayes_sgld._warnings import warn
from skbayes_sgld.mixed.collapsed import CollapsedPosterior, Marginal
from skbayes_sgld.mixed.crossed import CrossedGram, CrossedMarginal, Node
from skbayes_sgld.mixed.mode import find_mode
from skbayes_sgld.mixed.polynomial import Whitening, draws_by_weight, n_monomials
from skbayes_sgld.mixed.posterior import MixedPosterior
from skbayes_sgld.mixed.working import WorkingModel

_FEW = 30  # effects of a crossed term that are integrated out with the coefficients
_MOVES, _FAR = 8, 3.0  # moves to the mode; reach of quadratic functions, in distances of nodes
_DEGREES, _MOST_TERMS = (2, 3, 4, 6, 8), 210
_NEAR, _BEYOND = 1.5, 2.5  # sds of nodes from the mode; beyond the typical distance
_SPARE, _SPARE_OF_FEW = 1.3, 2.0  # nodes for each term of a polynomial
_MOST_EXACT = 100  # effects of crossed terms, whose matrices may be factored at every step
_SLOW = 5000  # effects of crossed terms, above which a fit takes minutes
_ROUNDS = 2  # refits with the draws of checks
_DRAWS, _OUTSIDE = 200, 0.02  # draws, and the share of them that may be beyond the nodes
_CLOSE = 0.03  # largest error of log densities, and of means in sds
_TESTS, _WORK = (4, 30), 3e9  # draws of a check, and operations for them
_ROOT_DEGREE, _ROOT_NUMBERS = 4, 2**28  # of the polynomial of the root; numbers that it keeps
_CLOSE_SDS, _FEW_TESTS = 0.015, 2  # largest error of sds of effects, and draws of the check


class CrossedPosterior(CollapsedPosterior):
    """Posterior of hyperparameters and log noise variance, by polynomials in ratios of scales.

    Parameters
    ----------
    posterior : MixedPosterior
    crossed : list of int
        Terms that are eliminated after the one with the most labels.
    """

    marginal: CrossedMarginal

    def __init__(self, posterior: MixedPosterior, crossed: list[int]) -> None:
        self._crossed = crossed
        super().__init__(posterior)
        covariances = posterior.covariances
        at = [covariances.at[k] for k in self.marginal.eliminated]
        self.ratios = np.concatenate([np.arange(each.start, each.stop) for each in at])
        """Places in theta of the hyperparameters of eliminated terms."""

    def draw_exactly(self) -> None:
        """Draw coefficients with a factor for each draw."""
        self.marginal.undivided = super()._marginal_of(*self._sums)

    def _marginal_of(self, weight: Array, y: Array, origin: Array) -> Marginal:
        self._sums = weight, y, origin
        working = WorkingModel(self.model, self._crossed)
        gram = working.gram(weight, weight * y, self._square)
        sums = CrossedGram(working, gram, weight, weight * y)
        return CrossedMarginal(working, gram, self._n_total, origin, sums)

    def start(self) -> Array:
        """Scales by moments."""
        marginal, model = self.marginal, self.model
        d, (G, width) = marginal.working.fixed.shape[1], (marginal.gram.shared, len(marginal.pull))
        linear = np.linalg.lstsq(G[:d, :d], G[:d, width], rcond=1e-10)[0]
        w = np.zeros(width + 1)
        w[:d], w[width] = -linear, 1.0
        variances, noise = marginal.crossed.variances(w, self._n_total)
        h = model.covariances.start()
        for k, variance in zip(marginal.eliminated, variances, strict=True):
            covariance, at = model.covariances.each[k], model.covariances.at[k]
            reported = np.append(np.sqrt(variance), np.zeros(len(covariance.pairs)))
            h[at] = covariance.from_reported(reported[None])[0]
        return h if self._own is None else np.append(h, np.log(noise))

    # ---- nodes ----------------------------------------------------------------------------------

    def parts(self, theta: Array) -> tuple[Array, Array]:
        """Hyperparameters ``(C, m)`` and noise variance ``(C,)``."""
        return self._split(theta)

    def at_ratios(self, theta: Array) -> Array:
        """Coordinates of the ratios ``(C, m)``."""
        h, variance = self._split(theta)
        return self.marginal.coordinates.of(
            self.marginal.ratios(self.marginal.roots(h), 1.0 / variance)
        )

    def nodes(self, theta: Array, with_inverse: bool = False) -> Any:
        """Exact results at positions, one by one."""
        return self.marginal.exact(*self._split(theta), with_inverse)


def crossed_terms(posterior: MixedPosterior) -> list[int]:
    """Terms of groups with many effects, but the one with the most."""
    sizes = [term.size * term.by_label for term in posterior.terms]
    main = int(np.argmax(sizes))
    return [k for k, size in enumerate(sizes) if k != main and size > _FEW]


def fit_crossed(posterior: MixedPosterior, crossed: list[int]) -> CrossedPosterior | None:
    """Posterior by polynomials; None if they are not close.

    Raises
    ------
    MemoryError
        If a matrix of the effects of crossed terms does not fit into memory.

    Warns
    -----
    UserWarning
        If a fit takes minutes.
    """
    P = sum(posterior.terms[k].size for k in crossed)
    names = " and ".join(repr(posterior.terms[k].name) for k in crossed)
    what = f"group_effects with {P:,} effects of {names} beside a term with more of them"
    remedy = "leave a term out, or join labels that are rare"
    check_memory(40 * P**2, what, remedy)
    if P > _SLOW:
        warn(f"{what} factor matrices of this size, which takes minutes; {remedy}.", UserWarning)
    fitted = CrossedPosterior(posterior, crossed)
    search = _Search(fitted)
    try:
        search.find_mode()
        if search.fits():
            if search.fits_root():
                return fitted
            if P <= _MOST_EXACT:
                fitted.draw_exactly()
                return fitted
    except np.linalg.LinAlgError:
        pass
    if P > _MOST_EXACT:
        warn(
            f"{what} have scales whose density is not smooth enough to be found at few points, so "
            "that matrices of this size are factored at every step, which may take hours; "
            f"{remedy}.",
            UserWarning,
        )
    return None


class _Search:
    """Nodes about the mode, and the polynomials through them.

    Parameters
    ----------
    fitted : CrossedPosterior
        Its polynomials are those of the nodes so far.
    """

    def __init__(self, fitted: CrossedPosterior) -> None:
        self._fitted, self._marginal = fitted, fitted.marginal
        self._at, self._m = fitted.ratios, len(fitted.ratios)
        self._rng = np.random.default_rng(0)
        self._center, self._root = fitted.start(), np.empty((0, 0))
        self._nodes, self._t = list[Node](), np.empty((0, self._m))
        self._tests = self._center[None]
        self._axes = self._tests
        self._inner = self._root

    def _add(self, theta: Array) -> None:
        """Add nodes at theta."""
        self._nodes += self._fitted.nodes(theta)
        self._t = np.vstack([self._t, self._fitted.at_ratios(theta)])

    def _near(self, points: Array) -> Array:
        """Theta at some distances from the center, in sds of the ratios."""
        theta = np.tile(self._center, (len(points), 1))
        theta[:, self._at] += points @ self._inner.T
        return theta

    def find_mode(self) -> None:
        """Find the mode by quadratic functions about points that move to it."""
        fitted, marginal, m = self._fitted, self._marginal, self._m
        width, first = np.full(m, 0.3), 0
        for k in marginal.eliminated:
            term, covariance = fitted.model.terms[k], fitted.model.covariances.each[k]
            sd = 1.0 / np.sqrt(2.0 * len(term.labels))
            width[first : first + len(term.effects)] = np.clip(2.0 * sd, 0.1, 0.4)
            first += covariance.n_hyper
        self._inner, one = np.diag(width), np.eye(m)
        pairs = [one[i] + one[j] for i in range(m) for j in range(i)]
        points = np.vstack([np.zeros((1, m)), one, -one, *pairs])
        for _ in range(_MOVES):
            self._nodes, self._t = [], self._t[:0]
            self._add(self._near(points))
            t = self._t
            on_axes = t[: 2 * m + 1]
            marginal.centre(self._nodes[: 2 * m + 1], on_axes, *_spread(on_axes, 1.0))
            z = marginal.z(t)
            far = _FAR * float(np.linalg.norm(z, axis=1).max())
            marginal.fit(2, z, self._nodes, np.ones(len(z)), far)
            before = self._center
            self._center, self._root = find_mode(fitted.value_and_grad, before)
            moved = np.abs(self._center - before)[self._at] / width
            if np.max(moved) < _NEAR:
                break
            self._center = before + (self._center - before) * min(1.0, _FAR / np.max(moved))

    def _centre(self) -> None:
        """Nodes on axes through the center, in coordinates that are whitened there."""
        m, root = self._m, self._root
        # of the ratios: scales that the noise does not move, with the noise as at the mode
        inner = root[self._at].copy()
        if len(root) > len(self._fitted.model.covariances.coordinates):
            inner -= 0.5 * np.tanh(self._center[self._at])[:, None] * root[-1]
        self._inner = np.linalg.cholesky(inner @ inner.T)
        one = _NEAR * np.eye(m)
        self._axes = self._near(np.vstack([np.zeros((1, m)), one, -one]))
        t = self._fitted.at_ratios(self._axes)
        n = len(self._nodes)
        self._add(self._axes)
        self._marginal.centre(self._nodes[n:], t, *_spread(t, _NEAR))

    def fits(self) -> bool:
        """Fit polynomials of rising degree; whether they are close at draws."""
        fitted, marginal, m = self._fitted, self._marginal, self._m
        self._centre()
        n_tests = int(np.clip(_WORK / marginal.crossed.size**3, *_TESTS))
        farthest = np.sqrt(m) + _BEYOND
        spare = _SPARE_OF_FEW if marginal.crossed.size <= _MOST_EXACT else _SPARE
        degrees = [degree for degree in _DEGREES if n_monomials(m, degree) <= _MOST_TERMS]
        degrees += degrees[-1:] * _ROUNDS
        n_moves = 0
        while degrees:
            degree = degrees[0]
            distance = np.linalg.norm(marginal.z(self._t), axis=1)
            n = int(np.ceil(spare * n_monomials(m, degree))) - int(
                (distance < 1.5 * farthest).sum()
            )
            if n > 0:
                self._add(self._near(_far_points(self._rng, n, m)))
            z = marginal.z(self._t)
            weight = np.exp(-0.125 * np.maximum(np.square(z).sum(axis=1) - m, 0.0))
            marginal.fit(degree, z, self._nodes, weight, farthest)
            degrees = degrees[1:]
            found = find_mode(fitted.value_and_grad, self._center)
            draws = draws_by_weight(fitted.log_density, Whitening(*found), self._rng, _DRAWS)
            draws = np.unique(draws, axis=0)
            z = marginal.z(fitted.at_ratios(np.vstack([found[0], draws])))
            peaked = len(draws) < _DRAWS // 4  # polynomials with peaks far from the nodes
            away = z[0] if peaked else z.mean(axis=0)
            outside = np.mean(np.linalg.norm(z, axis=1) > farthest) > _OUTSIDE
            if n_moves < _MOVES and (np.linalg.norm(away) > 1.0 or (outside and not peaked)):
                n_moves += 1
                self._center, self._root = found[0], self._root if peaked else found[1]
                self._centre()
                degrees = [degree, *degrees]
                continue
            if peaked:
                continue
            draws = self._rng.permutation(draws)
            self._tests = draws[:n_tests]
            exact = list(fitted.nodes(self._tests))
            value, mean = marginal.errors(*fitted.parts(self._tests), exact)
            if np.std(value) < _CLOSE and np.sqrt(np.square(mean).mean()) < _CLOSE:
                return True
            self._nodes += exact
            self._t = np.vstack([self._t, fitted.at_ratios(self._tests)])
        return False

    def fits_root(self) -> bool:
        """Fit the root of the covariance of effects given scales; whether it is close at draws."""
        fitted, marginal, m = self._fitted, self._marginal, self._m
        tests = self._tests[:_FEW_TESTS]
        z = marginal.z(fitted.at_ratios(tests))
        exact = [node.sds for node in fitted.nodes(tests, with_inverse=True)]
        for degree in range(_ROOT_DEGREE + 1):
            n = n_monomials(m, degree)
            if n * marginal.crossed.size**2 > _ROOT_NUMBERS:
                return False
            theta = self._axes[: 1 if degree == 0 else None]
            if (n := int(_SPARE * n)) > len(theta):
                more = self._near(_far_points(self._rng, n - len(theta), m))
                theta = np.vstack([theta, more])
            inverses = (node.inverse for node in fitted.nodes(theta, with_inverse=True))
            marginal.fit_root(degree, marginal.z(fitted.at_ratios(theta)), inverses)
            errors = [marginal.sds_at(each) / sds - 1.0 for each, sds in zip(z, exact, strict=True)]
            if np.max(np.abs(errors)) < _CLOSE_SDS:
                return True
        return False


def _spread(t: Array, distance: float) -> tuple[Array, Array]:
    """Mean of a center and points on axes, at a distance in sds, and a root of the covariance.

    Opposite points may have the same coordinates: those of scales do not depend on their signs.
    """
    mean, away = t.mean(axis=0), t[1:] - t[0]
    covariance = 0.5 * away.T @ away / distance**2
    unit = np.sqrt(np.diagonal(covariance)) + 1e-12
    covariance = covariance / np.outer(unit, unit) + 1e-9 * np.eye(len(unit))
    return mean, unit[:, None] * np.linalg.cholesky(covariance)


def _far_points(rng: np.random.Generator, n: int, m: int) -> Array:
    """Points ``(n, m)`` at the typical distance from the mode and beyond, in opposite pairs."""
    half = rng.standard_normal(((n + 1) // 2, m))
    far = np.sqrt(m) + _BEYOND * rng.uniform(size=(len(half), 1))
    half *= far / np.linalg.norm(half, axis=1, keepdims=True)
    return np.vstack([half, -half])[:n]

"""Polynomials in few variables, whitened coordinates, and draws of a density by their weights."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations_with_replacement
from math import comb

import numpy as np

from skbayes_sgld._linalg import matmul_rows
from skbayes_sgld._typing import Array

_PROPOSALS, _HEAVY = 4000, 3.0  # draws of a t distribution and its degrees of freedom


class Whitening:
    """Map between theta and standardised coordinates z, with hyper- and own parameters first in z.

    Parameters
    ----------
    center : ndarray of shape (P,)
        Theta at z = 0.
    root : ndarray of shape (P, P)
        Theta at z is ``center + root z``.
    """

    def __init__(self, center: Array, root: Array) -> None:
        self.center, self.root, self.inverse = center, root, np.linalg.inv(root)
        self._products = root.T.copy(), self.inverse.T.copy()

    @classmethod
    def of_draws(cls, theta: Array, first: Array) -> Whitening:
        """By mean and covariance of ``theta (N, P)``; ``first`` are its entries by their place."""
        covariance = np.cov(theta.T).reshape(len(first), len(first))
        return cls(theta.mean(axis=0), ordered_root(covariance, first))

    def theta(self, z: Array) -> Array:
        """Theta ``(C, P)``."""
        return self.center + matmul_rows(z, self._products[0])

    def z(self, theta: Array) -> Array:
        """Coordinates ``(C, P)``."""
        return matmul_rows(theta - self.center, self._products[1])


def ordered_root(covariance: Array, first: Array) -> Array:
    """Root of a covariance in which entry ``first[0]`` depends on z_0 only, and so on."""
    root = np.empty_like(covariance)
    root[first] = np.linalg.cholesky(covariance[np.ix_(first, first)])
    return root


class Monomials:
    """Products of P variables up to a degree, the terms of a polynomial.

    Parameters
    ----------
    P : int
    degree : int
    """

    def __init__(self, P: int, degree: int) -> None:
        powers = range(degree + 1)
        self._terms = [t for k in powers for t in combinations_with_replacement(range(P), k)]
        self.n_terms = len(self._terms)
        # the variables that a term is the product of; P stands for a factor of 1
        factors = [(*t, *[P] * (degree - len(t))) for t in self._terms]
        self._factors = np.array(factors, dtype=np.intp)

    def design(self, z: Array) -> tuple[Array, Array]:
        """Values ``(C, n_terms)`` and derivatives ``(C, P, n_terms)`` of the terms."""
        (C, P), (n_terms, degree) = z.shape, self._factors.shape
        factors = np.column_stack([z, np.ones(C)])[:, self._factors]  # (C, n_terms, degree)
        slopes, terms = np.zeros((C, P + 1, n_terms)), np.arange(n_terms)
        for k in range(degree):
            others = np.delete(factors, k, axis=2).prod(axis=2)
            slopes[:, self._factors[:, k], terms] += others
        return factors.prod(axis=2), slopes[:, :P]


class Polynomial(Monomials):
    """Polynomial of degree 1 to 4, as a quadratic form in products of its variables."""

    def __init__(self, P: int, degree: int) -> None:
        super().__init__(P, degree)
        self._pairs = np.array(list(combinations_with_replacement(range(P), 2))).T
        place: dict[tuple[int, ...], int] = {(): 0} | {(j,): 1 + j for j in range(P)}
        place |= {(int(a), int(b)): 1 + P + k for k, (a, b) in enumerate(self._pairs.T)}
        # a term is the product of one or two entries of (1, z, products of pairs)
        half = [(t[:2], t[2:]) if len(t) > 2 else ((), t) for t in self._terms]
        self._place = np.array([(place[a], place[b]) for a, b in half]).T
        self._size = len(place)
        self._matrix = np.zeros((self._size, self._size))

    def fit(self, z: Array, value: Array, grad: Array, jacobian: Array, weight: Array) -> None:
        """Fit the coefficients to values, and to gradients in parameters of ``jacobian``.

        It is that of z, ``(C, P, P)``.
        """
        values, slopes = self.design(z)
        slopes = np.einsum("cpm,cpr->crm", slopes, jacobian)
        A = np.concatenate([values[:, None], slopes], axis=1) * weight[:, None, None]
        b = np.column_stack([value, grad]) * weight[:, None]
        found = np.linalg.lstsq(A.reshape(-1, self.n_terms), b.ravel(), rcond=1e-12)[0]
        self._matrix[...] = 0.0
        self._matrix[*self._place] = 0.5 * found
        self._matrix += self._matrix.T

    def value_and_grad(self, z: Array) -> tuple[Array, Array]:
        """Value ``(C,)`` and gradient ``(C, P)``."""
        C, P = z.shape
        a, b = self._pairs
        features = np.hstack([np.ones((C, 1)), z, z[:, a] * z[:, b]])
        product = matmul_rows(features, self._matrix)
        grad, of_pairs = 2.0 * product[:, 1 : P + 1], 2.0 * product[:, P + 1 :]
        square = np.zeros((C, P, P))
        square[:, a, b] = of_pairs
        grad = grad + np.einsum("cab,cb->ca", square, z) + np.einsum("cab,ca->cb", square, z)
        return np.einsum("ci,ci->c", features, product), grad


def n_monomials(P: int, degree: int) -> int:
    """Number of terms of a polynomial in P variables."""
    return comb(P + degree, degree)


def draws_by_weight(
    log_density: Callable[[Array], Array], whitening: Whitening, rng: np.random.Generator, n: int
) -> Array:
    """Draws ``(n, P)`` of a density, of proposals by their weights."""
    P = len(whitening.center)
    z = rng.standard_normal((_PROPOSALS, P))
    z /= np.sqrt(rng.chisquare(_HEAVY, (_PROPOSALS, 1)) / _HEAVY)
    theta = whitening.theta(z)
    log_weight = log_density(theta)
    log_weight = log_weight + 0.5 * (_HEAVY + P) * np.log1p(np.square(z).sum(axis=1) / _HEAVY)
    weight = np.exp(log_weight - log_weight.max())
    drawn: Array = theta[rng.choice(_PROPOSALS, n, p=weight / weight.sum())]
    return drawn

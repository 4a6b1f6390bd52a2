"""Clipping of the gradient estimate, for gradients that explode.

Clipping changes the distribution that is sampled. A run counts the clipped steps, and the
estimators warn if they are more than one in a hundred (Karagiannis, Handout 6, Note 41).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from skbayes_sgld._checks import check_number
from skbayes_sgld._components import Component, Registry


class Clip(Component):
    """A bound on the gradient estimate, applied to each chain on its own."""

    def __call__(
        self, gradient: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """Bounded gradients ``(C, P)``, and whether each chain's was changed ``(C,)``."""
        raise self._undefined("__call__")

    def for_chains(self, some: slice) -> Clip:
        """Bound of some of the chains."""
        return self


@dataclass(eq=False, repr=False)
class NormClip(Clip):
    """Scale the gradient to norm ``threshold`` if it is longer: ``v min(1, c / ||v||)``.

    Karagiannis, Handout 6, Note 39.

    Parameters
    ----------
    threshold : float, default=1e3
        The longest Euclidean norm let through, in the units of the log posterior's gradient.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayes_sgld.sampling import NormClip
    >>> clipped, fired = NormClip(threshold=5.0)(np.array([[6.0, 8.0], [0.3, 0.4]]))
    >>> clipped.tolist(), fired.tolist()
    ([[3.0, 4.0], [0.3, 0.4]], [True, False])
    """

    threshold: float = 1e3

    def check(self) -> None:
        """Raise if the threshold is not positive."""
        check_number(self.threshold, "clip.threshold", low=0)

    def __call__(
        self, gradient: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """Scaled gradients, and whether each chain's was changed."""
        norm = np.sqrt(np.einsum("cp,cp->c", gradient, gradient))
        fired = norm > self.threshold
        if fired.any():
            factor = np.where(fired, self.threshold / np.where(fired, norm, 1.0), 1.0)
            gradient = gradient * factor[:, None]
        return gradient, fired


@dataclass(eq=False, repr=False)
class ValueClip(Clip):
    """Force every element of the gradient into ``[-threshold, threshold]``.

    Karagiannis, Handout 6, Note 40.

    Parameters
    ----------
    threshold : float, default=1e3
        The largest absolute value let through, in the units of the log posterior's gradient.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayes_sgld.sampling import ValueClip
    >>> ValueClip(threshold=5.0)(np.array([[6.0, -8.0, 1.0]]))[0].tolist()
    [[5.0, -5.0, 1.0]]
    """

    threshold: float | NDArray[np.float64] = 1e3  # or an array (C, P), one row a chain

    def check(self) -> None:
        """Raise if the threshold is not positive."""
        check_number(self.threshold, "clip.threshold", low=0)

    def __call__(
        self, gradient: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """Bounded gradients, and whether each chain's was changed."""
        fired = np.asarray((np.abs(gradient) > self.threshold).any(axis=1))
        if fired.any():
            gradient = np.clip(gradient, -self.threshold, self.threshold)
        return gradient, fired

    def for_chains(self, some: slice) -> ValueClip:
        """Bound of some of the chains."""
        own = self.threshold
        return ValueClip(own[some]) if isinstance(own, np.ndarray) else self


CLIPS: Registry[Clip] = Registry(Clip, norm=NormClip, value=ValueClip)

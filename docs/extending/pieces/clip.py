"""A bound on the largest element of the gradient that keeps its direction."""

from dataclasses import dataclass

import numpy as np

from skbayes_sgld.sampling import Clip


@dataclass(eq=False, repr=False)
class LargestClip(Clip):
    """Scale the gradient so that no element is larger than ``threshold``.

    >>> bounded, fired = LargestClip(threshold=5.0)(np.array([[10.0, -1.0], [3.0, 4.0]]))
    >>> bounded.tolist(), fired.tolist()
    ([[5.0, -0.5], [3.0, 4.0]], [True, False])
    """

    threshold: float = 1e3

    def __call__(self, gradient):
        largest = np.abs(gradient).max(axis=1)
        fired = largest > self.threshold
        factor = np.where(fired, self.threshold / np.where(fired, largest, 1.0), 1.0)
        return gradient * factor[:, None], fired

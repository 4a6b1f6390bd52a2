"""Settings of a climb to the mode."""

from __future__ import annotations

from dataclasses import dataclass, field

from skbayes_sgld.sampling.clipping import Clip
from skbayes_sgld.sampling.optimizers.projections import BoundProjection
from skbayes_sgld.sampling.optimizers.rules import SGD, Optimizer
from skbayes_sgld.sampling.preconditioners import Identity, Preconditioner
from skbayes_sgld.sampling.protocol import Schedule
from skbayes_sgld.sampling.schedules import Polynomial


@dataclass(frozen=True)
class ClimbSettings:
    """Settings of a climb; what is None the climb chooses as it goes.

    Attributes
    ----------
    step_size : float or None
    batch_size : int or None
        None: a shuffled order in contiguous batches, which grow up to all rows.
    replacement : bool
        Whether batches of a given size are drawn with replacement, or along a shuffled order.
    preconditioner : Preconditioner
        Taken at the start; ``Identity()`` with no ``step_size`` stands for a step size a column.
    average : int
        The pass from which on the iterates are averaged; 0 for none.
    max_iter : int
        Passes over the rows.
    tol : float
        The distance to the mode in the worst coordinate, in posterior sds, at which it ends.
    """

    optimizer: Optimizer = field(default_factory=SGD)
    step_size: float | None = None
    schedule: Schedule = field(default_factory=Polynomial)
    batch_size: int | None = None
    replacement: bool = True
    preconditioner: Preconditioner = field(default_factory=Identity)
    clip: Clip | None = None
    projection: BoundProjection | None = None
    average: int = 0
    temperature: float = 1.0
    max_iter: int = 2000
    tol: float = 0.1
    seed: int = 0

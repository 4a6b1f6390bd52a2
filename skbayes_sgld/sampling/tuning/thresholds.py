"""The thresholds of tuning and diagnosis, each with the measurement or the source that set it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Thresholds:
    """Errors that are accepted, the cost of pilots, and the levels at which a user is warned.

    ``docs/how_auto_works.md`` has the tables behind the figures.
    """

    # ---- errors that the automatic settings accept --------------------------------------------

    # Share that the noise of minibatches may add to a variance. An sd grows by half of it: a
    # quarter of the Monte Carlo error of an sd from 1,000 independent draws (2.2 %)
    max_noise: float = 0.01
    # Largest bias of a step size (means in sds, sds relative) for a sampler without bias on a
    # normal posterior. The pilot reads more than the error of the draws: docs/how_auto_works.md,
    # section 6, has both
    max_bias: float = 0.01
    # Largest bias of a step size for other samplers. It is counted beyond the least bias of a
    # sampler that no step size keeps within it: the memory of PSGLD leaves 1.6 %. Steps shorter
    # than 0.1 (2.8 %) gave a sixth of the draws a gradient
    max_rough_bias: float = 0.015

    # ---- rows ---------------------------------------------------------------------------------

    # Parameters from which "row_space" saves more than its products cost
    many_columns: int = 2000
    # The same for counts and for three or more classes, whose trajectories take many steps: 200
    # rows of 1,000 columns give three times as many effective draws a second in it
    many_costly_columns: int = 300

    # Rows a free coefficient of a column (several classes have one for each class but one) below
    # which the scale of the prior is learned; twice as many of three classes and more. See
    # docs/guide/few_rows.md. Of 200 rows, 20 columns and four classes the log score is 0.05 nats
    # from the truth rather than 0.24 with weak effects, and 0.11 rather than 0.16 with strong ones,
    # in 0.4 s rather than 0.1
    few_rows_each: float = 5.0

    # Parameters (columns, or rows if they are fewer, times linear predictors) up to which it is
    # learned outside linear regression: a step takes a matrix of all pairs. 500 rows of 1,000
    # columns take 11 s rather than 5; 150 rows of 64 columns and ten classes 31 s rather than 2,
    # for no gain
    learned_parameters: int = 500

    # Rows up to which chains without walkers take all of them at every step, without noise: four
    # take 75 microseconds on all of the rookies, and 54 on a batch. Up to as many, HMC on all rows
    # may take over from SGLD on batches
    few_rows: int = 2000
    # Nanoseconds a position for each number of a row, each linear predictor of it and each pair of
    # two predictors: in a batch that 16 walkers share, and in all rows. Measured in fits of four
    # chains with one, three and ten classes and 5 to 150 columns (`python -m benchmarks.rates`)
    shared_row: tuple[float, float, float] = (0.05, 5.5, 0.25)
    row_of_all: tuple[float, float, float] = (0.035, 1.1, 0.0)
    # The same for each parameter and each pair of parameters, of a control variate's own products
    control_variate: tuple[float, float] = (10.0, 0.075)
    # Leverage beyond which a row is in every batch. Columns of one to ten rows, batches of 32 with
    # control variates: beyond 0.03 the sds of their coefficients are 1 to 3 % too wide, beyond 0.1
    # up to 28 %, and without such rows 130 % to 58 times. The lower ones are tried where batches
    # would have more than 32 rows
    leverages: tuple[float, ...] = 0.03, 0.01, 0.003
    # Rows below which a batch costs no less: the step's own overhead is in the way
    min_batch: int = 8

    # ---- spacing ------------------------------------------------------------------------------

    # Steps up to which draws are spaced by their whole autocorrelation time. Half of a longer one
    # leaves draws half of their worth, at half of the cost
    short_thin: float = 6.0
    max_thin: int = 100
    # Largest number of multiplications of a chain from draw to draw along whitened rows, where
    # walkers share products: for the first half of the draws that are asked for, and for all. It is
    # half a minute and 20 seconds on two cores for 4,000 draws. If a trajectory takes more, fewer
    # draws are made. With 3,000 rows of 2,100 columns 540 of 1,000 a chain have an effective sample
    # size of 1,100 in the worst column
    max_draw: tuple[float, float] = (2.4e8, 1.6e8)
    # Largest number of numbers in all draws of a run: 400 megabytes
    max_numbers: float = 5e7

    # ---- processes ----------------------------------------------------------------------------

    # Seconds that a run must have left for processes to share its chains. They take 3 to 12
    # seconds to start, and two processes are at best twice as fast as one
    shared_seconds: float = 60.0

    # ---- warnings -----------------------------------------------------------------------------

    # Relative error of an sd by minibatches or the step size: beyond it a 95 % interval covers less
    # than 94 % or more than 96 %
    warn_inflation: float = 0.05
    # Share of the steps that are clipped (Karagiannis, Handout 6, Note 41)
    warn_clipped: float = 0.01
    # Rows for each coefficient that the prior leaves to the data, below which a note says so
    warn_rows: float = 5.0


THRESHOLDS = Thresholds()
"""The thresholds in force."""

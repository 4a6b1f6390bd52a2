"""Thresholds of tuning and diagnosis, each with the measurement or source behind it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Thresholds:
    """Accepted errors, costs of pilots, and levels from which fits warn.

    ``docs/how_auto_works.md`` has the tables behind the figures.
    """

    # ---- errors that the automatic settings accept --------------------------------------------

    # Largest share that minibatch noise may add to a variance. An sd grows by half of it: a quarter
    # of the Monte Carlo error of an sd from 1,000 independent draws (2.2 %)
    max_noise: float = 0.01
    # Largest distance, in posterior sds, that one of several similar rows of a batch may move a
    # chain near the mode; ten times that for a row alone. Such moves grow with the distance. Beside
    # a rare category of 50 in 5,000 rows (logistic) the largest of 80,000 draws is 5.3 sds out in
    # HMC, 5.4 and 6.0 at 0.1 (batches of 8 and 32), 7 and 11 at 0.15; fourth moments are 3.05, 3.15
    # and 3.4. Fits warn beyond 1
    kick: float = 0.1
    # Largest bias of a step size (means in sds, sds relative) for a sampler that is exact on normal
    # posteriors. The pilot overestimates the bias of the draws: docs/how_auto_works.md, section 6
    max_bias: float = 0.01
    # Largest bias of a step size for other samplers. If no step size reaches it, it is added to
    # the least bias (for PSGLD 1.6 %). PSGLD's steps shorter than 0.1 (2.8 %) gave a sixth of the
    # effective draws per gradient
    max_rough_bias: float = 0.015
    # Variance, relative to that at the mode, at which draws of SGLD two steps apart count half:
    # HMC takes over beyond it
    widest: float = 2.0

    # ---- rows ---------------------------------------------------------------------------------

    # Number of parameters from which "row_space" saves more than its products cost
    many_columns: int = 2000
    # The same for counts and for three or more classes, whose trajectories take many steps: 200
    # rows of 1,000 columns give three times as many effective draws per second in "row_space"
    many_costly_columns: int = 300

    # Rows per free coefficient (K classes have K - 1 per column) below which the scale of the prior
    # is learned; twice as many for three classes or more. See docs/guide/few_rows.md. With 200
    # rows, 20 columns and four classes a learned scale brings the log score to 0.05 nats from the
    # truth rather than 0.24 (weak effects), and to 0.11 rather than 0.16 (strong effects), in 0.4 s
    # rather than 0.1
    few_rows_each: float = 5.0

    # Largest number of parameters (columns, or rows if fewer, times linear predictors) at which the
    # scale is learned outside linear regression, as a step takes a matrix of all pairs. 500 rows
    # of 1,000 columns take 11 s rather than 5; 150 rows of 64 columns and ten classes take 31 s
    # rather than 2, for no gain
    learned_parameters: int = 500

    # Largest number of rows at which chains without walkers take all rows at every step, without
    # noise: a step of four chains takes 75 microseconds on all NBA rookies, and 54 on a batch. Up
    # to as many rows, HMC on all rows may take over from SGLD on batches
    few_rows: int = 2000
    # Nanoseconds per position for each number of a row, each of its linear predictors and each pair
    # of predictors: in a batch that 16 walkers share, and in all rows. Measured in fits of four
    # chains with one, three and ten classes and 5 to 150 columns (`python -m benchmarks.rates`)
    shared_row: tuple[float, float, float] = (0.05, 5.5, 0.25)
    row_of_all: tuple[float, float, float] = (0.035, 1.1, 0.0)
    # Nanoseconds for each parameter and each pair of parameters, for a control variate's products
    control_variate: tuple[float, float] = (10.0, 0.075)
    # Leverage beyond which every batch reads a row. The lower bounds are tried if batches would
    # need more than 32 rows. With indicator columns of one to ten rows, batches of 32 and control
    # variates, a bound of 0.03 leaves the sds of their coefficients 1 to 3 % too wide, a bound of
    # 0.1 up to 28 %, and no bound 130 % or more
    leverages: tuple[float, ...] = 0.03, 0.01, 0.003
    # Rows of the smallest batch; a smaller one costs as much, because of the overhead of a step
    min_batch: int = 8

    # ---- spacing ------------------------------------------------------------------------------

    # Longest autocorrelation time, in steps, by which draws are spaced; longer ones are halved: a
    # draw is then worth half as much, at half the cost
    short_thin: float = 6.0
    max_thin: int = 100
    # Largest number of multiplications between two draws of a chain along whitened rows, if half of
    # the requested draws are made, and if all are: 4,000 draws then take half a minute, or 20
    # seconds, on two cores. If a trajectory takes more, fewer draws are made: 540 rather than 1,000
    # per chain for 3,000 rows of 2,100 columns, with an effective sample size of 1,100 in the worst
    # column
    max_draw: tuple[float, float] = (2.4e8, 1.6e8)
    # Most numbers in all draws of a run: 400 megabytes
    max_numbers: float = 5e7

    # ---- processes ----------------------------------------------------------------------------

    # Seconds that a run must have left for processes to share its chains. Processes take 3 to 12
    # seconds to start, and two are at most twice as fast as one
    shared_seconds: float = 60.0

    # ---- warnings -----------------------------------------------------------------------------

    # Relative error of an sd, from minibatches or the step size, from which fits warn: a 95 %
    # interval then covers less than 94 % or more than 96 %
    warn_inflation: float = 0.05
    # Share of clipped steps from which fits warn (Karagiannis, Handout 6, Note 41)
    warn_clipped: float = 0.01
    # Rows per coefficient under a weak prior, below which a note says that they are few
    warn_rows: float = 5.0


THRESHOLDS = Thresholds()
"""The thresholds in force."""

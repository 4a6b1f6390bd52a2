"""An argument by row: the known factor of each row's noise, as of instruments that differ."""

from dataclasses import dataclass

import numpy as np

from skbayes_sgld import SGLDLinearRegression
from skbayes_sgld.likelihoods import NormalNoise
from skbayes_sgld.likelihoods.normal import NormalKernel
from skbayes_sgld.likelihoods.row_values import RowValues
from skbayes_sgld.rows.arguments import RowArgument
from skbayes_sgld.rows.checks import one_a_row


def checked(noise_scale, X):
    """Factors as floats; raise if one is not positive."""
    scale = one_a_row(noise_scale, "noise_scale", X)
    if not np.all((scale > 0) & (scale < np.inf)):
        raise ValueError(f"noise_scale has the value {scale.min():g}; factors must be positive.")
    return scale


NOISE_SCALE = RowArgument(
    checked,
    lambda scale: RowValues(others={"noise_scale": scale}),
    is_size=False,
    fitted_to="rows of unequal noise",
    elsewhere="known factors of the noise are of ScaledRegression",
    documentation="``noise_scale``, an argument by row, is the known factor of the standard "
    "deviation of each row's noise. None: 1.",
)


class ScaledKernel(NormalKernel):
    """Normal rows whose third local parameter, if there is one, is the factor."""

    def derivatives(self, u, *orders):
        if u.shape[1] > 2:
            u = np.stack([u[:, 0], u[:, 1] + 2.0 * np.log(u[:, 2])], axis=1)
        return super().derivatives(u, *orders)


@dataclass(eq=False, repr=False)
class ScaledNoise(NormalNoise):
    """Normal observations whose noise has a known factor in each row."""

    quadratic = False  # sums of products do not know the factors
    takes = {"noise_scale": 1.0}  # the last row of u, and its value where it is not given
    kernel = ScaledKernel

    def variance(self, u):
        return super().variance(u) * (u[:, 2] ** 2 if u.shape[1] > 2 else 1.0)


class ScaledRegression(SGLDLinearRegression):
    """Linear regression whose noise has a known factor in each row."""

    _row_arguments = ("noise_scale",)

    def _likelihood(self):
        return ScaledNoise()

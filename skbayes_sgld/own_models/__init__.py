"""Models that users write, as posteriors to sample; and two such models."""

from skbayes_sgld.own_models.boundary import CustomPosterior, FunctionPosterior, as_posterior
from skbayes_sgld.own_models.coordinates import Coordinates
from skbayes_sgld.own_models.examples.stochastic_volatility import StochasticVolatility
from skbayes_sgld.own_models.examples.tied_mixture import TiedGaussianMixture
from skbayes_sgld.own_models.gradient_check import check_gradient

__all__ = [
    "Coordinates",
    "CustomPosterior",
    "FunctionPosterior",
    "StochasticVolatility",
    "TiedGaussianMixture",
    "as_posterior",
    "check_gradient",
]

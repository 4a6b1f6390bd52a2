"""Data sets: the table of NBA rookies, and generators whose true parameters are known."""

from ._generators import (
    make_correlated_pair,
    make_cubic,
    make_logistic,
    make_two_clusters,
)
from ._mixture import make_tied_means_mixture
from ._nba import load_nba_rookies
from ._volatility import make_stochastic_volatility

__all__ = [
    "load_nba_rookies",
    "make_correlated_pair",
    "make_cubic",
    "make_logistic",
    "make_stochastic_volatility",
    "make_tied_means_mixture",
    "make_two_clusters",
]

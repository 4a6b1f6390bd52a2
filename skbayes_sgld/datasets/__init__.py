"""Data sets: cars, NBA rookies, S&P 500 returns, and generators whose true parameters are known."""

from ._generators import (
    make_correlated_pair,
    make_cubic,
    make_logistic,
    make_stochastic_volatility,
    make_tied_means_mixture,
    make_two_clusters,
)
from ._loaders import load_cars, load_nba_rookies, load_sp500_returns

__all__ = [
    "load_cars",
    "load_nba_rookies",
    "load_sp500_returns",
    "make_correlated_pair",
    "make_cubic",
    "make_logistic",
    "make_stochastic_volatility",
    "make_tied_means_mixture",
    "make_two_clusters",
]

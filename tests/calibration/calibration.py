"""Simulation-based calibration: are the posterior's ranks of the true parameters uniform?

Draw parameters from the prior, data from the model, and count how many of L posterior draws are
below the true parameter: over replications these ranks are uniform on 0, ..., L exactly if the
draws come from the posterior (Cook, Gelman & Rubin 2006; Talts et al. 2018). Ranks of the
parameters alone cannot tell the posterior from the prior; those of the log likelihood can
(Modrak et al. 2023), and are taken too.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from .models import MODELS, fitted, log_likelihood, replicate

L = 99  # draws a rank is taken among: ranks 0, ..., 99
N_BINS = 20


def ranks(name: str, number: int, changes: dict[str, Any]) -> tuple[dict[str, int], bool]:
    """Rank of each true parameter in one replication, and whether the fit warned."""
    sample, estimator, warned = fitted(name, number, changes)
    posterior = estimator.posterior_
    # The default draws are nearly independent; every tenth of a chain is so even where they are
    # not quite. 4 chains x 25 draws are one too many.
    spacing = posterior.values.shape[1] // 25
    draws = posterior.values[:, spacing - 1 :: spacing].reshape(-1, len(sample.truth))[:L]
    values = np.vstack([sample.truth, draws])
    values = np.column_stack([values, log_likelihood(MODELS[name], sample, values)])
    below = (values[1:] < values[0]).sum(axis=0)
    return dict(zip([*posterior.names, "log_likelihood"], below.tolist(), strict=True)), warned


def judge(ranks: np.ndarray) -> dict[str, float]:
    """Test statistics of the ranks of one parameter.

    Returns
    -------
    dict
        ``p_value`` is that of the chi-square test of the histogram. ``location`` and ``width``
        are in standard errors: the ranks' mean, positive where the draws are too low, and their
        mean squared distance from the middle, positive where the posterior is too narrow.
    """
    counts = np.bincount(ranks * N_BINS // (L + 1), minlength=N_BINS)
    levels = np.arange(L + 1)
    scores = {"location": levels, "width": (levels - L / 2) ** 2}
    return {
        "p_value": float(stats.chisquare(counts).pvalue),
        **{
            key: float((score[ranks].mean() - score.mean()) / score.std() * np.sqrt(len(ranks)))
            for key, score in scores.items()
        },
    }


def calibrate(
    name: str, n_replications: int | None = None, **changes: Any
) -> tuple[pd.DataFrame, int]:
    """Table of one model, a row a parameter, and how many fits warned.

    Parameters
    ----------
    name : str
        One of ``MODELS``.
    n_replications : int or None, default=None
        None: those of the model.
    **changes : dict
        Parameters of the estimator, to make it wrong on purpose.
    """
    results = replicate(ranks, name, n_replications, changes)
    table = pd.DataFrame([found for found, _ in results])
    order = max((found for found, _ in results), key=len)  # of the widest design
    rows = [
        {
            "model": name,
            "parameter": parameter,
            "replications": int(table[parameter].count()),
            **judge(table[parameter].dropna().to_numpy(int)),
        }
        for parameter in order
    ]
    return pd.DataFrame(rows), sum(warned for _, warned in results)


def family_p_value(table: pd.DataFrame) -> float:
    """Smallest p-value times the number of parameters (Bonferroni)."""
    return min(1.0, float(table["p_value"].min()) * len(table))

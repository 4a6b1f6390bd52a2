"""Scores and predictions of chains that are no better than random walks from their starts.

Steps that are far too short keep chains near their starts. Starts around the mode predict as well
as the mode, so a search by accuracy would choose them.
"""

from __future__ import annotations

from typing import Any

from sklearn.exceptions import ConvergenceWarning

from skbayes_sgld._warnings import warn


def unless_random_walks(estimator: Any, score: float) -> float:
    """The score, or nan, with a warning, if the chains are no better than random walks."""
    models = getattr(estimator, "estimators_", [estimator])
    results = [vars(one).get("result_") for one in models]
    if not any(result is not None and result.are_random_walks for result in results):
        return score
    warn(
        f"The score of {type(estimator).__name__} is nan: its chains are no better than random "
        "walks, so the draws are not a posterior; set step_size='auto', or a longer step.",
        ConvergenceWarning,
    )
    return float("nan")


def warn_of_random_walks(estimator: Any) -> None:
    """Warn, once for each fit, if predictions are those of chains that never left their starts.

    scikit-learn's scorers by name see only predictions, which are as good as those of the mode. The
    result remembers the warning: Python forgets which it has shown at every check of scikit-learn.
    """
    result = vars(estimator).get("result_")
    if result is None or result.has_warned or not result.are_random_walks:
        return
    warn(
        f"{type(estimator).__name__}: the chains are no better than random walks from their "
        "starts, so these predictions are not those of a posterior, however well they score; set "
        "step_size='auto', or a longer step.",
        ConvergenceWarning,
    )
    result.has_warned = True

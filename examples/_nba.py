"""Shared parts of ``nba_rookies.py``: the table, the pipeline, the folds."""

from __future__ import annotations

from dataclasses import dataclass

from _figure import say
from sklearn.base import BaseEstimator
from sklearn.impute import SimpleImputer
from sklearn.model_selection import StratifiedGroupKFold
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import Bunch

from skbayes_sgld.datasets import load_nba_rookies

COVERAGE = 0.9


@dataclass(frozen=True)
class Work:
    """Sizes of a run: folds, draws, and settings to search."""

    n_folds: int = 5
    n_draws: int = 1000
    step_sizes: tuple[float, ...] = (1e-6, 1e-4, 1e-3, 1e-2)  # of the plain algorithm's search
    temperatures: tuple[float, ...] = (0.1, 1.0, 10.0)
    n_plain_steps: int = 2000


QUICK = Work(
    n_folds=2,
    n_draws=250,
    step_sizes=(1e-6, 1e-4, 1e-2),
    temperatures=(1.0,),
    n_plain_steps=600,
)


def percent(share: float, digits: int = 0) -> str:
    """A share in percent."""
    return f"{100 * share:.{digits}f} %"


def plain(column: str) -> str:
    """Name of a column as one says it."""
    return column.replace("_pct", " %").replace("_", " ")


def load() -> Bunch:
    """Load the rookies without contradictory rows and copies, and print how many were dropped."""
    table, rookies = load_nba_rookies(), load_nba_rookies(duplicates="drop")
    season = [table.names, *(table.data[column] for column in table.data)]
    labels = table.target.groupby(season, dropna=False).transform("nunique")
    contradictory = int((labels > 1).sum())
    copies = len(table.data) - contradictory - len(rookies.data)
    say(
        f"{len(rookies.data):,} rookies, {rookies.data.shape[1]} statistics of the first season; "
        f"{percent(rookies.target.mean())} had a career of at least five years."
    )
    say(
        f'duplicates="drop" left out {contradictory} of {len(table.data):,} rows, the same season '
        f"with contradictory labels and no way to tell which is right, and {copies} copies, which "
        "would count twice. Every split is by name, so that no rookie is on both sides."
    )
    say(
        "Beware: a career that was still going when the table was made counts by its length until "
        "then, so the last seasons' rookies (Victor Oladipo, Zach LaVine) are labelled as shorter."
    )
    return rookies


def pipeline(model: BaseEstimator) -> Pipeline:
    """Model behind imputation and scaling.

    A percentage is missing where there was no attempt, and is set to 0. Data frames keep the names
    of the columns for the model.
    """
    return Pipeline(
        [
            ("impute", SimpleImputer(strategy="constant", fill_value=0.0)),
            ("scale", StandardScaler()),
            ("model", model),
        ]
    ).set_output(transform="pandas")


def group_folds(n_folds: int) -> StratifiedGroupKFold:
    """Folds that keep a name together and the share of long careers alike."""
    return StratifiedGroupKFold(n_folds, shuffle=True, random_state=0)

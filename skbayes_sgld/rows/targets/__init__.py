"""Kinds of targets, one file for each: numbers, counts, totals, labels and ordered labels."""

from skbayes_sgld.rows.targets.base import Target
from skbayes_sgld.rows.targets.counts import Counts
from skbayes_sgld.rows.targets.labels import Labels
from skbayes_sgld.rows.targets.numbers import Measurements, Numbers
from skbayes_sgld.rows.targets.ordered_labels import OrderedLabels
from skbayes_sgld.rows.targets.totals import Totals, TotalsOfLabels

__all__ = [
    "Counts",
    "Labels",
    "Measurements",
    "Numbers",
    "OrderedLabels",
    "Target",
    "Totals",
    "TotalsOfLabels",
]

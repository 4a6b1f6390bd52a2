"""Scores of predictions of rows in blocks, by one pass."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from sklearn.utils.validation import check_is_fitted

from skbayes_sgld.blocks.dask_predictions import without_rows
from skbayes_sgld.blocks.source import Block, RowSource
from skbayes_sgld.rows.arguments import beside_size, check_by_row_given
from skbayes_sgld.rows.scores import Score, Tally, are_rates, share_of_hits, within_squares


def score_blocks(model: Any, score: Score, source: RowSource) -> float:
    """Score of a fitted model's predictions of rows in blocks.

    Raises
    ------
    ValueError, TypeError
        For rows that cannot be used, naming the block; where all weights are zero.
    """
    check_is_fitted(model)
    names, model = source.feature_names, without_rows(model)
    tally = source.reduce(
        partial(_tally_of_block, model=model, score=score, names=names), Tally.plus
    )
    if not tally.total > 0:
        raise ValueError("the weights of all rows are zero; at least one must be positive.")
    return score.score_tally(tally)


def _tally_of_block(block: Block, model: Any, score: Score, names: list[str] | None) -> Tally:
    X = block.X if names is None else pd.DataFrame(block.X, columns=names, copy=False)
    target = model._fitted.target
    by_row = target.named(block.values.others)
    if not (score.numeric and are_rates(target.likelihood, block.y, block.weight)):
        fourth = target.size_argument or "by_row"
        in_blocks = (
            f"blocks of RowBlocks are (X, y, weight, {fourth}), and arrays are given as score"
        )
        check_by_row_given(model, by_row, in_blocks)
    predicted = model.predict(X, **beside_size(by_row))
    y, where = block.y, f"y of block {block.number}"
    if score.numeric:
        predicted = within_squares(predicted)
    if predicted.shape != y.shape:
        raise ValueError(
            f"{where} has shape {y.shape}, and the predictions have {predicted.shape}: outputs "
            "are scored one by one, or all together of arrays."
        )
    if score.numeric:
        if y.dtype.kind not in "fiub":
            raise ValueError(f"{where} has dtype {y.dtype}; the target must be numeric.")
        try:
            y = target.encode_y(y)
        except ValueError as error:
            raise ValueError(f"block {block.number}: {error}") from None
    weight = np.ones(len(y)) if block.weight is None else block.weight
    if block.size is not None:  # rates weighted by exposure, or shares by trials
        weight = weight * block.size
        if score.numeric:
            y = score.on_scale(y, block.size)
        else:
            y, score = y / block.size, replace(score, loss=share_of_hits)
    return score.tally(y, predicted, weight)

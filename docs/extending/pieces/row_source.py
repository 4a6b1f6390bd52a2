"""Rows of a CSV file, read in blocks."""

import pandas as pd

from skbayes_sgld.blocks import RowBlocks


def read_csv(path, target, n_rows=10_000):
    """Blocks of a CSV file with one column as target.

    >>> import tempfile
    >>> from skbayes_sgld import SGLDLogisticRegression
    >>> from skbayes_sgld.datasets import load_nba_rookies
    >>> rookies = load_nba_rookies()
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     table = rookies.data.iloc[:, :2].assign(target=rookies.target)
    ...     table.to_csv(f"{folder}/rookies.csv", index=False)
    ...     blocks = read_csv(f"{folder}/rookies.csv", "target", n_rows=500)
    ...     model = SGLDLogisticRegression(random_state=0).fit(blocks)
    >>> model.coef_.shape
    (1, 2)
    """

    def read():  # called once for each pass over the rows
        with pd.read_csv(path, chunksize=n_rows) as tables:
            for table in tables:
                yield table.drop(columns=target), table[target]

    return RowBlocks(read)

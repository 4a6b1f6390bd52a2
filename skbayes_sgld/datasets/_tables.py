"""The packaged CSV files, with their descriptions."""

from __future__ import annotations

from importlib.resources import files

import pandas as pd


def read_table(name: str) -> tuple[pd.DataFrame, dict[str, str]]:
    """Table of a packaged file, and ``DESCR``, ``filename`` and ``data_module`` of its Bunch."""
    package = files("skbayes_sgld.datasets")
    with package.joinpath("data", f"{name}.csv").open(encoding="utf-8") as file:
        table = pd.read_csv(file)
    description = package.joinpath("descr", f"{name}.md").read_text(encoding="utf-8")
    about = {"filename": f"{name}.csv", "data_module": "skbayes_sgld.datasets.data"}
    return table, {"DESCR": description} | about

"""One fit of many rows, run by the Python that has its library.

``python benchmarks/_many_rows_worker.py METHOD FOLDER FEW`` fits the Parquet files of the folder.
It prints as JSON the passes over them, seconds, and processor seconds and peak memory of all
processes that work. A fit of the few rows of another folder comes before: it imports and compiles.
The library of the method is all that it needs.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from time import perf_counter
from typing import Any

COLUMNS = [f"x{j}" for j in range(20)]
_TICKS = os.sysconf("SC_CLK_TCK")


def cpu_seconds(process: int) -> float:
    """Processor seconds of a process so far, all threads together."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def peak(process: int) -> float:
    """Largest resident memory of a process so far, in megabytes."""
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmHWM:")).split()[1]) / 1e3


Method = Callable[[Path, Path], dict[str, Any]]
Fit = Callable[[Path], tuple[int, list[float]]]


def measure(processes: list[int], fit: Fit, folder: Path, few: Path) -> dict[str, Any]:
    """Cost of ``fit``, which returns its passes and the coefficients."""
    fit(few)
    before, begin = sum(map(cpu_seconds, processes)), perf_counter()
    passes, coef = fit(folder)
    seconds = perf_counter() - begin
    return {
        "passes": passes,
        "seconds": seconds,
        "cpu_seconds": sum(map(cpu_seconds, processes)) - before,
        "peak_megabytes": sum(map(peak, processes)),
        "coef": coef,
    }


# ---- this package --------------------------------------------------------------------------------


def of_blocks(name: str, target: str) -> Method:
    """A default fit of blocks of the files."""

    def run(folder: Path, few: Path) -> dict[str, Any]:
        import skbayes_sgld

        def fit(folder: Path) -> tuple[int, list[float]]:
            blocks = skbayes_sgld.RowBlocks.from_parquet(folder, target, COLUMNS)
            model = getattr(skbayes_sgld, name)(random_state=0).fit(blocks)
            return blocks.n_passes, model.coef_.ravel().tolist()

        return measure([os.getpid()], fit, folder, few)

    return run


def of_dask(name: str, target: str) -> Method:
    """A default fit of a Dask frame of the files, which one worker reads in every pass."""

    def run(folder: Path, few: Path) -> dict[str, Any]:
        import skbayes_sgld
        from skbayes_sgld.blocks.dask_rows import DaskRows

        made, reduce = [], DaskRows.reduce

        def counted(self: DaskRows, *given: Any) -> Any:
            made.append(self)
            return reduce(self, *given)

        DaskRows.reduce = counted  # type: ignore[method-assign]
        with one_worker() as (processes, frame_of):

            def fit(folder: Path) -> tuple[int, list[float]]:
                made.clear()
                frame = frame_of(folder)
                model = getattr(skbayes_sgld, name)(random_state=0)
                model.fit(frame[COLUMNS], frame[target])
                return len(made), model.coef_.ravel().tolist()

            return measure(processes, fit, folder, few)

    return run


@contextmanager
def one_worker() -> Iterator[tuple[list[int], Callable[[Path], Any]]]:
    """Cluster of one worker with one thread: the processes, and the frame of a folder."""
    import dask.dataframe as dd
    from distributed import Client, LocalCluster

    options = {"threads_per_worker": 1, "dashboard_address": ":0", "memory_limit": None}
    with LocalCluster(n_workers=1, **options) as cluster, Client(cluster) as client:
        processes = [os.getpid(), *client.run(os.getpid).values()]
        yield processes, dd.read_parquet


# ---- others --------------------------------------------------------------------------------------


def dask_ml(solver: str) -> Method:
    """Dask-ML's logistic regression; a pass is a computation over all blocks."""

    def run(folder: Path, few: Path) -> dict[str, Any]:
        import dask_glm.algorithms as algorithms
        from dask_ml.linear_model import LogisticRegression

        made: list[int] = []

        def counting(compute: Callable[..., Any]) -> Callable[..., Any]:
            def counted(*given: Any, **options: Any) -> Any:
                made.append(1)
                return compute(*given, **options)

            return counted

        algorithms.compute = counting(algorithms.compute)  # of lbfgs
        algorithms.da.compute = counting(algorithms.da.compute)  # of admm
        with one_worker() as (processes, frame_of):

            def fit(folder: Path) -> tuple[int, list[float]]:
                frame = frame_of(folder)
                rows = frame[[*COLUMNS, "label"]].to_dask_array()  # in one array, or Dask reads
                rows.compute_chunk_sizes()  # a single column in blocks of another size
                made.clear()
                model = LogisticRegression(solver=solver).fit(rows[:, :-1], rows[:, -1])
                return len(made) + 1, model.coef_.ravel().tolist()  # one for the sizes

            return measure(processes, fit, folder, few)

    return run


def pyspark(folder: Path, few: Path) -> dict[str, Any]:
    """Spark's logistic regression on one core; it keeps standardised rows in memory itself."""
    from pyspark.ml.classification import LogisticRegression
    from pyspark.ml.feature import VectorAssembler
    from pyspark.sql import SparkSession

    options = {
        "spark.ui.enabled": "false",
        "spark.driver.memory": "6g",
        "spark.driver.extraJavaOptions": "-XX:UseAVX=2 -XX:+UseSerialGC",
    }
    builder = SparkSession.builder.master("local[1]")
    for key, value in options.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    try:
        java = spark.sparkContext._jvm.ProcessHandle.current().pid()
        assemble = VectorAssembler(inputCols=COLUMNS, outputCol="features")

        def fit(folder: Path) -> tuple[int, list[float]]:
            frame = spark.read.parquet(str(folder))
            rows = assemble.transform(frame).select("features", "label")
            model = LogisticRegression().fit(rows)
            # one for the moments; each iteration has at least one
            return model.summary.totalIterations + 1, model.coefficients.toArray().tolist()

        return measure([os.getpid(), int(java)], fit, folder, few)
    finally:
        spark.stop()


METHODS: dict[str, tuple[str, Method]] = {
    "logistic, Parquet": ("skbayes-sgld", of_blocks("SGLDLogisticRegression", "label")),
    "logistic, Dask": ("skbayes-sgld", of_dask("SGLDLogisticRegression", "label")),
    "linear, Parquet": ("skbayes-sgld", of_blocks("SGLDLinearRegression", "target")),
    "linear, Dask": ("skbayes-sgld", of_dask("SGLDLinearRegression", "target")),
    "Dask-ML, ADMM": ("dask-ml", dask_ml("admm")),
    "Dask-ML, L-BFGS": ("dask-ml", dask_ml("lbfgs")),
    "Spark": ("pyspark", pyspark),
}


if __name__ == "__main__":
    name, *folders = sys.argv[1:]
    library, method = METHODS[name]
    print(json.dumps({"version": version(library)} | method(*map(Path, folders))))

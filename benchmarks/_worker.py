"""Tasks in a long-lived process of its own, with the package of a named checkout.

The process takes this file from here and `skbayes_sgld` from the checkout, so that two states of
the package are measured by the same tasks: they use its public interface only.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
START = "65b9d57"  # the package was right by then, and not yet fast

_SERVE = f"""
import sys
sys.path.insert(0, {str(ROOT)!r})
from benchmarks import _worker
sys.path.remove({str(ROOT)!r})
_worker.serve()
"""
_IMPORT = """
import sys
from time import perf_counter
start = perf_counter()
import {module}
print(perf_counter() - start)
"""


def environment() -> dict[str, str]:
    """Environment of a process that keeps the bytecode it compiles, as an installation does."""
    # compiled at every import, a package in source takes a quarter more beside installed ones
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


@contextmanager
def checkout(reference: str) -> Iterator[Path]:
    """Folder with the package as it is at a commit; a folder is taken as it is."""
    if Path(reference).is_dir():
        yield Path(reference).resolve()
        return
    command = ["git", "-C", str(ROOT), "archive", reference, "skbayes_sgld"]
    found = subprocess.run(command, capture_output=True)
    if found.returncode:
        raise LookupError(f"{reference}: {found.stderr.decode().strip()}")
    with TemporaryDirectory(prefix="skbayes_sgld-") as folder:
        with tarfile.open(fileobj=BytesIO(found.stdout)) as archive:
            archive.extractall(folder, filter="data")
        yield Path(folder)


class Worker:
    """Process that runs tasks by name and says what they took."""

    def __init__(self, folder: Path) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", _SERVE],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment() | {"PYTHONPATH": str(folder)},
            cwd=folder,
            text=True,
        )
        where = self._answer()
        if not Path(where).is_relative_to(folder):
            raise RuntimeError(f"the worker imported {where}, not that of {folder}")

    def _answer(self) -> Any:
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"the worker ended with code {self._process.wait()}")
        return json.loads(line)

    def run(self, task: str) -> float:
        """Seconds of a task, which is made ready first if it has not run before."""
        self._process.stdin.write(json.dumps(task) + "\n")
        self._process.stdin.flush()
        return self._answer()

    def close(self) -> None:
        """End the process."""
        self._process.stdin.close()
        self._process.wait()


@contextmanager
def workers(*folders: Path) -> Iterator[list[Worker]]:
    """One worker a folder."""
    started: list[Worker] = []
    try:
        for folder in folders:
            started.append(Worker(folder))
        yield started
    finally:
        for worker in started:
            worker.close()


def import_seconds(module: str) -> float:
    """Time of an import in a fresh process, without that of Python's own start."""
    command = [sys.executable, "-c", _IMPORT.format(module=module)]
    done = subprocess.run(command, capture_output=True, check=True, text=True, env=environment())
    return float(done.stdout)


# ---- inside the process --------------------------------------------------------------------------

TASKS: dict[str, Callable[[], Callable[[], Any]]] = {}


def _task(name: str) -> Callable[[Callable], Callable]:
    """Register a function that makes a task ready and returns it."""

    def register(prepare: Callable) -> Callable:
        TASKS[name] = prepare
        return prepare

    return register


def serve() -> None:
    """Answer every task that is named on the standard input by its seconds."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a task prints does not get among the answers
    warnings.simplefilter("ignore")  # short runs are told that they are short
    import skbayes_sgld

    print(json.dumps(skbayes_sgld.__file__), file=answers, flush=True)
    ready: dict[str, Callable[[], Any]] = {}
    for line in sys.stdin:
        name = json.loads(line)
        if name not in ready:
            ready[name] = TASKS[name]()
        start = perf_counter()
        own = ready[name]()  # seconds, of a task that keeps time itself
        print(json.dumps(own or perf_counter() - start), file=answers, flush=True)


def _fit(model: str, data: Callable[[], Any], **settings: Any) -> Callable[[], Callable]:
    def prepare() -> Callable[[], None]:
        import skbayes_sgld

        X, y = data()
        estimator = getattr(skbayes_sgld, model)(random_state=0, **settings)

        def fit() -> None:
            estimator.fit(X, y)

        return fit

    return prepare


def _data(name: str, *size: int) -> Callable[[], Any]:
    def load() -> Any:
        from benchmarks import _data as data

        return getattr(data, name)(*size)

    return load


_PLAIN = {
    "sampler": "sgld",
    "preconditioner": None,
    "gradient": "minibatch",
    "step_size": 1e-5,
    "batch_size": 32,
    "n_burnin": 1000,
    "thin": 5,
}
for _name, _model, _load, _settings in (
    ("fit: NBA", "SGLDLogisticRegression", _data("rookies"), {}),
    ("fit: breast cancer", "SGLDLogisticRegression", _data("breast_cancer"), {}),
    ("fit: iris", "SGLDLogisticRegression", _data("iris"), {}),
    ("fit: diabetes", "SGLDLinearRegression", _data("diabetes"), {}),
    ("fit: logistic 1e5 x 20", "SGLDLogisticRegression", _data("logistic", 100_000, 20), {}),
    ("fit: linear 1e5 x 20", "SGLDLinearRegression", _data("linear", 100_000, 20), {}),
    ("fit: plain SGLD, NBA", "SGLDLogisticRegression", _data("rookies"), _PLAIN),
    ("fit: SGDMAP 1e4 x 20", "SGDMAPClassifier", _data("logistic", 10_000, 20), {}),
):
    _task(_name)(_fit(_model, _load, **_settings))


def _search(
    temperatures: list[float], scales: list[float], cv: int, n_jobs: int | None, fresh: bool
) -> Callable[[], Callable]:
    def prepare() -> Callable[[], float]:
        from joblib.externals.loky import get_reusable_executor
        from sklearn.model_selection import GridSearchCV

        from skbayes_sgld import SGLDLogisticRegression

        X, y = _data("rookies")()
        search = GridSearchCV(
            SGLDLogisticRegression(random_state=0).set_params(prior__scale="auto"),
            {"temperature": temperatures, "prior__scale": scales},
            scoring="neg_log_loss",
            cv=cv,
            refit=False,
            n_jobs=n_jobs,
        )

        def run() -> float:
            if fresh:  # as in a script, which has to start its processes
                get_reusable_executor().shutdown()
            start = perf_counter()
            search.fit(X, y)
            return perf_counter() - start

        return run

    return prepare


_GRID = [0.5, 1.0, 2.0], [0.3, 0.5, 1.0, 2.0], 5, 2
_task("search: 60 fits, 2 processes")(_search(*_GRID, fresh=True))
_task("search: 60 fits, 2 processes that run already")(_search(*_GRID, fresh=False))
_task("search: 4 fits")(_search([1.0], [0.5, 1.0], 2, None, fresh=False))


def _predict(method: str, **arguments: Any) -> Callable[[], Callable]:
    def prepare() -> Callable[[], None]:
        from skbayes_sgld import SGLDLinearRegression, SGLDLogisticRegression

        linear = method in ("predict", "predict_interval")
        model = SGLDLinearRegression if linear else SGLDLogisticRegression
        data = _data("linear" if linear else "logistic", 5_000, 20)()
        fitted = model(random_state=0).fit(*data)

        def predict() -> None:
            getattr(fitted, method)(data[0], **arguments)

        return predict

    return prepare


_task("predict, with sd")(_predict("predict", return_std=True))
_task("predict_interval")(_predict("predict_interval"))
_task("predict_proba")(_predict("predict_proba"))
_task("predict_proba_interval")(_predict("predict_proba_interval"))


def _predict_family(name: str) -> Callable[[], Callable]:
    def prepare() -> Callable[[], None]:
        import skbayes_sgld
        from benchmarks._data import FAMILIES, of_family

        model, settings = FAMILIES[name]
        X, y, given = of_family(name, 2_000, 10)
        fitted = getattr(skbayes_sgld, model)(random_state=0, **settings).fit(X, y, **given)
        method = "predict_proba" if "classes" in name else "predict_interval"

        def predict() -> None:
            getattr(fitted, method)(X, **given)

        return predict

    return prepare


for _name in (
    "log-linear noise",
    "Student-t noise",
    "Student-t, log-linear noise",
    "Poisson",
    "negative binomial",
    "gamma",
    "beta-binomial",
    "three classes",
    "four ordered classes",
):
    _task(f"predict: {_name}")(_predict_family(_name))


@_task("import")
def _import() -> Callable[[], float]:
    return lambda: import_seconds("skbayes_sgld")

"""The interrupt keys at random moments: ``python -m tests.maintainer.soak.interrupts``.

``fit`` and ``sample`` are interrupted as a terminal does it, by a signal to the process and its
children, at moments drawn from the time that they take: one chain after the other, in threads,
passes over many rows in threads, and in processes. After each interrupt the estimator is as it
was (or, where the fit had come to its end, the finished one), BLAS has its threads, NumPy and the
warnings their settings, and no thread and no child is left; the next fit finds the draws of one
that was never interrupted.

The process that is interrupted (``--inside``) runs in a session of its own.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd
from joblib.externals.loky import get_reusable_executor
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_info

import skbayes_sgld
from skbayes_sgld import SGLDLinearRegression, SGLDLogisticRegression
from skbayes_sgld.own_models import CustomPosterior
from skbayes_sgld.sampling import workers as sharing
from skbayes_sgld.sampling.tuning.thresholds import Thresholds

from .report import Report, options

RNG = np.random.default_rng(0)
X = RNG.standard_normal((50, 3))
Y = X @ [1.0, -2.0, 0.5] + RNG.standard_normal(50)
MANY = RNG.standard_normal((30_000, 40))  # passes over its rows are made by threads
MANY_Y = MANY[:, 0] + RNG.standard_normal(30_000) > 0.0
SHORT = {"n_draws": 300, "random_state": 0}
LONGEST = 60.0  # seconds until everything is gone that an interrupt leaves behind
WORKERS = 2
# how often each is interrupted, of 200 times
SHARES = {"serial": 80, "threads": 40, "rows": 40, "processes": 40}


class Regression:
    """A user's model with rows."""

    n_samples, n_params = X.shape

    def log_likelihood(self, theta, idx=None):
        rows, y = (X, Y) if idx is None else (X[idx], Y[idx])
        return -0.5 * np.square(y - (rows @ theta[:, :, None])[..., 0])

    def grad_log_likelihood(self, theta, idx=None):
        rows, y = (X, Y) if idx is None else (X[idx], Y[idx])
        if idx is None:
            return (y - theta @ rows.T) @ rows
        return ((y - (rows @ theta[:, :, None])[..., 0])[:, None] @ rows)[:, 0]

    def log_prior(self, theta):
        return -0.5 * np.square(theta).sum(axis=1)

    def grad_log_prior(self, theta):
        return -theta


def sampled(n_jobs: int | None) -> np.ndarray:
    """Draws of a model of the user's."""
    return skbayes_sgld.sample(CustomPosterior(Regression()), n_jobs=n_jobs, **SHORT).values


def fitted(model: Any, rows: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Draws of a fit."""
    return model.fit(rows, y).posterior_.values


def state() -> dict[str, Any]:
    """State of the process that an interrupt must not change."""
    return {
        "BLAS threads": [library["num_threads"] for library in threadpool_info()],
        "np.geterr": np.geterr(),
        "warnings' filters": list(warnings.filters),
        "handler": signal.getsignal(signal.SIGINT),
        "children": workers(),
    }


def workers() -> list[str]:
    """Children of the process that are joblib's workers."""
    found = []
    for child in Path(f"/proc/self/task/{os.getpid()}/children").read_text().split():
        try:
            command = Path(f"/proc/{child}/cmdline").read_text()
        except OSError:  # it has gone meanwhile
            continue
        if "loky" in command and "resource_tracker" not in command:
            found.append(child)
    return found


def interrupted(call: Callable[[], Any], seconds: float) -> bool:
    """Whether the call was interrupted, by keys that are pressed after so many seconds."""
    pressed = threading.Event()

    def press() -> None:
        time.sleep(seconds)
        os.killpg(os.getpgid(0), signal.SIGINT)
        pressed.set()

    thread = threading.Thread(target=press, daemon=True)
    try:
        try:
            thread.start()
            call()
        finally:
            # the keys are pressed in any case, and must not meet what is not tried
            while not pressed.is_set() or thread.is_alive():
                time.sleep(0.001)
    except KeyboardInterrupt:
        return True
    return False


def settled(before: dict[str, Any]) -> dict[str, Any]:
    """Parts of the state that differ after some time to settle."""
    end = time.monotonic() + LONGEST
    while True:
        now = state()
        changed = {name: now[name] for name in before if now[name] != before[name]}
        if not changed or time.monotonic() > end:
            return changed
        time.sleep(0.01)


def attempts(mode: str) -> list[tuple[str, Any, Callable[[Any], np.ndarray]]]:
    """Calls to interrupt: name, estimator if there is one, and the call."""
    n_jobs = WORKERS if mode in ("threads", "processes") else None
    if mode == "rows":
        model = SGLDLogisticRegression(**SHORT)
        return [("fit of many rows", model, lambda m: fitted(m, MANY, MANY_Y))]
    linear = SGLDLinearRegression(**SHORT, prior="laplace", n_jobs=n_jobs)
    logistic = SGLDLogisticRegression(**SHORT, n_jobs=n_jobs)
    return [
        ("fit, linear", linear, lambda m: fitted(m, X, Y)),
        ("fit, logistic", logistic, lambda m: fitted(m, X, Y > 0.0)),
        ("sample", None, lambda m: sampled(n_jobs)),
    ]


def inside(mode: str, n_times: int, seed: int, seconds: float) -> None:
    """Be interrupted so often, and print one line each time."""
    rng, end = np.random.default_rng(seed), time.monotonic() + seconds
    backend = "loky" if mode == "processes" else "threading"
    tries = attempts(mode)
    with joblib.parallel_config(backend=backend):
        known, lengths = {}, {}
        for name, model, call in tries:
            for _ in range(2):  # the second is as fast as it will be
                begin = time.perf_counter()
                known[name] = call(model)
                lengths[name] = time.perf_counter() - begin
        before = state() | {"children": []}
        for number in range(n_times):
            if time.monotonic() > end:
                break
            name, model, call = tries[number % len(tries)]
            if mode == "processes" and number % 2:  # workers that are started meanwhile
                get_reusable_executor().shutdown(wait=True)
            fit = None if model is None else dict(vars(model))
            after = rng.uniform(0.0, 1.1) * lengths[name]
            done = interrupted(lambda c=call, m=model: c(m), after)
            # those of a call that has come to its end wait for the next one
            expected = before if done else before | {"children": workers()}
            wrong = [f"{key}: {value}" for key, value in settled(expected).items()]
            if model is not None:
                kept = vars(model).keys() == fit.keys()
                kept = kept and all(vars(model)[key] is fit[key] for key in fit)
                whole = not kept and np.array_equal(model.posterior_.values, known[name])
                if not (kept or whole) or (kept and not done):
                    wrong.append("half a fit")
            begin = time.perf_counter()
            if not np.array_equal(call(model), known[name]):
                wrong.append("the next fit has other draws")
            if mode != "processes":  # which it has to start anew
                lengths[name] = time.perf_counter() - begin  # the machine may be busier now
            outcome = "interrupted" if done else "finished"
            print(mode, name, outcome, "; ".join(wrong), sep="\t", flush=True)
        if mode == "processes":
            get_reusable_executor().shutdown(wait=True)


def outside(n_times: dict[str, int], seed: int, seconds: float) -> tuple[list[list[str]], str]:
    """Lines that the process printed which was interrupted, and its errors."""
    each = [f"{mode}={n}" for mode, n in n_times.items()]
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.maintainer.soak.interrupts", "--inside"]
        + [str(seed), str(seconds), *each],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[3],
        env=os.environ | {"OPENBLAS_NUM_THREADS": "2", "OMP_NUM_THREADS": "2"},
        start_new_session=True,
    )
    try:
        out, errors = process.communicate(timeout=seconds + 60.0)
    finally:
        left = group_left(process.pid)
    lines = [line.split("\t") for line in out.splitlines()]
    if process.returncode or left:
        errors = f"exit code {process.returncode}, processes left: {left}\n{errors[-2000:]}"
    else:
        errors = ""
    return lines, errors


def group_left(group: int) -> bool:
    """Whether processes of the group are left after a while; they are killed."""
    end = time.monotonic() + LONGEST
    while time.monotonic() < end:
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return False
        time.sleep(0.05)
    os.killpg(group, signal.SIGKILL)
    return True


def run(report: Report, n_times: dict[str, int], seed: int, seconds: float) -> pd.DataFrame:
    """Interrupt every mode so often."""
    lines, errors = outside(n_times, seed, seconds)
    report.check(not errors, errors)
    for number, (mode, name, _, wrong) in enumerate(lines):
        report.check(not wrong, f"{mode}, {name}, number {number}: {wrong}")
    return pd.DataFrame([line[:3] for line in lines], columns=["mode", "call", "outcome"])


def main() -> None:
    """Interrupt as often as was asked for."""
    if "--inside" in sys.argv:
        seed, seconds, *each = sys.argv[sys.argv.index("--inside") + 1 :]
        # a parent in the background of a shell hands down that the keys are ignored
        signal.signal(signal.SIGINT, signal.default_int_handler)
        warnings.simplefilter("ignore", ConvergenceWarning)
        sharing.THRESHOLDS = Thresholds(shared_seconds=0.0)
        end = time.monotonic() + float(seconds)
        for done, (mode, n) in enumerate(one.split("=") for one in each):
            inside(mode, int(n), int(seed), (end - time.monotonic()) / (len(each) - done))
        return
    given = options("tests.maintainer.soak.interrupts", sum(SHARES.values()), 600.0)
    report = Report("The interrupt keys at random moments", given.seconds, given.keep)
    total = sum(SHARES.values())
    n_times = {mode: max(1, n * given.cases // total) for mode, n in SHARES.items()}
    found = run(report, n_times, given.seed, given.seconds)
    table = pd.crosstab([found["mode"], found["call"]], found["outcome"]).reset_index()
    counts = {"moments": len(found), **found["outcome"].value_counts()}
    report.end(table, [f"{len(found)} of {sum(n_times.values())} moments"], counts)


if __name__ == "__main__":
    main()

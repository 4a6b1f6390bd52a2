"""Checkpoints that were changed: ``python -m tests.maintainer.soak.files``.

Every file is handed to ``fit(resume_from=...)`` in a process whose address space may grow by one
gibibyte. It must end in a ``ValueError`` that names the file, or, where the change is harmless, in
the very draws of the run. Nothing may be executed, and nothing written.
"""

from __future__ import annotations

import io
import pickle
import resource
import warnings
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd
from sklearn.exceptions import ConvergenceWarning

from skbayes_sgld import SGLDLinearRegression

from .report import Report, options

RNG = np.random.default_rng(0)
X = RNG.standard_normal((30, 2))
Y = X @ [1.0, -2.0] + RNG.standard_normal(30)
SETTINGS = {"n_draws": 40, "n_burnin": 5, "thin": 2, "step_size": 0.5, "random_state": 0}
GROWTH = 2**30  # bytes of the address space
SLACK = 64 * 2**20  # bytes by which reading all of them may raise the memory that is in use


class Malice:
    """An object whose pickle writes a file when it is read."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self):
        return Path.write_text, (self.path, "executed")


def flip_bits(whole: bytes, rng: np.random.Generator, folder: Path) -> bytes:
    content = np.frombuffer(whole, dtype=np.uint8).copy()
    for at in rng.integers(content.size, size=rng.integers(1, 20)):
        content[at] ^= 1 << rng.integers(8)
    return content.tobytes()


def truncate(whole: bytes, rng: np.random.Generator, folder: Path) -> bytes:
    cut = int(rng.integers(len(whole)))
    return whole[:cut] if rng.integers(2) else whole[cut + 1 :]


def cut_out(whole: bytes, rng: np.random.Generator, folder: Path) -> bytes:
    first, last = sorted(rng.integers(len(whole) + 1, size=2))
    return whole[:first] + whole[last + (first == last) :]


def put_in(whole: bytes, rng: np.random.Generator, folder: Path) -> bytes:
    at = int(rng.integers(len(whole)))
    return whole[:at] + rng.bytes(int(rng.integers(1, 5000))) + whole[at:]


def erase(whole: bytes, rng: np.random.Generator, folder: Path) -> bytes:
    at, n = int(rng.integers(len(whole) - 1)), int(rng.integers(1, 600))
    return whole[:at] + bytes(min(n, len(whole) - at)) + whole[at + n :]


def other_file(whole: bytes, rng: np.random.Generator, folder: Path) -> bytes:
    there = [b"", b"text\n", b"PK\x05\x06" + bytes(18), pickle.dumps(Malice(folder / "executed"))]
    there += [rng.bytes(int(rng.integers(1, 10_000))), b"\x89PNG\r\n" + rng.bytes(100)]
    file = io.BytesIO()
    np.savez(file, draws=np.zeros((2, 3)))
    return [*there, file.getvalue()][rng.integers(len(there) + 1)]


CHANGES: dict[str, Callable[[bytes, np.random.Generator, Path], bytes]] = {
    "bits flipped": flip_bits,
    "truncated": truncate,
    "a piece cut out": cut_out,
    "bytes put in": put_in,
    "bytes erased": erase,
    "another file": other_file,
}


def in_use() -> int:
    """Bytes of the address space that the process has."""
    return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()


def judge(content: bytes, path: Path, expected: np.ndarray) -> tuple[str, str]:
    """Outcome of a changed file, "refused" or "harmless", and what is wrong, if anything."""
    path.write_bytes(content)
    model = SGLDLinearRegression(**SETTINGS, resume_from=path)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.simplefilter("ignore", ConvergenceWarning)  # of so few draws
            model.fit(X, Y)
    except ValueError as error:
        named = f"resume_from={str(path)!r}" in str(error)
        # no memory where there is a limit: somebody has tried to take more
        right = named and "MemoryError" not in str(error) and vars(model).keys() == KEYS
        return "refused", "" if right else f"{type(error).__name__}: {error}"
    except BaseException as error:
        return "refused", f"{type(error).__name__}: {error}"
    same = np.array_equal(model.posterior_.values, expected)
    return "harmless", "" if same else "it was taken, and its draws are others"


KEYS = SGLDLinearRegression().get_params(deep=False).keys()


def run(report: Report, n_cases: int, seed: int) -> pd.DataFrame:
    """Change a checkpoint so often, and count what becomes of it."""
    rows = []
    limits = resource.getrlimit(resource.RLIMIT_AS)
    with TemporaryDirectory() as name:
        folder = Path(name)
        whole_path, path = folder / "whole.npz", folder / "changed.npz"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            short = SGLDLinearRegression(**SETTINGS | {"n_draws": 30}, checkpoint=whole_path)
            short.fit(X, Y)
            expected = SGLDLinearRegression(**SETTINGS).fit(X, Y).posterior_.values
        whole = whole_path.read_bytes()
        report.check(judge(whole, path, expected)[1] == "", "the file itself is refused")
        assert np.array_equal(short.posterior_.values, expected[:, :30])
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        resource.setrlimit(resource.RLIMIT_AS, (in_use() + GROWTH, limits[1]))
        try:
            for number in report.each(range(n_cases)):
                rng = np.random.default_rng([seed, number])
                kind = list(CHANGES)[number % len(CHANGES)]
                outcome, wrong = judge(CHANGES[kind](whole, rng, folder), path, expected)
                report.check(not wrong, f"{kind}, number {number}: {wrong}")
                rows.append({"change": kind, "outcome": outcome})
        finally:
            resource.setrlimit(resource.RLIMIT_AS, limits)
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 - before
        report.check(grown < SLACK, f"memory in use grew by {grown / 2**20:.0f} MiB")
        there = sorted(each.name for each in folder.iterdir())
        report.check(there == ["changed.npz", "whole.npz"], f"there are other files: {there}")
    report.check(not Path("executed").exists(), "a pickle was executed")
    return pd.DataFrame(rows)


def main() -> None:
    """Change as many files as were asked for."""
    given = options("tests.maintainer.soak.files", 10_000, float("inf"))
    report = Report("Checkpoints that were changed", given.seconds, given.keep)
    found = run(report, given.cases, given.seed)
    table = pd.crosstab(found["change"], found["outcome"]).reset_index()
    counts = {"files": len(found), **found["outcome"].value_counts()}
    report.end(table, [f"{len(found)} files"], counts)


if __name__ == "__main__":
    main()

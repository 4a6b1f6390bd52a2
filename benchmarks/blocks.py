"""Rows beyond memory: 4 GB of them in processes of 1.5 GiB, and what the pool costs.

``python -m benchmarks.blocks`` writes 20 million rows of 50 columns in float32 to a file, and fits
a logistic and a linear model to it in processes that the operating system limits: windows of the
file under a limit of the address space, and the memory map of the whole file, which takes more
address space than that, under a limit of the private memory. It prints peak memory, passes, bytes
read, and seconds beside a bare pass over the file.
``python -m benchmarks.blocks pool`` compares fits next to pools of several sizes with the fit of
2 million rows in memory, and draws ``docs/figures/blocks_pool.png``; ``partial`` compares
``partial_fit`` over blocks with a fit of them; ``tails`` derives the error by the tails of the
columns; ``checksums`` times passes with the checksums of their blocks and without. ``--rows`` takes
other numbers of rows; what is measured is saved in ``benchmarks/results/blocks/``, and its tables
are written into ``docs/scale.md``.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event, Thread
from typing import Any
from unittest import mock

import numpy as np

from benchmarks import _scale_page
from benchmarks._machine import describe
from skbayes_sgld import RowBlocks, SGLDLinearRegression, SGLDLogisticRegression
from skbayes_sgld.blocks import passes
from skbayes_sgld.blocks import source as blocks_source
from skbayes_sgld.blocks.files import block_slices
from skbayes_sgld.blocks.rows import as_source
from skbayes_sgld.blocks.sample import sizes
from skbayes_sgld.blocks.source import Prints
from skbayes_sgld.likelihoods import Bernoulli
from skbayes_sgld.optimizers import find_mode
from skbayes_sgld.posterior import GLMPosterior
from skbayes_sgld.posterior.further_rows import pooled
from skbayes_sgld.priors import Normal
from skbayes_sgld.rows.targets import Labels

D, BLOCK = 50, 200_000
LIMITS = {  # bytes; what is mapped from a file is address space, and no private memory
    "windows": (resource.RLIMIT_AS, 3 * 2**29),
    "map": (resource.RLIMIT_DATA, 2**30),
}
PREDICTED = 100  # one row in so many
POOLS = (500, 1500, 5000, 15_000, 50_000)
RESULTS = Path(__file__).parent / "results" / "blocks"
FIGURE = Path(__file__).parents[1] / "docs" / "figures" / "blocks_pool.png"
MODELS = {"logistic": SGLDLogisticRegression, "linear": SGLDLinearRegression}


def make_block(number: int, n_rows: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """X, labels and numbers of one block."""
    rng = np.random.default_rng([7, number])
    X = rng.standard_normal((n_rows, D), dtype=np.float32)
    X[:, ::5] = np.exp(0.5 * X[:, ::5])  # skew, so that odd orders of the log likelihood count
    eta = X @ np.linspace(-0.4, 0.4, D) - 1.0
    labels = (rng.random(n_rows) < 1.0 / (1.0 + np.exp(-eta))).astype(np.int8)
    return X, labels, eta + rng.standard_normal(n_rows)


def write(folder: Path, n_rows: int) -> None:
    """Write the rows block by block."""
    kinds = {"X": (np.float32, (n_rows, D)), "logistic": (np.int8, (n_rows,))}
    kinds["linear"] = (np.float64, (n_rows,))
    for name, (dtype, shape) in kinds.items():
        np.lib.format.open_memmap(folder / f"{name}.npy", "w+", dtype, shape).flush()
    for number, start in enumerate(range(0, n_rows, BLOCK)):
        rows = slice(start, min(start + BLOCK, n_rows))
        parts = make_block(number, rows.stop - rows.start)
        for name, part in zip(kinds, parts, strict=True):
            np.load(folder / f"{name}.npy", mmap_mode="r+")[rows] = part


def bare_pass(source: RowBlocks) -> float:
    """Seconds of a sum over all numbers of the file."""
    begin = time.perf_counter()
    for X, *_ in source:
        float(X.sum())
    return time.perf_counter() - begin


class Watch:
    """Most anonymous memory of this process, looked at twenty times a second.

    What the system counts as resident has pages of the file in it, which it drops when others need
    the room.
    """

    def __init__(self) -> None:
        self.most, self._ended = 0.0, Event()
        Thread(target=self._look, daemon=True).start()

    def _look(self) -> None:
        while not self._ended.wait(0.05):
            self.most = max(self.most, status("RssAnon"))

    def end(self) -> float:
        """Megabytes, so far."""
        self._ended.set()
        return self.most


def child(name: str, how: str, folder: Path, n_draws: int) -> dict[str, Any]:
    """Fit under a limit; what it took."""
    which, limit = LIMITS[how]
    resource.setrlimit(which, (limit, limit))
    paths = folder / "X.npy", folder / f"{name}.npy"
    rows = np.load(paths[0], mmap_mode="r") if how == "map" else RowBlocks.from_npy(*paths)
    given = (rows, np.load(paths[1], mmap_mode="r")) if how == "map" else (rows,)
    source = as_source(*given)
    assert isinstance(source, RowBlocks)
    bare, before, watch = bare_pass(source), peak(), Watch()
    with counted_passes() as made:
        begin, cpu = time.perf_counter(), time.process_time()
        model = MODELS[name](n_draws=n_draws, random_state=0).fit(*given)
        seconds, cpu = time.perf_counter() - begin, time.process_time() - cpu
    found = peak() | {"anonymous": watch.end()}
    size = sum(path.stat().st_size for path in paths)
    return {
        "model": name,
        "how": how,
        "rows": source.n_rows,
        "passes": len(made),
        "gigabytes_read": len(made) * size / 1e9,
        "seconds": seconds,
        "cpu_seconds": cpu,
        "bare_pass_seconds": bare,
        "before": before,
        "peak": found,
        "predict": predict(model, rows, folder) if how == "map" else None,
        "draws_megabytes": model.posterior_.values.nbytes / 1e6,
        "limit_megabytes": limit / 1e6,
        "coef_error_in_sds": float(
            np.abs(
                (model.coef_.ravel() - np.linspace(-0.4, 0.4, D))
                / model.sample_posterior().coef.std(axis=0)
            ).max()
        ),
    }


def predict(model: Any, X: np.ndarray, folder: Path) -> dict[str, float]:
    """Predict some rows of the map into another map, under the same limit."""
    some, watch = X[: max(1, len(X) // PREDICTED)], Watch()
    shape = (len(some), 2) if hasattr(model, "predict_proba") else (len(some),)
    out = np.lib.format.open_memmap(folder / "out.npy", "w+", np.float32, shape)
    begin = time.perf_counter()
    method = model.predict_proba if hasattr(model, "predict_proba") else model.predict
    method(some, out=out)
    seconds = time.perf_counter() - begin
    assert np.allclose(out[-3:], method(np.array(some[-3:])), rtol=1e-5)
    return {"rows": float(len(some)), "seconds": seconds, "anonymous": watch.end()}


@contextmanager
def counted_passes() -> Iterator[list[RowBlocks]]:
    """The source of each pass that is made."""
    reduce, made = RowBlocks.reduce, []

    def counted(self: RowBlocks, *given: Any) -> Any:
        made.append(self)
        return reduce(self, *given)

    with mock.patch.object(RowBlocks, "reduce", counted):
        yield made


def status(name: str) -> float:
    """Megabytes that the system counts for this process."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith(f"{name}:")).split()[1]) / 1e3


def peak() -> dict[str, float]:
    """Megabytes of address space and of memory at the most, and of private memory now."""
    return {
        "address_space": status("VmPeak"),
        "memory": status("VmHWM"),
        "private": status("VmData"),
        "anonymous": status("RssAnon"),
    }


def fit_under_limit(n_rows: int, n_draws: int, within: Path | None) -> list[dict[str, Any]]:
    """Measurements of both models."""
    found = []
    with TemporaryDirectory(dir=within) as name:
        folder = Path(name)
        write(folder, n_rows)
        print(f"{n_rows:,} rows of {D} columns: {(folder / 'X.npy').stat().st_size / 1e9:.2f} GB")
        for model, how in product(MODELS, LIMITS):
            given = [sys.executable, "-m", "benchmarks.blocks", "--child", model, how, str(folder)]
            done = subprocess.run(
                [*given, "--draws", str(n_draws)], capture_output=True, text=True, check=False
            )
            if done.returncode:
                raise RuntimeError(done.stderr)
            row = json.loads(done.stdout.splitlines()[-1])
            found.append(row)
            most, before = row["peak"], row["before"]
            print(
                f"{model:9s} {how:8s} {row['passes']} passes, {row['gigabytes_read']:.1f} GB read "
                f"in {row['seconds']:.0f} s ({row['cpu_seconds']:.0f} s CPU), a bare pass "
                f"{row['bare_pass_seconds']:.1f} s; at the most {most['anonymous']:.0f} MB of "
                f"anonymous memory ({before['anonymous']:.0f} before the fit), "
                f"{most['memory']:.0f} MB with pages of the file, {most['address_space']:.0f} MB "
                f"of address space; {row['limit_megabytes']:.0f} allowed; {row['predict']}",
                flush=True,
            )
    return found


def compare_pools(n_rows: int, n_draws: int, n_seeds: int) -> dict[str, Any]:
    """Errors of means and sds next to pools, against the fit of all rows in memory."""
    parts = [make_block(number, BLOCK)[:2] for number in range(-(-n_rows // BLOCK))]
    X, y = (np.concatenate(part)[:n_rows] for part in zip(*parts, strict=True))
    model = SGLDLogisticRegression(n_draws=n_draws, random_state=0).fit(X, y).posterior_
    mean, sd = model.flat.mean(axis=0), model.flat.std(axis=0)
    found = []
    for size in POOLS:
        for seed in range(n_seeds):
            blocks = [(X[a : a + BLOCK], y[a : a + BLOCK]) for a in range(0, n_rows, BLOCK)]
            if seed:  # another pool: other numbers of the blocks
                blocks = blocks[seed:] + blocks[:seed]
            source = RowBlocks(lambda blocks=blocks: blocks, pool_size=size)
            draws = SGLDLogisticRegression(n_draws=n_draws, random_state=0).fit(source).posterior_
            shift = (draws.flat.mean(axis=0) - mean) / sd
            width = draws.flat.std(axis=0) / sd - 1.0
            found.append(
                {
                    "pool": size,
                    "seed": seed,
                    "passes": source.n_passes,
                    "mean_rms": float(np.sqrt(np.mean(shift**2))),
                    "mean_most": float(np.abs(shift).max()),
                    "sd_rms": float(np.sqrt(np.mean(width**2))),
                    "sd_most": float(np.abs(width).max()),
                }
            )
            print(
                f"pool of {size:6,d}, seed {seed}: means differ by {found[-1]['mean_most']:.5f} "
                f"sd at most, sds by {found[-1]['sd_most']:.3%}",
                flush=True,
            )
    theory = expected_error(X, model.flat.mean(axis=0))
    return {"rows": n_rows, "pools": found, "mean_rms_times_root_of_pool": theory}


def expected_error(X: np.ndarray, theta: np.ndarray) -> float:
    """Root mean square error of the means in sds, times the root of the pool's size.

    It is ``n sd(l''' h z_j) / 2``, a mean over j, with z a row in coordinates whitened by the
    curvature, h its squared length, and l''' the third derivative of its log likelihood.
    """
    some = X[:: max(1, len(X) // 100_000)].astype(np.float64)
    some = np.column_stack([some, np.ones(len(some))])
    p = 1.0 / (1.0 + np.exp(-some @ theta))
    H = len(X) / len(some) * (some.T * (p * (1 - p))) @ some
    z = np.linalg.solve(np.linalg.cholesky(H), some.T).T
    third = -p * (1 - p) * (1 - 2 * p)
    each = 0.5 * third[:, None] * np.square(z).sum(axis=1, keepdims=True) * z
    return float(len(X) * np.sqrt(each.var(axis=0).mean()))


def compare_tails(n_rows: int, d: int = 20, pool: int = 50_000) -> list[dict[str, Any]]:
    """Derived error of the worst mean next to a pool, by the tails of the columns.

    Of a pool whose rows are all as likely, and of one drawn by their sizes.
    """
    rng, found, theta = np.random.default_rng(0), [], np.linspace(-0.05, 0.05, d)
    draw: dict[str, Callable[[], np.ndarray]] = {
        "normal": lambda: rng.standard_normal((n_rows, d)),
        "log-normal": lambda: np.exp(rng.standard_normal((n_rows, d))),
        "Student's t, 3 degrees of freedom": lambda: rng.standard_t(3, (n_rows, d)),
        "Student's t, 2 degrees of freedom": lambda: rng.standard_t(2, (n_rows, d)),
    }
    for name, make in draw.items():
        X = make()
        p = 1.0 / (1.0 + np.exp(1.0 - X @ theta))
        z = np.linalg.solve(np.linalg.cholesky((X.T * (p * (1 - p))) @ X), X.T).T
        z *= (-0.5 * p * (1 - p) * (1 - 2 * p) * np.square(z).sum(axis=1))[:, None]
        share = sizes(X, X.mean(axis=0), X.std(axis=0))
        share /= share.sum()
        by_size = (np.square(z) / share[:, None]).sum(axis=0) - z.sum(axis=0) ** 2
        row = {"columns": name, "even": float((n_rows * z.std(axis=0) / pool**0.5).max())}
        found.append(row | {"by_size": float(np.sqrt(by_size.max() / pool))})
        print(found[-1], flush=True)
    return found


def integrate_pools(n_rows: int, n_pools: int = 12) -> list[dict[str, float]]:
    """Errors next to pools by quadrature, of a model of one column: no Monte Carlo error."""
    parts = [make_block(number, BLOCK)[0][:, :1] for number in range(-(-n_rows // BLOCK))]
    X, rng = np.concatenate(parts)[:n_rows], np.random.default_rng(1)
    y = (rng.random(n_rows) < 1.0 / (1.0 + np.exp(1.5 - X[:, 0]))).astype(float)
    full = GLMPosterior(X, y, Bernoulli(), Normal(5.0))
    mode = find_mode(full, full.start()).theta
    precision, at_mode = full.curvature(mode), full.expand_likelihood(mode)
    root = np.linalg.inv(np.linalg.cholesky(precision)).T
    axis = np.linspace(-4.8, 4.8, 17)
    grid = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)

    def moments(posterior: GLMPosterior) -> np.ndarray:
        log_density = posterior.log_density(mode + grid @ root.T)
        share = np.exp(log_density - log_density.max())
        share /= share.sum()
        mean = share @ grid
        return np.concatenate([mean, np.sqrt(share @ np.square(grid - mean))])

    exact, found = moments(full), []
    for size in POOLS:
        errors = []
        for _ in range(n_pools):
            rows = rng.choice(n_rows, size, replace=False)
            weight = np.full(size, n_rows / size)
            some = GLMPosterior(X[rows], y[rows], Bernoulli(), Normal(5.0), sample_weight=weight)
            errors.append(moments(pooled(some, at_mode, mode, precision)) - exact)
        squares = np.square(errors).mean(axis=0)
        of_mean, of_sd = np.sqrt(squares[:2].mean()), np.sqrt((squares[2:] / exact[2:] ** 2).mean())
        found.append({"pool": size, "mean_rms": float(of_mean), "sd_rms": float(of_sd)})
        print(f"one column, pools of {size:6,d}: {of_mean:.1e} sds, {of_sd:.1e}", flush=True)
    times = expected_error(X, mode)
    return [row | {"expected": times / np.sqrt(row["pool"])} for row in found]


def compare_partial_fits(n_rows: int = 200_000, d: int = 10) -> list[dict[str, Any]]:
    """Largest differences from the fit in memory, of ``partial_fit`` and of a fit of blocks."""
    rng, found = np.random.default_rng(0), []
    X = rng.standard_normal((n_rows, d))
    prior: dict[str, Any] = {"prior": Normal(1.0), "intercept_prior": Normal(10.0)}
    for level in (0.0, -5.0):
        eta = X @ np.linspace(-1.0, 1.0, d) + level
        y = (rng.random(n_rows) < 1.0 / (1.0 + np.exp(-eta))).astype(int)

        def new() -> SGLDLogisticRegression:
            return SGLDLogisticRegression(n_draws=500, random_state=0, **prior)

        exact = new().fit(X, y).posterior_.flat
        for size in (25_000, 5000):
            blocks = [(X[a : a + size], y[a : a + size]) for a in range(0, n_rows, size)]
            row: dict[str, Any] = {"share": float(y.mean()), "block": size}
            for name in ("partial_fit", "fit"):
                model, begin = new(), time.process_time()
                if name == "fit":
                    model.fit(RowBlocks(lambda blocks=blocks: blocks, pool_size=10_000))
                else:
                    for block in blocks:
                        model.partial_fit(*block, classes=[0, 1])
                flat = model.posterior_.flat
                row[name] = {
                    "mean": float((np.abs(flat.mean(0) - exact.mean(0)) / exact.std(0)).max()),
                    "sd": float(np.abs(flat.std(0) / exact.std(0) - 1.0).max()),
                    "cpu_seconds": time.process_time() - begin,
                }
            found.append(row)
            print(row, flush=True)
    return found


def time_checksums(n_rows: int, n_times: int = 15) -> list[dict[str, Any]]:
    """Processor seconds of each pass of a fit, with and without checksums, least of several."""
    rng, found = np.random.default_rng(0), []
    for d, dtype in ((50, np.float32), (5, np.float64)):
        X = rng.standard_normal((n_rows * 50 // d, d)).astype(dtype)
        eta = X @ np.linspace(-0.4, 0.4, d)
        labels = (rng.random(len(X)) < 1.0 / (1.0 + np.exp(-eta))).astype(int)
        for name, seconds in _passes(X, labels, eta, n_times).items():
            row = {"pass": name, "rows": len(X), "columns": d, "dtype": np.dtype(dtype).name}
            found.append(row | seconds)
            print(found[-1], flush=True)
    return found


def _passes(
    X: np.ndarray, labels: np.ndarray, numbers: np.ndarray, n_times: int
) -> dict[str, dict[str, float]]:
    parts = list(block_slices(*X.shape))

    def blocks(y: np.ndarray) -> RowBlocks:
        return RowBlocks(lambda: ((X[part], y[part]) for part in parts))

    target = Labels()
    moments, _, sample, _ = passes.first_pass(blocks(labels), target, 0)
    encoding = passes.Encoding(target, moments.labels, np.arange(2.0), np.ones(2))
    rows, y, weight, _ = encoding.sampled(sample, moments)
    model = GLMPosterior(
        rows, y, Bernoulli(), Normal(), sample_weight=weight, intercept_at_mean=True
    )
    found: dict[str, dict[str, float]] = {}
    for _ in range(n_times):
        for how in ("without", "with"):  # in turn, as other work on the machine comes and goes
            with nullcontext() if how == "with" else without_checksums():
                source = blocks(labels)
                steps: dict[str, Callable[[], Any]] = {
                    "logistic, first": lambda source=source: passes.first_pass(source, target, 0),
                    "logistic, later": lambda source=source: passes._Passes(
                        model, source, encoding
                    ).expand_likelihood(np.zeros(model.n_params)),
                    "linear, the only one": lambda: passes.sum_up(blocks(numbers)),
                }
                for name, step in steps.items():
                    begin = time.process_time()
                    step()
                    seconds = time.process_time() - begin
                    row = found.setdefault(name, {})
                    row[how] = min(seconds, row.get(how, np.inf))
    return found


@contextmanager
def without_checksums() -> Iterator[None]:
    """Blocks without checksums, whose numbers every pass finds finite anew."""
    none = Prints("numbers", 0, 0, 0, 0)
    with (
        mock.patch.object(Prints, "of", lambda block: none),
        mock.patch.object(blocks_source, "_checksum", lambda X: np.nan),  # which no other equals
    ):
        yield


def draw(found: dict[str, Any]) -> None:
    """Figure of the errors by the size of the pool."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    from benchmarks._figures import save as save_figure

    figure, axes = plt.subplots(1, 2, figsize=(9.0, 4.4), layout="constrained", sharex=True)
    rows, exact = found["pools"], found["one_column"]
    sizes = np.array([row["pool"] for row in exact], dtype=float)
    names = ("mean", "Error of a mean", "posterior sds"), ("sd", "Error of an sd", "relative")
    for ax, (name, title, unit) in zip(axes, names, strict=True):
        ax.axhline(0.02 if name == "mean" else 0.01, color="0.5", ls=":", label="0.02 sds; 1 %")
        ax.loglog(
            [row["pool"] for row in rows],
            [row[f"{name}_most"] for row in rows],
            "x",
            color="0.3",
            label="50 columns: worst of 51, beside the fit in memory\n(mostly Monte Carlo)",
        )
        if name == "mean":
            expected = found["mean_rms_times_root_of_pool"] / np.sqrt(sizes)
            ax.loglog(sizes, expected, "-", color="#d62728", label="50 columns: derived, typical")
            derived = [row["expected"] for row in exact]
            ax.loglog(sizes, derived, "-", color="#1f77b4", label="1 column: derived, typical")
        of_one = [row[f"{name}_rms"] for row in exact]
        ax.loglog(sizes, of_one, "o", color="#1f77b4", label="1 column: by quadrature, typical")
        ax.set(xlabel="rows in the pool", ylabel=unit, ylim=(2e-9 if name == "sd" else 2e-6, 0.06))
        ax.set_xticks(POOLS, [f"{size:,}" for size in POOLS])
        ax.minorticks_off()
        ax.set_title(title, fontsize=10)
        ax.spines[["top", "right"]].set_visible(False)
        ax.grid(alpha=0.3)
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, fontsize=9, loc="outside lower center", ncols=2)
    figure.suptitle(f"{found['rows']:,} rows: errors next to a pool, by its size", fontsize=11)
    save_figure(figure, FIGURE)


def save(name: str, found: Any) -> None:
    """Write what was measured, with the machine."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    text = json.dumps({"machine": describe(), "found": found}, indent=1)
    (RESULTS / f"{name}.json").write_text(text + "\n")
    if name in _scale_page.TABLES:
        _scale_page.write(name, found)


def main() -> None:
    """Measure what the arguments ask for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "what",
        nargs="?",
        default="memory",
        choices=("memory", "pool", "partial", "tails", "checksums", "figure"),
    )
    parser.add_argument("--rows", type=int)
    parser.add_argument("--draws", type=int, default=1000, help="of each chain")
    parser.add_argument("--seeds", type=int, default=2, help="pools of each size")
    parser.add_argument("--folder", type=Path, help="where the file is written, for a while")
    parser.add_argument("--child", nargs=3, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        name, how, folder = given.child
        print(json.dumps(child(name, how, Path(folder), given.draws)))
    elif given.what == "memory":
        save("memory", fit_under_limit(given.rows or 20_000_000, given.draws, given.folder))
    elif given.what == "pool":
        n_rows = given.rows or 2_000_000
        found = {"one_column": integrate_pools(n_rows)}
        found |= compare_pools(n_rows, given.draws, given.seeds)
        save("pool", found)
        draw(found)
    elif given.what == "partial":
        save("partial", compare_partial_fits())
    elif given.what == "tails":
        save("tails", compare_tails(given.rows or 2_000_000))
    elif given.what == "checksums":
        save("checksums", time_checksums(given.rows or 1_000_000))
    else:
        draw(json.loads((RESULTS / "pool.json").read_text())["found"])


if __name__ == "__main__":
    main()

"""Slower and faster parts of this checkout (head) than of a commit (base), in two minutes.

``python -m benchmarks.quick [task ...] [--base REF]`` runs small tasks in two long-lived processes,
one a checkout, by turns. The base is a commit or a folder; without one it is the last commit where
there are changes that are not committed, else the merge base with the main branch, and on the main
branch the commit before. The ratio is the median of head over base in a round, and its interval
the one of order statistics that has the median in it with a probability of 99 % or more. A task is
slower, or faster, where the interval is on one side of 1 and the median more than 3 % off.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from time import perf_counter

import numpy as np
from scipy.stats import binom

from benchmarks._tools import number, progress, table
from benchmarks._worker import ROOT, TASKS, checkout, workers

_LEAST = 0.03  # processes of the same code differ by this: memory is laid out anew in each
_FEWEST = 8  # rounds: from here on the extremes of all rounds are such an interval
_LEVEL = 0.99
LONG = "search: 60 fits"  # a row of `python -m benchmarks`


def default_base() -> str:
    """Commit to compare with where none is named."""

    def git(*arguments: str) -> str:
        found = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True)
        return found.stdout.strip()

    if git("status", "--porcelain", "--", "skbayes_sgld"):
        return "HEAD"
    head = git("rev-parse", "HEAD")
    shared = git("merge-base", "HEAD", "main") or git("merge-base", "HEAD", "origin/main")
    return shared if shared and shared != head else "HEAD~1"


def interval(ratios: np.ndarray) -> tuple[float, float]:
    """Interval of the median of what ``ratios`` were drawn from, whatever their distribution."""
    n = len(ratios)
    # the k-th smallest and the k-th largest: the median is outside with twice P(Bin(n, 1/2) < k)
    k = max(1, int(binom.ppf((1 - _LEVEL) / 2, n, 0.5)))
    ordered = np.sort(ratios)
    return float(ordered[k - 1]), float(ordered[n - k])


def verdict(ratios: np.ndarray) -> str:
    """Verdict on ``ratios`` of head over base: "slower", "faster" or ""."""
    (low, high), median = interval(ratios), np.median(ratios)
    if low > 1 and median > 1 + _LEAST:
        return "slower"
    return "faster" if high < 1 and median < 1 - _LEAST else ""


def measure(names: list[str], base: str, budget: float) -> dict[str, np.ndarray]:
    """Seconds of base and head ``(rounds, 2)`` of each task."""
    found: dict[str, list[list[float]]] = {name: [] for name in names}
    with checkout(base) as folder, workers(folder, ROOT) as pair:
        for name in names:  # the first run prepares
            progress(f"ready: {name}")
            for worker in pair:
                worker.run(name)
        start, done = perf_counter(), 0
        while done < _FEWEST or (perf_counter() - start) * (done + 1) / done < budget:
            for name in names:
                order = [0, 1] if done % 2 else [1, 0]
                taken = {side: pair[side].run(name) for side in order}
                found[name].append([taken[0], taken[1]])
            done += 1
            progress(f"round {done}")
    progress("")
    return {name: np.array(values) for name, values in found.items()}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.quick", description=__doc__)
    # no `choices`: argparse would refuse an empty list of names
    parser.add_argument("names", nargs="*", metavar="task", help="tasks that contain this")
    parser.add_argument("--base", default="", help="commit or folder to compare with")
    parser.add_argument("--seconds", type=float, default=90.0, help="what the rounds may take")
    parser.add_argument("--fail", action="store_true", help="exit 1 where something became slower")
    options = parser.parse_args()
    names = [
        name
        for name in TASKS
        if (any(part in name for part in options.names) if options.names else LONG not in name)
    ]
    if not names:
        parser.error(f"no such task; there are: {', '.join(TASKS)}")
    base = options.base or default_base()
    try:
        found = measure(names, base, options.seconds)
    except LookupError as error:
        parser.error(str(error))
    rows, slower = [], []
    for name, pairs in found.items():
        ratios = pairs[:, 1] / pairs[:, 0]
        said = verdict(ratios)
        slower += [name] if said == "slower" else []
        low, high = interval(ratios)
        a, b = 1e3 * np.median(pairs, axis=0)
        rows.append(
            [
                name,
                number(a),
                number(b),
                f"{np.median(ratios):.2f}",
                f"{low:.2f} - {high:.2f}",
                said,
            ]
        )
    rounds = len(next(iter(found.values())))
    print(f"base: {base}; head: {ROOT}; {rounds} rounds; milliseconds, medians")
    table(["task", "base", "head", "ratio", "99 % interval", ""], rows)
    print(f"slower by more than noise: {', '.join(slower) or 'nothing'}")
    return int(options.fail and bool(slower))


if __name__ == "__main__":
    sys.exit(main())

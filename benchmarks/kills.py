"""Long runs that are killed: does their checkpoint load each time, and are the draws the same?

``python -m benchmarks.kills`` runs chains that write a checkpoint every few milliseconds, and kills
the process (``SIGKILL``) at random moments, 200 times; ``python -m benchmarks.kills 20`` as often
as it says. After each kill the file has to load, and the next process goes on from it. Its
draws are compared, bit by bit, with those of a run that was never stopped.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

import skbayes_sgld
from skbayes_sgld import checkpoints
from skbayes_sgld.inference import in_parts as running
from skbayes_sgld.own_models import FunctionPosterior

N_DRAWS = 20_000
LONGEST = 0.3  # seconds that a process lives, at the most
NORMAL = FunctionPosterior(lambda x: -0.5 * np.square(x).sum(axis=1), lambda x: -x, n_params=3)


def run(path: Path | None) -> np.ndarray:
    """Draws of a run that goes on from the checkpoint, if there is one, and writes it."""
    return skbayes_sgld.sample(
        NORMAL,
        "sgld",
        preconditioner=None,
        step_size=0.1,
        n_draws=N_DRAWS,
        n_burnin=0,
        thin=1,
        check_gradient=False,
        random_state=0,
        checkpoint=path,
        resume_from=path if path is not None and path.exists() else None,
    ).values


def main(n_kills: int) -> None:
    """Kill a run as often as that, and print what was found."""
    checkpoints._SECONDS = checkpoints._SHARE = 0.0
    running._SECONDS = 0.002
    expected, rng, loaded, draws = run(None), np.random.default_rng(), 0, [0]
    begin, longest = time.perf_counter(), LONGEST
    with TemporaryDirectory() as folder:
        path = Path(folder) / "run.npz"
        for _ in range(n_kills):
            child = os.fork()
            if child == 0:
                run(path)
                os._exit(0)
            time.sleep(rng.uniform(0.0, longest))
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            longest *= 2.0  # on a busy machine, until a process comes as far as a draw
            if not path.exists():  # before the first one is written
                continue
            found = checkpoints.read(path)
            loaded += 1
            draws.append(found.chains.draws.shape[1])
            if draws[-1] != draws[-2]:
                longest = LONGEST
            assert np.array_equal(found.chains.draws, expected[:, : draws[-1]]), "other draws"
            if found.finished:
                path.unlink()
        left = len(list(Path(folder).glob(".*.part")))
    seconds = time.perf_counter() - begin
    gone = sum(b - a for a, b in pairwise(draws) if b > a)
    print(
        f"{n_kills} kills in {seconds:.1f} s: {loaded} files loaded, {n_kills - loaded} kills came "
        f"before the first was written; {gone} draws a chain were made on the way, bit by bit "
        f"those of a run that was never stopped; {left} half-written files were left at the end"
    )
    assert loaded and gone


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 200)

"""Fits and predictions on a cluster of processes: the same draws, whatever happens to a worker."""

import os
import signal
from contextlib import contextmanager
from importlib.util import find_spec
from tempfile import TemporaryDirectory

import numpy as np
import pytest

from skbayes_sgld import RowBlocks, SGLDLogisticRegression
from skbayes_sgld.blocks.dask_cluster import result_of
from skbayes_sgld.blocks.dask_rows import DaskRows

dask = pytest.importorskip("dask", reason="clusters need the extra 'dask'")
da = pytest.importorskip("dask.array", reason="arrays of Dask need the extra 'dask'")
if find_spec("distributed") is None:
    pytest.skip("clusters need the extra 'dask'", allow_module_level=True)

SECONDS = 600  # that a test may take: only a deadlock takes so long
CONFIG = {
    "distributed.scheduler.allowed-failures": 1,
    # workers are forked from one process that has imported Dask and the package, those in place of
    # killed ones too
    "distributed.worker.multiprocessing-method": "forkserver",
    # on a busy machine a worker needs a while to start, or to answer
    "skbayes-sgld.no-workers-timeout": "300s",
    "distributed.comm.timeouts.connect": "300s",
    "distributed.deploy.lost-worker-timeout": "300s",
}
# another sign of a busy machine
pytestmark = pytest.mark.filterwarnings("ignore:Creating scratch directories is taking")
N_BLOCKS, BLOCK, D = 6, 1500, 3
FEW = {"n_draws": 250, "random_state": 0}
POOL = 2000


@contextmanager
def cluster_of(n_workers, processes=True, **config):
    """A cluster that is closed whatever happens, and its client."""
    from distributed import Client, LocalCluster  # seconds, for the one process that runs this
    from distributed.utils import get_mp_context

    options = {"threads_per_worker": 1, "dashboard_address": ":0", "memory_limit": None}
    with (
        # killed workers leave files, in a folder that all processes of the machine share otherwise
        TemporaryDirectory(ignore_cleanup_errors=True) as folder,
        dask.config.set({**CONFIG, "temporary-directory": folder, **config}),
    ):
        # after Dask's own list, which replaces this one
        get_mp_context().set_forkserver_preload(["distributed", "skbayes_sgld.blocks.dask_rows"])
        with (
            LocalCluster(n_workers=n_workers, processes=processes, **options) as cluster,
            Client(cluster) as client,
        ):
            yield client


@pytest.fixture(scope="module")
def client():
    with cluster_of(2) as client:
        yield client


@pytest.fixture(autouse=True)
def limit():
    def stop(*_):
        raise TimeoutError(f"the test took longer than {SECONDS} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(SECONDS)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture(autouse=True)
def small_pool(monkeypatch):
    monkeypatch.setattr(DaskRows, "pool_size", POOL)


def block_of(number):
    rng = np.random.default_rng(number)
    X = rng.standard_normal((BLOCK, D))
    return np.column_stack([X, X @ [1.0, -0.5, 0.25] + rng.logistic(size=BLOCK)])


def made_on_workers(change=None):
    """X and the latent variable, made block by block when a pass asks for them."""

    def make(block_info):
        number = block_info[None]["chunk-location"][0]
        block = block_of(number)
        return block if change is None else change(block, number)

    chunks = ((BLOCK,) * N_BLOCKS, (D + 1,))
    table = da.map_blocks(make, chunks=chunks, dtype=float, meta=np.empty((0, 0)))
    return table[:, :D], table[:, D]


@pytest.fixture(scope="module")
def in_blocks():
    """Fit of the same blocks without Dask."""

    def read():
        for number in range(N_BLOCKS):
            block = block_of(number)
            yield block[:, :D], block[:, D] > 0

    return SGLDLogisticRegression(**FEW).fit(RowBlocks(read, pool_size=POOL))


def test_a_fit_on_a_cluster_has_the_draws_of_one_without(client, in_blocks):
    X, latent = made_on_workers()
    model = SGLDLogisticRegression(**FEW).fit(X, latent > 0)
    np.testing.assert_array_equal(model.posterior_.values, in_blocks.posterior_.values)
    lazy = model.predict_proba_interval(X)
    expected = in_blocks.predict_proba_interval(block_of(1)[:, :D])
    np.testing.assert_allclose(lazy[BLOCK : 2 * BLOCK].compute(), expected, atol=1e-6)


@pytest.mark.slow
def test_chains_run_on_workers_with_the_same_draws(client, in_blocks):
    X, latent = made_on_workers()
    model = SGLDLogisticRegression(**FEW, n_jobs=-1).fit(X, latent > 0)
    ran = client.run(_ran_chains)
    assert all(ran.values()), ran
    np.testing.assert_array_equal(model.posterior_.values, in_blocks.posterior_.values)


def _ran_chains(dask_worker):
    """Whether the worker was given a part of the chains."""
    story = dask_worker.state.log
    return any("chains" in str(event) for event in story)


def killing(path, at):
    """Change of a block that kills its worker once, when ``at`` blocks or more have been made."""

    def change(block, number):
        made = len(os.listdir(path))
        (path / f"{made}-{number}-{os.getpid()}").touch()
        if made >= at:
            try:  # two workers may count the same number: the one that makes this file dies
                (path / "killed").touch(exist_ok=False)
            except FileExistsError:
                return block
            os.kill(os.getpid(), signal.SIGKILL)
        return block

    return change


def test_a_worker_that_is_killed_changes_only_the_time(client, in_blocks, tmp_path):
    before = set(client.run(os.getpid).values())
    X, latent = made_on_workers(killing(tmp_path, at=N_BLOCKS + 1))  # in the second pass
    model = SGLDLogisticRegression(**FEW).fit(X, latent > 0)
    np.testing.assert_array_equal(model.posterior_.values, in_blocks.posterior_.values)
    assert set(client.run(os.getpid).values()) != before


def with_a_hole(block, number):
    if number == 4:
        block[7, 1] = np.nan
    return block


def test_errors_of_workers_name_the_block_and_leave_the_model(client, in_blocks):
    X, latent = made_on_workers(with_a_hole)
    before = dict(vars(in_blocks))
    with pytest.raises(ValueError, match="X is nan in row 7, column 1 of block 4"):
        in_blocks.fit(X, latent > 0)
    assert vars(in_blocks) == before


def test_workers_that_die_of_a_block_end_the_fit(client, in_blocks):
    def kill(block, number):
        if number == 2:
            os.kill(os.getpid(), signal.SIGKILL)
        return block

    X, latent = made_on_workers(kill)
    with pytest.raises(ConnectionError, match="pass 1 over the rows: its workers died"):
        SGLDLogisticRegression(**FEW).fit(X, latent > 0)


def test_a_cluster_without_workers_ends_the_fit_after_a_while():
    X, latent = made_on_workers()
    with (
        cluster_of(0, processes=False, **{"skbayes-sgld.no-workers-timeout": "1s"}),
        pytest.raises(ConnectionError, match="no worker for 1 seconds"),
    ):
        SGLDLogisticRegression(**FEW).fit(X, latent > 0)


def test_a_scheduler_that_is_lost_is_told(client):
    future = client.submit(pow, 2, 3)
    future.cancel()  # as the client does with all futures when its scheduler is gone
    with pytest.raises(ConnectionError, match="cluster was lost in the pass: .*cancelled"):
        result_of(future, client, "the pass")

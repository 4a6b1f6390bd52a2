"""BLAS threads, blocks of rows, and products over chains."""

import linecache
import os
import subprocess
import sys

import numpy as np
import pytest

from skbayes_sgld import _linalg
from skbayes_sgld._linalg import (
    BLOCK_NUMBERS,
    in_threads,
    inverse_factors,
    inverse_root,
    one_blas_thread,
    row_blocks,
)
from skbayes_sgld._numpy_errors import numpy_defaults


class FakeBlas:
    """A BLAS library, and the controller of all of them."""

    user_api = "blas"

    def __init__(self, num_threads):
        self.num_threads = num_threads
        self.lib_controllers = [self]

    def set_num_threads(self, num_threads):
        self.num_threads = num_threads


@pytest.fixture
def blas(monkeypatch):
    blas = FakeBlas(7)
    monkeypatch.setattr(_linalg, "_threads", lambda: blas)
    return blas


def test_overlapping_limits_give_the_blas_threads_back(blas):
    # each saved and restored the process's setting: the last to leave restored the other's limit
    first, second = one_blas_thread(), one_blas_thread()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert blas.num_threads == 1  # still in force for the one inside
    second.__exit__(None, None, None)
    assert blas.num_threads == 7


@numpy_defaults
def public():
    with np.errstate(all="ignore"), one_blas_thread(), one_blas_thread():
        np.float64(1.0) / np.float64(0.0)


def test_an_interrupt_at_any_line_gives_the_blas_threads_and_the_error_handling_back(blas):
    before, lines = np.geterr(), 0
    while True:
        left = lines = lines + 1

        def trace(frame, event, argument):
            nonlocal left
            line = linecache.getline(frame.f_code.co_filename, frame.f_lineno)
            # the interpreter looks for signals where functions begin and after calls, and never
            # between the end of a block and the release of its lock
            left -= event in ("call", "line") and not line.lstrip().startswith("with self._lock")
            if left == 0:
                left = -1
                raise KeyboardInterrupt
            return trace

        usual = sys.gettrace()
        sys.settrace(trace)
        try:
            public()
        except KeyboardInterrupt:
            pass
        finally:
            sys.settrace(usual)
        assert (blas.num_threads, np.geterr(), one_blas_thread().depth) == (7, before, 0)
        if left > 0:
            break
    assert lines > 60


FITS_IN_THREADS = """
import numpy as np
from concurrent.futures import ThreadPoolExecutor
from threadpoolctl import threadpool_info
from skbayes_sgld import SGLDLogisticRegression

rng = np.random.default_rng(0)
X = rng.standard_normal((60, 3))
y = X[:, 0] + rng.logistic(size=60) > 0

def work(seed):
    model = SGLDLogisticRegression(n_draws=100, n_chains=2, random_state=seed)
    for _ in range(20):
        model.fit(X, y).predict_proba(X)

before = threadpool_info()
assert any(pool["num_threads"] == 2 for pool in before), before
with ThreadPoolExecutor(8) as pool:
    list(pool.map(work, range(8)))
assert threadpool_info() == before, threadpool_info()
"""


@pytest.mark.slow
def test_fits_and_predictions_in_threads_leave_the_blas_threads_alone():
    environment = {**os.environ, "OMP_NUM_THREADS": "2", "PYTHONWARNINGS": "ignore"}
    subprocess.run([sys.executable, "-c", FITS_IN_THREADS], env=environment, check=True)


@pytest.mark.parametrize("center", [np.zeros(3), np.array([1.0, -2.0, 1e3])])
def test_blocks_are_the_rows_in_order_whatever_the_layout(center):
    X = np.random.default_rng(0).standard_normal((BLOCK_NUMBERS // 4, 3)).astype(np.float32)
    expected = X.astype(np.float64) - center
    for layout in (X, np.asfortranarray(X), X.astype(np.float64)):
        # each overwrites the one before
        blocks = [(rows, block.copy()) for rows, block in row_blocks(layout, center)]
        assert len(blocks) > 1
        assert all(block.flags.c_contiguous and block.dtype == np.float64 for _, block in blocks)
        np.testing.assert_array_equal(np.concatenate([block for _, block in blocks]), expected)


def test_parts_side_by_side_come_back_in_order_with_the_callers_error_handling():
    def divide(k):
        return np.float64(k) / np.float64(0.0)

    with np.errstate(all="ignore"):
        assert in_threads(divide, [1, -1]) == [np.inf, -np.inf]
    # and parts within a part do not wait for each other
    within = in_threads(lambda k: sum(in_threads(lambda j: k * j, range(3))), range(20))
    assert within == [3 * k for k in range(20)]


@pytest.mark.parametrize("signs", [[1.0], [-1.0], [1.0, -1.0], [0.0]])
def test_a_weighted_gram_takes_weights_of_any_sign(signs):
    rng = np.random.default_rng(0)
    X, weight = rng.standard_normal((20, 3)), rng.exponential(size=20) * np.resize(signs, 20)
    exact = sum(w * np.outer(x, x) for w, x in zip(weight, X, strict=True))
    np.testing.assert_allclose(_linalg.weighted_gram(X, weight), exact, rtol=1e-12, atol=1e-12)
    room = X.copy()
    np.testing.assert_array_equal(
        _linalg.weighted_gram(room, weight, room), _linalg.weighted_gram(X, weight)
    )


def test_a_root_is_that_of_the_inverse_in_any_units():
    rng = np.random.default_rng(0)
    units = np.array([1e-9, 1.0, 1e3, 1e9])
    root = rng.standard_normal((4, 4)) / units[:, None]
    H = root @ root.T
    inverse = inverse_root(H) @ inverse_root(H).T
    np.testing.assert_allclose((inverse @ H) * units / units[:, None], np.eye(4), atol=1e-6)
    with pytest.raises(np.linalg.LinAlgError):
        inverse_root(-H)


@pytest.mark.parametrize("many", [False, True])
@pytest.mark.parametrize("size", [1, 2, 6, 7])
def test_factors_of_many_inverses_are_those_of_each(size, many):
    rng = np.random.default_rng(0)
    half = rng.standard_normal((9, size, size + 2)) * np.logspace(-20, 20, size)[:, None]
    P = half @ half.swapaxes(1, 2)
    P[4] *= -1.0
    with np.errstate(invalid="ignore"):
        factors, log_det = inverse_factors(P, many)
    assert np.isnan(log_det[4]) and np.isnan(factors[4][np.tril_indices(size)]).all()
    P, factors, log_det = (np.delete(each, 4, axis=0) for each in (P, factors, log_det))
    assert np.all(factors == np.tril(factors))
    products = factors @ P @ factors.swapaxes(1, 2)
    np.testing.assert_allclose(products, np.broadcast_to(np.eye(size), P.shape), atol=1e-9)
    np.testing.assert_allclose(log_det, -0.5 * np.linalg.slogdet(P)[1], rtol=1e-9)
    alone = inverse_factors(P[3:4], many)  # no rounding depends on the others
    assert np.array_equal(alone[0][0], factors[3]) and alone[1][0] == log_det[3]

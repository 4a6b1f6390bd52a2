"""A logistic fit of sparse text at the default settings: seconds, memory, and what it predicts.

``python -m benchmarks.text`` fits 20,000 documents of 50,000 words, whose frequencies follow Zipf's
law, as tf-idf; ``python -m benchmarks.text 4000 10000`` another size, and a third argument
``uniform`` words that are all as frequent, 100 a document. Predictions are of 2,000 more documents,
beside those of scikit-learn's ``LogisticRegression`` with its default penalty. The peak of the
memory is that of the whole process.
"""

from __future__ import annotations

import resource
import sys
import time
import warnings
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss

from skbayes_sgld import SGLDLogisticRegression
from skbayes_sgld.diagnostics import effective_sample_size

N_TEST = 2000
LENGTH = 120  # words of a document, about


def make_documents(n: int, d: int, kind: str = "zipf", seed: int = 0) -> tuple[Any, np.ndarray]:
    """Documents as sparse rows, and labels that a tenth of the words decide."""
    rng = np.random.default_rng(seed)
    if kind == "zipf":
        weight = 1.0 / (np.arange(d) + 2.7) ** 1.05
        lengths = np.maximum(5, rng.lognormal(np.log(LENGTH) - 0.125, 0.5, n)).astype(int)
        words = rng.choice(d, size=lengths.sum(), p=weight / weight.sum())
    else:
        lengths = np.full(n, 100)
        words = rng.integers(0, d, size=lengths.sum())
    documents = np.repeat(np.arange(n), lengths)
    counts = sparse.csr_array((np.ones(len(words)), (documents, words)), shape=(n, d))
    X = TfidfTransformer(sublinear_tf=True).fit_transform(counts)
    effects = X @ (rng.standard_normal(d) * (rng.random(d) < 0.1))
    y = 2.5 * effects / effects.std() + rng.logistic(size=n) > 0
    return sparse.csr_array(X), y.astype(int)


def main() -> None:
    """Fit, predict and print."""
    n, d = (int(sys.argv[1]), int(sys.argv[2])) if len(sys.argv) > 2 else (20_000, 50_000)
    X, y = make_documents(n + N_TEST, d, *sys.argv[3:4])
    X, y, new, truth = X[:n], y[:n], X[n:], y[n:]
    print(f"{n:,} documents, {d:,} words, {X.nnz:,} numbers, before: {_peak():.2f} GiB")
    begin = time.perf_counter(), time.process_time()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = SGLDLogisticRegression(random_state=0).fit(X, y)
    fitted = time.perf_counter(), time.process_time()
    p = model.predict_proba(new)
    seconds = time.perf_counter() - fitted[0]
    print(f"fit {fitted[0] - begin[0]:.0f} s, {fitted[1] - begin[1]:.0f} s of processor time")
    print(f"predict_proba {seconds:.1f} s, peak {_peak():.2f} GiB")
    draws = model.posterior_.values
    ess = effective_sample_size(draws[..., np.linspace(0, d - 1, 300).astype(int)])
    print(f"{draws.shape[0]} x {draws.shape[1]} draws, acceptance {model.result_.acceptance:.2f},")
    print(f"effective sample sizes {np.min(ess):.0f} to {np.max(ess):.0f} of 300 words")
    print(model.result_.plan)
    print("warning:", str(caught[0].message) if caught else "none")
    print(f"log loss {log_loss(truth, p):.4f}, accuracy {np.mean(p.argmax(axis=1) == truth):.3f}")
    point = LogisticRegression(max_iter=300).fit(X, y)
    accuracy = point.score(new, truth)
    print(f"LogisticRegression {log_loss(truth, point.predict_proba(new)):.4f}, {accuracy:.3f}")


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2.0**20


if __name__ == "__main__":
    main()

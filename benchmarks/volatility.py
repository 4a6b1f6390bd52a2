"""Stochastic volatility: `sample(StochasticVolatility(returns))` beside NumPyro's NUTS.

The same model of the same simulated returns: exponential priors of sigma and nu, a normal first
level, Student-t returns. Ours has every setting at its default (4 chains of 1000 draws, one
core); NUTS has 4 chains of 1000 draws and 1000 steps of warm-up, in parallel on all cores; its
time is without the compiler's. ESS is the smallest bulk effective sample size of sigma, nu and
the first, middle and last log volatility, by the same function. The last table says how far the
two posteriors are apart.
"""

from __future__ import annotations

import sys
from time import perf_counter

import numpy as np

from benchmarks._tools import heading, rival, table
from skbayes_sgld import sample
from skbayes_sgld.datasets import make_stochastic_volatility
from skbayes_sgld.diagnostics import effective_sample_size
from skbayes_sgld.own_models import StochasticVolatility

N_DRAWS = 1000


def main(n_samples: int = 2905) -> None:
    peer = rival("numpyro")
    heading(__doc__)
    returns = make_stochastic_volatility(n_samples, random_state=0).returns
    rows, found = [], {}
    for name in ("ours", "NUTS"):
        start = perf_counter()
        if name == "ours":
            values = sample(StochasticVolatility(returns), random_state=0).values
            h = np.log(values[..., [2, 2 + n_samples // 2, 1 + n_samples]])
            draws, compiling = np.concatenate([values[..., :2], h], axis=2), 0.0
        else:
            model = peer.volatility(returns)
            nuts = peer.Sampler(model, n_draws=N_DRAWS, dense_mass=False, chain_method="parallel")
            draws, compiling = nuts(0)
        seconds, ess = perf_counter() - start - compiling, effective_sample_size(draws)
        found[name] = draws.reshape(-1, draws.shape[2]), ess
        rate = ess.min() / seconds
        rows.append([name, f"{seconds:.1f}", f"{compiling:.1f}", f"{ess.min():.0f}", f"{rate:.1f}"])
    print(f"{n_samples:,} returns; {peer.VERSION}, {peer.CORES} cores")
    table(["sampler", "seconds", "compiling", "ESS", "ESS/s"], rows)
    (a, ess_a), (b, ess_b) = found["ours"], found["NUTS"]
    error = np.sqrt(1.0 / ess_a + 1.0 / ess_b)
    shift, ratio = (a.mean(axis=0) - b.mean(axis=0)) / b.std(axis=0), a.std(axis=0) / b.std(axis=0)
    table(
        ["parameter", "ours", "NUTS", "difference/sd", "its error", "sd ratio"],
        [
            [
                name,
                f"{a[:, j].mean():.3f} +- {a[:, j].std():.3f}",
                f"{b[:, j].mean():.3f} +- {b[:, j].std():.3f}",
                f"{shift[j]:+.3f}",
                f"{error[j]:.3f}",
                f"{ratio[j]:.3f}",
            ]
            for j, name in enumerate(peer.VOLATILITY_NAMES)
        ],
    )


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))

"""Averages of a likelihood over normal errors of its predictor, against quadrature."""

import numpy as np


def check_averaged(name, likelihood):
    """Raise where averages over normal errors are not those of quadrature, nearly."""
    if not likelihood.has_error_averaged:
        return
    nodes, share = np.polynomial.hermite_e.hermegauss(80)
    share = share / share.sum()
    u, y = np.linspace(-4.0, 4.0, 17), np.tile([0.0, 1.0], 17)
    u = np.repeat(u, 2)
    for variance in (1e-5, 0.01, 0.5, 4.0):
        score, bend = likelihood.error_averaged(u, np.full(len(u), variance), y)
        moved = (u[None] + np.sqrt(variance) * nodes[:, None])[:, None]
        expected = share @ likelihood.score(moved, y)[:, 0]
        np.testing.assert_allclose(score, expected, atol=0.025, err_msg="averaged score")
        expected = share @ likelihood.curvature(moved, y)[:, 0, 0]
        np.testing.assert_allclose(bend, expected, atol=0.025, err_msg="averaged curvature")
        if variance == 1e-5:  # which hardly changes anything
            exact = likelihood.score(u[None, None], y)[0, 0]
            np.testing.assert_allclose(score, exact, atol=1e-3, err_msg="averaged score")

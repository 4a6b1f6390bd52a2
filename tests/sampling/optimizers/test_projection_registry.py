"""Every registered projection is the nearest point of a convex set, in any metric."""

import numpy as np
import pytest
from scipy import linalg

from skbayes_sgld._components import resolve
from skbayes_sgld.sampling import PROJECTIONS

C = 40


def check_projection(name, n_coef=3):
    """Raise where the projection of this name is not the nearest point of a convex set."""
    projection = resolve(name, PROJECTIONS, "projection")
    projection.check_size(n_coef)
    rng = np.random.default_rng(0)
    coef = 3.0 * rng.standard_normal((C, n_coef))
    near = projection.nearest(coef)
    members = projection.nearest(3.0 * rng.standard_normal((C, n_coef)))
    for inside in (near, 0.5 * (members + members[::-1]), 0.3 * members + 0.7 * near):
        np.testing.assert_allclose(projection.nearest(inside), inside, atol=1e-9, err_msg="convex")
    # no member is in the direction that was cut off (which is what makes a point the nearest)
    beyond = np.einsum("cd,cmd->cm", coef - near, members[None] - near[:, None])
    assert beyond.max() < 1e-9, "a member is nearer"
    outside = (near != coef).any(axis=1)
    assert outside.any(), "nothing is outside"
    correlated = np.linalg.cholesky(linalg.toeplitz(0.5 ** np.arange(n_coef)))
    for root in (correlated, np.diag(np.linspace(0.5, 2.0, n_coef))):
        for size in (1e-8, 1.0, 1e8):  # the units of the metric do not matter
            check_shortest(projection, coef[outside], members, size * root, size)


def check_shortest(projection, outside, members, root, size):
    """The move ends in the set, and no member is nearer in the metric."""
    roots = np.broadcast_to(root, (len(outside), *root.shape))
    y, reached = projection.shortest(outside, roots)
    np.testing.assert_allclose(outside + y @ root.T, reached, atol=1e-7)
    np.testing.assert_allclose(projection.nearest(reached), reached, atol=1e-9)
    ways = (members[None] - reached[:, None]) @ np.linalg.inv(root).T
    assert np.einsum("cd,cmd->cm", -y, ways).max() < 1e-6 / size**2, (
        "a member is nearer in the metric"
    )


@pytest.mark.parametrize("name", PROJECTIONS)
def test_a_projection_is_the_nearest_point_of_a_convex_set(name):
    check_projection(name)

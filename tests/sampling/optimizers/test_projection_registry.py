"""Every registered projection is the nearest point of a convex set, in any metric."""

import numpy as np
import pytest

from skbayes_sgld._components import resolve
from skbayes_sgld.sampling import PROJECTIONS

C, D = 40, 3


def check_projection(name):
    """Raise where the projection of this name is not the nearest point of a convex set."""
    projection = resolve(name, PROJECTIONS, "projection")
    projection.check_size(D)
    rng = np.random.default_rng(0)
    coef = 3.0 * rng.standard_normal((C, D))
    near = projection.nearest(coef)
    members = projection.nearest(3.0 * rng.standard_normal((C, D)))
    for inside in (near, 0.5 * (members + members[::-1]), 0.3 * members + 0.7 * near):
        np.testing.assert_allclose(projection.nearest(inside), inside, atol=1e-9, err_msg="convex")
    # no member is in the direction that was cut off (which is what makes a point the nearest)
    beyond = np.einsum("cd,cmd->cm", coef - near, members[None] - near[:, None])
    assert beyond.max() < 1e-9, "a member is nearer"
    outside = (near != coef).any(axis=1)
    assert outside.any(), "nothing is outside"
    for root in (
        np.linalg.cholesky(np.array([[2.0, 0.9, 0.1], [0.9, 1.0, -0.3], [0.1, -0.3, 0.5]])),
        np.diag([2.0, 0.5, 1.2]),
    ):
        check_shortest(projection, coef[outside], members, root)


def check_shortest(projection, outside, members, root):
    """The move ends in the set, and no member is nearer in the metric."""
    roots = np.broadcast_to(root, (len(outside), D, D))
    y, reached = projection.shortest(outside, roots)
    np.testing.assert_allclose(outside + y @ root.T, reached, atol=1e-7)
    np.testing.assert_allclose(projection.nearest(reached), reached, atol=1e-9)
    ways = (members[None] - reached[:, None]) @ np.linalg.inv(root).T
    assert np.einsum("cd,cmd->cm", -y, ways).max() < 1e-6, "a member is nearer in the metric"


@pytest.mark.parametrize("name", PROJECTIONS)
def test_a_projection_is_the_nearest_point_of_a_convex_set(name):
    check_projection(name)

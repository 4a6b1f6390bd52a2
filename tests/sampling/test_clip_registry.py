"""Every registered clip bounds what is long, leaves what is short, and says which it was."""

import numpy as np
import pytest

from skbayes_sgld._components import resolve
from skbayes_sgld.sampling import CLIPS


def check_clip(name):
    """Raise where the clip of this name is no bound."""
    clip = resolve(name, CLIPS, "clip")
    rng = np.random.default_rng(0)
    direction = rng.standard_normal((6, 5))
    short, huge = 1e-9 * direction, 1e12 * direction
    kept, fired = clip(short)
    np.testing.assert_array_equal(kept, short, err_msg="it changes a short gradient")
    assert not fired.any(), "it says that it changed a short gradient"
    bounded, fired = clip(huge.copy())
    assert fired.all() and fired.shape == (6,), "it does not say which gradients it changed"
    longer = clip(1e3 * huge)[0]
    np.testing.assert_allclose(longer, bounded, rtol=1e-9, err_msg="it is no bound")
    assert np.all(np.sum(bounded * direction, axis=1) > 0), "it turns a gradient round"
    assert np.all(np.abs(bounded) <= np.abs(huge)), "an element has grown"
    again = clip(bounded)[0]
    np.testing.assert_allclose(again, bounded, rtol=1e-12, err_msg="clipping twice is not once")
    # each chain on its own
    mixed = np.where(np.arange(6)[:, None] % 2, short, huge)
    values, fired = clip(mixed)
    np.testing.assert_array_equal(fired, np.arange(6) % 2 == 0)
    np.testing.assert_allclose(values[::2], bounded[::2])
    np.testing.assert_array_equal(values[1::2], short[1::2])


@pytest.mark.parametrize("name", CLIPS)
def test_a_clip_bounds_each_chain_on_its_own(name):
    check_clip(name)

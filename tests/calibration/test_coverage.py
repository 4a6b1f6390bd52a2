"""Coverage of the default fits' intervals, and that it sees what is wrong."""

import pandas as pd
import pytest

from .coverage import cover
from .models import MODELS

pytestmark = pytest.mark.truth


def test_intervals_cover_as_often_as_they_say():
    table = pd.concat([cover(name)[0] for name in MODELS], ignore_index=True)
    print(table.to_string(index=False))
    assert table["deviation"].abs().max() < 3.5


@pytest.mark.parametrize(
    ("name", "wrong", "sign"),
    [
        ("linear, conjugate normal", {"temperature": 2.0}, 1),
        ("logistic, normal", {"temperature": 2.0}, 1),
        ("logistic, normal", {"prior__scale": 1.0}, -1),
    ],
)
def test_a_wrong_posterior_is_found_out(name, wrong, sign):
    table, _ = cover(name, 150, **wrong)
    print(table.to_string(index=False))
    assert (sign * table["deviation"]).max() > 3.5

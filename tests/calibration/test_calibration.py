"""Both proofs of the default fits, and that each sees what is wrong."""

import pandas as pd
import pytest

from .calibration import calibrate, family_p_value
from .coverage import cover
from .models import MODELS

pytestmark = pytest.mark.truth
# changes that make a posterior too wide (1) or too narrow (-1)
WRONG = [
    ("linear, conjugate normal", {"temperature": 2.0}, 1),
    ("logistic, normal", {"temperature": 2.0}, 1),
    ("logistic, normal", {"prior__scale": 1.0}, -1),
]


def test_ranks_of_the_true_parameters_are_uniform():
    parts = [calibrate(name) for name in MODELS]
    table = pd.concat([part for part, _ in parts], ignore_index=True)
    print(table.to_string(index=False), f"\nfits that warned: {[warned for _, warned in parts]}")
    assert family_p_value(table) > 0.001
    assert table[["location", "width"]].abs().to_numpy().max() < 4.5


def test_intervals_cover_as_often_as_they_say():
    table = pd.concat([cover(name)[0] for name in MODELS], ignore_index=True)
    print(table.to_string(index=False))
    assert table["deviation"].abs().max() < 3.5


@pytest.mark.parametrize(("name", "wrong", "sign"), WRONG)
def test_ranks_find_a_wrong_posterior_out(name, wrong, sign):
    table, _ = calibrate(name, 150, **wrong)
    print(table.to_string(index=False))
    assert family_p_value(table) < 1e-6
    coefficients = table["parameter"].str.startswith("coef")
    assert (-sign * table["width"])[coefficients].max() > 4.5


@pytest.mark.parametrize(("name", "wrong", "sign"), WRONG)
def test_coverage_finds_a_wrong_posterior_out(name, wrong, sign):
    table, _ = cover(name, 150, **wrong)
    print(table.to_string(index=False))
    assert (sign * table["deviation"]).max() > 3.5

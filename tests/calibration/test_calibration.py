"""Simulation-based calibration of the default fits, and that it sees what is wrong."""

import pandas as pd
import pytest

from .calibration import calibrate, family_p_value
from .models import MODELS

pytestmark = pytest.mark.truth


def test_ranks_of_the_true_parameters_are_uniform():
    parts = [calibrate(name) for name in MODELS]
    table = pd.concat([part for part, _ in parts], ignore_index=True)
    print(table.to_string(index=False), f"\nfits that warned: {[warned for _, warned in parts]}")
    assert family_p_value(table) > 0.001
    assert table[["location", "width"]].abs().to_numpy().max() < 4.5


@pytest.mark.parametrize(
    ("name", "wrong", "sign"),
    [
        ("linear, conjugate normal", {"temperature": 2.0}, -1),
        ("logistic, normal", {"temperature": 2.0}, -1),
        ("logistic, normal", {"prior__scale": 1.0}, 1),
    ],
)
def test_a_wrong_posterior_is_found_out(name, wrong, sign):
    table, _ = calibrate(name, 150, **wrong)
    print(table.to_string(index=False))
    assert family_p_value(table) < 1e-6
    coefficients = table["parameter"].str.startswith("coef")
    assert (sign * table["width"])[coefficients].max() > 4.5  # too wide, or too narrow

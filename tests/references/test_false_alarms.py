"""Share of default fits of the reference suite that warn or are found not usable."""

import warnings

import pytest

from skbayes_sgld import ModelMisfitWarning

from .cases import all_cases

pytestmark = pytest.mark.truth

SEEDS = (1, 2, 3)  # none is the seed of the suite itself
LARGEST = 1e5  # rows times columns: the larger cases are fitted once, by the suite
MOST = 0.02


def alarms(name, seed):
    """Warnings of a default fit, and problems in its report."""
    case = all_cases()[name]
    X, y, *weight = case.data()
    model = case.estimator().set_params(random_state=seed)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.simplefilter("ignore", ModelMisfitWarning)  # of the model, not of the draws
        model.fit(X, y, *weight)
    return [str(w.message) for w in caught] + model.diagnose().problems


def test_at_most_two_default_fits_in_a_hundred_are_warned_of():
    names = [n for n, case in all_cases().items() if case.data()[0].size <= LARGEST]
    found = {(name, seed): alarms(name, seed) for name in names for seed in SEEDS}
    warned = {fit: texts for fit, texts in found.items() if texts}
    print(f"{len(warned)} of {len(found)} default fits are warned of")
    for fit, texts in warned.items():
        print(*fit, *texts)
    assert len(found) > 200
    assert len(warned) <= MOST * len(found)

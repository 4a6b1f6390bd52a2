"""Modes that do not exist are refused, as posteriors that are none are."""

import numpy as np
import pytest

from skbayes_sgld import SGDMAPClassifier
from skbayes_sgld.posterior.propriety import ImproperPosteriorError
from tests.estimators.test_improper import (
    CONSTANT,
    DEPENDENT,
    FLAT,
    HELD,
    LIGHT,
    PROPER,
    SIDE,
    X,
    Y,
)
from tests.inputs.refusals import cases, refuse

LABELS = (Y > 0).astype(float)
IMPROPER = [
    *cases("constant", rf"column 1.*x1.*constant{PROPER}", (SGDMAPClassifier,), CONSTANT, **FLAT),
    *cases("dependent", rf"x0.*x1.*x3.*dependent{PROPER}", (SGDMAPClassifier,), DEPENDENT, **FLAT),
]


@pytest.mark.parametrize(("model", "match", "data"), IMPROPER)
def test_modes_of_improper_posteriors_are_refused(model, match, data):
    refuse(model, match, y=LABELS, **data)


# weights of next to nothing are the subject
@pytest.mark.filterwarnings("ignore:sample_weight sums to")
def test_weights_that_leave_next_to_nothing_are_refused():
    model = SGDMAPClassifier(random_state=0)
    with pytest.raises(ImproperPosteriorError, match=HELD.format("2.*e-14")):
        model.fit(X, SIDE, np.asarray(LIGHT))
    assert vars(model).keys() == model.get_params(deep=False).keys()

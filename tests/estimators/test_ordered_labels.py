"""Labels of ordered classes in the types of pandas, polars and Arrow that have an order."""

import pandas as pd
import pytest
from numpy.testing import assert_array_equal

from skbayes_sgld import SGLDOrdinalClassifier
from tests.marks import SHORT

from .test_ordinal import CODES, GRADES, NAMES, X, fit

pl = pytest.importorskip("polars")
pa = pytest.importorskip("pyarrow")
# the runs are short
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

ENUM = pl.Enum(NAMES.tolist())
DICTIONARY = pa.DictionaryArray.from_arrays(pa.array(CODES), pa.array(NAMES), ordered=True)
CHUNKS = pa.chunked_array([DICTIONARY[:70], DICTIONARY[70:]])
TEXT = {
    "frame": GRADES.to_frame("grade"),
    "index": pd.CategoricalIndex(GRADES),
    "polars": pl.Series("grade", NAMES[CODES].tolist(), dtype=ENUM),
    "polars frame": pl.DataFrame({"grade": NAMES[CODES].tolist()}, schema={"grade": ENUM}),
    "Arrow": DICTIONARY,
    "Arrow in chunks": CHUNKS,
    "Arrow table": pa.table({"grade": DICTIONARY}),
    "Arrow in pandas": pd.Series(pd.arrays.ArrowExtensionArray(CHUNKS)),
}


@pytest.fixture(scope="module")
def model():
    return fit(X, GRADES, **SHORT)


@pytest.mark.parametrize("y", TEXT.values(), ids=TEXT)
def test_the_order_of_any_type_that_has_one_is_that_of_the_classes(y, model):
    """Its labels are those of text, in its order, without a warning."""
    found = fit(X, y, **SHORT)
    assert_array_equal(found.classes_, NAMES)
    assert_array_equal(found.posterior_.values, model.posterior_.values)
    assert found.score(X, y) == model.score(X, GRADES)
    assert_array_equal(found.log_likelihood(X, y), model.log_likelihood(X, GRADES))
    batches = SGLDOrdinalClassifier(**SHORT, random_state=0)
    assert_array_equal(batches.partial_fit(X, y, classes=y).classes_, NAMES)


def test_a_polars_categorical_has_no_order():
    with pytest.warns(UserWarning, match="alphabetical order"):
        fit(X, pl.Series(NAMES[CODES].tolist(), dtype=pl.Categorical))

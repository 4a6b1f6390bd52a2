"""Data frames with a column that is not of numbers: the error names the column and a value."""

import numpy as np
import pandas as pd
import pytest

from skbayes_sgld import SGDMAPClassifier, SGLDLinearRegression, SGLDMLPRegressor

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

RNG = np.random.default_rng(0)
GOOD = pd.DataFrame(RNG.standard_normal((30, 2)), columns=["age", "weight"])
Y = GOOD["age"].to_numpy() + RNG.standard_normal(30)
COLUMNS = {
    "words": (["Rome", "Oslo"] * 15, "'Rome'"),
    "words among numbers": ([1.5] * 29 + ["Oslo"], "'Oslo'"),
    "categories": (pd.Categorical(["Rome", "Oslo"] * 15), "'Rome'"),
    "text with a gap": (pd.array([None, "Rome", "Oslo"] * 10, "string"), "'Rome'"),
    "dates": (pd.to_datetime(["2020-01-02"] * 30), "'2020-01-02"),
    "durations": (pd.to_timedelta(["3 days"] * 30), "'"),
    "complex numbers": (np.full(30, 1j), "'1j'"),
}


@pytest.mark.parametrize("kind", COLUMNS)
@pytest.mark.parametrize("cls", [SGLDLinearRegression, SGDMAPClassifier, SGLDMLPRegressor])
def test_the_column_is_named_with_a_value_of_it(cls, kind):
    values, shown = COLUMNS[kind]
    wrong = GOOD.assign(gap=pd.array([1.0, None] * 15, "Float64"), city=values)
    model = cls()
    with pytest.raises(ValueError, match=f"X has the column 'city' with the value {shown}"):
        model.fit(wrong, Y > 0 if cls is SGDMAPClassifier else Y)
    assert vars(model) == vars(cls())


def test_the_column_is_named_of_new_rows_and_of_a_table_of_arrow():
    model = SGLDLinearRegression(n_draws=20, n_chains=2, random_state=0).fit(GOOD, Y)
    with pytest.raises(ValueError, match="X has the column 'weight' with the value 'heavy'"):
        model.predict(GOOD.assign(weight="heavy"))
    pa = pytest.importorskip("pyarrow")
    table = pa.table({"age": GOOD["age"].to_numpy(), "city": ["Rome"] * 30})
    with pytest.raises(ValueError, match="X has the column 'city' with the value 'Rome'"):
        model.fit(table, Y)

"""The HTML representation shows the plan of the fit, in scikit-learn's own style."""

import re
from html import unescape

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skbayes_sgld import SGLDLinearRegression, SGLDLogisticRegression
from skbayes_sgld.inference.choices import shown

pytestmark = pytest.mark.skipif(
    not hasattr(BaseEstimator, "_get_params_html"),
    reason="the HTML representation has tables from scikit-learn 1.7 on",
)

X = np.random.default_rng(0).standard_normal((50, 2))
Y = X @ [1.0, -1.0] + np.random.default_rng(1).standard_normal(50)
ROW = r'<tr class="([\w-]+)"><td>(.*?)</td><td>(.*?)</td><td>(.*?)</td></tr>'


def rows_of(estimator):
    """Rows of the plan: class, setting, value and reason."""
    html = estimator._repr_html_()
    _, _, plan = html.partition("<summary>Plan of the fit</summary>")
    table = plan.partition("</table>")[0]
    return [tuple(map(unescape, row)) for row in re.findall(ROW, table)]


def expected_of(model):
    return [
        ("user-set" if choice.given else "default", name, shown(choice.value), choice.why)
        for name, choice in model.posterior_.choices.items()
    ]


def test_the_table_is_that_of_the_plan():
    model = SGLDLinearRegression(prior="normal", n_draws=250, random_state=0)
    assert rows_of(model) == []
    model.fit(X, Y)
    assert rows_of(model) == expected_of(model)
    assert ("user-set", "prior", "normal", "given") in rows_of(model)
    for _, name, value, _ in rows_of(model):
        assert re.search(rf"^{name} +{re.escape(value)}", str(model.result_.plan), re.M)


def test_a_pipeline_shows_the_plan_of_its_last_step():
    pipe = make_pipeline(StandardScaler(), SGLDLogisticRegression(random_state=0)).fit(X, Y > 0)
    assert rows_of(pipe) == expected_of(pipe[-1]) != []


def test_reasons_are_escaped():
    model = SGLDLinearRegression(n_draws=250, random_state=0).fit(X, Y)
    name, choice = next(iter(model.posterior_.choices.items()))
    model.posterior_.choices[name] = choice._replace(why="<b>1 < 2</b>")
    assert "<b>1" not in model._repr_html_()
    assert rows_of(model) == expected_of(model)

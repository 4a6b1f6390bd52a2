"""
Searching for a prior by what it predicts
=========================================

The scale of a prior plays the part of a penalty such as ``alpha`` of ``Ridge``, and a search can
choose it in the same way. Judge it by a score of the predicted distribution: accuracy and R² see
only its middle.
"""

# sphinx_gallery_thumbnail_path = "auto_examples/images/panel_how_to_choose_a_prior.png"

# %%
# Thirty columns, of which five matter
# ------------------------------------

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt
from sklearn.model_selection import GridSearchCV

from skbayes_sgld import SGLDLinearRegression
from skbayes_sgld.metrics import get_scorer

rng = np.random.default_rng(0)
n, d = 60, 30
X = rng.standard_normal((n + 1000, d))
coef = np.zeros(d)
coef[:5] = [3.0, -2.0, 1.5, 1.0, -1.0]
y = X @ coef + rng.standard_normal(n + 1000)
X, X_new, y, y_new = X[:n], X[n:], y[:n], y[n:]

# %%
# Search
# ------
# Pass a prior by name or as an instance; both can be searched over. ``prior__scale`` is the scale
# of the prior, in the units of the coefficients. ``get_scorer`` returns scores by name.

search = GridSearchCV(
    SGLDLinearRegression(prior="normal", n_draws=250, random_state=0),
    {"prior__scale": [0.1, 0.2, 0.5, 1.0, 2.0, 5.0]},
    scoring=get_scorer("log_predictive_density"),
    cv=5,
)
search.fit(X, y)
scores = pd.DataFrame(search.cv_results_).set_index("param_prior__scale")["mean_test_score"]
print(scores.round(3))

# %%
# The gain
# --------
# Log predictive densities of new rows, in nats a row. A prior that is much too narrow costs a nat.
# With scales above 0.5 the data decide, and the default, whose scale comes from the data, is as
# good as the best of the search.

score = get_scorer("log_predictive_density")
default = SGLDLinearRegression(prior="normal", n_draws=250, random_state=0).fit(X, y)
for name, model in {"search": search, "default scale": default}.items():
    print(f"{name:14s} {score(model, X_new, y_new):.3f}")

figure, axes = plt.subplots(figsize=(6.5, 4), layout="constrained")
axes.plot(scores.index, scores, "o-", color="#0072B2")
axes.axvline(search.best_params_["prior__scale"], color="0.4", linewidth=1)
axes.set(xscale="log", xlabel="scale of the prior", ylabel="log predictive density, nats a row")
plt.show()

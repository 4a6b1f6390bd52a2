"""
Repeated measures: groups with many rows and with few
=====================================================

Years of eleven firms are not independent rows: a firm invests more than others year after year.
Each firm has a level of its own, drawn from a population whose spread is learned. A firm with one
year stays nearer the population, and a new firm may be anywhere in it.
"""

# sphinx_gallery_thumbnail_path = "auto_examples/images/panel_how_to_model_repeated_measures.png"

# %%
# The data
# --------
# Grunfeld's investments and market values of eleven firms, 1935 to 1954 (public domain, in
# statsmodels). Three firms keep one year, as if they were new.

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt
from statsmodels.datasets import grunfeld

from skbayes_sgld import SGLDLinearRegression, compare_models
from skbayes_sgld.plotting import ShrinkageDisplay

firms = grunfeld.load_pandas().data
X = pd.DataFrame({"log_value": np.log(firms["value"]), "firm": firms["firm"]})
y = np.log(firms["invest"]).rename("log investment")
new = firms["firm"].isin(["General Electric", "Goodyear", "Union Oil"])
kept = ~new | (firms["year"] == 1935)
X, y = X[kept], y[kept]

# %%
# Effects of firms
# ----------------
# ``sd[firm, intercept]`` is how different firms are, at equal value. A firm with twenty years
# has a narrower interval than one with a single year.

model = SGLDLinearRegression(group_effects={"firm": "intercept"}, random_state=0)
model.fit(X, y)
print(model.summary()[["mean", "sd", "lower", "upper"]].round(2))
effects = model.group_effects_.droplevel(["term", "effect"])
effects["years"] = X["firm"].value_counts()
print(effects[["mean", "sd", "lower", "upper", "years"]].round(2))

# %%
# A firm that has been seen, and one that has not
# -----------------------------------------------
# The same market value, and 90 % intervals of the expected log investment.

rows = X[X["firm"] == "Goodyear"].iloc[[0] * 3].assign(firm=["IBM", "Goodyear", "Ford"])
low, high = model.predict_interval(rows, kind="mean").T
for firm, mean, a, b in zip(rows["firm"], model.predict(rows), low, high, strict=True):
    print(f"{firm:9} {mean:.2f} ({a:.2f} to {b:.2f})")

# %%
# Do the effects help?
# --------------------
# Leave-one-out log densities. With a year left out, the other years of its firm tell the level.
# With a firm left out, it is predicted as a new one: its intervals are then wide enough.
# ``compare_models`` gives each model the columns of its fit.

pooled = SGLDLinearRegression(random_state=0).fit(X[["log_value"]], y)
models = {"firms": model, "no firms": pooled}
print("years left out:", compare_models(models, X, y).round(2), sep="\n")
print("firms left out:", compare_models(models, X, y, groups="firm").round(2), sep="\n")

# %%
# Left: arrows go from a firm's own mean to its effect, and are longest for firms with one year.
# Right: the expected investment of a known firm, of one with a single year and of a new one.

figure, axes = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
ShrinkageDisplay.from_estimator(model, X, y, ax=axes[0])
labels = ["IBM, 20 years", "Goodyear, 1 year", "Ford, none"]
for draws, label in zip(model.posterior_mean_draws(rows), labels, strict=True):
    axes[1].hist(draws, bins=60, density=True, histtype="step", label=label)
axes[1].set(xlabel="expected log investment", yticks=[])
axes[1].legend(frameon=False)
plt.show()

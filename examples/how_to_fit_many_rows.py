"""
A posterior from 200,000 rows
=============================

With many rows the posterior costs little more than its mode. After three passes over the rows each
step takes a small batch, and control variates remove its noise. ``print(result_.plan)`` shows every
setting with its reason.
"""

# sphinx_gallery_thumbnail_path = "auto_examples/images/panel_how_to_fit_many_rows.png"

# %%
# Fit, and compare with the point estimate
# ----------------------------------------

import time

import numpy as np
from matplotlib import pyplot as plt
from sklearn.linear_model import LogisticRegression

from skbayes_sgld import SGLDLogisticRegression
from skbayes_sgld.datasets import make_logistic
from skbayes_sgld.plotting import ForestDisplay

coef = np.linspace(-1.0, 1.0, 10)
X, y = make_logistic(200_000, coef=coef, intercept=0.0, random_state=0)

start = time.perf_counter()
point = LogisticRegression().fit(X, y)
middle = time.perf_counter()
model = SGLDLogisticRegression(random_state=0).fit(X, y)
end = time.perf_counter()
print(f"LogisticRegression {middle - start:.2f} s, the posterior {end - middle:.2f} s")

# %%
# The chosen settings
# -------------------

print(model.result_.plan)

# %%
# The posterior
# -------------
# With so many data the posterior is narrow, and its mean differs from the point estimate by a small
# part of a standard deviation.

sd = model.sample_posterior().coef.std(axis=0)
distance = np.abs(model.coef_ - point.coef_)[0] / sd
print(f"standard deviations {sd.min():.4f} to {sd.max():.4f}")
print(f"distance of the means from the point estimate: at most {distance.max():.2f} sd")

figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
ForestDisplay.from_estimator(model, ax=axes)
plt.show()

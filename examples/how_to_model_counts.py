"""
Counts over unequal exposures
=============================

Machines fail at different rates, and were watched for different times. In a Poisson model of the
rate the time is the exposure: two failures in a month mean a higher rate than two in a year.
"""

# sphinx_gallery_thumbnail_path = "auto_examples/images/panel_how_to_model_counts.png"

# %%
# The data
# --------
# 150 machines, watched for between a month and three years. The rate doubles with every ten
# degrees, and halves with maintenance.

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt

from skbayes_sgld import SGLDPoissonRegressor
from skbayes_sgld.plotting import DensityDisplay

rng = np.random.default_rng(0)
n = 150
machines = pd.DataFrame(
    {"temperature": rng.uniform(20, 60, n), "maintained": rng.integers(0, 2, n)}
)
years = rng.uniform(1 / 12, 3, n)
rate = 2.0 ** ((machines["temperature"] - 40) / 10) * 0.5 ** machines["maintained"]
failures = rng.poisson(rate * years)

# %%
# Fit
# ---
# Coefficients are on the scale of the logarithm of the rate.

model = SGLDPoissonRegressor(random_state=0).fit(machines, failures, exposure=years)
doubling = 10 * model.sample_posterior().coef[:, 0] / np.log(2)
low, high = np.quantile(doubling, [0.05, 0.95])
print(f"ten degrees are {doubling.mean():.2f} doublings (90 % credible: {low:.2f} to {high:.2f})")
print(model.summary()[["mean", "sd", "lower", "upper"]].round(3))

# %%
# Rates and counts
# ----------------
# ``predict`` and ``kind="mean"`` are about the rate, a year. ``predict_interval`` with an
# ``exposure`` is about the count in that time; its ends are whole counts.

new = pd.DataFrame({"temperature": [30.0, 55.0], "maintained": [1, 0]})
rates = model.predict_interval(new, kind="mean")
counts = model.predict_interval(new, exposure=2.0)
for (_, row), mean, between, in_two in zip(
    new.iterrows(), model.predict(new), rates, counts, strict=True
):
    print(
        f"{row.temperature:.0f} degrees: {mean:.2f} a year ({between[0]:.2f} to {between[1]:.2f}); "
        f"in two years {in_two[0]:.0f} to {in_two[1]:.0f} failures"
    )

# %%
grid = pd.DataFrame({"temperature": np.linspace(20, 60, 100), "maintained": 0})
figure, axes = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
for maintained, color in [(0, "#D55E00"), (1, "#0072B2")]:
    shown = grid.assign(maintained=maintained)
    low, high = model.predict_interval(shown, kind="mean").T
    label = "maintained" if maintained else "not maintained"
    axes[0].fill_between(grid["temperature"], low, high, color=color, alpha=0.25)
    axes[0].plot(grid["temperature"], model.predict(shown), color=color, label=label)
axes[0].set(xlabel="temperature", ylabel="failures a year, 90 % credible")
axes[0].legend(frameon=False)
DensityDisplay.from_estimator(model, parameters="coef[maintained]", ax=axes[1])
axes[1].axvline(np.log(0.5), color="0.4", linewidth=1)
plt.show()

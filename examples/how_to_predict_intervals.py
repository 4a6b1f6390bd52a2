"""
How sure is a prediction?
=========================

A point prediction says where to expect the next observation; a predictive interval says how far off
it may be. Here the progression of diabetes after a year is predicted from ten measurements at the
beginning, with intervals that hold nine patients in ten.
"""

# sphinx_gallery_thumbnail_path = "auto_examples/images/panel_how_to_predict_intervals.png"

# %%
# Fit
# ---
# Fit it like any other regressor of scikit-learn. There is nothing to tune, and the columns may be
# in any units.

from matplotlib import pyplot as plt
from sklearn.datasets import load_diabetes
from sklearn.model_selection import train_test_split

from skbayes_sgld import SGLDLinearRegression
from skbayes_sgld.metrics import interval_coverage, interval_width
from skbayes_sgld.plotting import CoverageDisplay, PredictiveIntervalDisplay

X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
model = SGLDLinearRegression(random_state=0).fit(X_train, y_train)
print(f"R² of patients left out: {model.score(X_test, y_test):.2f}")

# %%
# Two kinds of interval
# ---------------------
# ``kind="predictive"``, the default, is about the next patient like this one, and includes the
# noise of a single patient. ``kind="mean"`` is about the average of all patients like this one: it
# includes only the uncertainty of the coefficients, and is much narrower.

first = X_test.iloc[:1]
for kind in ("predictive", "mean"):
    low, high = model.predict_interval(first, coverage=0.9, kind=kind)[0]
    print(f"{kind:10s} {low:4.0f} to {high:4.0f}")

# %%
# Do they hold their share?
# -------------------------
# Of patients that the fit has not seen, about nine in ten must be inside a 90 % interval, and about
# half inside a 50 % interval. ``coverage`` takes several levels at once. The curve on the right
# shows all levels; the band shows how far chance may move it with so many patients.

levels = [0.5, 0.8, 0.9, 0.95]
intervals = model.predict_interval(X_test, coverage=levels)
shares, widths = interval_coverage(y_test, intervals), interval_width(intervals)
for level, share, width in zip(levels, shares, widths, strict=True):
    print(f"{level:4.0%} intervals hold {share:4.0%}, and are {width:3.0f} wide on average")

figure, axes = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
PredictiveIntervalDisplay.from_estimator(
    model, X_test, y_test, y_name="progression after a year", ax=axes[0]
)
CoverageDisplay.from_estimator(model, X_test, y_test, ax=axes[1])
plt.show()

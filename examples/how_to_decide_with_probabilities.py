"""
Which cases are too uncertain to decide?
========================================

A classifier's probability of 0.4 may be well known, or be the middle of anything from 0.1 to 0.8.
Only the second is a reason to look again. Here tumours are sorted into benign, malignant, and
those whose credible band does not leave the decision clear.
"""

# sphinx_gallery_thumbnail_path = "auto_examples/images/panel_how_to_decide_with_probabilities.png"

# %%
# A band for every probability
# ----------------------------
# ``predict_proba`` returns the posterior mean of the probability, and ``predict_proba_interval``
# its credible band. The fit sees only 100 rows and four of the columns, so that some cases stay
# uncertain.

import numpy as np
from matplotlib import pyplot as plt
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skbayes_sgld import SGLDLogisticRegression, predict_proba_interval
from skbayes_sgld.plotting import ReliabilityDisplay

data = load_breast_cancer(as_frame=True)
columns = ["mean texture", "mean area", "mean smoothness", "mean concavity"]
X, malignant = data.data[columns], data.target == 0
X_train, X_test, y_train, y_test = train_test_split(
    X, malignant, train_size=100, stratify=malignant, random_state=0
)
model = make_pipeline(StandardScaler(), SGLDLogisticRegression(random_state=0))
probability = model.fit(X_train, y_train).predict_proba(X_test)[:, 1]

# %%
# A pipeline forwards only methods that scikit-learn knows, such as ``predict_proba``. The package's
# function ``predict_proba_interval`` looks into the pipeline.

low, high = predict_proba_interval(model, X_test, coverage=0.9)[:, 1].T
clear = (low > 0.5) | (high < 0.5)
wrong = (probability > 0.5) != y_test
print(
    f"{clear.mean():.0%} of {len(clear)} cases are clear; {wrong[clear].mean():.1%} of these wrong"
)
print(f"of the others {wrong[~clear].mean():.0%} are wrong")

# %%
# Figures
# -------
# Left: every case with its band, in the order of the probabilities. Look again at the cases whose
# band crosses 0.5. Right: among cases with the predicted probability p, about the share p is
# malignant.

figure, axes = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
order = np.argsort(probability)
rank = np.arange(len(order))
for group, color, label in [(clear, "#0072B2", "clear"), (~clear, "#D55E00", "look again")]:
    shown = group[order]
    axes[0].vlines(rank[shown], low[order][shown], high[order][shown], color=color, alpha=0.4)
    axes[0].plot(rank[shown], probability[order][shown], ".", color=color, label=label)
axes[0].axhline(0.5, color="0.4", linewidth=1)
axes[0].set(xlabel="cases, by probability", ylabel="probability that it is malignant")
axes[0].legend(frameon=False)
ReliabilityDisplay.from_estimator(model, X_test, y_test, n_bins=6, ax=axes[1])
plt.show()

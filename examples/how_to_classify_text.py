"""
Which words decide?
===================

Text becomes thousands of sparse columns, and most words occur in a few documents only. A point
estimate gives every word a weight; the posterior also says which signs the data determine. Here
sentences about medicine are told from others, in the descriptions of scikit-learn's own data sets.
"""

# sphinx_gallery_thumbnail_path = "auto_examples/images/panel_how_to_classify_text.png"

# %%
# Sentences as sparse rows
# ------------------------
# ``TfidfVectorizer`` makes sparse rows, and the fit keeps them sparse.

import re

import numpy as np
from matplotlib import pyplot as plt
from sklearn import datasets
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline

from skbayes_sgld import SGLDLogisticRegression, predict_proba_interval

sentences, medical = [], []
for name in ("breast_cancer", "diabetes", "iris", "wine", "digits", "linnerud"):
    text = getattr(datasets, f"load_{name}")().DESCR
    found = [part for part in re.split(r"[.\n|]+\s*", text) if len(part.split()) > 3]
    sentences += found
    medical += [name in ("breast_cancer", "diabetes")] * len(found)
train, test, y_train, y_test = train_test_split(
    sentences, np.array(medical), test_size=0.3, random_state=0
)
words = TfidfVectorizer(stop_words="english", token_pattern=r"[a-z]{3,}", min_df=2)
model = make_pipeline(words, SGLDLogisticRegression(random_state=0)).fit(train, y_train)
print(f"{len(train)} sentences, {len(words.vocabulary_)} words")
print(f"accuracy on {len(test)} others: {model.score(test, y_test):.2f}")

# %%
# Words whose sign is known
# -------------------------
# The probability of a positive coefficient is near 0 or 1 for some words, and anything between for
# most of them.

coef = model[-1].posterior_["coef"].reshape(-1, len(words.vocabulary_))
positive = (coef > 0).mean(axis=0)
sure = np.abs(positive - 0.5) > 0.475
print(f"the sign of {sure.sum()} words is known with a probability of 97.5 %")

# %%
# Figures
# -------
# Left: 90 % credible intervals of the words whose sign is known best. Right: sentences that the fit
# has not seen, in the order of their probabilities. Those with equal probabilities, on the level
# stretch, contain no word that the fit has seen.

figure, axes = plt.subplots(1, 2, figsize=(11, 4.6), layout="constrained")
shown = np.argsort(np.abs(positive - 0.5))[-14:]
shown = shown[np.argsort(coef[:, shown].mean(axis=0))]
low, middle, high = np.quantile(coef[:, shown], [0.05, 0.5, 0.95], axis=0)
rank = np.arange(len(shown))
axes[0].hlines(rank, low, high, color="#0072B2", linewidth=2)
axes[0].plot(middle, rank, "o", color="#0072B2", markersize=4)
axes[0].axvline(0, color="0.4", linewidth=1)
axes[0].set_yticks(rank, words.get_feature_names_out()[shown])
axes[0].set(xlabel="coefficient", title="Words whose sign is known best")

probability = model.predict_proba(test)[:, 1]
order = np.argsort(probability)
low, high = predict_proba_interval(model, test, coverage=0.9)[order, 1].T
rank = np.arange(len(test))
for group, color, label in [(y_test, "#D55E00", "medicine"), (~y_test, "#0072B2", "other")]:
    here = group[order]
    axes[1].vlines(rank[here], low[here], high[here], color=color, alpha=0.4)
    axes[1].plot(rank[here], probability[order][here], ".", color=color, label=label)
axes[1].axhline(0.5, color="0.4", linewidth=1)
axes[1].set(xlabel="sentences, by probability", title="Probability that a sentence is of medicine")
axes[1].legend(loc="lower right")
plt.show()

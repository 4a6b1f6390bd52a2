"""
Can you rely on the draws?
==========================

A sampler always returns numbers, but they need not be draws of the posterior. ``fit`` warns if they
are not. Here the same model of the NBA rookies is fitted twice: with the default settings, and by
SGLD with a decaying step size as it was published.
"""

# sphinx_gallery_thumbnail_path = "auto_examples/images/panel_how_to_read_the_diagnostics.png"

# %%
# Two fits
# --------

import warnings

from matplotlib import pyplot as plt
from sklearn.preprocessing import StandardScaler

from skbayes_sgld import SGLDLogisticRegression
from skbayes_sgld.datasets import load_nba_rookies
from skbayes_sgld.plotting import RankDisplay, TraceDisplay
from skbayes_sgld.sampling import SGLD

rookies = load_nba_rookies()
X = StandardScaler().set_output(transform="pandas").fit_transform(rookies.data.fillna(0.0))
default = SGLDLogisticRegression(random_state=0).fit(X, rookies.target)

plain = SGLDLogisticRegression(
    sampler=SGLD(integrator="euler"),
    preconditioner=None,
    gradient="minibatch",
    batch_size=30,
    schedule="polynomial",
    step_size=0.015,
    random_state=0,
)
with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    plain.fit(X, rookies.target)
print(told[0].message)

# %%
# The table
# ---------
# ``r_hat`` compares the chains with each other: above 1.01 they have not all seen the same
# distribution. ``ess_bulk`` is the number of independent draws that would give the mean with the
# same error; 400 are plenty for a mean and a standard deviation. ``mcse_mean`` is the Monte Carlo
# error of the mean, in the units of the parameter.

shown = ["coef[games_played]", "coef[points]"]
columns = ["mean", "sd", "r_hat", "ess_bulk", "mcse_mean"]
for name, model in {"default": default, "plain": plain}.items():
    print(name, model.summary().loc[shown, columns].round(3), sep="\n")

# %%
# The report
# ----------
# ``diagnose`` says in words what is wrong, and what to do.

report = default.diagnose()
print(report)

# %%
# Pictures
# --------
# Traces of chains that have mixed lie on each other, and their ranks are uniform: each chain has
# its share of low and high draws. The chains of the plain run wander, each in its own region.

figure, axes = plt.subplots(2, 2, figsize=(11, 6), layout="constrained")
for column, (name, model) in enumerate({"default": default, "plain SGLD": plain}.items()):
    TraceDisplay.from_estimator(model, parameters="coef[points]", ax=axes[0, column])
    RankDisplay.from_estimator(model, parameters="coef[points]", ax=axes[1, column])
    axes[0, column].set_title(name)
plt.show()

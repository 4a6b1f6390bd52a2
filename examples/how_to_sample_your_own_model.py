"""
A model of your own: when did the accidents become fewer?
=========================================================

``sample`` takes any log density with its gradient. Here the rate of accidents in mines falls
smoothly from one level to another around an unknown year. The counts are simulated to look like the
well-known British ones.
"""

# sphinx_gallery_thumbnail_path = "auto_examples/images/panel_how_to_sample_your_own_model.png"

# %%
# The model
# ---------
# In year t the count is Poisson with the rate ``early + (late - early) * expit((t - when) / 2)``.
# Priors: exponential with mean 3 for both rates, and ``when`` normal about 1900. ``theta`` has one
# row for each chain.

import numpy as np
from matplotlib import pyplot as plt
from scipy.special import expit

from skbayes_sgld import sample
from skbayes_sgld.own_models import FunctionPosterior

year = np.arange(1851, 1962)
rng = np.random.default_rng(0)
count = rng.poisson(3.1 - 2.1 * expit((year - 1890) / 2))


def rate_and_share(theta):
    share = expit((year - theta[:, [2]]) / 2)
    return theta[:, [0]] * (1 - share) + theta[:, [1]] * share, share


def log_density(theta):
    rate, _ = rate_and_share(theta)
    prior = -(theta[:, 0] + theta[:, 1]) / 3 - ((theta[:, 2] - 1900) / 30) ** 2 / 2
    return (count * np.log(rate) - rate).sum(axis=1) + prior


def gradient(theta):
    rate, share = rate_and_share(theta)
    slope = count / rate - 1
    moved = (theta[:, [0]] - theta[:, [1]]) * share * (1 - share) / 2
    return np.column_stack(
        [
            (slope * (1 - share)).sum(axis=1) - 1 / 3,
            (slope * share).sum(axis=1) - 1 / 3,
            (slope * moved).sum(axis=1) - (theta[:, 2] - 1900) / 900,
        ]
    )


# %%
# Sample
# ------
# Rates are positive: ``transforms`` says so, and the chains move in unbounded coordinates.
# ``sample`` first checks the gradient against finite differences of the density.

posterior = FunctionPosterior(
    log_density,
    gradient,
    n_params=3,
    param_names=["early", "late", "when"],
    transforms={"early": "positive", "late": "positive"},
)
draws = sample(posterior, init=np.array([3.0, 1.0, 1895.0]), random_state=0)
print(draws.summary()[["mean", "sd", "lower", "upper", "r_hat", "ess_bulk"]].round(2))

# %%
# The answer
# ----------

when, early, late = (np.asarray(draws[name]).ravel() for name in ("when", "early", "late"))
print(f"between {np.quantile(when, 0.05):.0f} and {np.quantile(when, 0.95):.0f}, in nine of ten")
print(f"probability that the rate has fallen by half or more: {np.mean(late < early / 2):.2f}")

rates, _ = rate_and_share(np.column_stack([early, late, when])[::10])
figure, axes = plt.subplots(figsize=(8, 4), layout="constrained")
axes.bar(year, count, color="0.8", width=1.0, label="accidents")
low, middle, high = np.quantile(rates, [0.05, 0.5, 0.95], axis=0)
axes.fill_between(year, low, high, color="#0072B2", alpha=0.3)
axes.plot(year, middle, color="#0072B2", label="rate, 90 % credible")
axes.legend(frameon=False)
axes.set(xlabel="year", ylabel="accidents a year")
plt.show()

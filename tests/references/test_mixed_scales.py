"""Default fits with effects of groups against posteriors by grids and by NUTS.

``mixed_scales.json`` has the posterior mean and sd of each scale (s), correlation (r) and of sigma,
by term and effect. Those of normal models are sums over grids of the scales, with dense covariances
of y; the others are 20,000 draws by NumPyro's NUTS, in non-centred coordinates. Priors: N(0, c^2)
coefficients and intercept, half-Student-t(3) scales, LKJ(2), and a flat prior of log sigma; of cut
points N(0, 5^2), and of sigma in "normal_every_row" a half-Student-t(3) of scale 2.5.
"""

import json
import warnings
from pathlib import Path

import numpy as np
import pytest

from skbayes_sgld import (
    SGLDLinearRegression,
    SGLDLogisticRegression,
    SGLDOrdinalClassifier,
    SGLDPoissonRegressor,
)
from skbayes_sgld.priors import GroupPrior, HalfStudentT, Normal
from tests.references.mixed_cases import NAMES, mixed_case

REFERENCES = json.loads((Path(__file__).parent / "mixed_scales.json").read_text())


@pytest.mark.truth
@pytest.mark.parametrize("name", NAMES)
def test_the_scales_of_a_mixed_model_have_their_posterior(name):
    frame, y, terms, family, of_coef, of_scales = mixed_case(name)
    wide = Normal(scale=of_coef)
    options = {"prior": wide, "group_effects": terms, "random_state": 0}
    options["group_prior"] = GroupPrior(scale=of_scales)
    if family == "normal":
        noise = HalfStudentT(df=3.0, scale=2.5) if name == "normal_every_row" else "flat"
        model = SGLDLinearRegression(noise_prior=noise, intercept_prior=wide, **options)
    elif family == "binary":
        model = SGLDLogisticRegression(intercept_prior=wide, **options)
    elif family == "counts":
        model = SGLDPoissonRegressor(intercept_prior=wide, **options)
    else:
        model = SGLDOrdinalClassifier(**options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of few draws, and of misfit
        model.fit(frame, y)
    draws = dict(zip(model.posterior_.names, model.posterior_.flat.T, strict=True))
    share = np.ones(len(model.posterior_.flat))
    if family == "normal" and name != "normal_every_row":
        share = 1.0 / np.sqrt(draws["noise_variance"])  # from flat in sigma to flat in its log
    share = share / share.sum()
    found = {}
    for t, term in enumerate(terms):
        scales = [v for key, v in draws.items() if key.startswith(f"sd[{term},")]
        found |= {f"s{t}_{k}": values for k, values in enumerate(scales)}
    correlations = [v for key, v in draws.items() if key.startswith("correlation[")]
    found |= {key: v for v in correlations for key in ("r0", "r0_0")}
    if family == "normal":
        found["sigma"] = np.sqrt(draws["noise_variance"])
    for key, (mean, sd) in REFERENCES[name].items():
        values = found[key]
        error = (share @ values - mean) / sd
        ratio = np.sqrt(share @ np.square(values - share @ values)) / sd
        print(f"{name:18}{key:8}{error:8.3f} sd {ratio:7.3f}")
        # four standard errors of 2,000 draws; two groups leave the scale its prior's heavy tail
        assert abs(error) < 0.1
        assert abs(ratio - 1.0) < (0.3 if name == "normal_two_groups" else 0.1)

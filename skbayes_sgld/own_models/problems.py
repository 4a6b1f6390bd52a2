"""Problems of draws of a user's own density: parts that chains do not reach, and jumps."""

from __future__ import annotations

import numpy as np

from skbayes_sgld._typing import Array
from skbayes_sgld.inference.mode_problems import TO_CROSS
from skbayes_sgld.inference.plan import Plan
from skbayes_sgld.own_models.search import energy_error, n_trajectories


def find_problems(plan: Plan, flat: Array) -> list[str]:
    """Reasons not to rely on draws ``(S, P)``, which those of any model do not tell."""
    return jump_problem(plan, flat) + far_problem(plan, flat)


def far_problem(plan: Plan, flat: Array) -> list[str]:
    """Sentence on a part, near the mode or far from it, with too few of the draws ``(S, P)``."""
    far = plan.far
    if far is None:
        return []
    share = far.share_of(flat)
    if 1.0 - share < 0.25 * (1.0 - far.share):
        return [
            f"about {1.0 - far.share:.0%} of the posterior is near its mode, in a part that is "
            f"{far.distance:.3g} times narrower than the rest, and {1.0 - share:.1%} of the draws: "
            f"chains do not get there; {TO_CROSS}"
        ]
    if share >= 0.25 * far.share:
        return []
    remedy = "raise n_draws and thin"
    if not plan.settings.automatic:
        remedy = "set sampler, step_size and preconditioner to 'auto'"
    return [
        f"about {far.share:.0%} of the posterior is some {far.distance:.3g} sds of its mode away "
        f"from it, and {share:.1%} of the draws: chains do not get there; {remedy}"
    ]


def jump_problem(plan: Plan, flat: Array) -> list[str]:
    """Sentence on jumps of a density whose draws ``(S, P)`` follow the gradient alone."""
    settings = plan.settings
    by_pilot = settings.automatic and plan.run.batch_size is None and settings.clip is None
    if plan.run.sampler.adjusted or by_pilot:
        return []
    posterior, tau = plan.posterior, settings.tau
    some = flat[np.linspace(0, len(flat) - 1, n_trajectories(posterior)).astype(int)]
    share, size = energy_error(posterior, plan.center_of(flat[None]), some, tau, plan.seed)
    if not share:
        return []
    return [
        f"the log density jumps by {size:.2g} on {share:.0%} of trajectories, and its gradient "
        "says nothing of it: this sampler follows the gradient alone; set sampler='hmc', which "
        "accepts or rejects by the density"
    ]

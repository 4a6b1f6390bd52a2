"""Posteriors of some parameters of a mixed model: the others are integrated out, and drawn."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from skbayes_sgld._typing import Array
from skbayes_sgld.mixed.posterior import MixedPosterior
from skbayes_sgld.posterior.base import BasePosterior
from skbayes_sgld.posterior.protocol import Facts, Reported


class IntegratedPosterior(BasePosterior):
    """Posterior of theta, the parameters that are not integrated out.

    Reported parameters are those of the whole model. The draw of those that are integrated out
    belongs to theta: its generator is seeded by theta.

    Attributes
    ----------
    model : MixedPosterior
        The whole model.
    many_at_once : bool
        Whether many positions take little longer than one.
    """

    model: MixedPosterior
    many_at_once = True

    @property
    def own_parameters(self) -> tuple[Any, ...]:  # type: ignore[override]
        """Own parameters of the likelihood."""
        return self.model.likelihood.own

    @property
    def facts(self) -> Facts:
        """Facts about the posterior's shape and cost."""
        return Facts(
            has_mode=True,
            one_mode=True,
            hierarchical=True,
            many_at_once=self.many_at_once,
            thread_safe=True,
            total_weight=self.model.model.total_weight,
        )

    def grad(self, theta: Array) -> Array:
        """Gradient of the log posterior ``(C, P)``."""
        return self.value_and_grad(theta)[1]

    @property
    def reported(self) -> Reported:
        """Reported parameters of the mixed model."""
        return replace(
            self.model.reported, values=self.complete, theta=self.shortened, moves=np.asarray
        )

    def draw_prior(self, generators: list[np.random.Generator]) -> Array:
        """Reported parameters ``(C, n_reported)`` from the prior."""
        return self.model.draw_prior(generators)

    def complete(self, theta: Array) -> Array:
        """Reported parameters ``(S, n_reported)``, with a draw of those integrated out."""
        raise NotImplementedError

    def shortened(self, values: Array) -> Array:
        """Theta ``(S, P)`` of reported parameters."""
        raise NotImplementedError

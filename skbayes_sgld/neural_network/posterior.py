"""The posterior of a multilayer perceptron: backpropagation in NumPy, for all chains at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from skbayes_sgld._checks import check_choice, check_number
from skbayes_sgld._random import probe_generator
from skbayes_sgld._typing import Array
from skbayes_sgld.likelihoods import Likelihood
from skbayes_sgld.posterior.base import BasePosterior
from skbayes_sgld.posterior.protocol import Facts, Reported
from skbayes_sgld.priors import CoefficientPrior
from skbayes_sgld.priors.noise import NoisePrior

_BLOCK = 2**16  # numbers in a layer of a block of rows, so that those of one chain stay in cache


class Activation(NamedTuple):
    """Activation function of the hidden units.

    Attributes
    ----------
    apply : callable
        Replaces an array by the function of it.
    to_slope : callable
        Replaces an array of the function's values by its derivative there.
    gain : float
        Factor on the weights that keeps the size of a signal from layer to layer (He, Zhang, Ren
        & Sun 2015, eq. 10; 5/3 for tanh is common usage).
    """

    apply: Callable[[Array], None]
    to_slope: Callable[[Array], None]
    gain: float


def _tanh(z: Array) -> None:
    np.tanh(z, out=z)


def _slope_of_tanh(a: Array) -> None:
    np.multiply(a, a, out=a)
    np.subtract(1.0, a, out=a)


ACTIVATIONS = {
    "tanh": Activation(_tanh, _slope_of_tanh, 5.0 / 3.0),
    "relu": Activation(
        lambda z: np.copyto(z, np.maximum(z, 0.0)),
        lambda a: np.copyto(a, a > 0.0),
        float(np.sqrt(2.0)),
    ),
}


def with_ones(X: Array, dtype: Any = float) -> Array:
    """Rows ``(..., n, d + 1)`` with a last column of ones, which the biases multiply."""
    rows = np.ones((*X.shape[:-1], X.shape[-1] + 1), dtype)
    rows[..., :-1] = X
    return rows


def check_layout(hidden_layer_sizes: Any, activation: Any) -> tuple[int, ...]:
    """Sizes of the hidden layers as a tuple; a single layer may be given as a number.

    Raises
    ------
    TypeError, ValueError
        If they are not positive whole numbers, or the activation is not known.
    """
    sizes = hidden_layer_sizes
    try:
        sizes = (sizes,) if isinstance(sizes, str) else tuple(sizes)
    except TypeError:  # a single layer
        sizes = (sizes,)
    for size in sizes:
        try:
            check_number(size, "hidden_layer_sizes", low=1, closed="left", integer=True)
        except (TypeError, ValueError) as error:
            raise type(error)(
                f"hidden_layer_sizes={hidden_layer_sizes!r} is not accepted; give a whole number "
                "in [1, inf), or a sequence of them, () for the linear model."
            ) from None
    check_choice(activation, "activation", tuple(sorted(ACTIVATIONS)))
    return tuple(int(size) for size in sizes)


class Network:
    """A multilayer perceptron with linear outputs, whose parameters are passed to its methods.

    ``theta (C, P)`` holds layer after layer, the weights of each (input by input) before its
    biases.

    Parameters
    ----------
    sizes : sequence of int
        Numbers of inputs, of units of each hidden layer, and of outputs. Without hidden layers
        the network is a linear map.
    activation : {"tanh", "relu"}, default="tanh"
        Activation function of the hidden units.
    """

    def __init__(self, sizes: Sequence[int], activation: str = "tanh") -> None:
        check_layout(sizes[1:-1], activation)
        self.sizes, self.activation = tuple(sizes), activation
        self.n_params = sum((n_in + 1) * n_out for n_in, n_out in pairwise(self.sizes))

    def layers(self, theta: Array) -> list[Array]:
        """Views of the weights by layer ``(C, n_in + 1, n_out)``; biases are the last row."""
        views, at = [], 0
        for n_in, n_out in pairwise(self.sizes):
            end = at + (n_in + 1) * n_out
            views.append(theta[:, at:end].reshape(-1, n_in + 1, n_out))
            at = end
        return views

    def split(self, theta: Array) -> tuple[list[Array], list[Array]]:
        """Views of the weights ``(C, n_in, n_out)`` and biases ``(C, n_out)`` by layer."""
        layers = self.layers(theta)
        return [each[:, :-1] for each in layers], [each[:, -1] for each in layers]

    def fan_in(self) -> Array:
        """Number of inputs of the unit that each weight leads to ``(P,)``; 1 for biases."""
        fan_in = np.ones((1, self.n_params))
        for weights, n_in in zip(self.split(fan_in)[0], self.sizes, strict=False):
            weights[:] = n_in
        return fan_in[0]

    def names(self, feature_names: Sequence[str] | None = None) -> list[str]:
        """Names of the parameters: ``weight[layer, from, to]``, ``bias[layer, to]``."""
        names: list[str] = []
        sources: Sequence[str | int] = feature_names or [f"x{j}" for j in range(self.sizes[0])]
        for layer, n_out in enumerate(self.sizes[1:]):
            names += [f"weight[{layer}, {i}, {j}]" for i in sources for j in range(n_out)]
            names += [f"bias[{layer}, {j}]" for j in range(n_out)]
            sources = range(n_out)
        return names

    def forward(self, theta: Array, rows: Array) -> list[Array]:
        """Values of every layer ``(C, units, B)``; those below the outputs end with ones.

        ``rows`` is ``(B, d + 1)``, from :func:`with_ones`, or ``(C, B, d + 1)`` if every chain has
        its own.
        """
        apply, values = ACTIVATIONS[self.activation].apply, [rows.swapaxes(-1, -2)]
        *hidden, last = (layer.swapaxes(-1, -2) for layer in self.layers(theta))
        for weights in hidden:
            C, n_out, _ = weights.shape
            here = np.empty((C, n_out + 1, rows.shape[-2]), np.result_type(theta, rows))
            here[:, -1] = 1.0
            units = np.matmul(weights, values[-1], out=here[:, :-1])
            apply(units)
            values.append(here)
        return [*values, last @ values[-1]]

    def outputs(self, theta: Array, X: Array) -> Array:
        """Outputs ``(C, K, n)`` at the rows ``X (n, d)``."""
        return self.forward(theta, with_ones(X))[-1]

    def backward(self, theta: Array, values: list[Array], delta: Array, grad: Array) -> None:
        """Add to ``grad`` the gradient in theta, given that in the outputs.

        Parameters
        ----------
        theta : ndarray of shape (C, P)
        values : list of ndarray
            Values of every layer, from :meth:`forward`; they are used up.
        delta : ndarray of shape (C, n_outputs, B)
            Gradient in the outputs.
        grad : ndarray of shape (C, P)
            Changed in place.
        """
        to_slope = ACTIVATIONS[self.activation].to_slope
        weights, in_weights = self.layers(theta), self.layers(grad)
        for layer in reversed(range(len(weights))):
            # in this order BLAS takes two thirds of the time of the transposed product
            product = delta @ values[layer].swapaxes(-1, -2)
            in_weights[layer] += product.swapaxes(-1, -2)
            if layer:
                units, above = values[layer][:, :-1], weights[layer][:, :-1]
                to_slope(units)
                if delta.shape[1] == 1:  # BLAS takes four times as long for products of one number
                    units *= delta
                    units *= above
                    delta = units
                else:
                    delta = above @ delta
                    delta *= units


@dataclass(frozen=True)
class Units:
    """Units of the data, which take networks of standardised data back to them.

    Attributes
    ----------
    x_mean, width : ndarray of shape (n_features,)
        Means and standard deviations of the columns.
    level, scale : float
        Mean and standard deviation of y; 0 and 1 if it is not standardised.
    """

    x_mean: Array
    width: Array
    level: float = 0.0
    scale: float = 1.0

    def constrain(self, network: Network, theta: Array) -> Array:
        """Parameters ``(C, P)`` of the same networks for X and y in their own units.

        A log noise variance after the network's parameters becomes a variance.

        Raises
        ------
        ValueError
            If they are not finite.
        """
        values = theta.copy()
        with np.errstate(all="ignore"):
            coefs, intercepts = network.split(values)
            coefs[0] /= self.width[:, None]
            intercepts[0] -= self.x_mean @ coefs[0]
            coefs[-1] *= self.scale
            intercepts[-1] *= self.scale
            intercepts[-1] += self.level
            noise = values[:, network.n_params :]
            values[:, network.n_params :] = np.exp(noise) * self.scale**2
        if not np.isfinite(values).all():
            raise ValueError(
                "the networks overflow in the units of X and y (standard deviations of X from "
                f"{self.width.min():g} to {self.width.max():g}, of y {self.scale:g}); rescale "
                "them, as by StandardScaler."
            )
        return values

    def unconstrain(self, network: Network, values: Array) -> Array:
        """Parameters ``(C, P)`` of standardised data: the inverse of :meth:`constrain`."""
        theta = values.copy()
        coefs, intercepts = network.split(theta)
        intercepts[-1] -= self.level
        intercepts[-1] /= self.scale
        coefs[-1] /= self.scale
        intercepts[0] += self.x_mean @ coefs[0]
        coefs[0] *= self.width[:, None]
        noise = theta[:, network.n_params :]
        theta[:, network.n_params :] = np.log(noise / self.scale**2)
        return theta


class MLPPosterior(BasePosterior):
    """Posterior of a multilayer perceptron, for all chains at once.

    ``theta`` holds the parameters of the :class:`Network` and, last, ``gamma = log sigma^2`` if
    the noise is inferred. The prior scale of a weight is that of ``prior`` over the root of the
    number of inputs of its unit, so that a unit's input is of the same size however wide the layer
    below (Neal 1996, Section 2.1); the prior scale of a bias is that of ``prior``. In a network
    with hidden layers, the scales are multiplied by the activation's gain, 5/3 for tanh and
    sqrt(2) for relu. If the outputs are log odds, the scales of the first layer are multiplied by
    1/2 instead, and those of the outputs by 20: units are nearly linear over the data, and
    a probability may be near 0 or 1.

    Parameters
    ----------
    X : ndarray of shape (n, d)
        Features; the default scale of the prior suits standardised columns.
    y : ndarray of shape (n,)
        Observations.
    likelihood : Likelihood
        Distribution of y given the outputs of the network, which are its predictors.
    prior : CoefficientPrior
        Proper prior of the weights and biases, whose parameters are single numbers.
    noise_prior : NoisePrior or None
        Prior of the noise variance; needed if the likelihood infers the noise.
    hidden_layer_sizes : sequence of int, default=(50,)
        Number of units of each hidden layer; ``()`` is the generalised linear model.
    activation : {"tanh", "relu"}, default="tanh"
        Activation function of the hidden units.
    sample_weight : ndarray of shape (n,) or None
        Weight of each row: a weight of w counts as w rows.
    feature_names : sequence of str or None
        Names of the columns of X, for ``param_names``.
    units : Units or None
        Units in which the parameters are reported; None: as they are sampled.

    Raises
    ------
    ValueError
        If the prior is flat: many networks fit equally well, and the posterior would be improper.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayes_sgld.likelihoods import FixedNormalNoise
    >>> from skbayes_sgld.neural_network import MLPPosterior
    >>> from skbayes_sgld.priors import Normal
    >>> X = np.linspace(-1, 1, 20)[:, None]
    >>> posterior = MLPPosterior(X, X[:, 0] ** 2, FixedNormalNoise(0.1), Normal())
    >>> posterior.n_params
    151
    >>> posterior.grad(np.zeros((3, 151))).shape
    (3, 151)
    """

    facts = Facts(ensemble=True)

    def __init__(
        self,
        X: Array,
        y: Array,
        likelihood: Likelihood,
        prior: CoefficientPrior,
        noise_prior: NoisePrior | None = None,
        *,
        hidden_layer_sizes: Sequence[int] = (50,),
        activation: str = "tanh",
        sample_weight: Array | None = None,
        feature_names: Sequence[str] | None = None,
        units: Units | None = None,
    ) -> None:
        self.X, self.y, self.weight, self.units = X, y, sample_weight, units
        self._single: Array | None = None  # rows in single precision, if gradients take it
        self.n_samples = X.shape[0]
        self.likelihood, self.noise_prior = likelihood, noise_prior
        sizes = (X.shape[1], *hidden_layer_sizes, likelihood.n_predictors)
        self.network = Network(sizes, activation)
        self.n_params = self.network.n_params + likelihood.infers_noise
        self.param_names = self.network.names(feature_names)
        self.param_names += ["log_noise_variance"] * likelihood.infers_noise
        if not prior.proper:
            raise ValueError(
                f"prior={prior!r} is flat, and the posterior of a network would be improper; "
                "choose a proper one, such as prior='normal'."
            )
        if prior.get_params().get("covariance") is not None:
            raise ValueError(
                f"prior={prior!r} has a matrix of covariances, and a network has no columns for "
                "it; give a scale."
            )
        prior.check(1)
        root, W = np.sqrt(self.network.fan_in()), self.network.n_params
        prior = prior.for_data(1.0, 1.0)  # columns and target are standardised
        scale: Any = prior.get_params()["scale"]
        scale = scale * self._gain() / root
        self.prior = clone(prior).set_params(scale=scale)
        # scale of each parameter's prior, and sds of a random network's parameters: no unit
        # saturates (LeCun, Bottou, Orr & Mueller 1998, Section 4.6). Of a log noise variance: the
        # sd that the rows' expected information leaves it, and 1
        self.marginal_sd, self.unit = np.ones((2, self.n_params))
        self.marginal_sd[:W] = scale
        self.total_weight = float(len(y) if sample_weight is None else sample_weight.sum())
        self.marginal_sd[W:] = np.sqrt(2.0 / self.total_weight)
        self.unit[:W] = np.minimum(1.0 / root, scale)
        self.marginal_sd.flags.writeable = self.unit.flags.writeable = False

    def _gain(self) -> Array:
        """Factor on the prior's scale for each parameter of the network ``(P,)``."""
        gain = np.ones((1, self.network.n_params))
        if len(self.network.sizes) > 2:
            gain *= ACTIVATIONS[self.network.activation].gain
            if self.likelihood.reach > 1.0:
                # Log losses of five-fold cross-validation, tanh, 50 units: iris 0.111, wine 0.090
                # and 200 rows of which 15 % have the wrong label 0.551 with 5/3 and a reach of 5;
                # 0.087, 0.068 and 0.550 with 1/2 and 20; with 1 and 20 the last is 0.592
                for part in self.network.split(gain):
                    part[0][:], part[-1][:] = 0.5, self.likelihood.reach
        return gain[0]

    def start(self) -> Array:
        """Random network ``(P,)``, the same at every call."""
        return self.random_start(probe_generator().standard_normal((1, self.n_params)))[0]

    def random_start(self, normals: Array) -> Array:
        """Random networks ``(C, P)`` from standard normals; the noise variance is that of y."""
        theta = normals * self.unit
        if self.likelihood.infers_noise:
            theta[:, -1] = self.likelihood.start(self.y, self.weight, True)[-1]
        return theta

    # ---- reported parameters and predictions --------------------------------------------------

    @property
    def reported(self) -> Reported:
        """Reported parameters: those of networks for data in their own units, if known."""
        if self.units is None:
            return Reported(self.param_names)
        names = self.param_names
        if self.likelihood.infers_noise:
            names = [*names[:-1], "noise_variance"]
        to, back = self.units.constrain, self.units.unconstrain
        return Reported(names, partial(to, self.network), partial(back, self.network))

    def outputs(self, theta: Array) -> Array:
        """Outputs ``(C, S, rows, K)`` of networks ``theta (C, S, P)`` at some training rows."""
        n = self.n_samples
        rows = self.X[np.linspace(0, n - 1, min(50, n)).astype(int)]
        outputs = self.network.outputs(theta.reshape(-1, theta.shape[2]), rows).swapaxes(1, 2)
        return outputs.reshape(*theta.shape[:2], *outputs.shape[1:])

    # ---- likelihood ---------------------------------------------------------------------------

    def predict(self, theta: Array, X: Array) -> Array:
        """Local parameters ``(S, n_local, n)`` of the rows ``X (n, d)``."""
        return self._local(theta, self.network.outputs(theta, X))

    def _local(self, theta: Array, outputs: Array) -> Array:
        if not self.likelihood.infers_noise:
            return outputs
        C, K, B = outputs.shape
        u = np.empty((C, K + 1, B))
        u[:, :-1], u[:, -1] = outputs, theta[:, -1:]
        return u

    def _batches(
        self, idx: Array | None, single: Array | None = None
    ) -> Iterator[tuple[Array, Array, Array | float]]:
        """Rows, targets and weights: of the minibatch, or all, block by block."""
        size = max(1, _BLOCK // max(self.network.sizes))
        for first in range(0, self.n_samples, size) if idx is None else [0]:
            rows: Any = slice(first, first + size) if idx is None else idx
            inputs = with_ones(self.X[rows]) if single is None else single[rows]
            yield inputs, self.y[rows], 1.0 if self.weight is None else self.weight[rows]

    def log_likelihood(self, theta: Array, idx: Array | None = None) -> Array:
        """Weighted log likelihood of each row ``(C, B)``."""
        values = []
        for rows, y, weight in self._batches(idx):
            u = self._local(theta, self.network.forward(theta, rows)[-1])
            values.append(self.likelihood.log_density(u, y) * weight)
        return np.concatenate(values, axis=1)

    def grad_log_likelihood(self, theta: Array, idx: Array | None = None) -> Array:
        """Gradient of the log likelihood, summed over the rows ``(C, P)``."""
        grad = np.zeros_like(theta)
        at = theta if self._single is None else theta.astype(np.float32)
        for rows, y, weight in self._batches(idx, self._single):
            values = self.network.forward(at, rows)
            score = self.likelihood.score(self._local(theta, values[-1]), y)
            self._pull_back(at, values, score, weight, grad)
        return grad

    def _pull_back(
        self,
        theta: Array,
        values: list[Array],
        score: Array,
        weight: Array | float,
        grad: Array,
    ) -> None:
        """Add to ``grad`` the gradient in theta, given the rows' scores."""
        score = score * np.expand_dims(weight, -2) if np.ndim(weight) else score
        delta = score[:, : self.likelihood.n_predictors]
        self.network.backward(theta, values, delta.astype(theta.dtype, copy=False), grad)
        if self.likelihood.infers_noise:
            grad[:, -1] += score[:, -1].sum(axis=1)

    def rounded(self, density: bool = False) -> MLPPosterior:
        """Posterior whose gradient is computed in single precision, which is faster.

        With few rows the posterior itself: their products cost less than the calls.
        """
        if self.n_samples * max(self.network.sizes) < 2**14:
            return self
        other = copy(self)
        other._single = with_ones(self.X, np.float32)
        return other

    # ---- prior and posterior ------------------------------------------------------------------

    def log_prior(self, theta: Array) -> Array:
        """Log prior up to a constant ``(C,)``."""
        gamma = theta[:, -1] if self.likelihood.infers_noise else None
        value = self.prior.log_density(theta[:, None, : self.network.n_params], gamma)
        if gamma is None or self.noise_prior is None:
            return value
        return value + self.noise_prior.log_density(gamma)

    def grad_log_prior(self, theta: Array) -> Array:
        """Gradient of the log prior ``(C, P)``."""
        grad, W = np.empty_like(theta), self.network.n_params
        gamma = theta[:, -1] if self.likelihood.infers_noise else None
        slope, in_gamma = self.prior.grad(theta[:, None, :W], gamma)
        grad[:, :W] = slope[:, 0]
        if gamma is not None and self.noise_prior is not None:
            grad[:, -1] = self.noise_prior.grad(gamma)
            grad[:, -1] += 0.0 if in_gamma is None else in_gamma
        return grad

    def value_and_grad(self, theta: Array) -> tuple[Array, Array]:
        """Log posterior density ``(C,)`` and its gradient ``(C, P)``."""
        value, grad = self.log_prior(theta), self.grad_log_prior(theta)
        for rows, y, weight in self._batches(None):
            values = self.network.forward(theta, rows)
            log_density, score = self.likelihood.value_and_score(self._local(theta, values[-1]), y)
            value += (log_density * weight).sum(axis=1)
            self._pull_back(theta, values, score, weight, grad)
        return value, grad

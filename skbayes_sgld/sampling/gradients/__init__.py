"""Gradient estimators by name."""

from skbayes_sgld._components import Registry
from skbayes_sgld.sampling.base import Gradient
from skbayes_sgld.sampling.gradients.control_variate import ControlVariate
from skbayes_sgld.sampling.gradients.full import Full
from skbayes_sgld.sampling.gradients.minibatch import Minibatch
from skbayes_sgld.sampling.gradients.saga import SAGA
from skbayes_sgld.sampling.gradients.svrg import SVRG

GRADIENTS: Registry[Gradient] = Registry(
    Gradient,
    full=Full,
    minibatch=Minibatch,
    control_variate=ControlVariate,
    svrg=SVRG,
    saga=SAGA,
)

"""Parts of annexes in tests of the core: each is found where a test uses it, not at import."""

import inspect
from importlib import import_module

import skbayes_sgld


def of_annex(module, name):
    """A function or a class of an annex."""
    return getattr(import_module(f"skbayes_sgld.{module}"), name)


def later(name, **params):
    """Function that makes an estimator of an annex, by the name of its class."""
    return lambda: getattr(skbayes_sgld, name)(**params)


def made(model):
    """An estimator, or what a function without arguments returns."""
    return model() if inspect.isfunction(model) else model

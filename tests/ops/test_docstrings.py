"""Generated docstrings of elementwise ops have examples that run."""

import doctest
import importlib
import pkgutil

import pytest

import dualflow.ops
from dualflow.ops.record import REGISTRY

FUNCTIONS = {
    name: value
    for module in pkgutil.walk_packages(dualflow.ops.__path__, "dualflow.ops.")
    for name, value in vars(importlib.import_module(module.name)).items()
    if getattr(value, "op", None) is not None and value.op is REGISTRY.get(name)
}
WITHOUT_EXAMPLE = {"broadcast_like", "ndtr"}  # not public


@pytest.mark.parametrize("name", FUNCTIONS)
def test_an_elementwise_function_shows_what_it_takes_and_an_example_that_runs(name):
    text = FUNCTIONS[name].__doc__
    assert "Raises:" in text
    example = doctest.DocTestParser().get_doctest(text, {}, name, None, 0)
    assert example.examples or name in WITHOUT_EXAMPLE
    assert doctest.DocTestRunner().run(example).failed == 0


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_is_found_under_its_own_name_and_module(name):
    function = FUNCTIONS[name]
    assert getattr(importlib.import_module(function.__module__), function.__name__) is function

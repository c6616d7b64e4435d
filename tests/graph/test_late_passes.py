"""Passes whose modules are imported for the first graph that needs them."""

from __future__ import annotations

import inspect
import os
import re
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

import dualflow as df
from dualflow.graph.cost_model import CPU
from dualflow.graph.passes import late_passes
from dualflow.graph.passes.late_passes import LatePass

PASSES = {name: value for name, value in vars(late_passes).items() if isinstance(value, LatePass)}
OPTIONS = {"budget": 1 << 20, "costs": CPU}
ROW = df.TensorSpec([4])
SQUARE = df.TensorSpec([4, 4])

FUNCTIONS: dict[str, tuple[Callable[..., Any], df.TensorSpec]] = {
    "elementwise": (lambda x: df.tanh(x) * x, ROW),
    "product": (lambda x: df.matmul(x, x) + x, SQUARE),
    "slice of a product": (lambda x: df.matmul(x, x)[1:, :2], SQUARE),
    "product of integers": (lambda x: df.matmul(x, x), df.TensorSpec([4, 4], df.int32)),
    "complex product": (lambda x: df.matmul(x, x), df.TensorSpec([4, 4], df.complex64)),
    "complex": (lambda x: df.abs(df.complex(x, x)), ROW),
    "float16": (lambda x: x * x + x, df.TensorSpec([4], df.float16)),
    "scatter": (lambda x: df.tensor_scatter_nd_add(x, [[1]], [2.0]), ROW),
    "branch": (lambda x: df.cond(x[0] > 0, lambda: x, lambda: -x), ROW),
    "loop": (lambda x: df.while_loop(lambda y: y[0] < 9, lambda y: (y + 1,), (x,)), ROW),
    "sizes": (lambda x: df.reduce_mean(x) / df.cast(df.size(x), df.float32), df.TensorSpec([None])),
    "small operands": (lambda x: df.linalg.inv(x), df.TensorSpec([2, 2])),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_pass_that_is_not_needed_changes_nothing(name: str) -> None:
    function, spec = FUNCTIONS[name]
    graph = df.function(function).get_concrete_function(spec).graph
    for late in PASSES.values():
        if not late.is_needed(graph):
            transform = late.load()
            options = [OPTIONS[p] for p in inspect.signature(transform).parameters if p in OPTIONS]
            assert transform(graph, *options) is graph


def test_the_first_call_of_elementwise_ops_imports_none_of_them() -> None:
    modules = re.findall(r'imported\("([\w.]+)"\)', inspect.getsource(late_passes))
    assert modules
    program = f"""
import sys
import dualflow as df
f = df.function(lambda x: df.tanh(x) * x)
f(df.constant([1.0, 2.0]))
assert "{late_passes.__name__}" in sys.modules
assert not [name for name in {modules} if name in sys.modules]
"""
    environment = {**os.environ, "DUALFLOW_DISABLE": "cache"}
    subprocess.run([sys.executable, "-c", program], check=True, env=environment)

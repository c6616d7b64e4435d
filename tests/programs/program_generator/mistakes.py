"""Random wrong lines: public functions with arguments of all kinds, and frequent mistakes."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from functools import cache
from typing import Any

import dualflow as df

NAMESPACES = ("df", "df.math", "df.linalg")
FURTHER = ("df.nn", "df.image", "df.signal", "df.random", "df.strings", "df.sparse")
"""Namespaces whose errors are of kinds for users; not all of them name the function."""

VALUES = ("x", "y", "i", "flag", "None", "3", "-1", "'word'", "[x, y]", "[1, 2]", "1.5", "n", "x[x > 0.0]")
LEFT_OUT = (
    "print",
    "constant_initializer",
    "timestamp",
    "einsum",
    "broadcast_static_shape",
    "Assert",
    "numpy_function",
    "py_function",
)
"""Functions that write or call Python, and those whose arguments are no tensors."""
FORMS = (
    *("x + y", "x @ y", "x[{0}]", "x[{0}, {1}]", "x - {0}", "x * {0}", "x < {0}", "-flag", "float(x)"),
    *("df.cond(n > 1, lambda: x, lambda: {0})", "df.cond(x > 0.0, lambda: x, lambda: x)"),
    "df.while_loop(lambda k: k < n, lambda k: {0}, [df.constant(0)], maximum_iterations=3)",
    "df.while_loop(lambda k, z: k < n, lambda k, z: (k + 1, {0}), [df.constant(0), x])",
    *("df.map_fn(lambda z: {0}, x)", "df.scan(lambda s, z: {0}, x)", "df.foldl(lambda s, z: {0}, x, {1})"),
    *("df.autodiff.vmap(lambda z: {0})(x)", "df.autodiff.grad(lambda z: {0})(x)"),
    *("df.reshape(x, [x.shape[0], {0}])", "df.zeros([n, {0}])", "s0.assign({0})", "s0.assign_add({0})"),
    "df.switch_case(n, [lambda: x, lambda: {0}])",
)


@cache
def functions(namespaces: tuple[str, ...] = NAMESPACES) -> tuple[tuple[str, str, int], ...]:
    """Public functions: path, name (that of an alias differs), and the number of arguments needed."""
    return tuple(sorted(_functions(namespaces)))


def _functions(namespaces: tuple[str, ...]) -> Iterator[tuple[str, str, int]]:
    for path in namespaces:
        namespace: Any = df
        for part in path.split(".")[1:]:
            namespace = getattr(namespace, part)
        for name in dir(namespace):
            value = getattr(namespace, name)
            if name.startswith("_") or name in LEFT_OUT or inspect.isclass(value) or not callable(value):
                continue
            try:
                parameters = inspect.signature(value).parameters.values()
            except ValueError:
                continue
            needed = [
                p
                for p in parameters
                if p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
            ]
            if needed and value.__module__.startswith("dualflow.ops") and not path.startswith("df.summary"):
                yield f"{path}.{name}", value.__name__, len(needed)


def script(text: str, dynamic_sizes: bool, seed: int) -> str:
    """A script whose one function returns the value of an expression."""
    signature = ""
    if dynamic_sizes:
        specs = "df.TensorSpec([None, None]), df.TensorSpec([None]), df.TensorSpec([], df.int32)"
        signature = f"input_signature=[{specs}]"
    return f"""import numpy as np

import dualflow as df

s0 = df.Variable(np.zeros((2, 3), np.float32))
i = df.constant([0, 2, 1])
flag = df.constant([True, False])


def program(x, y, n):
    return {text}


run = program
state = [s0]
options = dict({signature})
x = np.random.default_rng({seed}).uniform(-2, 2, ({seed % 4}, 3)).astype("float32")
calls = [(x, np.ones({seed % 3}, "float32"), np.int32(2))]
"""

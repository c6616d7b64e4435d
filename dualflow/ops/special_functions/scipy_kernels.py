"""Ops for SciPy's special functions; one record has several of them, by its attribute ``function``.

SciPy's special functions take 60 ms to import, so the first of them that is computed does it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

from dualflow.core import dispatch
from dualflow.core.errors import DTypeError
from dualflow.core.locks import imported
from dualflow.core.records import NamedTuple
from dualflow.core.shape import broadcast
from dualflow.core.spec import TensorSpec
from dualflow.ops.batching_rules import LEADING
from dualflow.ops.op_kinds import Opaque
from dualflow.ops.record import Op, Promotion, register
from dualflow.ops.samples import Domain, Sample

OF_REALS: Final = """Args:
    x: real numbers of any shape; integers become float32.

Returns:
    A tensor with the shape and dtype of ``x``; float32 for integers.

Raises:
    DTypeError: ``x`` holds complex numbers or strings.
"""
"""The sections of the docstring of a function of one operand."""


class SpecialFunction(NamedTuple):
    """A function of real numbers that SciPy computes, its derivative, and its domains for tests.

    Attributes:
        compute: ``compute(special, *arrays)``, given SciPy's module.
        slope: ``slope(out, *inputs)``, the derivative by the last input, written in ops.
        domains: of the inputs.
        others: ``others(out, *inputs)`` for the inputs before the last, those that have a gradient.
    """

    compute: Callable[..., Any]
    slope: Callable[..., Any]
    domains: tuple[Domain, ...]
    others: tuple[Callable[..., Any], ...] = ()


def of_floats(function: str, *specs: TensorSpec) -> TensorSpec:
    """The spec of a function of real numbers, which broadcast.

    Raises:
        DTypeError: an input holds complex numbers.
    """
    dtype = specs[0].dtype
    if not dtype.is_floating:
        raise DTypeError(f"{function} takes real numbers, not {dtype.name}; convert the input with df.cast.")
    return TensorSpec.of(broadcast([s.shape for s in specs]), dtype)


def computed(compute: Callable[..., Any], *arrays: Any) -> Any:
    """``compute(special, *arrays)`` in the dtype of the arrays: float16 is computed in float32."""
    dtype = arrays[0].dtype
    if dtype.kind != "f":
        raise TypeError("takes floats")
    return np.asarray(compute(imported("scipy.special"), *arrays)).astype(dtype, copy=False)


def by_scipy(name: str, doc: str, functions: Mapping[str, SpecialFunction]) -> Op:
    """Register the op ``name`` for ``functions``, which share the number of inputs and the gradients."""
    example = next(iter(functions.values()))
    count = len(example.domains)

    def kernel(*arrays: Any, function: str) -> Any:
        return computed(functions[function].compute, *arrays)

    def by_last(g: Any, out: Any, *inputs: Any, function: str) -> Any:
        return g * functions[function].slope(out, *inputs)

    def by_other(i: int) -> Callable[..., Any]:
        return lambda g, out, *inputs, function: g * functions[function].others[i](out, *inputs)

    before: tuple[Any, ...] = tuple(map(by_other, range(len(example.others)))) or (None,) * (count - 1)
    return register(
        Op(
            name=name,
            doc=doc,
            infer=lambda *specs, function: of_floats(function, *specs),
            kernel=kernel,
            kind=Opaque("SciPy computes it"),
            batching_rule=LEADING,
            vjp=(*before, by_last),
            promotion=Promotion.FLOAT,
            samples=tuple(Sample(f.domains, {"function": key}) for key, f in functions.items()),
        )
    )


def apply(op: Op, function: str, *inputs: Any) -> Any:
    """The result of ``op`` for its function named ``function``."""
    return dispatch.current().apply(op, inputs, {"function": function})


def between(low: float, high: float, *shape: int) -> Domain:
    """A test domain: floats in ``[low, high]``, of a fixed shape."""
    return Domain(low, high, "f", shape or (5,))

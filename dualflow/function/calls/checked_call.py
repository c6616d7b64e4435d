"""The fast path of a compiled graph that the C fast call can't serve, such as one with host calls.

Tensors with the shapes and dtypes of the trace are passed to the executable without binding a signature.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from dualflow.core.spec import TensorSpec
from dualflow.eager.tensor import EagerTensor, wrap
from dualflow.function.calls.array_ownership import call_arrays
from dualflow.function.calls.call_form import REFUSED, CallForm, refuse
from dualflow.function.calls.execute import is_placed_on_device
from dualflow.graph.compiled import Compiled
from dualflow.graph.size_guards import NO_GUARDS, SizeGuards
from dualflow.sizes.symbolic_sizes import is_static


def checked_call(
    specs: Sequence[TensorSpec],
    form: CallForm | None,
    run: Callable[..., Any],
    guards: SizeGuards = NO_GUARDS,
) -> Callable[..., Any]:
    """The fast path that checks a call's values, and calls ``run`` with the graph's inputs.

    It returns REFUSED unless the inputs are tensors of these ``specs`` in row-major order. Axes
    of one symbolic size must have equal sizes, those of different ones different sizes, and guards must hold.
    It always returns REFUSED if a size is dynamic.
    """
    if not all(spec.shape.is_static for spec in specs):
        return refuse
    if not all(is_static(spec.shape) for spec in specs):
        run = _with_size_checks(specs, guards, run)
    argument_indices = range(len(specs)) if form is None else form.argument_indices
    fixed = [] if form is None else [(x.argument_index, x.value) for x in form.fixed]
    count = len(argument_indices) + len(fixed)
    expected = [
        (i, spec.dtype.dtype, tuple(spec.shape) if is_static(spec.shape) else None)
        for i, spec in zip(argument_indices, specs, strict=True)
    ]

    def call(*values: Any) -> Any:
        if len(values) != count:
            return REFUSED
        tensors = []
        for index, dtype, shape in expected:
            x = values[index]
            if type(x) is not EagerTensor:
                return REFUSED
            array = x._array
            if array.dtype is not dtype or not array.flags.c_contiguous:
                return REFUSED
            if array.shape != shape and shape is not None:
                return REFUSED
            tensors.append(x)
        for index, value in fixed:
            if values[index] is not value:
                return REFUSED
        return run(*tensors)

    return call


def _with_size_checks(
    specs: Sequence[TensorSpec], guards: SizeGuards, run: Callable[..., Any]
) -> Callable[..., Any]:
    """``run`` for tensors whose sizes agree with ``specs`` and ``guards``; returns REFUSED for others.

    Shapes that are those of the call before are not checked again.
    """
    ranks = [spec.rank for spec in specs]
    sizes = [(i, axis, size) for i, spec in enumerate(specs) for axis, size in enumerate(spec.shape)]
    static = [(i, axis, size) for i, axis, size in sizes if type(size) is int]
    symbolic = [(i, axis, size) for i, axis, size in sizes if type(size) is not int]
    pattern = _equality_pattern([size for _, _, size in symbolic])
    served: list[tuple[int, ...]] | None = None

    def call(*tensors: Any) -> Any:
        nonlocal served
        shapes = [x._array.shape for x in tensors]
        if shapes == served:
            return run(*tensors)
        if [len(shape) for shape in shapes] != ranks or any(
            shapes[i][axis] != size for i, axis, size in static
        ):
            return REFUSED
        if _equality_pattern([shapes[i][axis] for i, axis, _ in symbolic]) != pattern:
            return REFUSED
        if not guards.hold(tensors):
            return REFUSED
        served = shapes
        return run(*tensors)

    return call


def _equality_pattern(sizes: Sequence[Any]) -> list[int]:
    """For each size, the index of the first equal one."""
    first: dict[Any, int] = {}
    return [first.setdefault(size, i) for i, size in enumerate(sizes)]


def read_only_call(
    compiled: Compiled, captured: Sequence[Any], pack: Callable[[Sequence[Any]], Any]
) -> Callable[..., Any]:
    """A function that runs an executable without assignments on tensors in row-major order."""
    run = compiled.run

    def call(*tensors: Any) -> Any:
        if is_placed_on_device(captured):
            return REFUSED
        arrays = [x._array for x in tensors]
        if captured:
            arrays += call_arrays(captured)
        return pack([wrap(x) for x in run(arrays)])

    return call

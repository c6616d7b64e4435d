"""Computations that are deferred until all sizes are known."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextvars import ContextVar
from functools import partial
from typing import Any, Final

from dualflow.core import dispatch
from dualflow.core.records import dataclass
from dualflow.core.spec import TensorSpec
from dualflow.ops.attribute_values import written_as
from dualflow.ops.creation import convert_to_tensor
from dualflow.ops.op_kinds import SizeReader
from dualflow.ops.static import static_value

Compute = Callable[..., Any]
Result = Callable[..., Any]
SIZE_READER: Final[ContextVar[SizeReader | None]] = ContextVar("dualflow_size_reader", default=None)
"""The reader of sizes while a deferred computation runs with symbolic sizes."""


def once_sized(
    compute: Compute, result: Result, *inputs: Any, integers: Sequence[Any] = (), generator: Any = None
) -> Any:
    """``compute(*inputs, *integers)``, deferred to the calls of the trace if a size is unknown.

    Args:
        compute: a pure function of tensors, made of ops, that returns one tensor or a tuple of them.
        result: returns the spec of the result (a tuple of specs for a tuple) from the specs of all arguments;
            sizes may be None.
        *inputs: the tensors that it takes.
        integers: tensors of integers, of one axis or none, whose values it takes as a tuple or an int.
        generator: the generator of random numbers, if it takes one, before the tensors.
    """
    engine = dispatch.current()
    tensors = tuple([convert_to_tensor(x) for x in inputs])
    numbers = tuple([convert_to_tensor(x) for x in integers])
    values = [static_value(x) for x in numbers]
    is_known = all(x.shape.is_static for x in tensors) and not any(x is None for x in values)
    if engine.deferring_op is None or is_known:
        return drawing_from(generator, compute)(
            *tensors, *[None if x is None else as_ints(x) for x in values]
        )
    attrs = {"compute": compute, "result": result, "integers": len(numbers)}
    op = engine.deferring_op
    if generator is not None:
        op, attrs = engine.deferring_draw_op, {**attrs, "generator": generator}
    results = engine.apply(op, (*tensors, *numbers), attrs)
    return results if isinstance(result(*[x.spec for x in (*tensors, *numbers)]), tuple) else results[0]


def drawing_from(generator: Any, compute: Compute) -> Compute:
    """``compute`` with ``generator`` as its first argument; unchanged if that is None."""
    return compute if generator is None else partial(compute, generator)


def as_size(x: Any) -> int:
    """The integer scalar ``x`` as a symbolic size, which the program computes.

    For deferred computations with symbolic sizes, of which a size is a function that sizes don't have, such
    as a rounded product.
    """
    read = SIZE_READER.get()
    assert read is not None, "a size of the deferred computation is symbolic"
    return read.computed_size(x)


def as_ints(array: Any) -> Any:
    """An array of integers as an int, or as nested lists of ints of which the outermost is a tuple."""
    values = array.tolist()
    return tuple(values) if isinstance(values, list) else values


@written_as("fixed_spec", "spec")
@dataclass(frozen=True, slots=True)
class FixedSpec:
    """A shape rule that returns a fixed spec, in which sizes may be dynamic."""

    spec: TensorSpec

    def __call__(self, *specs: TensorSpec) -> TensorSpec:
        return self.spec


def like(index: int = 0) -> Result:
    """A function of the input specs that returns the spec of input ``index``."""
    return lambda *specs: TensorSpec.of(specs[index].shape, specs[index].dtype)

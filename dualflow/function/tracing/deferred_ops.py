"""The op for a computation that needs sizes as numbers, in a trace with dynamic sizes.

When the trace is specialised for the shapes of a call, the op is replaced by its computation. If sizes depend
on data, its kernel runs the computation on eager tensors.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dualflow.core import dispatch
from dualflow.core.errors import DTypeError, DualflowError
from dualflow.core.shape import Shape
from dualflow.core.spec import TensorSpec
from dualflow.eager.engine import EAGER
from dualflow.eager.tape import GradientTape
from dualflow.eager.tensor import wrap
from dualflow.ops.attribute_values import in_text
from dualflow.ops.complex_numbers import conj
from dualflow.ops.conversion import identity
from dualflow.ops.late_sizes import SIZE_READER, as_ints, drawing_from
from dualflow.ops.op_kinds import Decompose, Opaque, SizeReader
from dualflow.ops.record import Effect, Op
from dualflow.sizes.symbolic_sizes import UndecidedSize, is_static, size_variables

if TYPE_CHECKING:
    from dualflow.ops.random_numbers.draws import DynamicDraw

Array = np.ndarray[Any, Any]
Compute = Callable[..., Any]


def _infer(
    *specs: TensorSpec, compute: Compute, result: Compute, integers: int, generator: Any = None
) -> Any:
    if not callable(compute) or not callable(result):
        raise DTypeError(f"compute and result are functions, not {compute!r} and {result!r}")
    results = result(*specs)
    return results if isinstance(results, tuple) else (results,)


def _kernel(
    *arrays: Array, compute: Compute, result: Compute, integers: int, generator: Any = None
) -> tuple[Array, ...]:
    count = len(arrays) - integers
    values = [as_ints(x) for x in arrays[count:]]
    compute = drawing_from(generator, compute)
    with dispatch.using(EAGER):
        return tuple(np.asarray(x) for x in _as_tuple(compute(*map(wrap, arrays[:count]), *values)))


def _resolved(read: SizeReader, *inputs: Any, compute: Compute, result: Compute, integers: int) -> Any:
    count = len(inputs) - integers
    return _computed(read, compute, inputs[:count], [_read(read, x) for x in inputs[count:]])


def _computed(read: SizeReader, compute: Compute, inputs: Sequence[Any], values: Sequence[Any]) -> Any:
    """The results of ``compute``, whose code may compare sizes.

    Raises:
        UndecidedSize: it needs a size as a number.
    """
    if all(is_static(x.shape) for x in inputs) and not size_variables(values):
        return _as_tuple(compute(*inputs, *values))
    token = SIZE_READER.set(read)
    try:
        with read.deciding():
            return _as_tuple(compute(*inputs, *values))
    except (DualflowError, TypeError, ValueError, AssertionError, ArithmeticError, IndexError) as error:
        raise UndecidedSize(f"a computation needs sizes as numbers: {error}") from None
    finally:
        SIZE_READER.reset(token)


def _resolved_draw(
    read: SizeReader, *inputs: Any, compute: DynamicDraw, result: Compute, integers: int, generator: Any
) -> Any:
    """The draw, by the algorithm for its number of elements; at run time if that depends on data."""
    sizes = tuple([read(x, 0)[0] for x in inputs])
    try:
        return _computed(read, drawing_from(generator, compute), (), sizes)
    except UndecidedSize:
        attrs = {"shape": sizes, "draw": compute, "generator": generator}
        return (dispatch.current().apply(DRAW_OF_ANY_SIZE, (), attrs),)


def _draw(shape: tuple[int, ...], draw: DynamicDraw, generator: Any) -> Any:
    with dispatch.using(EAGER):
        return np.asarray(draw(generator, *shape))


def _read(read: SizeReader, x: Any) -> Any:
    return as_ints(np.array(read(x), object).reshape(x.shape))


def _as_tuple(results: Any) -> tuple[Any, ...]:
    return results if isinstance(results, tuple) else (results,)


def _joint_vjp(
    needed: Sequence[bool],
    g: Any,
    out: Any,
    *inputs: Any,
    compute: Compute,
    result: Compute,
    integers: int,
) -> Sequence[Any]:
    """The cotangents of the inputs, by another deferred computation."""
    differentiable = [i for i, x in enumerate(inputs) if needed[i] and x.dtype.is_inexact]
    with_cotangent = [i for i, x in enumerate(_as_tuple(g)) if x is not None]
    flows: list[Any] = [None] * len(inputs)
    if not differentiable or not with_cotangent:
        return flows

    def backward(*tensors: Any) -> Any:
        cotangents, operands = tensors[: len(with_cotangent)], list(tensors[len(with_cotangent) :])
        for i in differentiable:  # if one tensor is several operands, each has its own cotangent
            operands[i] = identity(operands[i])
        sources = [operands[i] for i in differentiable]
        with GradientTape() as tape:
            tape.watch(sources)
            results = _as_tuple(compute(*operands))
        targets = [results[i] for i in with_cotangent]
        weights = [conj(c) for c in cotangents]
        flows = tape.gradient(targets, sources, output_gradients=weights, unconnected_gradients="zero")
        return tuple([conj(flow) for flow in flows])

    def specs_of(*specs: TensorSpec) -> tuple[TensorSpec, ...]:
        return tuple(
            [
                TensorSpec.of(specs[len(with_cotangent) + i].shape, specs[len(with_cotangent) + i].dtype)
                for i in differentiable
            ]
        )

    attrs = {"compute": backward, "result": specs_of, "integers": integers}
    cotangents = [_as_tuple(g)[i] for i in with_cotangent]
    results = dispatch.current().apply(LATE_SIZES, (*cotangents, *inputs), attrs)
    for i, flow in zip(differentiable, results, strict=True):
        flows[i] = flow
    return flows


LATE_SIZES: Final = in_text(
    Op(
        name="late_sizes",
        doc="""Computes ``compute(*inputs)``; ``result(*input_specs)`` returns the specs of the results.

        The last ``integers`` inputs are passed as Python integers.
        """,
        infer=_infer,
        kernel=_kernel,
        kind=Decompose(_resolved),
        joint_vjp=_joint_vjp,
        outputs=None,
    )
)


@functools.cache
def deferred_op(name: str | None, *, checked: bool) -> Op:
    """The op :data:`LATE_SIZES` with the name of a function, for graphs and errors.

    Args:
        name: the name of the function; None for a gradient rule.
        checked: whether sizes of results were inferred from examples. Such a call is never dead code: it
            checks these sizes at run time.
    """
    return Op(
        name=name or LATE_SIZES.name,
        doc=LATE_SIZES.doc,
        infer=_infer,
        kernel=_kernel,
        kind=LATE_SIZES.kind,
        joint_vjp=_joint_vjp,
        outputs=None,
        effect=Effect.CHECK if checked else None,
    )


LATE_DRAW: Final = in_text(
    Op(
        name="late_draw",
        doc="""Like "late_sizes", for a computation that draws from ``generator``.""",
        infer=_infer,
        kernel=_kernel,
        kind=Decompose(_resolved_draw),
        outputs=None,
        effect=Effect.RANDOM,
    )
)
DRAW_OF_ANY_SIZE: Final = Op(
    name="draw_of_any_size",
    doc="""The numbers of ``draw``, whose algorithm depends on their number.""",
    infer=lambda shape, draw, generator: TensorSpec.of(Shape(shape), draw.dtype),
    kernel=_draw,
    kind=Opaque("random numbers come from NumPy's generators"),
    effect=Effect.RANDOM,
)

"""Deferred calls: calls of functions that need sizes as numbers, in a trace with dynamic sizes.

If such a call fails, the called function is traced separately with two sets of numbers for the dynamic sizes,
and then with further numbers near its constants. The results have the specs of the call's results, in which
each size that differs between the traces is dynamic. The call becomes a node of
:func:`~dualflow.function.tracing.deferred_ops.deferred_op`, which runs it when the sizes are known.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from dualflow.core import dispatch
from dualflow.core.dispatch import TENSORS, AbstractComposite, AbstractTensor
from dualflow.core.dtypes import DType, int32, int64
from dualflow.core.errors import (
    DTypeError,
    DualflowError,
    InaccessibleTensorError,
    InternalError,
    InvalidArgumentError,
    OperatorNotAllowedInGraphError,
)
from dualflow.core.records import NamedTuple
from dualflow.core.shape import UNKNOWN_RANK, Shape
from dualflow.core.spec import TensorSpec
from dualflow.core.tracebacks import op_entry, prefix_message, public_name
from dualflow.core.tree import Structure, flatten, unflatten
from dualflow.function.tracing.deferred_ops import deferred_op
from dualflow.function.tracing.size_probes import (
    PAIRS,
    SizeProbe,
    depends_on_data,
    upstream_constants,
    varied_probes,
)
from dualflow.function.tracing.tracer import Tracer, tracing
from dualflow.ops.creation import convert_to_tensor
from dualflow.ops.op_kinds import Literal
from dualflow.ops.static import static_value
from dualflow.sizes.symbolic_sizes import is_static, size_variables

_SIZE_ERRORS: Final = (InvalidArgumentError, DTypeError, TypeError, AssertionError)
_OTHER_ERRORS: Final = (OperatorNotAllowedInGraphError, InaccessibleTensorError, InternalError)
_MAX_INTEGERS: Final = 64
"""The number of elements of the largest integer tensor that a deferred call passes as Python integers."""


class DeferredCall(NamedTuple):
    """A call whose tensors are separated from its other arguments.

    Attributes:
        function: the called function.
        args: its positional arguments, with an :class:`_Operand` for each tensor.
        kwargs: its keyword arguments, likewise.
        integers: the dtypes of the tensors whose values are passed as Python integers, by number.
    """

    function: Callable[..., Any]
    args: Any
    kwargs: Any
    integers: Mapping[int, DType] = MappingProxyType({})

    def __call__(self, operands: Sequence[Any]) -> Any:
        """Call the function with ``operands`` for its tensors.

        Python integers become constants, and symbolic sizes stay as they are.
        """
        engine = dispatch.current()

        def argument(leaf: Any) -> Any:
            if isinstance(leaf, _Operand):
                operand, dtype = operands[leaf.number], self.integers.get(leaf.number)
                if dtype is None or size_variables(operand):
                    return operand
                return engine.constant(np.array(operand, dtype.dtype))
            return engine.constant(leaf.array) if isinstance(leaf, _Constant) else leaf

        return self.function(*_map_leaves(self.args, argument), **_map_leaves(self.kwargs, argument))


class _Operand(NamedTuple):
    """An argument that is a tensor, by its number."""

    number: int


class _Constant(NamedTuple):
    """An argument that is a tensor with a static value."""

    array: Any


class _Results(NamedTuple):
    """The results of a call: a structure of tensors, with None where ``present`` is false."""

    structure: Structure
    present: tuple[bool, ...]
    specs: tuple[TensorSpec, ...]


def defer(
    function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any], error: Exception
) -> Any:
    """The symbolic results of a failed call, which is deferred until sizes are known.

    None if that is impossible. A call can't be deferred if no size is dynamic, a Python function is among the
    arguments, or the function has an effect, or fails with numbers for the dynamic sizes too.
    """
    if not isinstance(error, _SIZE_ERRORS) or isinstance(error, _OTHER_ERRORS):
        return None
    tensors: list[Any] = []

    def separate(leaf: Any) -> Any:
        if not isinstance(leaf, TENSORS):
            return leaf
        tensor = convert_to_tensor(leaf)
        static = static_value(tensor)
        if static is not None and (not tensor.dtype.is_inexact or _is_literal(tensor)):
            return _Constant(static)
        tensors.append(tensor)
        return _Operand(len(tensors) - 1)

    arguments = (tuple(args), dict(kwargs))
    leaves = list(_leaves(arguments))
    if not any(isinstance(x, AbstractTensor) for x in leaves) or any(map(_may_hide_tensors, leaves)):
        return None
    call = DeferredCall(function, *_map_leaves(arguments, separate))
    if any(x.shape is UNKNOWN_RANK for x in tensors):
        return dispatch.current().postponed(op_entry(function), args, kwargs)
    symbolic = {i: x.dtype for i, x in enumerate(tensors) if _may_be_sizes(x)}
    has_dynamic_sizes = not all(x.shape.is_static for x in tensors)
    for integers in (
        [{}, symbolic] if has_dynamic_sizes and symbolic else [{}] if has_dynamic_sizes else [symbolic]
    ):
        if integers or has_dynamic_sizes:
            results = _infer_results(call._replace(integers=integers), tensors)
            if results is not None:
                return _deferred_node(call._replace(integers=integers), tensors, results)
    if any(x.shape == (None,) and x.dtype in (int32, int64) for x in tensors):  # sizes of an unknown number
        return dispatch.current().postponed(op_entry(function), args, kwargs)
    return None


def _leaves(value: Any) -> Iterator[Any]:
    if type(value) in (list, tuple):
        for part in value:
            yield from _leaves(part)
    elif type(value) is dict:
        yield from _leaves(list(value.values()))
    else:
        yield value


def _map_leaves(value: Any, change: Callable[[Any], Any]) -> Any:
    if type(value) in (list, tuple):
        return type(value)(_map_leaves(part, change) for part in value)
    if type(value) is dict:
        return {key: _map_leaves(part, change) for key, part in value.items()}
    return change(value)


def _may_hide_tensors(leaf: Any) -> bool:
    """Whether a leaf may contain tensors of this trace that :func:`defer` can't find in it."""
    return isinstance(leaf, AbstractComposite) or (
        callable(leaf) and not isinstance(leaf, (type, np.generic))
    )


def _is_literal(x: Any) -> bool:
    """Whether ``x`` is a constant, to which no gradient flows."""
    node = x._value.node
    return node is not None and isinstance(node.op.kind, Literal)


def _may_be_sizes(x: Any) -> bool:
    """Whether ``x`` is a small integer tensor, whose elements may be sizes."""
    few = len(x.shape) <= 2 and is_static(x.shape) and math.prod(x.shape) <= _MAX_INTEGERS
    return few and x.dtype in (int32, int64)


def _infer_results(call: DeferredCall, tensors: Sequence[Any]) -> _Results | None:
    """The results of a call, inferred from traces with pairs of trial sizes; None if no pair traces alike."""
    constants = set(_constants(call, tensors))
    largest = 2 * max(constants, default=0)
    totals = set(_list_sums((call.args, call.kwargs)))
    for pair in (*PAIRS, (largest, 2 * largest)) if largest > 0 else PAIRS:
        for pinned in _pinned(tensors, totals):
            first, second = [
                _trace_probe(call, tensors, SizeProbe((number,), data), pinned)
                for data, number in enumerate(pair, start=1)
            ]
            if first is None or second is None:
                continue
            if _differ_in_sizes_only(first, second, pinned):
                if _rank_depends_on(pinned, call, tensors, first):
                    return None
                if any(depends_on_data(tensors[i]._value) for i in call.integers):
                    return _merge_probes(first, second, None)
                results = _merge_probes(first, second, set(pinned.values()))
                return _with_dynamic_sizes(results, call, tensors, constants, pinned)
            if not pinned:  # the call requires no size, which would only hide that ranks depend on sizes
                return None
    return None


def _rank_depends_on(
    pinned: Mapping[tuple[int, int], int], call: DeferredCall, tensors: Sequence[Any], results: _Results
) -> bool:
    """Whether the call runs with another size than a pinned one, and returns results of other ranks."""
    for axis, size in pinned.items():
        for other in (size - 1, size + 1):
            others = _trace_probe(call, tensors, SizeProbe((PAIRS[0][0],), 1), {axis: other})
            if others is not None and not _differ_in_sizes_only(results, others, {}):
                return True
    return False


def _constants(call: DeferredCall, tensors: Sequence[Any]) -> Iterator[int]:
    """The integers that the function may compare dynamic sizes with: static sizes, and integer arguments."""
    for leaf in _leaves((call.args, call.kwargs)):
        if type(leaf) is int:
            yield leaf
        elif isinstance(leaf, _Constant) and leaf.array.dtype.kind in "iu":
            yield from leaf.array.reshape(-1)[:_MAX_INTEGERS].tolist()
    for x in tensors:
        yield from [n for n in x.shape if n is not None]
    for i in call.integers:
        yield from upstream_constants(tensors[i]._value)


def _with_dynamic_sizes(
    results: _Results,
    call: DeferredCall,
    tensors: Sequence[Any],
    constants: set[int],
    pinned: Mapping[tuple[int, int], int],
) -> _Results:
    """``results`` with each size dynamic that depends on sizes of the call.

    Two numbers don't distinguish ``minimum(n, 3)`` from 3.
    """
    for probe in varied_probes(constants):
        if not _has_static_sizes(results):
            break
        others = _trace_probe(call, tensors, probe, pinned)
        if others is not None and _differ_in_sizes_only(results, others, pinned):
            results = _merge_probes(results, others, set())
    return results


def _has_static_sizes(results: _Results) -> bool:
    """Whether some size of a result is a number."""
    return any(n is not None for spec in results.specs for n in spec.shape)


def _differ_in_sizes_only(a: _Results, b: _Results, pinned: Mapping[tuple[int, int], int]) -> bool:
    """Whether two results differ in sizes only, and the number of tensors is none of ``pinned`` sizes."""
    kinds = [[(len(x.shape), x.dtype) for x in results.specs] for results in (a, b)]
    counted = len(a.specs) > 1 and len(a.specs) in pinned.values()
    return a[:2] == b[:2] and kinds[0] == kinds[1] and not counted


def _list_sums(arguments: Any) -> Iterator[int]:
    """The sum of each list of integers among the arguments: ``split`` requires an axis of that size."""
    if type(arguments) is dict:
        arguments = list(arguments.values())
    if type(arguments) in (list, tuple):
        if arguments and all(type(part) is int and part >= 0 for part in arguments):
            yield sum(arguments)
        for part in arguments:
            yield from _list_sums(part)


def _pinned(tensors: Sequence[Any], totals: set[int]) -> Iterator[dict[tuple[int, int], int]]:
    """Assignments of sizes to dynamic axes to try: none, then one static size or total for one axis.

    The call may require that a dynamic size is equal to such a size.
    """
    axes = [(i, axis) for i, x in enumerate(tensors) for axis, n in enumerate(x.shape) if n is None]
    sizes = sorted(totals.union(n for x in tensors for n in x.shape if n is not None))
    yield {}
    if len(axes) * len(sizes) <= _MAX_INTEGERS:
        for axis in axes:
            for size in sizes:
                yield {axis: size}


def _trace_probe(
    call: DeferredCall, tensors: Sequence[Any], probe: SizeProbe, pinned: Mapping[tuple[int, int], int]
) -> _Results | None:
    """The results of a call for the sizes of ``probe``; None if it fails, or has an effect."""
    tracer = Tracer("sizes")
    try:
        with tracing(tracer):
            operands = [
                probe.integers(x._value, x._tracer.cotangents)
                if i in call.integers
                else tracer.argument(TensorSpec.of(_shape(x, i, probe, pinned), x.dtype))
                for i, x in enumerate(tensors)
            ]
            present, structure, results = _flattened(call(operands))
    except (DualflowError, TypeError, ValueError, AssertionError, ArithmeticError, IndexError):
        return None
    if any(node.effect is not None for node in tracer.builder.nodes) or tracer.updates():
        return None
    return _Results(structure, present, tuple([TensorSpec.of(x.shape, x.dtype) for x in results]))


def _flattened(results: Any) -> tuple[tuple[bool, ...], Structure, tuple[Any, ...]]:
    """The results of a call, flattened: which leaves are tensors (not None), the structure, the tensors."""
    leaves, structure = flatten(results)
    present = tuple([x is not None for x in leaves])
    tensors = tuple([x for x in leaves if x is not None])
    if not all(isinstance(x, AbstractTensor) for x in tensors):
        raise DTypeError("a deferred call returns tensors")
    return present, structure, tensors


def _shape(x: Any, i: int, probe: SizeProbe, pinned: Mapping[tuple[int, int], int]) -> Shape:
    """The shape of tensor number ``i`` for the sizes of ``probe``."""
    shape = probe.shape(x._value, x._tracer.cotangents)
    return Shape([pinned.get((i, axis), n) for axis, n in enumerate(shape)])


def _merge_probes(first: _Results, second: _Results, pinned: set[int] | None) -> _Results:
    """The results of two probes as one: sizes that differ, or are equal to a pinned size, are dynamic.

    All sizes are dynamic if ``pinned`` is None, since the probes used arbitrary integers.
    """
    specs = []
    for a, b in zip(first.specs, second.specs, strict=True):
        pairs = zip(a.shape, b.shape, strict=True)
        shape = [n if pinned is not None and n == m and n not in pinned else None for n, m in pairs]
        specs.append(TensorSpec.of(Shape(shape), a.dtype))
    return _Results(first.structure, first.present, tuple(specs))


def _deferred_node(call: DeferredCall, tensors: Sequence[Any], results: _Results) -> Any:
    """The symbolic results of a node that runs ``call`` when sizes are known."""
    order = [i for i in range(len(tensors)) if i not in call.integers] + list(call.integers)

    def compute(*values: Any) -> tuple[Any, ...]:
        by_index = dict(zip(order, values, strict=True))
        try:
            present, structure, tensors = _flattened(call([by_index[i] for i in range(len(order))]))
        except DualflowError as error:
            prefix_message(error, call.function)
            raise
        _check_results(call, _Results(structure, present, tuple([x.spec for x in tensors])), results)
        return tensors

    attrs = {"compute": compute, "result": lambda *specs: results.specs, "integers": len(call.integers)}
    op = deferred_op(public_name(call.function), checked=_has_static_sizes(results))
    outputs = iter(dispatch.current().apply(op, tuple([tensors[i] for i in order]), attrs))
    return unflatten(
        results.structure, [next(outputs) if is_tensor else None for is_tensor in results.present]
    )


def _check_results(call: DeferredCall, actual: _Results, inferred: _Results) -> None:
    """Raise an error if the results of a run do not fit those that were inferred from examples."""
    if actual[:2] != inferred[:2]:
        raise InternalError(f"{call.function} returned another structure for the sizes of a call")
    for spec, expected in zip(actual.specs, inferred.specs, strict=True):
        if not expected.is_compatible_with(spec):
            raise InvalidArgumentError(
                f"{call.function.__name__} was traced with dynamic sizes for results of {expected}; one is "
                f"{spec}; give known shapes."
            )

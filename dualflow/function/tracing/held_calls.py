"""Calls of ops that need sizes as numbers, in a trace that leaves these open: held until the sizes are known.

Where such a call fails, the function is traced aside for numbers in the place of the open sizes, twice. What
it returns there says what the call returns: sizes that differ between both are open. The call becomes a
:data:`~dualflow.function.tracing.late_sizes.LATE` node.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, NamedTuple

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
from dualflow.core.shape import UNKNOWN_RANK, Shape
from dualflow.core.spec import TensorSpec
from dualflow.core.tracebacks import named_error
from dualflow.core.tree import Structure, flatten, unflatten
from dualflow.function.tracing.late_sizes import LATE
from dualflow.function.tracing.tracer import Tracer, tracing
from dualflow.graph.interpret import run_node
from dualflow.graph.ir import Node, Value
from dualflow.ops.creation import convert_to_tensor
from dualflow.ops.forms import Literal
from dualflow.ops.late_sizes import as_ints
from dualflow.ops.measuring import SHAPE
from dualflow.ops.static import known_value

_NUMBERS: Final = ((48, 96), (840, 1680), (6, 12), (3, 4))
"""Pairs of numbers that stand for open sizes. They have many divisors, as some ops divide sizes."""
_OF_SIZES: Final = (InvalidArgumentError, DTypeError, TypeError, AssertionError)
_NOT_OF_SIZES: Final = (OperatorNotAllowedInGraphError, InaccessibleTensorError, InternalError)
_MOST_INTEGERS: Final = 64
"""The largest tensor of integers whose values a held call takes as Python's."""


class HeldCall(NamedTuple):
    """A call whose tensors are taken out of its arguments.

    Attributes:
        function: what is called.
        args, kwargs: its arguments, with a :class:`_Operand` for each tensor.
        integers: the places and dtypes of the tensors whose values are passed as Python's integers.
    """

    function: Callable[..., Any]
    args: Any
    kwargs: Any
    integers: Mapping[int, DType] = MappingProxyType({})

    def __call__(self, operands: Sequence[Any]) -> Any:
        """Call the function with tensors in their places: constants of their dtypes for Python's integers."""
        engine = dispatch.current()

        def placed(leaf: Any) -> Any:
            if isinstance(leaf, _Operand):
                operand, dtype = operands[leaf.number], self.integers.get(leaf.number)
                return operand if dtype is None else engine.constant(np.array(operand, dtype.dtype))
            return engine.constant(leaf.array) if isinstance(leaf, _Constant) else leaf

        return self.function(*_mapped(self.args, placed), **_mapped(self.kwargs, placed))


class _Operand(NamedTuple):
    number: int


class _Constant(NamedTuple):
    array: Any


class _Results(NamedTuple):
    """What a call returns: a structure of tensors, and of None where ``present`` is false."""

    structure: Structure
    present: tuple[bool, ...]
    specs: tuple[TensorSpec, ...]


def hold(
    function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any], error: Exception
) -> Any:
    """The results of a call whose sizes a later recording of the trace knows; None where it can't be held.

    That is where no size is open, where Python's functions are among the arguments, where the function has
    an effect, or fails for numbers too.
    """
    if not isinstance(error, _OF_SIZES) or isinstance(error, _NOT_OF_SIZES):
        return None
    tensors: list[Any] = []

    def taken(leaf: Any) -> Any:
        if not isinstance(leaf, TENSORS):
            return leaf
        tensor = convert_to_tensor(leaf)
        value = known_value(tensor)
        if value is not None and (not tensor.dtype.is_inexact or _is_literal(tensor)):
            return _Constant(value)
        tensors.append(tensor)
        return _Operand(len(tensors) - 1)

    arguments = (tuple(args), dict(kwargs))
    leaves = list(_leaves(arguments))
    if not any(isinstance(x, AbstractTensor) for x in leaves) or any(map(_is_foreign, leaves)):
        return None
    call = HeldCall(function, *_mapped(arguments, taken))
    if any(x.shape is UNKNOWN_RANK for x in tensors):
        return None
    symbolic = {i: x.dtype for i, x in enumerate(tensors) if _may_be_sizes(x)}
    is_open = not all(x.shape.is_static for x in tensors)
    for integers in [{}, symbolic] if is_open and symbolic else [{}] if is_open else [symbolic]:
        if integers or is_open:
            results = _results(call._replace(integers=integers), tensors)
            if results is not None:
                return _held(call._replace(integers=integers), tensors, results)
    return None


def _leaves(value: Any) -> Iterator[Any]:
    if type(value) in (list, tuple):
        for part in value:
            yield from _leaves(part)
    elif type(value) is dict:
        yield from _leaves(list(value.values()))
    else:
        yield value


def _mapped(value: Any, change: Callable[[Any], Any]) -> Any:
    if type(value) in (list, tuple):
        return type(value)(_mapped(part, change) for part in value)
    if type(value) is dict:
        return {key: _mapped(part, change) for key, part in value.items()}
    return change(value)


def _is_foreign(leaf: Any) -> bool:
    """Whether a leaf may hold tensors of this trace where they aren't found."""
    return isinstance(leaf, AbstractComposite) or (
        callable(leaf) and not isinstance(leaf, (type, np.generic))
    )


def _is_literal(x: Any) -> bool:
    """Whether no gradient can flow to ``x``."""
    node = x._value.node
    return node is not None and isinstance(node.op.form, Literal)


def _may_be_sizes(x: Any) -> bool:
    few = len(x.shape) <= 2 and x.shape.is_static and _count(x) <= _MOST_INTEGERS
    return few and x.dtype in (int32, int64)


def _count(x: Any) -> int:
    return int(np.prod(x.shape, dtype=np.int64))


def _results(call: HeldCall, tensors: Sequence[Any]) -> _Results | None:
    """What a call returns; None where it fails for all numbers, or is no pure function of tensors."""
    for pair in _NUMBERS:
        for pinned in _pinned(tensors):
            first, second = [
                _traced(call, tensors, _Probe(number, data), pinned)
                for data, number in enumerate(pair, start=1)
            ]
            if first is not None and second is not None and _are_alike(first, second, pinned):
                guessed = any(_depends_on_data(tensors[i]._value) for i in call.integers)
                return _merged(first, second, None if guessed else set(pinned.values()))
    return None


def _are_alike(a: _Results, b: _Results, pinned: Mapping[tuple[int, int], int]) -> bool:
    """Whether results differ in sizes alone; as many as a pinned size come of it, and may be more."""
    kinds = [[(len(x.shape), x.dtype) for x in results.specs] for results in (a, b)]
    counted = len(a.specs) > 1 and len(a.specs) in pinned.values()
    return a[:2] == b[:2] and kinds[0] == kinds[1] and not counted


class _Probe(NamedTuple):
    """Numbers for what a trace leaves open.

    Attributes:
        number: for open sizes.
        data: for integers that decide sizes, and are computed from data.
    """

    number: int
    data: int


def _depends_on_data(value: Value) -> bool:
    """Whether integers are computed from more than sizes and constants."""
    pending, done = [value], {value}
    while pending:
        node = pending.pop().node
        if node is None or node.effect is not None or node.bodies:
            return True
        if node.op is not SHAPE:
            pending += [v for v in node.inputs if v not in done]
            done.update(node.inputs)
    return False


def _pinned(tensors: Sequence[Any]) -> Iterator[dict[tuple[int, int], int]]:
    """Numbers for open axes that have to be equal to a known size: for none of them, then for one."""
    axes = [(i, axis) for i, x in enumerate(tensors) for axis, n in enumerate(x.shape) if n is None]
    sizes = sorted({n for x in tensors for n in x.shape if n is not None})
    yield {}
    if len(axes) * len(sizes) <= _MOST_INTEGERS:
        for place in axes:
            for size in sizes:
                yield {place: size}


def _traced(
    call: HeldCall, tensors: Sequence[Any], probe: _Probe, pinned: dict[tuple[int, int], int]
) -> _Results | None:
    """What a call returns where sizes are those of ``probe``."""
    aside = Tracer("sizes")
    try:
        with tracing(aside):
            symbols = [
                _value_for(x._value, probe)
                if i in call.integers
                else aside.argument(TensorSpec.of(_shape(x, i, probe.number, pinned), x.dtype))
                for i, x in enumerate(tensors)
            ]
            present, structure, results = _flat(call(symbols))
    except (DualflowError, TypeError, ValueError, AssertionError, ArithmeticError, IndexError):
        return None
    if any(node.effect is not None for node in aside.builder.nodes) or aside.updates():
        return None
    return _Results(structure, present, tuple([TensorSpec.of(x.shape, x.dtype) for x in results]))


def _flat(results: Any) -> tuple[tuple[bool, ...], Structure, tuple[Any, ...]]:
    """Which leaves of a structure are tensors, the structure, and the tensors."""
    leaves, structure = flatten(results)
    present = tuple([x is not None for x in leaves])
    tensors = tuple([x for x in leaves if x is not None])
    if not all(isinstance(x, AbstractTensor) for x in tensors):
        raise DTypeError("what is held returns tensors")
    return present, structure, tensors


def _shape(x: Any, i: int, number: int, pinned: dict[tuple[int, int], int]) -> Shape:
    """The shape of a tensor where open sizes of the trace's inputs are ``number``."""
    shape = _specs_at(x._value, number)[x._value].shape
    return Shape([pinned.get((i, axis), n) for axis, n in enumerate(shape)])


def _specs_at(value: Value, number: int) -> dict[Value, TensorSpec]:
    """The spec of ``value``, and of what it is computed from, where open sizes of inputs are ``number``."""
    specs: dict[Value, TensorSpec] = {}
    pending = [value]
    while pending:
        at = pending[-1]
        node = at.node
        missing = [] if node is None or at in specs else [v for v in node.inputs if v not in specs]
        if missing and not at.spec.shape.is_static:
            pending += missing
            continue
        pending.pop()
        if at not in specs:
            inferred = None if node is None or at.spec.shape.is_static else _inferred(node, specs)
            outputs = [at] if node is None else node.outputs
            for v, spec in zip(outputs, inferred or [v.spec for v in outputs], strict=True):
                shape = Shape([number if n is None else n for n in spec.shape])
                specs[v] = TensorSpec.of(shape, spec.dtype)
    return specs


def _inferred(node: Node, specs: Mapping[Value, TensorSpec]) -> Sequence[TensorSpec] | None:
    """The specs of a node's results for those of its inputs; None where its rule refuses the numbers."""
    if node.bodies:
        return None
    try:
        return node.op.specs([specs[v] for v in node.inputs], dict(node.attrs))
    except DualflowError:
        return None


def _value_for(value: Value, probe: _Probe) -> Any:
    """A tensor of integers as Python's, where sizes and data are those of ``probe``."""
    arrays: dict[Value, Any] = {}
    pending = [value]
    while pending:
        at = pending[-1]
        node = at.node
        if at in arrays:
            pending.pop()
        elif node is None or node.effect is not None or node.bodies:
            shape = _specs_at(at, probe.number)[at].shape
            small = np.array(probe.data, at.spec.dtype.dtype)
            arrays[pending.pop()] = np.broadcast_to(small, tuple(n or 0 for n in shape))
        elif node.op is SHAPE:
            shape = _specs_at(node.inputs[0], probe.number)[node.inputs[0]].shape
            arrays[pending.pop()] = np.array(shape, at.spec.dtype.dtype)
        elif isinstance(node.op.form, Literal):
            arrays[pending.pop()] = node.attrs["value"]
        elif missing := [v for v in node.inputs if v not in arrays]:
            pending += missing
        else:
            results = run_node(node, [arrays[v] for v in node.inputs])
            arrays.update(zip(node.outputs, results, strict=True))
    return as_ints(arrays[value])


def _merged(first: _Results, second: _Results, pinned: set[int] | None) -> _Results:
    """The results for open sizes: a size that differs, or that may come of a pinned one, is open.

    All are where ``pinned`` is None: integers that decide sizes were guessed.
    """
    specs = []
    for a, b in zip(first.specs, second.specs, strict=True):
        pairs = zip(a.shape, b.shape, strict=True)
        shape = [n if pinned is not None and n == m and n not in pinned else None for n, m in pairs]
        specs.append(TensorSpec.of(Shape(shape), a.dtype))
    return _Results(first.structure, first.present, tuple(specs))


def _held(call: HeldCall, tensors: Sequence[Any], results: _Results) -> Any:
    order = [i for i in range(len(tensors)) if i not in call.integers] + list(call.integers)

    def compute(*values: Any) -> tuple[Any, ...]:
        by_place = dict(zip(order, values, strict=True))
        try:
            present, structure, tensors = _flat(call([by_place[i] for i in range(len(order))]))
        except DualflowError as error:
            named_error(error, call.function)
            raise
        _check(call, _Results(structure, present, tuple([x.spec for x in tensors])), results)
        return tensors

    attrs = {"compute": compute, "result": lambda *specs: results.specs, "integers": len(call.integers)}
    found = iter(dispatch.current().apply(LATE, tuple([tensors[i] for i in order]), attrs))
    return unflatten(results.structure, [next(found) if is_tensor else None for is_tensor in results.present])


def _check(call: HeldCall, found: _Results, results: _Results) -> None:
    if found[:2] != results[:2]:
        raise InternalError(f"{call.function} returned another structure for the sizes of a call")
    for spec, declared in zip(found.specs, results.specs, strict=True):
        if not declared.is_compatible_with(spec):
            raise InvalidArgumentError(
                f"{call.function.__name__} was traced with open sizes for a result of {declared}, and gives "
                f"{spec}; give known shapes."
            )

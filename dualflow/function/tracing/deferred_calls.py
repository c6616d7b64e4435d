"""Calls of ops that need sizes as numbers, in a trace that leaves these open: held until the sizes are known.

Where such a call fails, the function is traced aside for numbers in the place of the open sizes, twice, and
then for as many others as its constants suggest. What it returns there says what the call returns: sizes
that differ are open. The call becomes a
:func:`~dualflow.function.tracing.late_sizes.deferred_op` node.
"""

from __future__ import annotations

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
from dualflow.core.tracebacks import named_error, public_name
from dualflow.core.tree import Structure, flatten, unflatten
from dualflow.function.tracing.late_sizes import deferred_op
from dualflow.function.tracing.size_probes import (
    PAIRS,
    SizeProbe,
    constants_behind,
    depends_on_data,
    varied_probes,
)
from dualflow.function.tracing.tracer import Tracer, tracing
from dualflow.ops.creation import convert_to_tensor
from dualflow.ops.op_kinds import Literal
from dualflow.ops.static import known_value

_OF_SIZES: Final = (InvalidArgumentError, DTypeError, TypeError, AssertionError)
_NOT_OF_SIZES: Final = (OperatorNotAllowedInGraphError, InaccessibleTensorError, InternalError)
_MOST_INTEGERS: Final = 64
"""The largest tensor of integers whose values a held call takes as Python's."""


class DeferredCall(NamedTuple):
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


def defer(
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
    call = DeferredCall(function, *_mapped(arguments, taken))
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
    return node is not None and isinstance(node.op.kind, Literal)


def _may_be_sizes(x: Any) -> bool:
    few = len(x.shape) <= 2 and x.shape.is_static and _count(x) <= _MOST_INTEGERS
    return few and x.dtype in (int32, int64)


def _count(x: Any) -> int:
    return int(np.prod(x.shape, dtype=np.int64))


def _results(call: DeferredCall, tensors: Sequence[Any]) -> _Results | None:
    """What a call returns; None where it fails for all numbers, or is no pure function of tensors."""
    constants = set(_constants(call, tensors))
    largest = 2 * max(constants, default=0)
    totals = set(_totals((call.args, call.kwargs)))
    for pair in (*PAIRS, (largest, 2 * largest)) if largest > 0 else PAIRS:
        for pinned in _pinned(tensors, totals):
            first, second = [
                _traced(call, tensors, SizeProbe((number,), data), pinned)
                for data, number in enumerate(pair, start=1)
            ]
            if first is not None and second is not None and _are_alike(first, second, pinned):
                if any(depends_on_data(tensors[i]._value) for i in call.integers):
                    return _merged(first, second, None)
                results = _merged(first, second, set(pinned.values()))
                return _constant_in_all(results, call, tensors, constants, pinned)
    return None


def _constants(call: DeferredCall, tensors: Sequence[Any]) -> Iterator[int]:
    """The integers that sizes may be compared with: known sizes, and those among the arguments."""
    for leaf in _leaves((call.args, call.kwargs)):
        if type(leaf) is int:
            yield leaf
        elif isinstance(leaf, _Constant) and leaf.array.dtype.kind in "iu":
            yield from leaf.array.reshape(-1)[:_MOST_INTEGERS].tolist()
    for x in tensors:
        yield from [n for n in x.shape if n is not None]
    for i in call.integers:
        yield from constants_behind(tensors[i]._value)


def _constant_in_all(
    results: _Results,
    call: DeferredCall,
    tensors: Sequence[Any],
    constants: set[int],
    pinned: Mapping[tuple[int, int], int],
) -> _Results:
    """``results``, with sizes left open that are others for some numbers in the place of open sizes.

    Two numbers don't tell ``minimum(n, 3)`` from 3.
    """
    for probe in varied_probes(constants):
        if not _claims_sizes(results):
            break
        others = _traced(call, tensors, probe, pinned)
        if others is not None and _are_alike(results, others, pinned):
            results = _merged(results, others, set())
    return results


def _claims_sizes(results: _Results) -> bool:
    """Whether some size of a result is a number."""
    return any(n is not None for spec in results.specs for n in spec.shape)


def _are_alike(a: _Results, b: _Results, pinned: Mapping[tuple[int, int], int]) -> bool:
    """Whether results differ in sizes alone; as many as a pinned size come of it, and may be more."""
    kinds = [[(len(x.shape), x.dtype) for x in results.specs] for results in (a, b)]
    counted = len(a.specs) > 1 and len(a.specs) in pinned.values()
    return a[:2] == b[:2] and kinds[0] == kinds[1] and not counted


def _totals(arguments: Any) -> Iterator[int]:
    """The sums of lists of sizes, which an axis may have to be cut into."""
    if type(arguments) is dict:
        arguments = list(arguments.values())
    if type(arguments) in (list, tuple):
        if arguments and all(type(part) is int and part >= 0 for part in arguments):
            yield sum(arguments)
        for part in arguments:
            yield from _totals(part)


def _pinned(tensors: Sequence[Any], totals: set[int]) -> Iterator[dict[tuple[int, int], int]]:
    """Numbers for open axes that have to be equal to a known size, or ``totals``: for none, then for one."""
    axes = [(i, axis) for i, x in enumerate(tensors) for axis, n in enumerate(x.shape) if n is None]
    sizes = sorted(totals.union(n for x in tensors for n in x.shape if n is not None))
    yield {}
    if len(axes) * len(sizes) <= _MOST_INTEGERS:
        for place in axes:
            for size in sizes:
                yield {place: size}


def _traced(
    call: DeferredCall, tensors: Sequence[Any], probe: SizeProbe, pinned: Mapping[tuple[int, int], int]
) -> _Results | None:
    """What a call returns where sizes are those of ``probe``."""
    aside = Tracer("sizes")
    try:
        with tracing(aside):
            symbols = [
                probe.integers(x._value)
                if i in call.integers
                else aside.argument(TensorSpec.of(_shape(x, i, probe, pinned), x.dtype))
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


def _shape(x: Any, i: int, probe: SizeProbe, pinned: Mapping[tuple[int, int], int]) -> Shape:
    """The shape of the tensor at place ``i`` for the numbers of ``probe``."""
    return Shape([pinned.get((i, axis), n) for axis, n in enumerate(probe.shape(x._value))])


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


def _held(call: DeferredCall, tensors: Sequence[Any], results: _Results) -> Any:
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
    op = deferred_op(public_name(call.function), checked=_claims_sizes(results))
    held = iter(dispatch.current().apply(op, tuple([tensors[i] for i in order]), attrs))
    return unflatten(results.structure, [next(held) if is_tensor else None for is_tensor in results.present])


def _check(call: DeferredCall, found: _Results, results: _Results) -> None:
    if found[:2] != results[:2]:
        raise InternalError(f"{call.function} returned another structure for the sizes of a call")
    for spec, declared in zip(found.specs, results.specs, strict=True):
        if not declared.is_compatible_with(spec):
            raise InvalidArgumentError(
                f"{call.function.__name__} was traced with open sizes for a result of {declared}, and gives "
                f"{spec}; give known shapes."
            )

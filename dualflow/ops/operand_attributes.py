"""Attributes whose integers come from operands: sizes and bounds that are known only at run time.

An op such as ``broadcast_to`` has an attribute of integers. Where one of them is a symbolic scalar, the node
has this scalar as a further input, and an :class:`OperandInteger` in the attribute::

    %2: float32[?, 3] = broadcast_to(%x, %n, shape=(operand(input=1), 3))

The op of such a node is the *operand form* of the record, and all of it follows from the record: its kernel
reads the integers; rules of gradients and batches are those of the record, for attributes that hold scalars.
Size inference records the op itself, whose attributes hold symbolic sizes then.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np

from dualflow.core import dispatch
from dualflow.core.dtypes import as_dtype, int64, uint64
from dualflow.core.errors import DTypeError, InvalidArgumentError
from dualflow.core.records import dataclass
from dualflow.core.shape import Shape
from dualflow.core.spec import TensorSpec
from dualflow.ops.attribute_values import written_as
from dualflow.ops.op_kinds import Decompose, Elementwise, OperandAttributes, SizeReader
from dualflow.ops.record import REGISTRY, Op, Specs
from dualflow.ops.static import shape_of, static_value
from dualflow.sizes.symbolic_sizes import SymInt

Attrs = Mapping[str, Any]


@written_as("operand", "input")
@dataclass(frozen=True, slots=True)
class OperandInteger:
    """An integer of an attribute: the value of the input with this number, an integer scalar."""

    input: int


NO_OPERANDS: Final = OperandAttributes()


def apply_sized(op: Op, inputs: Sequence[Any], attrs: Attrs) -> Any:
    """The result of ``op`` for attributes in which an integer may be a scalar, symbolic or not."""
    operands: list[Any] = []

    def number(item: Any) -> Any:
        if item is None or type(item) is int or isinstance(item, SymInt):
            return item
        value = static_value(item)
        if value is not None:
            return int(value.item())
        operands.append(_as_scalar(item))
        return OperandInteger(len(inputs) + len(operands) - 1)

    settings = _with_integers(op.operand_attributes, attrs, number)
    form = operand_form(op) if operands else op
    return dispatch.current().apply(form, (*inputs, *operands), settings)


def _as_scalar(x: Any) -> Any:
    """The symbolic integer as a scalar that int64 holds: a larger one would be read as a negative number."""
    engine = dispatch.current()
    if shape_of(x) == (1,):
        x = engine.apply(REGISTRY["reshape"], (x,), {"shape": Shape(())})
    if x.dtype is uint64:
        most = engine.constant(np.array(int64.max, np.uint64))
        x = engine.apply(REGISTRY["minimum"], (x, most), {})
    return x


@dataclass(frozen=True, slots=True, eq=False)
class OperandForm(Op):
    """The form of an op that reads integers of its attributes from operands."""

    def __reduce__(self) -> tuple[Any, ...]:
        return operand_form, (REGISTRY[self.name],)

    def applied(self, inputs: Sequence[Any], attrs: Attrs) -> tuple[Op, Sequence[Any], dict[str, Any]]:
        """The op itself, its inputs, and its attributes, in which operands are inputs of this form."""
        op = REGISTRY[self.name]
        return op, inputs[: _first_operand(attrs)], _with_operands(op.operand_attributes, attrs, inputs)


@functools.cache
def operand_form(op: Op) -> OperandForm:
    """The form of ``op`` for attributes with operands.

    Raises:
        InvalidArgumentError: its attributes can't have operands.
    """
    declared = op.operand_attributes
    if declared is None:
        raise InvalidArgumentError(f"the attributes of {op.name} hold numbers, not operands.")

    def infer(*specs: TensorSpec, **attrs: Any) -> TensorSpec | Specs:
        first = _check_operands(specs, attrs)
        unknown = _with_operands(declared, attrs, [None] * len(specs))
        return op.infer(*specs[:first], **{**attrs, **{name: unknown[name] for name in declared.sizes}})

    def kernel(*arrays: Any, **attrs: Any) -> Any:
        first = _first_operand(attrs)
        numbers = [*arrays[:first], *map(int, arrays[first:])]
        settings = _with_operands(declared, attrs, numbers)
        op.infer(*[TensorSpec.of(Shape(x.shape), as_dtype(x.dtype)) for x in arrays[:first]], **settings)
        return op.kernel(*arrays[:first], **settings)

    def resolve(read: SizeReader, *inputs: Any, **attrs: Any) -> Any:
        first = _first_operand(attrs)
        sizes = {operand.input for name in declared.sizes for operand in _operands(attrs[name])}
        least = [declared.least if i in sizes else None for i in range(len(inputs))]
        integers = [read(x, n)[0] for x, n in zip(inputs[first:], least[first:], strict=True)]
        settings = _with_operands(declared, attrs, [*inputs[:first], *integers])
        if declared.resolve is not None:
            return declared.resolve(read, *inputs[:first], **settings)
        return dispatch.current().apply(op, inputs[:first], settings)

    def vjp(i: int, g: Any, out: Any, *inputs: Any, **attrs: Any) -> Any:
        _, operands, settings = form.applied(inputs, attrs)
        return op.cotangent(i, g, out, operands, settings) if i < len(operands) else None

    form = OperandForm(
        name=op.name,
        doc=op.doc,
        infer=infer,
        kernel=kernel,
        kind=Decompose(resolve),
        vjp=None if op.vjp is None else vjp,
        effect=op.effect,
        strings=op.strings or not isinstance(op.kind, Elementwise),
    )
    return form


def has_operands(attrs: Attrs) -> bool:
    """Whether an integer of the attributes comes from an operand."""
    return any(True for value in attrs.values() for _ in _operands(value))


def _operands(value: Any) -> Iterator[OperandInteger]:
    if isinstance(value, tuple | list):
        for item in value:
            yield from _operands(item)
    elif isinstance(value, OperandInteger):
        yield value


def _first_operand(attrs: Attrs) -> int:
    """The number of inputs before the operands of attributes."""
    return min(operand.input for value in attrs.values() for operand in _operands(value))


def _check_operands(specs: Sequence[TensorSpec], attrs: Attrs) -> int:
    """The number of inputs before the operands, which are the last inputs, and scalars.

    Raises:
        InvalidArgumentError: the operands are other inputs.
        DTypeError: an operand isn't an integer scalar.
    """
    numbers = sorted(operand.input for value in attrs.values() for operand in _operands(value))
    if numbers != list(range(numbers[0], len(specs))):
        raise InvalidArgumentError(f"the operands {numbers} of attributes aren't the last inputs.")
    for spec in specs[numbers[0] :]:
        if len(spec.shape) or not spec.dtype.is_integer:
            raise DTypeError(f"a size or bound is an integer scalar, not {spec}; cast it with df.cast.")
    return numbers[0]


def _with_operands(declared: OperandAttributes | None, attrs: Attrs, values: Sequence[Any]) -> dict[str, Any]:
    """``attrs`` with ``values`` of inputs in place of operands."""
    return _with_integers(declared, attrs, lambda x: values[x.input] if isinstance(x, OperandInteger) else x)


def _with_integers(
    declared: OperandAttributes | None, attrs: Attrs, change: Callable[[Any], Any]
) -> dict[str, Any]:
    """``attrs`` after ``change`` of each integer that may come from an operand."""

    def changed(item: Any) -> Any:
        return tuple(map(changed, item)) if isinstance(item, tuple | list) else change(item)

    sizes, bounds, *_ = declared or NO_OPERANDS
    return {
        **attrs,
        **{name: _as_shape(changed(attrs[name])) for name in sizes},
        **{name: changed(attrs[name]) for name in bounds},
    }


def _as_shape(sizes: Any) -> Any:
    """A Shape for the sizes of one shape without operands; others unchanged."""
    is_shape = isinstance(sizes, tuple) and all(n is None or isinstance(n, int | SymInt) for n in sizes)
    return Shape(sizes) if is_shape else sizes

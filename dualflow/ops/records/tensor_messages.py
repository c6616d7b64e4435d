"""``df.io.serialize_tensor`` and ``parse_tensor``: tensors as TensorFlow's message ``TensorProto``."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dualflow.core import dispatch
from dualflow.core.convert import Array
from dualflow.core.dtypes import DType, as_dtype, float32
from dualflow.core.errors import DTypeError, InvalidArgumentError
from dualflow.core.shape import UNKNOWN_RANK, Shape
from dualflow.core.spec import TensorSpec
from dualflow.core.string_arrays import string
from dualflow.ops.attribute_values import in_text
from dualflow.ops.creation import convert_to_tensor
from dualflow.ops.record import Op
from dualflow.ops.records.wire_format import BYTES, VARINT, delimited, fields, varint, varint_field, varints
from dualflow.ops.samples import Sample, reals
from dualflow.ops.text.mapping import ON_HOST, filled, of_strings, text_op

if TYPE_CHECKING:
    from dualflow.core.argument_types import DTypeLike, TensorLike
    from dualflow.ops.tensor import Tensor

_DTYPE, _SHAPE, _CONTENT, _STRINGS, _UNKNOWN = 1, 2, 4, 8, 3
_NUMBERS: Final[Mapping[int, Callable[[bytes], Array]]] = {
    5: lambda data: np.frombuffer(data, "<f4"),
    6: lambda data: np.frombuffer(data, "<f8"),
    7: varints,
    9: lambda data: np.frombuffer(data, "<c8"),
    10: varints,
    11: varints,
    12: lambda data: np.frombuffer(data, "<c16"),
    13: varints,
    16: varints,
    17: varints,
}
"""The fields of ``TensorProto`` with a number for each element: float_val, double_val, int_val and so on."""
_MAX_REPEATED: Final = 1 << 20
_BITS: Final = 13
"""The field of 16-bit floats, as integers of their bits."""


def _serialized(x: Array, dtype: DType) -> Array:
    sizes = b"".join([delimited(2, varint_field(1, size)) for size in x.shape])
    head = varint_field(_DTYPE, dtype.as_datatype_enum) + delimited(_SHAPE, sizes)
    if dtype.is_string:
        content = b"".join([delimited(_STRINGS, s) for s in x.ravel().tolist()])
    else:
        content = delimited(_CONTENT, x.astype(dtype.dtype).tobytes())  # kernels get narrow floats as float32
    return filled([head + content], ())


def _tensor(serialized: Array, dtype: DType) -> Array:
    data = serialized.item()
    try:
        return _read(data, dtype)
    except (ValueError, struct.error, OverflowError) as error:
        raise InvalidArgumentError(f"Could not parse tensor: {error}.") from None


def _read(data: bytes, dtype: DType) -> Array:
    """The array of a ``TensorProto``.

    Raises:
        ValueError: the bytes are none, or one of another dtype.
    """
    number, sizes, content = 0, [], None
    strings: list[bytes] = []
    parts: dict[int, list[bytes]] = {}
    for field in fields(data, 0, len(data)):
        value = data[field.start : field.end]
        if field.number == _DTYPE:
            field.require(VARINT)
            number = varint(data, field.start, field.end)[0]
        elif field.number == _SHAPE:
            field.require(BYTES)
            sizes = _sizes(value)
        elif field.number == _CONTENT:
            field.require(BYTES)
            content = value
        elif field.number == _STRINGS:
            field.require(BYTES)
            strings.append(value)
        elif field.number in _NUMBERS:
            parts.setdefault(field.number, []).append(value)
    if number != dtype.as_datatype_enum:
        raise ValueError(f"its dtype is {_name(number)}, not {dtype.name}")
    count = math.prod(sizes)
    if dtype.is_string:
        if len(strings) != count:
            raise ValueError(f"it has {len(strings)} strings, not {count}")
        return filled(strings, tuple(sizes))
    if content is not None:
        if len(content) != count * dtype.size:
            raise ValueError(f"it has {len(content)} bytes, not {count * dtype.size}")
        return np.frombuffer(content, dtype.dtype).reshape(sizes)
    return _repeated(parts, count, dtype).reshape(sizes)


def _repeated(parts: Mapping[int, list[bytes]], count: int, dtype: DType) -> Array:
    """``count`` numbers from fields of numbers, of which the last one may stand for all after it."""
    (field, pieces) = next(iter(parts.items()), (7, []))
    numbers = _NUMBERS[field](b"".join(pieces))
    if numbers.size > count:
        raise ValueError(f"it has {numbers.size} numbers, not {count}")
    values = numbers.astype(np.uint16).view(dtype.dtype) if field == _BITS else numbers.astype(dtype.dtype)
    last = values[-1] if values.size else np.zeros((), dtype.dtype)[()]
    if count > values.size + _MAX_REPEATED:
        raise ValueError(f"it has {numbers.size} numbers, which stand for {count}")
    return np.concatenate([values, np.full(count - values.size, last, dtype.dtype)])


def _sizes(data: bytes) -> list[int]:
    """The sizes of a ``TensorShapeProto``."""
    sizes = []
    for field in fields(data, 0, len(data)):
        if field.number == _UNKNOWN:
            raise ValueError("its rank is unknown")
        if field.number == 2:
            field.require(BYTES)
            size = 0
            for part in fields(data, field.start, field.end):
                if part.number == 1:
                    part.require(VARINT)
                    size = varint(data, part.start, part.end)[0]
            sizes.append(size)
    if len(sizes) > 32 or math.prod(sizes) >= 1 << 62 or any(size >= 1 << 62 for size in sizes):
        raise ValueError(f"no tensor has the shape {sizes[:8]}")
    return sizes


def _name(number: int) -> str:
    try:
        return as_dtype(number).name
    except DTypeError:
        return f"the number {number}"


SERIALIZE: Final = text_op(
    "serialize_tensor",
    "A tensor as a serialised message TensorProto.",
    infer=lambda x, dtype: TensorSpec.of(Shape(), string),
    kernel=_serialized,
    samples=[Sample((reals(-1, 1),), {"dtype": float32})],
)
PARSE: Final = in_text(
    Op(
        name="parse_tensor",
        doc="The tensor of a serialised message TensorProto.",
        infer=lambda serialized, dtype: TensorSpec.of(UNKNOWN_RANK, dtype),
        kernel=_tensor,
        kind=ON_HOST,
        strings=True,
    )
)
"""The op of :func:`parse_tensor`; not registered: the op matrix tests ops with results of known rank."""


def serialize_tensor(tensor: TensorLike, name: str | None = None) -> Tensor:
    """A tensor as a string, which :func:`parse_tensor` reads: TensorFlow's message ``TensorProto``.

    Args:
        tensor: a tensor of any dtype that TensorFlow has, or what converts to one.
        name: the name of the operation.

    Returns:
        A scalar string.

    Raises:
        DTypeError: the dtype has no number in TensorFlow.

    >>> import dualflow as df
    >>> data = df.io.serialize_tensor([1, 2])
    >>> df.io.parse_tensor(data, df.int32).numpy().tolist()
    [1, 2]
    """
    converted: Any = convert_to_tensor(tensor)
    return dispatch.current().apply(SERIALIZE, (converted,), {"dtype": converted.dtype})


def parse_tensor(serialized: TensorLike, out_type: DTypeLike, name: str | None = None) -> Tensor:
    """The tensor of a string of :func:`serialize_tensor`, also of TensorFlow's.

    Args:
        serialized: a scalar string.
        out_type: the dtype of the tensor.
        name: the name of the operation.

    Returns:
        The tensor. While a function is traced its rank is unknown: give it a shape by
        :func:`dualflow.ensure_shape` or ``reshape``.

    Raises:
        InvalidArgumentError: the string is no serialised tensor, or one of another dtype.
        DTypeError: ``serialized`` is no string.

    >>> import dualflow as df
    >>> df.io.parse_tensor(df.io.serialize_tensor(["a", "b"]), df.string).numpy().tolist()
    [b'a', b'b']
    """
    text: Any = of_strings(serialized, "parse_tensor")
    if len(text.shape):
        raise InvalidArgumentError(f"parse_tensor takes one string, not the shape {text.shape}.")
    return dispatch.current().apply(PARSE, (text,), {"dtype": as_dtype(out_type)})

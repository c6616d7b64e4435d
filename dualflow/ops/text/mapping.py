"""Constructors of string ops, which call a Python function of bytes for each element."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import Any, Final

import numpy as np

from dualflow.core import dispatch
from dualflow.core.convert import as_array
from dualflow.core.dispatch import TENSORS
from dualflow.core.dtypes import DType
from dualflow.core.errors import DTypeError, InvalidArgumentError
from dualflow.core.shape import Shape, broadcast
from dualflow.core.spec import TensorSpec
from dualflow.core.string_arrays import string
from dualflow.ops.creation import convert_to_tensor
from dualflow.ops.op_kinds import Opaque
from dualflow.ops.record import Op, register
from dualflow.ops.samples import Domain, Sample
from dualflow.ops.static import dtype_of

Array = np.ndarray[Any, Any]
ON_HOST: Final = Opaque("strings are Python's objects")
WORDS: Final = Domain(kinds="O")
"""Strings of any shape, for samples."""


def words(*values: Any) -> Domain:
    """A sample domain of exactly these strings, as a vector."""
    array = as_array(list(values), string)
    return Domain(kinds="O", shape=array.shape, values=array)


def one_word(value: bytes) -> Domain:
    """A sample domain of exactly this string, as a scalar."""
    return Domain(kinds="O", shape=(), values=np.array(value, object))


def row_lengths(*values: int) -> Domain:
    """A sample domain of exactly these lengths of rows."""
    return Domain(kinds="i", shape=(len(values),), values=np.array(values, np.int64))


def of_strings(x: Any, name: str) -> Any:
    """``x`` as a tensor of strings.

    Raises:
        DTypeError: numbers, which ``name`` does not take.
    """
    if isinstance(x, TENSORS) and not dtype_of(x).is_string:
        raise DTypeError(
            f"{name} takes strings, not {dtype_of(x).name}; df.as_string makes strings of numbers."
        )
    return convert_to_tensor(x, string)


def filled(elements: Iterable[Any], shape: tuple[int, ...], dtype: DType = string) -> Array:
    """An array of ``shape`` with these elements, in row-major order."""
    out = np.empty(shape, dtype.dtype)
    out.reshape(-1)[...] = list(elements)
    return out


def rows_of(values: Array, lengths: Array) -> list[list[Any]]:
    """The rows of a ragged vector as lists: the rows follow each other in ``values``, with these lengths."""
    remaining = iter(values.tolist())
    return [[*islice(remaining, length)] for length in lengths.tolist()]


def per_string(
    name: str,
    doc: str,
    function: Callable[..., Any],
    *,
    result: DType = string,
    samples: Sequence[Sample] | None = None,
) -> Callable[..., Any]:
    """Register an op that maps ``function(element, **attrs)`` over a tensor of strings.

    Returns:
        ``apply(x, **attrs)``, which runs it on what becomes a tensor of strings.
    """

    def kernel(x: Array, **attrs: Any) -> Array:
        return filled([function(s, **attrs) for s in x.ravel().tolist()], x.shape, result)

    op = text_op(
        name,
        doc,
        infer=lambda x, **attrs: TensorSpec.of(x.shape, result),
        kernel=kernel,
        samples=samples or (Sample((WORDS,)),),
    )
    return lambda x, **attrs: dispatch.current().apply(
        op, (of_strings(x, name.removeprefix("string_")),), attrs
    )


def text_op(
    name: str,
    doc: str,
    *,
    infer: Callable[..., Any],
    kernel: Callable[..., Any],
    samples: Sequence[Sample],
    outputs: int | None = 1,
) -> Op:
    """Register an op with strings among its inputs or results, which runs as its kernel everywhere."""
    return register(
        Op(
            name=name,
            doc=doc,
            infer=infer,
            kernel=kernel,
            kind=ON_HOST,
            outputs=outputs,
            strings=True,
            samples=tuple(samples),
        )
    )


def joined_shape(shapes: Sequence[Shape]) -> Shape:
    """The common shape of all values to join that are not scalars.

    Raises:
        InvalidArgumentError: two of them differ.
    """
    with_axes = [s for s in shapes if len(s)] or [Shape()]
    if any(len(s) != len(with_axes[0]) for s in with_axes) or any(
        len({d for d in sizes if d is not None}) > 1 for sizes in zip(*with_axes, strict=True)
    ):
        raise InvalidArgumentError(
            f"join takes inputs of one shape, and scalars, not shapes {', '.join(map(str, shapes))}; "
            "reshape them, or repeat them with df.broadcast_to."
        )
    return broadcast(with_axes)


def one_of(value: Any, names: Sequence[str], what: str) -> str:
    """``value``, checked to be one of ``names``.

    Raises:
        InvalidArgumentError: another one.
    """
    if value not in names:
        raise InvalidArgumentError(f"{what} is one of {', '.join(map(repr, names))}, not {value!r}.")
    return str(value)

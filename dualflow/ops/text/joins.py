"""Concatenation of strings: elementwise, along axes, by templates and by segments."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dualflow.core import dispatch
from dualflow.core.convert import Array
from dualflow.core.dispatch import TENSORS, AbstractVariable
from dualflow.core.errors import DTypeError, InvalidArgumentError, OutOfRangeError
from dualflow.core.shape import Shape
from dualflow.core.spec import TensorSpec
from dualflow.core.string_arrays import string
from dualflow.ops.arrangement import expand_dims
from dualflow.ops.creation import convert_to_tensor
from dualflow.ops.joining import unstack
from dualflow.ops.printing import format_array
from dualflow.ops.ragged.ragged_rows import RaggedRows
from dualflow.ops.samples import Domain, Sample
from dualflow.ops.static import ints, shape_of, static_int
from dualflow.ops.text.mapping import filled, joined_shape, of_strings, row_lengths, rows_of, text_op, words

if TYPE_CHECKING:
    from dualflow.core.argument_types import AxisLike, TensorLike
    from dualflow.ops.tensor import Tensor


def _join_kernel(*arrays: Array, separator: bytes) -> Array:
    spread = np.broadcast_arrays(*arrays)
    rows = zip(*[a.ravel().tolist() for a in spread], strict=True)
    return filled([separator.join(row) for row in rows], spread[0].shape)


_JOIN: Final = text_op(
    "string_join",
    "The strings of several tensors, concatenated elementwise.",
    infer=lambda *specs, separator: TensorSpec.of(joined_shape([s.shape for s in specs]), string),
    kernel=_join_kernel,
    samples=[Sample((Domain(kinds="O", shape=(2, 3)), Domain(kinds="O", shape=(2, 3))), {"separator": b"-"})],
)


def _reduce_join_kernel(x: Array, axes: tuple[int, ...], keepdims: bool, separator: bytes) -> Array:
    kept = [a for a in range(x.ndim) if a not in axes]
    axes = axes[::-1]
    count = math.prod(x.shape[a] for a in axes)
    shape = tuple([x.shape[a] for a in kept])
    rows = x.transpose(*kept, *axes).reshape(math.prod(shape), count)
    full = tuple([1 if a in axes else size for a, size in enumerate(x.shape)])
    return filled([separator.join(row) for row in rows.tolist()], full if keepdims else shape)


def _reduced_spec(x: TensorSpec, axes: tuple[int, ...], keepdims: bool, separator: bytes) -> TensorSpec:
    sizes = [1 if a in axes else d for a, d in enumerate(x.shape) if keepdims or a not in axes]
    return TensorSpec.of(Shape(sizes), string)


_REDUCE: Final = text_op(
    "string_reduce_join",
    "The strings along some axes, concatenated; those along the first of the axes are adjacent.",
    infer=_reduced_spec,
    kernel=_reduce_join_kernel,
    samples=[
        Sample((Domain(kinds="O", shape=(2, 3)),), {"axes": axes, "keepdims": keep, "separator": b","})
        for axes, keep in (((0, 1), False), ((1, 0), True), ((1,), False))
    ],
)


def _template_kernel(*arrays: Array, texts: tuple[str, ...], edge: int) -> Array:
    shown = [format_array(a, edge) for a in arrays]
    text = texts[0] + "".join(s + t for s, t in zip(shown, texts[1:], strict=True))
    return np.array(text.encode("utf-8", "surrogateescape"), object)


_FORMAT: Final = text_op(
    "string_format",
    "A text with tensors in it, between ``texts``, of which there is one more.",
    infer=lambda *specs, texts, edge: TensorSpec.of(Shape(), string),
    kernel=_template_kernel,
    samples=[Sample((Domain(-9, 9, "fib", (2, 7)),), {"texts": ("x is ", "."), "edge": 3})],
)


def join(inputs: Iterable[TensorLike], separator: str = "", name: str | None = None) -> Tensor:
    """The strings of several tensors, concatenated elementwise.

    Args:
        inputs: a list of tensors of strings of one shape; scalars broadcast.
        separator: a Python string between them.

    Returns:
        A tensor of strings of that shape.

    Raises:
        InvalidArgumentError: shapes differ.
        DTypeError: numbers, a lone string, or a separator that is no Python string.

    >>> import dualflow as df
    >>> df.strings.join([["a", "b"], ".txt"]).numpy()
    array([b'a.txt', b'b.txt'], dtype=object)
    """
    is_scalar = isinstance(inputs, str | bytes) or not isinstance(inputs, Iterable | AbstractVariable)
    if is_scalar or (hasattr(inputs, "shape") and not len(shape_of(inputs))):
        raise DTypeError(f"join takes a list of tensors of strings, not {inputs!r}; put it into a list.")
    rows = unstack(inputs) if isinstance(inputs, TENSORS) else inputs
    tensors = tuple([of_strings(x, "join") for x in rows])
    if not tensors:
        return convert_to_tensor("")
    joined_shape([x.shape for x in tensors])
    return dispatch.current().apply(_JOIN, tensors, {"separator": _separator(separator)})


def _rows_kernel(values: Array, lengths: Array, separator: bytes) -> Array:
    return filled([separator.join(row) for row in rows_of(values, lengths)], lengths.shape)


_ROWS: Final = text_op(
    "string_join_rows",
    "The strings of each row, concatenated; the rows follow each other, and have these lengths.",
    infer=lambda values, lengths, separator: TensorSpec.of(lengths.shape, string),
    kernel=_rows_kernel,
    samples=[
        Sample(
            (words(b"a", b"b", b"c"), row_lengths(2, 0, 1)),
            {"separator": b"-"},
        )
    ],
)


def reduce_join(
    inputs: Iterable[TensorLike],
    axis: AxisLike | None = None,
    keepdims: bool = False,
    separator: str = "",
    name: str | None = None,
) -> Tensor:
    """The strings along some axes, concatenated.

    Args:
        inputs: strings of any shape, which may be ragged.
        axis: an integer or a list: the elements along the first of the axes are adjacent. None for all axes,
            from the last to the first. Of a ragged tensor the last one, or None.
        keepdims: whether the axes stay, with size 1.
        separator: a Python string between the strings.

    Returns:
        A tensor of strings with the shape of ``inputs`` without the axes.

    Raises:
        OutOfRangeError: an axis is out of range.
        InvalidArgumentError: an axis occurs twice, or is not the last of a ragged tensor.
        DTypeError: ``inputs`` holds numbers.

    >>> import dualflow as df
    >>> df.strings.reduce_join([["a", "b"], ["c", "d"]], axis=1, separator="-").numpy()
    array([b'a-b', b'c-d'], dtype=object)
    """
    if isinstance(inputs, RaggedRows):
        return _joined_rows(inputs, axis, separator, keepdims=bool(keepdims))
    x = of_strings(inputs, "reduce_join")
    count = len(x.shape)
    axes = tuple(range(count))[::-1] if axis is None else ints(axis, "axis")
    for a in axes:
        if not -count <= a < count:
            raise OutOfRangeError(f"reduce_join: there is no axis {a} in a tensor of shape {x.shape}.")
    axes = tuple([a % count for a in axes])
    if len(set(axes)) < len(axes):
        raise InvalidArgumentError(f"reduce_join is given an axis twice: {axes}; name each once.")
    attrs = {"axes": axes, "keepdims": bool(keepdims), "separator": _separator(separator)}
    return dispatch.current().apply(_REDUCE, (x,), attrs)


def _joined_rows(rows: Any, axis: Any, separator: str, *, keepdims: bool) -> Any:
    """The strings of a ragged tensor along its last axis, or along all for None, concatenated."""
    last = len(rows.shape) - 1
    if axis is None:
        joined = _joined_rows(rows, last, separator, keepdims=keepdims)
        return reduce_join(joined, None, keepdims, separator)
    if ints(axis, "axis") not in ((last,), (-1,)):
        raise InvalidArgumentError(
            f"reduce_join joins a ragged tensor along its last axis, {last}, not {axis}; join x.to_tensor()."
        )
    if len(rows.values.shape) > 1:
        return rows.with_values(reduce_join(rows.values, -1, keepdims, separator))
    operands = of_strings(rows.values, "reduce_join"), rows.row_lengths()
    joined = dispatch.current().apply(_ROWS, operands, {"separator": _separator(separator)})
    return expand_dims(joined, 1) if keepdims else joined


def format(
    template: str,
    inputs: Iterable[TensorLike],
    placeholder: str = "{}",
    summarize: int = 3,
    name: str | None = None,
) -> Tensor:
    """A text with tensors in it, as :func:`dualflow.print` prints them; strings are in quotes.

    Args:
        template: the text, with a placeholder for each tensor.
        inputs: a tensor, or a list or tuple of them.
        placeholder: the text that is replaced by a tensor.
        summarize: the number of elements to show at each end of an axis; -1 for all.

    Returns:
        A scalar string.

    Raises:
        InvalidArgumentError: there are not as many tensors as placeholders.
        DTypeError: ``template`` or ``placeholder`` is not a Python string.

    >>> import dualflow as df
    >>> df.strings.format("x is {}, of {}", (df.range(9), "abc")).numpy()
    b'x is [0 1 2 ... 6 7 8], of "abc"'
    """
    for what, text in (("template", template), ("placeholder", placeholder)):
        if not isinstance(text, str):
            raise DTypeError(f"the {what} is a Python string, not {text!r}.")
    several = inputs if isinstance(inputs, list | tuple) else (inputs,)
    texts = tuple(template.split(placeholder))
    if len(texts) != len(several) + 1:
        raise InvalidArgumentError(
            f"The template has {len(texts) - 1} placeholders {placeholder!r}, and there are {len(several)} "
            "tensors; give one for each."
        )
    tensors = tuple([convert_to_tensor(x) for x in several])
    return dispatch.current().apply(
        _FORMAT, tensors, {"texts": texts, "edge": static_int(summarize, "summarize")}
    )


def _separator(separator: Any) -> bytes:
    if not isinstance(separator, str | bytes):
        raise DTypeError(f"separator is a Python string, not {separator!r}.")
    return separator.encode() if isinstance(separator, str) else separator

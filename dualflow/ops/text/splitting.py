"""Strings split into parts: between separators, and into bytes."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dualflow.core import dispatch
from dualflow.core.convert import Array
from dualflow.core.dtypes import int64
from dualflow.core.errors import InvalidArgumentError
from dualflow.core.shape import Shape
from dualflow.core.spec import TensorSpec
from dualflow.core.string_arrays import string
from dualflow.ops.arrangement import reshape
from dualflow.ops.ragged.ragged_rows import RaggedRows
from dualflow.ops.ragged.ragged_tensor import RaggedTensor
from dualflow.ops.samples import Sample
from dualflow.ops.static import static_int
from dualflow.ops.text.mapping import filled, of_strings, one_word, text_op, words

if TYPE_CHECKING:
    from dualflow.core.argument_types import TensorLike


def _split_each(x: Array, split: Callable[[bytes], list[bytes]]) -> tuple[Array, Array]:
    """The parts of each string, one after the other, and their numbers."""
    parts = [split(text) for text in x.ravel().tolist()]
    counts = np.array([len(row) for row in parts], np.int64)
    return filled(chain.from_iterable(parts), (int(counts.sum()),)), counts


def _rows_spec(x: TensorSpec, **attrs: Any) -> tuple[TensorSpec, TensorSpec]:
    count = x.shape.num_elements()
    return TensorSpec.of(Shape([None]), string), TensorSpec.of(Shape([count]), int64)


def _pieces(x: Array, separator: Array, most: int) -> tuple[Array, Array]:
    between = separator.item() or None
    return _split_each(x, lambda text: text.split(between, most))


_SPLIT: Final = text_op(
    "string_split",
    "The parts of each string between separators, one after the other, and their numbers.",
    infer=lambda x, separator, most: _rows_spec(x),
    kernel=_pieces,
    outputs=2,
    samples=[
        Sample((words(b" a,b ,,c", b"", b"d"), one_word(s)), {"most": n})
        for s, n in ((b",", -1), (b"", -1), (b",", 1))
    ],
)
_BYTES: Final = text_op(
    "string_bytes",
    "The bytes of each string as strings, one after the other, and their numbers.",
    infer=_rows_spec,
    kernel=lambda x: _split_each(x, lambda text: [bytes([b]) for b in text]),
    outputs=2,
    samples=[Sample((words(b"abc", b""),))],
)


def split(
    input: TensorLike, sep: TensorLike | None = None, maxsplit: int = -1, name: str | None = None
) -> Any:
    """The parts of each string between separators.

    Args:
        input: strings of any shape, which may be ragged.
        sep: a scalar string; if it is empty or None, runs of white space separate.
        maxsplit: the number of separators to use, from the left; all if it is negative.

    Returns:
        A RaggedTensor of strings of one axis more, with the parts of each string; of a scalar a vector.

    Raises:
        InvalidArgumentError: ``sep`` is not a scalar.
        DTypeError: ``input`` holds numbers.

    >>> import dualflow as df
    >>> df.strings.split("a,,b", sep=",").numpy()
    array([b'a', b'', b'b'], dtype=object)
    >>> df.strings.split(["a b  c", "d"])
    <tf.RaggedTensor [[b'a', b'b', b'c'], [b'd']]>
    """
    separator = of_strings("" if sep is None else sep, "split")
    if len(separator.shape):
        raise InvalidArgumentError(
            f"split takes one separator, not those of shape {separator.shape}; split once for each."
        )
    most = static_int(maxsplit, "maxsplit")

    def parts(x: Any) -> Any:
        return dispatch.current().apply(_SPLIT, (x, separator), {"most": most})

    return rows_of_parts(input, parts, "split")


def bytes_split(input: TensorLike, name: str | None = None) -> Any:
    """The bytes of each string, as strings.

    Args:
        input: strings of any shape, which may be ragged.

    Returns:
        A RaggedTensor of strings of one axis more, with the bytes of each string; of a scalar a vector.

    Raises:
        DTypeError: ``input`` holds numbers.

    >>> import dualflow as df
    >>> df.strings.bytes_split("abc").numpy()
    array([b'a', b'b', b'c'], dtype=object)
    """
    return rows_of_parts(input, lambda x: dispatch.current().apply(_BYTES, (x,), {}), "bytes_split")


def rows_of_parts(input: Any, parts: Callable[[Any], Any], name: str) -> Any:
    """The parts of each string, which ``parts`` returns with their numbers for any tensor of strings."""
    if isinstance(input, RaggedRows):
        return input.with_flat_values(rows_of_parts(input.flat_values, parts, name))
    x = of_strings(input, name)
    rank = len(x.shape)
    if rank > 1:
        rows = RaggedTensor.from_tensor(x, ragged_rank=rank - 1)
        return rows.with_flat_values(rows_of_parts(rows.flat_values, parts, name))
    values, counts = parts(x)
    if not rank:
        return values
    return RaggedTensor.from_row_lengths(values, reshape(counts, [-1]), validate=False)

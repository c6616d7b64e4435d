"""Runs of consecutive strings, joined: ``df.strings.ngrams``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dualflow.core import dispatch
from dualflow.core.convert import Array
from dualflow.core.dtypes import int64
from dualflow.core.errors import DTypeError, InvalidArgumentError
from dualflow.core.shape import Shape
from dualflow.core.spec import TensorSpec
from dualflow.core.string_arrays import string
from dualflow.ops.ragged.ragged_rows import RaggedRows
from dualflow.ops.ragged.ragged_tensor import RaggedTensor
from dualflow.ops.samples import Sample
from dualflow.ops.shapes import shape as shape_of
from dualflow.ops.static import static_int
from dualflow.ops.text.mapping import filled, of_strings, row_lengths, rows_of, text_op, words

if TYPE_CHECKING:
    from dualflow.core.argument_types import TensorLike


def _of_row(
    row: list[bytes],
    widths: Sequence[int],
    separator: bytes,
    pads: tuple[bytes, bytes],
    padding: int,
    keep_short: bool,
) -> list[bytes]:
    """The n-grams of one sequence, those of the first width first."""
    grams: list[bytes] = []
    for width in widths:
        count = width - 1 if padding < 0 else min(padding, width - 1)
        padded = [*[pads[0]] * count, *row, *[pads[1]] * count]
        grams += [separator.join(padded[i : i + width]) for i in range(len(padded) - width + 1)]
    if keep_short and row and not grams:
        count = max(padding, 0)
        grams.append(separator.join([*[pads[0]] * count, *row, *[pads[1]] * count]))
    return grams


def _kernel(values: Array, lengths: Array, **attrs: Any) -> tuple[Array, Array]:
    rows = [_of_row(row, **attrs) for row in rows_of(values, lengths)]
    grams = [gram for row in rows for gram in row]
    return filled(grams, (len(grams),)), np.array([len(row) for row in rows], np.int64)


_NGRAMS: Final = text_op(
    "ngrams",
    "The n-grams of each row of strings, which follow each other, and their numbers; with the rows' lengths.",
    infer=lambda values, lengths, **attrs: (
        TensorSpec.of(Shape([None]), string),
        TensorSpec.of(lengths.shape, int64),
    ),
    kernel=_kernel,
    outputs=2,
    samples=[
        Sample(
            (words(b"a", b"b", b"c"), row_lengths(3, 0)),
            {
                "widths": widths,
                "separator": b" ",
                "pads": (b"<", b">"),
                "padding": padding,
                "keep_short": padding == 0,
            },
        )
        for widths, padding in (((2, 1), 0), ((4,), 0), ((3,), -1))
    ],
)


def ngrams(
    data: TensorLike,
    ngram_width: int | Sequence[int],
    separator: str = " ",
    pad_values: str | tuple[str, str] | None = None,
    padding_width: int | None = None,
    preserve_short_sequences: bool = False,
    name: str | None = None,
) -> Any:
    """The runs of ``ngram_width`` consecutive strings of each sequence, each run joined to one string.

    Args:
        data: strings of at least one axis, which may be ragged; the last axis is that of a sequence.
        ngram_width: the number of strings in a run, or several numbers, whose runs follow each other.
        separator: the string between the strings of a run.
        pad_values: a string before and after each sequence, or a pair of them; None for no padding.
        padding_width: how many pads there are on each side, at most one less than the width, which is the
            default.
        preserve_short_sequences: whether a sequence that is shorter than the width is one run.

    Returns:
        A RaggedTensor of strings with the sequences of runs; for a vector a vector.

    Raises:
        InvalidArgumentError: a width is less than 1, or ``data`` is a scalar.
        DTypeError: ``data`` holds numbers, or ``pad_values`` are no strings.

    >>> import dualflow as df
    >>> df.strings.ngrams(["a", "b", "c"], 2).numpy()
    array([b'a b', b'b c'], dtype=object)
    >>> df.strings.ngrams([["a", "b"], ["c", "d"]], [1, 2], separator="-")
    <tf.RaggedTensor [[b'a', b'b', b'a-b'], [b'c', b'd', b'c-d']]>
    """
    listed = ngram_width if isinstance(ngram_width, list | tuple) else [ngram_width]
    widths = tuple([static_int(width, "ngram_width") for width in listed])
    if min(widths, default=0) < 1:
        raise InvalidArgumentError(f"ngram_width is at least 1, not {ngram_width!r}.")
    attrs = {
        "widths": widths,
        "separator": separator.encode(),
        "pads": _pads(pad_values),
        "padding": _padding(pad_values, padding_width),
        "keep_short": bool(preserve_short_sequences),
    }
    return _of_rows(data, attrs)


def _pads(pad_values: Any) -> tuple[bytes, bytes]:
    pair = (pad_values, pad_values) if isinstance(pad_values, str | bytes) else (pad_values or ("", ""))
    if len(pair) != 2 or not all(isinstance(x, str | bytes) for x in pair):
        raise DTypeError(f"pad_values is a string, a pair of strings or None, not {pad_values!r}.")
    left, right = (x if isinstance(x, bytes) else x.encode() for x in pair)
    return left, right


def _padding(pad_values: Any, padding_width: Any) -> int:
    """The number of pads on each side; -1 for one less than the width."""
    if pad_values is None:
        return 0
    if padding_width is None:
        return -1
    padding = static_int(padding_width, "padding_width")
    if padding < 1:
        raise InvalidArgumentError(
            f"padding_width is at least 1, not {padding}; leave pad_values out for none."
        )
    return padding


def _of_rows(data: Any, attrs: dict[str, Any]) -> Any:
    if isinstance(data, RaggedRows):
        if len(data.values.shape) > 1:
            return data.with_values(_of_rows(data.values, attrs))
        operands = of_strings(data.values, "ngrams"), data.row_lengths()
        values, counts = dispatch.current().apply(_NGRAMS, operands, attrs)
        return RaggedTensor.from_row_lengths(values, counts, validate=False)
    x = of_strings(data, "ngrams")
    if not len(x.shape):
        raise InvalidArgumentError("ngrams takes strings of at least one axis, not a scalar; use [data].")
    if len(x.shape) > 1:
        return _of_rows(RaggedTensor.from_tensor(x, ragged_rank=len(x.shape) - 1), attrs)
    return dispatch.current().apply(_NGRAMS, (x, shape_of(x, int64)), attrs)[0]

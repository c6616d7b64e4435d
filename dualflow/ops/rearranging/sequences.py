"""reverse_sequence: reversal of sequences of different lengths."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dualflow.core.errors import DTypeError, InvalidArgumentError
from dualflow.ops.arrangement import expand_dims, transpose
from dualflow.ops.checks import required
from dualflow.ops.comparison import less, less_equal, logical_and
from dualflow.ops.conversion import cast
from dualflow.ops.creation import convert_to_tensor
from dualflow.ops.positions import range as counting
from dualflow.ops.reduction import reduce_all
from dualflow.ops.segments.rows import as_row_indices
from dualflow.ops.selection import where
from dualflow.ops.shapes import shape
from dualflow.ops.taking import gather

if TYPE_CHECKING:
    from dualflow.core.argument_types import TensorLike
    from dualflow.ops.tensor import Tensor


def reverse_sequence(
    input: TensorLike,
    seq_lengths: TensorLike,
    seq_axis: int | None = None,
    batch_axis: int | None = None,
    name: str | None = None,
) -> Tensor:
    """The sequences of a batch, each with its first ``seq_lengths[i]`` elements reversed.

    Args:
        input: a tensor of two axes or more, of any dtype.
        seq_lengths: the number of elements to reverse of each batch element, integers.
        seq_axis: the axis of the sequence; required.
        batch_axis: the axis of the batch; None for the first.

    Returns:
        A tensor with the shape and dtype of ``input``.

    Raises:
        InvalidArgumentError: a length is negative or larger than the axis, there isn't one for each batch
            element, or the axes are equal or out of range.
        DTypeError: the lengths are not integers, or ``seq_axis`` is missing.

    >>> import dualflow as df
    >>> df.reverse_sequence([[1, 2, 3], [4, 5, 6]], [2, 3], seq_axis=1).numpy().tolist()
    [[2, 1, 3], [6, 5, 4]]
    """
    if seq_axis is None:
        raise DTypeError("reverse_sequence takes the axis of the sequences as seq_axis, an int.")
    x, lengths = convert_to_tensor(input), as_row_indices(seq_lengths, "seq_lengths")
    along, batch = seq_axis, batch_axis or 0
    if along == batch or not (0 <= along < len(x.shape) and 0 <= batch < len(x.shape)):
        raise InvalidArgumentError(
            f"seq_axis={along} and batch_axis={batch} are two axes, from 0 on, of shape {x.shape}."
        )
    if len(lengths.shape) != 1 or (None not in (a := lengths.shape[0], b := x.shape[batch]) and a != b):
        raise InvalidArgumentError(
            f"seq_lengths of shape {lengths.shape} are one for each of {x.shape[batch]} members of the batch."
        )
    size = cast(shape(x)[along], lengths.dtype)
    inside = reduce_all(logical_and(lengths >= 0, less_equal(lengths, size)))
    lengths = required(lengths, inside, "seq_lengths are 0 or more and up to the size of the axis.")
    ends, indices = expand_dims(lengths, 1), expand_dims(cast(counting(size), lengths.dtype), 0)
    picked = where(less(indices, ends), ends - 1 - indices, indices)
    others = [axis for axis in range(len(x.shape)) if axis not in (batch, along)]
    order = [batch, along, *others]
    reversed_rows = gather(transpose(x, order), picked, axis=1, batch_dims=1)
    return transpose(reversed_rows, [order.index(axis) for axis in range(len(order))])

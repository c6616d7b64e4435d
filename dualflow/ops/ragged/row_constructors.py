"""The constructors of ragged tensors from partitions of values, and from padded and sparse tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

from dualflow.core.dtypes import int64
from dualflow.core.errors import DTypeError, InvalidArgumentError
from dualflow.core.tracebacks import entry
from dualflow.ops.checks import required
from dualflow.ops.comparison import equal, less_equal
from dualflow.ops.conversion import cast
from dualflow.ops.creation import convert_to_tensor
from dualflow.ops.joining import concat
from dualflow.ops.masking import boolean_mask
from dualflow.ops.positions import range as count_up
from dualflow.ops.positions import sequence_mask
from dualflow.ops.ragged.dense_rows import coordinates, lengths_without_padding
from dualflow.ops.ragged.ragged_rows import RaggedRows
from dualflow.ops.ragged.ragged_spec import from_parts, splits_dtype
from dualflow.ops.ragged.row_gathering import as_ragged
from dualflow.ops.ragged.row_partitions import (
    as_partition,
    checked_splits,
    size_along,
    splits_of_lengths,
    splits_of_row_ids,
)
from dualflow.ops.reduction import reduce_all
from dualflow.ops.sparse.sparse_tensor import SparseTensor
from dualflow.ops.static import static_int

if TYPE_CHECKING:
    from dualflow.core.argument_types import DTypeLike, IntLike, TensorLike


@entry
class RowConstructors(RaggedRows):
    """The class methods of ragged tensors that create one."""

    __slots__ = ()

    @classmethod
    @entry
    def from_row_splits(
        cls, values: TensorLike, row_splits: TensorLike, name: str | None = None, validate: bool = True
    ) -> Self:
        """Rows that begin and end at ``row_splits``.

        Args:
            values: a tensor or a ragged tensor: the rows one after the other.
            row_splits: ascending integers from 0 to the number of values, one more than there are rows.
            name: ignored; as in TensorFlow.
            validate: whether the splits are checked.

        Raises:
            InvalidArgumentError: the splits aren't ascending, or don't end with the number of values.
            DTypeError: they aren't integers.
        """
        values, splits = _values(values), as_partition(row_splits, "row_splits")
        if splits.shape[0] == 0:
            raise InvalidArgumentError("row_splits can't be empty: without rows they are [0].")
        return cls._of(values, splits, validate)

    @classmethod
    @entry
    def from_row_lengths(
        cls, values: TensorLike, row_lengths: TensorLike, name: str | None = None, validate: bool = True
    ) -> Self:
        """Rows of these lengths.

        Args:
            values: a tensor or a ragged tensor: the rows one after the other.
            row_lengths: the length of each row, integers.
            name: ignored; as in TensorFlow.
            validate: whether the lengths are checked to add up to the number of values.

        Raises:
            InvalidArgumentError: they don't, or one is negative.
            DTypeError: they aren't integers.
        """
        lengths = as_partition(row_lengths, "row_lengths")
        return cls._of(_values(values), splits_of_lengths(lengths), validate)

    @classmethod
    @entry
    def from_value_rowids(
        cls,
        values: TensorLike,
        value_rowids: TensorLike,
        nrows: IntLike | None = None,
        name: str | None = None,
        validate: bool = True,
    ) -> Self:
        """Rows of the values with the same row id.

        Args:
            values: a tensor or a ragged tensor: the rows one after the other.
            value_rowids: the row of each value, integers from 0 in ascending order.
            nrows: the number of rows; None for one more than the last row id.
            name: ignored; as in TensorFlow.
            validate: whether the row ids are checked.

        Raises:
            InvalidArgumentError: they aren't in order, one is negative or ``nrows`` or more, or there isn't
                one for each value.
            DTypeError: they aren't integers.
        """
        values, ids = _values(values), as_partition(value_rowids, "value_rowids")
        rows = None if nrows is None else cast(convert_to_tensor(nrows), ids.dtype)
        if validate:
            in_order = reduce_all(less_equal(ids[:-1], ids[1:])) & reduce_all(ids >= 0)
            ids = required(ids, in_order, "value_rowids are 0 or more, and never decrease.")
            if rows is not None:
                message = "value_rowids are below nrows, the number of rows."
                ids = required(ids, reduce_all(ids < rows), message)
        return cls._of(values, splits_of_row_ids(ids, rows), validate)

    @classmethod
    @entry
    def from_row_starts(
        cls, values: TensorLike, row_starts: TensorLike, name: str | None = None, validate: bool = True
    ) -> Self:
        """Rows that begin at ``row_starts``.

        Args:
            values: a tensor or a ragged tensor: the rows one after the other.
            row_starts: where each row begins, ascending integers of which the first is 0.
            name: ignored; as in TensorFlow.
            validate: whether the starts are checked.

        Raises:
            InvalidArgumentError: they aren't ascending from 0, or exceed the number of values.
            DTypeError: they aren't integers.
        """
        values, starts = _values(values), as_partition(row_starts, "row_starts")
        end = size_along(_innermost_rows(values), 0, starts.dtype)
        return cls._of(values, concat([starts, [end]], 0), validate)

    @classmethod
    @entry
    def from_row_limits(
        cls, values: TensorLike, row_limits: TensorLike, name: str | None = None, validate: bool = True
    ) -> Self:
        """Rows that end at ``row_limits``.

        Args:
            values: a tensor or a ragged tensor: the rows one after the other.
            row_limits: where each row ends, ascending integers of which the last is the number of values.
            name: ignored; as in TensorFlow.
            validate: whether the limits are checked.

        Raises:
            InvalidArgumentError: they aren't ascending, or don't end with the number of values.
            DTypeError: they aren't integers.
        """
        limits = as_partition(row_limits, "row_limits")
        splits = concat([convert_to_tensor([0], limits.dtype), limits], 0)
        return cls._of(_values(values), splits, validate)

    @classmethod
    @entry
    def from_uniform_row_length(
        cls,
        values: TensorLike,
        uniform_row_length: IntLike,
        nrows: IntLike | None = None,
        validate: bool = True,
        name: str | None = None,
    ) -> Self:
        """Rows of one length.

        Args:
            values: a tensor or a ragged tensor: the rows one after the other.
            uniform_row_length: the length of each row.
            nrows: the number of rows, which rows of length 0 need; None to compute it.
            validate: whether the number of values is checked.
            name: ignored; as in TensorFlow.

        Raises:
            InvalidArgumentError: the number of values is no multiple of the length, or not that of ``nrows``
                rows; or the length is negative.
        """
        values = _values(values)
        length = static_int(uniform_row_length, "uniform_row_length")
        if length < 0:
            raise InvalidArgumentError(
                f"uniform_row_length is 0 or more, not {length}; give the length of a row."
            )
        count = size_along(_innermost_rows(values), 0)
        rows = (count // max(length, 1) if length else count * 0) if nrows is None else nrows
        splits = count_up(cast(convert_to_tensor(rows), int64) + 1) * length
        return cls._of(values, splits, validate, length)

    @classmethod
    @entry
    def from_nested_row_splits(
        cls,
        flat_values: TensorLike,
        nested_row_splits: Sequence[TensorLike],
        name: str | None = None,
        validate: bool = True,
    ) -> Any:
        """A ragged tensor with several ragged axes, from the row splits of each.

        Args:
            flat_values: the innermost values, a tensor.
            nested_row_splits: the row splits of each ragged axis, the outermost first.
            name: ignored; as in TensorFlow.
            validate: whether the splits are checked.

        Raises:
            InvalidArgumentError: as of :meth:`from_row_splits`.
            DTypeError: as of :meth:`from_row_splits`.
        """
        return _nested(cls.from_row_splits, flat_values, nested_row_splits, validate)

    @classmethod
    @entry
    def from_nested_row_lengths(
        cls,
        flat_values: TensorLike,
        nested_row_lengths: Sequence[TensorLike],
        name: str | None = None,
        validate: bool = True,
    ) -> Any:
        """A ragged tensor with several ragged axes, from the row lengths of each.

        Args:
            flat_values: the innermost values, a tensor.
            nested_row_lengths: the row lengths of each ragged axis, the outermost first.
            name: ignored; as in TensorFlow.
            validate: whether the lengths are checked.

        Raises:
            InvalidArgumentError: as of :meth:`from_row_lengths`.
            DTypeError: as of :meth:`from_row_lengths`.
        """
        return _nested(cls.from_row_lengths, flat_values, nested_row_lengths, validate)

    @classmethod
    @entry
    def from_nested_value_rowids(
        cls,
        flat_values: TensorLike,
        nested_value_rowids: Sequence[TensorLike],
        nested_nrows: Sequence[IntLike | None] | None = None,
        name: str | None = None,
        validate: bool = True,
    ) -> Any:
        """A ragged tensor with several ragged axes, from the row ids of each.

        Args:
            flat_values: the innermost values, a tensor.
            nested_value_rowids: the row ids of each ragged axis, the outermost first.
            nested_nrows: the number of rows of each ragged axis; None to compute them.
            name: ignored; as in TensorFlow.
            validate: whether the row ids are checked.

        Raises:
            InvalidArgumentError: as of :meth:`from_value_rowids`, or there are more numbers than row ids.
            DTypeError: as of :meth:`from_value_rowids`.
        """
        counts = [None] * len(nested_value_rowids) if nested_nrows is None else list(nested_nrows)
        if len(counts) != len(nested_value_rowids):
            raise InvalidArgumentError(
                f"nested_nrows has {len(counts)} numbers for {len(nested_value_rowids)} ragged axes; give "
                "one for each."
            )
        result: Any = flat_values
        for ids, rows in zip(reversed(nested_value_rowids), reversed(counts), strict=True):
            result = cls.from_value_rowids(result, ids, rows, validate=validate)
        return result

    @classmethod
    @entry
    def from_tensor(
        cls,
        tensor: TensorLike,
        lengths: TensorLike | None = None,
        padding: TensorLike | None = None,
        ragged_rank: int = 1,
        name: str | None = None,
        row_splits_dtype: DTypeLike = int64,
    ) -> Any:
        """The rows of a tensor, without padding.

        Args:
            tensor: a tensor of more axes than ``ragged_rank``.
            lengths: the length of each row; None for whole rows.
            padding: the value to remove from the end of each row; None to remove nothing.
            ragged_rank: the number of ragged axes; 1 where ``lengths`` or ``padding`` is given.
            name: ignored; as in TensorFlow.
            row_splits_dtype: int64 or int32.

        Raises:
            InvalidArgumentError: ``tensor`` has too few axes, or both ``lengths`` and ``padding`` are given.
        """
        x, dtype = convert_to_tensor(tensor), splits_dtype(row_splits_dtype)
        if not 0 < ragged_rank < len(x.shape):
            raise InvalidArgumentError(
                f"ragged_rank is at least 1, and less than the number of axes of shape {x.shape}, not "
                f"{ragged_rank}."
            )
        if lengths is None and padding is None:
            template = from_parts(x, convert_to_tensor([0], dtype))
            return as_ragged(x, template, ragged_rank)
        if ragged_rank != 1 or (lengths is not None and padding is not None):
            raise InvalidArgumentError(
                "Rows are cut by lengths or by padding, along the second axis: give one of them, and leave "
                "ragged_rank out."
            )
        counts = lengths_without_padding(x, padding) if lengths is None else as_partition(lengths, "lengths")
        counts = cast(counts, dtype)
        kept = boolean_mask(x, sequence_mask(counts, size_along(x, 1)))
        return cls._of(kept, splits_of_lengths(counts), validate=lengths is not None)

    @classmethod
    @entry
    def from_sparse(
        cls, st_input: SparseTensor, name: str | None = None, row_splits_dtype: DTypeLike = int64
    ) -> Self:
        """The stored elements of each row of a sparse matrix, whose rows have no gaps.

        Args:
            st_input: a SparseTensor of two axes with sorted indices.
            name: ignored; as in TensorFlow.
            row_splits_dtype: int64 or int32.

        Raises:
            DTypeError: ``st_input`` is no SparseTensor.
            InvalidArgumentError: it has another number of axes, or a row has a gap.
        """
        if not isinstance(st_input, SparseTensor):
            raise DTypeError(f"from_sparse takes a SparseTensor, not {st_input!r}; see from_tensor.")
        if len(st_input.shape) != 2:
            raise InvalidArgumentError(
                f"from_sparse takes a matrix, not the shape {st_input.shape}; reshape it."
            )
        ids, columns = st_input.indices[:, 0], st_input.indices[:, 1]
        splits = splits_of_row_ids(ids, st_input.dense_shape[0])
        ragged = cls._of(st_input.values, splits, validate=False)
        index = coordinates(ragged)[1]
        message = "from_sparse takes rows whose columns are 0, 1, 2, ..., without gaps and in order."
        splits = required(splits, reduce_all(equal(columns, index)), message)
        return from_parts(st_input.values, cast(splits, splits_dtype(row_splits_dtype)))

    @classmethod
    def _of(cls, values: Any, splits: Any, validate: bool, uniform: int | None = None) -> Self:
        if isinstance(values, RaggedRows) and values.row_splits.dtype is not splits.dtype:
            values, splits = values.with_row_splits_dtype(int64), cast(splits, int64)
        if validate:
            splits = checked_splits(splits, size_along(_innermost_rows(values), 0, splits.dtype))
        tensor: Self = from_parts(values, splits, uniform)
        return tensor


def _values(x: Any) -> Any:
    """The values of rows: a ragged tensor, or a tensor of one axis or more."""
    if isinstance(x, RaggedRows):
        return x
    tensor = convert_to_tensor(x)
    if not len(tensor.shape):
        raise InvalidArgumentError(
            "values have one axis or more; a scalar has no rows, so put it into a list."
        )
    return tensor


def _innermost_rows(values: Any) -> Any:
    """A tensor with as many rows as ``values``: these themselves, or the starts of their rows."""
    return values.row_starts() if isinstance(values, RaggedRows) else values


def _nested(create: Any, flat_values: Any, partitions: Sequence[Any], validate: bool) -> Any:
    if not isinstance(partitions, list | tuple):
        raise DTypeError(
            f"the partitions of nested rows are a list, not {partitions!r}; give one for each axis."
        )
    result = flat_values
    for partition in reversed(partitions):
        result = create(result, partition, validate=validate)
    return result

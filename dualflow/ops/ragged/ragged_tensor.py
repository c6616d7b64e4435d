"""``RaggedTensor``: a tensor whose rows have different lengths."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from dualflow.core.dtypes import int64
from dualflow.core.errors import DTypeError, InvalidArgumentError
from dualflow.core.tracebacks import entry
from dualflow.ops.arrangement import reshape
from dualflow.ops.conversion import cast
from dualflow.ops.joining import stack
from dualflow.ops.ragged import rules as rules  # which are registered
from dualflow.ops.ragged.dense_rows import (
    array_of_rows,
    coordinates,
    nested_list,
    padded,
)
from dualflow.ops.ragged.flat_values import map_elements
from dualflow.ops.ragged.ragged_rows import RaggedRows
from dualflow.ops.ragged.ragged_spec import from_parts
from dualflow.ops.ragged.row_constructors import RowConstructors
from dualflow.ops.ragged.row_gathering import getitem
from dualflow.ops.ragged.row_partitions import (
    longest,
    size_along,
)
from dualflow.ops.sparse.sparse_tensor import SparseTensor
from dualflow.ops.static import static_value
from dualflow.ops.taking import gather
from dualflow.ops.tensor import Operators
from dualflow.ops.tensor_sizes import axis_sizes

if TYPE_CHECKING:
    from dualflow.core.argument_types import DTypeLike, IntLike, ShapeLike, TensorLike
    from dualflow.ops.record import Op
    from dualflow.ops.tensor import Tensor


@entry
class RaggedTensor(RowConstructors, Operators):  # type: ignore[override]  # shape and dtype are computed
    """A tensor whose rows have different lengths: values, and the row splits that partition them into rows.

    It is created by ``df.ragged.constant`` and the methods ``from_...`` of this class. Elementwise ops,
    reductions, ``df.concat``, ``df.gather`` and the other functions named in ``docs/ragged.md`` take it; for
    other ops ``to_tensor()`` pads the rows. It is a structure of tensors: traced functions take and return
    it, and gradients flow to its ``flat_values``.

    Args:
        args, kwargs: a call of the class is an error.

    Raises:
        DTypeError: always.

    >>> import dualflow as df
    >>> x = df.RaggedTensor.from_row_splits(values=[3, 1, 4, 1, 5], row_splits=[0, 2, 2, 5])
    >>> x.to_list(), (x * 10).to_list(), df.reduce_sum(x, axis=1).numpy().tolist()
    ([[3, 1], [], [4, 1, 5]], [[30, 10], [], [40, 10, 50]], [4, 0, 10])
    """

    __slots__ = ()

    @entry
    def __new__(cls, *args: object, **kwargs: object) -> Self:
        raise DTypeError(
            "A RaggedTensor is created by RaggedTensor.from_row_splits and its like, or df.ragged.constant."
        )

    # Conversions

    def to_list(self) -> Any:
        """The elements as nested lists.

        Raises:
            InvalidArgumentError: the values are symbolic, in a traced function.
        """
        values = self.flat_values.static_value()
        splits = [x.static_value() for x in self.nested_row_splits]
        if values is None or any(x is None for x in splits):
            raise InvalidArgumentError(
                "to_list() needs the values of a RaggedTensor, which are symbolic while a function is "
                "traced; return it, and call to_list() on the result."
            )
        return nested_list(values, tuple(splits))

    def numpy(self) -> np.ndarray[Any, Any]:
        """The rows as a new NumPy array; an array of objects, one per row, if their lengths differ.

        Raises:
            InvalidArgumentError: the values are symbolic, in a traced function.
        """
        self.to_list()  # which raises the error
        values: Any = np.asarray(self.flat_values)
        for splits in reversed(self.nested_row_splits):
            values = array_of_rows(values, np.asarray(splits))
        array: np.ndarray[Any, Any] = values
        return array

    def to_tensor(
        self,
        default_value: TensorLike | None = None,
        name: str | None = None,
        shape: ShapeLike | None = None,
    ) -> Tensor:
        """A tensor with the rows, padded at their ends.

        Args:
            default_value: the padding, a scalar or of the shape of one of the innermost values; None for 0,
                False or the empty string.
            name: ignored; as in TensorFlow.
            shape: the sizes of the result: longer rows are cut; None, or sizes that are None, for those of
                the longest rows.

        Raises:
            InvalidArgumentError: ``shape`` has another number of axes, or ``default_value`` too many.
        """
        tensor: Tensor = padded(self, default_value, shape)
        return tensor

    def to_sparse(self, name: str | None = None) -> SparseTensor:
        """A SparseTensor of the values at their positions.

        Args:
            name: ignored; as in TensorFlow.

        Raises:
            InvalidArgumentError: the innermost values have more than one axis.
        """
        if len(self.flat_values.shape) != 1:
            raise InvalidArgumentError(
                f"to_sparse() takes innermost values of one axis, not of shape {self.flat_values.shape}; "
                "give a larger ragged_rank."
            )
        indices = stack([cast(column, int64) for column in coordinates(self)], 1)
        bounds = cast(self.bounding_shape(), int64)
        sizes = static_value(bounds)
        return SparseTensor(indices, self.flat_values, bounds if sizes is None else sizes)

    def bounding_shape(
        self, axis: IntLike | None = None, name: str | None = None, out_type: DTypeLike | None = None
    ) -> Tensor:
        """The sizes of the smallest tensor that holds the rows: for each axis the largest length.

        Args:
            axis: an axis; None for all.
            name: ignored; as in TensorFlow.
            out_type: int32 or int64; None for the dtype of the row splits.
        """
        dtype = self.row_splits.dtype
        widths = [longest(lengths) for lengths in self.nested_row_lengths()]
        flat = self.flat_values
        inner = [size_along(flat, at, dtype) for at in range(1, len(flat.shape))]
        bounds = self._in_dtype(stack([self.nrows(), *widths, *inner], 0), out_type)
        result: Tensor = bounds if axis is None else bounds[axis]
        return result

    def merge_dims(self, outer_axis: int, inner_axis: int) -> Any:
        """The ragged tensor with some adjacent axes merged into one.

        Args:
            outer_axis: the first of the axes.
            inner_axis: the last of them.

        Returns:
            A ragged tensor, or a tensor if no ragged axis is left.

        Raises:
            InvalidArgumentError: there are no such axes, or the last comes before the first.
        """
        rank = len(self.shape)
        first = outer_axis + rank if outer_axis < 0 else outer_axis
        last = inner_axis + rank if inner_axis < 0 else inner_axis
        if not 0 <= first <= last < rank:
            raise InvalidArgumentError(
                f"axes {outer_axis} to {inner_axis} are not in order among {rank} axes."
            )
        return _merged(self, first, last)

    # Python

    @entry
    def __getitem__(self, key: Any) -> Any:
        return getitem(self, key)

    @entry
    def __iter__(self) -> Iterator[Any]:
        count = static_value(self.nrows())
        if count is None:
            raise DTypeError(
                "Iterating over a symbolic RaggedTensor is not allowed while a function is traced; loop over "
                "its rows with df.range(x.nrows()) and x[i]."
            )
        return (self[i] for i in range(int(count)))

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int | None:
        """The number of innermost elements; None inside a traced function if it is unknown."""
        return self.flat_values.shape.num_elements()

    def __map_elements__(self, op: Op, inputs: Sequence[Any], attrs: dict[str, Any]) -> Any:
        """The result of an elementwise op of ragged tensors of the same rows."""
        return map_elements(op, inputs, attrs)

    def __reduce__(self) -> tuple[Any, ...]:
        return from_parts, (self._values, self._row_splits, self._uniform_row_length)

    def __repr__(self) -> str:
        if self.flat_values.static_value() is None or self.row_splits.static_value() is None:
            return f"tf.RaggedTensor(values={self._values!r}, row_splits={self._row_splits!r})"
        return f"<tf.RaggedTensor {self.to_list()!r}>"

    __str__ = __repr__


def _merged(x: Any, first: int, last: int) -> Any:
    """``x`` with the axes from ``first`` to ``last`` merged."""
    if first == last:
        return x
    if not isinstance(x, RaggedRows):
        sizes = axis_sizes(x, int64)
        return reshape(x, [*sizes[:first], prod(sizes[first : last + 1]), *sizes[last + 1 :]])
    if first == 0:
        return _merged(x.values, 0, last - 1)
    if first > 1:
        return x.with_parts(_merged(x.values, first - 1, last - 1), x.row_splits, x._uniform_row_length)
    values = x.values  # first == 1: merge the outer partition with the next one
    if isinstance(values, RaggedRows):
        outer = x.with_parts(values.values, gather(values.row_splits, x.row_splits))
    else:
        size = size_along(values, 1, x.row_splits.dtype)
        outer = x.with_parts(_merged(values, 0, 1), x.row_splits * size)
    return _merged(outer, 1, last - 1)

"""``RaggedRows``: the parts of a ragged tensor, and what follows from them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from dualflow.core.composite_rules import CompositeError
from dualflow.core.composite_tensor import CompositeTensor
from dualflow.core.dispatch import DifferentiableComposite
from dualflow.core.dtypes import DType
from dualflow.core.errors import InvalidArgumentError
from dualflow.core.shape import UNKNOWN_RANK, Shape, normalize_axis
from dualflow.core.tracebacks import entry
from dualflow.core.tree import flatten
from dualflow.ops.conversion import cast
from dualflow.ops.creation import convert_to_tensor, fill
from dualflow.ops.ragged.ragged_spec import RaggedStructure, RaggedTensorSpec, from_parts, splits_dtype
from dualflow.ops.ragged.row_partitions import (
    lengths_of_splits,
    number_of_rows,
    row_ids,
    size_along,
)
from dualflow.ops.static import static_int

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dualflow.core.argument_types import DTypeLike, IntLike, ShapeLike, TensorLike
    from dualflow.core.spec import TensorSpec
    from dualflow.ops.tensor import Tensor


@entry
class RaggedRows(CompositeTensor, DifferentiableComposite):
    """The values of a ragged tensor, which may be ragged, and the row splits that partition them."""

    __slots__ = ("_row_splits", "_uniform_row_length", "_values")
    _values: Any
    _row_splits: Any
    _uniform_row_length: Any  # an int, a scalar tensor if it is dynamic, or None

    def with_parts(
        self, values: object, row_splits: object, uniform_row_length: IntLike | None = None
    ) -> Self:
        """A ragged tensor of these parts, with the class of this one; they are not checked."""
        return from_parts(values, row_splits, uniform_row_length)

    # Parts

    @property
    def values(self) -> Any:
        """The rows one after the other: a tensor, or a ragged tensor if the rows are ragged."""
        return self._values

    @property
    def row_splits(self) -> Tensor:
        """The index in ``values`` at which each row begins, and at the end the number of values."""
        splits: Tensor = self._row_splits
        return splits

    @property
    def flat_values(self) -> Tensor:
        """The innermost values, a tensor."""
        values: Tensor = self._values.flat_values if isinstance(self._values, RaggedRows) else self._values
        return values

    @property
    def nested_row_splits(self) -> tuple[Tensor, ...]:
        """The row splits of each ragged axis, the outermost first."""
        inner = self._values.nested_row_splits if isinstance(self._values, RaggedRows) else ()
        return self._row_splits, *inner

    @property
    def ragged_rank(self) -> int:
        """The number of partitions: 1, and one more for each level of ragged values."""
        return len(self.nested_row_splits)

    @property
    def uniform_row_length(self) -> Tensor | None:
        """The length of all rows, if the ragged tensor was created with one; None otherwise."""
        if self._uniform_row_length is None:
            return None
        return cast(convert_to_tensor(self._uniform_row_length), self._row_splits.dtype)

    @property
    def _static_row_length(self) -> int | None:
        """The length of all rows, if it is known in a trace; None otherwise."""
        return self._uniform_row_length if isinstance(self._uniform_row_length, int) else None

    @property
    def dtype(self) -> DType:
        """The dtype of the values."""
        dtype: DType = self._values.dtype
        return dtype

    @property
    def shape(self) -> Shape:
        """The static shape: None for the size of a ragged axis, and for sizes that are unknown in a trace."""
        splits = self._row_splits.shape[0]
        rows = None if splits is None else splits - 1
        return Shape([rows, self._static_row_length, *self._values.shape[1:]])

    def get_shape(self) -> Shape:
        """TensorFlow's other name of ``shape``."""
        return self.shape

    # Copies with other parts

    def with_values(self, new_values: TensorLike) -> Self:
        """The ragged tensor with other values in the same rows.

        Args:
            new_values: a tensor or a ragged tensor with as many rows as ``values``.

        Raises:
            InvalidArgumentError: there are more or fewer.
        """
        values: Any = new_values if isinstance(new_values, RaggedRows) else convert_to_tensor(new_values)
        if not len(values.shape) or not values.shape[:1].is_compatible_with(self._values.shape[:1]):
            raise InvalidArgumentError(
                f"{self._values.shape[0]} values of rows can't be replaced by values of shape "
                f"{values.shape}; give as many."
            )
        return self.with_parts(values, self._row_splits, self._uniform_row_length)

    def with_flat_values(self, new_values: TensorLike) -> Self:
        """The ragged tensor with other innermost values in the same rows.

        Args:
            new_values: a tensor with as many rows as ``flat_values``.

        Raises:
            InvalidArgumentError: there are more or fewer.
        """
        if isinstance(self._values, RaggedRows):
            return self.with_values(self._values.with_flat_values(new_values))
        return self.with_values(new_values)

    def with_row_splits_dtype(self, dtype: DTypeLike) -> Self:
        """The ragged tensor with row splits of another dtype.

        Args:
            dtype: int32 or int64.

        Raises:
            DTypeError: the dtype is not supported.
        """
        target = splits_dtype(dtype)
        values = self._values
        if isinstance(values, RaggedRows):
            values = values.with_row_splits_dtype(target)
        return self.with_parts(values, cast(self._row_splits, target), self._uniform_row_length)

    # Partitions

    def nrows(self, out_type: DTypeLike | None = None) -> Tensor:
        """The number of rows.

        Args:
            out_type: int32 or int64; None for the dtype of the row splits.
        """
        return self._in_dtype(number_of_rows(self._row_splits), out_type)

    def row_starts(self) -> Tensor:
        """The index in ``values`` at which each row begins."""
        starts: Tensor = self._row_splits[:-1]
        return starts

    def row_limits(self) -> Tensor:
        """The index in ``values`` after the last value of each row."""
        limits: Tensor = self._row_splits[1:]
        return limits

    def value_rowids(self) -> Tensor:
        """The row of each of ``values``."""
        ids: Tensor = row_ids(self._row_splits)
        return ids

    def nested_value_rowids(self) -> tuple[Tensor, ...]:
        """The row ids of each ragged axis, the outermost first."""
        return tuple([row_ids(splits) for splits in self.nested_row_splits])

    def row_lengths(self, axis: IntLike = 1) -> Any:
        """The lengths of the rows along an axis.

        Args:
            axis: the axis whose sizes these are: 1 for those of the outermost rows, larger for those of
                inner rows, which are ragged themselves.

        Returns:
            A vector with the length of each row; for an inner axis a ragged tensor of them.

        Raises:
            InvalidArgumentError: there is no such axis.
        """
        at = normalize_axis(static_int(axis, "axis"), len(self.shape))
        if at == 0:
            return self.nrows()
        if at == 1:
            return lengths_of_splits(self._row_splits)
        if isinstance(self._values, RaggedRows):
            return self.with_values(self._values.row_lengths(at - 1))
        sizes = [size_along(self._values, i, self._row_splits.dtype) for i in range(at)]
        return self.with_values(fill(sizes[:-1], sizes[-1]))

    def nested_row_lengths(self) -> tuple[Tensor, ...]:
        """The lengths of the rows of each ragged axis, the outermost first, as vectors."""
        return tuple([lengths_of_splits(splits) for splits in self.nested_row_splits])

    def _in_dtype(self, x: Any, dtype: Any) -> Any:
        return x if dtype is None else cast(x, splits_dtype(dtype))

    def set_shape(self, shape: ShapeLike) -> None:
        """Check the static shape against ``shape``.

        Args:
            shape: the sizes; None for any size.

        Raises:
            InvalidArgumentError: a size is another.
        """
        self.shape.assert_is_compatible_with(shape)  # type: ignore[arg-type]  # as_shape converts them

    # The interface of composites

    def __as_tensor__(self) -> Any:
        """Raises an error: the conversion to a tensor must be explicit.

        Raises:
            CompositeError: always.
        """
        raise CompositeError(
            f"A RaggedTensor of shape {self.shape} was passed where a tensor is required. x.to_tensor() pads "
            "its rows, and df.ragged.map_flat_values(function, x) computes with its values.",
            self,
        )

    @property
    def _type_spec(self) -> RaggedTensorSpec:
        return RaggedTensorSpec.from_value(self)

    def __invariant__(self, shape: Shape) -> Sequence[TensorSpec] | None:
        sizes = Shape([None] * len(self.shape)) if shape is UNKNOWN_RANK else shape
        if len(sizes) != len(self.shape):
            return None
        specs: Sequence[TensorSpec]
        specs, _ = flatten(RaggedTensorSpec(sizes, self.dtype, self.ragged_rank, self.row_splits.dtype))
        return specs

    def __tree__(self) -> tuple[Any, tuple[str, ...], list[Any]]:
        """The ragged tensor as a structure of its values and row splits."""
        structure = RaggedStructure(self._static_row_length)
        return structure, ("values", "row_splits"), [self._values, self._row_splits]

"""The spec and the structure of ragged tensors: what describes one without its tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from dualflow.core.dispatch import AbstractComposite
from dualflow.core.dtypes import DType, as_dtype, float32, int32, int64
from dualflow.core.errors import DTypeError, InvalidArgumentError
from dualflow.core.locks import imported
from dualflow.core.records import dataclass
from dualflow.core.shape import UNKNOWN_RANK, Shape, as_shape
from dualflow.core.spec import TensorSpec
from dualflow.core.tracebacks import entry
from dualflow.core.type_spec import TreeSpec

if TYPE_CHECKING:
    from dualflow.core.argument_types import DTypeLike, ShapeLike

_RAGGED_TENSOR: Final = "dualflow.ops.ragged.ragged_tensor"
"""The module of RaggedTensor, which imports this one."""


def ragged_class() -> type[Any]:
    """RaggedTensor."""
    loaded: type[Any] = imported(_RAGGED_TENSOR).RaggedTensor
    return loaded


def from_parts(values: Any, row_splits: Any, uniform_row_length: Any = None) -> Any:
    """A ragged tensor from parts that fit, without checks.

    A trace keeps a dynamic length of all rows as a scalar tensor, since splits of no rows don't have it.
    """
    tensor: Any = object.__new__(ragged_class())
    tensor._values, tensor._row_splits = values, row_splits
    tensor._uniform_row_length = uniform_row_length
    return tensor


def splits_dtype(dtype: Any) -> DType:
    """A dtype of row splits, checked to be int32 or int64.

    Raises:
        DTypeError: another one.
    """
    target = as_dtype(dtype)
    if target not in (int32, int64):
        raise DTypeError(f"row splits are int32 or int64, not {target.name}; name one of these.")
    return target


@dataclass(frozen=True, slots=True)
class RaggedStructure:
    """The part of a ragged tensor that is not tensors: the length of all rows, if it has one."""

    uniform_row_length: int | None = None
    __name__ = "RaggedTensor"

    def __call__(self, values: Any, row_splits: Any) -> Any:
        """The ragged tensor of these parts, or its spec if they are specs."""
        if not isinstance(row_splits, TensorSpec):
            return from_parts(values, row_splits, self.uniform_row_length)
        ends = row_splits.shape[0]
        shape = [None if ends is None else ends - 1, self.uniform_row_length, *values.shape[1:]]
        rank = values.ragged_rank + 1 if isinstance(values, RaggedTensorSpec) else 1
        return RaggedTensorSpec(shape, values.dtype, rank, row_splits.dtype)


@entry
class RaggedTensorSpec(TreeSpec):
    """The shape, dtype and ragged axes of a RaggedTensor.

    Args:
        shape: the shape; None, or sizes that are None, for any.
        dtype: the dtype of the values; float32 by default.
        ragged_rank: the number of ragged axes; None for all but the first.
        row_splits_dtype: int64 or int32; int64 by default.

    Raises:
        InvalidArgumentError: ``ragged_rank`` is not less than the number of axes.

    >>> import dualflow as df
    >>> df.RaggedTensorSpec([2, None], df.int32)
    RaggedTensorSpec(TensorShape([2, None]), tf.int32, 1, tf.int64)
    """

    __slots__ = ("dtype", "ragged_rank", "row_splits_dtype", "shape")

    @entry
    def __init__(
        self,
        shape: ShapeLike | None = None,
        dtype: DTypeLike = float32,
        ragged_rank: int | None = None,
        row_splits_dtype: DTypeLike = int64,
    ) -> None:
        self.shape: Final[Shape] = as_shape(shape)
        self.dtype: Final[DType] = as_dtype(dtype)
        self.row_splits_dtype: Final[DType] = splits_dtype(row_splits_dtype)
        has_rank = self.shape is not UNKNOWN_RANK
        if ragged_rank is None and not has_rank:
            raise InvalidArgumentError("Must specify ragged_rank, or a shape with a known number of axes.")
        self.ragged_rank: Final[int] = len(self.shape) - 1 if ragged_rank is None else ragged_rank
        if self.ragged_rank < 1 or (has_rank and self.ragged_rank >= len(self.shape)):
            raise InvalidArgumentError(
                f"ragged_rank is at least 1 and less than the number of axes of {self.shape}, not "
                f"{self.ragged_rank}; a tensor without ragged axes has a TensorSpec."
            )

    @property
    def value_type(self) -> type:
        """RaggedTensor, the class of the values that it describes."""
        return ragged_class()

    @classmethod
    def from_value(cls, value: AbstractComposite) -> RaggedTensorSpec:
        """The spec of an existing RaggedTensor.

        Args:
            value: the RaggedTensor.
        """
        ragged: Any = value
        return cls(ragged.shape, ragged.dtype, ragged.ragged_rank, ragged.row_splits.dtype)

    def __tree__(self) -> tuple[Any, tuple[str, ...], list[Any]]:
        """The specs of the tensors: what an ``input_signature`` describes."""
        rows = self.shape[0]
        splits = TensorSpec([None if rows is None else rows + 1], self.row_splits_dtype)
        inner = [None, *self.shape[2:]]
        values: Any = TensorSpec(inner, self.dtype)
        if self.ragged_rank > 1:
            values = RaggedTensorSpec(inner, self.dtype, self.ragged_rank - 1, self.row_splits_dtype)
        return RaggedStructure(self.shape[1]), ("values", "row_splits"), [values, splits]

    def _serialize(self) -> tuple[Any, ...]:
        return self.shape, self.dtype, self.ragged_rank, self.row_splits_dtype

    def __repr__(self) -> str:
        return (
            f"RaggedTensorSpec(TensorShape({self.shape.as_list()}), {self.dtype!r}, {self.ragged_rank}, "
            f"{self.row_splits_dtype!r})"
        )

"""``IndexedSlices``: some slices of a tensor along its first axis with their indices; and its spec."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from dualflow.core.composite_tensor import CompositeTensor
from dualflow.core.dispatch import DifferentiableComposite
from dualflow.core.dtypes import DType, as_dtype, float32, int64
from dualflow.core.errors import InvalidArgumentError
from dualflow.core.records import dataclass
from dualflow.core.shape import Shape, as_shape
from dualflow.core.spec import TensorSpec
from dualflow.core.tracebacks import entry
from dualflow.core.type_spec import TreeSpec
from dualflow.ops.arrangement import expand_dims
from dualflow.ops.creation import convert_to_tensor
from dualflow.ops.scattering import scatter_nd
from dualflow.ops.static import shape_argument, static_value

if TYPE_CHECKING:
    from dualflow.core.argument_types import DTypeLike, ShapeLike, TensorLike
    from dualflow.ops.tensor import Tensor


@dataclass(frozen=True, slots=True)
class SlicesStructure:
    """The part of IndexedSlices that is not tensors: the shape of the whole, or None."""

    shape: Shape | None
    __name__ = "IndexedSlices"

    def __call__(self, values: Any, indices: Any, dense_shape: Any = None) -> IndexedSlices:
        """The IndexedSlices of these tensors."""
        return _make(values, indices, self.shape, dense_shape)


@entry
class IndexedSlices(CompositeTensor, DifferentiableComposite):
    """Some slices of a tensor along its first axis: ``whole[indices[i]]`` is ``values[i]``, others are 0.

    Slices of one index are added. Ops take the whole tensor, for which ``dense_shape`` must be known. It is a
    structure of tensors: traced functions, branches and loops take and return it.

    Args:
        values: the slices, of shape ``(n, ...)`` and any dtype.
        indices: the index of each slice, integers of shape ``(n,)``.
        dense_shape: the shape of the whole tensor; None if it is unknown.

    Raises:
        InvalidArgumentError: there are not as many slices as indices.

    >>> import dualflow as df
    >>> rows = df.IndexedSlices(values=[[1.0, 2.0]], indices=[1], dense_shape=[3, 2])
    >>> df.convert_to_tensor(rows).numpy().tolist()
    [[0.0, 0.0], [1.0, 2.0], [0.0, 0.0]]
    """

    __slots__ = ("_dense_shape", "_indices", "_shape", "_values")
    _values: Tensor
    _indices: Tensor
    _shape: Shape | None
    _dense_shape: Tensor | None

    @entry
    def __init__(self, values: TensorLike, indices: TensorLike, dense_shape: ShapeLike | None = None) -> None:
        self._values, self._indices = convert_to_tensor(values), convert_to_tensor(indices)
        self._shape, self._dense_shape = _split_shape(dense_shape)
        counts = self._values.shape[:1], self._indices.shape
        if len(counts[1]) != 1 or len(counts[0]) != 1 or not counts[0].is_compatible_with(counts[1]):
            raise InvalidArgumentError(
                f"IndexedSlices have one index for each slice, but the values have shape "
                f"{self._values.shape} and the indices {self._indices.shape}; give as many of both."
            )

    @property
    def values(self) -> Tensor:
        """The slices, of shape ``(n, ...)``."""
        return self._values

    @property
    def indices(self) -> Tensor:
        """The index of each slice, of shape ``(n,)``."""
        return self._indices

    @property
    def dense_shape(self) -> Tensor | None:
        """The shape of the whole tensor, integers; None if it is unknown."""
        return self._dense_shape

    @property
    def shape(self) -> Shape:
        """The shape of the whole tensor; its first size is None if it is unknown."""
        return Shape([None, *self._values.shape[1:]]) if self._shape is None else self._shape

    @property
    def dtype(self) -> DType:
        """The dtype of the slices."""
        return self._values.dtype

    @property
    def device(self) -> str:
        """The device that holds the slices."""
        return self._values.device

    def with_values(self, new_values: TensorLike) -> IndexedSlices:
        """The IndexedSlices with other slices at the same indices.

        Args:
            new_values: as many slices.
        """
        return _make(convert_to_tensor(new_values), self._indices, self._shape, self._dense_shape)

    def __as_tensor__(self) -> Tensor:
        """These slices as a dense tensor, with zeros in the other rows.

        Raises:
            InvalidArgumentError: its shape is unknown.
        """
        if self._dense_shape is None:
            raise InvalidArgumentError(
                f"IndexedSlices of {self._values.shape} without dense_shape can't become a tensor, whose "
                "shape is unknown; give dense_shape=[...]."
            )
        return scatter_nd(expand_dims(self._indices, -1), self._values, self._dense_shape)

    @property
    def _type_spec(self) -> IndexedSlicesSpec:
        return IndexedSlicesSpec.from_value(self)

    def __neg__(self) -> IndexedSlices:
        return self.with_values(-self._values)

    def __tree__(self) -> tuple[Any, tuple[str, ...], list[Any]]:
        """The structure, names and leaves of the slices; a static dense shape is part of the structure."""
        parts: list[Any] = [self._values, self._indices]
        if self._dense_shape is None or self.shape.is_static:
            return SlicesStructure(self._shape), ("values", "indices"), parts
        return SlicesStructure(self._shape), ("values", "indices", "dense_shape"), [*parts, self._dense_shape]

    def __repr__(self) -> str:
        shown = "" if self._dense_shape is None else f", dense_shape={self._dense_shape!s}"
        return f"IndexedSlices(indices={self._indices!s}, values={self._values!s}{shown})"


@entry
class IndexedSlicesSpec(TreeSpec):
    """The shapes and dtypes of IndexedSlices.

    Args:
        shape: the shape of the whole tensor; its first size may be None.
        dtype: the dtype of the slices; float32 by default.
        indices_dtype: the dtype of the indices; int64 by default.
        dense_shape_dtype: the dtype of ``dense_shape``; None if there is none.
        indices_shape: ``[n]``, the number of slices; None for any.

    >>> import dualflow as df
    >>> df.IndexedSlicesSpec([2, 3], df.int32)
    IndexedSlicesSpec((2, 3), tf.int32, tf.int64, None, (None,))
    """

    __slots__ = ("dense_shape_dtype", "dtype", "indices_dtype", "indices_shape", "shape")
    value_type = IndexedSlices

    def __init__(
        self,
        shape: ShapeLike | None = None,
        dtype: DTypeLike = float32,
        indices_dtype: DTypeLike = int64,
        dense_shape_dtype: DTypeLike | None = None,
        indices_shape: ShapeLike | None = None,
    ) -> None:
        self.shape: Final[Shape] = as_shape(shape)
        self.dtype: Final[DType] = as_dtype(dtype)
        self.indices_dtype: Final[DType] = as_dtype(indices_dtype)
        self.dense_shape_dtype = None if dense_shape_dtype is None else as_dtype(dense_shape_dtype)
        self.indices_shape: Final[Shape] = as_shape([None] if indices_shape is None else indices_shape)

    @classmethod
    def from_value(cls, value: IndexedSlices) -> IndexedSlicesSpec:
        """The spec of existing IndexedSlices.

        Args:
            value: the IndexedSlices.
        """
        dense_shape = value.dense_shape
        kind = None if dense_shape is None else dense_shape.dtype
        return cls(value.shape, value.dtype, value.indices.dtype, kind, value.indices.shape)

    def __tree__(self) -> tuple[Any, tuple[str, ...], list[Any]]:
        """The specs of the tensors: what an ``input_signature`` describes."""
        slices = TensorSpec([*self.indices_shape, *self.shape[1:]], self.dtype)
        shape = None if self.dense_shape_dtype is None else self.shape
        parts = [slices, TensorSpec(self.indices_shape, self.indices_dtype)]
        return SlicesStructure(shape), ("values", "indices"), parts

    def _serialize(self) -> tuple[Any, ...]:
        dtypes = self.dtype, self.indices_dtype, self.dense_shape_dtype
        return self.shape, *dtypes, self.indices_shape


def _make(values: Any, indices: Any, shape: Shape | None, dense_shape: Any) -> IndexedSlices:
    """IndexedSlices from parts that fit, without checks."""
    slices = object.__new__(IndexedSlices)
    slices._values, slices._indices, slices._shape = values, indices, shape
    slices._dense_shape = (
        convert_to_tensor(shape) if dense_shape is None and shape is not None else dense_shape
    )
    return slices


def _split_shape(dense_shape: Any) -> tuple[Shape | None, Tensor | None]:
    """The static shape, and the tensor of the shape."""
    if dense_shape is None:
        return None, None
    tensor = convert_to_tensor(dense_shape)
    value = static_value(tensor)
    if value is not None:
        return Shape(shape_argument(value, "dense_shape")), tensor
    return Shape([None] * dense_shape.shape[0]), tensor

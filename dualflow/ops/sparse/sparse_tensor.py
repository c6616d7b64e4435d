"""``SparseTensor``: a tensor that stores some elements with their indices; and its spec."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np

from dualflow.core import dispatch
from dualflow.core.composite_rules import CompositeError
from dualflow.core.composite_tensor import CompositeTensor
from dualflow.core.dispatch import AbstractTensor, DifferentiableComposite
from dualflow.core.dtypes import DType, as_dtype, float32, int64
from dualflow.core.errors import DTypeError, InvalidArgumentError
from dualflow.core.records import dataclass
from dualflow.core.shape import Shape, as_shape, broadcast
from dualflow.core.spec import TensorSpec
from dualflow.core.tracebacks import entry
from dualflow.core.type_spec import TreeSpec
from dualflow.ops.conversion import cast
from dualflow.ops.creation import convert_to_tensor
from dualflow.ops.scattering import gather_nd
from dualflow.ops.static import shape_argument, static_value

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dualflow.core.argument_types import DTypeLike, ShapeLike, TensorLike
    from dualflow.ops.record import Op
    from dualflow.ops.tensor import Tensor


@dataclass(frozen=True, slots=True)
class SparseStructure:
    """The part of a SparseTensor that is not tensors: its static shape."""

    shape: Shape
    __name__ = "SparseTensor"
    can_be_stacked: ClassVar = False
    """Stacks of its tensors, and their rows, are no SparseTensors."""

    def __call__(self, indices: Any, values: Any, dense_shape: Any = None) -> Any:
        """The SparseTensor of these tensors, or its spec if they are specs and its shape is static."""
        if isinstance(values, TensorSpec) and self.shape.is_static:
            return SparseTensorSpec(self.shape, values.dtype)
        return sparse_from_parts(indices, values, self.shape, dense_shape)


@entry
class SparseTensor(CompositeTensor, DifferentiableComposite):
    """A tensor of which only some elements are stored; all others are 0.

    Functions of ``df.sparse`` take it; those that depend on the order need sorted indices
    (:func:`dualflow.sparse.reorder`). So do elementwise functions of one tensor that map 0 to 0, such as
    ``df.cast``, ``df.abs`` and ``df.tanh``. It is a structure of tensors: traced functions, branches and
    loops take and return it, with a trace for each shape, and gradients flow to its ``values``.

    Args:
        indices: the position of each stored element, int64 of shape ``(n, rank)``.
        values: the elements, of shape ``(n,)`` and any dtype.
        dense_shape: the sizes of the whole tensor: ``rank`` integers.

    Raises:
        InvalidArgumentError: the three don't fit together.

    >>> import dualflow as df
    >>> x = df.SparseTensor(indices=[[0, 1], [1, 2]], values=[1.0, 2.0], dense_shape=[2, 4])
    >>> x.shape, df.sparse.to_dense(x).numpy().tolist()
    ((2, 4), [[0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 2.0, 0.0]])
    """

    __slots__ = ("_dense_shape", "_indices", "_shape", "_values")
    _indices: Tensor
    _values: Tensor
    _shape: Shape
    _dense_shape: Tensor | None

    @entry
    def __init__(self, indices: TensorLike, values: TensorLike, dense_shape: ShapeLike) -> None:
        self._indices = _as_int64(indices)
        self._values = convert_to_tensor(values)
        self._shape, self._dense_shape = _split_shape(dense_shape)
        _check(self._indices.shape, self._values.shape, self._shape)

    @classmethod
    @entry
    def from_value(cls, sparse_tensor_value: object) -> SparseTensor:
        """A SparseTensor from an object with ``indices``, ``values`` and ``dense_shape``.

        Args:
            sparse_tensor_value: a SparseTensor, or for example TensorFlow 1's SparseTensorValue.

        Raises:
            DTypeError: it lacks one of the attributes.
        """
        if isinstance(sparse_tensor_value, SparseTensor):
            return sparse_tensor_value
        try:
            parts = [getattr(sparse_tensor_value, name) for name in ("indices", "values", "dense_shape")]
        except AttributeError:
            raise DTypeError(
                f"A SparseTensor is made of something with indices, values and dense_shape, not "
                f"{sparse_tensor_value!r}; see df.sparse.from_dense."
            ) from None
        return cls(*parts)

    @property
    def indices(self) -> Tensor:
        """The position of each stored element: int64 of shape ``(n, rank)``."""
        return self._indices

    @property
    def values(self) -> Tensor:
        """The stored elements, of shape ``(n,)``."""
        return self._values

    @property
    def dense_shape(self) -> Tensor:
        """The sizes of the whole tensor: int64 of shape ``(rank,)``."""
        if self._dense_shape is None:
            return convert_to_tensor(np.array(self._shape, np.int64))
        return self._dense_shape

    @property
    def shape(self) -> Shape:
        """The static shape of the whole tensor; None for a size that is unknown while tracing."""
        return self._shape

    @property
    def dtype(self) -> DType:
        """The dtype of the elements."""
        return self._values.dtype

    def get_shape(self) -> Shape:
        """TensorFlow's other name of ``shape``."""
        return self._shape

    def set_shape(self, shape: ShapeLike) -> None:
        """Merge ``shape`` into the static shape.

        Args:
            shape: sizes; None for unknown ones.

        Raises:
            InvalidArgumentError: a known size is another.
        """
        self._shape = self._shape.merge_with(as_shape(shape))

    def sizes(self) -> list[Any]:
        """Each size, an int if it is static, else a scalar tensor."""
        return [self.dense_shape[i] if d is None else d for i, d in enumerate(self._shape)]

    def with_values(self, new_values: TensorLike) -> SparseTensor:
        """The SparseTensor with other values, which may have another dtype, at the same positions.

        Args:
            new_values: as many values.

        Raises:
            InvalidArgumentError: there are more or fewer values.
        """
        values = convert_to_tensor(new_values)
        _check(self._indices.shape, values.shape, self._shape)
        return sparse_from_parts(self._indices, values, self._shape, self._dense_shape)

    def __as_tensor__(self) -> Any:
        """Raises an error: the conversion to a dense tensor must be explicit.

        Raises:
            DTypeError: always.
        """
        raise CompositeError(
            f"A SparseTensor of shape {self._shape} was passed where a tensor is required. "
            "df.sparse.to_dense(x) makes a tensor of it, df.sparse.map_values(function, x) computes with its "
            "values, and df.sparse has functions of SparseTensors.",
            self,
        )

    def __map_elements__(self, op: Op, inputs: Sequence[Any], attrs: dict[str, Any]) -> Any:
        """The result of an elementwise op of one input that maps 0 to 0: that of the stored elements.

        Raises:
            DTypeError: the op has several inputs, or another value at 0.
        """
        if len(inputs) > 1:
            return self.__as_tensor__()
        values = op.run_on(dispatch.current(), [self._values], attrs)
        with np.errstate(all="ignore"):
            at_zero = op.kernel(np.zeros((), self.dtype.dtype), **attrs)
        return self.__as_tensor__() if at_zero else self.with_values(values)

    @entry
    def __mul__(self, other: Any) -> SparseTensor:
        return self.with_values(self._values * self._at_stored_indices(other))

    @entry
    def __truediv__(self, other: Any) -> SparseTensor:
        return self.with_values(self._values / self._at_stored_indices(other))

    def _at_stored_indices(self, other: Any) -> Any:
        """The elements of a tensor that broadcasts to this shape, at the stored indices."""
        if isinstance(other, SparseTensor):
            return other.__as_tensor__()
        dense = convert_to_tensor(other, dtype_hint=self.dtype)
        rank = len(dense.shape)
        if not rank:
            return dense
        broadcast([dense.shape, self._shape])
        used = np.array([size != 1 for size in dense.shape], np.int64)
        return gather_nd(dense, self._indices[:, len(self._shape) - rank :] * used)

    def __invariant__(self, shape: Shape) -> Sequence[TensorSpec] | None:
        """The specs for any number of elements; ``shape`` is also the rank alone, as TensorFlow has it."""
        rank = len(self._shape)
        if shape != (rank,) and not shape.is_compatible_with(self._shape):
            return None
        specs = [TensorSpec([None, rank], int64), TensorSpec([None], self.dtype)]
        return specs if self._shape.is_static else [*specs, TensorSpec([rank], int64)]

    @property
    def _type_spec(self) -> SparseTensorSpec:
        return SparseTensorSpec.from_value(self)

    def __tree__(self) -> tuple[Any, tuple[str, ...], list[Any]]:
        """The SparseTensor as a structure: a shape that is known belongs to the structure itself."""
        parts: list[Any] = [self._indices, self._values]
        if self._shape.is_static:
            return SparseStructure(self._shape), ("indices", "values"), parts
        return SparseStructure(self._shape), ("indices", "values", "dense_shape"), [*parts, self.dense_shape]

    def __repr__(self) -> str:
        parts = f"indices={self._indices!s}, values={self._values!s}, dense_shape={self.dense_shape!s}"
        return f"SparseTensor({parts})"


@entry
class SparseTensorSpec(TreeSpec):
    """The shape and dtype of a SparseTensor.

    Args:
        shape: the shape of the whole tensor; None, or sizes that are None, for any.
        dtype: the dtype of the elements; float32 by default.

    >>> import dualflow as df
    >>> df.SparseTensorSpec([2, 3], df.int32)
    SparseTensorSpec((2, 3), tf.int32)
    """

    __slots__ = ("dtype", "shape")
    value_type = SparseTensor

    def __init__(self, shape: ShapeLike | None = None, dtype: DTypeLike = float32) -> None:
        self.shape: Final[Shape] = as_shape(shape)
        self.dtype: Final[DType] = as_dtype(dtype)

    @classmethod
    def from_value(cls, value: SparseTensor) -> SparseTensorSpec:
        """The spec of an existing SparseTensor.

        Args:
            value: the SparseTensor.
        """
        return cls(value.shape, value.dtype)

    def __tree__(self) -> tuple[Any, tuple[str, ...], list[Any]]:
        """The specs of the tensors: what an ``input_signature`` describes."""
        if not self.shape.is_static:
            raise InvalidArgumentError(
                f"An input_signature needs every size of a SparseTensor's shape, not {self.shape}: its shape "
                "is part of a trace. Leave the signature out, and each shape has a trace of its own."
            )
        indices = TensorSpec([None, len(self.shape)], int64)
        return SparseStructure(self.shape), ("indices", "values"), [indices, TensorSpec([None], self.dtype)]

    def _serialize(self) -> tuple[Any, ...]:
        return self.shape, self.dtype


def sparse_from_parts(indices: Any, values: Any, shape: Shape, dense_shape: Any = None) -> SparseTensor:
    """A SparseTensor from parts that fit, without checks."""
    tensor = object.__new__(SparseTensor)
    tensor._indices, tensor._values, tensor._shape, tensor._dense_shape = indices, values, shape, dense_shape
    return tensor


def _as_int64(indices: Any) -> Tensor:
    """``indices`` as an int64 tensor."""
    if isinstance(indices, AbstractTensor):
        return cast(indices, int64)
    return convert_to_tensor(indices, dtype=int64)


def _split_shape(dense_shape: Any) -> tuple[Shape, Tensor | None]:
    """The static shape, and the tensor of the shape if a size is unknown."""
    if isinstance(dense_shape, list | tuple):
        shape = Shape(shape_argument(dense_shape, "dense_shape"))
        return shape, None if shape.is_static else cast(convert_to_tensor(dense_shape), int64)
    value = static_value(dense_shape)
    if value is not None:
        return Shape(shape_argument(value.reshape(-1), "dense_shape")), None
    return Shape([None] * dense_shape.shape[0]), cast(dense_shape, int64)


def _check(indices: Shape, values: Shape, shape: Shape) -> None:
    """Raise an error for parts that don't fit together."""
    if len(indices) != 2 or len(values) != 1:
        raise InvalidArgumentError(
            f"A SparseTensor has indices of shape [n, rank] and values of shape [n], not {indices} and "
            f"{values}; reshape them."
        )
    if not indices.is_compatible_with([values[0], len(shape)]):
        raise InvalidArgumentError(
            f"{values[0]} values of a SparseTensor of shape {shape} have indices of shape "
            f"{(values[0], len(shape))}: a row for each value, a column for each axis; but got {indices}."
        )

"""``TensorSpec``: the shape and dtype of a tensor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Protocol

from dualflow.core.dispatch import AbstractTensor
from dualflow.core.dtypes import DType, DTypeLike, as_dtype, float32
from dualflow.core.shape import UNKNOWN_RANK, Dim, Shape, Sizes, as_shape
from dualflow.core.trace_type import TraceType
from dualflow.core.tracebacks import entry
from dualflow.core.type_spec import TypeSpec


class HasSpec(Protocol):
    """A tensor, an array or a spec: an object with a shape and a dtype."""

    @property
    def shape(self) -> Any:
        """The sizes of the axes."""

    @property
    def dtype(self) -> Any:
        """The dtype of the elements."""


class DenseSpec(TypeSpec):
    """The base of specs of values with a shape and a dtype."""

    __slots__ = ()


class TensorSpec(DenseSpec):
    """Shape and dtype of a tensor, and the name of an argument.

    Args:
        shape: sizes, ``None`` where any size is taken; ``None`` alone for any number of axes.
        dtype: element type; float32 by default.
        name: shown in printed graphs.

    >>> TensorSpec([None, 3], "int64", name="ids")
    TensorSpec(shape=(None, 3), dtype=tf.int64, name='ids')
    """

    __slots__ = ("_hash", "_num_elements", "dtype", "name", "shape")
    value_type = AbstractTensor
    __tree__ = None  # type: ignore[assignment]  # a leaf
    # computed at the first use
    _hash: int
    _num_elements: Dim

    @entry
    def __init__(self, shape: Sizes, dtype: DTypeLike = float32, name: str | None = None) -> None:
        self.shape: Final[Shape] = as_shape(shape)
        self.dtype: Final[DType] = as_dtype(dtype)
        self.name: Final = name

    @classmethod
    def of(cls, shape: Shape, dtype: DType) -> TensorSpec:
        """A spec of these parts, which aren't checked."""
        spec = cls.__new__(cls)
        spec.shape, spec.dtype, spec.name = shape, dtype, None  # type: ignore[misc]  # the constructor's own writes
        return spec

    @classmethod
    def from_tensor(cls, tensor: HasSpec, name: str | None = None) -> TensorSpec:
        """The spec of an existing tensor or array."""
        return cls(tensor.shape, tensor.dtype, name)

    @classmethod
    def from_spec(cls, spec: HasSpec, name: str | None = None) -> TensorSpec:
        """A spec with the shape and dtype of another; ``name``, or else the name of the other."""
        return cls(spec.shape, spec.dtype, name or getattr(spec, "name", None))

    @property
    def rank(self) -> int:
        return self.shape.rank

    @property
    def num_elements(self) -> Dim:
        """The number of elements; None if a size is unknown."""
        try:
            return self._num_elements
        except AttributeError:
            self._num_elements = self.shape.num_elements()
            return self._num_elements

    @property
    def size(self) -> int:
        """The number of elements; every size must be known."""
        count = self.num_elements
        assert count is not None, f"{self} has no static size"
        return count

    @property
    def nbytes(self) -> int:
        return self.size * self.dtype.size

    def is_compatible_with(self, spec_or_tensor: HasSpec) -> bool:  # type: ignore[override]  # not of any object
        """Whether a tensor, or all tensors of another spec, match this spec."""
        shape = as_shape(spec_or_tensor.shape)
        if self.shape is UNKNOWN_RANK or shape is UNKNOWN_RANK:
            return self.shape is UNKNOWN_RANK and as_dtype(spec_or_tensor.dtype) is self.dtype
        same_rank = len(shape) == len(self.shape)
        return (
            as_dtype(spec_or_tensor.dtype) is self.dtype
            and same_rank
            and all(mine is None or mine == theirs for mine, theirs in zip(self.shape, shape, strict=True))
        )

    def is_subtype_of(self, other: object) -> bool:
        """Whether all tensors of this spec match ``other``."""
        return isinstance(other, TensorSpec) and other.is_compatible_with(self)

    def most_specific_common_supertype(self, others: Sequence[TraceType]) -> TensorSpec | None:
        """The spec with the sizes that this one and all others share; None if a dtype differs."""
        shape, name = self.shape, self.name
        for other in others:
            if not isinstance(other, TensorSpec) or other.dtype is not self.dtype:
                return None
            shape = shape.most_specific_compatible_shape(other.shape)
            name = name if name == other.name else None
        return TensorSpec(shape, self.dtype, name)

    def _serialize(self) -> tuple[Any, ...]:
        return self.shape, self.dtype, self.name

    def _batch(self, batch_size: int | None) -> TensorSpec:
        return TensorSpec(Shape([batch_size]).concatenate(self.shape), self.dtype)

    def _unbatch(self) -> TensorSpec:
        return TensorSpec(self.shape if self.shape is UNKNOWN_RANK else self.shape[1:], self.dtype)

    @property
    def _component_specs(self) -> TensorSpec:
        return self

    def _to_components(self, value: Any) -> Any:
        return value

    def _from_components(self, components: Any) -> Any:
        return components

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return isinstance(other, TensorSpec) and self.dtype is other.dtype and self.shape == other.shape

    def __hash__(self) -> int:
        try:
            return self._hash
        except AttributeError:
            self._hash = hash((self.shape, self.dtype))
            return self._hash

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.shape, self.dtype, self.name)  # hashes differ between processes

    def __repr__(self) -> str:
        return f"TensorSpec(shape={self.shape!r}, dtype={self.dtype!r}, name={self.name!r})"

    def __str__(self) -> str:
        if self.shape is UNKNOWN_RANK:
            return f"{self.dtype.name}[...]"
        return f"{self.dtype.name}[{', '.join('?' if d is None else str(d) for d in self.shape)}]"

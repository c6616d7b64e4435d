"""``VariableSpec``: the description of a variable in a composite."""

from __future__ import annotations

from typing import Any, Final

from dualflow.core.dtypes import DType, DTypeLike, as_dtype, float32
from dualflow.core.shape import Shape, Sizes, as_shape
from dualflow.core.type_spec import TypeSpec
from dualflow.eager.variable import Variable


class VariableSpec(TypeSpec):
    """The shape, dtype and trainability of a variable; the variable is its only component.

    Args:
        shape: its shape.
        dtype: its dtype; float32 by default.
        trainable: whether tapes watch it.
        alias_id: the number of the variable among those of one structure; None if it is not known.
    """

    __slots__ = ("alias_id", "dtype", "shape", "trainable")
    value_type = Variable
    __tree__ = None  # type: ignore[assignment]  # a leaf

    def __init__(
        self, shape: Sizes, dtype: DTypeLike = float32, trainable: bool = True, alias_id: int | None = None
    ) -> None:
        self.shape: Final[Shape] = as_shape(shape)
        self.dtype: Final[DType] = as_dtype(dtype)
        self.trainable, self.alias_id = trainable, alias_id

    @classmethod
    def from_value(cls, value: Variable) -> VariableSpec:
        """The spec of an existing variable.

        Args:
            value: the variable.
        """
        return cls(value.shape, value.dtype, value.trainable)

    def is_compatible_with(self, spec_or_value: object) -> bool:
        """Whether a variable, or the variables of another spec, match this spec.

        Args:
            spec_or_value: a variable or a spec.
        """
        is_variable = isinstance(spec_or_value, Variable)
        return super().is_compatible_with(self.from_value(spec_or_value) if is_variable else spec_or_value)  # type: ignore[arg-type]  # a variable

    def _serialize(self) -> tuple[Any, ...]:
        return self.shape, self.dtype, self.trainable, self.alias_id

    @property
    def _component_specs(self) -> Any:
        return [self]

    def _to_components(self, value: Any) -> Any:
        return [value]

    def _from_components(self, components: Any) -> Any:
        return components[0]

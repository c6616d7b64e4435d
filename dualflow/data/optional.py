"""``Optional``: the next element of an iterator, or nothing at its end, as a value of a graph."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dualflow.core.convert import Array
from dualflow.core.shape import UNKNOWN_RANK
from dualflow.core.spec import TensorSpec
from dualflow.core.tree import flatten, unflatten
from dualflow.data.element import flatten_element, layout_of_spec
from dualflow.function.debugging.assertions import assert_equal
from dualflow.ops.creation import convert_to_tensor

if TYPE_CHECKING:
    from dualflow.ops.tensor import Tensor

_MESSAGE: Final = "An Optional without a value has none to get: test has_value() first."


@dataclass(frozen=True, eq=False)
class Optional:
    """An element, or nothing; ``iterator.get_next_as_optional()`` returns one.

    It is a structure of tensors, so functions take and return it, and loops carry it.

    Args:
        present: whether there is an element, a bool scalar.
        element: the element; tensors of any values where there is none.

    >>> import dualflow as df
    >>> iterator = iter(df.data.Dataset.range(1))
    >>> first, second = iterator.get_next_as_optional(), iterator.get_next_as_optional()
    >>> bool(first.has_value()), first.get_value().numpy(), bool(second.has_value())
    (True, np.int64(0), False)
    """

    present: Tensor
    element: object

    @classmethod
    def from_value(cls, value: object) -> Optional:
        """An optional with a value.

        Args:
            value: a tensor, or a structure of them; a list is a tensor.

        >>> import dualflow as df
        >>> df.experimental.Optional.from_value(2.0).get_value().numpy()
        np.float32(2.0)
        """
        leaves, structure = flatten_element(value)
        return cls(convert_to_tensor(True), unflatten(structure, [convert_to_tensor(x) for x in leaves]))

    @classmethod
    def empty(cls, element_spec: object) -> Optional:
        """An optional without a value.

        Args:
            element_spec: the spec of the value that it could have, a structure of :class:`TensorSpec`.

        >>> import dualflow as df
        >>> bool(df.experimental.Optional.empty(df.TensorSpec([2])).has_value())
        False
        """
        layout = layout_of_spec(element_spec)
        leaves = [convert_to_tensor(empty_leaf(spec)) for spec in layout.specs]
        return cls(convert_to_tensor(False), unflatten(layout.structure, leaves))

    @property
    def element_spec(self) -> Any:
        """The spec of the value."""
        leaves, structure = flatten(self.element)
        return unflatten(structure, [TensorSpec.of(x.shape, x.dtype) for x in leaves])

    def has_value(self, name: str | None = None) -> Tensor:
        """Whether there is a value.

        Args:
            name: ignored; as in TensorFlow.

        Returns:
            A bool scalar.

        >>> import dualflow as df
        >>> df.experimental.Optional.from_value(2.0).has_value().numpy()
        np.True_
        """
        return self.present

    def get_value(self, name: str | None = None) -> Any:
        """The value.

        Args:
            name: ignored; as in TensorFlow.

        Returns:
            A tensor, or a structure of them.

        Raises:
            InvalidArgumentError: there is none.

        >>> import dualflow as df
        >>> df.experimental.Optional.from_value((1, 2)).get_value()[1].numpy()
        np.int32(2)
        """
        assert_equal(self.present, True, message=_MESSAGE)
        return self.element


def empty_leaf(spec: Any) -> Array:
    """An array of a spec, with 0 for dynamic sizes."""
    sizes = [] if spec.shape is UNKNOWN_RANK else [size or 0 for size in spec.shape]
    if spec.dtype.is_string:
        return np.full(sizes, b"", object)
    return np.zeros(sizes, spec.dtype.dtype)

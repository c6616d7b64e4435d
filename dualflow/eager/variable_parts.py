"""Reads and assignments of parts of a variable."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from dualflow.core.dispatch import AbstractVariable
from dualflow.core.tracebacks import entry
from dualflow.ops.arithmetic import negative
from dualflow.ops.creation import convert_to_tensor
from dualflow.ops.indexing import getitem, replace
from dualflow.ops.scattering import gather_nd, tensor_scatter_nd_add, tensor_scatter_nd_update
from dualflow.ops.taking import gather
from dualflow.ops.tensor import Operators

if TYPE_CHECKING:
    from dualflow.core.argument_types import TensorLike


class VariableParts(Operators, AbstractVariable):
    """The methods of a variable that read or assign a part of its value."""

    __slots__ = ()

    if TYPE_CHECKING:

        def _replaced(self, rule: Callable[[Any], Any]) -> Any: ...

    @entry
    def assign_part(
        self,
        key: TensorLike,
        value: TensorLike,
        change: Callable[[Any, Any], Any] = lambda part, value: value,
    ) -> Any:
        """Set a part of the value: ``v[key] = change(v[key], value)``.

        Args:
            key: integers, slices, ``...`` and None, as in ``v[key]``.
            value: numbers that broadcast to the part.
            change: a function of the part and ``value``; by default it returns ``value``.

        Returns:
            The variable; in an explicit graph the tensor to fetch.

        Raises:
            InvalidArgumentError: ``value`` doesn't broadcast to the part.

        >>> import dualflow as df
        >>> df.Variable([1.0, 2.0]).assign_part(0, 5.0).numpy()
        array([5., 2.], dtype=float32)
        """
        operand = convert_to_tensor(value, self.dtype)
        return self._replaced(lambda present: replace(present, key, change(getitem(present, key), operand)))

    @entry
    def gather_nd(self, indices: TensorLike, name: str | None = None) -> Any:
        """The elements or slices at ``indices``, as by :func:`dualflow.gather_nd`.

        Args:
            indices: integers of shape [..., n], where n is at most the number of axes.

        Returns:
            A tensor of shape ``indices.shape[:-1] + shape[n:]``, and the variable's dtype.

        Raises:
            OutOfRangeError: an index is out of range.

        >>> import dualflow as df
        >>> df.Variable([[1.0, 2.0], [3.0, 4.0]]).gather_nd([[1, 0]]).numpy()
        array([3.], dtype=float32)
        """
        return gather_nd(self, indices)

    @entry
    def sparse_read(self, indices: TensorLike, name: str | None = None) -> Any:
        """The slices of the first axis at ``indices``, as by :func:`dualflow.gather`.

        Args:
            indices: integers of any shape.

        Returns:
            A tensor of shape ``indices.shape + shape[1:]``, and the variable's dtype.

        Raises:
            OutOfRangeError: an index is out of range.

        >>> import dualflow as df
        >>> df.Variable([1.0, 2.0]).sparse_read([1, 1]).numpy()
        array([2., 2.], dtype=float32)
        """
        return gather(self, indices)

    @entry
    def scatter_nd_update(self, indices: TensorLike, updates: TensorLike, name: str | None = None) -> Any:
        """Replace the elements or slices at ``indices``, as :func:`dualflow.tensor_scatter_nd_update`.

        Args:
            indices: integers of shape [..., n], where n is at most the number of axes.
            updates: numbers of shape ``indices.shape[:-1] + shape[n:]``.

        Returns:
            The variable; in an explicit graph the tensor to fetch.

        Raises:
            InvalidArgumentError: ``updates`` has another shape.

        >>> import dualflow as df
        >>> df.Variable([1.0, 2.0]).scatter_nd_update([[0]], [5.0]).numpy()
        array([5., 2.], dtype=float32)
        """
        tensor = self._alike(updates)
        return self._replaced(lambda present: tensor_scatter_nd_update(present, indices, tensor))

    @entry
    def scatter_nd_add(self, indices: TensorLike, updates: TensorLike, name: str | None = None) -> Any:
        """Add ``updates`` to the elements or slices at ``indices``; see :meth:`scatter_nd_update`.

        Args:
            indices: integers of shape [..., n], where n is at most the number of axes.
            updates: numbers of shape ``indices.shape[:-1] + shape[n:]``.

        Returns:
            The variable; in an explicit graph the tensor to fetch.

        Raises:
            InvalidArgumentError: ``updates`` has another shape.

        >>> import dualflow as df
        >>> df.Variable([1.0, 2.0]).scatter_nd_add([[0]], [5.0]).numpy()
        array([6., 2.], dtype=float32)
        """
        tensor = self._alike(updates)
        return self._replaced(lambda present: tensor_scatter_nd_add(present, indices, tensor))

    @entry
    def scatter_nd_sub(self, indices: TensorLike, updates: TensorLike, name: str | None = None) -> Any:
        """Subtract ``updates`` from the elements or slices at ``indices``; see :meth:`scatter_nd_update`.

        Args:
            indices: integers of shape [..., n], where n is at most the number of axes.
            updates: numbers of shape ``indices.shape[:-1] + shape[n:]``.

        Returns:
            The variable; in an explicit graph the tensor to fetch.

        Raises:
            InvalidArgumentError: ``updates`` has another shape.

        >>> import dualflow as df
        >>> df.Variable([1.0, 2.0]).scatter_nd_sub([[0]], [5.0]).numpy()
        array([-4.,  2.], dtype=float32)
        """
        tensor = self._alike(updates)
        return self._replaced(lambda present: tensor_scatter_nd_add(present, indices, negative(tensor)))

    def _alike(self, value: Any) -> Any:
        return convert_to_tensor(value, self.dtype)

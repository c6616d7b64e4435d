"""Reads and assignments of parts of a variable."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from dualflow.core.dispatch import AbstractVariable
from dualflow.core.errors import DTypeError
from dualflow.core.locks import imported
from dualflow.core.tracebacks import entry
from dualflow.ops.arithmetic import divide, negative
from dualflow.ops.arrangement import expand_dims
from dualflow.ops.creation import convert_to_tensor, ones_like
from dualflow.ops.docstrings import documented
from dualflow.ops.indexing import getitem, replace
from dualflow.ops.scattering import gather_nd, tensor_scatter_nd_add, tensor_scatter_nd_update
from dualflow.ops.taking import gather
from dualflow.ops.tensor import Operators

if TYPE_CHECKING:
    from dualflow.core.argument_types import TensorLike
    from dualflow.ops.sparse.indexed_slices import IndexedSlices


_POINTS: Final = """Args:
    indices: integers of shape [..., n], where n is at most the number of axes.
    updates: numbers of shape ``indices.shape[:-1] + shape[n:]``.

Returns:
    The variable; in an explicit graph the tensor to fetch.

Raises:
    InvalidArgumentError: ``updates`` has another shape."""
_SLICES: Final = """Args:
    sparse_delta: a :class:`dualflow.IndexedSlices`, whose slices have the shape ``shape[1:]``.
    use_locking, name: ignored, as in TensorFlow.

Returns:
    The variable; in an explicit graph the tensor to fetch.

Raises:
    DTypeError: no IndexedSlices.
    OutOfRangeError: an index is out of range."""


class VariableParts(Operators, AbstractVariable):
    """The methods of a variable that read or assign a part of its value."""

    __slots__ = ()

    if TYPE_CHECKING:

        def _assign_part(self, rule: Callable[[Any], Any]) -> Any: ...

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
        return self._assign_part(
            lambda present: replace(present, key, change(getitem(present, key), operand))
        )

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
    @documented(_POINTS)
    def scatter_nd_update(self, indices: TensorLike, updates: TensorLike, name: str | None = None) -> Any:
        """Replace the elements or slices at ``indices``, as :func:`dualflow.tensor_scatter_nd_update`.

        >>> import dualflow as df
        >>> df.Variable([1.0, 2.0]).scatter_nd_update([[0]], [5.0]).numpy()
        array([5., 2.], dtype=float32)
        """
        tensor = self._alike(updates)
        return self._assign_part(lambda present: tensor_scatter_nd_update(present, indices, tensor))

    @entry
    @documented(_POINTS)
    def scatter_nd_add(self, indices: TensorLike, updates: TensorLike, name: str | None = None) -> Any:
        """Add ``updates`` to the elements or slices at ``indices``; see :meth:`scatter_nd_update`.

        >>> import dualflow as df
        >>> df.Variable([1.0, 2.0]).scatter_nd_add([[0]], [5.0]).numpy()
        array([6., 2.], dtype=float32)
        """
        tensor = self._alike(updates)
        return self._assign_part(lambda present: tensor_scatter_nd_add(present, indices, tensor))

    @entry
    @documented(_POINTS)
    def scatter_nd_sub(self, indices: TensorLike, updates: TensorLike, name: str | None = None) -> Any:
        """Subtract ``updates`` from the elements or slices at ``indices``; see :meth:`scatter_nd_update`.

        >>> import dualflow as df
        >>> df.Variable([1.0, 2.0]).scatter_nd_sub([[0]], [5.0]).numpy()
        array([-4.,  2.], dtype=float32)
        """
        tensor = self._alike(updates)
        return self._assign_part(lambda present: tensor_scatter_nd_add(present, indices, negative(tensor)))

    @entry
    @documented(_POINTS)
    def scatter_nd_max(self, indices: TensorLike, updates: TensorLike, name: str | None = None) -> Any:
        """Set elements or slices to the maximum with ``updates``; see :meth:`scatter_nd_update`.

        >>> import dualflow as df
        >>> df.Variable([1.0, 2.0]).scatter_nd_max([[0], [1]], [5.0, 0.0]).numpy()
        array([5., 2.], dtype=float32)
        """
        return self._joined("maximum", indices, updates)

    @entry
    @documented(_POINTS)
    def scatter_nd_min(self, indices: TensorLike, updates: TensorLike, name: str | None = None) -> Any:
        """Set elements or slices to the minimum with ``updates``; see :meth:`scatter_nd_update`.

        >>> import dualflow as df
        >>> df.Variable([1.0, 2.0]).scatter_nd_min([[0], [1]], [5.0, 0.0]).numpy()
        array([1., 0.], dtype=float32)
        """
        return self._joined("minimum", indices, updates)

    def _joined(self, join: str, indices: Any, updates: Any) -> Any:
        """Combine ``updates`` with the elements or slices at ``indices`` by the ufunc that ``join`` names."""
        join_at = imported("dualflow.ops.segments.joins").join_at
        tensor = self._alike(updates)
        return self._assign_part(lambda present: join_at(present, indices, tensor, join))

    @entry
    @documented(_SLICES)
    def scatter_update(
        self, sparse_delta: IndexedSlices, use_locking: bool = False, name: str | None = None
    ) -> Any:
        """Replace slices of the first axis, those at the indices of ``sparse_delta``.

        >>> import dualflow as df
        >>> rows = df.IndexedSlices(values=[2.0], indices=[1])
        >>> df.Variable([1.0, 6.0]).scatter_update(rows).numpy()
        array([1., 2.], dtype=float32)
        """
        return self.scatter_nd_update(*self._points(sparse_delta))

    @entry
    @documented(_SLICES)
    def scatter_add(
        self, sparse_delta: IndexedSlices, use_locking: bool = False, name: str | None = None
    ) -> Any:
        """Add to slices of the first axis; slices of one index are all added.

        >>> import dualflow as df
        >>> rows = df.IndexedSlices(values=[2.0], indices=[1])
        >>> df.Variable([1.0, 6.0]).scatter_add(rows).numpy()
        array([1., 8.], dtype=float32)
        """
        return self.scatter_nd_add(*self._points(sparse_delta))

    @entry
    @documented(_SLICES)
    def scatter_sub(
        self, sparse_delta: IndexedSlices, use_locking: bool = False, name: str | None = None
    ) -> Any:
        """Subtract from slices of the first axis; slices of one index are all subtracted.

        >>> import dualflow as df
        >>> rows = df.IndexedSlices(values=[2.0], indices=[1])
        >>> df.Variable([1.0, 6.0]).scatter_sub(rows).numpy()
        array([1., 4.], dtype=float32)
        """
        return self.scatter_nd_sub(*self._points(sparse_delta))

    @entry
    @documented(_SLICES)
    def scatter_max(
        self, sparse_delta: IndexedSlices, use_locking: bool = False, name: str | None = None
    ) -> Any:
        """Set slices of the first axis to the elementwise maximum with those of ``sparse_delta``.

        >>> import dualflow as df
        >>> rows = df.IndexedSlices(values=[2.0], indices=[1])
        >>> df.Variable([1.0, 6.0]).scatter_max(rows).numpy()
        array([1., 6.], dtype=float32)
        """
        return self.scatter_nd_max(*self._points(sparse_delta))

    @entry
    @documented(_SLICES)
    def scatter_min(
        self, sparse_delta: IndexedSlices, use_locking: bool = False, name: str | None = None
    ) -> Any:
        """Set slices of the first axis to the elementwise minimum with those of ``sparse_delta``.

        >>> import dualflow as df
        >>> rows = df.IndexedSlices(values=[2.0], indices=[1])
        >>> df.Variable([1.0, 6.0]).scatter_min(rows).numpy()
        array([1., 2.], dtype=float32)
        """
        return self.scatter_nd_min(*self._points(sparse_delta))

    @entry
    @documented(_SLICES)
    def scatter_mul(
        self, sparse_delta: IndexedSlices, use_locking: bool = False, name: str | None = None
    ) -> Any:
        """Multiply slices of the first axis; slices of one index all multiply.

        >>> import dualflow as df
        >>> rows = df.IndexedSlices(values=[2.0], indices=[1])
        >>> df.Variable([1.0, 6.0]).scatter_mul(rows).numpy()
        array([ 1., 12.], dtype=float32)
        """
        return self._joined("multiply", *self._points(sparse_delta))

    @entry
    @documented(_SLICES)
    def scatter_div(
        self, sparse_delta: IndexedSlices, use_locking: bool = False, name: str | None = None
    ) -> Any:
        """Divide slices of the first axis by those of ``sparse_delta``, or by their product for one index.

        >>> import dualflow as df
        >>> rows = df.IndexedSlices(values=[2.0], indices=[1])
        >>> df.Variable([1.0, 6.0]).scatter_div(rows).numpy()
        array([1., 3.], dtype=float32)
        """
        if not self.dtype.is_inexact:
            raise DTypeError(
                f"scatter_div divides floats, not {self.dtype.name}; use v[i].assign(v[i] // x) for integers."
            )
        indices, values = self._points(sparse_delta)
        join_at, tensor = imported("dualflow.ops.segments.joins").join_at, self._alike(values)
        return self._assign_part(
            lambda present: divide(present, join_at(ones_like(present), indices, tensor, "multiply"))
        )

    def _points(self, slices: Any) -> tuple[Any, Any]:
        """The indices of IndexedSlices as those of ``scatter_nd_update``, and the slices."""
        if not isinstance(slices, imported("dualflow.ops.sparse.indexed_slices").IndexedSlices):
            raise DTypeError(
                f"sparse_delta is a df.IndexedSlices(values, indices), not a {type(slices).__name__}; for "
                "tensors of indices there is scatter_nd_update."
            )
        return expand_dims(slices.indices, -1), slices.values

    def _alike(self, value: Any) -> Any:
        return convert_to_tensor(value, self.dtype)

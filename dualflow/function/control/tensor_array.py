"""``TensorArray``: a list of tensors of one dtype, written and read by index."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from dualflow.core import dispatch
from dualflow.core.dispatch import Engine
from dualflow.core.dtypes import DType, as_dtype, int32
from dualflow.core.errors import InvalidArgumentError, OutOfRangeError
from dualflow.core.memory_errors import out_of_memory
from dualflow.core.records import NamedTuple
from dualflow.core.shape import Shape, as_shape
from dualflow.core.tracebacks import entry
from dualflow.function.control.array_ops import (
    fitted_rows,
    joined_rows,
    row_count,
    with_dynamic_size,
    write_row,
    zero_rows,
)
from dualflow.function.control.unequal_elements import (
    UnequalElements,
    common_shape,
    of_rows,
    of_tensors,
    unwritten,
)
from dualflow.graph.control_spec import row_spec
from dualflow.ops.conversion import cast
from dualflow.ops.creation import constant, convert_to_tensor, zeros, zeros_like
from dualflow.ops.joining import concat, split, stack, unstack
from dualflow.ops.scattering import tensor_scatter_nd_update
from dualflow.ops.shapes import with_shape
from dualflow.ops.static import static_value
from dualflow.ops.taking import gather
from dualflow.ops.tensor_sizes import sizes_of

if TYPE_CHECKING:
    from dualflow.core.argument_types import DTypeLike, IntLike, TensorLike

Rows = list[Any]
"""The elements by index; None for one that was not written."""


class _Kind(NamedTuple):
    """The attributes of an array, without its elements.

    Attributes:
        clear: ``clear_after_read``.
        alike: ``infer_shape``: whether all elements have one shape.
    """

    dtype: DType
    element_shape: Shape | None
    dynamic: bool
    clear: bool
    alike: bool = True

    def __call__(self, *parts: Any) -> TensorArray:
        """The array of this kind, as loops carry it: of the rows of one tensor, or of unequal elements."""
        return _make(self, parts[0] if len(parts) == 1 else UnequalElements(*parts), set())


class _Same(NamedTuple):
    """The tree structure of a constant TensorArray: it has no leaves, and unflattening returns the array."""

    array: TensorArray

    def __call__(self) -> TensorArray:
        return self.array


@entry
class TensorArray:
    """A list of tensors of one shape and dtype, read and written by index; unwritten elements are zeros.

    Eagerly, :meth:`write` changes the array and returns it. While tracing it returns another array: use
    ``array = array.write(i, x)``, which does both. Loops over tensors carry it. Without ``element_shape``, a
    loop body that writes first is traced twice, since the first trace finds the shape.

    Args:
        dtype: the dtype of the elements.
        size: the number of elements, an int or a scalar; 0 by default.
        dynamic_size: whether a write past the end makes the array longer.
        clear_after_read: whether an element is released by the first read, and can't be read again; eagerly
            only.
        infer_shape: whether all elements have the shape of the first one written. Without it their sizes may
            differ; a traced function then has no zeros for unwritten elements.
        element_shape: the shape of the elements; by default that of the first one written.

    The other arguments are TensorFlow's, and ignored.

    >>> import dualflow as df
    >>> array = df.TensorArray(df.float32, size=2)
    >>> array.write(0, 1.0).write(1, 2.0).stack().numpy()
    array([1., 2.], dtype=float32)
    """

    __slots__ = ("_engine", "_kind", "_read", "_rows", "_sizes")

    def __init__(
        self,
        dtype: DTypeLike,
        size: IntLike | None = None,
        dynamic_size: bool | None = None,
        clear_after_read: bool | None = None,
        tensor_array_name: str | None = None,
        handle: object = None,
        flow: object = None,
        infer_shape: bool = True,
        element_shape: TensorLike | None = None,
        colocate_with_first_write_call: bool = True,
        name: str | None = None,
    ) -> None:
        static_size = 0 if size is None else _static(size)
        shape = None if element_shape is None else as_shape(element_shape)
        static_shape = shape if shape is not None and shape.is_static else None
        self._kind = _Kind(
            as_dtype(dtype),
            static_shape,
            bool(dynamic_size),
            clear_after_read is not False,
            bool(infer_shape),
        )
        # a list, unequal elements, one tensor with the elements as rows (see _dense), or a scalar: the
        # dynamic size
        self._rows: Any = size if static_size is None else _unwritten(static_size)
        if static_size is None and static_shape is not None:
            self._rows = zero_rows(size, static_shape, self.dtype)
        self._read: set[int] = set()
        self._sizes: Any = None  # of an element, if some are dynamic; None to read them from the elements
        self._engine: Engine = dispatch.current().innermost  # the trace that its tensors belong to

    @property
    def dtype(self) -> DType:
        """The dtype of the elements."""
        return self._kind.dtype

    @property
    def element_shape(self) -> Shape | None:
        """The shape of each element; None before it is inferred."""
        return self._kind.element_shape

    @property
    def dynamic_size(self) -> bool:
        """Whether a write past the end makes the array longer."""
        return self._kind.dynamic

    def size(self, name: str | None = None) -> Any:
        """The number of elements, an int32 scalar."""
        if isinstance(self._rows, UnequalElements):
            return cast(self._rows.number(), int32)
        if self._has_dynamic_size:
            return cast(row_count(self._rows) if self._rows.shape else self._rows, int32)
        return constant(len(self), int32)

    def __len__(self) -> int:
        return int(self._rows.places.shape[0]) if isinstance(self._rows, UnequalElements) else len(self._rows)

    @property
    def _has_dynamic_size(self) -> bool:
        """Whether the number of elements is dynamic."""
        if isinstance(self._rows, UnequalElements):
            return self._rows.places.shape[0] is None
        return not isinstance(self._rows, list) and (not self._rows.shape or self._rows.shape[0] is None)

    def read(self, index: IntLike, name: str | None = None) -> Any:
        """The element at ``index``.

        Raises:
            OutOfRangeError: the index is out of range.
            InvalidArgumentError: it was read before, and ``clear_after_read`` is set.
        """
        at = _static(index)
        if at is None or not isinstance(self._rows, list):
            unequal = self._unequal()
            if unequal is None:
                return gather(self._dense(), index)
            return unequal.read(index, self.shape_of_elements)
        if not 0 <= at < len(self):
            raise OutOfRangeError(f"Tried to read from index {at} but array size is: {len(self)}")
        if at in self._read:
            raise InvalidArgumentError(
                f"Could not read index {at} twice because it was cleared after a previous read (perhaps try "
                "setting clear_after_read = false?)"
            )
        element = self._or_zeros(self._rows[at])
        if self._kind.clear and dispatch.current().eager:
            self._rows[at] = None
            self._read.add(at)
        return element

    def write(self, index: IntLike, value: TensorLike, name: str | None = None) -> TensorArray:
        """The array with ``value`` at ``index``.

        Raises:
            OutOfRangeError: the index is out of range, and the size is not dynamic.
            InvalidArgumentError: ``value`` has another dtype or shape than the elements.
        """
        value = self._sized(convert_to_tensor(value, dtype_hint=self.dtype))
        at = _static(index)
        if at is None or not isinstance(self._rows, list) or self._in_body():
            return self._written(index, value)
        kind = self._accepting(value)
        if at < 0 or (at >= len(self) and not self.dynamic_size):
            raise OutOfRangeError(
                f"Tried to write to index {at} but array is not resizeable and size is: {len(self)}"
            )
        elements = [*self._rows, *[None] * (at + 1 - len(self))]
        elements[at] = value
        return self._with(kind, elements, self._read - {at})

    def stack(self, name: str | None = None) -> Any:
        """The elements, stacked along a new first axis."""
        unequal = self._unequal()
        return self._dense() if unequal is None else unequal.stack(self.shape_of_elements)

    def gather(self, indices: TensorLike, name: str | None = None) -> Any:
        """The elements at ``indices``, stacked along a new first axis."""
        unequal = self._unequal()
        if unequal is None:
            return gather(self._dense(), indices)
        return unequal.at(indices).stack(self.shape_of_elements)

    def concat(self, name: str | None = None) -> Any:
        """The elements, concatenated along their first axis."""
        if isinstance(self._rows, list):
            return concat([self._or_zeros(row) for row in self._rows], 0)
        unequal = self._unequal()
        if unequal is not None:
            return unequal.concat(self.shape_of_elements)
        return joined_rows(self._dense())

    def unstack(self, value: TensorLike, name: str | None = None) -> TensorArray:
        """The array with the slices of ``value`` along its first axis as its first elements.

        Raises:
            InvalidArgumentError: there are more slices than elements, and the size is not dynamic.
        """
        value = convert_to_tensor(value, dtype_hint=self.dtype)
        if not dispatch.current().eager and value.shape:
            row = row_spec(value)
            if self._has_dynamic_size or value.shape[0] is None:
                rows = fitted_rows(value, self.size(), grows=self.dynamic_size)
                return self._with(self._accepting(row), rows, set())
            if value.shape[0] == len(self):
                return self._with(self._accepting(row), value, set())
        return self._filled(unstack(value))

    def scatter(self, indices: TensorLike, value: TensorLike, name: str | None = None) -> TensorArray:
        """The array with the slices of ``value`` at ``indices``."""
        array = self
        value = convert_to_tensor(value, dtype_hint=self.dtype)
        for at, row in zip(unstack(convert_to_tensor(indices)), unstack(value), strict=True):
            array = array.write(at, row)
        return array

    def split(self, value: TensorLike, lengths: TensorLike, name: str | None = None) -> TensorArray:
        """The array with pieces of ``value`` of ``lengths`` along its first axis as its first elements."""
        return self._filled(split(convert_to_tensor(value, dtype_hint=self.dtype), lengths))

    def identity(self) -> TensorArray:
        """The array."""
        return self

    def close(self, name: str | None = None) -> None:
        """Does nothing, since Python frees the array; for TensorFlow 1 programs."""

    def __tree__(self) -> tuple[Any, tuple[str, ...], list[Any]]:
        """The kind, keys and leaves of the array as a structure, as loops and branches carry it."""
        if dispatch.current().eager:
            return _Same(self), (), []
        if self.is_unshaped:
            return _Same(self), (), []
        if self._unequal() is not None:
            array = self.as_unequal()
            elements = array._rows.with_dynamic_count() if self.dynamic_size else array._rows
            return array._kind, UnequalElements._fields, [*elements]
        rows = with_dynamic_size(self._dense()) if self.dynamic_size else self._dense()
        return self._kind._replace(element_shape=Shape(rows.shape[1:])), ("rows",), [rows]

    @property
    def is_unshaped(self) -> bool:
        """Whether the shape of the elements is unknown: it was not declared, and nothing was written."""
        if isinstance(self._rows, UnequalElements):
            return False
        written = isinstance(self._rows, list) and any(row is not None for row in self._rows)
        return self.element_shape is None and not written

    def shaped(self, element: Shape, sizes: TensorLike | None = None) -> TensorArray:
        """The array with elements of the shape ``element``, all zeros; nothing was written to it yet.

        ``sizes``, a vector, are the sizes of an element if some are dynamic.
        """
        kind = self._kind._replace(element_shape=element)
        return _make(kind, _make(kind, self._rows, set(), sizes)._dense(), set(), sizes)

    def is_unwritten_as(self, other: TensorArray) -> bool:
        """Whether both arrays are of one kind and of one static size, and have no elements yet."""
        are_lists = isinstance(self._rows, list) and isinstance(other._rows, list)
        return are_lists and self._kind == other._kind and self._rows == other._rows

    def unwritten_copy(self) -> TensorArray:
        """Another array of this kind and size, to which nothing was written."""
        return _make(self._kind, _unwritten(len(self)), set())

    @property
    def may_take_shape(self) -> bool:
        """Whether a write in a loop may give the elements a shape, or unequal ones."""
        return self.is_unshaped or not self._kind.alike

    @property
    def is_unequal(self) -> bool:
        """Whether the elements are carried as :class:`UnequalElements`: shapes differ, or are missing."""
        if self._kind.alike or not isinstance(self._rows, list) or dispatch.current().eager:
            return isinstance(self._rows, UnequalElements)
        shapes = {row.shape for row in self._rows if row is not None}
        differ = len(shapes) > 1 or not all(shape.is_static for shape in shapes)
        return differ or (self.element_shape is None and bool(shapes) and any(r is None for r in self._rows))

    def as_unequal(self, shape: Shape | None = None) -> TensorArray:
        """The array as :class:`UnequalElements`, to which an element of ``shape`` is written next."""
        element = common_shape([s for s in (self.shape_of_elements, shape) if s is not None])
        elements = self._rows
        if isinstance(elements, UnequalElements) and self.element_shape == element:
            return self
        if isinstance(elements, list):
            elements = of_tensors(elements, len(element), self.dtype)
        elif not isinstance(elements, UnequalElements):
            is_size = not elements.shape
            elements = unwritten(elements, len(element), self.dtype) if is_size else of_rows(elements)
        return _make(self._kind._replace(element_shape=element), elements, set())

    def sized_as(self, shaped: TensorArray) -> TensorArray:
        """The array, whose :meth:`element_sizes` are those of ``shaped`` and don't depend on its elements."""
        return _make(self._kind, self._rows, self._read, shaped._sizes)

    def element_sizes(self) -> Any:
        """The sizes of an element, an int32 vector; an element has been written."""
        return sizes_of(self._dense(), int32)[1:] if self._sizes is None else self._sizes

    def __repr__(self) -> str:
        return f"<TensorArray of {len(self)} x {self.element_shape} {self.dtype.name}>"

    # private

    def _in_body(self) -> bool:
        """Whether a branch or loop body is traced, which returns all elements as one tensor."""
        engine = dispatch.current()
        return not engine.eager and engine.innermost is not self._engine

    def _is_unequal_with(self, value: Any) -> bool:
        """Whether the elements are of unequal shapes once ``value`` is written in a trace."""
        if self._kind.alike or dispatch.current().eager or value.dtype is not self.dtype:
            return False
        return self.is_unequal or not value.shape.is_static or self.element_shape not in (None, value.shape)

    def _unequal(self) -> UnequalElements | None:
        """The elements, if they are unequal; else None."""
        return self.as_unequal()._rows if self.is_unequal else None

    @property
    def shape_of_elements(self) -> Any:
        """The shape of the elements, without the sizes that differ; None if it is unknown."""
        if not isinstance(self._rows, list):
            return self.element_shape
        shapes = list(dict.fromkeys([row.shape for row in self._rows if row is not None]))
        return common_shape(shapes) if len(shapes) > 1 else shapes[0] if shapes else self.element_shape

    def _written(self, index: Any, value: Any) -> TensorArray:
        """The array, whose elements are one tensor or unequal, with ``value`` at ``index``."""
        if self._is_unequal_with(value):
            array = self.as_unequal(value.shape)
            return self._with(array._kind, array._rows.write(index, value, grows=self.dynamic_size), set())
        kind = self._accepting(value)
        rows = self._with(kind, self._rows, self._read, value)._dense()
        if self._has_dynamic_size or self.dynamic_size:
            rows = write_row(rows, index, value, grows=self.dynamic_size)
        else:
            rows = tensor_scatter_nd_update(rows, [[index]], stack([value]))
        return self._with(kind, rows, set(), value)

    def _with(self, kind: _Kind, rows: Any, read: set[int], element: Any = None) -> TensorArray:
        """The array with other elements: this object eagerly, another one while tracing.

        Elements that are not written have the sizes of ``element``.
        """
        if not dispatch.current().eager:
            is_dynamic = element is not None and not element.shape.is_static
            return _make(kind, rows, read, sizes_of(element, int32) if is_dynamic else self._sizes)
        self._kind, self._rows, self._read = kind, rows, read
        return self

    def _filled(self, values: Sequence[Any]) -> TensorArray:
        if len(values) > len(self) and not self.dynamic_size:
            raise InvalidArgumentError(
                f"Cannot unstack {len(values)} tensors into a TensorArray of static size {len(self)}"
            )
        kind, values = self._kind, [self._sized(x) for x in values]
        for x in values:
            kind = self._accepting(x)
        filled = self._with(kind, [*values, *[None] * (len(self) - len(values))], set())
        if not self._in_body():
            return filled
        if filled.is_unequal:
            return filled.as_unequal()
        return self._with(kind, filled._dense(), set())

    def _sized(self, value: Any) -> Any:
        """``value``, with a check at run time that its dynamic sizes are those of the elements."""
        shape = self.element_shape
        if shape is None or value.shape.is_static or not (self._kind.alike or shape.is_static):
            return value
        if not value.shape.is_compatible_with(shape):
            return value
        return with_shape(value, shape)

    def _accepting(self, value: Any) -> _Kind:
        """The kind of the array after a write of ``value``; raises if its dtype or shape differs."""
        if value.dtype is not self.dtype:
            raise InvalidArgumentError(
                f"TensorArray dtype is {self.dtype.name} but Op is trying to write dtype {value.dtype.name}"
            )
        shape = self.element_shape
        if not self._kind.alike and isinstance(self._rows, list) and not self._in_body():
            return self._kind
        if shape is not None and not shape.is_compatible_with(value.shape):
            raise InvalidArgumentError(
                f"Incompatible shape for value ({value.shape}), expected ({shape}): the elements of a "
                "TensorArray have one shape."
            )
        return self._kind if shape is not None else self._kind._replace(element_shape=value.shape)

    def _or_zeros(self, row: Any) -> Any:
        if row is not None:
            return row
        if self.element_shape is None:
            raise InvalidArgumentError(
                "Nothing has been written to this TensorArray, so that the shape of its elements is unknown; "
                "give it as element_shape, without which a loop over tensors can't carry the array."
            )
        if self.element_shape.is_static:
            return zeros(self.element_shape, self.dtype)
        return zeros_like(next(row for row in self._rows if row is not None))

    def _shape_of_rows(self) -> Shape:
        if self.element_shape is None:
            self._or_zeros(None)
        assert self.element_shape is not None
        return self.element_shape

    def _dense(self) -> Any:
        """One tensor with the elements as its rows."""
        if not isinstance(self._rows, list):
            if self._rows.shape:
                return self._rows
            return self._zero_rows(self._rows)
        if any(row is not None for row in self._rows):
            return stack([self._or_zeros(row) for row in self._rows])
        if self._rows and self.element_shape is None:
            return self._or_zeros(None)
        if self.element_shape is not None and not self.element_shape.is_static:
            return self._zero_rows(len(self._rows))
        return zeros(Shape((len(self._rows), *(self.element_shape or ()))), self.dtype)

    def _zero_rows(self, size: Any) -> Any:
        element = self._shape_of_rows()
        assert element.is_static or self._sizes is not None, "a write or shaped() has set the sizes"
        return zero_rows(size, element, self.dtype, None if element.is_static else self._sizes)


def _make(kind: _Kind, rows: Any, read: set[int], sizes: Any = None) -> TensorArray:
    array = TensorArray.__new__(TensorArray)
    array._kind, array._rows, array._read, array._sizes = kind, rows, read, sizes
    array._engine = dispatch.current().innermost
    return array


def _unwritten(count: int) -> list[Any]:
    """A list of ``count`` unwritten elements.

    Raises:
        ResourceExhaustedError: out of memory.
    """
    try:
        return [None] * count
    except (MemoryError, OverflowError) as error:
        raise out_of_memory(f"a TensorArray of size {count}", error) from None


def _static(index: Any) -> int | None:
    """An index as an int; None for one that is known at run time."""
    if type(index) is int:
        return index
    value = static_value(index)
    return None if value is None else int(value)

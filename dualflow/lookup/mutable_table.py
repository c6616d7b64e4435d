"""``MutableHashTable``: a table whose entries change, eagerly and in compiled functions.

The keys and the values are two variables of dynamic size, and an insertion assigns both. Compiled functions
can't hold variables of dynamic size: they call Python for each use of a table, in the order of the program.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dualflow.core import dispatch
from dualflow.core.dtypes import int64
from dualflow.core.errors import InvalidArgumentError
from dualflow.core.locks import SharedLock
from dualflow.core.shape import Shape
from dualflow.core.spec import TensorSpec
from dualflow.core.tracebacks import entry
from dualflow.eager.python_call import py_function
from dualflow.eager.variable import Variable
from dualflow.graph_mode.contexts import init_scope
from dualflow.lookup.table import LookupTable, map_keys, with_default
from dualflow.ops.arrangement import expand_dims, reshape
from dualflow.ops.comparison import less, logical_and
from dualflow.ops.creation import convert_to_tensor
from dualflow.ops.hash_tables.sorted_keys import key_order, key_positions
from dualflow.ops.joining import concat
from dualflow.ops.masking import boolean_mask
from dualflow.ops.selection import where
from dualflow.ops.shapes import size as size_of
from dualflow.ops.static import static_shape
from dualflow.ops.taking import gather

if TYPE_CHECKING:
    from dualflow.core.argument_types import DTypeLike, TensorLike
    from dualflow.ops.tensor import Tensor

_CHANGES: Final = SharedLock()
"""Held while a table's two variables are read or assigned, by eager calls of any table."""


@entry
class MutableHashTable(LookupTable):
    """A table of entries that can be inserted and removed.

    A checkpoint saves the entries. In functions each use is a call of Python; changes that a call made before
    it failed remain, as in TensorFlow.

    Args:
        key_dtype: integers or strings.
        value_dtype: any dtype.
        default_value: the value of keys that the table does not have, a scalar or of the shape of values.
        name: the table's name; "MutableHashTable" by default.
        checkpoint: whether checkpoints save the entries; True by default.
        experimental_is_anonymous: ignored, as in TensorFlow; False by default.

    Raises:
        DTypeError: the keys are neither integers nor strings.

    >>> import dualflow as df
    >>> table = df.lookup.experimental.MutableHashTable(df.string, df.int64, default_value=-1)
    >>> table.insert(["a", "b"], [1, 2])
    >>> table.lookup(["b", "c"]).numpy(), int(table.size())
    (array([ 2, -1]), 2)
    """

    @entry
    def __init__(
        self,
        key_dtype: DTypeLike,
        value_dtype: DTypeLike,
        default_value: TensorLike,
        name: str = "MutableHashTable",
        checkpoint: bool = True,
        experimental_is_anonymous: bool = False,
    ) -> None:
        super().__init__(key_dtype, value_dtype, name)
        with init_scope():
            self._default = convert_to_tensor(default_value, self._value_dtype)
        self._checkpoint = checkpoint
        inner = static_shape(self._default.shape)
        self._table_keys = _empty(self._key_dtype, (), f"{name}_keys")
        self._table_values = _empty(self._value_dtype, inner, f"{name}_values")

    def _trackable_children(self) -> dict[str, Variable]:
        return {"keys": self._table_keys, "values": self._table_values} if self._checkpoint else {}

    def insert(self, keys: TensorLike, values: TensorLike, name: str | None = None) -> None:
        """Set the values of keys; of a key that occurs twice, the last value counts.

        Args:
            keys: keys of any shape.
            values: a value for each, of the shape of ``keys`` followed by that of the default value.
            name: ignored, as in TensorFlow; None by default.

        Raises:
            DTypeError: ``keys`` is a tensor of another dtype than the table's keys.
            InvalidArgumentError: the shapes don't fit together.

        >>> import dualflow as df
        >>> table = df.lookup.experimental.MutableHashTable(df.int64, df.float32, [0.0, 0.0])
        >>> table.insert([3], [[1.0, 2.0]])
        >>> table[3].numpy()
        array([1., 2.], dtype=float32)
        """
        new_keys = self._keys(keys)
        new_values = convert_to_tensor(values, self._value_dtype)
        inner = self._default.shape
        expected = Shape([*new_keys.shape, *inner])
        if not expected.is_compatible_with(new_values.shape):
            raise InvalidArgumentError(
                f"Keys of shape {new_keys.shape} have values of shape {expected} in the table {self.name}, "
                f"not of shape {new_values.shape}."
            )
        _call(self._insert, (reshape(new_keys, [-1]), reshape(new_values, [-1, *inner])), None)

    def _insert(self, keys: Any, values: Any) -> None:
        with _CHANGES.lock:
            all_keys = concat([self._table_keys, keys], 0)
            order, is_last = key_order(all_keys)
            self._assign(all_keys, concat([self._table_values, values], 0), boolean_mask(order, is_last))

    def remove(self, keys: TensorLike, name: str | None = None) -> None:
        """Remove keys and their values; those that the table does not have are ignored.

        Args:
            keys: keys of any shape.
            name: ignored, as in TensorFlow; None by default.

        Raises:
            DTypeError: ``keys`` is a tensor of another dtype than the table's keys.

        >>> import dualflow as df
        >>> table = df.lookup.experimental.MutableHashTable(df.string, df.int64, 0)
        >>> table.insert(["a", "b"], [1, 2])
        >>> table.remove(["a", "z"])
        >>> table.export()[0].numpy()
        array([b'b'], dtype=object)
        """
        _call(self._remove, (reshape(self._keys(keys), [-1]),), None)

    def _remove(self, removed: Any) -> None:
        with _CHANGES.lock:
            present = convert_to_tensor(self._table_keys)
            order, is_last = key_order(concat([present, removed], 0))
            remains = logical_and(is_last, less(order, size_of(present, int64)))
            self._assign(present, self._table_values, boolean_mask(order, remains))

    def _assign(self, keys: Any, values: Any, positions: Any) -> None:
        self._table_values.assign(gather(values, positions))
        self._table_keys.assign(gather(keys, positions))

    def lookup(
        self,
        keys: TensorLike,
        dynamic_default_values: TensorLike | None = None,
        name: str | None = None,
    ) -> Any:
        """The values of ``keys``, and the default for those that the table does not have.

        Args:
            keys: keys of any shape, which may be ragged or sparse.
            dynamic_default_values: a default for each key, of dense keys; None for that of the table.
            name: ignored, as in TensorFlow; None by default.

        Returns:
            A tensor of the shape of ``keys`` followed by that of the default value.

        Raises:
            DTypeError: ``keys`` is a tensor of another dtype than the table's keys.

        >>> import dualflow as df
        >>> table = df.lookup.experimental.MutableHashTable(df.string, df.int64, -1)
        >>> table.lookup(["a", "b"], dynamic_default_values=[7, 8]).numpy()
        array([7, 8])
        """
        if dynamic_default_values is None:
            return map_keys(lambda x: self._looked_up(self._keys(x)), keys)
        return self._looked_up(self._keys(keys), convert_to_tensor(dynamic_default_values, self._value_dtype))

    def _looked_up(self, keys: Any, *defaults: Any) -> Any:
        spec = TensorSpec(Shape([*keys.shape, *self._default.shape]), self._value_dtype)
        return _call(self._lookup, (keys, *defaults), spec)

    def _lookup(self, keys: Any, *defaults: Any) -> Any:
        table_keys, values = self._entries()
        positions = key_positions(keys, table_keys)
        looked_up = gather(with_default(values, self._default), positions)
        if not defaults:
            return looked_up
        is_key = less(positions, size_of(table_keys, int64))
        for _ in self._default.shape:
            is_key = expand_dims(is_key, -1)
        return where(is_key, looked_up, defaults[0])

    def size(self, name: str | None = None) -> Tensor:
        """The number of entries.

        Args:
            name: ignored, as in TensorFlow; None by default.

        Raises nothing.

        Returns:
            An int64 scalar.

        >>> import dualflow as df
        >>> int(df.lookup.experimental.MutableHashTable(df.string, df.int64, 0).size())
        0
        """
        size: Tensor = _call(lambda: size_of(self._table_keys, int64), (), TensorSpec([], int64))
        return size

    def export(self, name: str | None = None) -> tuple[Tensor, Tensor]:
        """The keys, in ascending order, and their values.

        Args:
            name: ignored, as in TensorFlow; None by default.

        Raises nothing.

        Returns:
            A vector of keys, and a tensor with a value for each.

        >>> import dualflow as df
        >>> table = df.lookup.experimental.MutableHashTable(df.int64, df.int64, 0)
        >>> table.insert([5, 3], [1, 2])
        >>> [x.numpy().tolist() for x in table.export()]
        [[3, 5], [2, 1]]
        """
        specs = [TensorSpec(v.shape, v.dtype) for v in (self._table_keys, self._table_values)]
        keys, values = _call(self._entries, (), specs)
        return keys, values

    def _entries(self) -> list[Tensor]:
        with _CHANGES.lock:
            return [self._table_keys.value(), self._table_values.value()]


def _call(function: Callable[..., Any], inputs: tuple[Any, ...], results: Any) -> Any:
    """The results of ``function``, of these specs; in a trace, of each call of the traced function."""
    if dispatch.current().eager:
        return function(*inputs)
    return py_function(function, inputs, results)


def _empty(dtype: Any, inner: Sequence[int], name: str) -> Variable:
    """A variable of any number of rows, which has none yet."""
    initial = np.empty((0, *inner), dtype.dtype)
    return Variable(initial, trainable=False, dtype=dtype, shape=Shape([None, *inner]), name=name)

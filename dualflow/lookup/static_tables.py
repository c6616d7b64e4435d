"""Tables that do not change: ``StaticHashTable``, and ``StaticVocabularyTable``, with buckets for others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dualflow.core.convert import Array
from dualflow.core.dtypes import int64
from dualflow.core.errors import DTypeError, FailedPreconditionError, InvalidArgumentError
from dualflow.core.tracebacks import entry
from dualflow.graph_mode.contexts import init_scope
from dualflow.lookup.initializers import static_array
from dualflow.lookup.table import LookupTable, map_keys, with_default
from dualflow.ops.arithmetic import add
from dualflow.ops.comparison import equal
from dualflow.ops.conversion import cast
from dualflow.ops.creation import constant, convert_to_tensor
from dualflow.ops.hash_tables.sorted_keys import key_positions
from dualflow.ops.selection import where
from dualflow.ops.static import static_int
from dualflow.ops.taking import gather
from dualflow.ops.text.hash_buckets import to_hash_bucket_fast
from dualflow.ops.text.numbers import as_string

if TYPE_CHECKING:
    from dualflow.core.argument_types import DTypeLike, IntLike, TensorLike
    from dualflow.lookup.initializers import TableInitializer
    from dualflow.ops.tensor import Tensor


@entry
class StaticHashTable(LookupTable):
    """A table whose entries never change.

    Functions capture its keys and values as constants.

    Args:
        initializer: the entries; it calls :meth:`fill` once, or never for a table without entries.
        default_value: the value of all other keys, a scalar.
        name: the table's name; by default "hash_table".
        experimental_is_anonymous: ignored, as in TensorFlow; False by default.

    Raises:
        FailedPreconditionError: a key occurs twice, with different values.
        DTypeError: the keys are neither integers nor strings.
        InvalidArgumentError: ``default_value`` is not a scalar.

    >>> import dualflow as df
    >>> entries = df.lookup.KeyValueTensorInitializer(["cat", "dog"], [3, 5])
    >>> table = df.lookup.StaticHashTable(entries, default_value=-1)
    >>> table.lookup(["dog", "mouse"]).numpy(), int(table[df.constant("cat")])
    (array([ 5, -1], dtype=int32), 3)
    """

    @entry
    def __init__(
        self,
        initializer: TableInitializer,
        default_value: TensorLike,
        name: str | None = None,
        experimental_is_anonymous: bool = False,
    ) -> None:
        super().__init__(initializer.key_dtype, initializer.value_dtype, name or "hash_table")
        with init_scope():
            self._default = convert_to_tensor(default_value, self._value_dtype)
        if len(self._default.shape):
            raise InvalidArgumentError(
                f"The default value of a table is a scalar, not of shape {self._default.shape}."
            )
        self._entries: tuple[Any, Any] | None = None
        initializer.initialize(self)

    @property
    def default_value(self) -> Tensor:
        """The value of keys that the table does not have."""
        return self._default

    def fill(self, keys: TensorLike, values: TensorLike) -> None:
        """Set the entries of the table, which has none yet; for initializers.

        Args:
            keys, values: two vectors of the table's dtypes, of one size.

        Raises:
            FailedPreconditionError: the table has entries, or a key occurs twice with different values.

        >>> import dualflow as df
        >>> class One(df.lookup.KeyValueTensorInitializer):
        ...     def initialize(self, table):
        ...         table.fill(["one"], [1])
        >>> df.lookup.StaticHashTable(One(["a"], [0]), -1).export()[0].numpy()
        array([b'one'], dtype=object)
        """
        if self._entries is not None:
            raise FailedPreconditionError(
                f"The table {self.name} has its entries already; create another one."
            )
        key_array = static_array(convert_to_tensor(keys, self._key_dtype), "keys")
        value_array = static_array(convert_to_tensor(values, self._value_dtype), "values")
        order = key_array.argsort(kind="stable")
        key_array, value_array = key_array[order], value_array[order]
        repeated = np.zeros(len(order), np.bool_)
        repeated[1:] = key_array[1:] == key_array[:-1]
        self._check_repetitions(key_array, value_array, repeated)
        distinct = ~repeated
        with init_scope():
            self._entries = (
                constant(key_array[distinct], self._key_dtype),
                constant(value_array[distinct], self._value_dtype),
            )
            self._rows = with_default(self._entries[1], self._default)

    def _check_repetitions(self, keys: Array, values: Array, repeated: Array) -> None:
        for i in np.flatnonzero(repeated).tolist():
            first, second = values[i - 1 : i + 1].tolist()
            if first != second:
                raise FailedPreconditionError(
                    f"The table {self.name} has different values for the key {keys[i]!r}: {first!r} and "
                    f"{second!r}; leave one of them out."
                )

    def lookup(self, keys: TensorLike, name: str | None = None) -> Any:
        """The values of ``keys``, and the default for those that the table does not have.

        Args:
            keys: keys of any shape, which may be ragged or sparse.
            name: ignored, as in TensorFlow; None by default.

        Returns:
            A tensor of values with the shape of ``keys``.

        Raises:
            DTypeError: ``keys`` is a tensor of another dtype than the table's keys.
            FailedPreconditionError: the table was created without entries.

        >>> import dualflow as df
        >>> squares = df.lookup.StaticHashTable(df.lookup.KeyValueTensorInitializer([1, 2], [1, 4]), 0)
        >>> squares.lookup(df.ragged.constant([[1], [2, 3]]))
        <tf.RaggedTensor [[1], [4, 0]]>
        """
        if self._entries is None:
            raise FailedPreconditionError(
                f"The table {self.name} has no entries yet: its initializer did not fill it."
            )
        table_keys, rows = self._entries[0], self._rows
        return map_keys(lambda x: gather(rows, key_positions(self._keys(x), table_keys)), keys)

    def size(self, name: str | None = None) -> Tensor:
        """The number of entries.

        Args:
            name: ignored, as in TensorFlow; None by default.

        Raises nothing.

        Returns:
            An int64 scalar.

        >>> import dualflow as df
        >>> int(df.lookup.StaticHashTable(df.lookup.KeyValueTensorInitializer(["a"], [1]), 0).size())
        1
        """
        return constant(0 if self._entries is None else self._entries[0].shape[0], int64)

    def export(self, name: str | None = None) -> tuple[Tensor, Tensor]:
        """The keys, in ascending order, and their values.

        Args:
            name: ignored, as in TensorFlow; None by default.

        Raises nothing.

        Returns:
            Two vectors.

        >>> import dualflow as df
        >>> table = df.lookup.StaticHashTable(df.lookup.KeyValueTensorInitializer([5, 3], [1, 2]), 0)
        >>> [x.numpy().tolist() for x in table.export()]
        [[3, 5], [2, 1]]
        """
        if self._entries is None:
            return constant([], self._key_dtype), constant([], self._value_dtype)
        return self._entries


@entry
class StaticVocabularyTable(LookupTable):
    """A table from keys to ids, in which all other keys have the ids of buckets after those of the table.

    The bucket is :func:`dualflow.strings.to_hash_bucket_fast` of the key, as in TensorFlow.

    Args:
        initializer: the entries, with values from 0 up to their number; None for buckets alone.
        num_oov_buckets: the number of buckets, 1 or more.
        lookup_key_dtype: the dtype of keys to look up; by default that of the initializer. Without an
            initializer it must be given.
        name: the table's name; by default "vocabulary_table".
        experimental_is_anonymous: ignored, as in TensorFlow; False by default.

    Raises:
        InvalidArgumentError: ``num_oov_buckets`` is less than 1.
        DTypeError: the values are not int64, or the two dtypes of keys don't fit together.

    >>> import dualflow as df
    >>> entries = df.lookup.KeyValueTensorInitializer(["a", "b"], df.constant([0, 1], df.int64))
    >>> table = df.lookup.StaticVocabularyTable(entries, num_oov_buckets=3)
    >>> int(table.lookup(["b", "other"])[0]), int(table.size())
    (1, 5)
    """

    @entry
    def __init__(
        self,
        initializer: TableInitializer | None,
        num_oov_buckets: IntLike,
        lookup_key_dtype: DTypeLike | None = None,
        name: str | None = None,
        experimental_is_anonymous: bool = False,
    ) -> None:
        self._buckets = static_int(num_oov_buckets, "num_oov_buckets")
        if self._buckets < 1:
            raise InvalidArgumentError(f"num_oov_buckets is at least 1, not {self._buckets}.")
        key_dtype = lookup_key_dtype
        if key_dtype is None and initializer is not None:
            key_dtype = initializer.key_dtype
        if key_dtype is None:
            raise DTypeError(
                "A vocabulary table without an initializer needs lookup_key_dtype, such as df.string."
            )
        super().__init__(key_dtype, int64, name or "vocabulary_table")
        self._table = None if initializer is None else StaticHashTable(initializer, -1)
        if self._table is not None:
            self._check_dtypes(self._table)

    def _check_dtypes(self, table: StaticHashTable) -> None:
        if table.value_dtype is not int64:
            raise DTypeError(
                f"The values of a vocabulary table are ids of int64, not {table.value_dtype.name}; "
                "give the initializer value_dtype=df.int64."
            )
        if self._key_dtype.is_string is not table.key_dtype.is_string:
            raise DTypeError(
                f"lookup_key_dtype is {self._key_dtype.name}, and the table's keys are "
                f"{table.key_dtype.name}; both are strings or both integers."
            )

    def lookup(self, keys: TensorLike, name: str | None = None) -> Any:
        """The ids of ``keys``: their values in the table, or those of their buckets.

        Args:
            keys: keys of any shape, which may be ragged or sparse.
            name: ignored, as in TensorFlow; None by default.

        Returns:
            An int64 tensor with the shape of ``keys``.

        Raises:
            DTypeError: ``keys`` is a tensor of another dtype than ``key_dtype``.

        >>> import dualflow as df
        >>> table = df.lookup.StaticVocabularyTable(None, 2, lookup_key_dtype=df.string)
        >>> table.lookup(["x", "y"]).dtype.name
        'int64'
        """
        return map_keys(self._ids, keys)

    def _ids(self, keys: Any) -> Any:
        tensor = self._keys(keys)
        texts = tensor if tensor.dtype.is_string else as_string(tensor)
        buckets = to_hash_bucket_fast(texts, self._buckets)
        if self._table is None:
            return buckets
        ids = self._table.lookup(cast(tensor, self._table.key_dtype))
        return where(equal(ids, -1), add(buckets, self._table.size()), ids)

    def size(self, name: str | None = None) -> Tensor:
        """The number of entries and buckets.

        Args:
            name: ignored, as in TensorFlow; None by default.

        Raises nothing.

        Returns:
            An int64 scalar.

        >>> import dualflow as df
        >>> int(df.lookup.StaticVocabularyTable(None, 2, lookup_key_dtype=df.string).size())
        2
        """
        buckets = constant(self._buckets, int64)
        return buckets if self._table is None else add(self._table.size(), buckets)

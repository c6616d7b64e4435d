"""Descriptions of features of ``Example`` messages: how each is parsed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from dualflow.core.dtypes import int32
from dualflow.core.errors import DTypeError, InvalidArgumentError
from dualflow.core.records import NamedTuple
from dualflow.ops.records import feature_partitions

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dualflow.core.argument_types import DTypeLike, ShapeLike, TensorLike


@dataclass(frozen=True, slots=True)
class FixedLenFeature:
    """A feature with the same number of values in each example; it is parsed to a dense tensor.

    Args:
        shape: the shape of the values of an example; ``[]`` for one value.
        dtype: float32, int64 or string.
        default_value: the values of an example without the feature; by default that is an error.

    >>> import dualflow as df
    >>> df.io.FixedLenFeature([2], df.float32).default_value is None
    True
    """

    shape: ShapeLike
    dtype: DTypeLike
    default_value: TensorLike | None = None


@dataclass(frozen=True, slots=True)
class VarLenFeature:
    """A feature with any number of values; it is parsed to a SparseTensor.

    Args:
        dtype: float32, int64 or string.

    >>> import dualflow as df
    >>> df.io.parse_single_example(b"", {"words": df.io.VarLenFeature(df.string)})["words"].shape
    (0,)
    """

    dtype: DTypeLike


@dataclass(frozen=True, slots=True)
class FixedLenSequenceFeature:
    """A feature with any number of steps of one shape; it is parsed to a dense tensor, padded in a batch.

    Args:
        shape: the shape of the values of a step.
        dtype: float32, int64 or string.
        allow_missing: whether an example may lack the feature; ``parse_example`` needs True.
        default_value: the padding, 0 or the empty string by default.

    >>> import dualflow as df
    >>> steps = df.io.FixedLenSequenceFeature([2], df.float32, allow_missing=True)
    >>> df.io.parse_single_example(b"", {"steps": steps})["steps"].shape
    (0, 2)
    """

    shape: ShapeLike
    dtype: DTypeLike
    allow_missing: bool = False
    default_value: TensorLike | None = None


class RowSplits(NamedTuple):
    """The feature ``key`` has the row splits of a ragged feature."""

    key: str


class RowLengths(NamedTuple):
    """The feature ``key`` has the row lengths of a ragged feature."""

    key: str


class RowStarts(NamedTuple):
    """The feature ``key`` has the starts of the rows of a ragged feature."""

    key: str


class RowLimits(NamedTuple):
    """The feature ``key`` has the ends of the rows of a ragged feature."""

    key: str


class ValueRowIds(NamedTuple):
    """The feature ``key`` has the row of each value of a ragged feature."""

    key: str


class UniformRowLength(NamedTuple):
    """All rows of a ragged feature have ``length`` values."""

    length: int


_KINDS = {
    RowSplits: feature_partitions.ROW_SPLITS,
    RowLengths: feature_partitions.ROW_LENGTHS,
    RowStarts: feature_partitions.ROW_STARTS,
    RowLimits: feature_partitions.ROW_LIMITS,
    ValueRowIds: feature_partitions.VALUE_ROWIDS,
    UniformRowLength: feature_partitions.UNIFORM,
}


@dataclass(frozen=True, slots=True)
class RaggedFeature:
    """A feature with any number of values, in rows that others describe; it is parsed to a RaggedTensor.

    Args:
        dtype: float32, int64 or string.
        value_key: the key of the feature that has the values; None for the name of the feature.
        partitions: the ragged axes in each example, the outermost first: ``RaggedFeature.RowSplits(key)``,
            ``RowLengths``, ``RowStarts``, ``RowLimits``, ``ValueRowIds`` or ``UniformRowLength(length)``.
        row_splits_dtype: int32 or int64.
        validate: ignored: partitions are checked always.

    >>> import dualflow as df
    >>> words = df.io.RaggedFeature(df.string)
    >>> df.io.parse_example([b"", b""], {"words": words})["words"]
    <tf.RaggedTensor [[], []]>
    """

    dtype: DTypeLike
    value_key: str | None = None
    partitions: Sequence[Any] = ()
    row_splits_dtype: DTypeLike = int32
    validate: bool = False

    RowSplits: ClassVar = RowSplits
    RowLengths: ClassVar = RowLengths
    RowStarts: ClassVar = RowStarts
    RowLimits: ClassVar = RowLimits
    ValueRowIds: ClassVar = ValueRowIds
    UniformRowLength: ClassVar = UniformRowLength

    def described_partitions(self) -> tuple[feature_partitions.Partition, ...]:
        """The partitions as plain data.

        Raises:
            DTypeError: one is no partition.
            InvalidArgumentError: a length is not positive.
        """
        for partition in self.partitions:
            if type(partition) not in _KINDS:
                raise DTypeError(
                    f"A partition is a RaggedFeature.RowSplits or its like, not {partition!r}; name a "
                    "feature."
                )
            if isinstance(partition, UniformRowLength) and partition.length < 1:
                raise InvalidArgumentError(
                    f"The length of rows is 1 or more, not {partition.length}; change it."
                )
        return tuple([(_KINDS[type(partition)], partition[0]) for partition in self.partitions])


FeatureSpec = FixedLenFeature | VarLenFeature | FixedLenSequenceFeature | RaggedFeature
"""How a feature is parsed."""

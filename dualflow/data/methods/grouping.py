"""Methods that stack elements into batches, and split batches."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from dualflow.core.convert import as_array
from dualflow.core.dtypes import int64
from dualflow.core.errors import DTypeError, InvalidArgumentError
from dualflow.core.shape import UNKNOWN_RANK, Shape, as_shape
from dualflow.core.tracebacks import entry
from dualflow.data.arguments import check_batches, check_stackable, leaves_up_to, positive
from dualflow.data.batching import BatchStage, PaddedBatchStage, UnbatchStage
from dualflow.data.element import leaf_array
from dualflow.data.methods.base import DatasetBase
from dualflow.data.ragged_batching import RaggedBatchStage, RaggedUnbatchStage, holds_ragged, reject_ragged
from dualflow.function.errors import here
from dualflow.ops.ragged.ragged_spec import splits_dtype

if TYPE_CHECKING:
    from dualflow.core.argument_types import DTypeLike, IntLike


@entry
class GroupingMethods(DatasetBase):
    """Transformations to and from batches."""

    __slots__ = ()

    def batch(
        self,
        batch_size: IntLike,
        drop_remainder: bool = False,
        num_parallel_calls: IntLike | None = None,
        deterministic: bool | None = None,
        name: str | None = None,
    ) -> Self:
        """Batches: each ``batch_size`` consecutive elements are stacked along a new first axis.

        Args:
            batch_size: the number of elements in a batch.
            drop_remainder: whether the last batch is dropped if it is smaller.
            num_parallel_calls, deterministic: ignored: a batch of rows is one gather.
            name: ignored; as in TensorFlow.

        Raises:
            InvalidArgumentError: ``batch_size`` is not positive, or a component is a SparseTensor or a
                dataset; during iteration, elements of a batch differ in shape.

        >>> import dualflow as df
        >>> [x.numpy().tolist() for x in df.data.Dataset.range(5).batch(2)]
        [[0, 1], [2, 3], [4]]
        """
        size, drop = positive(batch_size, "Batch size"), bool(drop_remainder)
        check_stackable(self.stage.layout, "batch")
        if holds_ragged(self.stage.layout.structure):
            ragged = RaggedBatchStage(source=self.stage, size=size, drop_remainder=drop, of_tensors=False)
            return self.then(ragged)
        return self.then(BatchStage(source=self.stage, size=size, drop_remainder=drop))

    def ragged_batch(
        self,
        batch_size: IntLike,
        drop_remainder: bool = False,
        row_splits_dtype: DTypeLike = int64,
        name: str | None = None,
    ) -> Self:
        """Batches of ``batch_size`` consecutive elements, whose lengths may differ, as ragged tensors.

        Args:
            batch_size: the number of elements in a batch.
            drop_remainder: whether the last batch is dropped if it is smaller.
            row_splits_dtype: int64 or int32.
            name: ignored; as in TensorFlow.

        Returns:
            A dataset of ragged tensors; a component without sizes that are unknown is a tensor.

        Raises:
            InvalidArgumentError: ``batch_size`` is not positive, or the number of axes is unknown.
            DTypeError: the dtype is not supported.

        >>> import dualflow as df
        >>> rows = df.data.Dataset.range(3).map(lambda n: df.range(n))
        >>> [batch.to_list() for batch in rows.ragged_batch(2)]
        [[[], [0]], [[0, 1]]]
        """
        check_stackable(self.stage.layout, "ragged_batch")
        stage = RaggedBatchStage(
            source=self.stage,
            size=positive(batch_size, "Batch size"),
            drop_remainder=bool(drop_remainder),
            splits_dtype=splits_dtype(row_splits_dtype),
        )
        stage.check_layout()
        return self.then(stage)

    def padded_batch(
        self,
        batch_size: IntLike,
        padded_shapes: object = None,
        padding_values: object = None,
        drop_remainder: bool = False,
        name: str | None = None,
    ) -> Self:
        """Batches of ``batch_size`` consecutive elements, padded to one shape.

        Args:
            batch_size: the number of elements in a batch.
            padded_shapes: a structure of the shapes to pad to; None for a size, or for all of them, means the
                largest in each batch.
            padding_values: one padding value, or a structure of them; 0 by default.
            drop_remainder: whether the last batch is dropped if it is smaller.
            name: ignored; as in TensorFlow.

        Raises:
            InvalidArgumentError: a padded shape has another number of axes than the elements, or elements are
                larger than it; or the number of axes is unknown.
            DTypeError: a padding value has another dtype than its component, or a padded shape is no shape.

        >>> import dualflow as df
        >>> rows = df.data.Dataset.range(1, 4).map(lambda n: df.fill([n], n))
        >>> [x.numpy().tolist() for x in rows.padded_batch(2)]
        [[[1, 0], [2, 2]], [[3, 3, 3]]]
        """
        size = positive(batch_size, "Batch size")
        layout = self.stage.layout
        check_stackable(layout, "padded_batch")
        reject_ragged(layout.structure, "padded_batch")
        if padded_shapes is None:
            shapes = [spec.shape for spec in layout.specs]
            if UNKNOWN_RANK in shapes:
                raise InvalidArgumentError(
                    "padded_batch needs padded_shapes, such as [None], for elements of an unknown number of "
                    f"axes.{here()}"
                )
        else:
            shapes = list(map(_shape, leaves_up_to(layout.structure, padded_shapes, "padded_shapes")))
        for spec, shape in zip(layout.specs, shapes, strict=True):
            if spec.shape is not UNKNOWN_RANK and len(shape) != len(spec.shape):
                raise InvalidArgumentError(
                    f"The padded shape {shape} has another number of axes than the component's, "
                    f"{spec.shape}.{here()}"
                )
        padding: Any = padding_values
        is_scalar = padding_values is None or (np.ndim(padding) == 0 and not isinstance(padding_values, dict))
        values = (
            [padding_values] * len(shapes)
            if is_scalar
            else leaves_up_to(layout.structure, padding_values, "padding_values")
        )
        fills = tuple([_fill(value, spec) for value, spec in zip(values, layout.specs, strict=True)])
        return self.then(
            PaddedBatchStage(
                source=self.stage,
                size=size,
                drop_remainder=bool(drop_remainder),
                shapes=tuple(shapes),
                fills=fills,
            )
        )

    def unbatch(self, name: str | None = None) -> Self:
        """The rows of each element, as elements.

        Raises:
            InvalidArgumentError: a component has no axes or is a SparseTensor, or their first sizes differ.

        >>> import dualflow as df
        >>> list(df.data.Dataset.from_tensors([1, 2]).unbatch().as_numpy_iterator())
        [np.int32(1), np.int32(2)]
        """
        check_stackable(self.stage.layout, "unbatch")
        if holds_ragged(self.stage.layout.structure):
            return self.then(RaggedUnbatchStage(source=self.stage))
        check_batches(self.stage.layout.specs, "unbatch")
        return self.then(UnbatchStage(source=self.stage))


def _shape(sizes_or_size: Any) -> Shape:
    """A padded shape; -1 and None are unknown sizes, and a number is the size of one axis."""
    if sizes_or_size is None:
        return as_shape([None])
    sizes_or_size = (
        np.asarray(leaf_array(sizes_or_size)).tolist() if hasattr(sizes_or_size, "numpy") else sizes_or_size
    )
    sizes = sizes_or_size if isinstance(sizes_or_size, Iterable) else [sizes_or_size]
    return as_shape([None if n is None or n == -1 else n for n in sizes])


def _fill(value: Any, spec: Any) -> Any:
    """The padding value of a component, as an array of its dtype."""
    dtype = spec.dtype
    if value is None:
        return np.array(b"", object) if dtype.kind == "O" else np.zeros((), dtype.dtype)
    if isinstance(value, bool | int | float | complex):
        return as_array(value, dtype)
    array = leaf_array(value)
    if array.dtype != dtype.dtype:
        raise DTypeError(
            f"Invalid `padding_values`: a value of dtype {array.dtype} does not match the component's, "
            f"{dtype.name}.{here()}"
        )
    return array

"""Methods that group elements: windows, groups and buckets by a key, rebatch, unique."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from dualflow.core.dtypes import int64
from dualflow.core.errors import DTypeError, InvalidArgumentError
from dualflow.core.spec import TensorSpec
from dualflow.core.tracebacks import entry
from dualflow.core.tree import LEAF, Structure, unflatten
from dualflow.data.arguments import (
    callable_function,
    check_batches,
    check_stackable,
    check_tensors,
    leaves_up_to,
    positive,
    whole_numbers,
)
from dualflow.data.captured import captured
from dualflow.data.element import DatasetSpec, ElementLayout, leaf_array
from dualflow.data.functions import ElementFunction, is_tracing_layout
from dualflow.data.keyed_groups import GroupByWindowStage, RebatchStage, UniqueStage
from dualflow.data.methods.base import DatasetBase
from dualflow.data.methods.mapping import dataset_layout
from dualflow.data.nesting import WindowStage
from dualflow.data.ragged_batching import reject_ragged
from dualflow.function.errors import here
from dualflow.ops.broadcasting import reduce_sum
from dualflow.ops.conversion import cast
from dualflow.ops.creation import constant, convert_to_tensor

if TYPE_CHECKING:
    from dualflow.core.argument_types import IntLike


@entry
class WindowMethods(DatasetBase):
    """Transformations that group elements."""

    __slots__ = ()

    def window(
        self,
        size: IntLike,
        shift: IntLike | None = None,
        stride: IntLike = 1,
        drop_remainder: bool = False,
        name: str | None = None,
    ) -> Any:
        """Sliding windows, each a dataset of its elements.

        If elements consist of several tensors, a window is a structure of datasets.

        Args:
            size: how many elements a window has.
            shift: the distance between the beginnings of windows; ``size`` by default.
            stride: the distance between the elements of a window.
            drop_remainder: whether smaller windows at the end are dropped.
            name: ignored; as in TensorFlow.

        Raises:
            InvalidArgumentError: one of the numbers is not positive.

        >>> import dualflow as df
        >>> windows = df.data.Dataset.range(5).window(3, shift=1, drop_remainder=True)
        >>> [[int(x) for x in window] for window in windows]
        [[0, 1, 2], [1, 2, 3], [2, 3, 4]]
        """
        length = positive(size, "Window size")
        step = length if shift is None else positive(shift, "Window shift")
        layout = self.stage.layout
        specs = ElementLayout(layout.structure, tuple(map(DatasetSpec, layout.specs)))
        return self.then(
            WindowStage(
                source=self.stage,
                size=length,
                shift=step,
                stride=positive(stride, "Window stride"),
                drop_remainder=bool(drop_remainder),
                specs=specs,
                dataset_of=self.of,
            )
        )

    def group_by_window(
        self,
        key_func: Callable[..., Any],
        reduce_func: Callable[[Any, Any], Any],
        window_size: IntLike | None = None,
        window_size_func: Callable[[Any], Any] | None = None,
        name: str | None = None,
    ) -> Any:
        """The elements of datasets that ``reduce_func`` returns for groups of elements with equal keys.

        Args:
            key_func: returns the key of an element, an integer.
            reduce_func: takes a key and the dataset of a group; returns a dataset. It is called as the
                function of :meth:`flat_map` is. Incomplete groups come at the end.
            window_size: how many elements form a group.
            window_size_func: returns that number for a key; instead of ``window_size``.
            name: ignored; as in TensorFlow.

        Raises:
            InvalidArgumentError: not exactly one of the sizes is given, or it is not positive.
            DTypeError: a key is not an integer, or ``reduce_func`` doesn't return a dataset.

        >>> import dualflow as df
        >>> grouped = df.data.Dataset.range(6).group_by_window(
        ...     lambda x: x % 2, lambda key, group: group.batch(2), window_size=2
        ... )
        >>> [x.numpy().tolist() for x in grouped]
        [[0, 2], [1, 3], [4], [5]]
        """
        if (window_size is None) == (window_size_func is None):
            raise InvalidArgumentError(
                f"group_by_window takes exactly one of window_size and window_size_func.{here()}"
            )
        key = self.function(callable_function(key_func, "key_func"))
        specs = key.layout.specs
        if len(specs) != 1 or not specs[0].dtype.is_integer or specs[0].shape:
            raise DTypeError(
                f"key_func must return an integer scalar, not {key.layout.element_spec!r}.{here()}"
            )
        if window_size_func is None:
            fixed = positive(window_size, "Window size")
            return self._grouped(key, reduce_func, lambda k: fixed)
        sized = captured(callable_function(window_size_func, "window_size_func"))
        return self._grouped(key, reduce_func, lambda k: positive(sized(constant(k, int64)), "Window size"))

    def _grouped(
        self, key: ElementFunction, reduce_func: Callable[[Any, Any], Any], size: Callable[[int], int]
    ) -> Any:
        pair = Structure(tuple, (), (LEAF, LEAF))
        arguments = ElementLayout(pair, (TensorSpec([], int64), DatasetSpec(self.stage.layout.element_spec)))
        reduction = ElementFunction(
            callable_function(reduce_func, "reduce_func"), lambda: arguments, self.of, datasets=True
        )
        return self.then(
            GroupByWindowStage(
                source=self.stage,
                key=key,
                reduction=reduction,
                elements=dataset_layout(reduction),
                size=size,
                dataset_of=self.of,
            )
        )

    def bucket_by_sequence_length(
        self,
        element_length_func: Callable[..., Any],
        bucket_boundaries: Sequence[int],
        bucket_batch_sizes: Sequence[int],
        padded_shapes: object = None,
        padding_values: object = None,
        pad_to_bucket_boundary: bool = False,
        no_padding: bool = False,
        drop_remainder: bool = False,
        name: str | None = None,
    ) -> Self:
        """Padded batches of elements of about the same length.

        Args:
            element_length_func: returns the length of an element, an integer.
            bucket_boundaries: ascending lengths; each is the smallest length of the next bucket.
            bucket_batch_sizes: the size of the batches of each bucket, one more than boundaries.
            padded_shapes, padding_values: as in :meth:`padded_batch`.
            pad_to_bucket_boundary: whether unknown sizes are padded to the largest length of the bucket.
            no_padding: whether batches are not padded; all elements of a batch must then have one shape.
            drop_remainder: whether smaller batches at the end are dropped.
            name: ignored; as in TensorFlow.

        Raises:
            InvalidArgumentError: there isn't one more size than boundaries, a size is not positive, or the
                boundaries don't ascend; during iteration, an element that should be padded to its bucket's
                boundary is beyond the last one.
            DTypeError: boundaries or batch sizes are no lists of integers.

        >>> import dualflow as df
        >>> rows = df.data.Dataset.range(1, 5).map(lambda n: df.fill([n], n))
        >>> batches = rows.bucket_by_sequence_length(lambda x: df.shape(x)[0], [3], [2, 2])
        >>> [x.numpy().tolist() for x in batches]
        [[[1, 0], [2, 2]], [[3, 3, 3, 0], [4, 4, 4, 4]]]
        """
        bounds = whole_numbers(bucket_boundaries, "bucket_boundaries")
        sizes = whole_numbers(bucket_batch_sizes, "bucket_batch_sizes")
        for size in sizes:
            positive(size, "Batch size")
        if len(sizes) != len(bounds) + 1:
            raise InvalidArgumentError(
                f"There must be one more batch size than boundaries, but there are {len(sizes)} batch sizes "
                f"and {len(bounds)} boundaries.{here()}"
            )
        if bounds != sorted(bounds):
            raise InvalidArgumentError(f"The bucket_boundaries must ascend: {bounds}; sort them.{here()}")
        measure = callable_function(element_length_func, "element_length_func")

        def bucket(*element: Any) -> Any:
            length = cast(convert_to_tensor(measure(*element)), int64)
            return reduce_sum(cast(length >= constant(bounds, int64), int64))

        def batch(key: Any, group: Any) -> Any:
            place = 0 if is_tracing_layout() else int(key)
            if no_padding:
                return group.batch(sizes[place], drop_remainder=drop_remainder)
            shapes = padded_shapes
            if pad_to_bucket_boundary and not is_tracing_layout():
                shapes = _bounded(group.stage.layout, padded_shapes, place, bounds)
            return group.padded_batch(sizes[place], shapes, padding_values, drop_remainder=drop_remainder)

        batches: Self = self._grouped(self.function(bucket), batch, lambda key: sizes[key])
        return batches

    def rebatch(self, batch_size: IntLike, drop_remainder: bool = False, name: str | None = None) -> Self:
        """The rows of batches in batches of another size.

        Args:
            batch_size: the size, or several, which are used cyclically.
            drop_remainder: whether a smaller last batch is dropped.
            name: ignored; as in TensorFlow.

        Raises:
            InvalidArgumentError: a size is not positive, or there is none; elements are scalars, or the first
                sizes of their components differ; during iteration, the rows of batches differ in shape.

        >>> import dualflow as df
        >>> [x.numpy().tolist() for x in df.data.Dataset.range(5).batch(4).rebatch(3)]
        [[0, 1, 2], [3, 4]]
        """
        batch_sizes = np.atleast_1d(leaf_array(batch_size)).tolist()
        sizes = tuple([positive(n, "Batch size") for n in batch_sizes])
        if not sizes:
            raise InvalidArgumentError(f"rebatch takes one batch size or more, not {batch_size!r}.{here()}")
        layout = self.stage.layout
        check_stackable(layout, "rebatch")
        reject_ragged(layout.structure, "rebatch")
        check_batches(layout.specs, "rebatch")
        return self.then(RebatchStage(source=self.stage, sizes=sizes, drop_remainder=bool(drop_remainder)))

    def unique(self, name: str | None = None) -> Self:
        """The elements that differ from all earlier ones.

        Raises:
            InvalidArgumentError: elements are datasets.

        >>> import dualflow as df
        >>> [int(x) for x in df.data.Dataset.from_tensor_slices([1, 2, 1]).unique()]
        [1, 2]
        """
        check_tensors(self.stage.layout, "unique")
        return self.then(UniqueStage(source=self.stage))


def _bounded(layout: ElementLayout, padded_shapes: Any, place: int, bounds: list[int]) -> Any:
    """Padded shapes whose unknown sizes are the largest length of a bucket."""
    if place == len(bounds):
        raise InvalidArgumentError(
            "An element is at least as long as the last boundary, to which batches should be padded; add a "
            f"boundary beyond it.{here()}"
        )
    shapes = (
        [s.shape for s in layout.specs]
        if padded_shapes is None
        else leaves_up_to(layout.structure, padded_shapes, "padded_shapes")
    )
    static_shapes = [[bounds[place] - 1 if n in (None, -1) else n for n in shape] for shape in shapes]
    return unflatten(layout.structure, static_shapes)

"""Groups of elements that are datasets themselves, or that functions make elements of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Self

import numpy as np

from dualflow.core.dtypes import int64
from dualflow.core.errors import DTypeError, InvalidArgumentError
from dualflow.core.spec import TensorSpec
from dualflow.core.tracebacks import entry
from dualflow.core.tree import LEAF, Structure, unflatten
from dualflow.data.arguments import callable_function, leaves_up_to, positive
from dualflow.data.captured import captured
from dualflow.data.element import DatasetSpec, ElementLayout, leaf_array
from dualflow.data.functions import ElementFunction, on_trial
from dualflow.data.keyed_groups import GroupByWindowStage, RebatchStage, UniqueStage
from dualflow.data.methods.base import StageHolder
from dualflow.data.methods.mapping import dataset_layout
from dualflow.data.nesting import WindowStage
from dualflow.function.errors import here
from dualflow.ops.broadcasting import reduce_sum
from dualflow.ops.conversion import cast
from dualflow.ops.creation import constant, convert_to_tensor


@entry
class WindowMethods(StageHolder):
    """Transformations that group elements."""

    __slots__ = ()

    def window(
        self,
        size: Any,
        shift: Any = None,
        stride: Any = 1,
        drop_remainder: bool = False,
        name: str | None = None,
    ) -> Self:
        """Datasets of ``size`` elements each; of elements with several tensors, structures of datasets.

        Args:
            size: how many elements a window has.
            shift: how far the next window begins behind it; ``size`` by default.
            stride: how far its elements are apart.
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
        known = self.stage.layout
        specs = ElementLayout(known.structure, tuple(map(DatasetSpec, known.specs)))
        return self.then(
            WindowStage(
                source=self.stage,
                size=length,
                shift=step,
                stride=positive(stride, "Window stride"),
                whole=bool(drop_remainder),
                specs=specs,
                nest=self.of,
            )
        )

    def group_by_window(
        self,
        key_func: Callable[..., Any],
        reduce_func: Callable[[Any, Any], Any],
        window_size: Any = None,
        window_size_func: Callable[[Any], Any] | None = None,
        name: str | None = None,
    ) -> Self:
        """What ``reduce_func`` makes of so many elements of one key each.

        Args:
            key_func: gives the key of an element, an integer.
            reduce_func: takes a key and the dataset of a group; returns a dataset. It is called as the
                function of :meth:`flat_map` is. Smaller groups come at the end.
            window_size: how many elements make a group.
            window_size_func: or a function of the key that tells it.
            name: ignored; as in TensorFlow.

        Raises:
            InvalidArgumentError: not exactly one of the sizes is given, or it is not positive.
            DTypeError: a key is no integer, or ``reduce_func`` returns no dataset.

        >>> import dualflow as df
        >>> grouped = df.data.Dataset.range(6).group_by_window(
        ...     lambda x: x % 2, lambda key, group: group.batch(2), window_size=2
        ... )
        >>> [x.numpy().tolist() for x in grouped]
        [[0, 2], [1, 3], [4], [5]]
        """
        if (window_size is None) == (window_size_func is None):
            raise InvalidArgumentError(
                f"group_by_window takes one of window_size and window_size_func.{here()}"
            )
        key = self.function(callable_function(key_func, "key_func"))
        specs = key.layout.specs
        if len(specs) != 1 or not specs[0].dtype.is_integer or specs[0].shape:
            raise DTypeError(f"key_func returns an integer scalar, not {key.layout.element_spec!r}.{here()}")
        if window_size_func is None:
            fixed = positive(window_size, "Window size")
            return self._grouped(key, reduce_func, lambda k: fixed)
        sized = captured(callable_function(window_size_func, "window_size_func"))
        return self._grouped(key, reduce_func, lambda k: positive(sized(constant(k, int64)), "Window size"))

    def _grouped(
        self, key: ElementFunction, reduce_func: Callable[[Any, Any], Any], size: Callable[[int], int]
    ) -> Self:
        pair = Structure(tuple, (), (LEAF, LEAF))
        given = ElementLayout(pair, (TensorSpec([], int64), DatasetSpec(self.stage.layout.element_spec)))
        made = ElementFunction(
            callable_function(reduce_func, "reduce_func"), lambda: given, self.of, datasets=True
        )
        return self.then(
            GroupByWindowStage(
                source=self.stage, key=key, made=made, elements=dataset_layout(made), size=size, nest=self.of
            )
        )

    def bucket_by_sequence_length(
        self,
        element_length_func: Callable[..., Any],
        bucket_boundaries: Sequence[int],
        bucket_batch_sizes: Sequence[int],
        padded_shapes: Any = None,
        padding_values: Any = None,
        pad_to_bucket_boundary: bool = False,
        no_padding: bool = False,
        drop_remainder: bool = False,
        name: str | None = None,
    ) -> Self:
        """Padded batches of elements of about the same length.

        Args:
            element_length_func: gives the length of an element, an integer.
            bucket_boundaries: rising lengths: from each on, elements are in the next bucket.
            bucket_batch_sizes: the size of the batches of each bucket, one more than boundaries.
            padded_shapes, padding_values: as :meth:`padded_batch` takes them.
            pad_to_bucket_boundary: whether open sizes are filled up to the longest of the bucket.
            no_padding: whether batches are not padded, as all elements of one have one shape.
            drop_remainder: whether smaller batches at the end are dropped.
            name: ignored; as in TensorFlow.

        Raises:
            InvalidArgumentError: the numbers of boundaries and sizes don't fit; or in the loop, an element is
                beyond the last boundary and is to be padded to it.

        >>> import dualflow as df
        >>> rows = df.data.Dataset.range(1, 5).map(lambda n: df.fill([n], n))
        >>> batches = rows.bucket_by_sequence_length(lambda x: df.shape(x)[0], [3], [2, 2])
        >>> [x.numpy().tolist() for x in batches]
        [[[1, 0], [2, 2]], [[3, 3, 3, 0], [4, 4, 4, 4]]]
        """
        bounds, sizes = list(map(int, bucket_boundaries)), list(map(int, bucket_batch_sizes))
        if len(sizes) != len(bounds) + 1:
            raise InvalidArgumentError(
                f"There is one batch size more than boundaries, but {len(sizes)} and {len(bounds)} are "
                f"given.{here()}"
            )
        measure = callable_function(element_length_func, "element_length_func")

        def bucket(*element: Any) -> Any:
            length = cast(convert_to_tensor(measure(*element)), int64)
            return reduce_sum(cast(length >= constant(bounds, int64), int64))

        def batch(key: Any, group: Any) -> Any:
            place = 0 if on_trial() else int(key)
            if no_padding:
                return group.batch(sizes[place], drop_remainder=drop_remainder)
            shapes = padded_shapes
            if pad_to_bucket_boundary and not on_trial():
                shapes = _bounded(group.stage.layout, padded_shapes, place, bounds)
            return group.padded_batch(sizes[place], shapes, padding_values, drop_remainder=drop_remainder)

        return self._grouped(self.function(bucket), batch, lambda key: sizes[key])

    def rebatch(self, batch_size: Any, drop_remainder: bool = False, name: str | None = None) -> Self:
        """The rows of batches in batches of another size.

        Args:
            batch_size: the size, or several, which come in turns.
            drop_remainder: whether what is left at the end is dropped.
            name: ignored; as in TensorFlow.

        Raises:
            InvalidArgumentError: a size is not positive.

        >>> import dualflow as df
        >>> [x.numpy().tolist() for x in df.data.Dataset.range(5).batch(4).rebatch(3)]
        [[0, 1, 2], [3, 4]]
        """
        given = np.atleast_1d(leaf_array(batch_size)).tolist()
        sizes = tuple([positive(n, "Batch size") for n in given])
        return self.then(RebatchStage(source=self.stage, sizes=sizes, whole=bool(drop_remainder)))

    def unique(self, name: str | None = None) -> Self:
        """The elements that are unlike all before them.

        >>> import dualflow as df
        >>> [int(x) for x in df.data.Dataset.from_tensor_slices([1, 2, 1]).unique()]
        [1, 2]
        """
        return self.then(UniqueStage(source=self.stage))


def _bounded(layout: ElementLayout, given: Any, place: int, bounds: list[int]) -> Any:
    """Padded shapes whose open sizes are the largest of a bucket."""
    if place == len(bounds):
        raise InvalidArgumentError(
            "An element is at least as long as the last boundary, up to which batches are to be padded; "
            "add a "
            f"boundary beyond it.{here()}"
        )
    known = (
        [s.shape for s in layout.specs]
        if given is None
        else leaves_up_to(layout.structure, given, "padded_shapes")
    )
    closed = [[bounds[place] - 1 if n in (None, -1) else n for n in shape] for shape in known]
    return unflatten(layout.structure, closed)

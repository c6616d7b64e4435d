"""One element of several, and several of one."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from dualflow.core.convert import as_array
from dualflow.core.errors import DTypeError, InvalidArgumentError
from dualflow.core.shape import UNKNOWN_RANK, Shape, as_shape
from dualflow.core.tracebacks import entry
from dualflow.data.arguments import leaves_up_to, positive
from dualflow.data.batching import BatchStage, PaddedBatchStage, UnbatchStage
from dualflow.data.element import DatasetSpec, leaf_array
from dualflow.data.methods.base import StageHolder
from dualflow.function.errors import here


@entry
class GroupingMethods(StageHolder):
    """Transformations that stack elements, and take them apart."""

    __slots__ = ()

    def batch(
        self,
        batch_size: Any,
        drop_remainder: bool = False,
        num_parallel_calls: Any = None,
        deterministic: bool | None = None,
        name: str | None = None,
    ) -> Self:
        """``batch_size`` elements in a row as one, whose tensors have one more axis.

        Args:
            batch_size: how many.
            drop_remainder: whether the last batch is dropped if it is smaller.
            num_parallel_calls: ignored, as is ``deterministic``: a batch of rows is one gather.
            name: ignored; as in TensorFlow.

        Raises:
            InvalidArgumentError: ``batch_size`` is not positive; or, in the loop, elements of a batch differ
                in shape.

        >>> import dualflow as df
        >>> [x.numpy().tolist() for x in df.data.Dataset.range(5).batch(2)]
        [[0, 1], [2, 3], [4]]
        """
        size = positive(batch_size, "Batch size")
        return self.then(BatchStage(source=self.stage, size=size, whole=bool(drop_remainder)))

    def padded_batch(
        self,
        batch_size: Any,
        padded_shapes: Any = None,
        padding_values: Any = None,
        drop_remainder: bool = False,
        name: str | None = None,
    ) -> Self:
        """``batch_size`` elements in a row as one, filled up to one shape.

        Args:
            batch_size: how many.
            padded_shapes: a structure of the shapes to fill up to; None in the place of a size, or of all,
                for the largest in each batch.
            padding_values: what to fill with: one value, or a structure of them; 0 by default.
            drop_remainder: whether the last batch is dropped if it is smaller.
            name: ignored; as in TensorFlow.

        Raises:
            InvalidArgumentError: a shape has another number of axes, or elements are larger than it; or the
                number of axes is not known.
            DTypeError: a value has another dtype than what it fills.

        >>> import dualflow as df
        >>> rows = df.data.Dataset.range(1, 4).map(lambda n: df.fill([n], n))
        >>> [x.numpy().tolist() for x in rows.padded_batch(2)]
        [[[1, 0], [2, 2]], [[3, 3, 3]]]
        """
        size = positive(batch_size, "Batch size")
        known = self.stage.layout
        if padded_shapes is None:
            shapes = [spec.shape for spec in known.specs]
            if UNKNOWN_RANK in shapes:
                raise InvalidArgumentError(
                    "padded_batch needs padded_shapes for elements of an unknown number of axes, such as "
                    "[None]."
                    f"{here()}"
                )
        else:
            shapes = list(map(_shape, leaves_up_to(known.structure, padded_shapes, "padded_shapes")))
        for spec, shape in zip(known.specs, shapes, strict=True):
            if spec.shape is not UNKNOWN_RANK and len(shape) != len(spec.shape):
                raise InvalidArgumentError(
                    f"The padded shape {shape} has another number of axes than the component's, "
                    f"{spec.shape}.{here()}"
                )
        lone = padding_values is None or (
            np.ndim(padding_values) == 0 and not isinstance(padding_values, dict)
        )
        values = (
            [padding_values] * len(shapes)
            if lone
            else leaves_up_to(known.structure, padding_values, "padding_values")
        )
        fills = tuple([_fill(value, spec) for value, spec in zip(values, known.specs, strict=True)])
        return self.then(
            PaddedBatchStage(
                source=self.stage, size=size, whole=bool(drop_remainder), shapes=tuple(shapes), fills=fills
            )
        )

    def unbatch(self, name: str | None = None) -> Self:
        """The rows of each element as elements.

        Raises:
            InvalidArgumentError: a component has no axes, or their first sizes differ.

        >>> import dualflow as df
        >>> list(df.data.Dataset.from_tensors([1, 2]).unbatch().as_numpy_iterator())
        [np.int32(1), np.int32(2)]
        """
        specs = self.stage.layout.specs
        shapes = [None if isinstance(s, DatasetSpec) or s.shape is UNKNOWN_RANK else s.shape for s in specs]
        if any(shape is not None and not shape for shape in shapes):
            raise InvalidArgumentError(f"Cannot unbatch an input with scalar components.{here()}")
        sizes = sorted({shape[0] for shape in shapes if shape} - {None})
        if len(sizes) > 1:
            raise InvalidArgumentError(
                "`unbatch()` is only supported for datasets of elements whose components have a matching "
                "leading "
                f"dimension. Encountered both {sizes[0]} and {sizes[1]}.{here()}"
            )
        return self.then(UnbatchStage(source=self.stage))


def _shape(given: Any) -> Shape:
    """A padded shape: sizes, of which -1 and None are open; one number is that of one axis."""
    if given is None:
        return as_shape([None])
    given = np.asarray(leaf_array(given)).tolist() if hasattr(given, "numpy") else given
    sizes = [given] if isinstance(given, int | np.integer) else list(given)
    return as_shape([None if n is None or n == -1 else n for n in sizes])


def _fill(value: Any, spec: Any) -> Any:
    """What fills a component, as an array of its dtype."""
    dtype = spec.dtype
    if value is None:
        return np.array(b"", object) if dtype.kind == "O" else np.zeros((), dtype.dtype)
    if isinstance(value, bool | int | float | complex):
        return as_array(value, dtype)
    array = leaf_array(value)
    if array.dtype != dtype.dtype:
        raise DTypeError(
            f"Invalid `padding_values`: a value of dtype {array.dtype} does not match the component's, "
            f"{dtype.name}."
            f"{here()}"
        )
    return array

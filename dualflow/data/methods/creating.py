"""Constructors of datasets from arrays, sequences, generators, ranges, and other datasets."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Self

from dualflow.core.dtypes import as_dtype, int64
from dualflow.core.errors import DTypeError, InvalidArgumentError
from dualflow.core.spec import TensorSpec
from dualflow.core.tracebacks import entry
from dualflow.core.tree import Structure, flatten
from dualflow.data.arguments import check_stackable, entries, file_name, whole_number
from dualflow.data.combining import ZipStage
from dualflow.data.element import (
    AbstractDataset,
    ElementLayout,
    flatten_element,
    layout_of_spec,
    leaf_array,
    leaf_spec,
    single_tensor_layout,
    without_first_axis,
)
from dualflow.data.methods.base import DatasetBase
from dualflow.data.numpy_files import mapped_arrays
from dualflow.data.python_elements import declared_layout, stage_of_generator, stage_of_source
from dualflow.data.ragged_batching import holds_ragged
from dualflow.data.rows import ArrayRows, ProgressionRows
from dualflow.data.sources import RowsStage
from dualflow.data.stage import INFINITE
from dualflow.function.errors import here

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dualflow.core.argument_types import DTypeLike, IntLike


class CreationMethods(DatasetBase):
    """Constructors of datasets."""

    __slots__ = ()

    @classmethod
    @entry
    def from_tensor_slices(cls, tensors: object, name: str | None = None) -> Any:
        """A dataset whose elements are the rows of tensors.

        Args:
            tensors: a structure of tensors and ragged tensors of the same first size. Arrays, lists of
                numbers, and columns of pandas are copied; the rows of a memory-mapped array
                (``np.load(file, mmap_mode="r")``) are read on demand.
            name: ignored; as in TensorFlow.

        Raises:
            InvalidArgumentError: there is no tensor, one is a scalar or sparse, or their first sizes differ.

        >>> import dualflow as df
        >>> dataset = df.data.Dataset.from_tensor_slices({"x": [1.0, 2.0], "y": [3, 4]})
        >>> [(int(e["x"]), int(e["y"])) for e in dataset]
        [(1, 3), (2, 4)]
        """
        leaves, structure = flatten_element(tensors)
        check_stackable(ElementLayout(structure, ()), "from_tensor_slices")
        if holds_ragged(structure):
            return cls.from_tensors(tensors).unbatch()
        if not leaves:
            raise InvalidArgumentError(f"Invalid `tensors`: there is no tensor to take slices of.{here()}")
        arrays = tuple(map(leaf_array, leaves))
        if any(not x.shape for x in arrays):
            raise InvalidArgumentError(
                "from_tensor_slices takes the rows of tensors, and a scalar has no rows; use "
                f"from_tensors.{here()}"
            )
        sizes = [x.shape[0] for x in arrays]
        if len(set(sizes)) > 1:
            raise InvalidArgumentError(
                f"Dimensions {sizes[0]} and {next(n for n in sizes if n != sizes[0])} are not compatible: "
                f"all tensors must have the same number of rows.{here()}"
            )
        specs = tuple([without_first_axis(leaf_spec(x)) for x in arrays])
        return cls._rows(arrays, sizes[0], ElementLayout(structure.unbatched(), specs))

    @classmethod
    @entry
    def from_numpy_file(cls, path: str) -> Any:
        """The rows of the array in a ``.npy`` file, or dicts of rows of the arrays in a ``.npz`` file.

        Files are mapped into memory: rows are read on demand. Arrays that are compressed, or in another
        byte order than the machine's, are loaded at once.

        Args:
            path: the file's name.

        Raises:
            NotFoundError: the file does not exist.
            DataLossError: the file is damaged, has another format, or holds Python objects.
            InvalidArgumentError: the arrays have different numbers of rows.

        >>> import dualflow as df, numpy as np, os, tempfile
        >>> path = os.path.join(tempfile.mkdtemp(), "rows.npy")
        >>> np.save(path, np.arange(6).reshape(3, 2))
        >>> [x.numpy().tolist() for x in df.data.Dataset.from_numpy_file(path)]
        [[0, 1], [2, 3], [4, 5]]
        """
        return cls.from_tensor_slices(mapped_arrays(file_name(path)))

    @classmethod
    @entry
    def from_tensors(cls, tensors: object, name: str | None = None) -> Any:
        """A dataset of one element, a structure of tensors.

        >>> import dualflow as df
        >>> [x.numpy().tolist() for x in df.data.Dataset.from_tensors([1, 2])]
        [[1, 2]]
        """
        leaves, structure = flatten_element(tensors)
        if not leaves:
            raise InvalidArgumentError(
                f"Invalid `tensors`: an element must have at least one tensor.{here()}"
            )
        arrays = tuple(map(leaf_array, leaves))
        layout = ElementLayout(structure, tuple(map(leaf_spec, arrays)))
        return cls._rows(tuple([x[None] for x in arrays]), 1, layout)

    @classmethod
    def _rows(cls, arrays: tuple[Any, ...], count: int | None, layout: ElementLayout) -> Any:
        dataset: Self = cls.of(RowsStage(rows=ArrayRows(arrays), count=count or 0, elements=layout))
        return dataset

    @classmethod
    @entry
    def range(cls, *args: Any, output_type: DTypeLike = int64, name: str | None = None) -> Any:
        """A dataset of the integers of ``range(*args)``.

        Args:
            args: ``stop``, or ``start, stop``, or ``start, stop, step``.
            output_type: the dtype of the elements, int64 by default.
            name: ignored; as in TensorFlow.

        Raises:
            DTypeError: a limit is not an integer, there are too few or too many of them, or the dtype is not
                of integers or floats.
            InvalidArgumentError: the step is 0.

        >>> import dualflow as df
        >>> list(df.data.Dataset.range(5, 0, -2).as_numpy_iterator())
        [np.int64(5), np.int64(3), np.int64(1)]
        """
        if not 1 <= len(args) <= 3:
            raise DTypeError(
                f"range takes stop, or start and stop, or start, stop and step, not {args}.{here()}"
            )
        limits = [whole_number(x, "A limit of range") for x in args]
        if len(limits) == 3 and not limits[2]:
            raise InvalidArgumentError(f"step must be a non-zero integer.{here()}")
        return cls._progression(range(*limits), output_type)

    @classmethod
    @entry
    def counter(
        cls, start: IntLike = 0, step: IntLike = 1, dtype: DTypeLike = int64, name: str | None = None
    ) -> Any:
        """An endless dataset of ``start``, ``start + step`` and so on.

        >>> import dualflow as df
        >>> list(df.data.Dataset.counter(start=5, step=2).take(3).as_numpy_iterator())
        [np.int64(5), np.int64(7), np.int64(9)]
        """
        first, increment = whole_number(start, "start"), whole_number(step, "step")
        return cls._progression(endless(first, increment), dtype, INFINITE)

    @classmethod
    def _progression(cls, numbers: Any, dtype: Any, count: int | None = None) -> Any:
        number_type = as_dtype(dtype)
        if number_type.kind not in "iuf":
            raise DTypeError(
                f"A range has integers or floats, not {number_type.name}; give another dtype, or convert the "
                f"elements with map.{here()}"
            )
        rows = ProgressionRows(numbers, number_type.dtype)
        length = len(numbers) if count is None else count
        layout = single_tensor_layout(TensorSpec([], number_type))
        dataset: Self = cls.of(RowsStage(rows=rows, count=length, elements=layout))
        return dataset

    @classmethod
    @entry
    def from_generator(
        cls,
        generator: Callable[..., Any],
        output_types: object = None,
        output_shapes: object = None,
        args: Sequence[object] | None = None,
        output_signature: object = None,
        name: str | None = None,
    ) -> Self:
        """A dataset of the elements that a Python generator function yields; each iteration calls it again.

        Args:
            generator: a callable that returns an iterable.
            output_types: a structure of the dtypes of the elements; prefer ``output_signature``.
            output_shapes: a structure of their shapes.
            args: the arguments of the generator function, which it receives as arrays.
            output_signature: a structure of :class:`dualflow.TensorSpec`.
            name: ignored; as in TensorFlow.

        Raises:
            DTypeError: ``generator`` is not callable, ``args`` is no list, or not exactly one of types and
                signature is given.
            InvalidArgumentError: during iteration, an element has another structure, shape or dtype.
            Exception: during iteration, any error that the generator raises.

        >>> import dualflow as df
        >>> def words():
        ...     yield [1, 2]
        ...     yield [3]
        >>> spec = df.TensorSpec([None], df.int32)
        >>> dataset = df.data.Dataset.from_generator(words, output_signature=spec)
        >>> [x.numpy().tolist() for x in dataset]
        [[1, 2], [3]]
        """
        if not callable(generator):
            raise DTypeError(
                "`generator` must be a Python callable, which is called for each iteration over the dataset; "
                f"give the generator function itself, or lambda: iterable.{here()}"
            )
        layout = declared_layout(output_types, output_shapes, output_signature)
        arguments = () if args is None else tuple(map(leaf_array, entries(args, "args")))
        dataset: Self = cls.of(stage_of_generator(lambda: generator(*arguments), layout))
        return dataset

    @classmethod
    @entry
    def from_source(cls, source: object, output_signature: object = None) -> Self:
        """The elements of a sequence of Python objects, or of a dataset of another library.

        Objects with a length and integer indices, such as lists and map-style torch datasets, have random
        access: a shuffle after them buffers indices only. Objects that can only be iterated, such as iterable
        datasets and data loaders of grain or torch, are iterated again by each iteration over the dataset.

        Args:
            source: an object whose elements are structures of numbers, arrays, or torch tensors.
            output_signature: a structure of :class:`dualflow.TensorSpec`; without it, it is inferred
                from the first element.

        Raises:
            DTypeError: ``source`` can't be iterated.
            InvalidArgumentError: ``source`` is empty and there is no signature; during iteration, an element
                differs from the signature.

        >>> import dualflow as df
        >>> dataset = df.data.Dataset.from_source([(1.0, 0), (2.0, 1)])
        >>> [(float(x), int(label)) for x, label in dataset]
        [(1.0, 0), (2.0, 1)]
        """
        layout = None if output_signature is None else layout_of_spec(output_signature)
        dataset: Self = cls.of(stage_of_source(source, layout))
        return dataset

    @classmethod
    @entry
    def zip(cls, *args: Any, datasets: object = None, name: str | None = None) -> Any:
        """Elements that combine one element of each dataset, up to the end of the shortest.

        Args:
            args: datasets, or one structure of them (tuples and dicts), which is the elements' structure.
            datasets: the structure, by its older name.
            name: ignored; as in TensorFlow.

        Raises:
            DTypeError: there is no dataset, or something else is among them.

        >>> import dualflow as df
        >>> a, b = df.data.Dataset.range(3), df.data.Dataset.range(10, 12)
        >>> [(int(x), int(y)) for x, y in df.data.Dataset.zip(a, b)]
        [(0, 10), (1, 11)]
        """
        if not args and datasets is None:
            raise DTypeError(f"Must pass at least one dataset to `zip`.{here()}")
        trees = datasets if datasets is not None else (args[0] if len(args) == 1 else args)
        leaves, structure = flatten(trees, is_leaf=lambda x: isinstance(x, AbstractDataset))
        if _has_list(structure) or not all(isinstance(x, AbstractDataset) for x in leaves):
            raise DTypeError(
                "zip takes (nested) structures of datasets, of tuples and dicts; Python lists are not "
                f"supported: {trees!r}. Give a tuple.{here()}"
            )
        dataset: Self = cls.of(ZipStage(parts=tuple([x.stage for x in leaves]), structure=structure))
        return dataset


def endless(first: int, step: int) -> range:
    """A range too long for any program to reach its end."""
    return range(first, first + step * (1 << 62), step) if step else range(first, first + (1 << 62))


def _has_list(structure: Structure) -> bool:
    return structure.kind is list or any(map(_has_list, structure.children))

"""Elements from other code: generators, sequences of Python objects, datasets of other libraries."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from dualflow.core.convert import Array
from dualflow.core.errors import DTypeError, InvalidArgumentError
from dualflow.core.spec import TensorSpec
from dualflow.core.tree import flatten, unflatten
from dualflow.data.arguments import leaves_up_to
from dualflow.data.element import ElementLayout, Item, flatten_element, layout_of_spec, leaf_array, leaf_spec
from dualflow.data.rows import SequenceRows
from dualflow.data.sources import IteratedStage, RowsStage
from dualflow.data.stage import Stage
from dualflow.function.errors import here
from dualflow.graph.ir import Origin
from dualflow.graph.origin import caller


def declared_layout(types: Any, shapes: Any, specs: Any) -> ElementLayout:
    """The element layout that the arguments of ``from_generator`` declare."""
    if (types is None) == (specs is None):
        raise DTypeError(
            "To specify the output signature give either `output_signature`, a structure of df.TensorSpec, "
            f"or `output_types`.{here()}"
        )
    if specs is not None:
        if shapes is not None:
            raise DTypeError(
                f"`output_shapes` can be given with `output_types`, not with `output_signature`.{here()}"
            )
        return layout_of_spec(specs)
    dtypes, structure = flatten(types)
    declared_shapes = (
        [None] * len(dtypes) if shapes is None else leaves_up_to(structure, shapes, "output_shapes")
    )
    return layout_of_spec(unflatten(structure, list(map(TensorSpec, declared_shapes, dtypes))))


class ElementReader:
    """Converts objects from other code to elements of a layout.

    Args:
        layout: the elements' layout.
        producer: the generator or sequence that yields the objects, for error messages.
    """

    def __init__(self, layout: ElementLayout, producer: str) -> None:
        self._layout = layout
        self._producer = producer
        self._origin: Origin | None = caller()

    def __call__(self, value: Any, index: int) -> Item:
        """The leaves of ``value``, which is the element of number ``index``."""
        try:
            leaves = leaves_up_to(self._layout.structure, value, "it")
            return tuple(map(_converted, leaves, self._layout.specs))
        except (DTypeError, InvalidArgumentError) as error:
            reason = str(error).partition("\n  File")[0]
        where = "" if self._origin is None else f"\n  {self._origin}"
        raise InvalidArgumentError(
            f"{self._producer} produced element {index}, which is not as declared: {reason} Expected "
            f"{self._layout.element_spec!r}; change output_signature, or the elements.{where}"
        )


def _converted(value: Any, spec: TensorSpec) -> Array:
    """``value`` as an array of the shape and dtype of ``spec``."""
    array = leaf_array(value)
    dtype = spec.dtype.dtype
    if array.dtype != dtype:
        if not np.can_cast(array.dtype, dtype, "same_kind") and not (
            array.dtype.kind in "biu" and dtype.kind in "iuf"
        ):
            raise DTypeError(f"it has dtype {array.dtype} where {spec.dtype.name} was expected.")
        array = array.astype(dtype)
    if not TensorSpec(spec.shape, spec.dtype).is_compatible_with(leaf_spec(array)):
        raise InvalidArgumentError(f"it has shape {array.shape} where {spec.shape} was expected.")
    return array


def stage_of_generator(generator: Callable[[], Iterable[Any]], layout: ElementLayout) -> Stage:
    """The stage of the elements that a generator function yields."""
    name = getattr(generator, "__name__", "the generator")
    read = ElementReader(layout, "The generator" if name == "<lambda>" else f"{name!r}")

    def iterate() -> Iterator[Item]:
        for index, value in enumerate(generator()):
            yield read(value, index)

    return IteratedStage(iterate=iterate, elements=layout)


def stage_of_source(source: Any, layout: ElementLayout | None) -> Stage:
    """The stage of a sequence, or of an object that can be iterated repeatedly."""
    name = f"A {type(source).__name__}"
    indexed = hasattr(type(source), "__getitem__") and hasattr(type(source), "__len__")
    if not indexed and not hasattr(type(source), "__iter__"):
        raise DTypeError(
            f"{name} is not a source of elements: give an object with a length and integer indices, or one "
            f"that can be iterated repeatedly.{here()}"
        )
    if not indexed and iter(source) is source:
        raise DTypeError(
            f"{name} can be iterated over only once, but a dataset can be iterated repeatedly; give the "
            f"function that returns it to from_generator.{here()}"
        )
    layout = layout or _layout_of_first(source, name)
    read = ElementReader(layout, name)
    if indexed:
        return RowsStage(rows=SequenceRows(source, read), count=len(source), elements=layout)
    return IteratedStage(iterate=functools.partial(_read_all, source, read), elements=layout)


def _read_all(source: Iterable[Any], read: ElementReader) -> Iterator[Item]:
    for index, value in enumerate(source):
        yield read(value, index)


def _layout_of_first(source: Any, name: str) -> ElementLayout:
    missing = object()
    first = next(iter(source), missing)
    if first is missing:
        raise InvalidArgumentError(
            f"{name} has no elements to infer their layout from; give output_signature.{here()}"
        )
    leaves, structure = flatten_element(first)
    return ElementLayout(structure, tuple([leaf_spec(leaf_array(x)) for x in leaves]))

"""Elements of datasets: structures of tensors or datasets, and what is known of them beforehand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np

from dualflow.core import dispatch
from dualflow.core.convert import Array
from dualflow.core.dispatch import AbstractSource, AbstractTensor, AbstractVariable
from dualflow.core.dtypes import as_dtype
from dualflow.core.errors import DTypeError
from dualflow.core.shape import UNKNOWN_RANK, Shape
from dualflow.core.spec import TensorSpec
from dualflow.core.tree import LEAF, Structure, flatten, rebuilder, unflatten
from dualflow.eager.engine import EAGER
from dualflow.eager.tensor import EagerTensor, wrap
from dualflow.ops.creation import convert_to_tensor

Item: TypeAlias = tuple[Any, ...]
"""The leaves of one element: arrays, or datasets."""


class AbstractDataset(AbstractSource):
    """A dataset, which may be a leaf of an element of another one."""

    __slots__ = ()
    element_spec: Any
    stage: Any


class DatasetSpec:
    """What is known of a dataset that is an element of another one, as those of ``window`` are.

    Args:
        element_spec: that of its elements.
        dataset_shape: of the tensor of datasets; only ``()`` is there.

    >>> import dualflow as df
    >>> df.data.DatasetSpec(df.TensorSpec([], df.int64))
    DatasetSpec(TensorSpec(shape=(), dtype=dualflow.int64, name=None), ())
    """

    __slots__ = ("element_spec",)

    def __init__(self, element_spec: Any, dataset_shape: Any = ()) -> None:
        self.element_spec: Final = element_spec

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DatasetSpec) and other.element_spec == self.element_spec

    def __hash__(self) -> int:
        return hash(DatasetSpec)

    def __repr__(self) -> str:
        return f"DatasetSpec({self.element_spec!r}, ())"


@dataclass(frozen=True, slots=True)
class ElementLayout:
    """The structure of a dataset's elements, and the spec of each leaf."""

    structure: Structure
    specs: tuple[Any, ...]

    @property
    def element_spec(self) -> Any:
        """The specs in their structure, as users see it."""
        return unflatten(self.structure, self.specs)

    @property
    def unpacked(self) -> bool:
        """Whether a user's function takes the parts of an element as arguments of their own."""
        return self.structure.kind is tuple

    def packer(self) -> Callable[[Item], Any]:
        """What makes an element, as users see it, of its leaves."""
        if self.structure == LEAF:
            return _packed_leaf
        rebuild = rebuilder(self.structure)
        return lambda item: rebuild([wrapped(x) for x in item])


def _packed_leaf(item: Item) -> Any:
    leaf = item[0]
    return wrap(leaf) if isinstance(leaf, np.ndarray) else leaf


def wrapped(leaf: Any) -> Any:
    """A leaf as users see it: a tensor, or a dataset."""
    return wrap(leaf) if isinstance(leaf, np.ndarray) else leaf


def single(spec: Any) -> ElementLayout:
    """The layout of elements that are one tensor."""
    return ElementLayout(LEAF, (spec,))


def layout_of_spec(element_spec: Any) -> ElementLayout:
    """The layout of an ``element_spec``."""
    specs, structure = flatten(element_spec, is_leaf=lambda x: isinstance(x, TensorSpec | DatasetSpec))
    for spec in specs:
        if not isinstance(spec, TensorSpec | DatasetSpec):
            raise DTypeError(
                f"A spec of elements is a structure of df.TensorSpec, not {spec!r}; give its shape and dtype."
            )
    return ElementLayout(structure, tuple(specs))


def opened(value: Any) -> tuple[list[Any], Structure]:
    """The leaves of an element that a user gives; a list is one leaf, a tensor."""
    return flatten(value, is_leaf=lambda x: isinstance(x, list | AbstractSource))


def leaf_array(value: Any) -> Array:
    """A leaf that a user gives, as an array that nobody writes to.

    The file behind a memory-mapped array stays where it is, and symbols stay symbols.
    """
    if isinstance(value, EagerTensor):
        return value._array
    if isinstance(value, np.memmap):
        as_dtype(value.dtype)
        return np.asarray(value)
    if isinstance(value, AbstractTensor):
        return value  # type: ignore[return-value]  # of a trace, which only its spec is asked for
    if isinstance(value, AbstractVariable):
        array: Array = EAGER.read(value)._array
        return array
    with dispatch.using(EAGER):
        made: Array = convert_to_tensor(value)._array  # type: ignore[attr-defined]  # what EAGER makes
        return made


def leaf_spec(leaf: Any) -> TensorSpec:
    """The spec of an array or a symbol."""
    return TensorSpec(leaf.shape, leaf.dtype)


def relaxed(a: Any, b: Any) -> Any:
    """The spec of leaves of which some have spec ``a`` and some ``b``, of one dtype."""
    if isinstance(a, DatasetSpec) or a.shape == b.shape:
        return a
    if UNKNOWN_RANK in (a.shape, b.shape) or len(a.shape) != len(b.shape):
        return TensorSpec(None, a.dtype)
    return TensorSpec([x if x == y else None for x, y in zip(a.shape, b.shape, strict=True)], a.dtype)


def leading(spec: Any, size: int | None) -> Any:
    """The spec with one more axis, in front."""
    if spec.shape is UNKNOWN_RANK:
        return spec
    return TensorSpec.of(Shape([size, *spec.shape]), spec.dtype)


def trailing(spec: TensorSpec) -> TensorSpec:
    """The spec without its first axis."""
    return spec if spec.shape is UNKNOWN_RANK else TensorSpec.of(Shape(spec.shape[1:]), spec.dtype)


def stacked(items: Sequence[Item]) -> list[list[Any]]:
    """The leaves of several elements, by their place."""
    return [list(column) for column in zip(*items, strict=True)]

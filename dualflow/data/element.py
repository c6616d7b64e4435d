"""Elements of datasets: structures of tensors or datasets, and their specs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

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

if TYPE_CHECKING:
    from dualflow.core.argument_types import TensorLike

Item: TypeAlias = tuple[Any, ...]
"""The leaves of an element: arrays, or datasets."""


class AbstractDataset(AbstractSource):
    """The type of datasets, for modules that :class:`Dataset` depends on; also a leaf of elements."""

    __slots__ = ()
    element_spec: Any
    stage: Any


class DatasetSpec:
    """The spec of a dataset that is an element of another one, such as those of ``window``.

    Args:
        element_spec: the spec of its elements.
        dataset_shape: the shape of the tensor of datasets; only ``()`` is supported.

    >>> import dualflow as df
    >>> df.data.DatasetSpec(df.TensorSpec([], df.int64))
    DatasetSpec(TensorSpec(shape=(), dtype=tf.int64, name=None), ())
    """

    __slots__ = ("element_spec",)

    def __init__(self, element_spec: object, dataset_shape: TensorLike = ()) -> None:
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
        """The specs in the structure of an element."""
        return unflatten(self.structure, self.specs)

    @property
    def dtypes(self) -> tuple[Any, ...]:
        """The dtype of each leaf; the class ``DatasetSpec`` for a dataset."""
        return tuple([DatasetSpec if isinstance(s, DatasetSpec) else s.dtype for s in self.specs])

    @property
    def unpacked(self) -> bool:
        """Whether users' functions take the parts of an element as separate arguments."""
        return self.structure.kind is tuple

    def packer(self) -> Callable[[Item], Any]:
        """A function that builds an element, as users see it, from its leaves."""
        if self.structure == LEAF:
            return _packed_leaf
        rebuild = rebuilder(self.structure)
        return lambda item: rebuild([wrapped(x) for x in item])


def _packed_leaf(item: Item) -> Any:
    leaf = item[0]
    return wrap(leaf) if isinstance(leaf, np.ndarray) else leaf


def wrapped(leaf: Any) -> Any:
    """A leaf as users get it: a tensor instead of an array; a dataset as it is."""
    return wrap(leaf) if isinstance(leaf, np.ndarray) else leaf


def single_tensor_layout(spec: Any) -> ElementLayout:
    """The layout of elements that are single tensors."""
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


def flatten_element(value: Any) -> tuple[list[Any], Structure]:
    """The leaves and the structure of an element from a user; a list is one leaf, which becomes a tensor."""
    return flatten(value, is_leaf=lambda x: isinstance(x, list | AbstractSource))


def leaf_array(value: Any) -> Array:
    """A leaf of a user's element as an array that is never written to.

    A memory-mapped array isn't loaded, unless its byte order is not the machine's. A symbolic tensor is
    returned as it is.
    """
    if isinstance(value, EagerTensor):
        return value._array
    if isinstance(value, np.memmap) and value.dtype.isnative:
        as_dtype(value.dtype)
        return np.asarray(value)
    if isinstance(value, AbstractTensor):
        return value  # type: ignore[return-value]  # symbolic: only its spec is read
    if isinstance(value, AbstractVariable):
        array: Array = EAGER.read(value)._array
        return array
    with dispatch.using(EAGER):
        copied: Array = convert_to_tensor(value)._array  # type: ignore[attr-defined]  # an eager tensor
        return copied


def leaf_spec(leaf: Any) -> TensorSpec:
    """The spec of an array or a symbolic tensor."""
    return TensorSpec(leaf.shape, leaf.dtype)


def covering_spec(a: Any, b: Any) -> Any:
    """The most specific spec that all values of ``a`` and all values of ``b`` have; both have one dtype."""
    if isinstance(a, DatasetSpec) or a.shape == b.shape:
        return a
    if UNKNOWN_RANK in (a.shape, b.shape) or len(a.shape) != len(b.shape):
        return TensorSpec(None, a.dtype)
    return TensorSpec([x if x == y else None for x, y in zip(a.shape, b.shape, strict=True)], a.dtype)


def with_new_axis(spec: Any, size: int | None) -> Any:
    """The spec with a new first axis of ``size``, as of a batch."""
    if spec.shape is UNKNOWN_RANK:
        return spec
    return TensorSpec.of(Shape([size, *spec.shape]), spec.dtype)


def without_first_axis(spec: TensorSpec) -> TensorSpec:
    """The spec without its first axis, as of a row."""
    return spec if spec.shape is UNKNOWN_RANK else TensorSpec.of(Shape(spec.shape[1:]), spec.dtype)


def columns(items: Sequence[Item]) -> list[list[Any]]:
    """The leaves of several elements, grouped by their position."""
    return [list(column) for column in zip(*items, strict=True)]

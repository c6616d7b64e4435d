"""Requests: the fetches and feeds of a call of ``run``, resolved in the graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dualflow.core.convert import as_array
from dualflow.core.dispatch import AbstractTensor, AbstractVariable
from dualflow.core.dtypes import DType
from dualflow.core.errors import DTypeError, InvalidArgumentError
from dualflow.core.spec import TensorSpec
from dualflow.core.tree import LEAF, Structure, flatten, unflatten
from dualflow.function.tracing.symbolic_tensor import SymbolicTensor
from dualflow.graph.ir import Node, Value
from dualflow.graph_mode.composite_values import key_parts, value_parts, with_composite_values
from dualflow.graph_mode.graph import ExplicitGraph
from dualflow.graph_mode.names import UnknownNameError
from dualflow.graph_mode.operation import Operation
from dualflow.graph_mode.run_plan import RunPlan

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class Feed:
    """A tensor of the graph that is fed.

    Attributes:
        key: the tensor, variable or name that is the key of the feed.
        value: the value of the graph.
        dtype: the dtype of fed arrays.
    """

    key: Any
    value: Value
    dtype: np.dtype[Any]

    def array(self, fed: Any, graph: ExplicitGraph) -> Array:
        """``fed`` as a contiguous array of the dtype; ``fed`` itself if it is one."""
        if type(fed) is np.ndarray and fed.dtype is self.dtype and fed.flags.c_contiguous:
            return fed
        if isinstance(fed, AbstractTensor | AbstractVariable):
            raise DTypeError(
                "The value of a feed cannot be a df.Tensor object. Acceptable feed values include Python "
                f"scalars, lists and numpy ndarrays. For reference, the tensor object was {fed!r} which "
                f"was passed to the argument `feed_dict` with key {self.key!r}; feed its .numpy()."
            )
        if type(fed) is int and not _represents(self.value.spec.dtype, fed):
            raise DTypeError(
                f"Type of feed value {fed} with type <class 'int'> is not compatible with "
                f"{self._shown(graph)} of dtype {self.dtype}, which can't hold it. Give the tensor a wider "
                f"dtype, such as int64.{self._line(graph)}"
            )
        try:
            array = as_array(fed, self.value.spec.dtype)
        except (DTypeError, InvalidArgumentError) as error:
            raise type(error)(f"Cannot feed {self._shown(graph)}: {error}{self._line(graph)}") from None
        return np.ascontiguousarray(array).reshape(array.shape)

    def check(self, array: Array, graph: ExplicitGraph) -> TensorSpec:
        """The spec of ``array``.

        Raises:
            InvalidArgumentError: the value has another shape.
        """
        spec = TensorSpec(array.shape, self.value.spec.dtype)
        if not self.value.spec.is_compatible_with(spec):
            raise InvalidArgumentError(
                f"Cannot feed value of shape {spec.shape} for {self._shown(graph)}, which has shape "
                f"{self.value.spec.shape}. Feed an array of that shape, or create the tensor with None for "
                f"dynamic sizes.{self._line(graph)}"
            )
        return spec

    def _shown(self, graph: ExplicitGraph) -> str:
        return f"Tensor {graph.engine.tensor_name(self.value)}"

    def _line(self, graph: ExplicitGraph) -> str:
        origin = graph.engine.origin(self.value)
        return f"\n  {origin}" if origin else ""


@dataclass(frozen=True, slots=True)
class Request:
    """The fetches and the keys of the feeds of a run, without the fed values.

    Attributes:
        leaves: the fetches as the caller passed them, in the order of the structure.
        fetches: for each leaf the value to return, or the nodes to run.
        values, nodes: the two kinds of ``fetches``.
        structure: the structure of the results.
        flat: whether the structure is one level of leaves.
        feeds: the tensors that are fed.
        feeds_composites: whether a key is a sparse tensor, which is fed by parts.
        plans: the run plans, by the shapes of the feeds.
    """

    leaves: Sequence[Any]
    fetches: tuple[Value | tuple[Node, ...], ...]
    values: tuple[Value, ...]
    nodes: tuple[Node, ...]
    structure: Structure
    flat: bool
    feeds: tuple[Feed, ...]
    feeds_composites: bool
    plans: dict[tuple[tuple[int, ...], ...], RunPlan] = field(default_factory=dict)

    def first_operation(self, graph: ExplicitGraph) -> str:
        """The name of the first fetched operation; empty if there is none."""
        first = next(iter(self.leaves), None)
        element = None if first is None else _element(graph, first)
        return "" if element is None else (element if isinstance(element, Operation) else element.op).name

    def fed(self, feed_dict: Mapping[Any, Any]) -> list[Any]:
        """The value of each of :attr:`feeds`."""
        if not self.feeds_composites:
            return list(feed_dict.values())
        return [part for key, value in feed_dict.items() for part in value_parts(key, value)]

    def assembled(self, results: Sequence[Any]) -> Any:
        """The results in the structure of the fetches, with None for operations."""
        if self.structure.kind is None:
            return results[0] if self.values else None
        computed = iter(results)
        leaves = [next(computed) if isinstance(x, Value) else None for x in self.fetches]
        return leaves if self.flat and self.structure.kind is list else unflatten(self.structure, leaves)


def resolve_request(graph: ExplicitGraph, fetches: Any, keys: Mapping[Any, Any]) -> Request:
    """The request for ``fetches`` with feeds of these ``keys``, resolved in ``graph``.

    Raises:
        InvalidArgumentError: the graph does not have a fetch, or one tensor is fed twice.
        DTypeError: a fetch is of another type, or a key is no tensor of the graph.
    """
    if not isinstance(keys, Mapping):
        raise DTypeError(f"feed_dict is a dict of tensors and their values, not a {type(keys).__name__}.")
    leaves, structure = flatten(fetches)
    if _holds_none(structure):
        raise DTypeError("Fetch argument None has invalid type NoneType: None can not be fetched.")
    resolved = tuple([_fetch(graph, x) for x in leaves])
    parts = [part for key in keys for part in key_parts(key)]
    feeds = tuple([_feed(graph, part) for part in parts])
    if len({f.value for f in feeds}) < len(feeds):
        raise InvalidArgumentError(f"A tensor is fed twice, under several of the keys {list(keys)!r}.")
    return Request(
        leaves,
        resolved,
        tuple([x for x in resolved if isinstance(x, Value)]),
        tuple([n for x in resolved if not isinstance(x, Value) for n in x]),
        with_composite_values(structure),
        all(child is LEAF for child in structure.children),
        feeds,
        len(parts) > len(keys),
    )


def _fetch(graph: ExplicitGraph, fetch: Any) -> Value | tuple[Node, ...]:
    try:
        element = _element(graph, fetch)
    except (InvalidArgumentError, UnknownNameError) as error:
        raise InvalidArgumentError(
            f"Fetch argument {fetch!r} cannot be interpreted as a Tensor. ({error})"
        ) from None
    if element is None:
        raise DTypeError(
            f"Fetch argument {fetch!r} has invalid type {type(fetch).__name__}, must be a string or Tensor. "
            f"(Can not convert a {type(fetch).__name__} into a Tensor or Operation.)"
        )
    return element.nodes if isinstance(element, Operation) else element._value


def _feed(graph: ExplicitGraph, key: Any) -> Feed:
    try:
        element = _element(graph, key)
    except (InvalidArgumentError, UnknownNameError) as error:
        raise DTypeError(f"Cannot interpret feed_dict key as Tensor: {error}") from None
    if not isinstance(element, SymbolicTensor):
        raise DTypeError(
            f"Cannot interpret feed_dict key as Tensor: {key!r} is of type {type(key).__name__}, and keys "
            'are tensors of the graph, or their names, as "x:0".'
        )
    return Feed(key, element._value, element._value.spec.dtype.dtype)


def _represents(dtype: DType, number: int) -> bool:
    """Whether ``dtype`` can represent ``number``: exactly if it is integer or bool, rounded if floating."""
    if dtype.is_bool:
        return number in (0, 1)
    return not dtype.is_integer or bool(dtype.min <= number <= dtype.max)


def _element(graph: ExplicitGraph, obj: Any) -> SymbolicTensor | Operation | None:
    """The element of the graph that ``obj`` is or names; None if its type can't be in a graph."""
    is_element = isinstance(obj, SymbolicTensor | Operation | AbstractVariable | str)
    return graph.as_graph_element(obj) if is_element else None


def _holds_none(structure: Structure) -> bool:
    return structure.kind is type(None) or any(map(_holds_none, structure.children))

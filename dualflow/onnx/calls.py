"""The calls of ONNX ops that their rules evaluate: a node, and the values that it reads."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

import dualflow as df
from dualflow.core.errors import InvalidArgumentError
from dualflow.core.records import NamedTuple

Graph = Any
"""A graph of the ONNX file: a branch or the body of a loop."""


class NodeCall(NamedTuple):
    """A call of an ONNX op.

    Attributes:
        name: the name of the op and of the node, for errors.
        inputs: a tensor, or a NumPy array for a constant, for each input; None for one that is left out.
        attrs: the attributes of the node, as Python values, arrays and graphs.
        outputs: the number of results.
        run: ``run(graph, inputs)`` evaluates a graph among the attributes.
    """

    name: str
    inputs: tuple[Any, ...]
    attrs: Mapping[str, Any]
    outputs: int
    run: Callable[[Graph, Sequence[Any]], list[Any]]

    def optional(self, index: int) -> Any:
        """An input, or None."""
        return self.inputs[index] if index < len(self.inputs) else None

    def ints(self, index: int, attribute: str = "", default: Sequence[int] | None = None) -> list[int] | None:
        """The constant integers of an input, or of an attribute in earlier opsets.

        Raises:
            InvalidArgumentError: they are computed by the graph.
        """
        value = self.optional(index)
        if value is None:
            value = self.attrs.get(attribute, default)
            return None if value is None else [int(n) for n in value]
        return constant_value(value, self.name).reshape(-1).tolist()

    def unsupported(self, reason: str) -> InvalidArgumentError:
        """The error for what dualflow does not compute."""
        return InvalidArgumentError(f"{self.name} of the ONNX model can't be computed: {reason}.")


Rule = Callable[[NodeCall], Any]
Rules = Mapping[str, Rule]


def constant_value(value: Any, name: str) -> np.ndarray[Any, Any]:
    """The elements of a constant.

    Raises:
        InvalidArgumentError: the graph computes them.
    """
    if not isinstance(value, np.ndarray) and not hasattr(value, "numpy"):
        raise InvalidArgumentError(
            f"{name} of the ONNX model can't be computed: sizes, axes or bounds that it reads are known only "
            "at run time."
        )
    return np.asarray(value)


def is_constant(value: Any) -> bool:
    """Whether ``value`` is a constant of the model, or was computed from constants and static sizes."""
    return isinstance(value, np.ndarray)


def dtype_of(value: Any) -> Any:
    """The dtype of a tensor or constant."""
    return df.as_dtype(value.dtype)


def rank_of(value: Any) -> int:
    """The number of axes of a tensor or constant."""
    return len(value.shape)


def size_of(value: Any, axis: int) -> Any:
    """The size of an axis: an int, or a scalar tensor if it is known only at run time."""
    size = value.shape[axis]
    return df.shape(value, out_type=df.int64)[axis] if size is None else size


def normalized(axis: int, rank: int) -> int:
    """An axis counted from the front."""
    return axis + rank if axis < 0 else axis

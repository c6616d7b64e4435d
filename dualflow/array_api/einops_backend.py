"""einops's interface to a library: with this class, its functions take tensors, variables and arrays.

einops looks for subclasses of its ``AbstractBackend``; this module is imported after einops, and by nothing
else.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from einops._backends import AbstractBackend, HashableTuple

from dualflow.array_api.array import Array
from dualflow.core.dispatch import TENSORS
from dualflow.ops import reduction, statistics
from dualflow.ops.arrangement import expand_dims, reshape, transpose
from dualflow.ops.broadcasting import reduce_sum
from dualflow.ops.creation import convert_to_tensor
from dualflow.ops.joining import concat, stack
from dualflow.ops.positions import range as positions
from dualflow.ops.products import einsum
from dualflow.ops.repetition import tile
from dualflow.ops.tensor_sizes import axis_sizes

_REDUCTIONS: Final = {
    "all": reduction.reduce_all,
    "any": reduction.reduce_any,
    "max": reduction.reduce_max,
    "mean": statistics.reduce_mean,
    "min": reduction.reduce_min,
    "prod": reduction.reduce_prod,
    "sum": reduce_sum,
}


def _like(x: Any, result: Any) -> Any:
    """An array where ``x`` is one, else the tensor."""
    return Array(result) if isinstance(x, Array) else result


class EinopsBackend(AbstractBackend):
    """einops' operations as ops, so that they are differentiated and compiled."""

    framework_name = "dualflow"

    def is_appropriate_type(self, tensor: Any) -> bool:
        return isinstance(tensor, (*TENSORS, Array))

    def from_numpy(self, x: Any) -> Any:
        return convert_to_tensor(x)

    def to_numpy(self, x: Any) -> Any:
        return convert_to_tensor(x).numpy()

    def arange(self, start: int, stop: int) -> Any:
        return positions(start, stop)

    def shape(self, x: Any) -> Any:
        """The sizes: ints, and scalar tensors for those that are dynamic."""
        return tuple(x.shape) if None not in x.shape else HashableTuple(tuple(axis_sizes(x)))

    def reshape(self, x: Any, shape: Sequence[Any]) -> Any:
        return _like(x, reshape(x, shape))

    def transpose(self, x: Any, axes: Sequence[int]) -> Any:
        return _like(x, transpose(x, axes))

    def reduce(self, x: Any, operation: str, axes: Sequence[int]) -> Any:
        return _like(x, _REDUCTIONS[operation](x, tuple(axes)))

    def stack_on_zeroth_dimension(self, tensors: list[Any]) -> Any:
        return _like(tensors[0], stack(tensors))

    def add_axis(self, x: Any, new_position: int) -> Any:
        return _like(x, expand_dims(x, new_position))

    def tile(self, x: Any, repeats: Sequence[int]) -> Any:
        return _like(x, tile(x, repeats))

    def concat(self, tensors: Sequence[Any], axis: int) -> Any:
        return _like(tensors[0], concat(list(tensors), axis))

    def is_float_type(self, x: Any) -> bool:
        is_float: bool = x.dtype.is_inexact
        return is_float

    def einsum(self, pattern: str, *x: Any) -> Any:
        return _like(x[0], einsum(pattern, *x))

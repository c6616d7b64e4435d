"""Fourier transforms of long rows become a step that reads tables: roots of unity, the order of results."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from dualflow.core.dtypes import DType, as_dtype
from dualflow.core.shape import Shape
from dualflow.core.spec import TensorSpec
from dualflow.graph.ir import Graph, Node
from dualflow.graph.passes.bodies import inside_out
from dualflow.graph.rewrite import Expansion, rebuild
from dualflow.ops.creation import CONSTANT
from dualflow.ops.op_kinds import Opaque
from dualflow.ops.record import Op

Array = np.ndarray[Any, Any]
REGISTER_BYTES: Final = 64
"""Lanes with a transform each are as many as fit in so many bytes, on every machine: so bits are the same."""


def _kernel(x: Array, *tables: Array, transform: Node) -> Array:
    found: Array = transform.op.kernel(x, **transform.attrs)
    return found


FOUR_STEPS: Final = Op(
    name="fourier_steps",
    doc="The node ``transform`` of long rows, by tables: see :func:`tables`.",
    infer=lambda x, *tables, transform: x,
    kernel=_kernel,
    kind=Opaque("a Fourier transform of long rows"),
)


def _with_steps(graph: Graph) -> Graph:
    return rebuild(graph, lambda _, node: _steps(node))


transform_in_steps = inside_out(_with_steps)
"""The pass: a graph whose transforms of long rows are steps, in its bodies too."""


def _steps(node: Node) -> Expansion | None:
    kind = node.op.kind
    if not isinstance(kind, Opaque) or kind.fourier is None:
        return None
    (x,) = node.inputs
    if not kind.fourier(x.spec, **node.attrs):
        return None
    found = tables(x.spec.shape[-1] or 0, x.spec.dtype.real, node.attrs["kind"] == "ifft")
    made = [Node(CONSTANT, [], {"value": table}, [_spec(table)]) for table in found]
    step = Node(
        FOUR_STEPS, [x, *(n.output for n in made)], {"transform": node}, node.specs, node.origin, node.also
    )
    return Expansion((*made, step), (step.output,))


def _spec(table: Array) -> TensorSpec:
    return TensorSpec.of(Shape(table.shape), as_dtype(table.dtype))


def lanes_of(part: DType) -> int:
    """How many transforms go side by side."""
    return REGISTER_BYTES // part.size


def sides(length: int) -> tuple[int, int]:
    """The length of columns and of rows: a row of numbers as a matrix, as square as powers of two allow.

    >>> sides(1 << 17)
    (256, 512)
    """
    columns = 1 << (length.bit_length() - 1) // 2
    return columns, length // columns


@functools.lru_cache(maxsize=4)
def tables(length: int, part: DType, inverse: bool) -> tuple[Array, ...]:
    """What the steps for rows of so many numbers read.

    Roots of the columns' length, the places of frequencies in their results; the root by which the number in
    a lane is multiplied, for each frequency, divided by ``length`` for an inverse; roots that all lanes
    share; roots of the rows' length, and the frequencies at places in their results.
    """
    columns, rows = sides(length)
    lanes = lanes_of(part)
    near = _roots(np.arange(columns)[:, None] * np.arange(lanes), length) / (length if inverse else 1)
    order = frequencies(columns)
    found = (
        _parts(_roots(np.arange(columns), columns), part),
        np.argsort(order),
        np.stack([near.real, near.imag], 1).astype(part.dtype),
        _parts(_roots(np.arange(length // lanes), length // lanes), part),
        _parts(_roots(np.arange(rows), rows), part),
        frequencies(rows),
    )
    for table in found:
        table.flags.writeable = False
    return found


def frequencies(length: int) -> Array:
    """The frequency at each place after butterflies of four legs, and at last of two if they are left over.

    >>> frequencies(8)
    array([0, 4, 1, 5, 2, 6, 3, 7])
    """
    place = np.arange(length)
    found, weight, rest = np.zeros(length, np.int64), 1, length
    while rest > 1:
        legs = min(rest, 4)
        rest //= legs
        found += weight * (place // rest % legs)
        weight *= legs
    return found


def _roots(power: Array, order: int) -> Array:
    """``exp(-2j * pi * power / order)`` for powers of two: an eighth of the circle, where angles are exact.

    >>> [complex(z) == w for z, w in zip(_roots(np.arange(4), 4), [1, -1j, -1, 1j])]
    [True, True, True, True]
    """
    turned = power * 8 % (8 * order)
    eighth, rest = turned // order, turned % order
    near = np.where(eighth % 2 == 0, rest, order - rest)
    cosine, sine = np.cos(np.pi / 4 * near / order), np.sin(np.pi / 4 * near / order)
    across = (eighth + 1) // 2 % 2 == 1
    x, y = np.where(across, sine, cosine), np.where(across, cosine, sine)
    found: Array = np.where((eighth + 2) // 4 % 2 == 1, -x, x) - 1j * np.where(eighth < 4, y, -y)
    return found


def _parts(numbers: Array, part: DType) -> Array:
    """The real and the imaginary part of each number, rounded."""
    return np.stack([numbers.real, numbers.imag], -1).astype(part.dtype)


def inverse(node: Node) -> bool:
    """Whether the steps go back."""
    kind: str = node.attrs["transform"].attrs["kind"]
    return kind == "ifft"


def shape_of(node: Node) -> Sequence[int]:
    """How many rows there are, and the sides of each."""
    size = node.output.spec.shape
    length = size[-1] or 0
    return (node.output.spec.shape.num_elements() or 0) // length, *sides(length)

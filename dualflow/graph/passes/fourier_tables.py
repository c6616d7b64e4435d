"""The pass that gives Fourier transforms of long rows their tables: roots of unity, and bit reversal."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from dualflow.core.dtypes import DType, as_dtype
from dualflow.core.shape import Shape
from dualflow.core.spec import TensorSpec
from dualflow.graph.ir import Graph, Node
from dualflow.graph.passes.over_bodies import inside_out
from dualflow.graph.rewrite import Expansion, expand
from dualflow.ops.creation import CONSTANT
from dualflow.ops.op_kinds import Opaque
from dualflow.ops.record import Op

Array = np.ndarray[Any, Any]
REGISTER_BYTES: Final = 64
"""The bytes of a vector, each lane of which computes a transform: fixed, as results depend on it."""


def _kernel(x: Array, *tables: Array, transform: Node) -> Array:
    result: Array = transform.op.kernel(x, **transform.attrs)
    return result


FOUR_STEPS: Final = Op(
    name="fourier_steps",
    doc="The node ``transform``, of long rows, by tables: see :func:`tables`.",
    infer=lambda x, *tables, transform: x,
    kernel=_kernel,
    kind=Opaque("a Fourier transform of long rows"),
)


def _with_steps(graph: Graph) -> Graph:
    return expand(graph, _steps, (Opaque,))


transform_in_steps = inside_out(_with_steps)
"""The pass: ``graph`` with transforms of long rows by tables, in bodies too."""


def _steps(node: Node) -> Expansion | None:
    kind = node.op.kind
    assert isinstance(kind, Opaque)
    if kind.fourier is None:
        return None
    (x,) = node.inputs
    if not kind.fourier(x.spec, **node.attrs):
        return None
    arrays = tables(x.spec.shape[-1] or 0, x.spec.dtype.real, node.attrs["kind"] == "ifft")
    constants = [Node(CONSTANT, [], {"value": table}, [_spec(table)]) for table in arrays]
    step = Node(
        FOUR_STEPS,
        [x, *(n.output for n in constants)],
        {"transform": node},
        node.specs,
        node.origin,
        node.merged_origins,
    )
    return Expansion((*constants, step), (step.output,))


def _spec(table: Array) -> TensorSpec:
    return TensorSpec.of(Shape(table.shape), as_dtype(table.dtype))


def lanes_of(part: DType) -> int:
    """The number of transforms that are computed together."""
    return REGISTER_BYTES // part.size


def matrix_shape(length: int) -> tuple[int, int]:
    """The shape of a row of ``length`` numbers as a matrix that is as square as powers of two allow.

    >>> matrix_shape(1 << 17)
    (256, 512)
    """
    columns = 1 << (length.bit_length() - 1) // 2
    return columns, length // columns


@functools.lru_cache(maxsize=4)
def tables(length: int, part: DType, inverse: bool) -> tuple[Array, ...]:
    """The tables for transforms of rows of ``length`` numbers.

    Roots for the columns; the indices of frequencies in their results; the twiddle factor of each lane, for
    each frequency, divided by ``length`` for an inverse transform; the roots that all lanes share; roots for
    the rows; the frequency at each index of their results.
    """
    columns, rows = matrix_shape(length)
    lanes = lanes_of(part)
    near = _roots(np.arange(columns)[:, None] * np.arange(lanes), length) / (length if inverse else 1)
    order = frequencies(columns)
    arrays = (
        _parts(_roots(np.arange(columns), columns), part),
        np.argsort(order),
        np.stack([near.real, near.imag], 1).astype(part.dtype),
        _parts(_roots(np.arange(length // lanes), length // lanes), part),
        _parts(_roots(np.arange(rows), rows), part),
        frequencies(rows),
    )
    for table in arrays:
        table.flags.writeable = False
    return arrays


def frequencies(length: int) -> Array:
    """The frequency at each index after butterflies of radix 4, and of radix 2 at the end if necessary.

    >>> frequencies(8)
    array([0, 4, 1, 5, 2, 6, 3, 7])
    """
    index = np.arange(length)
    frequency, weight, remaining = np.zeros(length, np.int64), 1, length
    while remaining > 1:
        legs = min(remaining, 4)
        remaining //= legs
        frequency += weight * (index // remaining % legs)
        weight *= legs
    return frequency


def _roots(power: Array, order: int) -> Array:
    """``exp(-2j * pi * power / order)`` for powers of two, from the first eighth of the circle: exact angles.

    >>> [complex(z) == w for z, w in zip(_roots(np.arange(4), 4), [1, -1j, -1, 1j])]
    [True, True, True, True]
    """
    eighths = power * 8 % (8 * order)
    eighth, remainder = eighths // order, eighths % order
    reduced = np.where(eighth % 2 == 0, remainder, order - remainder)
    cosine, sine = np.cos(np.pi / 4 * reduced / order), np.sin(np.pi / 4 * reduced / order)
    across = (eighth + 1) // 2 % 2 == 1
    x, y = np.where(across, sine, cosine), np.where(across, cosine, sine)
    roots: Array = np.where((eighth + 2) // 4 % 2 == 1, -x, x) - 1j * np.where(eighth < 4, y, -y)
    return roots


def _parts(numbers: Array, part: DType) -> Array:
    """The real and the imaginary part of each number, rounded."""
    return np.stack([numbers.real, numbers.imag], -1).astype(part.dtype)


def inverse(node: Node) -> bool:
    """Whether the transform is an inverse one."""
    kind: str = node.attrs["transform"].attrs["kind"]
    return kind == "ifft"


def shape_of(node: Node) -> Sequence[int]:
    """The number of rows, and the shape of each as a matrix."""
    size = node.output.spec.shape
    length = size[-1] or 0
    return (node.output.spec.shape.num_elements() or 0) // length, *matrix_shape(length)

"""Products of tensors by the axes they share, all through the matrix product."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from dualflow.core.errors import InvalidArgumentError
from dualflow.core.shape import Shape, normalize_axis
from dualflow.ops.arrangement import expand_dims, reshape, squeeze, transpose
from dualflow.ops.broadcasting import reduce_sum
from dualflow.ops.contraction import matmul
from dualflow.ops.creation import convert_to_tensor
from dualflow.ops.static import ints, static_int

if TYPE_CHECKING:
    from dualflow.ops.tensor import Tensor


def matvec(
    a: Any,
    b: Any,
    transpose_a: bool = False,
    adjoint_a: bool = False,
    a_is_sparse: bool = False,
    b_is_sparse: bool = False,
    name: str | None = None,
) -> Tensor:
    """The product of matrices ``a`` of shape ``(..., n, k)`` and vectors ``b`` of shape ``(..., k)``.

    Args:
        a: the matrices.
        b: the vectors.
        transpose_a: take ``a`` as of shape ``(..., k, n)``.
        adjoint_a: as ``transpose_a``, and conjugate ``a``.
        a_is_sparse: ignored: ``a`` is multiplied as it is.
        b_is_sparse: ignored, likewise.
        name: ignored; as in TensorFlow.

    Raises:
        InvalidArgumentError: sizes that differ, or both ``transpose_a`` and ``adjoint_a``.

    >>> import dualflow as df
    >>> df.linalg.matvec([[1, 2], [3, 4]], [1, 1]).numpy()
    array([3, 7], dtype=int32)
    """
    found = matmul(a, expand_dims(b, -1), transpose_a=transpose_a, adjoint_a=adjoint_a)
    return squeeze(found, -1)


def tensordot(a: Any, b: Any, axes: Any, name: str | None = None) -> Tensor:
    """The sum of products of ``a`` and ``b`` over pairs of axes.

    Args:
        a: a tensor.
        b: a tensor.
        axes: how many last axes of ``a`` meet the first ones of ``b``, or two lists of axes that meet.
        name: ignored; as in TensorFlow.

    Returns:
        The other axes of ``a``, then those of ``b``.

    Raises:
        InvalidArgumentError: the lists differ in length, or the sizes that meet differ.

    >>> import dualflow as df
    >>> int(df.tensordot([1, 2, 3], [4, 5, 6], 1))
    32
    """
    a, b = convert_to_tensor(a), convert_to_tensor(b)
    first, second = _paired(axes, len(a.shape), len(b.shape))
    letters = [
        chr(ord("a") + i) if i < 26 else chr(ord("A") + i - 26) for i in range(len(a.shape) + len(b.shape))
    ]
    left, right = letters[: len(a.shape)], letters[len(a.shape) :]
    for i, j in zip(first, second, strict=True):
        right[j] = left[i]
    kept = [x for i, x in enumerate(left) if i not in first] + [
        x for j, x in enumerate(right) if j not in second
    ]
    return einsum(f"{''.join(left)},{''.join(right)}->{''.join(kept)}", a, b)


def _paired(axes: Any, left: int, right: int) -> tuple[list[int], list[int]]:
    if isinstance(axes, list | tuple):
        first, second = (ints(side, "axes") for side in axes)
    else:
        count = static_int(axes, "axes")
        first, second = tuple(range(left - count, left)), tuple(range(count))
    if len(first) != len(second):
        raise InvalidArgumentError(
            f"tensordot pairs axes one to one, but got {first} and {second}; give as many of each."
        )
    return [normalize_axis(i, left) for i in first], [normalize_axis(j, right) for j in second]


def einsum(equation: str, *inputs: Any, optimize: Any = None, name: str | None = None) -> Tensor:
    """The sum of products that ``equation`` writes in Einstein's notation, such as ``"bij,bjk->bik"``.

    Args:
        equation: one group of letters an input, one letter an axis; after ``->`` the letters that stay.
            Without ``->`` those that appear once stay, in alphabetical order.
        *inputs: the tensors, which are multiplied from left to right.
        optimize: ignored: TensorFlow's choice of another order.
        name: ignored; as in TensorFlow.

    Raises:
        InvalidArgumentError: an equation that doesn't fit the inputs, a letter twice in a group, or ``...``.

    >>> import dualflow as df
    >>> df.einsum("ij,j->i", [[1, 2], [3, 4]], [1, 1]).numpy()
    array([3, 7], dtype=int32)
    """
    groups, result = _parsed(equation, len(inputs))
    tensors = [convert_to_tensor(x) for x in inputs]
    _check(equation, groups, result, [x.shape for x in tensors])
    found, labels = tensors[0], groups[0]
    for i, (x, group) in enumerate(zip(tensors[1:], groups[1:], strict=True), start=2):
        wanted = set(result).union(*groups[i:])
        found, labels = _pair(found, labels, x, group, wanted)
    found, labels = _summed(found, labels, set(result))
    return transpose(found, [labels.index(x) for x in result]) if labels != result else found


def _parsed(equation: str, count: int) -> tuple[list[str], str]:
    left, arrow, result = equation.replace(" ", "").partition("->")
    groups = left.split(",")
    if len(groups) != count or not all(c.isalpha() for c in "".join(groups) + result):
        raise InvalidArgumentError(
            f"einsum({equation!r}) with {count} inputs: write one group of letters for each input, "
            "with commas between; '...' is not supported, name each axis."
        )
    if not arrow:
        every = "".join(groups)
        result = "".join(sorted(x for x in set(every) if every.count(x) == 1))
    return groups, result


def _check(equation: str, groups: list[str], result: str, shapes: list[Shape]) -> None:
    sizes: dict[str, int | None] = {}
    for group, shape in zip(groups, shapes, strict=True):
        if len(group) != len(shape) or len(set(group)) != len(group):
            raise InvalidArgumentError(
                f"einsum({equation!r}): {group!r} does not fit shape {shape}; write each axis as one letter."
            )
        for letter, size in zip(group, shape, strict=True):
            if sizes.setdefault(letter, size) not in (size, None) and size is not None:
                raise InvalidArgumentError(
                    f"einsum({equation!r}): {letter!r} is both {sizes[letter]} and {size}."
                )
    if not set(result) <= set(sizes) or len(set(result)) != len(result):
        raise InvalidArgumentError(
            f"einsum({equation!r}): {result!r} has letters that no input has, or one twice."
        )


def _summed(x: Any, labels: str, wanted: set[str]) -> tuple[Any, str]:
    """``x`` without the axes that nobody wants any more."""
    gone = tuple(i for i, label in enumerate(labels) if label not in wanted)
    return (reduce_sum(x, gone), "".join(c for c in labels if c in wanted)) if gone else (x, labels)


def _pair(a: Any, left: str, b: Any, right: str, wanted: set[str]) -> tuple[Any, str]:
    """The product of two tensors, summed over shared axes that nobody wants later: one matrix product."""
    a, left = _summed(a, left, wanted | set(right))
    b, right = _summed(b, right, wanted | set(left))
    batch = [c for c in left if c in right and c in wanted]
    inner = [c for c in left if c in right and c not in wanted]
    rows = [c for c in left if c not in right]
    columns = [c for c in right if c not in left]
    size = dict(zip(left + right, (*a.shape, *b.shape), strict=True))
    if None in size.values():
        raise InvalidArgumentError(
            f"einsum needs to know every size while tracing, but has {a.shape} and {b.shape}; give known "
            "shapes."
        )
    first = _matrices(a, left, batch, rows, inner, size)
    second = _matrices(b, right, batch, inner, columns, size)
    labels = "".join(batch + rows + columns)
    return reshape(matmul(first, second), [size[c] for c in labels]), labels


def _matrices(
    x: Any, labels: str, batch: list[str], rows: list[str], columns: list[str], size: dict[str, Any]
) -> Any:
    """``x`` as matrices whose rows and columns are groups of its axes."""
    order = [labels.index(c) for c in (*batch, *rows, *columns)]
    if order != sorted(order):
        x = transpose(x, order)
    extents = [math.prod(size[c] for c in group) for group in (rows, columns)]
    return reshape(x, [*(size[c] for c in batch), *extents])

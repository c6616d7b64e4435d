"""tensordot, einsum and other products over shared axes, all computed by matrix products."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from dualflow.core.dtypes import int64
from dualflow.core.errors import InvalidArgumentError
from dualflow.core.shape import Shape, normalize_axis
from dualflow.ops.arithmetic import multiply
from dualflow.ops.arrangement import expand_dims, reshape, squeeze, transpose
from dualflow.ops.broadcasting import reduce_sum
from dualflow.ops.contraction import matmul
from dualflow.ops.contraction_order import contraction_order
from dualflow.ops.positions import iota
from dualflow.ops.record import promote_together
from dualflow.ops.size_values import operand
from dualflow.ops.static import ints, require_static_sizes, static_int
from dualflow.ops.taking import gather
from dualflow.ops.tensor_sizes import axis_sizes

if TYPE_CHECKING:
    from dualflow.core.argument_types import AxisLike, TensorLike
    from dualflow.ops.tensor import Tensor


def matvec(
    a: TensorLike,
    b: TensorLike,
    transpose_a: bool = False,
    adjoint_a: bool = False,
    a_is_sparse: bool = False,
    b_is_sparse: bool = False,
    name: str | None = None,
) -> Tensor:
    """The product of matrices and vectors.

    Args:
        a: numbers of shape ``(..., n, k)``.
        b: numbers of shape ``(..., k)``; leading axes broadcast.
        transpose_a: whether ``a`` is given as ``(..., k, n)``.
        adjoint_a: as ``transpose_a``, and conjugates ``a``.
        a_is_sparse: ignored; TensorFlow chooses another algorithm for matrices with many zeros.
        b_is_sparse: ignored, likewise.

    Returns:
        A tensor of shape ``(..., n)`` with the common dtype of ``a`` and ``b``.

    Raises:
        InvalidArgumentError: the inner sizes differ, or both ``transpose_a`` and ``adjoint_a`` are set.
        DTypeError: an argument holds bools or strings.

    >>> import dualflow as df
    >>> df.linalg.matvec([[1, 2], [3, 4]], [1, 1]).numpy()
    array([3, 7], dtype=int32)
    """
    a, b = promote_together(a, b)
    if len(a.shape) == 2 <= len(b.shape) and not adjoint_a:  # one product, not one for each vector
        return matmul(b, a, transpose_b=not transpose_a)
    product = matmul(a, expand_dims(b, -1), transpose_a=transpose_a, adjoint_a=adjoint_a)
    return squeeze(product, -1)


def tensordot(
    a: TensorLike, b: TensorLike, axes: AxisLike | Sequence[AxisLike], name: str | None = None
) -> Tensor:
    """The sum of products of ``a`` and ``b`` over pairs of axes.

    Args:
        a: numbers of any shape.
        b: numbers of any shape.
        axes: the number of last axes of ``a`` to pair with the first axes of ``b``; or two lists of axes,
            paired in order, or an array of two rows of them.

    Returns:
        A tensor of the other axes of ``a``, then those of ``b``, with the common dtype.

    Raises:
        InvalidArgumentError: there are fewer axes, the lists differ in length or repeat an axis, or the sizes
            of a pair differ.
        DTypeError: an argument holds bools or strings.

    >>> import dualflow as df
    >>> int(df.tensordot([1, 2, 3], [4, 5, 6], 1))
    32
    """
    a, b = promote_together(a, b)
    first, second = _paired(axes, len(a.shape), len(b.shape))
    letters = [
        chr(ord("a") + i) if i < 26 else chr(ord("A") + i - 26) for i in range(len(a.shape) + len(b.shape))
    ]
    left, right = letters[: len(a.shape)], letters[len(a.shape) :]
    for i, j in zip(first, second, strict=True):
        right[j] = left[i]
    free_sizes = [x for i, x in enumerate(left) if i not in first] + [
        x for j, x in enumerate(right) if j not in second
    ]
    return einsum(f"{''.join(left)},{''.join(right)}->{''.join(free_sizes)}", a, b)


def _paired(axes: Any, left: int, right: int) -> tuple[list[int], list[int]]:
    """The axes of ``a`` and of ``b`` that ``axes`` pairs, where these have ``left`` and ``right`` axes."""
    if isinstance(axes, list | tuple) or getattr(axes, "ndim", None):
        if len(axes) != 2:
            raise InvalidArgumentError(
                f"axes of tensordot are a number of axes, or two lists of them, not {axes}; give both lists."
            )
        first, second = (ints(axes[side], "axes") for side in (0, 1))
    else:
        count = static_int(axes, "axes")
        if not 0 <= count <= min(left, right):
            raise InvalidArgumentError(
                f"tensordot of tensors of {left} and {right} axes can't pair {count} axes; give a number "
                f"from 0 to {min(left, right)}."
            )
        first, second = tuple(range(left - count, left)), tuple(range(count))
    if len(first) != len(second):
        raise InvalidArgumentError(
            f"tensordot pairs axes one to one, but got {first} and {second}; give as many of each."
        )
    pairs = [normalize_axis(i, left) for i in first], [normalize_axis(j, right) for j in second]
    if any(len(set(side)) < len(side) for side in pairs):
        raise InvalidArgumentError(
            f"tensordot pairs each axis once, but got {first} and {second}; remove the repeated axis."
        )
    return pairs


def einsum(equation: str, *inputs: Any, optimize: bool | None = None, name: str | None = None) -> Tensor:
    """The sum of products that ``equation`` describes in Einstein's notation, such as ``"bij,bjk->bik"``.

    Args:
        equation: a group of letters for each input, with a letter for each axis; after ``->`` the letters of
            the result. Without ``->`` the result has the letters that occur once, in alphabetical order. A
            letter that occurs twice in a group is the diagonal of its axes. ``...`` stands for further axes,
            which broadcast; without ``->`` they come first.
        *inputs: the tensors; their dtypes promote to a common one. Several are multiplied in the order of the
            fewest multiplications.
        optimize: ignored: TensorFlow's choice of an order.

    Returns:
        A tensor whose axes are those of the letters of the result, with the common dtype.

    Raises:
        InvalidArgumentError: the equation doesn't fit the inputs, or sizes of one letter differ.
        DTypeError: an input holds bools or strings.

    >>> import dualflow as df
    >>> df.einsum("ij,j->i", [[1, 2], [3, 4]], [1, 1]).numpy()
    array([3, 7], dtype=int32)
    >>> df.einsum("...ii->...i", [[1, 2], [3, 4]]).numpy()
    array([1, 4], dtype=int32)
    """
    groups, result = _parsed(equation, len(inputs))
    tensors = promote_together(*inputs)
    groups, result = _spelt_out(equation, groups, result, [x.shape for x in tensors])
    size = _sizes(equation, groups, result, [x.shape for x in tensors])
    operands = [_distinct(x, group, size) for x, group in zip(tensors, groups, strict=True)]
    for i, j in contraction_order([labels for _, labels in operands], result, size):
        b, right = operands.pop(j)
        a, left = operands.pop(i)
        kept = set(result).union(*[labels for _, labels in operands])
        operands.append(_pair(a, left, b, right, kept))
    product, labels = operands[0]
    product, labels = _summed(product, labels, set(result))
    return transpose(product, [labels.index(x) for x in result]) if labels != result else product


_DOTS = "..."
_FIRST_UNNAMED = 0xE000
"""The first of Unicode's private characters, which label the axes of ``...``, from the last on."""


def _parsed(equation: str, count: int) -> tuple[list[str], str]:
    left, arrow, result = equation.replace(" ", "").partition("->")
    groups = left.split(",")
    letters = "".join([part.replace(_DOTS, "", 1) for part in (*groups, result)])
    if len(groups) != count or (letters and not letters.isalpha()):
        raise InvalidArgumentError(
            f"einsum({equation!r}) with {count} inputs: write one group of letters for each input, "
            "with commas between, and at most one '...' in each."
        )
    if not arrow:
        every = "".join(groups).replace(_DOTS, "")
        result = "".join(sorted(x for x in set(every) if every.count(x) == 1))
        result = _DOTS + result if _DOTS in left else result
    return groups, result


def _spelt_out(
    equation: str, groups: list[str], result: str, shapes: Sequence[Shape]
) -> tuple[list[str], str]:
    """The subscripts of inputs and result, with ``...`` replaced by a label for each of its axes."""
    widest = 0
    spelt = []
    for group, shape in zip(groups, shapes, strict=True):
        count = len(shape) - len(group.replace(_DOTS, ""))
        if count < 0 or (count and _DOTS not in group):
            raise InvalidArgumentError(
                f"einsum({equation!r}): {group!r} does not fit shape {shape}; write each axis as one letter."
            )
        widest = max(widest, count)
        spelt.append(group.replace(_DOTS, _unnamed(count)))
    if widest and _DOTS not in result:
        raise InvalidArgumentError(
            f"einsum({equation!r}): the axes that '...' stands for must stay; write '...' in the result."
        )
    return spelt, result.replace(_DOTS, _unnamed(widest))


def _unnamed(count: int) -> str:
    return "".join(chr(_FIRST_UNNAMED + i) for i in reversed(range(count)))


def _broadcasts(label: str) -> bool:
    """Whether ``label`` is that of an axis of ``...``, whose sizes may be 1."""
    return ord(label) >= _FIRST_UNNAMED


def _sizes(equation: str, groups: list[str], result: str, shapes: Sequence[Shape]) -> dict[str, int | None]:
    """The size of each label; those of ``...`` broadcast."""
    size_of: dict[str, int | None] = {}
    for group, shape in zip(groups, shapes, strict=True):
        for label, size in zip(group, shape, strict=True):
            size_before = size_of.setdefault(label, size)
            if size_before is None or (_broadcasts(label) and size_before == 1):
                size_of[label] = size
            elif size not in (size_before, None) and not (_broadcasts(label) and size == 1):
                raise InvalidArgumentError(
                    f"einsum({equation!r}): {label!r} is both {size_before} and {size}."
                )
    if not set(result) <= set(size_of) or len(set(result)) != len(result):
        raise InvalidArgumentError(
            f"einsum({equation!r}): {result!r} has letters that no input has, or one twice."
        )
    return size_of


def _distinct(x: Any, labels: str, size: dict[str, int | None]) -> tuple[Any, str]:
    """``x`` with one axis for each label: diagonals for repeated ones, none for broadcast axes of size 1."""
    for label in dict.fromkeys(labels):
        at = [i for i, other in enumerate(labels) if other == label]
        if _broadcasts(label) and x.shape[at[0]] != size[label] and x.shape[at[0]] == 1:
            x, labels = squeeze(x, at), labels.replace(label, "")
        while len(at) > 1:
            x, labels = _diagonal(x, labels, at[0], at[1])
            at = [i for i, other in enumerate(labels) if other == label]
    return x, labels


def _diagonal(x: Any, labels: str, first: int, second: int) -> tuple[Any, str]:
    """The diagonal of two axes as the last axis: every ``n + 1``-th element of the flattened matrix."""
    others = [i for i in range(len(labels)) if i not in (first, second)]
    x = transpose(x, [*others, first, second])
    n = x.shape[-1]
    require_static_sizes(x.shape, "a diagonal")
    flat = reshape(x, [*x.shape[:-2], n * n])
    remaining = "".join(labels[i] for i in others) + labels[first]
    if type(n) is int:
        return flat[..., :: n + 1], remaining
    return gather(flat, iota([n], 0, int64) * operand(n + 1), axis=-1), remaining


def _summed(x: Any, labels: str, kept: set[str]) -> tuple[Any, str]:
    """``x`` summed over the axes that are not in ``kept``."""
    gone = tuple(i for i, label in enumerate(labels) if label not in kept)
    return (reduce_sum(x, gone), "".join(c for c in labels if c in kept)) if gone else (x, labels)


def _pair(a: Any, left: str, b: Any, right: str, kept: set[str]) -> tuple[Any, str]:
    """The product of two tensors, summed over shared axes that no later input has: one matrix product."""
    a, left = _summed(a, left, kept | set(right))
    b, right = _summed(b, right, kept | set(left))
    batch = [c for c in left if c in right and c in kept]
    inner = [c for c in left if c in right and c not in kept]
    rows = [c for c in left if c not in right]
    columns = [c for c in right if c not in left]
    shared = [*(a.shape[left.index(c)] for c in batch), *(b.shape[right.index(c)] for c in batch)]
    if not inner and all(type(size) is int for size in shared):  # a dynamic size of 1 would broadcast
        return _multiplied(a, left, b, right)
    broadcast = [c for c in batch if _broadcasts(c)] if inner else batch
    for x, labels in ((a, left), (b, right)):
        require_static_sizes([x.shape[labels.index(c)] for c in broadcast], "einsum")
    size = _sizes_by_label(a, left, b, right)
    first = _matrices(_with_sizes(a, left, right, size), left, batch, rows, inner, size)
    second = _matrices(_with_sizes(b, right, left, size), right, batch, inner, columns, size)
    labels = "".join(batch + rows + columns)
    product = matmul(first, second)
    is_reshaped = len(rows) != 1 or len(columns) != 1
    return reshape(product, [size[c] for c in labels]) if is_reshaped else product, labels


def _sizes_by_label(a: Any, left: str, b: Any, right: str) -> dict[str, Any]:
    """The size of each label: a number where one of the tensors has it, else a scalar tensor."""
    size: dict[str, Any] = {}
    for label, static, dynamic in zip(
        left + right, (*a.shape, *b.shape), (*axis_sizes(a), *axis_sizes(b)), strict=True
    ):
        if static is not None or label not in size:
            size[label] = dynamic
    return size


def _with_sizes(x: Any, labels: str, others: str, size: dict[str, Any]) -> Any:
    """``x``, reshaped to ``size`` along each dynamic axis that it shares with another tensor.

    A reshape fails unless that size is its own: matrix products broadcast sizes of 1.
    """
    sizes = axis_sizes(x)
    for axis, label in enumerate(labels):
        if x.shape[axis] is None and label in others and size[label] is not sizes[axis]:
            x = reshape(x, [*sizes[:axis], size[label], *sizes[axis + 1 :]])
    return x


def _multiplied(a: Any, left: str, b: Any, right: str) -> tuple[Any, str]:
    """The product of each pair of elements with the same index along shared axes, for the axes of both."""
    labels = left + "".join(c for c in right if c not in left)
    order = [right.index(c) for c in labels if c in right]
    b = b if order == sorted(order) else transpose(b, order)
    new_axes = [i for i, c in enumerate(labels) if c not in right]
    b = expand_dims(b, new_axes) if new_axes else b
    a = expand_dims(a, list(range(len(left), len(labels)))) if len(labels) > len(left) else a
    return multiply(a, b), labels


def _matrices(
    x: Any, labels: str, batch: list[str], rows: list[str], columns: list[str], size: dict[str, Any]
) -> Any:
    """``x`` as matrices whose rows and columns are groups of its axes."""
    order = [labels.index(c) for c in (*batch, *rows, *columns)]
    if order != sorted(order):
        x = transpose(x, order)
    if len(rows) == len(columns) == 1:
        return x
    extents = [size[g[0]] if len(g) == 1 else math.prod(size[c] for c in g) for g in (rows, columns)]
    return reshape(x, [*(size[c] for c in batch), *extents])

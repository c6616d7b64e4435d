"""Tensors split along an axis."""

from __future__ import annotations

import builtins
import itertools
from typing import TYPE_CHECKING

from dualflow.core.errors import InvalidArgumentError
from dualflow.core.shape import normalize_axis
from dualflow.core.tracebacks import make_entries
from dualflow.numpy.docstrings import complete_docstrings
from dualflow.numpy.operands import has_axes, tensor, with_rank
from dualflow.ops.static import ints, require_static_sizes, static_int
from dualflow.ops.tensor import Tensor

if TYPE_CHECKING:
    from dualflow.core.argument_types import TensorLike


def array_split(ary: TensorLike, indices_or_sections: TensorLike, axis: int = 0) -> list[Tensor]:
    """The parts of ``ary`` along ``axis``, whose sizes may differ by one.

    Args:
        indices_or_sections: the number of parts, the first of which are longer; or a list of indices at which
            to split.
        axis: the axis.

    Returns:
        A list of tensors of the dtype of ``ary``.

    Raises:
        InvalidArgumentError: there is less than one part.

    >>> import dualflow as df
    >>> [x.numpy().tolist() for x in df.numpy.array_split([1, 2, 3], 2)]
    [[1, 2], [3]]
    """
    x = tensor(ary)
    positive_axis = normalize_axis(axis, len(x.shape))
    (size,) = require_static_sizes(x.shape, "array_split", [positive_axis])
    if isinstance(indices_or_sections, list | tuple) or has_axes(indices_or_sections):
        indices = list(ints(indices_or_sections, "indices"))
    else:
        parts = static_int(indices_or_sections, "sections")
        if parts < 1:
            raise InvalidArgumentError(f"There are 1 or more parts, not {parts}.")
        indices = [i * (size // parts) + builtins.min(i, size % parts) for i in range(1, parts)]
    front = (slice(None),) * positive_axis
    ends = [None, *indices, None]
    return [x[(*front, slice(a, b))] for a, b in itertools.pairwise(ends)]


def split(ary: TensorLike, indices_or_sections: TensorLike, axis: int = 0) -> list[Tensor]:
    """The parts of ``ary`` along ``axis``.

    Args:
        indices_or_sections: the number of parts, which have one size; or a list of indices at which to split.
        axis: the axis.

    Returns:
        A list of tensors of the dtype of ``ary``.

    Raises:
        InvalidArgumentError: the size is no multiple of the number of parts.

    >>> import dualflow as df
    >>> [part.numpy().tolist() for part in df.numpy.split([1, 2, 3, 4], 2)]
    [[1, 2], [3, 4]]
    """
    x = tensor(ary)
    size = x.shape[normalize_axis(axis, len(x.shape))]
    single = not isinstance(indices_or_sections, list | tuple) and not getattr(
        indices_or_sections, "shape", ()
    )
    if single and size is not None and size % static_int(indices_or_sections, "sections"):
        raise InvalidArgumentError(
            f"Axis {axis} of size {size} has no {indices_or_sections} equal parts; use array_split."
        )
    return array_split(x, indices_or_sections, axis)


def hsplit(ary: TensorLike, indices_or_sections: TensorLike) -> list[Tensor]:
    """The parts of ``ary`` along the second axis; of a vector along the first.

    Args:
        ary: numbers of one axis or more.
        indices_or_sections: the number of parts, which have one size; or a list of indices at which to split.

    Returns:
        A list of tensors of the dtype of ``ary``.

    Raises:
        InvalidArgumentError: ``ary`` has no axes, or the size is no multiple of the number of parts.

    >>> import dualflow as df
    >>> [x.numpy().tolist() for x in df.numpy.hsplit([1, 2, 3, 4], 2)]
    [[1, 2], [3, 4]]
    """
    x = with_rank(ary, 1, "hsplit")
    return split(x, indices_or_sections, 1 if len(x.shape) > 1 else 0)


def vsplit(ary: TensorLike, indices_or_sections: TensorLike) -> list[Tensor]:
    """The parts of ``ary`` along the first axis.

    Args:
        ary: numbers of two axes or more.
        indices_or_sections: the number of parts, which have one size; or a list of indices at which to split.

    Returns:
        A list of tensors of the dtype of ``ary``.

    Raises:
        InvalidArgumentError: ``ary`` has fewer than two axes, or the size is no multiple of the number of
            parts.

    >>> import dualflow as df
    >>> [x.numpy().tolist() for x in df.numpy.vsplit([[1, 2], [3, 4]], 2)]
    [[[1, 2]], [[3, 4]]]
    """
    return split(with_rank(ary, 2, "vsplit"), indices_or_sections, 0)


def dsplit(ary: TensorLike, indices_or_sections: TensorLike) -> list[Tensor]:
    """The parts of ``ary`` along the third axis.

    Args:
        ary: numbers of three axes or more.
        indices_or_sections: the number of parts, which have one size; or a list of indices at which to split.

    Returns:
        A list of tensors of the dtype of ``ary``.

    Raises:
        InvalidArgumentError: ``ary`` has fewer than three axes, or the size is no multiple of the number of
            parts.

    >>> import dualflow as df
    >>> [x.numpy().tolist() for x in df.numpy.dsplit([[[1, 2]]], 2)]
    [[[[1]]], [[[2]]]]
    """
    return split(with_rank(ary, 3, "dsplit"), indices_or_sections, 2)


complete_docstrings(globals())
make_entries(globals())

"""Grayscale dilation and erosion: maxima and minima of windows with a filter added."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dualflow.core import dispatch
from dualflow.core.errors import InvalidArgumentError
from dualflow.ops.arithmetic import add, negative
from dualflow.ops.comparison import logical_and
from dualflow.ops.contraction import MATMUL
from dualflow.ops.neural.window_options import check_data_format, check_kind, fix_window_sizes, geometry
from dualflow.ops.neural.window_reductions import inside, lowest
from dualflow.ops.neural.windows import windows
from dualflow.ops.reduction import reduce_first_max
from dualflow.ops.repetition import reverse
from dualflow.ops.selection import where

if TYPE_CHECKING:
    from dualflow.core.argument_types import IntsLike, PaddingLike, TensorLike
    from dualflow.ops.tensor import Tensor


def dilation2d(
    input: TensorLike,
    filters: TensorLike,
    strides: IntsLike,
    padding: PaddingLike,
    data_format: str,
    dilations: IntsLike,
    name: str | None = None,
) -> Tensor:
    """Grayscale dilation: the maximum of ``input + filters`` over each window, for each channel.

    Args:
        input: real numbers of shape ``(batch, height, width, channels)``, whose sizes are known while
            tracing.
        filters: of shape ``(window height, window width, channels)``.
        strides: the distance between windows: an integer, or a list of two or four.
        padding: "SAME" or "VALID"; elements outside of the input are left out.
        data_format: "NHWC".
        dilations: the distance between the elements of a window, given as ``strides``.

    Returns:
        A tensor of shape ``(batch, rows, columns, channels)`` with the common dtype; the gradient is that of
        the first maximum of each window.

    Raises:
        InvalidArgumentError: shapes or options don't fit, or a size is unknown.
        DTypeError: an input doesn't hold real numbers.

    >>> import dualflow as df
    >>> x, f = df.constant([[[[1.0], [5.0], [2.0]]]]), df.constant([[[0.0], [-3.0]]])
    >>> df.nn.dilation2d(x, f, 1, "VALID", "NHWC", 1).numpy().ravel()
    array([2., 5.], dtype=float32)
    """
    check_data_format(data_format, "NHWC", "NHWC")
    x, f = MATMUL.prepare((input, filters), dispatch.current())
    check_kind(x, "fiu", "dilation2d")
    if len(f.shape) != 3 or len(x.shape) != 4 or x.shape[3] != f.shape[2] or None in x.shape[1:]:
        raise InvalidArgumentError(
            f"a filter of shape {f.shape} does not fit an input of shape {x.shape}: they are (h, w, "
            "channels) "
            "and (batch, height, width, channels), with known sizes."
        )
    fix_window_sizes(f, 2)
    layout = geometry(x.shape, f.shape[:2], strides, padding, dilations)
    values = add(windows(x, layout), f)
    conditions = inside(layout, x.shape[1:-1])
    if conditions:
        within = conditions[0]
        for condition in conditions[1:]:
            within = logical_and(within, condition)
        values = where(within, values, lowest(x))
    return reduce_first_max(values, layout.inner)


def erosion2d(
    value: TensorLike,
    filters: TensorLike,
    strides: IntsLike,
    padding: PaddingLike,
    data_format: str,
    dilations: IntsLike,
    name: str | None = None,
) -> Tensor:
    """Grayscale erosion: the minimum of ``value`` minus the mirrored ``filters`` over each window.

    Args:
        value: real numbers of shape ``(batch, height, width, channels)``, whose sizes are known while
            tracing.
        filters: of shape ``(window height, window width, channels)``.
        strides: the distance between windows: an integer, or a list of two or four.
        padding: "SAME" or "VALID"; elements outside of the input are left out.
        data_format: "NHWC".
        dilations: the distance between the elements of a window, given as ``strides``.

    Returns:
        A tensor of shape ``(batch, rows, columns, channels)`` with the common dtype.

    Raises:
        InvalidArgumentError: shapes or options don't fit, or a size is unknown.
        DTypeError: an input doesn't hold real numbers.

    >>> import dualflow as df
    >>> x, f = df.constant([[[[1.0], [5.0], [2.0]]]]), df.zeros([1, 2, 1])
    >>> df.nn.erosion2d(x, f, 1, "VALID", "NHWC", 1).numpy().ravel()
    array([1., 2.], dtype=float32)
    """
    mirrored = reverse(filters, [0, 1])
    return negative(dilation2d(negative(value), mirrored, strides, padding, data_format, dilations))

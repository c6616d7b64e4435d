"""Sobol's sequence, which fills the unit cube evenly."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dualflow.core import dispatch
from dualflow.core.dtypes import as_dtype, float32
from dualflow.core.errors import DTypeError, InvalidArgumentError
from dualflow.core.locks import imported
from dualflow.ops.static import static_int

if TYPE_CHECKING:
    from dualflow.core.argument_types import AxisLike, DTypeLike, IntLike
    from dualflow.ops.tensor import Tensor


def sobol_sample(
    dim: AxisLike,
    num_results: IntLike,
    skip: IntLike = 0,
    dtype: DTypeLike = float32,
    name: str | None = None,
) -> Tensor:
    """Points of Sobol's sequence in the unit cube, in Gray code's order and without the point 0.

    The direction numbers are those of S. Joe and F. Y. Kuo (2008), as SciPy has them.

    Args:
        dim: the number of coordinates, 1 or more.
        num_results: how many points, 1 or more.
        skip: how many points to leave out first.
        dtype: float32 or float64.

    Returns:
        Of shape ``[num_results, dim]``.

    Raises:
        InvalidArgumentError: no coordinates, no points, or a negative ``skip``.
        DTypeError: another dtype, or numbers that are not known while tracing.

    >>> import dualflow as df
    >>> df.math.sobol_sample(2, 3).numpy().tolist()
    [[0.5, 0.5], [0.75, 0.25], [0.25, 0.75]]
    """
    axes, count = static_int(dim, "dim"), static_int(num_results, "num_results")
    first, target = static_int(skip, "skip"), as_dtype(dtype)
    if axes < 1 or count < 1 or first < 0:
        raise InvalidArgumentError(
            f"sobol_sample makes 1 point or more in 1 dimension or more, and skips 0 or more, not "
            f"{count} in {axes} after {first}."
        )
    if target.name not in ("float32", "float64"):
        raise DTypeError(f"sobol_sample makes float32 or float64, not {target.name}; cast them with df.cast.")
    sequence = imported("scipy.stats.qmc").Sobol(axes, scramble=False, bits=32)
    points = sequence.fast_forward(first + 1).random(count)
    return dispatch.current().constant(points.astype(target.dtype))

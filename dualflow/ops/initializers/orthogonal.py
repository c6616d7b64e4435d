"""The initializer of matrices with orthogonal rows or columns."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dualflow.core.dtypes import float16, float32
from dualflow.core.errors import InvalidArgumentError
from dualflow.core.tracebacks import entry
from dualflow.ops.arithmetic import sign
from dualflow.ops.arrangement import reshape, transpose
from dualflow.ops.conversion import cast
from dualflow.ops.initializers.base import Initializer, floating, source
from dualflow.ops.linear_algebra.diagonals import diag_part
from dualflow.ops.linear_algebra.orthogonal import qr
from dualflow.ops.random_numbers import draws

if TYPE_CHECKING:
    from dualflow.core.argument_types import DTypeLike


@entry
@dataclass(frozen=True)
class Orthogonal(Initializer):
    """A matrix with orthogonal rows or columns, whichever are fewer, of length ``gain``.

    For more than two axes, all but the last are the rows. Saxe et al., "Exact solutions to the nonlinear
    dynamics of learning in deep linear neural networks" (2014).

    Args:
        gain: the length.
        seed: an integer for the same numbers at each call; None for new ones.
        dtype: the dtype of values for which none is requested; float32 by default.

    >>> import dualflow as df
    >>> q = df.initializers.Orthogonal()([2, 3])
    >>> df.abs(df.round(df.matmul(q, q, transpose_b=True) * 1000)).numpy().tolist()
    [[1000.0, 0.0], [0.0, 1000.0]]
    """

    gain: float = 1.0
    seed: int | None = None
    dtype: DTypeLike = float32

    def _value(self, sizes: tuple[int, ...], dtype: Any) -> Any:
        kind = floating(dtype)
        if len(sizes) < 2:
            raise InvalidArgumentError(
                f"Orthogonal makes matrices, not shape {sizes}; give two sizes or more."
            )
        rows, columns = math.prod(sizes[:-1]), sizes[-1]
        wide = float32 if kind is float16 else kind
        drawn = draws.normal(source(self.seed), (max(rows, columns), min(rows, columns)), dtype=wide)
        q, r = qr(drawn)
        q = q * sign(diag_part(r))  # without this, matrices would not be uniformly distributed
        matrix = reshape(transpose(q) if rows < columns else q, list(sizes))
        return cast(matrix * self.gain, kind)

"""Windows of signals, as vectors of float64."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from dualflow.core.tracebacks import make_entries
from dualflow.numpy.docstrings import complete_docstrings
from dualflow.numpy.operands import tensor
from dualflow.ops.docstrings import documented
from dualflow.ops.static import static_int
from dualflow.ops.tensor import Tensor

if TYPE_CHECKING:
    from dualflow.core.argument_types import IntLike


_VECTOR: Final = """Returns:
    A float64 vector of ``M`` elements.

Raises:
    DTypeError: ``M`` is no integer.
"""


@documented(_VECTOR)
def bartlett(M: IntLike) -> Tensor:
    """The Bartlett window: a triangle from 0 to 1 and back.

    >>> import dualflow as df
    >>> df.numpy.bartlett(5).numpy()
    array([0. , 0.5, 1. , 0.5, 0. ])
    """
    return tensor(np.bartlett(static_int(M, "M")))


@documented(_VECTOR)
def blackman(M: IntLike) -> Tensor:
    """The Blackman window: ``0.42 - 0.5 * cos(t) + 0.08 * cos(2 * t)`` for ``t`` from 0 to ``2 * pi``.

    >>> import dualflow as df
    >>> df.numpy.blackman(3).numpy().round(3) + 0.0
    array([0., 1., 0.])
    """
    return tensor(np.blackman(static_int(M, "M")))


@documented(_VECTOR)
def hamming(M: IntLike) -> Tensor:
    """The Hamming window: ``0.54 - 0.46 * cos(t)`` for ``t`` from 0 to ``2 * pi``.

    >>> import dualflow as df
    >>> df.numpy.hamming(3).numpy()
    array([0.08, 1.  , 0.08])
    """
    return tensor(np.hamming(static_int(M, "M")))


@documented(_VECTOR)
def hanning(M: IntLike) -> Tensor:
    """The Hann window: ``0.5 - 0.5 * cos(t)`` for ``t`` from 0 to ``2 * pi``.

    >>> import dualflow as df
    >>> df.numpy.hanning(5).numpy().round(3)
    array([0. , 0.5, 1. , 0.5, 0. ])
    """
    return tensor(np.hanning(static_int(M, "M")))


@documented(_VECTOR)
def kaiser(M: IntLike, beta: float) -> Tensor:
    """The Kaiser window: ``i0(beta * sqrt(1 - t**2)) / i0(beta)`` for ``t`` from -1 to 1.

    Args:
        beta: a float; the window is narrower for a larger one.

    >>> import dualflow as df
    >>> df.numpy.kaiser(3, 8.0).numpy().round(4)
    array([0.0023, 1.    , 0.0023])
    """
    return tensor(np.kaiser(static_int(M, "M"), float(beta)))


complete_docstrings(
    globals(),
    M="the number of elements, an integer.",
)
make_entries(globals())

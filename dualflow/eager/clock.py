"""The current time as a tensor."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import numpy as np

from dualflow.core.dtypes import float64
from dualflow.core.spec import TensorSpec
from dualflow.eager.python_call import numpy_function

if TYPE_CHECKING:
    from dualflow.ops.tensor import Tensor


def timestamp(name: str | None = None) -> Tensor:
    """The seconds since 1970, a float64 scalar; in a traced function, read at each call.

    >>> import dualflow as df
    >>> df.timestamp().dtype
    tf.float64
    """
    seconds: Tensor = numpy_function(lambda: np.array(time.time()), [], TensorSpec([], float64))
    return seconds

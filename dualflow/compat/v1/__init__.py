"""TensorFlow 1's names: ``from dualflow.compat import v1 as tf``.

A name that is not here is dualflow's own, as ``v1.float32`` and ``v1.matmul``.
"""

from __future__ import annotations

from typing import Any

import dualflow
from dualflow.compat.v1 import train as train
from dualflow.eager import enable_eager_execution as enable_eager_execution
from dualflow.ops.arithmetic import divide
from dualflow.random import normal, set_seed, shuffle, uniform
from dualflow.random import truncated_normal as truncated_normal

div = divide
random_normal = normal
random_shuffle = shuffle
random_uniform = uniform
set_random_seed = set_seed


def __getattr__(name: str) -> Any:
    try:
        return getattr(dualflow, name)
    except AttributeError:
        raise AttributeError(f"module 'dualflow.compat.v1' has no attribute {name!r}") from None

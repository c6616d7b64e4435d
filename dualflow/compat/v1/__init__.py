"""TensorFlow 1's names: ``from dualflow.compat import v1 as tf``.

A name that is not here is dualflow's own, as ``v1.float32`` and ``v1.matmul``.
"""

from __future__ import annotations

from typing import Any

import dualflow
from dualflow.compat.v1 import train as train
from dualflow.eager import enable_eager_execution as enable_eager_execution
from dualflow.function.session import Graph as Graph
from dualflow.function.session import GraphGrowthWarning as GraphGrowthWarning
from dualflow.function.session import Operation as Operation
from dualflow.function.session import Session as Session
from dualflow.function.session import Variable as Variable
from dualflow.function.session import assign as assign
from dualflow.function.session import assign_add as assign_add
from dualflow.function.session import assign_sub as assign_sub
from dualflow.function.session import control_dependencies as control_dependencies
from dualflow.function.session import get_default_graph as get_default_graph
from dualflow.function.session import global_variables as global_variables
from dualflow.function.session import global_variables_initializer as global_variables_initializer
from dualflow.function.session import gradients as gradients
from dualflow.function.session import group as group
from dualflow.function.session import no_op as no_op
from dualflow.function.session import placeholder as placeholder
from dualflow.function.session import reset_default_graph as reset_default_graph
from dualflow.function.session import trainable_variables as trainable_variables
from dualflow.function.session import variables_initializer as variables_initializer
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

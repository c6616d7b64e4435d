"""Eager execution: tensors with values, tapes, variables. Early TensorFlow programs import it as ``tfe``."""

from __future__ import annotations

from dualflow.core import dispatch
from dualflow.core.namespace import publish as _publish
from dualflow.eager.devices import gpu_count
from dualflow.eager.engine import EAGER as EAGER
from dualflow.eager.tape import GradientTape as GradientTape
from dualflow.eager.tfe_gradients import gradients_function as gradients_function
from dualflow.eager.tfe_gradients import implicit_gradients as implicit_gradients
from dualflow.eager.tfe_gradients import implicit_value_and_gradients as implicit_value_and_gradients
from dualflow.eager.tfe_gradients import py_func as py_func
from dualflow.eager.tfe_gradients import value_and_gradients_function as value_and_gradients_function
from dualflow.eager.variable import Variable as Variable
from dualflow.gradient.custom import custom_gradient as custom_gradient

__all__ = [
    "GradientTape",
    "Variable",
    "custom_gradient",
    "executing_eagerly",
    "gradients_function",
    "implicit_gradients",
    "implicit_value_and_gradients",
    "num_gpus",
    "py_func",
    "value_and_gradients_function",
]


def executing_eagerly() -> bool:
    """Whether ops run immediately: True except in a function that is being traced."""
    return dispatch.current().eager


def num_gpus() -> int:
    """The number of GPUs that ``df.device`` accepts: 1 if there is one, 0 otherwise."""
    return gpu_count()


_publish(
    globals(),
    later={
        "dualflow.compat.v1.template": "make_template",
        "dualflow.contrib": "metrics",
        "dualflow.contrib.network": "Network Sequential",
        "dualflow.data.iterator": "Iterator",
        "dualflow.graph_mode": "enable_eager_execution",
        "dualflow.train.checkpoint": "Checkpoint",
        "dualflow.train.saver": "Saver=EagerSaver",
    },
)

"""TensorFlow's internal modules that libraries import from: where dualflow has their names.

A library that imports ``tensorflow.python.ops.math_ops`` gets a module whose names are looked up in public
namespaces. A module that is not in the table can't be imported, and a name that no namespace has is an error.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from importlib import import_module
from types import ModuleType
from typing import Any, Final

import dualflow
from dualflow.cli import internal_nest
from dualflow.core import dispatch
from dualflow.core.absent import missing
from dualflow.core.composite_tensor import CompositeTensor
from dualflow.core.delegating_engine import DelegatingEngine
from dualflow.core.device_names import DeviceSpec
from dualflow.core.namespace import ABSENT
from dualflow.eager.recording import Recording
from dualflow.eager.tensor import EagerTensor

PREFIX: Final = "tensorflow.python"
_TABLE: Final = """\
client.session                compat.v1
distribute.values             distribute
distribute.ps_values          distribute
eager.context                 compat.v1
eager.record
eager.tape
framework.composite_tensor    compat.v1
framework.constant_op         compat.v1
framework.dtypes              dtypes .
framework.errors_impl         errors
framework.errors              errors
framework.ops                 compat.v1
framework.random_seed         compat.v1
framework.sparse_tensor       .
framework.tensor              .
framework.tensor_conversion   .
framework.tensor_shape        compat.v1
framework.tensor_spec         .
framework.tensor_util         compat.v1
framework.test_util           test
layers.base                   compat.v1.layers
layers.core                   compat.v1.layers
layers.normalization          compat.v1.layers
ops.array_ops                 compat.v1
ops.check_ops                 compat.v1 debugging
ops.clip_ops                  compat.v1
ops.control_flow_case         .
ops.control_flow_ops          compat.v1
ops.control_flow_util         compat.v1
ops.custom_gradient           .
ops.gradients_impl            compat.v1
ops.image_ops                 image
ops.init_ops                  compat.v1
ops.io_ops                    io
ops.linalg_ops                linalg compat.v1
ops.logging_ops               compat.v1
ops.math_ops                  compat.v1 math
ops.nn                        compat.v1.nn
ops.nn_ops                    compat.v1.nn
ops.nn_impl                   compat.v1.nn
ops.parsing_ops               io
ops.random_ops                compat.v1 random
ops.resource_variable_ops     .
ops.sparse_ops                sparse compat.v1
ops.standard_ops              compat.v1
ops.state_ops                 compat.v1
ops.variable_scope            compat.v1
ops.variables                 compat.v1
platform.gfile                compat.v1.gfile
platform.test                 test
platform.tf_logging           compat.v1.logging
summary.summary               compat.v1.summary
training.basic_session_run_hooks  compat.v1.train
training.checkpoint_management    train
training.gradient_descent     compat.v1.train
training.monitored_session    compat.v1.train
training.moving_averages      compat.v1.train
training.optimizer            compat.v1.train
training.saver                compat.v1.train
training.session_run_hook     compat.v1.train
training.training_util        compat.v1.train
util.deprecation
util.nest                     nest
util.tf_inspect
"""
"""Each module below ``tensorflow.python``, and the namespaces that are searched; "." is dualflow."""
_MODULES: Final = {words[0]: words[1:] for words in map(str.split, _TABLE.splitlines())}
_PACKAGES: Final = {"", *(name.rpartition(".")[0] for name in _MODULES)}


def internal_module(name: str) -> ModuleType | None:
    """The replacement for an internal module of TensorFlow, by its full name; None if there is none."""
    relative = name.removeprefix(PREFIX).removeprefix(".")
    if relative in _PACKAGES:
        return InternalPackage(name)
    return InternalModule(name, relative) if relative in _MODULES else None


class InternalPackage(ModuleType):
    """A package of TensorFlow's internal modules, which are imported at their first use."""

    def __init__(self, name: str) -> None:
        super().__init__(name, "A package of TensorFlow's internal modules.")
        self.__path__ = []

    def __getattr__(self, name: str) -> Any:
        path = f"{self.__name__}.{name}"
        if path.removeprefix(f"{PREFIX}.") not in (*_MODULES, *_PACKAGES):
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        return import_module(path)


class InternalModule(ModuleType):
    """A module whose names are looked up in dualflow's namespaces.

    Args:
        name: the full name.
        relative: the name below ``tensorflow.python``.
    """

    def __init__(self, name: str, relative: str) -> None:
        super().__init__(name, "Names of a module of TensorFlow, from dualflow's namespaces.")
        self._relative = relative
        vars(self).update(_OWN.get(relative, {}))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        for path in _MODULES[self._relative]:
            value = getattr(_namespace(path), name, ABSENT)
            if value is not ABSENT:
                return value
        raise missing(self.__name__, name, [], importing=False)


def _namespace(path: str) -> Any:
    parts = [] if path == "." else path.split(".")
    return functools.reduce(getattr, parts, dualflow)


# What no public namespace has


class Context:
    """The context of eager execution."""

    def executing_eagerly(self) -> bool:
        """Whether ops run as they are called."""
        return bool(dualflow.executing_eagerly())

    @property
    def device_spec(self) -> DeviceSpec:
        """The device that a block has chosen: none, as there is one device."""
        return DeviceSpec()


def _should_record_backprop(tensors: Iterable[Any]) -> bool:
    """Whether an open tape watches one of the tensors."""
    engine: Any = dispatch.current()
    while isinstance(engine, DelegatingEngine):
        if isinstance(engine, Recording) and any(t.watches(x) for t in engine.tapes for x in tensors):
            return True
        engine = engine.base
    return False


def _decorator(*args: Any, **kwargs: Any) -> Callable[[Any], Any]:
    """A decorator that returns the function unchanged: it warns of nothing."""
    return lambda function: function


_OWN: Final[dict[str, dict[str, Any]]] = {
    "eager.context": {"context": Context, "executing_eagerly": dualflow.executing_eagerly},
    "eager.record": {"should_record_backprop": _should_record_backprop},
    "eager.tape": {"should_record_backprop": _should_record_backprop},
    "framework.ops": {"EagerTensor": EagerTensor},
    "framework.composite_tensor": {"CompositeTensor": CompositeTensor},
    "util.deprecation": dict.fromkeys(
        ("deprecated", "deprecated_args", "deprecated_arg_values", "deprecated_endpoints"), _decorator
    ),
    "util.nest": internal_nest.FUNCTIONS,
    "util.tf_inspect": {name: getattr(inspect, name) for name in dir(inspect) if not name.startswith("_")},
}

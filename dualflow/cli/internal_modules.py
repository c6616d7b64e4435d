"""TensorFlow's internal modules that libraries import from: where dualflow has their names.

A library that imports ``tensorflow.python.ops.math_ops`` gets a module whose names are looked up in public
namespaces. A module that is not in the table can't be imported, and a name that no namespace has is an error.
"""

from __future__ import annotations

import functools
from importlib import import_module
from types import ModuleType
from typing import Any, Final

import dualflow
from dualflow.core.absent import missing
from dualflow.core.composite_tensor import CompositeTensor
from dualflow.core.locks import imported
from dualflow.core.namespace import ABSENT
from dualflow.function.tracing.symbolic_tensor import SymbolicTensor

PREFIX: Final = "tensorflow.python"
PROTOCOLS: Final = "tensorflow.core"
"""The package of TensorFlow's protocol buffers."""
_TABLE: Final = """\
core.protobuf.config_pb2      compat.v1
core.protobuf.saver_pb2       compat.v1.train
autograph.converters.break_statements
autograph.converters.continue_statements
autograph.converters.return_statements
autograph.core.converter
autograph.pyct.anno
autograph.pyct.common_transformers.anf
autograph.pyct.inspect_utils
autograph.pyct.loader
autograph.pyct.naming
autograph.pyct.parser
autograph.pyct.qual_names
autograph.pyct.static_analysis.activity
autograph.pyct.templates
autograph.pyct.transformer
client.session                compat.v1
client.timeline               compat.v1
data.ops.iterator_ops
distribute.ps_values          distribute
distribute.values             distribute
eager.backprop                .
eager.context                 compat.v1
eager.monitoring
eager.record
eager.tape
framework.composite_tensor    compat.v1
framework.constant_op         compat.v1
framework.device_spec         compat.v1
framework.dtypes              dtypes .
framework.errors              errors
framework.errors_impl         errors
framework.ops                 compat.v1
framework.random_seed         compat.v1
framework.sparse_tensor       .
framework.tensor              .
framework.tensor_conversion   .
framework.tensor_shape        compat.v1
framework.tensor_spec         .
framework.tensor_util         compat.v1
framework.test_util           test
framework.type_spec
framework.type_spec_registry
keras.engine.input_spec       keras.layers
layers.base                   compat.v1.layers
layers.convolutional          compat.v1.layers
layers.core                   compat.v1.layers
layers.normalization          compat.v1.layers
layers.pooling                compat.v1.layers
lib.io.file_io                compat.v1.gfile
ops.array_ops                 compat.v1
ops.check_ops                 compat.v1 debugging
ops.clip_ops                  compat.v1
ops.confusion_matrix          math
ops.control_flow_case         .
ops.control_flow_ops          compat.v1
ops.control_flow_util         compat.v1
ops.custom_gradient           .
ops.data_flow_ops             compat.v1
ops.gradient_checker          compat.v1.test
ops.gradients_impl            compat.v1
ops.histogram_ops             compat.v1
ops.image_ops                 image
ops.init_ops                  compat.v1
ops.io_ops                    io
ops.linalg.linear_operator  linalg
ops.linalg.linear_operator_addition
ops.linalg_ops                linalg compat.v1
ops.logging_ops               compat.v1
ops.lookup_ops                lookup compat.v1
ops.map_fn                    compat.v1
ops.math_ops                  compat.v1 math
ops.metrics                   compat.v1.metrics
ops.metrics_impl              compat.v1.metrics
ops.nn                        compat.v1.nn
ops.nn_impl                   compat.v1.nn
ops.nn_ops                    compat.v1.nn
ops.parallel_for.control_flow_ops
ops.parsing_ops               io
ops.partitioned_variables     compat.v1
ops.random_ops                compat.v1 random
ops.resource_variable_ops     .
ops.script_ops                compat.v1
ops.sparse_ops                sparse compat.v1
ops.standard_ops              compat.v1
ops.state_ops                 compat.v1
ops.template                  compat.v1
ops.variable_scope            compat.v1
ops.variables                 compat.v1
ops.weights_broadcast_ops
platform.flags                compat.v1.flags
platform.gfile                compat.v1.gfile
platform.test                 test
platform.tf_logging           compat.v1.logging
summary.summary               compat.v1.summary
summary.summary_iterator      compat.v1.train
tf2
trackable.data_structures
training.basic_session_run_hooks  compat.v1.train
training.checkpoint_management    train
training.coordinator          compat.v1.train
training.device_setter        compat.v1.train
training.evaluation
training.gradient_descent     compat.v1.train
training.input                compat.v1.train
training.momentum             compat.v1.train
training.monitored_session    compat.v1.train
training.moving_averages      compat.v1.train
training.optimizer            compat.v1.train
training.queue_runner         compat.v1.train
training.queue_runner_impl    compat.v1.train
training.saver                compat.v1.train
training.session_run_hook     compat.v1.train
training.supervisor           compat.v1.train
training.sync_replicas_optimizer  compat.v1.train
training.training             compat.v1.train
training.training_util        compat.v1.train
types.trace
util.all_util
util.compat                   compat
util.deprecation
util.nest                     nest
util.object_identity
util.tf_contextlib
util.tf_decorator
util.tf_export
util.tf_inspect
util.variable_utils
"""
"""Each module below ``tensorflow.python``, and the namespaces that are searched; "." is dualflow.

Modules of protocol buffers are below ``tensorflow``.
"""


def _parents(name: str) -> list[str]:
    """The packages that hold a module, from the innermost on."""
    return [name.rsplit(".", i)[0] for i in range(1, name.count(".") + 1)]


_OBJECTS: Final = "dualflow.cli.internal_objects"
"""Imported for the first internal module, as it imports all names of TensorFlow 1."""
_MODULES: Final = {words[0]: words[1:] for words in map(str.split, _TABLE.splitlines())}
_PACKAGES: Final = {"", *(parent for name in _MODULES for parent in _parents(name))}


def internal_module(name: str) -> ModuleType | None:
    """The replacement for an internal module of TensorFlow, by its full name; None if there is none."""
    relative = _relative(name)
    if relative in _PACKAGES:
        return InternalPackage(name)
    return InternalModule(name, relative) if relative in _MODULES else None


def is_internal(name: str) -> bool:
    """Whether a module of TensorFlow, by its full name, is not public."""
    return f"{name}.".startswith((f"{PREFIX}.", f"{PROTOCOLS}."))


def _relative(name: str) -> str:
    """The name of a module in the table."""
    prefix = PREFIX if f"{name}.".startswith(f"{PREFIX}.") else "tensorflow"
    return name.removeprefix(prefix).removeprefix(".")


class InternalPackage(ModuleType):
    """A package of TensorFlow's internal modules, which are imported at their first use."""

    def __init__(self, name: str) -> None:
        super().__init__(name, "A package of TensorFlow's internal modules.")
        self.__path__ = []

    def __getattr__(self, name: str) -> Any:
        path = f"{self.__name__}.{name}"
        if _relative(path) not in (*_MODULES, *_PACKAGES):
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        return import_module(path)


class InternalModule(ModuleType):
    """A module whose names are looked up in dualflow's namespaces.

    Args:
        name: the full name.
        relative: the name in the table of modules.
    """

    def __init__(self, name: str, relative: str) -> None:
        super().__init__(name, "Names of a module of TensorFlow, from dualflow's namespaces.")
        self._relative = relative
        vars(self).update(imported(_OBJECTS).OBJECTS.get(relative, {}))

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


class InternalNames(ModuleType):
    """``tensorflow.__internal__``: names that TensorFlow shows to libraries."""

    def __init__(self) -> None:
        super().__init__("tensorflow.__internal__", "Names that TensorFlow shows to libraries.")
        self.CompositeTensor = CompositeTensor
        self.SymbolicTensor = SymbolicTensor

    @functools.cached_property
    def nest(self) -> ModuleType:
        """The internal module that handles nested structures."""
        return InternalModule("tensorflow.__internal__.nest", "util.nest")

"""TensorFlow 1's names: ``from dualflow.compat import v1 as tf``.

Names that this package doesn't define are dualflow's own, such as ``v1.float32`` and ``v1.matmul``. In a
graph, the argument ``name`` of a function is the name of the operation that it adds.
"""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Any

import dualflow
from dualflow.compat.v1 import app as app
from dualflow.compat.v1 import casts, changed_functions, older_functions, variable_updates
from dualflow.compat.v1 import data as data
from dualflow.compat.v1 import flags as flags
from dualflow.compat.v1 import gfile as gfile
from dualflow.compat.v1 import graph_util as graph_util
from dualflow.compat.v1 import initializers as initializers
from dualflow.compat.v1 import layers as layers
from dualflow.compat.v1 import logging as logging
from dualflow.compat.v1 import losses as losses
from dualflow.compat.v1 import metrics as metrics
from dualflow.compat.v1 import summary as summary
from dualflow.compat.v1 import train as train
from dualflow.compat.v1.collection import GraphKeys as GraphKeys
from dualflow.compat.v1.collection import add_to_collection as add_to_collection
from dualflow.compat.v1.collection import add_to_collections as add_to_collections
from dualflow.compat.v1.collection import get_collection as get_collection
from dualflow.compat.v1.collection import get_collection_ref as get_collection_ref
from dualflow.compat.v1.collection import local_variables as local_variables
from dualflow.compat.v1.collection import local_variables_initializer as local_variables_initializer
from dualflow.compat.v1.collection import model_variables as model_variables
from dualflow.compat.v1.collection import moving_average_variables as moving_average_variables
from dualflow.compat.v1.dimension import Dimension as Dimension
from dualflow.compat.v1.dimension import dimension_at_index as dimension_at_index
from dualflow.compat.v1.dimension import dimension_value as dimension_value
from dualflow.compat.v1.moved_functions import MOVED
from dualflow.compat.v1.naming import Namespace, with_name
from dualflow.compat.v1.neural import nn as nn
from dualflow.compat.v1.printing import Print as Print
from dualflow.compat.v1.scopes import AUTO_REUSE as AUTO_REUSE
from dualflow.compat.v1.scopes import EagerVariableStore as EagerVariableStore
from dualflow.compat.v1.scopes import VariableScope as VariableScope
from dualflow.compat.v1.scopes import get_variable as get_variable
from dualflow.compat.v1.scopes import get_variable_scope as get_variable_scope
from dualflow.compat.v1.scopes import variable_scope as variable_scope
from dualflow.compat.v1.settings import ConfigProto as ConfigProto
from dualflow.compat.v1.settings import GPUOptions as GPUOptions
from dualflow.compat.v1.settings import GraphOptions as GraphOptions
from dualflow.compat.v1.settings import OptimizerOptions as OptimizerOptions
from dualflow.compat.v1.template import make_template as make_template
from dualflow.compat.v1.versions import colocate_with as colocate_with
from dualflow.compat.v1.versions import control_flow_v2_enabled as control_flow_v2_enabled
from dualflow.compat.v1.versions import disable_resource_variables as disable_resource_variables
from dualflow.compat.v1.versions import disable_v2_behavior as disable_v2_behavior
from dualflow.compat.v1.versions import disable_v2_tensorshape as disable_v2_tensorshape
from dualflow.compat.v1.versions import enable_control_flow_v2 as enable_control_flow_v2
from dualflow.compat.v1.versions import enable_resource_variables as enable_resource_variables
from dualflow.compat.v1.versions import enable_v2_behavior as enable_v2_behavior
from dualflow.compat.v1.versions import enable_v2_tensorshape as enable_v2_tensorshape
from dualflow.compat.v1.versions import resource_variables_enabled as resource_variables_enabled
from dualflow.core.namespace import ABSENT
from dualflow.core.namespace import publish as _publish
from dualflow.eager.seeds import set_seed
from dualflow.graph_mode import ExplicitGraph, VariableV1
from dualflow.graph_mode import GraphDef as GraphDef
from dualflow.graph_mode import GraphGrowthWarning as GraphGrowthWarning
from dualflow.graph_mode import InteractiveSession as InteractiveSession
from dualflow.graph_mode import NodeDef as NodeDef
from dualflow.graph_mode import Operation as Operation
from dualflow.graph_mode import RunMetadata as RunMetadata
from dualflow.graph_mode import RunOptions as RunOptions
from dualflow.graph_mode import Session as Session
from dualflow.graph_mode import assign as assign
from dualflow.graph_mode import assign_add as assign_add
from dualflow.graph_mode import assign_sub as assign_sub
from dualflow.graph_mode import control_dependencies as control_dependencies
from dualflow.graph_mode import disable_eager_execution as disable_eager_execution
from dualflow.graph_mode import enable_eager_execution as enable_eager_execution
from dualflow.graph_mode import get_default_graph as get_default_graph
from dualflow.graph_mode import get_default_session as get_default_session
from dualflow.graph_mode import global_variables as global_variables
from dualflow.graph_mode import global_variables_initializer as global_variables_initializer
from dualflow.graph_mode import gradients as gradients
from dualflow.graph_mode import group as group
from dualflow.graph_mode import import_graph_def as import_graph_def
from dualflow.graph_mode import name_scope as name_scope
from dualflow.graph_mode import no_op as no_op
from dualflow.graph_mode import placeholder as placeholder
from dualflow.graph_mode import placeholder_with_default as placeholder_with_default
from dualflow.graph_mode import reset_default_graph as reset_default_graph
from dualflow.graph_mode import sparse_placeholder as sparse_placeholder
from dualflow.graph_mode import trainable_variables as trainable_variables
from dualflow.graph_mode import variables_initializer as variables_initializer
from dualflow.graph_mode.composite_values import SparseTensorValue as SparseTensorValue
from dualflow.graph_mode.session_ops import is_variable_initialized as is_variable_initialized
from dualflow.graph_mode.session_ops import report_uninitialized_variables as report_uninitialized_variables
from dualflow.ops.random_numbers.functions import shuffle, truncated_normal
from dualflow.testing.gradient_checker import compute_gradient, compute_gradient_error

Graph = ExplicitGraph
Variable = VariableV1

if TYPE_CHECKING:
    test: Namespace  # with more names than dualflow's
    from dualflow import *  # type: ignore[assignment, no-redef]  # noqa: F403  # what _dualflow_object returns; version 1's own names win
    from dualflow.compat.v1 import initializers as initializers
    from dualflow.compat.v1 import layers as layers
    from dualflow.compat.v1 import losses as losses
    from dualflow.compat.v1 import metrics as metrics
    from dualflow.compat.v1 import nn as nn
    from dualflow.compat.v1 import random as random
    from dualflow.compat.v1 import summary as summary
    from dualflow.compat.v1 import train as train

    Event: Any
    Summary: Any
else:  # version 1's defaults, which a type checker doesn't see
    constant_initializer = initializers.constant
    ones_initializer = initializers.ones
    random_normal_initializer = initializers.random_normal
    random_uniform_initializer = initializers.random_uniform
    zeros_initializer = initializers.zeros

glorot_normal_initializer = initializers.GlorotNormal
glorot_uniform_initializer = initializers.GlorotUniform
orthogonal_initializer = initializers.Orthogonal
truncated_normal_initializer = initializers.TruncatedNormalV1
variance_scaling_initializer = initializers.VarianceScaling

__compiler_version__ = dualflow.__compiler_version__
__version__, __git_version__ = dualflow.__version__, dualflow.__git_version__

all_variables = global_variables
arg_max = with_name(dualflow.argmax)
arg_min = with_name(dualflow.argmin)
argmax = with_name(dualflow.argmax, "input axis name dimension output_type")
argmin = with_name(dualflow.argmin, "input axis name dimension output_type")
assert_scalar = with_name(dualflow.debugging.assert_scalar)
boolean_mask = with_name(dualflow.boolean_mask, "tensor mask name axis")
cond = with_name(changed_functions.cond, "pred true_fn false_fn strict name fn1 fn2")
constant = with_name(dualflow.constant, "value dtype shape name verify_shape")
convert_to_tensor = with_name(dualflow.convert_to_tensor, "value dtype name preferred_dtype dtype_hint")
div = with_name(changed_functions.div)
div_no_nan = with_name(dualflow.math.divide_no_nan)
floor_div = with_name(dualflow.floordiv)
floormod = with_name(dualflow.mod)
gather = with_name(dualflow.gather, "params indices validate_indices name axis batch_dims")
gather_nd = with_name(dualflow.gather_nd, "params indices name batch_dims")
initialize_all_variables = global_variables_initializer
initialize_variables = variables_initializer
is_finite = with_name(dualflow.math.is_finite)
is_inf = with_name(dualflow.math.is_inf)
is_nan = with_name(dualflow.math.is_nan)
lin_space = with_name(dualflow.linspace)
log_sigmoid = with_name(dualflow.math.log_sigmoid)
math = Namespace(dualflow.math, argmax=argmax, argmin=argmin)
matrix_band_part = with_name(dualflow.linalg.band_part)
matrix_transpose = with_name(dualflow.linalg.matrix_transpose)
multinomial = with_name(changed_functions.multinomial)
ones = with_name(changed_functions.ones)
ones_like = with_name(dualflow.ones_like, "tensor dtype name optimize")
pad = with_name(dualflow.pad, "tensor paddings mode name constant_values")
py_func = with_name(dualflow.numpy_function)
random = Namespace(
    dualflow.random,
    normal=with_name(changed_functions.random_normal),
    poisson=with_name(changed_functions.poisson),
    uniform=with_name(changed_functions.random_uniform),
)
random_normal = with_name(changed_functions.random_normal)
random_poisson = with_name(changed_functions.poisson)
random_shuffle = with_name(shuffle)
random_uniform = with_name(changed_functions.random_uniform)
realdiv = with_name(dualflow.divide)
rint = with_name(dualflow.math.rint)
scatter_add = with_name(variable_updates.scatter_add)
scatter_div = with_name(variable_updates.scatter_div)
scatter_max = with_name(variable_updates.scatter_max)
scatter_min = with_name(variable_updates.scatter_min)
scatter_mul = with_name(variable_updates.scatter_mul)
scatter_nd_add = with_name(variable_updates.scatter_nd_add)
scatter_nd_sub = with_name(variable_updates.scatter_nd_sub)
scatter_nd_update = with_name(variable_updates.scatter_nd_update)
scatter_sub = with_name(variable_updates.scatter_sub)
scatter_update = with_name(variable_updates.scatter_update)
set_random_seed = set_seed
shape = with_name(dualflow.shape, "input name out_type")
size = with_name(dualflow.size, "input name out_type")
sparse_tensor_to_dense = with_name(dualflow.sparse.to_dense, "sp_input default_value validate_indices name")
to_double = with_name(casts.to_double)
to_float = with_name(casts.to_float)
to_int32 = with_name(casts.to_int32)
to_int64 = with_name(casts.to_int64)
trace = with_name(dualflow.linalg.trace)
transpose = with_name(dualflow.transpose, "a perm name conjugate")
truediv = with_name(dualflow.divide)
truncated_normal = with_name(truncated_normal)
where = with_name(changed_functions.where)
while_loop = with_name(changed_functions.while_loop)
zeros = with_name(changed_functions.zeros)
zeros_like = with_name(dualflow.zeros_like, "tensor dtype name optimize")

executing_eagerly_outside_functions = older_functions.executing_eagerly_outside_functions
get_local_variable = older_functions.get_local_variable
initialize_all_tables = older_functions.tables_initializer
strings = Namespace(dualflow.strings, split=with_name(older_functions.strings_split))
tables_initializer = older_functions.tables_initializer
batch_gather = with_name(older_functions.batch_gather)
clip_by_average_norm = with_name(older_functions.clip_by_average_norm)
convert_to_tensor_or_sparse_tensor = with_name(older_functions.convert_to_tensor_or_sparse_tensor)
setdiff1d = with_name(older_functions.setdiff1d)
sparse_add = older_functions.sparse_add
sparse_to_dense = with_name(older_functions.sparse_to_dense)
string_split = with_name(older_functions.string_split)
to_bfloat16 = with_name(casts.to_bfloat16)
to_complex128 = with_name(casts.to_complex128)
to_complex64 = with_name(casts.to_complex64)
verify_tensor_all_finite = with_name(older_functions.verify_tensor_all_finite)


_RANK_ASSERTIONS = ("assert_rank", "assert_rank_at_least", "assert_rank_in")
"""Functions of ``df.debugging`` that check the rank of a tensor, with ``data`` before ``summarize`` too."""
_UNARY_ASSERTIONS = ("assert_negative", "assert_non_negative", "assert_non_positive", "assert_positive")
"""Functions of ``df.debugging`` that check one tensor, with ``data`` before ``summarize`` and ``message``."""
_BINARY_ASSERTIONS = (
    "assert_equal",
    "assert_greater",
    "assert_greater_equal",
    "assert_less",
    "assert_less_equal",
    "assert_none_equal",
)
"""Functions of ``df.debugging`` that compare two tensors, with ``data`` before these arguments too."""
_MESSAGES = ("Event", "Summary")
"""Messages of ``v1.summary``, which need the extra ``summary``."""


def _dualflow_object(name: str) -> Any:
    """dualflow's object for a TensorFlow 1 name, wrapped to take TensorFlow 1's arguments."""
    if name in MOVED:
        path, *order = MOVED[name]
        return with_name(attrgetter(path)(dualflow), *order)
    if name in _UNARY_ASSERTIONS:
        return with_name(changed_functions.unary_assertion(getattr(dualflow.debugging, name)))
    if name in _RANK_ASSERTIONS:
        return with_name(changed_functions.rank_assertion(getattr(dualflow.debugging, name)))
    if name in _BINARY_ASSERTIONS:
        return with_name(changed_functions.binary_assertion(getattr(dualflow.debugging, name)))
    if name in _MESSAGES:
        return getattr(summary, name)
    if name == "test":  # not defined above, as dualflow.test imports unittest
        return Namespace(
            dualflow.test, compute_gradient=compute_gradient, compute_gradient_error=compute_gradient_error
        )
    value = getattr(dualflow, name, ABSENT)
    return value if name == "compat" or value is ABSENT else with_name(value)  # compat has version 1 itself


_publish(
    globals(),
    modules=(
        "app",
        "data",
        "flags",
        "gfile",
        "graph_util",
        "initializers",
        "layers",
        "logging",
        "losses",
        "metrics",
        "nn",
        "random",
        "summary",
        "train",
    ),
    internal=(
        "ABSENT",
        "Any",
        "ExplicitGraph",
        "MOVED",
        "Namespace",
        "TYPE_CHECKING",
        "VariableV1",
        "annotations",
        "attrgetter",
        "compute_gradient",
        "compute_gradient_error",
        "set_seed",
        "shuffle",
        "with_name",
    ),
    others=[*dir(dualflow), *MOVED, *_RANK_ASSERTIONS, *_UNARY_ASSERTIONS, *_BINARY_ASSERTIONS, *_MESSAGES],
    fallback=_dualflow_object,
    requires={"tensorboardX": " ".join(_MESSAGES)},
)

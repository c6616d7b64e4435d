"""Objects of TensorFlow's internal modules that no public namespace of dualflow has, by module."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Final

import dualflow
from dualflow.cli import internal_nest
from dualflow.cli.internal_decorators import UTIL_OBJECTS
from dualflow.cli.internal_evaluation import EVALUATION_OBJECTS
from dualflow.compat import v1
from dualflow.core import dispatch, trace_type
from dualflow.core.composite_tensor import CompositeTensor
from dualflow.core.delegating_engine import DelegatingEngine
from dualflow.core.device_names import DeviceSpec
from dualflow.core.errors import NotFoundError
from dualflow.core.reference import Reference
from dualflow.core.spec import DenseSpec
from dualflow.core.status_errors import UnimplementedError
from dualflow.core.tree import map_structure
from dualflow.core.type_spec import BatchableTypeSpec, TypeSpec
from dualflow.data.iterator import Iterator as DatasetIterator
from dualflow.eager.engine import EAGER
from dualflow.eager.placement import BLOCK_DEVICE
from dualflow.eager.recording import Recording
from dualflow.eager.tensor import EagerTensor
from dualflow.eager.variable import Variable
from dualflow.eager.variable_spec import VariableSpec
from dualflow.function.tracing.symbolic_tensor import SymbolicTensor
from dualflow.ops.static import static_elements


class Context:
    """The context of eager execution."""

    def executing_eagerly(self) -> bool:
        """Whether ops run as they are called."""
        return bool(dualflow.executing_eagerly())

    @property
    def device_spec(self) -> DeviceSpec:
        """The device of the innermost ``df.device`` block; empty outside of all."""
        name = BLOCK_DEVICE.get()
        return DeviceSpec() if name is None else DeviceSpec.from_string(name)


@contextmanager
def _eager_mode() -> Iterator[None]:
    """A context whose ops run as they are called."""
    with dispatch.using(EAGER):
        yield


def _graph_mode() -> AbstractContextManager[Any]:
    """A context whose ops are added to the default graph."""
    graph: AbstractContextManager[Any] = v1.get_default_graph().as_default()
    return graph


def _should_record_backprop(tensors: Iterable[Any]) -> bool:
    """Whether an open tape watches one of the tensors."""
    engine: Any = dispatch.current()
    while isinstance(engine, DelegatingEngine):
        if isinstance(engine, Recording) and any(t.watches(x) for t in engine.tapes for x in tensors):
            return True
        engine = engine.base
    return False


class AutographTransformer:
    """The base of transformations of Python code in TensorFlow's AutoGraph.

    Raises:
        UnimplementedError: always: dualflow's autograph has other stages.
    """

    def __init__(self, context: object) -> None:
        raise UnimplementedError(
            "tensorflow.python.autograph.pyct, TensorFlow's compiler of Python code, has no equivalent: "
            "df.autograph converts functions as a whole. Use vectorized_map or df.vmap for batches."
        )


class ReaderBase:
    """The base of TensorFlow 1's readers, which read records of the files whose names are in a queue.

    Raises:
        UnimplementedError: always: dualflow has no queues.
    """

    def __init__(self, *args: object, **kwargs: object) -> None:
        raise UnimplementedError(
            "TensorFlow 1's readers and queues have no equivalent: read the files with df.data, such as "
            "df.data.TFRecordDataset(names).batch(32), and compat.v1.data.make_one_shot_iterator."
        )


_spec_of_name: Final[dict[str, type]] = {}
_name_of_spec: Final[dict[type, str]] = {}
"""The names that libraries have registered for their specs, for saved models."""


def _register(name: str) -> Callable[[type], type]:
    """A decorator that registers a subclass of TypeSpec under a name."""

    def register(spec: type) -> type:
        _spec_of_name[name] = spec
        _name_of_spec[spec] = name
        return spec

    return register


def _lookup(name: str) -> type:
    """The spec of a registered name."""
    return _spec_of_name[name]


def _get_name(spec: type) -> str:
    """The registered name of a spec."""
    return _name_of_spec[spec]


def _pfor(loop_fn: Callable[[Any], Any], iters: Any, **options: Any) -> Any:
    """The stacked results of ``loop_fn`` for the integers below ``iters``, computed at once."""
    return dualflow.vectorized_map(loop_fn, dualflow.range(iters))


def _case_helper(
    cond: Callable[..., Any],
    pairs: Sequence[tuple[Any, Callable[[], Any]]],
    default: Callable[[], Any] | None,
    exclusive: bool,
    name: str | None,
    allow_python_preds: bool = False,
    **cond_options: Any,
) -> Any:
    """The result of the first function whose predicate holds, by conditions of a caller's own kind."""
    *first, (last, last_function) = pairs
    chosen = last_function if default is None else functools.partial(cond, last, last_function, default)
    for predicate, function in reversed(first):
        chosen = functools.partial(cond, predicate, function, chosen)
    return chosen()


def _truncated_normal(
    shape: Any,
    means: Any = 0.0,
    stddevs: Any = 1.0,
    minvals: Any = -2.0,
    maxvals: Any = 2.0,
    dtype: Any = dualflow.float32,
    seed: int | None = None,
    name: str | None = None,
) -> Any:
    """Numbers of normal distributions between bounds, one distribution for each row of the result.

    The parameters are vectors with a number for each row, or scalars.
    """
    drawn = dualflow.random.uniform([2], maxval=2**31 - 1, dtype=dualflow.int32, seed=seed)
    columns = [1] * (len(shape) - 1)
    parameters = [dualflow.cast(x, dtype) for x in (means, stddevs, minvals, maxvals)]
    mean, deviation, low, high = (dualflow.reshape(x, [-1, *columns]) if x.shape else x for x in parameters)
    return dualflow.random.stateless_parameterized_truncated_normal(shape, drawn, mean, deviation, low, high)


def _constant_value_as_shape(tensor: Any) -> Any:
    """The shape whose sizes are the elements of a vector, as far as they are known; -1 is an unknown size."""
    vector = dualflow.convert_to_tensor(tensor, dtype_hint=dualflow.int32)
    values = dualflow.get_static_value(vector)
    elements = static_elements(vector) if values is None else values.tolist()
    if elements is None:
        return dualflow.TensorShape(None)
    return dualflow.TensorShape([None if n is None or n == -1 else n for n in elements])


def _prevent_gradient(input: Any, message: str = "", name: str | None = None) -> Any:
    """``input``, whose gradient is an error with ``message``."""

    @dualflow.custom_gradient
    def guarded(x: Any) -> Any:
        def gradient(upstream: Any) -> Any:
            raise NotFoundError(
                f"Gradient explicitly disabled: {message or 'no reason'}; stop the gradient before."
            )

        return dualflow.identity(x), gradient

    return guarded(input)


def _argument_spec(function: Callable[..., Any]) -> inspect.FullArgSpec:
    """The parameters of a function, also a traced one; dualflow's are without types, as TensorFlow's are."""
    spec = inspect.getfullargspec(getattr(function, "python_function", function))
    is_ours = getattr(function, "__module__", "").startswith("dualflow.")
    return spec._replace(annotations={}) if is_ours else spec


def _added_operators(operators: Sequence[Any], operator_name: str | None = None, **options: Any) -> list[Any]:
    """A list of one linear operator: the sum of several, as a full matrix if there are more than one."""
    if len(operators) == 1:
        return list(operators)
    matrix = dualflow.add_n([operator.to_dense() for operator in operators])
    return [dualflow.linalg.LinearOperatorFullMatrix(matrix, name=operator_name or "sum")]


def _assigned(trackable: object, name: str, value: Any) -> Any:
    """The value of an attribute of a module: a module finds what it tracks by itself."""
    return value


def _graph_of(op_input_list: Iterable[Any], graph: Any = None) -> Any:
    """The graph of tensors and operations; the default graph if none of them has one."""
    graphs = [x.graph for x in op_input_list if isinstance(x, dualflow.Operation | SymbolicTensor)]
    return graph or next(iter(graphs), None) or v1.get_default_graph()


def _without_variables(values: Any) -> Any:
    """A structure with the values of its variables in their place."""
    return map_structure(lambda x: x.read_value() if isinstance(x, Variable) else x, values)


_CONVOLUTIONS: Final = {
    name.replace("Conv", "Convolution"): getattr(v1.layers, name)
    for name in (
        "Conv1D",
        "Conv2D",
        "Conv2DTranspose",
        "Conv3D",
        "Conv3DTranspose",
        "SeparableConv1D",
        "SeparableConv2D",
    )
}
"""The classes of convolutions by their older names."""


class SaverDef:
    """The formats of TensorFlow's checkpoints, which programs pass to a Saver."""

    LEGACY, V1, V2 = 0, 1, 2


class PartitionedVariable:
    """The class of variables that are divided into parts: it has no instances.

    Raises:
        UnimplementedError: always: variables are not divided.
    """

    def __init__(self, *args: object, **kwargs: object) -> None:
        raise UnimplementedError("Variables are not divided into parts; create a compat.v1.Variable.")


def _with_dependencies(dependencies: Iterable[Any], output_tensor: Any, name: str | None = None) -> Any:
    """``output_tensor``, which a session computes after ``dependencies``."""
    with v1.control_dependencies(list(dependencies)):
        return v1.identity(output_tensor, name=name)


def _assign_moving_average(
    variable: Any, value: Any, decay: Any, zero_debias: bool = True, name: str | None = None
) -> Any:
    """An assignment to ``variable``: the average of its value, with the weight ``decay``, and of ``value``.

    With ``zero_debias`` the average, of a variable that was zero at first, is divided by the sum of weights.
    """
    weight = v1.cast(1.0 - decay, variable.dtype)
    value = v1.cast(value, variable.dtype)
    if not zero_debias:
        return variable.assign_sub((variable - value) * weight)
    with v1.variable_scope(variable.op.name, reuse=v1.AUTO_REUSE):
        zeros = v1.zeros_initializer()
        biased = v1.get_variable("biased", variable.shape, variable.dtype, zeros, trainable=False)
        step = v1.get_variable("local_step", [], variable.dtype, zeros, trainable=False)
    average = biased.assign_sub((biased - value) * weight)
    count = step.assign_add(1.0)
    return variable.assign(average / (1.0 - v1.pow(1.0 - weight, count)))


OBJECTS: Final[dict[str, dict[str, Any]]] = {
    **EVALUATION_OBJECTS,
    **UTIL_OBJECTS,
    "autograph.pyct.transformer": {"Base": AutographTransformer},
    "data.ops.iterator_ops": {"OwnedIterator": DatasetIterator},
    "eager.context": {
        "context": Context,
        "eager_mode": _eager_mode,
        "graph_mode": _graph_mode,
        "executing_eagerly": dualflow.executing_eagerly,
        "in_eager_mode": dualflow.executing_eagerly,
    },
    "eager.record": {"should_record_backprop": _should_record_backprop},
    "eager.tape": {"should_record_backprop": _should_record_backprop},
    "framework.device_spec": {"DeviceSpecV1": DeviceSpec},
    "framework.ops": {"EagerTensor": EagerTensor, "_get_graph_from_inputs": _graph_of},
    "framework.composite_tensor": {"CompositeTensor": CompositeTensor},
    "framework.tensor_spec": {"DenseSpec": DenseSpec},
    "framework.type_spec": {
        "BatchableTypeSpec": BatchableTypeSpec,
        "TypeSpec": TypeSpec,
        "type_spec_from_value": dualflow.type_spec_from_value,
    },
    "framework.type_spec_registry": {
        "_NAME_TO_TYPE_SPEC": _spec_of_name,
        "_TYPE_SPEC_TO_NAME": _name_of_spec,
        "get_name": _get_name,
        "lookup": _lookup,
        "register": _register,
    },
    "core.protobuf.saver_pb2": {"SaverDef": SaverDef},
    "framework.sparse_tensor": {"SparseTensorValue": v1.SparseTensorValue},
    "layers.convolutional": _CONVOLUTIONS,
    "ops.control_flow_ops": {"with_dependencies": _with_dependencies},
    "ops.variable_scope": {"variable": v1.Variable},
    "ops.variables": {"PartitionedVariable": PartitionedVariable},
    "tf2": {"enabled": dualflow.executing_eagerly},
    "training.moving_averages": {"assign_moving_average": _assign_moving_average},
    "ops.io_ops": {"ReaderBase": ReaderBase},
    "ops.array_ops": {"prevent_gradient": _prevent_gradient},
    "ops.control_flow_case": {"_case_helper": _case_helper},
    "framework.tensor_shape": {"as_shape": dualflow.TensorShape},
    "framework.tensor_util": {
        "constant_value": dualflow.get_static_value,
        "try_evaluate_constant": dualflow.get_static_value,
        "constant_value_as_shape": _constant_value_as_shape,
    },
    "ops.control_flow_util": {"GraphOrParentsInXlaContext": lambda graph: False},
    "ops.linalg.linear_operator": {"make_composite_tensor": lambda cls, module_name="": cls},
    "ops.linalg.linear_operator_addition": {"add_operators": _added_operators},
    "ops.parallel_for.control_flow_ops": {
        "pfor": _pfor,
        "vectorized_map": dualflow.vectorized_map,
    },
    "ops.random_ops": {"parameterized_truncated_normal": _truncated_normal},
    "ops.resource_variable_ops": {"VariableSpec": VariableSpec},
    "trackable.data_structures": {"sticky_attribute_assignment": _assigned},
    "types.trace": {
        name: getattr(trace_type, name)
        for name in ("PlaceholderContext", "SupportsTracingProtocol", "TraceType", "TracingContext")
    },
    "util.variable_utils": {"convert_variables_to_tensors": _without_variables},
    "util.nest": internal_nest.FUNCTIONS,
    "util.object_identity": {"Reference": Reference},
    "util.tf_inspect": {
        **{name: getattr(inspect, name) for name in dir(inspect) if not name.startswith("_")},
        "getargspec": _argument_spec,
        "getfullargspec": _argument_spec,
    },
}

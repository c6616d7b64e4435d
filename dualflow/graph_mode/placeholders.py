"""Functions for explicit graphs: placeholders, gradients of symbolic tensors, groups, dependencies."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

from dualflow.core import dispatch
from dualflow.core.dispatch import AbstractVariable
from dualflow.core.dtypes import as_dtype
from dualflow.core.errors import DTypeError, InvalidArgumentError
from dualflow.core.shape import as_shape
from dualflow.core.spec import TensorSpec
from dualflow.core.tracebacks import entry
from dualflow.eager.unconnected import UnconnectedGradients
from dualflow.function.tracing.symbolic_tensor import SymbolicTensor
from dualflow.function.tracing.tracer import Tracer
from dualflow.gradient.sweep import Record, sweep
from dualflow.graph.ir import Value
from dualflow.graph_mode.default_graph import get_default_graph, graph_being_built, graph_recording
from dualflow.graph_mode.graph import ExplicitGraph
from dualflow.graph_mode.names import checked
from dualflow.graph_mode.operation import Operation
from dualflow.graph_mode.replaced_ops import DEFAULT
from dualflow.graph_mode.run_plan import needed
from dualflow.graph_mode.unknown_rank import is_unknown, postpone
from dualflow.ops.complex_numbers import conj
from dualflow.ops.creation import convert_to_tensor, ones_like, zeros_like

if TYPE_CHECKING:
    from dualflow.core.argument_types import DTypeLike, ShapeLike, TensorLike
    from dualflow.ops.tensor import Tensor


@entry
def placeholder(dtype: DTypeLike, shape: ShapeLike | None = None, name: str | None = None) -> Tensor:
    """A tensor whose value is fed in each run.

    Args:
        dtype: of the fed values.
        shape: sizes; None for an axis of any size. Without a shape, arrays of any rank may be fed; operators
            and the functions of ``v1`` accept such a tensor, except functions with function arguments.
        name: the tensor's name, ``Placeholder`` by default, with a number if it is taken.

    Raises:
        FailedPreconditionError: outside a graph's block.

    >>> from dualflow.compat import v1
    >>> with v1.Graph().as_default():
    ...     v1.placeholder(v1.float32, [None, 2], name="x").name
    'x:0'
    """
    graph = graph_being_built("placeholder()")
    base = "Placeholder" if name is None else _name(graph, name)
    return graph.engine.argument(TensorSpec(as_shape(shape), as_dtype(dtype), base))


@entry
def placeholder_with_default(input: TensorLike, shape: ShapeLike, name: str | None = None) -> Tensor:
    """A tensor with the value ``input`` in runs without a feed for it; eagerly, ``input``.

    Args:
        input: a tensor, or what converts to one.
        shape: the shape of fed values, None for an axis of any size; ``input`` must be compatible with it.
        name: the tensor's name, ``placeholder_with_default`` by default.

    Raises:
        InvalidArgumentError: the shape of ``input`` is not compatible with ``shape``.

    >>> from dualflow.compat import v1
    >>> with v1.Graph().as_default(), v1.Session() as session:
    ...     rate = v1.placeholder_with_default(0.5, [])
    ...     print(session.run(rate), session.run(rate, {rate: 0.25}))
    0.5 0.25
    """
    default = convert_to_tensor(input)
    spec = TensorSpec.of(as_shape(shape), default.dtype)
    if not spec.is_compatible_with(default.spec):
        raise InvalidArgumentError(
            f"A default of shape {default.shape} doesn't fit a placeholder of shape {spec.shape}."
        )
    graph = graph_recording()
    if graph is None:
        return default
    tensor: Any = dispatch.current().run(DEFAULT, (default,), {"shape": spec.shape})
    if name is not None:
        graph.engine.open.names.rename(tensor._value.node, graph.unique_name(_name(graph, name)))
    return tensor  # type: ignore[no-any-return]  # the op has one output


def _name(graph: ExplicitGraph, name: str) -> str:
    return checked(name, graph.engine.open.names.scope)


@entry
def group(*inputs: Any, name: str = "group_deps") -> Operation | None:
    """An operation that runs all of ``inputs``: tensors, operations, variables, or lists of them.

    Eagerly and in traced functions they have run already, and the result is None.

    >>> from dualflow.compat import v1
    >>> with v1.Graph().as_default(), v1.Session() as session:
    ...     v, w = v1.Variable(1.0), v1.Variable(2.0)
    ...     both = v1.group(v1.assign_add(v, 10.0), v1.assign_add(w, 10.0))
    ...     session.run(v1.global_variables_initializer())
    ...     session.run(both)
    ...     print(*session.run([v, w]))
    11.0 12.0
    """
    graph = graph_recording()
    if graph is None and isinstance(dispatch.current().innermost, Tracer):
        return None
    if graph is None and not any(isinstance(x, Operation | SymbolicTensor) for x in _flat(inputs)):
        return None
    graph = graph or get_default_graph()
    nodes = [node for part in _flat(inputs) for node in graph.nodes_of(part)]
    return graph.engine.group(_name(graph, name), list(dict.fromkeys(nodes)))


@entry
def no_op(name: str = "NoOp") -> Operation | None:
    """An operation that does nothing; eagerly None.

    >>> from dualflow.compat import v1
    >>> with v1.Graph().as_default():
    ...     v1.no_op()
    <tf.Operation 'NoOp' type=NoOp>
    """
    return group(name=name)


def _flat(inputs: Sequence[Any]) -> list[Any]:
    return [part for x in inputs for part in (_flat(x) if isinstance(x, list | tuple) else [x])]


def control_dependencies(control_inputs: Sequence[Any] | None) -> AbstractContextManager[None]:
    """A block whose ops run after ``control_inputs``; eagerly these have run already.

    >>> from dualflow.compat import v1
    >>> with v1.Graph().as_default(), v1.Session() as session:
    ...     count = v1.Variable(0)
    ...     with v1.control_dependencies([v1.assign_add(count, 1)]):
    ...         after = count.read_value() * 10
    ...     session.run(count.initializer)
    ...     print(session.run(after))
    10
    """
    graph = graph_recording()
    return nullcontext() if graph is None else graph.control_dependencies(control_inputs)


@entry
def gradients(
    ys: object,
    xs: object,
    grad_ys: object = None,
    name: str = "gradients",
    colocate_gradients_with_ops: bool = False,
    gate_gradients: bool = False,
    aggregation_method: object = None,
    stop_gradients: object = None,
    unconnected_gradients: UnconnectedGradients | str = "none",
) -> list[Any]:
    """The gradient of the sum of ``ys`` with respect to each of ``xs``, as tensors of the graph.

    Args:
        ys: a tensor or a list.
        xs: a tensor or variable, or a list of them.
        grad_ys: the cotangent of each of ``ys``, ones by default.
        name: the name scope of the added ops.
        colocate_gradients_with_ops, gate_gradients, aggregation_method: TensorFlow's, and ignored.
        stop_gradients: tensors that are treated as constants.
        unconnected_gradients: ``"none"`` or ``"zero"``: the gradient of an unconnected source.

    Raises:
        FailedPreconditionError: outside a graph's block; use a GradientTape there.

    >>> from dualflow.compat import v1
    >>> with v1.Graph().as_default(), v1.Session() as session:
    ...     x = v1.placeholder(v1.float32, [])
    ...     (slope,) = v1.gradients(x**3.0, [x])
    ...     print(session.run(slope, {x: 2.0}))
    12.0
    """
    graph = graph_being_built("gradients()")
    try:
        unconnected = UnconnectedGradients(unconnected_gradients)
    except ValueError:
        raise InvalidArgumentError(
            f'unconnected_gradients is "none" or "zero", not {unconnected_gradients!r}.'
        ) from None
    with graph.name_scope(name):
        return _gradients(graph, ys, xs, grad_ys, stop_gradients, unconnected)


def _gradients(
    graph: ExplicitGraph,
    ys: Any,
    xs: Any,
    grad_ys: Any,
    stop_gradients: Any,
    unconnected: UnconnectedGradients,
) -> list[Any]:
    engine = graph.engine
    targets, sources = [_graph_tensor(graph, y) for y in _listed(ys)], _listed(xs)
    source_values = [[v for v in _values_of(graph, x) if v.spec.dtype.is_inexact] for x in sources]
    initial = [None] * len(targets) if grad_ys is None else _listed(grad_ys)
    cotangents = [
        _ones(y) if g is None else conj(convert_to_tensor(g, y.dtype))
        for y, g in zip(targets, initial, strict=True)
    ]
    stops = dict.fromkeys(_graph_tensor(graph, s)._value for s in _listed(stop_gradients or []))
    ancestors = needed({}, [y._value for y in targets], (), stops)
    records = [
        Record(
            n.op,
            tuple(map(engine.tensor_of, n.inputs)),
            tuple(map(engine.tensor_of, n.outputs)),
            dict(n.attrs),
        )
        for n in engine.builder.nodes
        if n in ancestors
    ]
    flat = [v for values in source_values for v in values]
    flows = iter(sweep(records, targets, cotangents, [engine.tensor_of(v) for v in flat]))
    return [
        _total([next(flows) for _ in values], source, unconnected)
        for values, source in zip(source_values, sources, strict=True)
    ]


def _ones(target: SymbolicTensor) -> Any:
    return postpone(ones_like, (target,), {}) if is_unknown(target) else ones_like(target)


def _listed(x: Any) -> list[Any]:
    return list(x) if isinstance(x, list | tuple) else [x]


def _graph_tensor(graph: ExplicitGraph, x: Any) -> SymbolicTensor:
    """The graph's symbolic tensor for a tensor or a variable's value."""
    tensor = convert_to_tensor(x)
    if type(tensor) is not SymbolicTensor or dispatch.current().innermost is not graph.engine:
        raise DTypeError(f"gradients() takes tensors of the graph that is being built, not {x!r}.")
    return graph.engine.tensor_of(graph.engine.lift(tensor)._value)


def _values_of(graph: ExplicitGraph, source: Any) -> list[Value]:
    """The graph's values to differentiate for a source: all reads of a variable, or the value of a tensor."""
    if isinstance(source, AbstractVariable) and graph.engine.value_of(source) is not None:
        return graph.engine.reads(source)
    return [_graph_tensor(graph, source)._value]


def _total(flows: Sequence[Any], source: Any, unconnected: UnconnectedGradients) -> Any:
    connected = [flow for flow in flows if flow is not None]
    if not connected:
        return zeros_like(source) if unconnected is UnconnectedGradients.ZERO else None
    total = connected[0]
    for flow in connected[1:]:
        total = total + flow
    return conj(total)

"""What only a graph has: placeholders, assignments as ops, gradients of symbolic tensors, groups."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any

from dualflow.core import dispatch
from dualflow.core.dispatch import AbstractVariable
from dualflow.core.dtypes import as_dtype
from dualflow.core.errors import DTypeError, FailedPreconditionError, InvalidArgumentError
from dualflow.core.spec import TensorSpec
from dualflow.eager.variable import Variable as StatefulVariable
from dualflow.function.session.graph import (
    Graph,
    Operation,
    get_default_graph,
    graph_being_built,
    graph_recording,
)
from dualflow.function.session.plan import needed
from dualflow.function.symbol import Symbol
from dualflow.gradient.sweep import Record, sweep
from dualflow.graph.ir import Node, Value
from dualflow.ops.creation import convert_to_tensor, ones_like, zeros_like


def placeholder(dtype: Any, shape: Any = None, name: str | None = None) -> Any:
    """A tensor whose value each run is fed.

    Args:
        dtype: of the fed values.
        shape: sizes, None where any size may be fed.
        name: the tensor's name, ``Placeholder`` by default; a number follows from the second on.

    Raises:
        FailedPreconditionError: outside of a graph's block.
        InvalidArgumentError: no shape; the number of axes has to be known.
    """
    graph = graph_being_built("placeholder()")
    if shape is None:
        raise InvalidArgumentError(
            "A placeholder needs a shape: the number of axes has to be known. Sizes may be None: [None, 3]."
        )
    base = "Placeholder" if name is None else name
    taken = {v.spec.name for v in graph.engine.builder.inputs}
    numbered = (
        base
        if base not in taken
        else next(n for n in (f"{base}_{i}" for i in range(1, len(taken) + 1)) if n not in taken)
    )
    return graph.engine.argument(TensorSpec(shape, as_dtype(dtype), numbered))


class Variable(StatefulVariable):
    """A variable with TensorFlow 1's arguments.

    In a graph its values live in sessions, which begin without one: see
    :func:`~dualflow.function.session.construct.global_variables_initializer`. Elsewhere it is a
    :class:`dualflow.Variable`.

    Args:
        initial_value: a tensor, what becomes one, or a function that answers it.
        trainable: whether optimizers change it by themselves.
        collections, validate_shape, caching_device, use_resource: ignored.
        name: shown when it is printed.
        dtype: of the values.
        constraint: a function that optimizers apply to the value after each update.
    """

    def __init__(
        self,
        initial_value: Any = None,
        trainable: bool | None = None,
        collections: Any = None,
        validate_shape: bool = True,
        caching_device: Any = None,
        name: str | None = None,
        dtype: Any = None,
        constraint: Any = None,
        use_resource: bool | None = None,
        shape: Any = None,
    ) -> None:
        super().__init__(initial_value, trainable, name=name, dtype=dtype, shape=shape, constraint=constraint)
        self._graph = graph_recording()

    @property
    def initializer(self) -> Operation:
        """The operation that gives the variable its first value.

        Raises:
            FailedPreconditionError: a variable that was created outside of graphs has its value.
        """
        if self._graph is None:
            raise FailedPreconditionError(
                f"{self.name} has its value already: it was created outside of graphs."
            )
        return _initializer(self._graph, [self], f"{self._name}/Assign")


def assign(
    ref: Any, value: Any, validate_shape: bool = True, use_locking: bool = False, name: Any = None
) -> Any:
    """``ref.assign(value)``: in a graph, an op that assigns in the runs that fetch it."""
    return ref.assign(value)


def assign_add(ref: Any, value: Any, use_locking: bool = False, name: str | None = None) -> Any:
    """``ref.assign_add(value)``; see :func:`assign`."""
    return ref.assign_add(value)


def assign_sub(ref: Any, value: Any, use_locking: bool = False, name: str | None = None) -> Any:
    """``ref.assign_sub(value)``; see :func:`assign`."""
    return ref.assign_sub(value)


def global_variables() -> list[Any]:
    """The variables of the default graph, in the order of their creation."""
    return list(get_default_graph().engine.variables)


def trainable_variables() -> list[Any]:
    """Those of :func:`global_variables` that optimizers change by themselves."""
    return [v for v in global_variables() if v.trainable]


def variables_initializer(var_list: Sequence[Any], name: str = "init") -> Operation:
    """The operation that gives each variable of ``var_list`` its first value.

    Raises:
        InvalidArgumentError: a variable of another graph.
    """
    return _initializer(get_default_graph(), var_list, name)


def _initializer(graph: Graph, var_list: Sequence[Any], name: str) -> Operation:
    nodes = {id(v): node for v, node in zip(graph.engine.variables, graph.engine.initial, strict=True)}
    strange = [v for v in var_list if id(v) not in nodes]
    if strange:
        raise InvalidArgumentError(f"{strange[0]!r} is not a variable of this graph.")
    return Operation(graph, name, "NoOp", [nodes[id(v)] for v in var_list])


def global_variables_initializer() -> Operation:
    """The operation that gives every variable that the default graph has now its first value."""
    return variables_initializer(global_variables())


def group(*inputs: Any, name: str = "group_deps") -> Operation:
    """The operation that runs all of ``inputs``: tensors, operations, variables, or lists of them."""
    graph = get_default_graph()
    nodes: list[Node] = []
    for given in inputs:
        for part in given if isinstance(given, list | tuple) else [given]:
            nodes += graph.nodes_of(part)
    return Operation(graph, name, "NoOp", list(dict.fromkeys(nodes)))


def no_op(name: str = "NoOp") -> Operation:
    """The operation that does nothing."""
    return group(name=name)


def control_dependencies(control_inputs: Sequence[Any] | None) -> AbstractContextManager[None]:
    """:meth:`Graph.control_dependencies` of the default graph."""
    return get_default_graph().control_dependencies(control_inputs)


def gradients(
    ys: Any,
    xs: Any,
    grad_ys: Any = None,
    name: str = "gradients",
    stop_gradients: Any = None,
    unconnected_gradients: str = "none",
) -> list[Any]:
    """The gradient of the sum of ``ys`` with respect to each of ``xs``, as tensors of the graph.

    Args:
        ys: a tensor or a list.
        xs: a tensor or variable, or a list of them.
        grad_ys: the cotangent of each of ``ys``, ones by default.
        name: ignored.
        stop_gradients: tensors to be taken for constants.
        unconnected_gradients: ``"none"`` or ``"zero"``: what stands for a gradient that is nowhere.

    Raises:
        FailedPreconditionError: outside of a graph's block; use a GradientTape there.
    """
    graph = graph_being_built("gradients()")
    engine = graph.engine
    if unconnected_gradients not in ("none", "zero"):
        raise InvalidArgumentError(
            f'unconnected_gradients is "none" or "zero", not {unconnected_gradients!r}.'
        )
    targets, sources = [_symbol(graph, y) for y in _listed(ys)], _listed(xs)
    places = [_places(graph, x) for x in sources]
    given = [None] * len(targets) if grad_ys is None else _listed(grad_ys)
    cotangents = [
        ones_like(y) if g is None else convert_to_tensor(g, y.dtype)
        for y, g in zip(targets, given, strict=True)
    ]
    stops = dict.fromkeys(_symbol(graph, s)._value for s in _listed(stop_gradients or []))
    wanted = needed({}, [y._value for y in targets], (), stops)
    records = [
        Record(n.op, tuple(map(engine.symbol, n.inputs)), tuple(map(engine.symbol, n.outputs)), dict(n.attrs))
        for n in engine.builder.nodes
        if n in wanted
    ]
    flat = [v for values in places for v in values]
    flows = iter(sweep(records, targets, cotangents, [engine.symbol(v) for v in flat]))
    return [
        _total([next(flows) for _ in values], source, unconnected_gradients)
        for values, source in zip(places, sources, strict=True)
    ]


def _listed(given: Any) -> list[Any]:
    return list(given) if isinstance(given, list | tuple) else [given]


def _symbol(graph: Graph, given: Any) -> Symbol:
    """The graph's one symbol for a tensor or a variable's value."""
    tensor = convert_to_tensor(given)
    if type(tensor) is not Symbol or dispatch.current().unrecorded is not graph.engine:
        raise DTypeError(f"gradients() takes tensors of the graph that is being built, not {given!r}.")
    return graph.engine.symbol(graph.engine.adopt(tensor)._value)


def _places(graph: Graph, source: Any) -> list[Value]:
    """Where the graph holds the value of a source: at each reading of a variable."""
    if isinstance(source, AbstractVariable) and graph.engine.value_of(source) is not None:
        return graph.engine.reads(source)
    return [_symbol(graph, source)._value]


def _total(flows: Sequence[Any], source: Any, unconnected: str) -> Any:
    found = [f for f in flows if f is not None]
    if not found:
        return zeros_like(source) if unconnected == "zero" else None
    total = found[0]
    for flow in found[1:]:
        total = total + flow
    return total

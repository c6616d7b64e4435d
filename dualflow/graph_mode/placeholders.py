"""Functions for explicit graphs: placeholders, groups of operations, and control dependencies."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

from dualflow.core import dispatch
from dualflow.core.dtypes import as_dtype, int64
from dualflow.core.errors import InvalidArgumentError
from dualflow.core.shape import UNKNOWN_RANK, as_shape
from dualflow.core.spec import TensorSpec
from dualflow.core.tracebacks import entry
from dualflow.function.debugging.assertions import GROUP
from dualflow.function.tracing.symbolic_tensor import SymbolicTensor
from dualflow.function.tracing.tracer import Tracer
from dualflow.graph_mode.default_graph import get_default_graph, graph_being_built, recording_graph
from dualflow.graph_mode.graph import ExplicitGraph
from dualflow.graph_mode.names import check_name
from dualflow.graph_mode.operation import Operation
from dualflow.graph_mode.replaced_ops import DEFAULT
from dualflow.ops.creation import convert_to_tensor
from dualflow.ops.sparse.sparse_tensor import SparseTensor, sparse_from_parts

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
    graph = recording_graph()
    if graph is None:
        return default
    tensor: Any = dispatch.current().run(DEFAULT, (default,), {"shape": spec.shape})
    if name is not None:
        graph.engine.open.names.rename(tensor._value.node, graph.unique_name(_name(graph, name)))
    return tensor  # type: ignore[no-any-return]  # the op has one output


@entry
def sparse_placeholder(dtype: DTypeLike, shape: ShapeLike, name: str | None = None) -> SparseTensor:
    """A sparse tensor whose value, a ``SparseTensorValue``, is fed in each run.

    Args:
        dtype: of the elements.
        shape: sizes; None for an axis of any size.
        name: the scope of ``indices``, ``values`` and ``shape``, ``SparsePlaceholder`` by default.

    Raises:
        FailedPreconditionError: outside a graph's block.
        InvalidArgumentError: without a number of axes.

    >>> from dualflow.compat import v1
    >>> with v1.Graph().as_default(), v1.Session() as session:
    ...     x = v1.sparse_placeholder(v1.float32, [None, 3])
    ...     print(session.run(v1.sparse.to_dense(x), {x: v1.SparseTensorValue([[0, 1]], [2.0], [1, 3])}))
    [[0. 2. 0.]]
    """
    sizes = as_shape(shape)
    if sizes is UNKNOWN_RANK:
        raise InvalidArgumentError(
            "sparse_placeholder() needs the number of axes: give a shape, with None for each size that "
            "differs between runs."
        )
    scope = graph_being_built("sparse_placeholder()").unique_name(name or "SparsePlaceholder")
    indices = placeholder(int64, [None, len(sizes)], f"{scope}/indices")
    values = placeholder(dtype, [None], f"{scope}/values")
    sizes_tensor = None if sizes.is_static else placeholder(int64, [len(sizes)], f"{scope}/shape")
    return sparse_from_parts(indices, values, sizes, sizes_tensor)


def _name(graph: ExplicitGraph, name: str) -> str:
    return check_name(name, graph.engine.open.names.scope)


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
    graph = recording_graph()
    if graph is None and isinstance(dispatch.current().innermost, Tracer):
        return None
    if graph is None and not any(isinstance(x, Operation | SymbolicTensor) for x in _flat(inputs)):
        return None
    graph = graph or get_default_graph()
    nodes = [node for part in _flat(inputs) for node in graph.nodes_of(part)]
    nodes += graph.engine.open.first  # the control dependencies of the block around it
    return graph.engine.group(_name(graph, name), list(dict.fromkeys(nodes)))


GROUP.fill(group)


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
    """A context whose ops run after ``control_inputs``; eagerly these have run already.

    >>> from dualflow.compat import v1
    >>> with v1.Graph().as_default(), v1.Session() as session:
    ...     count = v1.Variable(0)
    ...     with v1.control_dependencies([v1.assign_add(count, 1)]):
    ...         after = count.read_value() * 10
    ...     session.run(count.initializer)
    ...     print(session.run(after))
    10
    """
    graph = recording_graph()
    return nullcontext() if graph is None else graph.control_dependencies(control_inputs)

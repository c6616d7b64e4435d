"""The size variables of a backward graph: which it reads, and the arguments whose sizes bind them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from dualflow.core.records import NamedTuple
from dualflow.graph.control_spec import LoopSpec
from dualflow.graph.ir import Graph, Node, Value
from dualflow.graph.symbolic_size_ops import BIND_SIZE, Axis, argument_sizes, binds_or_checks_size
from dualflow.sizes.symbolic_sizes import SizeVariable, SymInt, UndecidedSize, size_variables, variable_of


class SizeNodes(NamedTuple):
    """The nodes of a joint graph that bind or compare sizes, by the graph that has them."""

    forward: tuple[Node, ...]
    backward: tuple[Node, ...]


class BackwardSizes(NamedTuple):
    """The bindings of the size variables that a backward graph reads.

    Attributes:
        inputs: arguments of the joint graph that it reads for their sizes alone.
        bindings: nodes that bind variables to sizes of its arguments, then those that compute others.
    """

    inputs: tuple[Value, ...]
    bindings: tuple[Node, ...]


def size_nodes(joint: Graph, inputs: int, forward_nodes: set[Node]) -> SizeNodes:
    """The nodes of ``joint`` that bind or compare sizes.

    The forward graph has those that come before the last of its other nodes, which are ``forward_nodes``, or
    before the first node that depends on an argument after the first ``inputs``, a cotangent.
    """
    forward_end = max((i for i, node in enumerate(joint.nodes, start=1) if node in forward_nodes), default=0)
    reached = set(joint.arguments[inputs:])
    parts: tuple[list[Node], list[Node]] = ([], [])
    is_gradient = False
    for i, node in enumerate(joint.nodes):
        is_gradient = is_gradient or not reached.isdisjoint(node.inputs)
        if binds_or_checks_size(node):
            parts[is_gradient and i >= forward_end].append(node)
    return SizeNodes(tuple(parts[0]), tuple(parts[1]))


def nodes_that_bind_sizes(
    joint: Graph, inputs: int, forward_nodes: set[Node], forward_sizes: Sequence[Node]
) -> list[Node]:
    """Branches and loops that bind size variables which other nodes of the forward graph read.

    The nodes of the forward graph are ``forward_nodes``, and ``forward_sizes`` (of :func:`size_nodes`), which
    may read the size of a loop's result without its elements. The branches and loops returned are not in
    ``forward_nodes``, and read none of the arguments after the first ``inputs``.

    Raises:
        UndecidedSize: no such node binds one of the variables.
    """
    if not forward_sizes:
        return []
    bound, read = bound_and_read_sizes([*forward_nodes, *forward_sizes], joint.arguments[:inputs])
    if read <= bound:
        return []
    reached = set(joint.arguments[inputs:])
    binding = []
    for node in joint.nodes:
        if not reached.isdisjoint(node.inputs):
            reached.update(node.outputs)
        elif (
            node.bodies and node not in forward_nodes and bound_and_read_sizes([node], ())[0] & (read - bound)
        ):
            binding.append(node)
    if not binding:
        raise UndecidedSize("the forward graph reads a size that only its gradient computes")
    return binding


def late_bindings(arguments: Sequence[Value], nodes: Iterable[Node], computed: Sequence[Node]) -> list[Node]:
    """The nodes of ``computed`` that a backward graph runs itself, since others of its nodes come before.

    They bind size variables to elements of tensors, and to expressions over such variables.

    Args:
        arguments: the arguments of the backward graph so far.
        nodes: its nodes so far.
        computed: nodes of the forward graph that bind size variables, in order.
    """
    bound, read = bound_and_read_sizes(nodes, arguments)
    early = _axes(arguments).keys()
    sizes = [(variable_of(n.attrs["size"]), n) for n in computed if n.op is BIND_SIZE]
    binding = {variable: node for variable, node in sizes if variable is not None}
    needed: set[SizeVariable] = set()
    pending = list(read - bound - early)
    while pending:
        variable = pending.pop()
        if variable in binding and not any(variable in x for x in (needed, bound, early)):
            needed.add(variable)
            pending += size_variables(binding[variable].attrs.get("value", 0))
    late: list[Node] = []
    for variable, node in binding.items():
        if variable in needed and (node.inputs or size_variables(node.attrs.get("value", 0)) & bound):
            late.append(node)
            bound.add(variable)
    return late


def backward_sizes(
    joint: Graph, arguments: Sequence[Value], nodes: Iterable[Node], computed: Sequence[Node]
) -> BackwardSizes:
    """The bindings of the size variables of the backward graph of ``joint``.

    Args:
        joint: the joint graph.
        arguments: the arguments of the backward graph so far: values of the joint graph.
        nodes: the nodes of the backward graph so far.
        computed: nodes of the forward graph that bind size variables.

    Raises:
        UndecidedSize: it reads a variable that is no size of an argument or input.
    """
    inputs: list[Value] = []
    bindings: list[Node] = []
    axes = _axes([*arguments])
    bound, read = bound_and_read_sizes(nodes, arguments)
    of_inputs = argument_sizes(joint)
    expressions = {variable_of(n.attrs["size"]): n for n in computed if "value" in n.attrs}
    pending = sorted(read - bound - axes.keys())
    while pending:
        variable = pending.pop()
        if variable in axes or variable in bound:
            continue
        if variable in of_inputs:
            value = joint.inputs[of_inputs[variable][0][0]]
            inputs.append(value)
            axes = _axes([*inputs, *arguments])
            pending += size_variables(tuple(value.spec.shape))
        elif variable in expressions:
            bound.add(variable)
            bindings.append(expressions[variable])
            pending += size_variables(expressions[variable].attrs["value"])
        else:
            raise UndecidedSize("the gradient depends on a size that is computed from data")
    of_arguments = [
        Node(BIND_SIZE, [], {"size": SymInt({(variable,): 1}), "argument_axes": tuple(argument_axes)}, ())
        for variable, argument_axes in axes.items()
    ]
    return BackwardSizes(tuple(inputs), (*of_arguments, *reversed(bindings)))


def _axes(arguments: Sequence[Value]) -> dict[SizeVariable, list[Axis]]:
    """The axes of ``arguments`` whose size a variable is."""
    axes: dict[SizeVariable, list[Axis]] = {}
    for index, value in enumerate(dict.fromkeys(arguments)):
        for axis, size in enumerate(value.spec.shape):
            variable = variable_of(size) if isinstance(size, SymInt) else None
            if variable is not None:
                axes.setdefault(variable, []).append((index, axis))
    return axes


def bound_and_read_sizes(
    nodes: Iterable[Node], values: Sequence[Value]
) -> tuple[set[SizeVariable], set[SizeVariable]]:
    """The size variables that ``nodes`` bind, and all that they and ``values`` have; those of bodies, too."""
    bound: set[SizeVariable] = set()
    read = _variables_of(values)
    pending = list(nodes)
    while pending:
        node = pending.pop()
        read |= size_variables(dict(node.attrs)) | _variables_of((*node.inputs, *node.outputs))
        if node.op is BIND_SIZE:
            bound |= size_variables(node.attrs["size"])
        for value in node.attrs.values():
            if isinstance(value, LoopSpec):
                read |= size_variables(value.length)
                carried = [v.spec.shape for v in node.inputs[: value.carried]]
                for before, inside in zip(carried, value.body.inputs, strict=False):
                    if before != inside.spec.shape:
                        bound |= size_variables(tuple(inside.spec.shape)) - size_variables(tuple(before))
        for _, body in node.bodies:
            pending += body.nodes
    return bound, read


def _variables_of(values: Iterable[Value]) -> set[SizeVariable]:
    return set().union(*(size_variables(tuple(v.spec.shape)) for v in values))

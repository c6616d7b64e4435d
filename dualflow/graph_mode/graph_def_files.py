"""Functions of graph definitions: writing them to files, extracting parts, and variables as constants."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np

from dualflow.core.errors import DTypeError, InvalidArgumentError
from dualflow.core.system_errors import system_errors
from dualflow.core.tracebacks import entry
from dualflow.graph.ir import Capture, Graph, Node, Value
from dualflow.graph_mode.graph import ExplicitGraph
from dualflow.graph_mode.graph_def import GraphDef
from dualflow.graph_mode.graph_def_text import DefinedGraph
from dualflow.graph_mode.replaced_ops import ASSIGN, READ
from dualflow.graph_mode.run_plan import needed
from dualflow.graph_mode.session import Session
from dualflow.ops.creation import CONSTANT
from dualflow.ops.files.contents import write_whole

Array = np.ndarray[Any, Any]


@entry
def write_graph(
    graph_or_graph_def: ExplicitGraph | GraphDef,
    logdir: str | os.PathLike[str],
    name: str,
    as_text: bool = True,
) -> str:
    """Write the definition of a graph to a file, completely or not at all.

    Args:
        graph_or_graph_def: a graph, or its definition.
        logdir: the folder, created if it is missing.
        name: the name of the file in the folder.
        as_text: ignored: the definition is text, which :class:`GraphDef` reads in either case.

    Returns:
        The path of the file.

    Raises:
        InvalidArgumentError: an operation of the graph has no text.
        DTypeError: ``graph_or_graph_def`` is of another type.
        NotFoundError, FailedPreconditionError: the file can't be written.

    >>> import tempfile
    >>> import dualflow as df
    >>> from dualflow.compat import v1
    >>> with v1.Graph().as_default() as graph:
    ...     y = v1.square(v1.placeholder(v1.float32, [], name="x"), name="y")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = df.io.write_graph(graph, folder, "graph.txt")
    ...     with open(path, "rb") as file:
    ...         print(v1.GraphDef.FromString(file.read()) == graph.as_graph_def())
    True
    """
    graph_def = _definition_of(graph_or_graph_def)
    path = os.path.join(os.fspath(logdir), name)
    with system_errors(path):
        write_whole(path, graph_def.SerializeToString())
    return path


def _definition_of(graph: Any) -> GraphDef:
    if isinstance(graph, ExplicitGraph):
        return graph.as_graph_def()
    if isinstance(graph, GraphDef):
        return graph
    raise DTypeError(
        f"write_graph takes a tf.Graph or a GraphDef, not a {type(graph).__name__}; a df.function is saved "
        "by df.saved_model.save."
    )


@entry
def extract_sub_graph(graph_def: GraphDef, dest_nodes: Sequence[str]) -> GraphDef:
    """The definition of ``dest_nodes`` and the operations that they depend on.

    Args:
        graph_def: the definition of the whole graph.
        dest_nodes: the names of operations.

    Raises:
        InvalidArgumentError: a name belongs to no operation.
        DTypeError: ``dest_nodes`` is a str, or ``graph_def`` is not a :class:`GraphDef`.

    >>> from dualflow.compat import v1
    >>> with v1.Graph().as_default() as graph:
    ...     x = v1.placeholder(v1.float32, [], name="x")
    ...     y, z = v1.square(x, name="y"), v1.exp(x, name="z")
    >>> [node.name for node in v1.graph_util.extract_sub_graph(graph.as_graph_def(), ["z"]).node]
    ['x', 'z']
    """
    return GraphDef.from_definition(_extracted(_checked(graph_def), dest_nodes))


def _checked(graph_def: Any) -> DefinedGraph:
    if not isinstance(graph_def, GraphDef):
        raise DTypeError(f"A GraphDef is needed, not a {type(graph_def).__name__}: graph.as_graph_def().")
    return graph_def.definition


def _extracted(definition: DefinedGraph, names: Any) -> DefinedGraph:
    if isinstance(names, str) or not all(isinstance(x, str) for x in names):
        raise DTypeError(f"The operations are a list of names, not {names!r}.")
    by_name = {name: x for x, name in definition.names.items()}
    unknown = [x for x in names if x not in by_name and x not in definition.groups]
    if unknown:
        raise InvalidArgumentError(f"{unknown[0]} is not in graph: it has no operation of that name.")
    groups = {name: nodes for name, nodes in definition.groups.items() if name in names}
    elements = [by_name[x] for x in names if x in by_name]
    nodes = [x for x in elements if isinstance(x, Node)] + [n for group in groups.values() for n in group]
    kept = needed(definition.after, (), nodes, {})
    read = {v for n in kept for v in n.inputs} | {x for x in elements if isinstance(x, Value)}
    variables = {id(n.attrs["variable"]) for n in kept if n.op in (READ, ASSIGN)}
    return _with_parts(
        definition,
        [n for n in definition.graph.nodes if n in kept],
        lambda value, capture: (
            id(capture.source) in variables if capture and capture.variable else value in read
        ),
        groups,
    )


def _with_parts(
    definition: DefinedGraph,
    nodes: Sequence[Node],
    keep_input: Callable[[Value, Capture | None], bool],
    groups: dict[str, tuple[Node, ...]],
) -> DefinedGraph:
    """The definition with ``nodes`` and ``groups``, and the inputs that ``keep_input`` accepts."""
    graph = definition.graph
    captures = zip(graph.inputs[len(graph.arguments) :], graph.captures, strict=True)
    captured = [(v, c) for v, c in captures if keep_input(v, c)]
    inputs = (*[v for v in graph.arguments if keep_input(v, None)], *[v for v, _ in captured])
    kept: Collection[Any] = {*inputs, *nodes}
    return DefinedGraph(
        Graph(graph.name, inputs, tuple(nodes), (), tuple([c for _, c in captured])),
        {x: name for x, name in definition.names.items() if x in kept},
        {node: earlier for node, earlier in definition.after.items() if node in kept},
        groups,
    )


@entry
def convert_variables_to_constants(
    sess: Session,
    input_graph_def: GraphDef,
    output_node_names: Sequence[str],
    variable_names_whitelist: Collection[str] | None = None,
    variable_names_blacklist: Collection[str] | None = None,
) -> GraphDef:
    """The definition of the operations that ``output_node_names`` depend on, with constants for variables.

    Args:
        sess: the session that has the values.
        input_graph_def: the definition of the session's graph.
        output_node_names: the names of operations.
        variable_names_whitelist: the names of the variables to convert; by default all.
        variable_names_blacklist: the names of variables that stay variables.

    Raises:
        InvalidArgumentError: there is no operation of a name, or one of those that are kept assigns a
            variable that is converted.
        FailedPreconditionError: a variable has no value in the session.

    >>> from dualflow.compat import v1
    >>> with v1.Graph().as_default() as graph, v1.Session() as session:
    ...     y = v1.multiply(v1.placeholder(v1.float32, [], name="x"), v1.Variable(3.0, name="w"), name="y")
    ...     session.run(v1.global_variables_initializer())
    ...     frozen = v1.graph_util.convert_variables_to_constants(session, graph.as_graph_def(), ["y"])
    >>> [(node.name, node.op) for node in frozen.node]
    [('x', 'Placeholder'), ('w/read', 'constant'), ('y', 'multiply')]
    """
    if not isinstance(sess, Session):
        raise DTypeError(f"sess is the session that has the variables' values, not {sess!r}.")
    definition = _extracted(_checked(input_graph_def), output_node_names)
    variables = [c.source for c in definition.graph.captures if c.variable]
    converted = [
        v
        for v in variables
        if (variable_names_whitelist is None or v.name in variable_names_whitelist)
        and v.name not in (variable_names_blacklist or ())
    ]
    if not converted:
        return GraphDef.from_definition(definition)
    ids = {id(v) for v in converted}
    for node in definition.graph.nodes:
        if node.op is ASSIGN and id(node.attrs["variable"]) in ids:
            raise InvalidArgumentError(
                f"{definition.names[node]!r} assigns a variable, which can't become a constant. Name the "
                "outputs of the model, not its training step."
            )
    arrays = sess.run([f"{v.name}:0" for v in converted])
    values = {id(v): np.asarray(array) for v, array in zip(converted, arrays, strict=True)}
    return GraphDef.from_definition(_with_constants(definition, values))


def _with_constants(definition: DefinedGraph, values: dict[int, Array]) -> DefinedGraph:
    """The definition with constants in place of variable reads; ``values`` by the ids of variables."""
    graph = definition.graph
    nodes: dict[Node, Node] = {}
    replacements: dict[Value, Value] = {}
    for node in graph.nodes:
        if node.op is READ and id(node.attrs["variable"]) in values:
            value = values[id(node.attrs["variable"])]
            new = Node(CONSTANT, (), {"value": value}, node.op.specs((), dict(node.attrs)), node.origin)
        else:
            inputs = [replacements.get(v, v) for v in node.inputs]
            new = Node(node.op, inputs, node.attrs, [v.spec for v in node.outputs], node.origin)
        nodes[node] = new
        replacements.update(zip(node.outputs, new.outputs, strict=True))
    changed = DefinedGraph(
        Graph(graph.name, graph.inputs, tuple(nodes.values()), (), graph.captures),
        {nodes[x] if isinstance(x, Node) else x: name for x, name in definition.names.items()},
        {
            nodes[node]: tuple([nodes[n] for n in earlier])
            for node, earlier in definition.after.items()
            if nodes[node].op is not CONSTANT
        },
        {name: tuple([nodes[n] for n in members]) for name, members in definition.groups.items()},
    )
    return _with_parts(
        changed,
        changed.graph.nodes,
        lambda _, capture: not (capture and capture.variable and id(capture.source) in values),
        dict(changed.groups),
    )

"""The text of an explicit graph, in the grammar of saved graphs.

Values have the names of operations. A variable is an input whose reference is the variable's name. Three ops
describe what else a session needs: ``named`` is the name of the node before it, which has no results;
``run_after`` lists control dependencies; ``group`` is an operation that runs others. Constants of many
elements follow the graph, in base64.

    graph graph(%x: float32[], %w/variable: float32[] = variable @w)
        %zero: float32[] = constant(value=0.)
        %w/Assign: float32[] = assign_variable(%zero, variable=%w/variable)
        %w: float32[] = read_variable(variable=%w/variable)
        %y: float32[] = multiply(%x, %w)
        group(name='init', of=('w/Assign',))
        return nothing
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dualflow.core.dtypes import DType
from dualflow.core.errors import DualflowError, InvalidArgumentError
from dualflow.core.records import dataclass, field
from dualflow.core.shape import Shape
from dualflow.core.spec import TensorSpec
from dualflow.eager.tensor import wrap
from dualflow.graph.ir import Capture, Graph, Node, Value
from dualflow.graph.literals import array_of, elements
from dualflow.graph.parser import parse_named
from dualflow.graph.printer import Storage, complete_text
from dualflow.graph.text_lines import Resolver, read_spec
from dualflow.graph_mode.names import check_name
from dualflow.graph_mode.replaced_ops import ASSIGN, DEFAULT, READ, reject_execution
from dualflow.graph_mode.unknown_rank import POSTPONED_OPS
from dualflow.ops.op_kinds import Opaque
from dualflow.ops.record import Effect, Op

if TYPE_CHECKING:
    from dualflow.graph_mode.graph_engine import GraphEngine

Array = np.ndarray[Any, Any]
_ARRAY: Final = re.compile(r"([^\s:]+): (\S.*) = (.*)")


@dataclass(frozen=True, slots=True, eq=False)
class DefinedVariable:
    """A variable of a graph definition: sessions hold its values, and no Python object assigns it."""

    name: str
    shape: Shape
    dtype: DType


@dataclass(frozen=True, slots=True, eq=False)
class DefinedGraph:
    """The contents of a graph definition.

    Attributes:
        graph: the nodes; its inputs are placeholders, variables, and tensors from outside the graph.
        names: the name of the operation of each node and input.
        after: the control dependencies of nodes.
        groups: the nodes that each group of nodes runs, by the group's name.
    """

    graph: Graph
    names: Mapping[Node | Value, str]
    after: Mapping[Node, tuple[Node, ...]] = field(default_factory=dict)
    groups: Mapping[str, tuple[Node, ...]] = field(default_factory=dict)

    @classmethod
    def empty(cls) -> DefinedGraph:
        """The definition of a graph without operations."""
        return cls(Graph("graph", (), (), ()), {})


# from a graph


def recorded(engine: GraphEngine) -> DefinedGraph:
    """The definition of the graph that an engine has recorded so far.

    Raises:
        InvalidArgumentError: the graph has a call on a tensor of unknown rank, or reads an eager variable.
    """
    builder = engine.builder
    for value, capture in builder.captures:
        if capture.variable:
            raise InvalidArgumentError(
                f"The graph reads {capture.source!r}, which was created outside of it, so it has no "
                f"definition. Create the variable in the graph's block.{_line(engine.origin(value))}"
            )
    for node in builder.nodes:
        if node.op in POSTPONED_OPS:
            raise InvalidArgumentError(
                f"The graph calls {node.attrs['called']} on a tensor of unknown rank, which has no text. "
                f"Give the placeholder a shape: [None, 3] for any number of rows of 3.{_line(node.origin)}"
            )
    variables = {
        id(n.attrs["variable"]): n.attrs["variable"] for n in builder.nodes if n.op in (READ, ASSIGN)
    }
    inputs = [(Value(_spec(v)), Capture(v, True)) for v in variables.values()]
    inputs += builder.captures
    values, captures = [v for v, _ in inputs], [c for _, c in inputs]
    graph = Graph("graph", (*builder.inputs, *values), tuple(builder.nodes), (), tuple(captures))
    groups = {op.name: op.nodes for op in engine.operations() if op.is_group}
    named: list[Node | Value] = [*graph.arguments, *values[len(variables) :], *graph.nodes]
    return DefinedGraph(graph, {x: engine.open.names.of(x) for x in named}, dict(engine.open.after), groups)


def _spec(variable: Any) -> TensorSpec:
    return TensorSpec.of(variable.shape, variable.dtype)


def _line(origin: Any) -> str:
    return f"\n  {origin}" if origin else ""


# ops of the text


def _marker(name: str, doc: str, infer: Any) -> Op:
    return Op(
        name=name,
        doc=doc,
        infer=infer,
        kernel=reject_execution,
        kind=Opaque("it describes other nodes"),
        outputs=None,
        effect=Effect.PYTHON,
    )


def _require_names(*names: Any) -> tuple[()]:
    """Raise unless all attributes are valid names; returns no results."""
    for name in names:
        check_name(name)
    return ()


_NAMED: Final = _marker("named", "The name of the node before it.", lambda *, name: _require_names(name))
_RUN_AFTER: Final = _marker(
    "run_after", "Control dependencies.", lambda *, name, of: _require_names(name, *_tuple(of))
)
_GROUP: Final = _marker(
    "group", "An operation that runs others.", lambda *, name, of: _require_names(name, *_tuple(of))
)
_OPS: Final = {op.name: op for op in (READ, ASSIGN, DEFAULT, _NAMED, _RUN_AFTER, _GROUP)}


def _tuple(names: Any) -> tuple[Any, ...]:
    if type(names) is not tuple:
        raise InvalidArgumentError(f"{names!r} is no tuple of names")
    return names


def _described(op: Op, **attrs: Any) -> Node:
    return Node(op, (), attrs, ())


# text


def write(definition: DefinedGraph) -> str:
    """The text of a definition.

    Raises:
        InvalidArgumentError: an attribute of a node has no text, with the user's line.
    """
    graph, names = definition.graph, definition.names
    nodes: list[Node] = []
    for node in graph.nodes:
        nodes += [node] if node.outputs else [node, _described(_NAMED, name=names[node])]
    for node, earlier in definition.after.items():
        of = tuple([names[n] for n in earlier])
        nodes += [_described(_RUN_AFTER, name=names[node], of=of)] if of else []
    for name, members in definition.groups.items():
        nodes.append(_described(_GROUP, name=name, of=tuple([names[n] for n in members])))
    arrays: list[Array] = []

    def store(array: Array) -> str:
        arrays.append(array)
        return f"constants/{len(arrays) - 1}"

    def source(captured: Any) -> str:
        is_variable = id(captured) in variables
        return str(captured.name).partition(":")[0] if is_variable else store(captured.numpy())

    variables = {id(c.source) for c in graph.captures if c.variable}
    described = Graph(graph.name, graph.inputs, tuple(nodes), (), graph.captures)
    text = complete_text(described, Storage(store, source), _value_names(graph, names))
    lines = [f"constants/{i}: {_array_text(array)}" for i, array in enumerate(arrays)]
    return "\n".join([text, "", *lines] if lines else [text])


def _value_names(graph: Graph, names: Mapping[Node | Value, str]) -> dict[Value, str]:
    taken = set(names.values())
    shown: dict[Value, str] = {}
    for value, capture in zip(graph.inputs[len(graph.arguments) :], graph.captures, strict=True):
        name = f"{str(capture.source.name).partition(':')[0]}/variable" if capture.variable else names[value]
        while capture.variable and name in taken:
            name += "_"
        shown[value] = name
        taken.add(name)
    shown |= {value: names[value] for value in graph.arguments}
    for node in graph.nodes:
        shown |= {v: f"{names[node]}:{v.index}" if v.index else names[node] for v in node.outputs}
    return shown


def _array_text(array: Array) -> str:
    spec = TensorSpec.of(Shape(array.shape), wrap(array).dtype)
    if array.dtype.hasobject:
        return f"{spec} = {elements(array)}"
    data = np.ascontiguousarray(array)
    if data.dtype.byteorder == ">":
        data = data.astype(data.dtype.newbyteorder("<"))
    return f"{spec} = {base64.b64encode(data.tobytes()).decode()}"


def read(text: str) -> DefinedGraph:
    """The definition of a text.

    Raises:
        InvalidArgumentError: the text is invalid, with the line.
    """
    graph_text, _, array_lines = text.partition("\n\n")
    arrays = _arrays(array_lines, graph_text.count("\n") + 3)
    variables: set[str] = set()

    def source(name: str, spec: TensorSpec, variable: bool, reference: str | None) -> Any:
        if reference is None:
            raise InvalidArgumentError(f"the input %{name} has no reference")
        if not variable:
            return wrap(constant(reference, spec))
        if reference in variables or not spec.shape.is_static:
            raise InvalidArgumentError(f"the variable {reference} is there twice, or has a dynamic size")
        variables.add(check_name(reference))
        return DefinedVariable(reference, spec.shape, spec.dtype)

    def constant(reference: str, spec: TensorSpec) -> Array:
        array = arrays.get(reference)
        if array is None or array.dtype != spec.dtype.dtype or array.shape != spec.shape:
            raise InvalidArgumentError(f"the text has no constant @{reference} that is a {spec}")
        return array

    resolver = Resolver("the graph definition", source, constant, _OPS)
    graph, values = parse_named(graph_text, resolver)
    try:
        return _interpreted(graph, {value: name for name, value in values.items()})
    except InvalidArgumentError as error:
        raise InvalidArgumentError(f"The graph definition is invalid: {error}") from None


def _arrays(text: str, first_line: int) -> dict[str, Array]:
    arrays: dict[str, Array] = {}
    for number, line in enumerate(text.split("\n"), first_line):
        if not line:
            continue
        match = _ARRAY.fullmatch(line)
        try:
            if match is None or match[1] in arrays:
                raise ValueError("it is no constant, or one whose name is taken")
            arrays[match[1]] = _array(read_spec(match[2]), match[3])
        except (ValueError, DualflowError) as error:
            raise InvalidArgumentError(f"the graph definition, line {number}: {error}.") from None
    return arrays


def _array(spec: TensorSpec, text: str) -> Array:
    """The array of a spec with these elements.

    Raises:
        ValueError: the text has other elements.
    """
    if not spec.shape.is_static or spec.size > len(text):
        raise ValueError(f"these are not the elements of {spec}")
    dtype = spec.dtype.dtype
    if dtype.hasobject:
        return array_of(text, dtype, spec.shape)
    try:
        data = base64.b64decode(text, validate=True)
    except binascii.Error as error:
        raise ValueError(str(error)) from None
    if len(data) != spec.size * dtype.itemsize:
        raise ValueError(f"these are not the elements of {spec}")
    little = dtype.newbyteorder("<") if dtype.kind in "iufc" else dtype
    return np.frombuffer(data, little).astype(dtype).reshape(spec.shape)


def _interpreted(graph: Graph, value_names: Mapping[Value, str]) -> DefinedGraph:
    """The definition that a parsed graph describes.

    Raises:
        InvalidArgumentError: names are missing, or are no names of operations.
    """
    if graph.outputs or graph.updates:
        raise InvalidArgumentError("it returns values or has updates.")
    by_name: dict[str, Node | Value] = {}
    described: list[Node] = []
    nodes: list[Node] = []

    def add(name: str, element: Node | Value) -> None:
        if by_name.setdefault(check_name(name), element) is not element:
            raise InvalidArgumentError(f"two operations are called {name!r}.")

    captured = zip(graph.inputs[len(graph.arguments) :], graph.captures, strict=True)
    for value in (*graph.arguments, *[v for v, capture in captured if not capture.variable]):
        add(value_names[value], value)
    unnamed: Node | None = None
    for node in graph.nodes:
        if node.op is _NAMED and unnamed is not None:
            add(node.attrs["name"], unnamed)
            unnamed = None
        elif node.op in (_NAMED, _RUN_AFTER, _GROUP):
            described.append(node)
        else:
            nodes.append(node)
            unnamed = node if not node.outputs else None
            for value in node.outputs:
                name = value_names[node.outputs[0]]
                if value_names[value] != (f"{name}:{value.index}" if value.index else name):
                    raise InvalidArgumentError(f"{value_names[value]!r} is no result of {name!r}.")
                add(name, node)
    return _with_order(replace_nodes(graph, nodes), by_name, described)


def replace_nodes(graph: Graph, nodes: Iterable[Node]) -> Graph:
    """``graph`` with other nodes."""
    return Graph(graph.name, graph.inputs, tuple(nodes), (), graph.captures)


def _with_order(graph: Graph, by_name: Mapping[str, Node | Value], described: Iterable[Node]) -> DefinedGraph:
    """The definition of ``graph`` with the dependencies and groups that ``described`` lists."""
    after: dict[Node, tuple[Node, ...]] = {}
    groups: dict[str, tuple[Node, ...]] = {}
    unnamed = set(graph.nodes) - {x for x in by_name.values() if isinstance(x, Node)}
    if unnamed:
        raise InvalidArgumentError(f"a node of {next(iter(unnamed)).op.name} has no name.")

    def node_of(name: str) -> Node:
        element = by_name.get(name)
        if not isinstance(element, Node):
            raise InvalidArgumentError(f"there is no operation {name!r} to run.")
        return element

    for node in described:
        name = node.attrs["name"]
        members = tuple([node_of(x) for x in node.attrs.get("of", ())])
        if node.op is _RUN_AFTER and node_of(name) not in after:
            after[node_of(name)] = members
        elif node.op is _GROUP and name not in by_name and name not in groups:
            groups[name] = members
        else:
            raise InvalidArgumentError(f"{node.op.name} of {name!r} is there twice, or names no node.")
    return DefinedGraph(graph, {x: name for name, x in by_name.items()}, after, groups)

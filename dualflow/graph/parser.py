"""Reads graphs from the text that ``print(graph)`` shows; the grammar is in docs/saved_model.md.

The text is treated as hostile. Every mistake in it is an InvalidArgumentError with the line; nothing is
executed but the shape and dtype rules of registered ops; and the memory is proportional to the text.
"""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np

from dualflow.core.dtypes import as_dtype
from dualflow.core.errors import DTypeError, DualflowError, InvalidArgumentError
from dualflow.core.records import dataclass, field
from dualflow.core.spec import TensorSpec
from dualflow.graph.body_specs import spec_of_bodies
from dualflow.graph.ir import Capture, Graph, Node, Origin, Update, Value
from dualflow.graph.literals import array_of, string
from dualflow.graph.text_lines import NAME, WORD, Resolver, TextLine, TextLines
from dualflow.ops.attribute_values import SYNTAXES, TEXT_OPS
from dualflow.ops.families import load_families
from dualflow.ops.op_kinds import Literal
from dualflow.ops.operand_attributes import has_operands, operand_form
from dualflow.ops.record import REGISTRY, Op

Array = np.ndarray[Any, Any]
_DEEPEST: Final = 64
"""Maximum nesting depth of graphs, and of parentheses."""
_INDENT: Final = 4
_VALUE: Final = re.compile("%" + NAME)
_REFERENCE: Final = re.compile("@" + NAME)
_GRAPH_NAME: Final = re.compile(r'("(?:[^"\\]|\\.)*"|[^\s("]+)')
_TITLE: Final = re.compile(r"(\w+(?:\[\d+\])?): ")
_NUMBER: Final = re.compile(r"-?(?:\d+(?:\.\d*)?(?:[eE][+-]?\d+)?|inf\b|nan\b)")
_STRING: Final = re.compile(r"""b?(?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")""")
_ELEMENTS: Final = re.compile(r"""(?:b'(?:[^'\\]|\\.)*'|b"(?:[^"\\]|\\.)*"|[^\s()'"@]|[ ](?=[^#)]))+""")
_COMMENT: Final = re.compile(r" {3}# (.+)$")
_LINE_OF_FILE: Final = re.compile(r"(.+):(\d{1,9})")
_WORDS: Final[dict[str, Any]] = {"None": None, "True": True, "False": False, "inf": math.inf, "nan": math.nan}


def parse(text: str, resolver: Resolver | None = None) -> Graph:
    """The graph of a text that :func:`~dualflow.graph.printer.text` printed.

    Args:
        text: the text; constants of more than 12 elements must not be cut short.
        resolver: returns the captures and stored constants; without it captures are names.

    Raises:
        InvalidArgumentError: the text is no graph, or its ops don't fit together; with the line.

    >>> graph = parse('''graph twice(%x: float32[2])
    ...     %0: float32[2] = add(%x, %x)
    ...     return %0''')
    >>> print(graph)
    graph twice(%x: float32[2])
        %0: float32[2] = add(%x, %x)
        return %0
    """
    graphs = parse_all(text, resolver)
    if len(graphs) != 1:
        raise InvalidArgumentError(f"{(resolver or Resolver()).file} has {len(graphs)} graphs, not one.")
    return graphs[0]


def parse_named(text: str, resolver: Resolver) -> tuple[Graph, dict[str, Value]]:
    """The one graph of a text, and its values by their names in the text. See :func:`parse`."""
    lines = TextLines(text.split("\n"), resolver)
    reader = _GraphReader(lines)
    graph = reader.graph()
    if lines.skip_empty():
        lines.next(0).fail("expected the end of the text")
    return graph, reader.values


def parse_all(text: str, resolver: Resolver | None = None) -> list[Graph]:
    """The graphs of a text, in which empty lines separate them. See :func:`parse`."""
    lines = TextLines(text.split("\n"), resolver or Resolver())
    graphs = []
    while lines.skip_empty():
        graphs.append(_GraphReader(lines).graph())
    return graphs


@dataclass(slots=True)
class _GraphReader:
    """Reads one graph and the graphs inside it.

    Attributes:
        lines: the text.
        margin: the number of spaces before the graph.
        depth: the number of graphs around it.
        variables: the captured variables of the outermost graph, by the names of their inputs.
        loops: the numbers in the derivations of loops, by those in the text.
    """

    lines: TextLines
    margin: int = 0
    depth: int = 0
    variables: dict[str, Any] = field(default_factory=dict)
    loops: dict[int, int] = field(default_factory=dict)
    values: dict[str, Value] = field(default_factory=dict)
    captures: list[Capture] = field(default_factory=list)
    title: str = ""

    def graph(self) -> Graph:
        line = self.lines.next(self.margin)
        if self.depth > _DEEPEST:
            line.fail(f"more than {_DEEPEST} graphs inside each other")
        if self.depth:
            self.title = line.need(_TITLE, "the name of an inner graph")[1]
        line.expect("graph ")
        name = line.name(_GRAPH_NAME, "the name of the graph")
        line.expect("(")
        inputs = list(_separated(line, self._input))
        line.end()
        nodes, updates = [], []
        inner = self.margin + _INDENT
        while True:
            line = self.lines.next(inner)
            if line.has("return "):
                break
            update = self._update(line)
            if update is not None:
                updates.append(update)
            elif updates:
                line.fail("expected another update, or return")
            else:
                nodes.append(self._node(line, name))
        outputs = [] if line.has("nothing") else list(_listed(line, self._value))
        line.end()
        return Graph(name, tuple(inputs), tuple(nodes), tuple(outputs), tuple(self.captures), tuple(updates))

    def _input(self, line: TextLine) -> Value:
        name = line.name(_VALUE, "an input")
        line.expect(": ")
        spec = line.spec(name if name != f"in{len(self.values)}" else None)
        captured = line.has(" = ")
        value = self._defined(line, name, Value(spec))
        if not captured:
            if self.captures:
                line.fail("arguments come before captures")
            return value
        variable = line.has("variable")
        if not variable:
            line.expect("captured tensor")
        elif self.captures and not self.captures[-1].variable:
            line.fail("captured variables come before captured tensors")
        reference = line.name(_REFERENCE, "a reference") if line.has(" ") else None
        source = self._resolved(line, self.lines.resolver.source, name, spec, variable, reference)
        self.captures.append(Capture(source, variable))
        if variable and not self.depth:
            self.variables[name] = source
        return value

    def _resolved(self, line: TextLine, resolve: Callable[..., Any], *args: Any) -> Any:
        try:
            return resolve(*args)
        except InvalidArgumentError as error:
            line.fail(error.message.rstrip("."))

    def _defined(self, line: TextLine, name: str, value: Value) -> Value:
        if name in self.values:
            line.fail(f"%{name} is defined twice")
        self.values[name] = value
        return value

    def _value(self, line: TextLine) -> Value:
        name = line.name(_VALUE, "a value")
        if name not in self.values:
            line.fail(f"%{name} is not defined before")
        return self.values[name]

    def _update(self, line: TextLine) -> Update | None:
        start = line.at
        if line.take(_VALUE) is None or not line.has(" <- "):
            line.at = start
            return None
        end, line.at = line.at, start
        target = self._value(line)
        line.at = end
        value = self._value(line)
        line.end()
        if target.node is not None or target.spec != value.spec:
            line.fail("only an input is updated, by a value of the same dtype and shape")
        return Update(target, value)

    # nodes

    def _node(self, line: TextLine, graph: str) -> Node:
        names, specs = self._results(line)
        op_name = line.need(WORD, "an op")[0]
        op = self.lines.resolver.ops.get(op_name) or _op(op_name)
        if op is None:
            line.fail(f"there is no op {op_name}")
        line.expect("(")
        inputs, attrs = self._arguments(line, op, specs)
        if has_operands(attrs):
            op = operand_form(op)
        origins = self._origins(line, graph)
        line.end()
        bodies = self._bodies()
        try:
            attrs = spec_of_bodies(op, inputs, attrs, bodies, self.loops)
            _check_call(op, len(inputs), attrs)
            inferred = op.specs([v.spec for v in inputs], dict(attrs))
        except DualflowError as error:
            line.fail(error.message.rstrip("."))
        except Exception as error:  # the rules of ops take their callers' attributes for valid
            line.fail(f"{op_name} does not take these operands ({type(error).__name__}: {error})")
        if tuple(inferred) != tuple(specs):
            line.fail(f"{op_name} gives ({', '.join(map(str, inferred))})")
        node = Node(op, inputs, attrs, specs, origins[0] if origins else None, tuple(origins[1:]))
        for name, value in zip(names, node.outputs, strict=True):
            self._defined(line, name, value)
        return node

    def _results(self, line: TextLine) -> tuple[list[str], list[TensorSpec]]:
        names: list[str] = []
        specs: list[TensorSpec] = []
        while not names or line.has(", "):
            if not names and not line.text.startswith("%", line.at):
                return names, specs
            names.append(line.name(_VALUE, "a result"))
            line.expect(": ")
            specs.append(line.spec())
        line.expect(" = ")
        return names, specs

    def _arguments(
        self, line: TextLine, op: Op, specs: Sequence[TensorSpec]
    ) -> tuple[list[Value], dict[str, Any]]:
        inputs: list[Value] = []
        attrs: dict[str, Any] = {}
        is_literal = isinstance(op.kind, Literal)

        def argument(line: TextLine) -> None:
            if line.text.startswith("%", line.at):
                if attrs:
                    line.fail("inputs come before attributes")
                inputs.append(self._value(line))
                return
            name = line.need(WORD, "an input or attribute")[0]
            line.expect("=")
            if name in attrs:
                line.fail(f"the attribute {name} is given twice")
            if is_literal and name == "value" and len(specs) == 1:
                attrs[name] = self._array(line, specs[0])
            else:
                attrs[name] = self._attribute(line, 0)

        list(_separated(line, argument))
        return inputs, attrs

    def _array(self, line: TextLine, spec: TensorSpec) -> Array:
        """The value of a constant."""
        if line.text.startswith("@", line.at):
            reference = line.name(_REFERENCE, "a reference")
            return self._stored(line, reference, spec)
        text = line.need(_ELEMENTS, "the elements of the constant")[0]
        if "..." in text:
            line.fail("the constant is cut short; save the graph to keep all of it")
        if not spec.shape.is_static or spec.size > len(text):
            line.fail(f"these are not the elements of {spec}")
        try:
            return array_of(text, spec.dtype.dtype, spec.shape)
        except (ValueError, OverflowError) as error:
            line.fail(str(error))

    def _stored(self, line: TextLine, reference: str, spec: TensorSpec) -> Array:
        """A stored constant, which has the dtype and shape of ``spec``."""
        array: Array = self._resolved(line, self.lines.resolver.constant, reference, spec)
        if array.dtype != spec.dtype.dtype or array.shape != spec.shape:
            line.fail(f"@{reference} has dtype {array.dtype} and shape {array.shape}, not {spec}")
        return array

    def _attribute(self, line: TextLine, depth: int) -> Any:
        """The value of an attribute: see the table of :mod:`dualflow.graph.literals`."""
        if depth > _DEEPEST:
            line.fail(f"more than {_DEEPEST} parentheses inside each other")
        start = line.text[line.at : line.at + 1]
        if start == "(":
            return self._tuple(line, depth)
        if start == "[":
            return line.shape()
        if start == "%":
            name = line.name(_VALUE, "a variable")
            if name not in self.variables:
                line.fail(f"%{name} is no captured variable")
            return self.variables[name]
        match = line.take(_STRING)
        if match is not None:
            try:
                return string(match[0])
            except ValueError as error:
                line.fail(str(error))
        match = line.take(_NUMBER)
        if match is not None:
            return _number(line, match[0])
        return self._word(line, depth)

    def _tuple(self, line: TextLine, depth: int) -> tuple[Any, ...]:
        line.expect("(")
        items: list[Any] = []
        while not line.has(")"):
            if items and not line.has(" "):
                line.fail("expected ')' or ', '")
            items.append(self._attribute(line, depth + 1))
            if not line.has(","):
                line.expect(")")
                if len(items) == 1:
                    line.fail("a tuple of one value has a comma after it")
                break
        return tuple(items)

    def _word(self, line: TextLine, depth: int) -> Any:
        start = line.at
        word = line.need(WORD, "the value of an attribute")[0]
        if word in _WORDS:
            return _WORDS[word]
        if line.text.startswith("[", line.at):
            line.at = start
            return line.spec()
        if line.has("("):
            return self._form(line, word, depth)
        try:
            return as_dtype(word)
        except DTypeError:
            line.fail(f"{word} is no dtype, and no other value that a graph may have")

    def _form(self, line: TextLine, name: str, depth: int) -> Any:
        """Parse a value with fields, such as ``window_layout(size=(2, 2), ...)``."""
        if name not in SYNTAXES:
            load_families()
        if name not in SYNTAXES:
            line.fail(f"there is no attribute value {name}(...)")
        fields: dict[str, Any] = {}

        def read(line: TextLine) -> None:
            field_name = line.need(WORD, "a field")[0]
            line.expect("=")
            if field_name in fields:
                line.fail(f"the field {field_name} is given twice")
            fields[field_name] = self._attribute(line, depth + 1)

        list(_separated(line, read))
        try:
            return SYNTAXES[name].make(**fields)
        except (DualflowError, TypeError, ValueError) as error:
            line.fail(f"{name} does not have these fields ({error})")

    def _origins(self, line: TextLine, graph: str) -> list[Origin]:
        match = line.take(_COMMENT)
        origins = []
        for place in match[1].split(", ") if match is not None else ():
            of_file = _LINE_OF_FILE.fullmatch(place)
            if of_file is None:
                line.fail(f"{place} is no line of a file")
            origins.append(Origin(of_file[1], int(of_file[2]), graph))
        return origins

    def _bodies(self) -> dict[str, Graph]:
        """The graphs inside of the node whose line was read last."""
        bodies: dict[str, Graph] = {}
        margin = self.margin + 2 * _INDENT
        while self.lines.indent == margin:
            reader = _GraphReader(self.lines, margin, self.depth + 1, self.variables, self.loops)
            body = reader.graph()
            if reader.title in bodies:
                raise InvalidArgumentError(
                    f"{self.lines.resolver.file}, line {self.lines.at}: {reader.title} is there twice."
                )
            bodies[reader.title] = body
        return bodies


def _separated(line: TextLine, read: Callable[[TextLine], Any]) -> Iterator[Any]:
    """The results of ``read`` for each comma-separated part, up to a closing parenthesis."""
    if line.has(")"):
        return
    yield from _listed(line, read)
    line.expect(")")


def _listed(line: TextLine, read: Callable[[TextLine], Any]) -> Iterator[Any]:
    yield read(line)
    while line.has(", "):
        yield read(line)


def _number(line: TextLine, text: str) -> int | float:
    try:
        return int(text) if text.lstrip("-").isdigit() else float(text)
    except ValueError as error:
        line.fail(str(error))


def _check_call(op: Op, count: int, attrs: Mapping[str, Any]) -> None:
    """Raise TypeError unless the kernel of ``op`` takes ``count`` arrays and ``attrs``."""
    if isinstance(op.kernel, np.ufunc):
        if count != op.kernel.nin or attrs:
            raise TypeError(f"it takes {op.kernel.nin} inputs and no attributes")
        return
    try:
        signature = inspect.signature(op.kernel)
    except ValueError:  # some built-in functions can't be inspected
        return
    signature.bind(*[None] * count, **attrs)


def _op(name: str) -> Op | None:
    if name not in REGISTRY and name not in TEXT_OPS:
        load_families()
    return REGISTRY.get(name) or TEXT_OPS.get(name)

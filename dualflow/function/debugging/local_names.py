"""Records the user's local names at each op of a trace, for the debugger's prompt.

For each op it stores the names that have changed since the op before: tensors as values of the graph;
numbers, strings, and lists of them as they are; other objects as weak references, so that a trace keeps none
alive.
"""

from __future__ import annotations

import inspect
import weakref
from collections.abc import Callable, Mapping, Sequence
from operator import is_not
from types import CodeType, FrameType
from typing import Any, Final

from dualflow.core.records import NamedTuple
from dualflow.function.tracing.symbolic_tensor import SymbolicTensor
from dualflow.graph.ir import Graph, GraphBuilder, Node, Origin, Value
from dualflow.graph.origin import calling_frame
from dualflow.ops.record import Op

_PLAIN: Final = frozenset({bool, int, float, complex, str, bytes, type(None)})
_MAX_ITEMS: Final = 16
"""The length of the longest list, tuple or dict whose items are recorded."""
_GENERATED: Final = (
    *("ag__", "do_return", "retval_", "break_", "continue_"),
    *("if_body", "else_body", "loop_body", "loop_test", "extra_test"),
)
"""Prefixes of the names that the conversion adds."""
_ABSENT: Final = object()


class Missing:
    """Stands in the debugger for a value that was not recorded; its repr is the reason."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def __repr__(self) -> str:
        return f"<{self._text}>"


class Scope(NamedTuple):
    """The names of one frame when an op was traced: those of ``before``, updated by ``changed``.

    Attributes:
        before: the scope of the op before; None for the first.
        changed: names with their recorded values.
        own: all local names of the function, whether assigned or not.
    """

    before: Scope | None
    changed: tuple[tuple[str, Any], ...]
    own: frozenset[str]

    def names(self) -> dict[str, Any]:
        """The recorded names, each with its value."""
        chain = []
        scope: Scope | None = self
        while scope is not None:
            chain.append(scope.changed)
            scope = scope.before
        return {name: x for changed in reversed(chain) for name, x in changed}


class _FrameNames:
    """The names of a frame at the last op, with those of the frames of the functions around it."""

    __slots__ = ("frames", "names", "scope", "values")

    def __init__(self, frame: FrameType) -> None:
        self.frames = _frames_of_function(frame)
        own = frozenset(name for f in self.frames for name in _names_of(f.f_code))
        self.scope = Scope(None, (), own)
        self.names: tuple[str, ...] = ()
        self.values: list[Any] = []

    def update(self) -> Scope:
        """The current scope."""
        frames = self.frames
        current = frames[0].f_locals if len(frames) == 1 else _all_names(frames)
        values, last = list(current.values()), self.values
        if len(values) == len(last) and not any(map(is_not, values, last)):
            return self.scope
        names = tuple(current)
        if names == self.names:
            pairs = zip(names, values, last, strict=True)
            changed = [(name, _recorded(x)) for name, x, y in pairs if x is not y]
        else:
            before = dict(zip(self.names, last, strict=True))
            changed = [(n, _recorded(x)) for n, x in current.items() if before.get(n, _ABSENT) is not x]
            changed += [(n, Missing(f"{n} is not assigned here")) for n in before.keys() - current.keys()]
        self.names, self.values = names, values
        self.scope = Scope(self.scope, tuple(changed), self.scope.own)
        return self.scope


class LocalNames:
    """The local names at the ops of one trace, including those of its bodies."""

    __slots__ = ("_frames", "at")

    def __init__(self) -> None:
        self.at: dict[Node, Scope] = {}
        self._frames: dict[FrameType, _FrameNames] = {}

    def record(self, node: Node) -> None:
        """Record the names of the user's frame that has called the op of ``node``."""
        frame = calling_frame()
        if frame is None or not frame.f_code.co_flags & inspect.CO_OPTIMIZED:  # a module's are its globals
            return
        frame_names = self._frames.get(frame)
        if frame_names is None:
            frame_names = self._frames[frame] = _FrameNames(frame)
        self.at[node] = frame_names.update()

    def end(self) -> None:
        """Release the frames of the trace."""
        self._frames.clear()


class NamingBuilder(GraphBuilder):
    """A builder that records the user's local names at each node, also in bodies."""

    def __init__(self, name: str, names: LocalNames) -> None:
        super().__init__(name)
        self.names = names

    def inner(self, name: str) -> NamingBuilder:
        return NamingBuilder(name, self.names)

    def add(
        self, op: Op, inputs: Sequence[Value], attrs: Mapping[str, Any], origin: Origin | None = None
    ) -> Node:
        node = super().add(op, inputs, attrs, origin)
        self.names.record(node)
        return node


class Names:
    """The local names at each op of a graph, with their values in a run of the graph.

    Args:
        graph: the graph that runs.
        function: the user's function, of which it is a trace.
        retrace: another trace of it, with the names at its ops; None if there is none.
    """

    def __init__(self, graph: Graph, function: Any, retrace: tuple[Graph, LocalNames] | None) -> None:
        matches = None if retrace is None else matched(graph, retrace[0])
        self._nodes, self._values = matches or ({}, {})
        self._at = retrace[1].at if retrace is not None and matches is not None else {}
        code = getattr(inspect.unwrap(getattr(function, "__func__", function)), "__code__", None)
        own = () if code is None else _names_of(code)
        self._unknown = {name: Missing(f"the trace keeps no value of {name}") for name in own}

    def shown(self, node: Node, tensors: Mapping[Value, Any]) -> dict[str, Any]:
        """The local names on the line of ``node``; ``tensors`` has those of the values computed so far.

        Names without a value are included, so that they are not taken for globals.
        """
        scope = self._at.get(self._nodes[node]) if node in self._nodes else None
        if scope is None:
            return dict(self._unknown)
        recorded = scope.names()
        names: dict[str, Any] = {
            name: Missing(f"{name} is not assigned here") for name in scope.own - recorded.keys()
        }

        def tensor_of(value: Value) -> Any:
            return tensors.get(self._values.get(value, value))

        names.update((name, _value(name, x, tensor_of)) for name, x in recorded.items())
        return {name: x for name, x in names.items() if not name.startswith(_GENERATED)}


def _names_of(code: CodeType) -> tuple[str, ...]:
    return (*code.co_varnames, *code.co_cellvars, *code.co_freevars)


def _frames_of_function(frame: FrameType) -> list[FrameType]:
    """The frames of one function; the branches and loops of a converted function have their own frames."""
    frames = [frame]
    outer = frame.f_back
    while outer is not None:
        code = frames[-1].f_code
        if outer.f_code.co_qualname == code.co_qualname and any(c is code for c in outer.f_code.co_consts):
            frames.append(outer)
        outer = outer.f_back
    return frames


def _all_names(frames: Sequence[FrameType]) -> dict[str, Any]:
    """The local names of several frames, of which the first is the innermost."""
    names: dict[str, Any] = {}
    for frame in reversed(frames):
        names.update(frame.f_locals)
    return names


class _Structure(NamedTuple):
    """A list, tuple or dict of recorded values."""

    kind: type
    parts: Any


def _recorded(x: Any, deep: bool = False) -> Any:
    kind = type(x)
    if kind is SymbolicTensor:
        return x._value
    if kind in _PLAIN:
        return x
    if kind in (list, tuple) and len(x) <= _MAX_ITEMS and not deep:
        return _Structure(kind, [_recorded(part, True) for part in x])
    if kind is dict and len(x) <= _MAX_ITEMS and not deep:
        return _Structure(kind, {key: _recorded(part, True) for key, part in x.items()})
    try:
        return weakref.ref(x)
    except TypeError:
        return _ABSENT


def _value(name: str, recorded: Any, tensor_of: Callable[[Value], Any]) -> Any:
    if isinstance(recorded, Value):
        tensor = tensor_of(recorded)
        return Missing(f"the trace keeps no value of {name} here") if tensor is None else tensor
    if isinstance(recorded, _Structure):
        if recorded.kind is dict:
            return {key: _value(f"{name}[{key!r}]", x, tensor_of) for key, x in recorded.parts.items()}
        return recorded.kind(_value(f"{name}[{i}]", x, tensor_of) for i, x in enumerate(recorded.parts))
    if isinstance(recorded, weakref.ref):
        referent = recorded()
        return Missing(f"{name} exists no more") if referent is None else referent
    return Missing(f"the trace keeps no value of {name}") if recorded is _ABSENT else recorded


def matched(graph: Graph, other: Graph) -> tuple[dict[Node, Node], dict[Value, Value]] | None:
    """The nodes of ``other`` by those of ``graph``, and the values of ``graph`` by those of ``other``.

    None if their ops, lines or shapes differ, which means that two traces of the function differ.
    """
    nodes: dict[Node, Node] = {}
    values: dict[Value, Value] = {}
    pending = [(graph, other)]
    while pending:
        a, b = pending.pop()
        if len(a.inputs) != len(b.inputs) or len(a.nodes) != len(b.nodes):
            return None
        values.update(zip(b.inputs, a.inputs, strict=True))
        for x, y in zip(a.nodes, b.nodes, strict=True):
            same = x.op.name == y.op.name and x.origin == y.origin and x.specs == y.specs
            if not same or tuple(map(values.get, y.inputs)) != x.inputs or len(x.bodies) != len(y.bodies):
                return None
            nodes[x] = y
            values.update(zip(y.outputs, x.outputs, strict=True))
            pending += [(p, q) for (_, p), (_, q) in zip(x.bodies, y.bodies, strict=True)]
    return nodes, values

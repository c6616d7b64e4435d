"""What the user's local names stood for as each op was traced, for the debugger's prompt.

A frame's names are noted where they have changed since the op before: tensors as the graph's values; numbers,
strings, and lists of those as they are; other objects weakly, so that a trace keeps nothing alive.
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
_MOST: Final = 16
_OWN: Final = (
    *("ag__", "do_return", "retval_", "break_", "continue_"),
    *("if_body", "else_body", "loop_body", "loop_test", "extra_test"),
)
"""How names of converted code begin that are not the user's."""
_ABSENT: Final = object()


class Missing:
    """Stands at the prompt for a name whose value the trace doesn't keep; printing it says so."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def __repr__(self) -> str:
        return f"<{self._text}>"


class Scope(NamedTuple):
    """The names of one frame when an op was traced: those of ``before``, but for what has changed.

    Attributes:
        before: of the op before; None for the first.
        changed: names, and what was noted of each.
        own: all names of the function, whether assigned or not.
    """

    before: Scope | None
    changed: tuple[tuple[str, Any], ...]
    own: frozenset[str]

    def names(self) -> dict[str, Any]:
        """All, each with what was noted of it."""
        chain = []
        scope: Scope | None = self
        while scope is not None:
            chain.append(scope.changed)
            scope = scope.before
        return {name: x for changed in reversed(chain) for name, x in changed}


class _Seen:
    """A frame as the op before has seen it, and the frames of the functions around it."""

    __slots__ = ("frames", "names", "scope", "values")

    def __init__(self, frame: FrameType) -> None:
        self.frames = _frames_of_function(frame)
        own = frozenset(name for f in self.frames for name in _names_of(f.f_code))
        self.scope = Scope(None, (), own)
        self.names: tuple[str, ...] = ()
        self.values: list[Any] = []

    def look(self) -> Scope:
        """The names now."""
        frames = self.frames
        now = frames[0].f_locals if len(frames) == 1 else _all_names(frames)
        values, last = list(now.values()), self.values
        if len(values) == len(last) and not any(map(is_not, values, last)):
            return self.scope
        names = tuple(now)
        if names == self.names:
            changed = [(name, _kept(x)) for name, x, y in zip(names, values, last, strict=True) if x is not y]
        else:
            before = dict(zip(self.names, last, strict=True))
            changed = [(n, _kept(x)) for n, x in now.items() if before.get(n, _ABSENT) is not x]
            changed += [(n, Missing(f"{n} is not assigned here")) for n in before.keys() - now.keys()]
        self.names, self.values = names, values
        self.scope = Scope(self.scope, tuple(changed), self.scope.own)
        return self.scope


class LocalNames:
    """The local names at the ops of one trace, those of its bodies included."""

    __slots__ = ("_seen", "at")

    def __init__(self) -> None:
        self.at: dict[Node, Scope] = {}
        self._seen: dict[FrameType, _Seen] = {}

    def note(self, node: Node) -> None:
        """Note the names of the frame that has asked for ``node``."""
        frame = calling_frame()
        if frame is None or not frame.f_code.co_flags & inspect.CO_OPTIMIZED:  # a module's are its globals
            return
        seen = self._seen.get(frame)
        if seen is None:
            seen = self._seen[frame] = _Seen(frame)
        self.at[node] = seen.look()

    def end(self) -> None:
        """Let go of what the trace's frames held."""
        self._seen.clear()


class NamingBuilder(GraphBuilder):
    """A builder that notes the user's local names at each node, of bodies too."""

    def __init__(self, name: str, names: LocalNames) -> None:
        super().__init__(name)
        self.names = names

    def inner(self, name: str) -> NamingBuilder:
        return NamingBuilder(name, self.names)

    def add(
        self, op: Op, inputs: Sequence[Value], attrs: Mapping[str, Any], origin: Origin | None = None
    ) -> Node:
        node = super().add(op, inputs, attrs, origin)
        self.names.note(node)
        return node


class Names:
    """The names at each op of a graph, with the values that it has there.

    Args:
        graph: what runs.
        function: the user's, of which it is a trace.
        again: another trace of it, and the names at the ops of that; None if there is none.
    """

    def __init__(self, graph: Graph, function: Any, again: tuple[Graph, LocalNames] | None) -> None:
        found = None if again is None else matched(graph, again[0])
        self._nodes, self._values = found or ({}, {})
        self._at = again[1].at if again is not None and found is not None else {}
        code = getattr(inspect.unwrap(getattr(function, "__func__", function)), "__code__", None)
        own = () if code is None else _names_of(code)
        self._unknown = {name: Missing(f"the trace keeps no value of {name}") for name in own}

    def shown(self, node: Node, known: Mapping[Value, Any]) -> dict[str, Any]:
        """The names where ``node`` was asked for; ``known`` has the tensors of the values that there are.

        Those that have no value are there too, so that no global is taken for them.
        """
        scope = self._at.get(self._nodes[node]) if node in self._nodes else None
        if scope is None:
            return dict(self._unknown)
        noted = scope.names()
        found: dict[str, Any] = {
            name: Missing(f"{name} is not assigned here") for name in scope.own - noted.keys()
        }

        def tensor_of(value: Value) -> Any:
            return known.get(self._values.get(value, value))

        found.update((name, _value(name, x, tensor_of)) for name, x in noted.items())
        return {name: x for name, x in found.items() if not name.startswith(_OWN)}


def _names_of(code: CodeType) -> tuple[str, ...]:
    return (*code.co_varnames, *code.co_cellvars, *code.co_freevars)


def _frames_of_function(frame: FrameType) -> list[FrameType]:
    """The frames of one function: where it was converted, its branches and loops are functions inside."""
    frames = [frame]
    outer = frame.f_back
    while outer is not None:
        code = frames[-1].f_code
        if outer.f_code.co_qualname == code.co_qualname and any(c is code for c in outer.f_code.co_consts):
            frames.append(outer)
        outer = outer.f_back
    return frames


def _all_names(frames: Sequence[FrameType]) -> dict[str, Any]:
    """The names in several frames, of which the first is the innermost."""
    found: dict[str, Any] = {}
    for frame in reversed(frames):
        found.update(frame.f_locals)
    return found


class _Structure(NamedTuple):
    """A list, tuple or dict of what was noted."""

    kind: type
    parts: Any


def _kept(x: Any, deep: bool = False) -> Any:
    kind = type(x)
    if kind is SymbolicTensor:
        return x._value
    if kind in _PLAIN:
        return x
    if kind in (list, tuple) and len(x) <= _MOST and not deep:
        return _Structure(kind, [_kept(part, True) for part in x])
    if kind is dict and len(x) <= _MOST and not deep:
        return _Structure(kind, {key: _kept(part, True) for key, part in x.items()})
    try:
        return weakref.ref(x)
    except TypeError:
        return _ABSENT


def _value(name: str, noted: Any, tensor_of: Callable[[Value], Any]) -> Any:
    if isinstance(noted, Value):
        found = tensor_of(noted)
        return Missing(f"the trace keeps no value of {name} here") if found is None else found
    if isinstance(noted, _Structure):
        if noted.kind is dict:
            return {key: _value(f"{name}[{key!r}]", x, tensor_of) for key, x in noted.parts.items()}
        return noted.kind(_value(f"{name}[{i}]", x, tensor_of) for i, x in enumerate(noted.parts))
    if isinstance(noted, weakref.ref):
        found = noted()
        return Missing(f"{name} exists no more") if found is None else found
    return Missing(f"the trace keeps no value of {name}") if noted is _ABSENT else noted


def matched(graph: Graph, other: Graph) -> tuple[dict[Node, Node], dict[Value, Value]] | None:
    """The nodes of ``other`` by those of ``graph``, and the values of ``graph`` by those of ``other``.

    None if the two are of different ops, lines or shapes: of a function that does not do the same twice.
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

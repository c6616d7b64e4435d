"""The engine that remembers: it runs ops on another engine and records them on tapes.

The other engine is the eager one or a trace, so a tape inside a traced function is this same code. Entering a tape
makes a new ``Recording`` current, which holds the tapes that were recording already; leaving makes one without it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from dualflow.core import dispatch
from dualflow.core.convert import Array
from dualflow.core.dispatch import AbstractTensor, Engine
from dualflow.eager.engine import fit, needs_float, ready
from dualflow.eager.tensor import EagerTensor, wrap
from dualflow.eager.variable import Variable
from dualflow.gradient.sweep import Record
from dualflow.ops.conversion import identity
from dualflow.ops.forms import Opaque
from dualflow.ops.record import Op

READ: Final = Op(
    name="read_variable",
    doc="The value of a variable when it was read.",
    infer=lambda variable: variable,
    kernel=lambda value: value,
    form=Opaque("a read is an input of the graph, never a node"),
    vjp=(lambda g, out, variable: g,),
)
_NOTHING: Final[dict[str, Any]] = {}
_record: Final = tuple.__new__  # the constructor of a NamedTuple without its Python call


class Tape:
    """Records of the ops that depend on what is watched.

    Attributes:
        records: what ran, in order.
        watched: the ids of the tensors and variables that matter.
        variables: the variables watched, by id, in the order they were first used.
        accessed: whether reading a trainable variable watches it.
    """

    __slots__ = ("_held", "accessed", "records", "variables", "watched")

    def __init__(self, accessed: bool) -> None:
        self.records: list[Record] = []
        self.watched: set[int] = set()
        self.variables: dict[int, Any] = {}
        self.accessed = accessed
        self._held: list[Any] = []  # keeps the watched alive, so that no other object gets an id that is watched

    def watch(self, tensor: Any) -> None:
        """Record what is computed from ``tensor``, from now on."""
        self.watched.add(id(tensor))
        self._held.append(tensor)

    def watch_variable(self, variable: Any) -> None:
        """Record what is computed from later reads of ``variable``."""
        self.watched.add(id(variable))
        self.variables[id(variable)] = variable

    def wants(self, variable: Any) -> bool:
        """Whether a read of ``variable`` is to be recorded."""
        if id(variable) in self.watched:
            return True
        if self.accessed and variable.trainable:
            self.watch_variable(variable)
            return True
        return False


class Recording(Engine):
    """``base`` with tapes that listen."""

    __slots__ = ("base", "eager", "tapes")

    def __init__(self, base: Engine, tapes: tuple[Tape, ...]) -> None:
        self.base = base
        self.tapes = tapes
        self.eager = base.eager

    @property
    def unrecorded(self) -> Engine:
        return self.base

    def unary(self, op: Op, x: Any) -> Any:
        if type(x) is Variable:
            x = self.read(x)
        if type(x) is EagerTensor and not needs_float(op, x._array.dtype):
            return self.run(op, (x,), _NOTHING)
        return self.run(op, op.prepare((x,), self), _NOTHING)

    def binary(self, op: Op, x: Any, y: Any) -> Any:
        if type(x) is Variable:
            x = self.read(x)
        if type(y) is Variable:
            y = self.read(y)
        if type(x) is EagerTensor:
            if type(y) is not EagerTensor:
                y = fit(y, x._array.dtype)
        elif type(y) is EagerTensor:
            x = fit(x, y._array.dtype)
        if type(x) is type(y) is EagerTensor and self.eager:
            dtype = x._array.dtype
            if dtype is y._array.dtype and not needs_float(op, dtype):
                return self.run(op, (x, y), _NOTHING)
        return self.run(op, op.prepare((x, y), self), _NOTHING)

    def apply(self, op: Op, inputs: tuple[Any, ...], attrs: dict[str, Any]) -> Any:
        if self.eager:
            inputs = tuple([self.read(x) if type(x) is Variable else x for x in inputs])
            if ready(op, inputs):
                return self.run(op, inputs, attrs)
        return self.run(op, op.prepare(inputs, self), attrs)

    def run(self, op: Op, inputs: tuple[Any, ...], attrs: dict[str, Any]) -> Any:
        result = self.base.run(op, inputs, attrs)
        if op.vjp is None and op.pullback is None:
            return result
        record = None
        for tape in self.tapes:
            watched = tape.watched
            for x in inputs:
                if id(x) in watched:
                    if record is None:
                        outputs = result if type(result) is tuple else (result,)
                        record = _record(Record, (op, inputs, outputs, attrs))
                    tape.records.append(record)
                    for y in record.outputs:
                        watched.add(id(y))
                    break
        return result

    def constant(self, array: Array) -> AbstractTensor:
        return self.base.constant(array)

    def adopt(self, tensor: AbstractTensor) -> AbstractTensor:
        adopted = self.base.adopt(tensor)
        if adopted is not tensor:  # a trace has captured it, and the tapes follow it there
            self._link(identity.op, tensor, adopted, [t for t in self.tapes if id(tensor) in t.watched])
        return adopted

    def read(self, variable: Any) -> AbstractTensor:
        value = self.base.read(variable)
        listening = [tape for tape in self.tapes if tape.wants(variable)]
        if not listening:
            return value
        read = self._alias(value)
        self._link(READ, variable, read, listening)
        return read

    def _link(self, op: Op, x: Any, y: Any, tapes: list[Tape]) -> None:
        """Record that ``y`` is ``x`` under another identity."""
        record = Record(op, (x,), (y,), _NOTHING)
        for tape in tapes:
            tape.records.append(record)
            tape.watched.add(id(y))

    def _alias(self, value: Any) -> AbstractTensor:
        """The value as an object of its own: what was read before the tape began is another tensor."""
        return wrap(value._array) if type(value) is EagerTensor else self.base.run(identity.op, (value,), {})

    def assign(self, variable: Any, value: Any) -> None:
        self.base.assign(variable, value)

    def create_variable(self, variable: Any, initial: Any) -> None:
        self.base.create_variable(variable, initial)


def recording(tape: Tape) -> bool:
    """Whether ``tape`` listens to the current engine."""
    engine = dispatch.current()
    return type(engine) is Recording and tape in engine.tapes


def listen(tape: Tape) -> None:
    """Let ``tape`` record what the current engine runs."""
    engine = dispatch.current()
    if type(engine) is Recording:
        dispatch.switch(Recording(engine.base, (*engine.tapes, tape)))
    else:
        dispatch.switch(Recording(engine, (tape,)))


def ignore(tape: Tape) -> None:
    """Let ``tape`` record no more; other tapes go on."""
    engine = dispatch.current()
    if type(engine) is Recording:
        rest = tuple([t for t in engine.tapes if t is not tape])
        dispatch.switch(Recording(engine.base, rest) if rest else engine.base)


def unrecorded(watch: Sequence[Tape] = ()) -> dispatch.using:
    """``with unrecorded():`` no tape records; with ``watch``, only these do."""
    base = dispatch.current().unrecorded
    return dispatch.using(Recording(base, tuple(watch)) if watch else base)

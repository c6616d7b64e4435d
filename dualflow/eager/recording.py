"""The recording engine: runs ops on another engine and records them on tapes.

The other engine is the eager one or a trace, so this code also serves tapes in traced functions. Entering a
tape makes a new ``Recording`` current, with this tape in addition to those that were recording already;
leaving makes one without it current.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from types import FrameType
from typing import Any, Final

import numpy as np

from dualflow.core import dispatch
from dualflow.core.delegating_engine import DelegatingEngine
from dualflow.core.dispatch import TENSORS, AbstractTensor, AbstractVariable, Engine
from dualflow.core.errors import DTypeError
from dualflow.core.traced_device import TRACED_DEVICE
from dualflow.core.warning import called_by_user, warn_user
from dualflow.eager.backward_cache import gradients_of_groups
from dualflow.eager.engine import convert_operands, is_promoted, needs_float
from dualflow.eager.tensor import EagerTensor
from dualflow.eager.variable import Variable
from dualflow.gradient.colocation import colocated
from dualflow.gradient.sweep import Records
from dualflow.ops.conversion import identity
from dualflow.ops.record import Op

_NOTHING: Final[dict[str, Any]] = {}
_NO_GRADIENT_WARNING: Final = (
    "A NumPy function computes with a tensor that a tape watches, and its result has no gradient. Use "
    "dualflow's functions, such as df.sin for np.sin; where no gradient is needed, use x.numpy()."
)
_float32: Final = np.dtype("float32")


class Tape:
    """Records of the ops that depend on watched tensors and variables.

    Attributes:
        records: the executed ops, in order.
        watched: the ids of watched tensors and of tensors that depend on them.
        variables: the watched variables, by id, in the order of their first use.
        reads: the tensors that reads of a watched variable returned, by the variable's id.
        accessed: whether reading a trainable variable watches it.
    """

    __slots__ = ("_held", "accessed", "reads", "records", "variables", "watched")

    def __init__(self, accessed: bool) -> None:
        self.records: Records = []
        self.watched: set[int] = set()
        self.variables: dict[int, Any] = {}
        self.reads: dict[int, list[Any]] = {}
        self.accessed = accessed
        self._held: list[Any] = []  # keeps watched tensors alive, so that their ids aren't reused

    def watch(self, tensor: Any) -> None:
        """Record computations that depend on ``tensor``, from now on."""
        self.watched.add(id(tensor))
        self._held.append(tensor)

    def watch_variable(self, variable: Any) -> None:
        """Record computations that depend on later reads of ``variable``."""
        self.variables[id(variable)] = variable

    def watches(self, value: Any) -> bool:
        """Whether computations that depend on a tensor or variable are recorded."""
        if isinstance(value, AbstractVariable):
            return id(value) in self.variables or (self.accessed and value.trainable)
        return id(value) in self.watched


def by_creation(variables: Iterable[Any]) -> tuple[Any, ...]:
    """Variables in the order of their creation."""
    return tuple(sorted(variables, key=lambda v: v.created))


class Recording(DelegatingEngine):
    """An engine that runs ops on ``base`` and records them on tapes."""

    __slots__ = ("_reads", "tapes")
    overrides_numpy = True

    def __init__(self, base: Engine, tapes: tuple[Tape, ...]) -> None:
        self.base = base  # not by super().__init__, which would take a tenth of the time of a tape
        self.eager = base.eager
        self.tapes = tapes
        # for each variable the last value read, and the tensor that was returned for it
        self._reads: dict[int, tuple[Any, Any]] = {}

    @property
    def unrecorded(self) -> Engine:
        return self.base

    def unary(self, op: Op, x: Any) -> Any:
        if type(x) is Variable:
            x = self.read(x)
        if type(x) is not EagerTensor or not self.eager:
            is_plain = self.base.computes(x)
        else:
            is_plain = not needs_float(op, x._array.dtype)
        if not is_plain:
            return op.run_on(self, (x,), _NOTHING)
        return self.record(op, (x,), _NOTHING, self.base.unary(op, x))

    def binary(self, op: Op, x: Any, y: Any) -> Any:
        if type(x) is not EagerTensor or type(y) is not EagerTensor:
            if type(x) is EagerTensor and type(y) is Variable:
                y = self.read(y)
            else:
                x, y = convert_operands(self, x, y)
            if type(x) is not EagerTensor or type(y) is not EagerTensor:
                if self.base.computes(x) and self.base.computes(y) and x.dtype is y.dtype:
                    return self.record(op, (x, y), _NOTHING, self.base.binary(op, x, y))
                return op.run_on(self, (x, y), _NOTHING)
        dtype = x._array.dtype
        if (
            not self.eager
            or dtype is not y._array.dtype
            or (dtype is not _float32 and needs_float(op, dtype))
        ):
            return op.run_on(self, (x, y), _NOTHING)
        return self.record(op, (x, y), _NOTHING, self.base.binary(op, x, y))

    def apply(self, op: Op, inputs: tuple[Any, ...], attrs: dict[str, Any]) -> Any:
        if not self.eager or not is_promoted(op, inputs):
            inputs = tuple([self.read(x) if type(x) is Variable else x for x in inputs])
            if not self.eager or not is_promoted(op, inputs):
                return op.run_on(self, inputs, attrs)
        return self.record(op, inputs, attrs, self.base.run(op, inputs, attrs))

    def run(self, op: Op, inputs: tuple[Any, ...], attrs: dict[str, Any]) -> Any:
        return self.record(op, inputs, attrs, self.base.run(op, inputs, attrs))

    def composite(self, rule: Callable[..., Any], x: Any, attrs: dict[str, Any]) -> Any:
        if any(id(x) in tape.watched for tape in self.tapes):
            return rule(x, **attrs)
        return self.base.composite(rule, x, attrs)

    def part(self, rule: Callable[[Any, Any], Any], x: Any, key: Any) -> Any:
        if type(x) is not EagerTensor or any(id(x) in tape.watched for tape in self.tapes):
            return rule(x, key)
        return self.base.part(rule, x, key)

    def generated(
        self, rule: Callable[..., Any], inputs: tuple[Any, ...], count: int, attrs: dict[str, Any]
    ) -> Any:
        return self.base.generated(rule, inputs, count, attrs)

    def record(self, op: Op, inputs: tuple[Any, ...], attrs: dict[str, Any], result: Any) -> Any:
        """Record an op on the tapes that watch one of its inputs; returns ``result``, its result."""
        if op.vjp is None and op.joint_vjp is None:
            return result
        if not self.eager:
            op = colocated(op, TRACED_DEVICE.get())
        for tape in self.tapes:
            watched = tape.watched
            for x in inputs:
                if id(x) in watched:
                    if type(result) is tuple:
                        tape.records.append((op, inputs, result, attrs))
                        watched.update(map(id, result))
                    else:
                        tape.records.append((op, inputs, (result,), attrs))
                        watched.add(id(result))
                    break
        return result

    def shallow_copy(self, tensor: Any) -> Any:
        return self.record(identity.op, (tensor,), _NOTHING, self.base.shallow_copy(tensor))

    def lift(self, tensor: AbstractTensor) -> AbstractTensor:
        lifted = self.base.lift(tensor)
        if lifted is not tensor:  # a trace has captured it
            for tape in self.tapes:
                if id(tensor) in tape.watched:
                    tape.records.append((identity.op, (tensor,), (lifted,), _NOTHING))
                    tape.watched.add(id(lifted))
        return lifted

    def is_traced(self, value: Any) -> bool:
        if isinstance(value, TENSORS) and any(tape.watches(value) for tape in self.tapes):
            return True
        return self.base.is_traced(value)

    def record_numpy_use(self, value: AbstractTensor | AbstractVariable, frame: FrameType) -> None:
        if not value.dtype.is_inexact or not any(tape.watches(value) for tape in self.tapes):
            return
        if called_by_user(frame):
            warn_user(_NO_GRADIENT_WARNING, frame)

    def read(self, variable: Any) -> Any:
        value = self.base.read(variable)
        key = id(variable)
        before = self._reads.get(key)
        if before is not None and before[0] is value:
            return before[1]
        read = None
        for tape in self.tapes:
            if key in tape.variables or (tape.accessed and variable.trainable):
                if read is None:
                    # A new tensor object: a tape doesn't watch the one that was read before it began.
                    read = self.base.shallow_copy(value)
                    self._reads[key] = value, read
                tape.variables[key] = variable
                tape.watched.add(id(read))
                if key in tape.reads:
                    tape.reads[key].append(read)
                else:
                    tape.reads[key] = [read]
        return value if read is None else read


def recording(tape: Tape) -> bool:
    """Whether ``tape`` records on the current engine."""
    engine = dispatch.current()
    return type(engine) is Recording and tape in engine.tapes


def start_recording(tape: Tape) -> None:
    """Record the ops of the current engine on ``tape``."""
    engine = dispatch.current()
    if type(engine) is Recording:
        dispatch.switch(Recording(engine.base, (*engine.tapes, tape)))
    else:
        dispatch.switch(Recording(engine, (tape,)))


def stop_recording(tape: Tape) -> None:
    """Stop recording on ``tape``; other tapes continue."""
    engine = dispatch.current()
    if type(engine) is Recording:
        other_tapes = () if engine.tapes == (tape,) else tuple([t for t in engine.tapes if t is not tape])
        dispatch.switch(Recording(engine.base, other_tapes) if other_tapes else engine.base)


def watch(tape: Tape, variable: Any) -> None:
    """Watch a variable on ``tape``; its next read returns a new tensor object."""
    tape.watch_variable(variable)
    engine = dispatch.current()
    if type(engine) is Recording:
        dispatch.switch(Recording(engine.base, engine.tapes))


def unrecorded(watch: Sequence[Tape] = ()) -> dispatch.using:
    """``with unrecorded():`` suspends all tapes, except those in ``watch``."""
    base = dispatch.current().unrecorded
    return dispatch.using(Recording(base, tuple(watch)) if watch else base)


def gradients(
    tape: Tape,
    targets: Sequence[Any],
    weights: Sequence[Any],
    sources: Sequence[Any],
    *,
    keep: bool = False,
    integers: bool = False,
) -> list[Any]:
    """The gradient of the weighted targets for each of ``sources``; None if the targets don't depend on it.

    The records are consumed unless ``keep``. Integer variables have no gradient, and integer tensors only
    with ``integers``.

    Raises:
        DTypeError: a source is not a tensor or variable.
    """
    groups: list[tuple[Any, ...]] = []
    for source in sources:
        if not isinstance(source, TENSORS):
            raise DTypeError(f"The sources of a gradient must be tensors and variables, not {source!r}.")
        if source.dtype.kind in "fc" or (integers and not isinstance(source, AbstractVariable)):
            # the gradient of a variable is the sum over all its reads
            groups.append((source, *tape.reads.get(id(source), ())))
        else:
            groups.append(())
    records = tape.records[:] if keep else tape.records
    return gradients_of_groups(records, targets, weights, groups)

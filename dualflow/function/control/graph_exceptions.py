"""``raise`` statements in branches of a graph: exceptions that the graph raises at run time.

The trace of a branch ends at its ``raise``, which becomes a check in the graph. After the check, the other
branch continues without a conditional.
"""

from __future__ import annotations

import linecache
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final, NoReturn

import numpy as np

from dualflow.core import dispatch
from dualflow.core.dispatch import AbstractVariable
from dualflow.core.dtypes import int32
from dualflow.core.errors import InvalidArgumentError
from dualflow.core.exception_names import exception_named, portable_name
from dualflow.core.records import dataclass, replace
from dualflow.core.spec import TensorSpec
from dualflow.core.tracebacks import USER_CODE
from dualflow.core.tree import LEAF, Structure, flatten, unflatten
from dualflow.eager.engine import EAGER
from dualflow.eager.tensor import wrap
from dualflow.function.control.control_nodes import cond_node
from dualflow.function.control.trace_bodies import Body, inner_tracer, operands, tracer_of
from dualflow.function.tracing.symbolic_tensor import SymbolicTensor
from dualflow.function.tracing.tracer import Tracer, tracing
from dualflow.graph import origin
from dualflow.graph.ir import Origin, Value
from dualflow.ops.attribute_values import AttributeSyntax, declare, in_text
from dualflow.ops.comparison import logical_not
from dualflow.ops.conversion import cast
from dualflow.ops.creation import convert_to_tensor
from dualflow.ops.op_kinds import Check, Opaque
from dualflow.ops.record import Effect, Op
from dualflow.ops.static import static_value

Array = np.ndarray[Any, Any]
SMALL_BYTES: Final = 1024
"""The most bytes of tensors that machine code copies for an exception; for more, it calls Python."""


@dataclass(frozen=True, slots=True, eq=False)
class Raising:
    """The exception of a ``raise`` statement, created by the statement's expression at each failure.

    Attributes:
        make: the expression, as a function of the values that it reads.
        structure: the structure of these values.
        leaves: the leaves of these values, with ``_AT_RUN_TIME`` for tensors.
        location: the statement's line.
        summary: the message without values of tensors; None if the expression has none.
    """

    make: Callable[..., Any]
    structure: Structure
    leaves: tuple[Any, ...]
    location: Origin | None
    summary: str | None = None

    def __call__(self, arrays: Sequence[Array]) -> BaseException:
        """The exception for the values of the tensors that its expression reads."""
        values = iter(arrays)
        leaves = [wrap(next(values)) if type(leaf) is _RuntimeTensor else leaf for leaf in self.leaves]
        with dispatch.using(EAGER):
            result = self.make(*unflatten(self.structure, leaves))
            error: BaseException = result() if isinstance(result, type) else result
        if self.location is not None:
            line = linecache.getline(self.location.file, self.location.line).strip()
            error.add_note(f"{USER_CODE}\n  {self.location}\n    {line}")
        return error

    def example(self) -> BaseException:
        """The exception for tensors of zeros; exceptions for other tensors have the same class."""
        try:
            return self([np.zeros(()) for leaf in self.leaves if type(leaf) is _RuntimeTensor])
        except Exception:  # an expression that needs the tensors as they are at run time
            return InvalidArgumentError("")

    @property
    def static_message(self) -> str:
        """The message for programs that can't show values of tensors: the summary, or else the statement."""
        if self.summary is not None:
            return self.summary
        if self.location is not None and any(type(leaf) is _RuntimeTensor for leaf in self.leaves):
            statement = linecache.getline(self.location.file, self.location.line).strip()
            return f"raised by {statement or self}"
        error = self.example()
        return str(error.args[0]) if len(error.args) == 1 else str(error)

    def __repr__(self) -> str:
        return "an exception" if self.location is None else f"the exception of line {self.location.line}"


def _line_of(raising: Raising) -> tuple[str, int, str] | None:
    """The file, line and function of the statement."""
    location = raising.location
    return None if location is None else (os.path.basename(location.file), location.line, location.function)


def _fields_of(raising: Raising) -> dict[str, Any]:
    """The class, message and line of the exception, whose expression is evaluated."""
    kind = portable_name(type(raising.example()))
    return {"error": kind, "message": raising.static_message, "line": _line_of(raising)}


def _restored(error: str, message: str, line: tuple[str, int, str] | None) -> Raising:
    kind = exception_named(error)
    location = None if line is None else Origin(str(line[0]), int(line[1]), str(line[2]))
    return Raising(lambda: kind(message), flatten([])[1], (), location)


class _RuntimeTensor:
    """A placeholder for a tensor whose value is known at run time."""

    __slots__ = ()


_AT_RUN_TIME: Final = _RuntimeTensor()
declare(Raising, AttributeSyntax("exception", _fields_of, _restored, identity=_line_of))


class BranchRaised(BaseException):
    """Ends the trace of a branch at a ``raise``.

    Not an Exception, so that the user's ``except`` clauses do not catch it.
    """

    def __init__(self, raising: Raising | None, tensors: Sequence[Any] = ()) -> None:
        super().__init__()
        self.raising = raising
        self.tensors = tuple(tensors)


_deferred: ContextVar[list[Exception] | None] = ContextVar("dualflow_deferred_errors", default=None)
_conditional: ContextVar[tuple[Tracer, ...]] = ContextVar("dualflow_conditional", default=())


@contextmanager
def conditional(tracer: Tracer) -> Iterator[None]:
    """A context in which ``tracer`` records conditional code: a ``raise`` becomes a check in the graph."""
    token = _conditional.set((*_conditional.get(), tracer))
    try:
        yield
    finally:
        _conditional.reset(token)


@contextmanager
def trace_boundary() -> Iterator[None]:
    """The context in which a function is traced.

    It catches :class:`Ended`, if all branches end with a ``raise``.

    Raises:
        InvalidArgumentError: the error of :func:`raise_at_boundary`, even if the user's ``except`` caught it.
    """
    errors: list[Exception] = []
    token = _deferred.set(errors)
    try:
        yield
    except BranchRaised:
        pass
    finally:
        _deferred.reset(token)
        if errors:
            raise errors[0]


def raise_at_boundary(error: Exception) -> NoReturn:
    """Raise ``error`` here, and again at the end of the trace if user code catches it."""
    errors = _deferred.get()
    if errors is not None:
        errors.append(error)
    raise error


def is_conditional() -> bool:
    """Whether the current trace records code under a condition."""
    engine = dispatch.current().innermost
    return any(engine is tracer for tracer in _conditional.get())


def end_of_branch(make: Callable[..., Any], reads: Sequence[Any], summary: str | None = None) -> BranchRaised:
    """The exception that ends the trace of the current branch at ``raise make(*reads)``."""
    engine = dispatch.current()
    leaves, structure = flatten(list(reads))
    leaves = [engine.read(x) if isinstance(x, AbstractVariable) else x for x in leaves]
    tensors = [x for x in leaves if type(x) is SymbolicTensor]
    placeholders = [_AT_RUN_TIME if type(x) is SymbolicTensor else x for x in leaves]
    return BranchRaised(Raising(make, structure, tuple(placeholders), origin.caller(), summary), tensors)


def require(
    holds: Any, make: Callable[..., Exception], reads: Sequence[Any], summary: str | None = None
) -> Any:
    """Raise ``make(*reads)`` unless the bool scalar ``holds`` is true: eagerly, or when the graph runs.

    If ``holds`` and all that ``make`` reads are constants of the trace, the error is raised while tracing.
    ``make`` is called with tensors that have values. ``summary`` is the message of exported programs, which
    show no values.

    Returns:
        In an explicit graph the operation that checks; else None.
    """
    constant = static_value(holds)
    if constant is not None and constant:
        return None
    if dispatch.current().eager:
        raise make(*reads)
    ended = end_of_branch(make, reads, summary)
    assert ended.raising is not None
    if constant is not None:
        arrays = [value for x in ended.tensors if (value := static_value(x)) is not None]
        if len(arrays) == len(ended.tensors):
            raise ended.raising(arrays)
    operation = _stop_unless(holds, ended.raising, ended.tensors)
    return None if isinstance(operation, tuple) else operation


@dataclass(slots=True, eq=False)
class TracedBranch:
    """The trace of a branch; ``ended`` is set if it ends with a ``raise``."""

    tracer: Tracer
    ended: BranchRaised | None = None

    def trace(self, run: Callable[[], Any]) -> Any:
        """The result of ``run``, traced; None if it ended with a ``raise``."""
        with tracing(self.tracer), conditional(self.tracer):
            try:
                return run()
            except BranchRaised as ended:
                self.ended = ended
                return None


def check(holds: Any, branch: TracedBranch) -> None:
    """Add a check to the graph that raises the exception of ``branch`` if ``holds`` is false."""
    ended, inner = branch.ended, branch.tracer
    assert ended is not None
    tracer = tracer_of(dispatch.current())
    sources = {value: c.source for value, c in inner.builder.captures}
    reads = [sources.get(x._value) if _is_of(x, inner) else x for x in ended.tensors]
    effects = any(node.effect is not None for node in inner.builder.nodes) or inner.updates()
    if ended.raising is not None and not effects and all(x is not None for x in reads):
        _stop_unless(holds, ended.raising, operands(reads))
    else:
        with tracing(inner):
            end_with_failing_check(ended)
        empty = Body(inner_tracer("nothing"), (), LEAF, ())
        cond_node(cast(holds, int32), [Body(inner, (), LEAF, ()), empty])
    flag, truth = without_negations(holds)
    tracer.proven_values[flag] = truth


def end_with_failing_check(ended: BranchRaised) -> BranchRaised:
    """The exception that ends the current trace, whose graph gets a check that always fails."""
    if ended.raising is not None:
        _stop_unless(convert_to_tensor(False), ended.raising, ended.tensors)
    return BranchRaised(None)


def proven_value(tensor: SymbolicTensor) -> bool | None:
    """The value of a bool ``tensor`` that an earlier check implies; None if none does."""
    flag, truth = without_negations(tensor)
    tracer: Tracer | None = tracer_of(dispatch.current())
    while tracer is not None:
        if flag in tracer.proven_values:
            return tracer.proven_values[flag] is truth
        tracer = tracer.outer
    return None


def without_negations(tensor: SymbolicTensor) -> tuple[Value, bool]:
    """A value, and whether ``tensor`` is equal to it (True) or to its negation (False)."""
    flag, truth = tensor._value, True
    while flag.node is not None and flag.node.op is logical_not.op:
        flag, truth = flag.node.inputs[0], not truth
    return flag, truth


def _is_of(x: Any, tracer: Tracer) -> bool:
    return type(x) is SymbolicTensor and x._tracer is tracer


def _stop_unless(holds: Any, raising: Raising, tensors: Sequence[Any]) -> Any:
    tracer = tracer_of(dispatch.current())
    inputs = tuple(map(tracer.lift, (holds, *tensors)))
    is_static = all(x.shape.is_static for x in tensors)
    small = is_static and sum(x.spec.nbytes for x in tensors) <= SMALL_BYTES
    with origin.forced(raising.location):
        return tracer.run(RAISE if small else RAISE_LARGE, inputs, {"error": raising})


def _infer(holds: TensorSpec, *reads: TensorSpec, error: Raising) -> tuple[TensorSpec, ...]:
    return ()


def _run(holds: Array, *reads: Array, error: Raising) -> tuple[Array, ...]:
    if not holds:
        raise error([x.copy() for x in reads])
    return ()


RAISE: Final = in_text(
    Op(
        name="raise",
        doc="Raises ``error``, created from the other inputs, if the first input, a bool scalar, is false.",
        infer=_infer,
        kernel=_run,
        kind=Check(),
        outputs=None,
        effect=Effect.CHECK,
    )
)

RAISE_LARGE: Final = in_text(
    replace(RAISE, name="raise_large", kind=Opaque("the exception contains large tensors"))
)

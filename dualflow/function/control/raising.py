"""Exceptions that a graph raises when it runs: the user's own, where the branch that asks for it is taken.

While tracing, the branch ends at its ``raise``. What becomes of it is a check in the graph, behind which the
other branch goes on as if there were no conditional.
"""

from __future__ import annotations

import linecache
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final, NoReturn

import numpy as np

from dualflow.core import dispatch
from dualflow.core.dispatch import AbstractVariable
from dualflow.core.dtypes import int32
from dualflow.core.records import dataclass, replace
from dualflow.core.spec import TensorSpec
from dualflow.core.tracebacks import USER_CODE
from dualflow.core.tree import LEAF, Structure, flatten, unflatten
from dualflow.eager.engine import EAGER
from dualflow.eager.tensor import wrap
from dualflow.function.control.bodies import Body, inner_tracer, operands, tracer_of
from dualflow.function.control.control_nodes import cond_node
from dualflow.function.tracing.symbolic_tensor import SymbolicTensor
from dualflow.function.tracing.tracer import Tracer, tracing
from dualflow.graph import origin
from dualflow.graph.ir import Origin, Value
from dualflow.ops.comparison import logical_not
from dualflow.ops.conversion import cast
from dualflow.ops.creation import convert_to_tensor
from dualflow.ops.op_kinds import Check, Opaque
from dualflow.ops.record import Effect, Op
from dualflow.ops.static import known_value

Array = np.ndarray[Any, Any]
KEPT_BYTES: Final = 1024
"""Tensors of so many bytes are kept for an exception by machine code; for larger ones Python is called."""


@dataclass(frozen=True, slots=True, eq=False)
class Raising:
    """What a ``raise`` statement raises, made anew by its own expression each time.

    Attributes:
        make: the expression, as a function of what it reads.
        structure: of what it reads.
        leaves: the parts of that; ``_GIVEN`` for tensors, which it gets when it runs.
        place: the statement's line.
    """

    make: Callable[..., Any]
    structure: Structure
    leaves: tuple[Any, ...]
    place: Origin | None

    def __call__(self, arrays: Sequence[Array]) -> BaseException:
        """The exception, given the tensors that its expression reads."""
        given = iter(arrays)
        leaves = [wrap(next(given)) if type(leaf) is _RuntimeTensor else leaf for leaf in self.leaves]
        with dispatch.using(EAGER):
            made = self.make(*unflatten(self.structure, leaves))
            found: BaseException = made() if isinstance(made, type) else made
        if self.place is not None:
            line = linecache.getline(self.place.file, self.place.line).strip()
            found.add_note(f"{USER_CODE}\n  {self.place}\n    {line}")
        return found

    def __repr__(self) -> str:
        return "an exception" if self.place is None else f"the exception of line {self.place.line}"


class _RuntimeTensor:
    """Stands for a tensor whose value is known when the graph runs."""

    __slots__ = ()


_GIVEN: Final = _RuntimeTensor()


class Ended(BaseException):
    """The branch that is traced ends with a ``raise``: nothing after it runs.

    Not an Exception, so that the user's ``except`` clauses let it pass.
    """

    def __init__(self, raising: Raising | None, tensors: Sequence[Any] = ()) -> None:
        super().__init__()
        self.raising = raising
        self.tensors = tuple(tensors)


_refused: ContextVar[list[Exception] | None] = ContextVar("dualflow_refused", default=None)
_conditional: ContextVar[tuple[Tracer, ...]] = ContextVar("dualflow_conditional", default=())


@contextmanager
def conditional(tracer: Tracer) -> Iterator[None]:
    """In the block ``tracer`` records what runs under a condition: its exceptions are the graph's."""
    token = _conditional.set((*_conditional.get(), tracer))
    try:
        yield
    finally:
        _conditional.reset(token)


@contextmanager
def whole() -> Iterator[None]:
    """The block in which a function is traced, which has no result if all its branches end with a ``raise``.

    Raises:
        InvalidArgumentError: what :func:`refuse` was given, also where the user's ``except`` has caught it.
    """
    refused: list[Exception] = []
    token = _refused.set(refused)
    try:
        yield
    except Ended:
        pass
    finally:
        _refused.reset(token)
        if refused:
            raise refused[0]


def refuse(error: Exception) -> NoReturn:
    """Raise ``error`` here, and again when the function has been traced."""
    refused = _refused.get()
    if refused is not None:
        refused.append(error)
    raise error


def is_conditional() -> bool:
    """Whether the current trace records what runs under a condition."""
    engine = dispatch.current().innermost
    return any(engine is tracer for tracer in _conditional.get())


def end(make: Callable[..., Any], reads: Sequence[Any]) -> Ended:
    """The end of the current branch by ``raise make(*reads)``."""
    engine = dispatch.current()
    leaves, structure = flatten(list(reads))
    leaves = [engine.read(x) if isinstance(x, AbstractVariable) else x for x in leaves]
    tensors = [x for x in leaves if type(x) is SymbolicTensor]
    kept = [_GIVEN if type(x) is SymbolicTensor else x for x in leaves]
    return Ended(Raising(make, structure, tuple(kept), origin.caller()), tensors)


def require(holds: Any, make: Callable[..., Exception], reads: Sequence[Any]) -> Any:
    """Raise ``make(*reads)`` unless the bool scalar ``holds``: now, or where the graph runs.

    What is known while tracing, all that ``make`` reads included, is refused then. ``make`` gets tensors with
    values.

    Returns:
        The operation that checks, in an explicit graph; else None.
    """
    known = known_value(holds)
    if known is not None and known:
        return None
    if dispatch.current().eager:
        raise make(*reads)
    ended = end(make, reads)
    assert ended.raising is not None
    if known is not None:
        arrays = [value for x in ended.tensors if (value := known_value(x)) is not None]
        if len(arrays) == len(ended.tensors):
            raise ended.raising(arrays)
    made = _stop_unless(holds, ended.raising, ended.tensors)
    return None if isinstance(made, tuple) else made


@dataclass(slots=True, eq=False)
class TracedBranch:
    """A traced branch, and how it ended if by a ``raise``."""

    tracer: Tracer
    ended: Ended | None = None

    def trace(self, run: Callable[[], Any]) -> Any:
        """What ``run`` returns, traced; None if it ended."""
        with tracing(self.tracer), conditional(self.tracer):
            try:
                return run()
            except Ended as ended:
                self.ended = ended
                return None


def check(holds: Any, branch: TracedBranch) -> None:
    """Stop the graph where it runs, with what ``branch`` ended with, unless ``holds``, a bool scalar."""
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
            stop(ended)
        nothing = Body(inner_tracer("nothing"), (), LEAF, ())
        cond_node(cast(holds, int32), [Body(inner, (), LEAF, ()), nothing])
    flag, truth = stripped(holds)
    tracer.proven[flag] = truth


def stop(ended: Ended) -> Ended:
    """Stop the current trace's graph here. Returns the exception that ends the trace, to be raised."""
    if ended.raising is not None:
        _stop_unless(convert_to_tensor(False), ended.raising, ended.tensors)
    return Ended(None)


def settled(symbol: SymbolicTensor) -> bool | None:
    """The value of a bool ``symbol`` that an earlier check implies; None if none does."""
    flag, truth = stripped(symbol)
    tracer: Tracer | None = tracer_of(dispatch.current())
    while tracer is not None:
        if flag in tracer.proven:
            return tracer.proven[flag] is truth
        tracer = tracer.outer
    return None


def stripped(symbol: SymbolicTensor) -> tuple[Value, bool]:
    """``symbol`` without negations: a value, and whether it is that value or its negation."""
    flag, truth = symbol._value, True
    while flag.node is not None and flag.node.op is logical_not.op:
        flag, truth = flag.node.inputs[0], not truth
    return flag, truth


def _is_of(x: Any, tracer: Tracer) -> bool:
    return type(x) is SymbolicTensor and x._tracer is tracer


def _stop_unless(holds: Any, raising: Raising, tensors: Sequence[Any]) -> Any:
    tracer = tracer_of(dispatch.current())
    inputs = tuple(map(tracer.lift, (holds, *tensors)))
    known = all(x.shape.is_static for x in tensors)
    small = known and sum(x.spec.nbytes for x in tensors) <= KEPT_BYTES
    with origin.forced(raising.place):
        return tracer.run(RAISE if small else RAISE_LARGE, inputs, {"error": raising})


def _infer(holds: TensorSpec, *reads: TensorSpec, error: Raising) -> tuple[TensorSpec, ...]:
    return ()


def _run(holds: Array, *reads: Array, error: Raising) -> tuple[Array, ...]:
    if not holds:
        raise error([x.copy() for x in reads])
    return ()


RAISE: Final = Op(
    name="raise",
    doc="Raises ``error`` of the other inputs where the first, a bool scalar, is false.",
    infer=_infer,
    kernel=_run,
    kind=Check(),
    outputs=None,
    effect=Effect.CHECK,
)

RAISE_LARGE: Final = replace(RAISE, kind=Opaque("large tensors stand in the exception"))

"""A call that ``compare`` and ``verify`` run eagerly and compiled, each time from the same state."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np

from dualflow.core import dispatch
from dualflow.core.dispatch import AbstractVariable
from dualflow.core.errors import DTypeError, FailedPreconditionError
from dualflow.core.records import dataclass
from dualflow.core.tree import flatten
from dualflow.eager.engine import EAGER
from dualflow.function.bound_method import BoundFunction
from dualflow.function.concrete import ConcreteFunction
from dualflow.function.decorator import function
from dualflow.function.inspect.agreement import Outcome
from dualflow.function.inspect.measure import GlobalRandom, State, TimedCall
from dualflow.function.run_eagerly import functions_run_eagerly, run_functions_eagerly
from dualflow.function.traced_function import Function
from dualflow.function.tracing.python_draws import FrozenRead
from dualflow.ops.random_numbers.streams import drawing_as_eager


@dataclass(frozen=True, slots=True, eq=False)
class InspectedCall:
    """A call of a function, and the state that it may change.

    Attributes:
        traced: the :func:`dualflow.function`.
        concrete: its trace for this call.
        inputs: the tensors and variables among the arguments.
        state: the variables and generators that the call may change.
        args: the positional arguments.
        kwargs: the keyword arguments.
    """

    traced: Any
    concrete: ConcreteFunction
    inputs: Sequence[Any]
    state: State
    args: tuple[Any, ...]
    kwargs: dict[str, Any]

    def timed_call(self, *, eagerly: bool) -> TimedCall:
        """The eager or the compiled call, preceded by a reset of the state."""
        function = self.traced.python_function if eagerly else self.traced
        return TimedCall(function, self.args, self.kwargs, partial(self._prepare, eagerly))

    def outcome(self, *, eagerly: bool) -> Outcome:
        """The results of one call, and the values of the variables after it."""
        leaves, structure = flatten(self.timed_call(eagerly=eagerly)())
        return Outcome(structure, [np.array(leaf) for leaf in leaves], self.state.values())

    def frozen_reads(self) -> list[FrozenRead]:
        """The reads of Python's and NumPy's generators and clocks that a new trace of the call freezes."""
        self._prepare(eagerly=False)
        call = self.traced._signature.bind(self.args, self.kwargs)
        reads: list[FrozenRead] = self.traced._tracer.frozen_reads(call)
        return reads

    def arguments(self) -> str:
        """The specs of the arguments, with the names of the parameters."""
        named_leaves = zip(self.concrete.leaf_names, self.concrete.key.leaves, strict=True)
        return ", ".join(f"{name}: {leaf}" for name, leaf in named_leaves)

    def _prepare(self, eagerly: bool) -> None:
        self.state.reset()
        run_functions_eagerly(eagerly)


@contextmanager
def inspect_call(by: str, f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Iterator[InspectedCall]:
    """The call ``f(*args, **kwargs)``, for the function named ``by``; its state is restored at the end.

    Raises:
        DTypeError: ``f`` is not callable.
        FailedPreconditionError: called while a function is traced, a tape records or numerics are checked.
    """
    if dispatch.current() is not EAGER:
        raise FailedPreconditionError(
            f"{by} runs a function several times, which can't be traced, recorded or checked: call it "
            "outside of functions and tapes, and without df.debugging.enable_check_numerics."
        )
    if not callable(f):
        raise DTypeError(f"{by} takes a function and its arguments; {f!r} can't be called.")
    traced = f if isinstance(f, Function | BoundFunction) else function(f)
    with drawing_as_eager():
        yield from _with_restored_state(traced, args, kwargs)


def _with_restored_state(
    traced: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Iterator[InspectedCall]:
    random_states = GlobalRandom()
    concrete = traced.get_concrete_function(*args, **kwargs)
    inputs = traced._signature.bind(args, kwargs).inputs
    variables = [*concrete.variables, *(x for x in inputs if isinstance(x, AbstractVariable))]
    state = State(concrete.graph, variables, random_states)
    eagerly = functions_run_eagerly()
    try:
        yield InspectedCall(traced, concrete, inputs, state, args, kwargs)
    finally:
        state.restore()
        run_functions_eagerly(eagerly)

"""Decisions of ops about symbolic sizes: comparisons that the sizes of one call decide, as guards.

An op that needs sizes as numbers, such as ``split``, is recorded with symbolic sizes; where its code compares
them, the sizes of a call decide, and the program gets a guard. It serves the calls for whose sizes all guards
have the same outcome. The code is deterministic, so these are the calls for which it decides alike.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

from dualflow.graph.capabilities import Capabilities
from dualflow.graph.ir import Node, Value
from dualflow.graph.size_guards import SizeGuard, SizeGuards
from dualflow.graph.symbolic_size_ops import Axis
from dualflow.ops.op_kinds import Opaque
from dualflow.sizes.size_functions import equal_for_all, less_for_all
from dualflow.sizes.symbolic_sizes import (
    SIZE_DECISIONS,
    SizeVariable,
    SymInt,
    UndecidedSize,
    evaluate_size,
    size_variables,
)

_NO_NUMBERS: Final[Mapping[SizeVariable, int]] = {}


class FixedSize(UndecidedSize):
    """The error for an op that compares sizes which are equal where ``variable`` is ``number``."""

    def __init__(self, variable: SizeVariable, number: int) -> None:
        super().__init__(f"an op decides that the size {variable.name} is {number}")
        self.variable = variable
        self.number = number


class CallSizes:
    """The sizes of the call that a program is recorded for, and the guards found when it was recorded.

    Args:
        sizes: the size of each dynamic axis of an argument.
    """

    def __init__(self, sizes: Mapping[Axis, int]) -> None:
        self.sizes = sizes
        self._guards: list[SizeGuards] = []

    def add(self, guards: SizeGuards) -> None:
        """Add guards that an inference has found."""
        self._guards = [*self._guards, guards]

    def decide_alike(self, inputs: Sequence[Any]) -> bool:
        """Whether all guards have the same outcome for the shapes of ``inputs``."""
        return all(guards.hold(inputs) for guards in self._guards)


class SizesOfPart(CallSizes):
    """The sizes of a call for a part of its graph, which has the same size variables and other arguments.

    Args:
        call_sizes: the sizes of the call, which get the guards.
        axes: for an axis of an argument of the part, the axis of an argument of the call with the same size.
    """

    def __init__(self, call_sizes: CallSizes, axes: Mapping[Axis, Axis]) -> None:
        super().__init__({axis: call_sizes.sizes[source] for axis, source in axes.items()})
        self._call_sizes = call_sizes
        self._axes = axes

    def add(self, guards: SizeGuards) -> None:
        """Add guards to those of the call."""
        axes = {variable: self._axes[axis] for variable, axis in guards.axes.items()}
        self._call_sizes.add(SizeGuards(axes, guards.guards))


class GuardedDecisions:
    """Decides comparisons by the sizes of a call.

    Equal polynomials in size variables are refused, since the other nodes of the graph have both of them. If
    they are equal because a size variable is some number, the graph is recorded again with the number in its
    place; other calls are traced for their shapes. That an axis of n elements has an even number of them is a
    guard.

    Args:
        numbers: the number of each size variable in the call. Without any, for a program of no particular
            call, a comparison that depends on sizes is refused.
        record: called with each new guard.

    Attributes:
        guards: the decisions so far.
        computed: size variables that the program computes, of which sizes equal only themselves.
    """

    def __init__(
        self,
        numbers: Mapping[SizeVariable, int] = _NO_NUMBERS,
        record: Callable[[SizeGuard], object] = lambda guard: None,
    ) -> None:
        self._numbers = numbers
        self._record = record
        self.guards: dict[tuple[bool, str, str], SizeGuard] = {}
        self.computed: frozenset[SizeVariable] = frozenset()

    def equal(self, x: int, y: int) -> bool:
        """Whether ``x == y`` in the call; a guard unless it holds for no or all sizes.

        Raises:
            FixedSize: they are equal in the call, since a size variable is 0 or another number.
            UndecidedSize: they are equal in the call, but differ as polynomials in size variables.
        """
        decided = equal_for_all(x, y)
        if decided is not None:
            return decided
        return size_variables(x - y).isdisjoint(self.computed) and self._decided(x, y, equality=True)

    def less(self, x: int, y: int) -> bool:
        """Whether ``x < y`` in the call; a guard unless it holds for no or all sizes."""
        decided = less_for_all(x, y)
        return self._decided(x, y, equality=False) if decided is None else decided

    def fix_required(self, x: int, y: int, *, repeats: bool, in_body: bool) -> None:
        """Fix the size variable of a program that fails unless ``x == y``, or (with ``repeats``) ``x == 1``.

        In the body of a branch or loop (``in_body``) it fails where the body runs.
        Nothing happens unless a size variable of the call has to be one number. Programs for numbers are
        faster than those that compare them at run time.

        Raises:
            FixedSize: the variable is this number in the call.
            UndecidedSize: it is another one, and the op isn't in a body, which may not run.
        """
        variable = _linear_variable(x - y)
        if variable is None or variable not in self._numbers or variable in self.computed:
            return
        fits = self._decided(x, y, equality=True) or (repeats and self._decided(x, 1, equality=True))
        if not fits and not in_body:
            raise UndecidedSize(f"{x!r} is not {y!r}")

    def guard_less(self, x: int, y: int) -> None:
        """Add the guard that ``x < y`` has the outcome that it has in the call."""
        self._decided(x, y, equality=False)

    def _decided(self, x: int, y: int, *, equality: bool) -> bool:
        if not size_variables((x, y)) <= self._numbers.keys():
            raise UndecidedSize(f"an op compares the sizes {x!r} and {y!r}, which no call determines")
        first, second = evaluate_size(x, self._numbers), evaluate_size(y, self._numbers)
        outcome = first == second if equality else first < second
        key = equality, repr(x), repr(y)
        if key not in self.guards:
            guard = self.guards[key] = SizeGuard(equality, x, y, outcome, None)
            self._record(guard)
        if equality and outcome and is_polynomial(x - y):
            variables = size_variables(x - y)
            zeros = {variable for variable in variables if self._numbers[variable] == 0}
            if zeros or len(variables) == 1:
                variable = min(zeros or variables)
                raise FixedSize(variable, self._numbers[variable])
            raise UndecidedSize(f"an op compares {x!r} with {y!r}, which are equal")
        return outcome


def _linear_variable(size: int) -> SizeVariable | None:
    """The variable of ``size``, if it is a polynomial of degree 1 in one variable."""
    if not isinstance(size, SymInt):
        return None
    monomials = [monomial for monomial in size.terms if monomial]
    if len(monomials) != 1 or len(monomials[0]) != 1 or monomials[0][0].kind != "variable":
        return None
    variable: SizeVariable = monomials[0][0]
    return variable


def is_polynomial(size: int) -> bool:
    """Whether ``size`` is a polynomial in size variables, without quotients and the like."""
    return not isinstance(size, SymInt) or all(f.kind == "variable" for m in size.terms for f in m)


@contextmanager
def deciding(decisions: GuardedDecisions) -> Iterator[None]:
    """Let ``decisions`` decide comparisons of symbolic sizes in the block."""
    token = SIZE_DECISIONS.set(decisions)
    try:
        yield
    finally:
        SIZE_DECISIONS.reset(token)


def compare_sizes(
    kind: Opaque,
    node: Node,
    inputs: Sequence[Value],
    decisions: GuardedDecisions,
    capabilities: Capabilities,
) -> None:
    """Let ``decisions`` compare the sizes of ``inputs`` that decide whether ``node`` has code.

    A backend without such code compares none. Where no call decides, the node runs as its NumPy kernel.

    Raises:
        FixedSize: there is code for the size of the call alone.
    """
    is_possible = capabilities.fourier if kind.fourier else "d" in capabilities.dtypes
    if kind.compare_sizes is None or not is_possible:
        return
    try:
        with deciding(decisions):
            kind.compare_sizes(*[v.spec for v in inputs], **node.attrs)
    except FixedSize:
        raise
    except UndecidedSize:
        return

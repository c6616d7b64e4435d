"""Guards: comparisons of argument sizes whose outcomes a trace has compiled in."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final

from dualflow.core.errors import InvalidArgumentError
from dualflow.core.records import NamedTuple, dataclass
from dualflow.graph.ir import Graph, Node, Origin, verify
from dualflow.graph.symbolic_size_ops import GUARD_SIZES, Axis, argument_sizes, first_axes
from dualflow.sizes.symbolic_sizes import (
    SIZE_DECISIONS,
    SizeVariable,
    SymInt,
    evaluate_size,
    is_less,
    size_variables,
)

_RELATIONS: Final = {(True, True): "==", (True, False): "!=", (False, True): "<", (False, False): ">="}
_REFLECTED: Final = {"<": ">", ">=": "<="}


class SizeGuard(NamedTuple):
    """A comparison of two sizes, ``x == y`` or ``x < y``, and its outcome in the traced call.

    Attributes:
        equality: whether it is ``x == y``.
        x, y: the sizes, as expressions in size variables.
        outcome: whether it holds.
        origin: the user's line that needed it; None if a tensor's dtype did.
        of_op: whether the op that this line calls needed it, not Python code.
    """

    equality: bool
    x: int
    y: int
    outcome: bool
    origin: Origin | None
    of_op: bool = False

    def described(self, names: Mapping[SizeVariable, str]) -> str:
        """The comparison as text, with ``names`` for size variables."""
        relation = _RELATIONS[self.equality, self.outcome]
        text = f"{self.x} {relation} {self.y}"
        if type(self.x) is int:
            text = f"{self.y} {_REFLECTED.get(relation, relation)} {self.x}"
        for variable, name in names.items():
            text = re.sub(rf"\b{variable.name}\b", name, text)
        return text

    def holds(self, numbers: Mapping[SizeVariable, int]) -> bool:
        """Whether the comparison has the same outcome for size variables of these ``numbers``."""
        x, y = evaluate_size(self.x, numbers), evaluate_size(self.y, numbers)
        return (x == y if self.equality else x < y) is self.outcome


@dataclass(frozen=True, slots=True)
class SizeGuards:
    """The guards of a finished trace.

    Attributes:
        axes: the axis that each size variable is the size of.
        guards: the comparisons.
    """

    axes: Mapping[SizeVariable, Axis]
    guards: tuple[SizeGuard, ...]

    def hold(self, inputs: Sequence[Any]) -> bool:
        """Whether all guards hold for the shapes of ``inputs``."""
        if not self.guards:
            return True
        numbers = {v: inputs[place].shape[axis] for v, (place, axis) in self.axes.items()}
        return all(guard.holds(numbers) for guard in self.guards)

    def require_none(self, name: str) -> None:
        """Raise if a trace with guards is exported or saved: without Python, no other trace can be made.

        Raises:
            InvalidArgumentError: Python code has compared dynamic sizes.
        """
        guard = next((guard for guard in self.guards if guard.origin is not None), None)
        if guard is not None:
            raise InvalidArgumentError(
                f"{name} serves only sizes for which its Python code decides alike, and that code can't be "
                "saved or exported. Give the function an input_signature, or df.function(sizes='exact') for "
                f"a trace of each shape.\n  {guard.origin}"
            )

    @property
    def fixed_axes(self) -> dict[Axis, SizeGuard]:
        """The axes whose sizes a guard requires to be one number, with this guard."""
        fixed = {}
        for guard in self.guards:
            if guard.equality and guard.outcome and type(guard.y) is int:
                variables = size_variables(guard.x)
                if len(variables) == 1:
                    fixed[self.axes[variables.pop()]] = guard
        return fixed

    @property
    def fix_all_axes(self) -> bool:
        """Whether there are dynamic axes, and the guards fix the size of each."""
        return bool(self.guards) and len(self.fixed_axes) == len(self.axes)


NO_GUARDS: Final = SizeGuards({}, ())


def guard_of(node: Node) -> SizeGuard:
    """The guard that a node of a graph compares."""
    attrs = node.attrs
    return SizeGuard(attrs["equality"], attrs["x"], attrs["y"], attrs["outcome"], node.origin)


def guards_of(graph: Graph) -> SizeGuards:
    """The guards that ``graph`` has as nodes."""
    guards = [guard_of(node) for node in graph.nodes if node.op is GUARD_SIZES]
    return SizeGuards(first_axes(argument_sizes(graph)), tuple(guards)) if guards else NO_GUARDS


class GuardOutcomes:
    """Decides comparisons of sizes that the guards of a graph have decided; no others."""

    def __init__(self, guards: SizeGuards) -> None:
        self._outcomes = {(g.equality, repr(g.x - g.y)): g.outcome for g in guards.guards}

    def equal(self, x: int, y: int) -> bool:
        """Whether ``x == y`` in all calls for which the guards hold."""
        difference = x - y
        if not isinstance(difference, SymInt):
            return difference == 0
        reflected = self._outcomes.get((True, repr(-difference)), False)
        return self._outcomes.get((True, repr(difference)), reflected)

    def less(self, x: int, y: int) -> bool:
        """Whether ``x < y`` in these calls.

        Raises:
            UndecidedSize: it depends on the call.
        """
        outcome = self._outcomes.get((False, repr(x - y)))
        return is_less(x, y) if outcome is None else outcome


_CURRENT: Final[ContextVar[GuardOutcomes | None]] = ContextVar("dualflow_current_guards", default=None)


@contextmanager
def guards_hold(graph: Graph) -> Iterator[None]:
    """A context of passes over ``graph`` and its bodies: :func:`decided_by_guards` reads its guards."""
    token = _CURRENT.set(GuardOutcomes(guards_of(graph)))
    try:
        yield
    finally:
        _CURRENT.reset(token)


@contextmanager
def decided_by_guards() -> Iterator[None]:
    """A context in which the guards of the graph that is being optimised decide comparisons of sizes."""
    token = SIZE_DECISIONS.set(_CURRENT.get())
    try:
        yield
    finally:
        SIZE_DECISIONS.reset(token)


def verify_with_bodies(graph: Graph) -> None:
    """Raise InternalError if ``graph``, or a body inside it, breaks a rule of the IR.

    Specs are those that ops infer where the guards of the graph hold.
    """
    token = SIZE_DECISIONS.set(GuardOutcomes(guards_of(graph)))
    try:
        pending = [graph]
        while pending:
            current = pending.pop()
            verify(current)
            pending += [body for node in current.nodes for _, body in node.bodies]
    finally:
        SIZE_DECISIONS.reset(token)

"""What ``verify`` finds: that a function does the same eagerly and compiled, or the first op that doesn't."""

from __future__ import annotations

from typing import Any

from dualflow.core.records import dataclass
from dualflow.function.inspect.compare_report import Difference
from dualflow.graph.ir import Origin

TRACE = "trace"
COMPILE = "compile"
_TRACED = "Python runs it with other values than those that the trace has kept"
_COMPILED = "machine code gives another result than the op's NumPy kernel"
_TOGETHER = "compiled with the ops before it, though not on its own; their rounding may have added up"


@dataclass(frozen=True, slots=True)
class Culprit:
    """The first op whose results differ.

    Attributes:
        stage: ``trace`` where running the Python function again gives other values than its trace, such as
            for a clock or a Python counter, whose value the trace has kept; ``compile`` where compiled code
            gives other values than the trace run by NumPy.
        op: the op's name; empty where no single op differs, only the whole.
        origin: the user's line that asked for it, None if there is none.
        difference: how far its results are apart.
        index: where the first element stands that is too far off; None where shapes or dtypes differ.
        expected: that element, eagerly or by NumPy.
        found: the same element in the trace or as compiled.
        alone: whether the op differs also when it is compiled by itself, for the very inputs that NumPy has;
            if not, the differences of ops before it, each within rounding, have added up, or it is compiled
            wrongly together with them.
    """

    stage: str
    op: str
    origin: Origin | None
    difference: Difference
    index: tuple[int, ...] | None
    expected: Any
    found: Any
    alone: bool


@dataclass(frozen=True, slots=True)
class Verification:
    """What :func:`dualflow.verify` returns; print it.

    Attributes:
        name: the function's.
        arguments: the trace that was verified.
        difference: how far the results and variables of an eager and a compiled call are apart.
        culprit: the first op that differs; None if they agree.
        faults: what is wrong with the kernels that the graph was cut into, a sentence each; none where each
            op is in one kernel, no kernels wait for each other, and what can be observed keeps its place.
        frozen: the random generators and clocks of Python and NumPy that the function reads while it is
            traced, with lines: each call uses what they gave then, where an eager call reads them anew.
    """

    name: str
    arguments: str
    difference: Difference
    culprit: Culprit | None
    faults: tuple[str, ...] = ()
    frozen: tuple[str, ...] = ()

    @property
    def agrees(self) -> bool:
        """Whether both calls do the same each time, as far as rounding allows, by kernels that are legal."""
        return self.difference.agrees and not self.faults and not self.frozen

    def __str__(self) -> str:
        call = f"{self.name}({self.arguments})"
        if self.agrees:
            return f"{call} agrees: eager and compiled are {_far(self.difference)}"
        lines = [f"{call} is cut into wrong kernels: {fault}" for fault in self.faults]
        lines += [f"{call} keeps what it read while it was traced: {read}" for read in self.frozen]
        if not self.difference.agrees:
            lines.append(f"{call} differs: {self.difference.reason}")
        return "\n".join(lines + (_told(self.culprit) if self.culprit else []))


def _told(culprit: Culprit) -> list[str]:
    if not culprit.op:
        lines = ["no single op differs, only the whole"]
    else:
        why = _TRACED if culprit.stage == TRACE else _COMPILED if culprit.alone else _TOGETHER
        lines = [f"the first op to differ is {culprit.op}: {why}"]
    if culprit.origin is not None:
        lines.append(f"  {culprit.origin}")
    if culprit.index is None:
        lines.append(f"  {culprit.difference.reason}")
    else:
        place = f" at {list(culprit.index)}" if culprit.index else ""
        lines.append(f"  expected {culprit.expected}{place}, found {culprit.found}")
        lines.append(f"  {_far(culprit.difference)}")
    return lines


def _far(difference: Difference) -> str:
    return f"{difference.largest:.1e} apart at most, {difference.relative:.1e} of the largest element"

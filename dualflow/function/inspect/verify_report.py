"""The report of ``df.verify``: the eager and compiled calls agree, or the first op that differs."""

from __future__ import annotations

from typing import Any

from dualflow.core.records import dataclass
from dualflow.core.report_text import preformatted
from dualflow.function.inspect.agreement import Difference
from dualflow.graph.ir import Origin

TRACE = "trace"
COMPILE = "compile"
_TRACED = "its values in the trace are not those of another run in Python"
_COMPILED = "machine code computes another result than the op's NumPy kernel"
_TOGETHER = "compiled with the ops before it, but not by itself; their rounding errors may have accumulated"


@dataclass(frozen=True, slots=True)
class Culprit:
    """The first op whose results differ.

    Attributes:
        stage: ``trace`` if another run of the Python function computes other values than the trace, which has
            frozen, for example, a clock or a Python counter; ``compile`` if compiled code computes other
            values than the trace evaluated with NumPy.
        op: the name of the op; empty if no single op differs.
        origin: the user's line that called it, None if there is none.
        difference: the difference of its results.
        index: the index of the first element that differs; None if shapes or dtypes differ.
        expected: the value of that element, eagerly or with NumPy.
        actual: its value in the trace or in compiled code.
        alone: whether the op also differs if it is compiled by itself, for the inputs that NumPy has. If not,
            the rounding errors of the ops before it have accumulated, or it is compiled incorrectly together
            with them.
    """

    stage: str
    op: str
    origin: Origin | None
    difference: Difference
    index: tuple[int, ...] | None
    expected: Any
    actual: Any
    alone: bool


@dataclass(frozen=True, slots=True)
class Verification:
    """The report of :func:`dualflow.verify`; print it.

    Attributes:
        name: the name of the function.
        arguments: the specs of the arguments.
        difference: the difference of the results and variables of an eager and a compiled call.
        culprit: the first op that differs; None if they agree.
        faults: the errors in the partition of the graph into kernels, a sentence each. There are none if each
            op is in one kernel, the kernels have no cyclic dependencies, and effects keep their order.
        frozen: the random generators and clocks of Python and NumPy that the function reads while it is
            traced, with lines: each compiled call uses the values of the trace, while an eager call reads new
            ones.
        rewrite: the first rewrite of a user that changes the values of the trace, with its algebra and line;
            empty if none does.
    """

    name: str
    arguments: str
    difference: Difference
    culprit: Culprit | None
    faults: tuple[str, ...] = ()
    frozen: tuple[str, ...] = ()
    rewrite: str = ""

    @property
    def agrees(self) -> bool:
        """Whether both calls agree within rounding, the kernels are valid, and no value is frozen."""
        return self.difference.agrees and not self.faults and not self.frozen

    def __str__(self) -> str:
        call = f"{self.name}({self.arguments})"
        if self.agrees:
            distance = _difference_text(self.difference) if self.difference.largest else "equal"
            return f"{call} agrees: eager and compiled are {distance}"
        lines = [f"{call} is divided into invalid kernels: {fault}" for fault in self.faults]
        lines += [f"{call} uses a value that was read while it was traced: {read}" for read in self.frozen]
        if not self.difference.agrees:
            lines.append(f"{call} differs: {self.difference.reason}")
        if self.rewrite:
            lines.append(f"a rewrite changes its values: {self.rewrite}")
        return "\n".join(lines + (_description(self.culprit) if self.culprit else []))

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return preformatted(str(self))


def _description(culprit: Culprit) -> list[str]:
    if not culprit.op:
        lines = ["no single op differs, but the results do"]
    else:
        why = _TRACED if culprit.stage == TRACE else _COMPILED if culprit.alone else _TOGETHER
        lines = [f"the first op to differ is {culprit.op}: {why}"]
    if culprit.origin is not None:
        lines.append(f"  {culprit.origin}")
    if culprit.index is None:
        lines.append(f"  {culprit.difference.reason}")
    else:
        position = f" at {list(culprit.index)}" if culprit.index else ""
        lines.append(f"  expected {culprit.expected}{position}, computed {culprit.actual}")
        lines.append(f"  {_difference_text(culprit.difference)}")
    return lines


def _difference_text(difference: Difference) -> str:
    return f"{difference.largest:.1e} apart at most, {difference.relative:.1e} of the largest element"

"""The text of ``status()``: how the parts of traces run, and which fast paths this process uses."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Protocol

from dualflow.core.report_text import ReportText
from dualflow.function.calls.lazy_backends import features

if TYPE_CHECKING:
    from dualflow.graph.compiled import PartReport


class CompiledTrace(Protocol):
    """The interface of a trace that :func:`status` reports; its ``repr`` names it.

    Attributes:
        has_all_sizes: whether all sizes are known, from the trace or from a call, so that it can be compiled.
        parts: how each part runs; read only if ``has_all_sizes`` is true.
        rewrite_report: a line for each active rewrite of users.
        budgeted: whether it has a memory budget.
        memory: the memory of a call, which prints as text; read only if both are true.
    """

    @property
    def has_all_sizes(self) -> bool: ...
    @property
    def parts(self) -> Sequence[PartReport]: ...
    @property
    def rewrite_report(self) -> Sequence[str]: ...
    @property
    def budgeted(self) -> bool: ...
    @property
    def memory(self) -> object: ...


def status(traces: Sequence[CompiledTrace]) -> str:
    """The text: a line for each trace and for each kind of its parts, then one for each feature."""
    lines = [line for trace in traces for line in _trace(trace)]
    return ReportText("\n".join([*lines, "in this process", *(f"    {feature}" for feature in features())]))


def _trace(trace: CompiledTrace) -> Iterator[str]:
    yield repr(trace)
    if not trace.has_all_sizes:
        yield "    has dynamic sizes; compiled for those of a call, and not called yet"
        return
    for part, count in Counter(part._replace(node=None) for part in trace.parts).items():
        yield f"    {part.kind}: {part.what}{_repeated(part, count)}" + (
            f" ({part.reason})" if part.reason else ""
        )
    for line in trace.rewrite_report:
        yield f"    {line}"
    if trace.budgeted:
        yield f"    memory: {trace.memory}"


def _repeated(part: PartReport, count: int) -> str:
    """The number of equal parts as text; native parts, which are one program, have none."""
    if count == 1:
        return ""
    return f" in {count} parts" if part.kind == "native" else f" x {count}"

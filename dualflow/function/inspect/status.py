"""The text of ``status()``: how the parts of traces run, and what of the fast ways works in this process."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from dualflow.function.calling.backend_door import facilities

if TYPE_CHECKING:
    from dualflow.function.concrete import ConcreteFunction


def status(traces: Sequence[ConcreteFunction]) -> str:
    """A line for each trace and for each of its parts, then one for each facility of this process."""
    lines = [line for trace in traces for line in _trace(trace)]
    return "\n".join([*lines, "in this process", *(f"    {facility}" for facility in facilities())])


def _trace(trace: ConcreteFunction) -> Iterator[str]:
    yield repr(trace)
    if not trace.sized:
        yield "    leaves sizes open; compiled for those of a call, and not called yet"
        return
    for part in trace.parts:
        yield f"    {part.kind}: {part.what}" + (f" ({part.reason})" if part.reason else "")

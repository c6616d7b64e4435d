"""Rows that a loop gathers or scatters, and which it prefetches some iterations early.

The address of such a row depends on an index in memory, so hardware does not prefetch it. From a table
that is larger than a core's own caches, each row would be a cache miss, few of which are in flight at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from dualflow.backends.llvm.text import U8, Builder, EmittedValue
from dualflow.core.records import NamedTuple
from dualflow.schedule import kernel_statements as ks
from dualflow.schedule.kernel_statements import BoundsCheck, KernelStatement, LoopKind, Register

DISTANCE: Final = 32
"""The number of iterations between the prefetch of a row and its use."""

MOST_BYTES: Final = 512
"""The bytes of a row to prefetch; hardware prefetches the others of a longer row."""

LINE_BYTES: Final = 64
"""The bytes of a cache line. Rows that are not longer are not prefetched: many are in flight anyway."""

SMALLEST_TABLE: Final = 1 << 22
"""The least number of bytes of a table whose rows are prefetched: more than a core's own caches hold."""


class GatheredRow(NamedTuple):
    """A row that each iteration of a loop gathers, contiguous along a lane loop inside.

    Attributes:
        load: loads the number of the row.
        check: its bounds check.
        lanes: the loop along the row.
        access: the row's elements.
        stride: the number of elements from one row to the next.
    """

    load: ks.Load
    check: BoundsCheck
    lanes: ks.For
    access: ks.ElementAccess
    stride: ks.LaunchParameter


def is_worth_prefetching(table_bytes: EmittedValue, row_bytes: EmittedValue) -> EmittedValue:
    """Whether rows of this size, at any place in a table of this size, are prefetched."""
    return (table_bytes >= SMALLEST_TABLE) & (row_bytes > LINE_BYTES)


def prefetch_row(b: Builder, first: EmittedValue, row_bytes: EmittedValue) -> None:
    """Emit prefetches of the first cache lines of a row, which begins at ``first``, maybe inside a line."""
    end = (row_bytes < MOST_BYTES).select(row_bytes, MOST_BYTES)
    with b.loop(0, end, LINE_BYTES, frozen=True) as line:
        b.prefetch(b.offset(first, line.index, U8))
    b.prefetch(b.offset(first, end - 1, U8))


def gathered_rows(body: tuple[KernelStatement, ...]) -> Iterator[GatheredRow]:
    """The rows that the body of a serial loop gathers at indices that it loads."""
    loads: dict[ks.Operand, ks.Load] = {}
    checks: dict[Register, BoundsCheck] = {}
    for statement in body:
        if isinstance(statement, ks.Load) and statement.access.gather_index is None:
            loads[statement.register] = statement
        elif isinstance(statement, BoundsCheck) and statement.position in loads:
            checks[statement.register] = statement
        elif isinstance(statement, ks.For) and statement.begin is ks.End.ZERO:
            for access in _contiguous_gathers(statement):
                position, stride = access.gather_index or (None, None)
                if position in checks and stride is not None:
                    check = checks[position]
                    yield GatheredRow(loads[check.position], check, statement, access, stride)


def _contiguous_gathers(loop: ks.For) -> Iterator[ks.ElementAccess]:
    """The gathers of elements that are contiguous along a lane loop, directly in its body."""
    if loop.kind is LoopKind.LANES:
        for statement in loop.body:
            if isinstance(statement, ks.MaskedLoad) and (loop.loop, None) in statement.load.access.terms:
                yield statement.load.access

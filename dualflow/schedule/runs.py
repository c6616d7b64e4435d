"""The kernel of a loop nest, written the way that fits its folds."""

from __future__ import annotations

from dualflow.schedule.blocking import column_stretches
from dualflow.schedule.column_kernels import ColumnWriter
from dualflow.schedule.kernels import KernelWriter
from dualflow.schedule.loop_program import Run
from dualflow.schedule.nest import Nest


def run_of(nest: Nest, lanes: int) -> Run:
    """The kernel of ``nest``, and what it is given.

    ``lanes`` is how many turns of a lane loop are run at once: the blocks of long sums are made for them.
    """
    by = column_stretches(nest)
    return KernelWriter(nest, lanes).run() if by is None else ColumnWriter(nest, lanes).columns(by)

"""Selects how the kernel of a loop nest is written."""

from __future__ import annotations

from dualflow.schedule.blocking import column_chunks
from dualflow.schedule.column_kernels import ColumnWriter
from dualflow.schedule.kernels import KernelWriter
from dualflow.schedule.loop_program import Run
from dualflow.schedule.nest import Nest
from dualflow.schedule.scans import ScanWriter, scan_of
from dualflow.schedule.short_rows import ShortRowWriter, has_short_rows
from dualflow.schedule.tiles import TileWriter, tiling


def run_of(nest: Nest, lanes: int, rows: int = 0) -> Run:
    """The kernel of ``nest``, and its arguments.

    Args:
        nest: the loop nest.
        lanes: the number of iterations of a lane loop that run at once, which blocks of long sums depend on.
        rows: the number of short rows, of at most ``lanes`` elements, that run side by side; 0 for loops
            along all rows, which renderers without vectors need.
    """
    scan = scan_of(nest)
    if scan is not None:
        return ScanWriter(nest, lanes, scan).scan()
    columns = column_chunks(nest)
    if columns is not None:
        return ColumnWriter(nest, lanes).columns(columns)
    tiles = tiling(nest)
    if rows and tiles is None and has_short_rows(nest, lanes):
        return ShortRowWriter(nest, lanes, rows).run()
    return KernelWriter(nest, lanes).run() if tiles is None else TileWriter(nest, lanes).tiles(tiles)

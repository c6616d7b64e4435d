"""Selects the writer for the kernel of a loop nest: by rows, columns, tiles, or as a scan."""

from __future__ import annotations

from dualflow.schedule.blocking import column_chunks
from dualflow.schedule.column_kernels import ColumnWriter
from dualflow.schedule.full_reduction_kernels import FullReductionWriter
from dualflow.schedule.kernel import KernelLaunch
from dualflow.schedule.kernel_writer import KernelWriter
from dualflow.schedule.nest import Nest
from dualflow.schedule.scan_kernels import ScanWriter, scan_of
from dualflow.schedule.short_rows import ShortRowWriter, has_short_rows
from dualflow.schedule.tiles import TileWriter, tiling


def kernel_launch(nest: Nest, lanes: int, rows: int = 0, *, tiled: bool = True) -> KernelLaunch:
    """The kernel of ``nest``, with its arguments.

    Args:
        nest: the loop nest.
        lanes: the number of iterations of a lane loop that run at once, which blocks of long sums depend on.
        rows: the number of short rows (of at most ``lanes`` elements) that run side by side; 0 for a loop
            along each row, which renderers without vectors need.
        tiled: whether reads across rows copy tiles to local memory, which a work-item can't do alone.
    """
    scan = scan_of(nest)
    if scan is not None:
        return ScanWriter(nest, lanes, scan).write_scan()
    columns = column_chunks(nest)
    if columns is not None:
        return ColumnWriter(nest, lanes).write_columns(columns)
    if nest.is_full_reduction:
        return FullReductionWriter(nest, lanes).write_chunks()
    tiles = tiling(nest) if tiled else None
    if rows and tiles is None and has_short_rows(nest, lanes):
        return ShortRowWriter(nest, lanes, rows).write()
    return KernelWriter(nest, lanes).write() if tiles is None else TileWriter(nest, lanes).write_tiles(tiles)

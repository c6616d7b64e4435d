"""Selects the writer for the kernel of a loop nest: by rows, columns, tiles, or as a scan."""

from __future__ import annotations

from dualflow.core.locks import imported
from dualflow.schedule.blocking import column_chunks
from dualflow.schedule.full_reduction_kernels import FullReductionWriter
from dualflow.schedule.kernel import KernelLaunch
from dualflow.schedule.kernel_writer import KernelWriter
from dualflow.schedule.nest import Nest
from dualflow.schedule.scan_kernels import ScanWriter, scan_of
from dualflow.schedule.short_rows import ShortRowWriter, has_short_rows
from dualflow.schedule.tiles import TileWriter, tiling


def kernel_launch(nest: Nest, lanes: int, rows: int = 0, *, by_work_items: bool = False) -> KernelLaunch:
    """The kernel of ``nest``, with its arguments.

    Args:
        nest: the loop nest.
        lanes: the number of iterations of a lane loop that run at once, which blocks of long sums depend on.
        rows: the number of short rows (of at most ``lanes`` elements) that run side by side; 0 for a loop
            along each row, which renderers without vectors need.
        by_work_items: whether iterations run in the work-items of a device, so that none copies tiles or
            computes several columns at once, and long scans run in chunks.
    """
    scan = scan_of(nest)
    if scan is not None and by_work_items:
        chunked_scans = imported("dualflow.schedule.chunked_scans")
        if chunked_scans.is_long_scan(nest):
            chunked: KernelLaunch = chunked_scans.chunked_scan(nest, lanes, scan)
            return chunked
    if scan is not None:
        return ScanWriter(nest, lanes, scan).write_scan()
    columns = column_chunks(nest)
    if columns is not None:
        writer = imported("dualflow.schedule.column_kernels").ColumnWriter
        by_columns: KernelLaunch = writer(nest, lanes, by_work_items).write_columns(columns)
        return by_columns
    if nest.is_full_reduction:
        return FullReductionWriter(nest, lanes).write_chunks()
    tiles = None if by_work_items else tiling(nest)
    if rows and tiles is None and has_short_rows(nest, lanes):
        return ShortRowWriter(nest, lanes, rows).write()
    if tiles is not None:
        return TileWriter(nest, lanes).write_tiles(tiles)
    return KernelWriter(nest, lanes, by_work_items).write()

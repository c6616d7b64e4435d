"""The cost model: one record of processor parameters; passes and schedule have no others."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dualflow
from dualflow.graph.cost_model import CPU, CostModel

ROOT = Path(dualflow.__file__).parent

NO_FIGURES = {
    "graph.analysis.MAX_CORES": "bounds what is reported",
    "graph.list_schedule.NEGLIGIBLE": "is a ratio of estimates",
    "graph.passes.algebra._MAX_COMPARED": "bounds what a pass compares",
    "graph.passes.constant_folding.SMALL_BYTES": "bounds the memory of constants",
    "graph.passes.unroll_trivial_loops.MAX_PREALLOCATED_STACKS": "bounds the memory of stacks",
    "graph.passes.fourier_tables.REGISTER_BYTES": "fixes the order of sums",
    "graph.column_reductions.MIN_ROWS": "fixes the order of sums",
    "graph.column_reductions.MIN_ELEMENTS": "fixes the order of sums",
    "graph.column_reductions.MAX_COLUMNS": "fixes the order of sums",
    "graph.encoding.MAX_CONSTANT_BYTES": "bounds what is encoded",
    "graph.encoding._FORMAT": "is a version of marshal",
    "core.exact_equality._COMPARED_BYTES": "bounds what is compared",
    "graph.options.STACK_BYTES": "bounds the memory of stacks",
    "graph.literals.INLINE": "of a text",
    "graph.literals._EDGE": "of a text",
    "graph.parser._DEEPEST": "bounds the depth of a text",
    "graph.parser._INDENT": "of a text",
    "graph.text_lines.LARGEST_SIZE": "bounds what a text declares",
    "graph.text_lines._LONGEST_SHAPE": "bounds what a text declares",
    "graph.rewrite._ORIGINS": "of a text",
    "graph.scalar_functions._CACHED_FUNCTIONS": "bounds a table",
    "schedule.access_bounds.TILE_SQUARE": "is what kernels write",
    "schedule.arena.ALIGNMENT": "is a layout",
    "schedule.blocking.MAX_UNBLOCKED_STEPS": "fixes the order of sums",
    "schedule.blocking.MIN_CHUNKS": "fixes the order of sums",
    "schedule.blocking.MIN_BLOCK_STEPS": "fixes the order of sums",
    "schedule.blocking.CHUNK_ELEMENTS": "fixes the order of sums",
    "schedule.chunked_scans.SCAN_CHUNK": "fixes the order of sums",
    "schedule.concurrency.LARGE_CALL": "is a ratio of estimates",
    "schedule.concurrency.MAX_TIME_FRACTION": "is a ratio of estimates",
    "schedule.concurrency.MAX_STEPS": "bounds the time of planning",
    "schedule.concurrency.SMALL_SIZE": "is a size that estimates assume",
    "schedule.concurrency.WORK_UNITS": "is a unit",
    "schedule.concurrent_arena._ALL_TASKS": "is no task's number",
    "schedule.lanes.FEWEST_LANES": "fixes the order of sums",
    "schedule.lanes.LIGHT_REDUCTION": "fixes the order of sums",
    "schedule.lanes.LONG_REDUCTION": "fixes the order of sums",
    "schedule.lanes.REDUCTION_LANES": "fixes the order of sums",
    "schedule.lanes.REGISTER_BITS": "fixes the order of sums",
    "schedule.rematerialisation.MAX_RECOMPUTED": "bounds a search",
    "schedule.rematerialisation.PATIENCE": "bounds a search",
    "schedule.rematerialisation.DROPPED_FRACTION": "is the step of a search",
    "graph.passes.hoist_size_scalars.MAX_OPERATIONS": "bounds repeated work",
    "schedule.rematerialisation.SMALL_FRACTION": "is the step of a search",
    "schedule.size_text._LONGEST": "bounds the length of a line",
    "schedule.sliding.MAX_AXES": "bounds what a routine takes",
    "schedule.program_statements.PRODUCT_IN_REGISTERS": "is no buffer's number",
    "schedule.program_statements.INITIAL_CAPACITY": "bounds the memory of stacks",
    "schedule.strip_mining.STRIP_ACCUMULATORS": "fixes the order of sums",
    "schedule.strip_mining.STRIP_WIDTH": "fixes the order of sums",
    "schedule.window_sums.MAX_WINDOW_AXES": "bounds what a routine takes",
    "schedule.window_sums.MAX_WINDOW_ELEMENTS": "fixes the order of sums",
}
"""Why numbers at the top of a module are no processor parameters."""


def numbers_of(path: Path) -> list[str]:
    """The names that a module gives to numbers."""
    names = []
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None and is_number(node.value):
            names += [target.id for target in targets if isinstance(target, ast.Name)]
    return names


def is_number(value: ast.expr) -> bool:
    if isinstance(value, ast.UnaryOp):
        return is_number(value.operand)
    if isinstance(value, ast.BinOp):
        return is_number(value.left) and is_number(value.right)
    return isinstance(value, ast.Constant) and type(value.value) in (int, float)


def test_passes_and_schedule_have_no_figures_of_their_own() -> None:
    folders = [ROOT / "graph", ROOT / "graph/passes", ROOT / "schedule"]
    constants = {
        f"{'.'.join(path.relative_to(ROOT).with_suffix('').parts)}.{name}"
        for folder in folders
        for path in folder.glob("*.py")
        for name in numbers_of(path)
    }
    assert constants <= NO_FIGURES.keys()


@given(st.integers(0, 1 << 24), st.sampled_from([1, 2, 4, 8, 16]), st.sampled_from([1 << 15, 1 << 20]))
def test_scratch_rows_cost_no_more_than_memory(row_bytes: int, itemsize: int, near_bytes: int) -> None:
    """So two kernels that become one execute no more."""
    assert 0 < CPU.scratch(row_bytes, itemsize, near_bytes) <= CPU.through_memory(itemsize)


def test_every_figure_is_described_with_its_unit() -> None:
    described = [line.split(":")[0].strip() for line in (CostModel.__doc__ or "").splitlines()]
    assert all(name in described for name in CostModel._fields)


def test_the_cost_model_is_immutable() -> None:
    with pytest.raises(AttributeError):
        CPU.load_cost = 2.0  # type: ignore[misc]
    assert hash(CostModel()) == hash(CPU)

"""Bounds of a kernel's accesses equal those of an interpreter that runs every loop."""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dualflow as df
from dualflow.core.dtypes import as_dtype
from dualflow.errors import InternalError
from dualflow.schedule import kernel_statements as ks
from dualflow.schedule.access_bounds import AccessBounds, IndexRange, access_bounds
from dualflow.schedule.invariants import invariants_first
from dualflow.schedule.kernel import Argument, Kernel, KernelLaunch
from dualflow.schedule.kernel_statements import LaunchParameter
from dualflow.schedule.loop_ids import BlockLevel, KernelLoop
from dualflow.schedule.lower import lower
from dualflow.schedule.plan import plan
from dualflow.schedule.program_statements import LaunchNest, nests_of, statements, walk_program
from dualflow.schedule.select_kernel import kernel_launch
from dualflow.schedule.strip_mining import in_strips

LANES = 16
WIDE = (-(10**15), 10**15)
"""A region in which every access is."""


def launched(function: Callable[..., Any], *specs: df.TensorSpec) -> list[tuple[LaunchNest, KernelLaunch]]:
    """The kernels of a function, those that join partial results too."""
    graph = df.function(function).get_concrete_function(*specs).optimised_graph
    program = statements(plan(graph))
    runs = [(x, kernel_launch(lower(*x), LANES)) for s in walk_program(program) for x in nests_of(s)]
    return [*runs, *((x, run.join) for x, run in runs if run.join is not None)]


class Interpreter:
    """Runs the loops of a kernel, and keeps the elements that each access touches.

    A checked position takes every value that its check lets through.
    """

    def __init__(self, run: KernelLaunch) -> None:
        self.run = run
        self.touched: dict[int, set[int]] = defaultdict(set)
        self.loops: dict[int, int] = {}
        self.edges: dict[tuple[int, int], tuple[int, int]] = {}
        self.extents: dict[int, int] = {}
        self.statements(run.kernel.body)

    def number(self, number: LaunchParameter | None) -> int:
        return 1 if number is None else self.run.parameters[number.number]

    def bound(self, bound: ks.Bound) -> int:
        if isinstance(bound, LaunchParameter):
            return self.number(bound)
        if isinstance(bound, ks.Edge):
            return self.edges[bound.loop, bound.level][bound.end]
        return self.run.total if bound is ks.End.HIGH else 0

    def statements(self, body: Sequence[ks.KernelStatement]) -> None:
        for statement in body:
            self.statement(statement)

    def iterations(self, loop: int, indices: range, body: Sequence[ks.KernelStatement]) -> None:
        for index in indices:
            self.loops[loop] = index
            self.statements(body)

    def chunks(
        self, key: tuple[int, int], begins: range, end: int, body: Sequence[ks.KernelStatement]
    ) -> None:
        for begin in begins:
            self.edges[key] = begin, min(begin + begins.step, end)
            self.statements(body)

    def statement(self, statement: ks.KernelStatement) -> None:
        match statement:
            case ks.For(loop, begin, end):
                self.iterations(loop, range(self.bound(begin), self.bound(end)), statement.body)
            case ks.Blocks(loop, level, begin, end, size):
                begins = range(self.bound(begin), self.bound(end), self.number(size))
                self.chunks((loop, level), begins, self.bound(end), statement.body)
            case ks.StripMinedLoop(loop, begin, end, width):
                begins = range(self.bound(begin), self.bound(end), width)
                self.chunks((loop, BlockLevel.STRIP), begins, self.bound(end), statement.body)
            case ks.Lanes(width):
                self.iterations(KernelLoop.LANES, range(width), statement.body)
            case ks.Chunks(loop, size, extent):
                for share in range(self.run.total):
                    self.loops[KernelLoop.CHUNKS] = share
                    begin, end = self.loops[KernelLoop.CHUNKS] * self.number(size), self.number(extent)
                    self.edges[loop, BlockLevel.CHUNK] = begin, min(begin + self.number(size), end)
                    self.statements(statement.body)
            case ks.BoundsCheck(register, _, _, extent):
                self.extents[register.number] = self.number(extent)
            case ks.Load(_, access) | ks.Store(access):
                self.touch(access)
            case ks.MaskedLoad(load):
                self.touch(load.access)
            case ks.TransposedTile():
                self.tile(statement)
            case ks.ReduceLanes(_, _, buffers, width):
                for buffer in buffers:
                    self.touched[buffer].update(range(width))

    def touch(self, access: ks.ElementAccess) -> None:
        begins = {edge.loop: self.bound(edge) for edge in access.block_starts}
        index = 0 if access.offset is None else self.number(access.offset)
        for loop, stride in access.terms:
            index += (self.loops[loop] - begins.get(loop, 0)) * self.number(stride)
        positions = [0]
        if access.gather_index is not None:
            register, stride = access.gather_index
            positions = [i * self.number(stride) for i in range(self.extents[register.number])]
        self.touched[access.buffer].update(index + position for position in positions)

    def tile(self, tile: ks.TransposedTile) -> None:
        (down, across), side = (tile.down, tile.across), self.number(tile.side)
        rows, columns = (range(*map(self.bound, edges)) for edges in (down, across))
        for row, column in itertools.product(rows, columns):
            self.loops |= {down[0].loop: row, across[0].loop: column}
            self.touch(tile.access)
            self.touched[tile.tile].add((row - rows.start) * side + column - columns.start)


@lru_cache(maxsize=32)
def touched_elements(run: KernelLaunch) -> Mapping[int, set[int]]:
    """The elements of each buffer that an interpreter sees accessed; kept for the next test."""
    return dict(Interpreter(run).touched)


def regions_of(run: KernelLaunch) -> dict[int, IndexRange]:
    """The smallest and largest elements that an interpreter sees accessed."""
    return {b: (min(x), max(x)) for b, x in touched_elements(run).items() if x}


def accepts(run: KernelLaunch, regions: Mapping[int, IndexRange], bounds: AccessBounds | None = None) -> bool:
    """Whether every access is proved inside these regions; buffers that aren't named have none."""
    listed = [regions.get(i, (0, -1)) for i in range(len(run.kernel.buffers))]
    try:
        (bounds or access_bounds(run.kernel)).check(run, listed, NODE)
    except InternalError:
        return False
    return True


NODE = df.function(lambda x: df.exp(x)).get_concrete_function(df.TensorSpec([2])).optimised_graph.nodes[-1]

M, V, T = df.TensorSpec([30, 40]), df.TensorSpec([40]), df.TensorSpec([3, 5, 40])
PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[df.TensorSpec, ...]]] = {
    "elements": (lambda x, y: df.exp(x) * y, (M, V)),
    "a scalar": (lambda x: df.exp(x), (df.TensorSpec([]),)),
    "a part": (lambda x: x[2:20:3, 5:] + 1.0, (M,)),
    "backwards": (lambda x: x[::-1, ::-2] * 2.0, (M,)),
    "rows": (lambda x: df.reduce_sum(x, 1), (M,)),
    "long rows": (lambda x: df.reduce_sum(x, 1), (df.TensorSpec([3, 9000]),)),
    "columns": (lambda x: df.reduce_mean(x, 0), (df.TensorSpec([700, 30]),)),
    "wide columns": (lambda x: df.reduce_mean(x, 0), (df.TensorSpec([600, 40]),)),
    "columns of two axes": (lambda x: df.reduce_sum(x, [0, 1]), (df.TensorSpec([300, 7, 12]),)),
    "a whole sum": (lambda x: df.reduce_sum(x * x), (df.TensorSpec([40000]),)),
    "softmax": (df.nn.softmax, (M,)),
    "the place of a maximum": (lambda x: df.argmax(x, 1), (M,)),
    "a gather": (lambda x, i: df.gather(x, i), (M, df.TensorSpec([7], df.int32))),
    "a gather of columns": (lambda x, i: df.gather(x[::-1], i, axis=1), (M, df.TensorSpec([7], df.int64))),
    "a transpose": (lambda x: df.transpose(x) * 2.0, (df.TensorSpec([70, 100]),)),
    "a transpose of axes": (lambda x: df.transpose(x, [2, 1, 0]) + 1.0, (df.TensorSpec([65, 3, 20]),)),
    "a scan": (lambda x: df.cumsum(x, 0), (M,)),
    "a reversed scan": (lambda x: df.cumsum(x[::-1], 1, exclusive=True, reverse=True), (M,)),
    "pieces": (lambda x, y: df.concat([x, y[::-1]], 0), (V, V)),
    "zeros around": (lambda x: df.pad(x, [[1, 2], [3, 0]]), (M,)),
    "repeated": (lambda x: df.tile(x, [2, 3]), (M,)),
    "no rows": (lambda x: df.reduce_sum(df.exp(x), 1), (df.TensorSpec([0, 5]),)),
    "no columns": (lambda x: df.reduce_sum(df.exp(x), 1), (df.TensorSpec([5, 0]),)),
}


@pytest.fixture(scope="module", params=PROGRAMS.items(), ids=lambda item: item[0])
def runs(request: pytest.FixtureRequest) -> list[KernelLaunch]:
    """The kernels of a program, of which pytest runs all tests one after another."""
    function, specs = request.param[1]
    return [run for _, run in launched(function, *specs)]


def in_numbas_form(run: KernelLaunch) -> KernelLaunch:
    """The kernel as it is rewritten for Numba."""
    return run._replace(kernel=in_strips(invariants_first(run.kernel), lambda compute: True))


@pytest.mark.parametrize("form", [lambda run: run, in_numbas_form], ids=["plain", "strips"])
def test_bounds_are_the_extremes_of_what_is_accessed(
    runs: list[KernelLaunch], form: Callable[[KernelLaunch], KernelLaunch]
) -> None:
    assert runs
    for run in map(form, runs):
        regions = regions_of(run)
        assert accepts(run, regions)
        for buffer, (first, last) in regions.items():
            if buffer >= len(run.kernel.buffers):  # of its own
                continue
            assert not accepts(run, {**regions, buffer: (first + 1, last)})
            assert not accepts(run, {**regions, buffer: (first, last - 1)})


def test_the_kernels_own_memory_holds_what_it_keeps_there(runs: list[KernelLaunch]) -> None:
    for run in (*runs, *map(in_numbas_form, runs)):
        bounds, touched = access_bounds(run.kernel), touched_elements(run)
        numbers = bounds.values(run)
        for buffer, factors in bounds.scratch.items():
            assert max(touched.get(buffer, ()), default=0) < math.prod(numbers[n] for n in factors)
            smaller = bounds._replace(scratch={**bounds.scratch, buffer: ()})
            wide = dict.fromkeys(range(len(run.kernel.buffers)), WIDE)
            assert accepts(run, wide, bounds)
            assert max(touched.get(buffer, ()), default=0) == 0 or not accepts(run, wide, smaller)


def leaves(run: KernelLaunch, regions: Mapping[int, IndexRange]) -> bool:
    """Whether an access of a buffer is outside of these regions."""
    return any(
        first < regions.get(b, (0, -1))[0] or last > regions.get(b, (0, -1))[1]
        for b, (first, last) in regions_of(run).items()
        if b < len(run.kernel.buffers)
    )


def test_larger_numbers_are_refused(runs: list[KernelLaunch]) -> None:
    """A stride, size or offset that is one more, or one more iteration, changes nothing or is refused."""
    for run in runs:
        regions, changed = regions_of(run), [run._replace(total=run.total + 1)]
        for i, number in enumerate(run.parameters):
            changed.append(
                run._replace(parameters=(*run.parameters[:i], number + 1, *run.parameters[i + 1 :]))
            )
        for other in changed:
            assert not (accepts(other, regions) and leaves(other, regions))


SIZES = st.lists(st.integers(0, 40), min_size=1, max_size=3)


@given(SIZES, st.data())
@settings(max_examples=30, deadline=None)
def test_bounds_of_random_layouts(shape: list[int], data: st.DataObject) -> None:
    """Elementwise code, sums and scans over views of random slices, broadcasts and transposes."""
    order = data.draw(st.permutations(range(len(shape))))
    steps = [data.draw(st.sampled_from([1, 2, -1, -3])) for _ in shape]
    axis = data.draw(st.integers(0, len(shape) - 1))
    kind = data.draw(st.sampled_from(["elements", "sum", "scan", "whole"]))

    def function(x: Any, y: Any) -> Any:
        view = df.transpose(x[tuple(slice(None, None, step) for step in steps)], order)
        if kind == "elements":
            return df.exp(view) + y
        if kind == "whole":
            return df.reduce_sum(df.exp(view))
        return df.reduce_sum(df.exp(view), axis) if kind == "sum" else df.cumsum(view, axis)

    specs = df.TensorSpec(shape), df.TensorSpec([1] * len(shape))
    for _, run in launched(function, *specs):
        for form in (run, in_numbas_form(run)):
            regions = regions_of(form)
            assert accepts(form, regions)
            for buffer, (first, last) in regions.items():
                if buffer < len(run.kernel.buffers):
                    assert not accepts(form, {**regions, buffer: (first, last - 1)})


# What has no bounds

FLOAT, INDEX, BOOL = (as_dtype(name) for name in ("float32", "int64", "bool"))


def kernel(*body: ks.KernelStatement, numbers: int = 4, buffers: int = 2) -> Kernel:
    return Kernel((FLOAT,) * buffers, (), numbers, 1, body)


def loop(*body: ks.KernelStatement, begin: ks.Bound = ks.End.LOW, end: ks.Bound = ks.End.HIGH) -> ks.For:
    return ks.For(0, begin, end, ks.LoopKind.SERIAL, body)


def register(number: int, dtype: Any = FLOAT) -> ks.Register:
    return ks.Register(number, dtype)


POSITION, INSIDE, OTHER = register(0, INDEX), register(1, BOOL), register(2, BOOL)
PICKED = ks.Load(register(3), ks.ElementAccess(0, ((0, None),), gather_index=(POSITION, LaunchParameter(1))))
CHECK = ks.BoundsCheck(POSITION, INSIDE, ks.LiteralScalar(np.int64(3)), LaunchParameter(0), NODE)
EDGES = ks.Edge(0, 0, False), ks.Edge(0, 0, True)
UNBOUNDED: dict[str, tuple[Kernel, str]] = {
    "no check of a position": (kernel(loop(PICKED)), "is not checked"),
    "no check before a guard": (
        kernel(loop(ks.MaskedLoad(PICKED, INSIDE))),
        "is not the check of the index",
    ),
    "another guard": (kernel(loop(CHECK, ks.MaskedLoad(PICKED, OTHER))), "is not the check of the index"),
    "a position that is written again": (
        kernel(loop(CHECK, ks.Load(POSITION, ks.ElementAccess(1, ())), ks.MaskedLoad(PICKED, INSIDE))),
        "is not the check of the index",
    ),
    "a loop that is closed": (
        kernel(loop(), ks.Load(register(3), ks.ElementAccess(0, ((0, None),)))),
        "a loop that is not around it",
    ),
    "a block that is closed": (kernel(loop(begin=EDGES[0], end=EDGES[1])), "bounds of a loop"),
    "ends of two kinds": (kernel(loop(begin=EDGES[0], end=LaunchParameter(0))), "bounds of a loop"),
    "a loop that begins later": (
        kernel(loop(begin=LaunchParameter(1), end=LaunchParameter(0))),
        "bounds of a loop",
    ),
    "no such buffer": (
        kernel(loop(ks.Store(ks.ElementAccess(2, ((0, None),)), register(3)))),
        "no such buffer",
    ),
}


@pytest.mark.parametrize(("unbounded", "why"), UNBOUNDED.values(), ids=UNBOUNDED)
def test_accesses_without_bounds_are_refused(unbounded: Kernel, why: str) -> None:
    with pytest.raises(InternalError, match=why):
        access_bounds(unbounded)


def test_a_checked_position_is_bounded_by_the_size_it_was_checked_for() -> None:
    checked = kernel(loop(CHECK, ks.MaskedLoad(PICKED, INSIDE)))
    run = KernelLaunch(checked, (Argument(0, 0, FLOAT),) * 2, (), (7, 10, 0, 0), 5, 0.0)
    assert accepts(run, {0: (0, 64)})
    assert not accepts(run, {0: (0, 63)})


def test_the_error_has_the_statement_and_the_users_line() -> None:
    (run,) = [run for _, run in launched(lambda x: df.exp(x[2:, ::-1]), M)]
    regions = regions_of(run)
    with pytest.raises(InternalError) as error:
        access_bounds(run.kernel).check(
            run, [(first, last - 1) for _, (first, last) in sorted(regions.items())], NODE
        )
    assert "accesses elements" in str(error.value)
    assert "buffer 0 [" in str(error.value)
    assert "test_access_bounds.py" in str(error.value)


def test_spans_begin_before_the_end_of_their_loop() -> None:
    """A chunk that begins past the end would have its masked remainder before its start."""
    (run, *_) = [run for _, run in launched(lambda x: df.reduce_sum(x * x), df.TensorSpec([40000]))]
    wide = dict.fromkeys(range(len(run.kernel.buffers)), WIDE)
    assert accepts(run, wide)
    assert not accepts(run._replace(total=run.total + 1), wide)

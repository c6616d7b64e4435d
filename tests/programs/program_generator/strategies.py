"""What hypothesis draws: programs whose records shrink step by step."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import strategies as st

from dualflow.backends.llvm import lower_kernel
from dualflow.graph import column_reductions
from dualflow.graph.cost_model import CPU
from dualflow.ops import record
from dualflow.ops.linear_algebra import lapack, small_matrices
from dualflow.schedule import blocking, chunked_scans, concurrency, lanes, program_statements, strip_mining

from . import source as _source
from .elementary import PRODUCTIONS
from .records import Call, Input, Options, Program, Step
from .values import DTYPES, DynamicSize

__all__ = ["dynamic_programs", "programs"]

_NESTED = ("repeated", "growing", "branched", "mapped", "differentiated", "scanned", "written", "called")
_EFFECTS = ("read", "assigned", "scattered_onto", "checked", "picked")
_PLAIN = tuple(sorted(name for name in PRODUCTIONS if name not in (*_NESTED, *_EFFECTS)))
_SIZED = (
    "masked",
    "masked_elements",
    "distinct",
    "cut",
    "counted",
    "concatenated",
    "lengthened",
    "fitted_rows",
    "partitioned",
    "ragged_rows",
    "sparse_rows",
)
assert _source

_SMALL_SIZES = (3, 2, 1, 0, 5, 7, 17, 33)
_LARGE_SIZES = (3, 1, 16, 17, 200, 32_767, 32_768, 40_000, 65_537, 262_145)
_EACH_SIZE = (0, 1, 2, 31, 32, 33)
_LIMITS = (
    CPU.batched_rows,
    CPU.copied_run,
    CPU.min_tiled,
    CPU.min_wide_columns,
    CPU.tile_side,
    blocking.CHUNK_ELEMENTS,
    blocking.MAX_UNBLOCKED_STEPS,
    blocking.MIN_BLOCK_STEPS,
    chunked_scans.SCAN_CHUNK,
    column_reductions.MIN_ELEMENTS // 16,
    column_reductions.MIN_ROWS,
    concurrency.SMALL_SIZE,
    record.COMPILED_ABOVE,
    lanes.REDUCTION_LANES,
    lapack.SMALLEST,
    lower_kernel.POLL_INTERVAL,
    program_statements.INITIAL_CAPACITY,
    small_matrices.MAX_SIZE,
    strip_mining.STRIP_ACCUMULATORS,
    strip_mining.STRIP_WIDTH,
)
"""Sizes from which other code runs: blocks, chunks, tiles, strips, threads, stacks, libraries, kernels."""
_THRESHOLDS = tuple(sorted({limit + step for limit in _LIMITS for step in (-1, 0, 1)}))
_CHOICES = st.integers(0, 63)


def _steps(names: tuple[str, ...]) -> st.SearchStrategy[Step]:
    return st.builds(Step, st.sampled_from(names), *[_CHOICES] * 3)


def _bodies(inner: st.SearchStrategy[Step]) -> st.SearchStrategy[Step]:
    body = st.lists(inner, min_size=1, max_size=3).map(tuple)
    return st.builds(Step, st.sampled_from(_NESTED), *[_CHOICES] * 3, body, body)


_STEPS = st.one_of(
    st.recursive(_steps((*_PLAIN, *_SIZED, "picked", "checked")), _bodies, max_leaves=5),
    _steps(_PLAIN + _SIZED),
)
_STATE = ("read", "assigned", "scattered_onto", "checked") * 3
_NEVER_FAILING = tuple(name for name in _PLAIN + _SIZED if name != "gathered")
_WITH_STATE = st.one_of(st.recursive(_steps(_NEVER_FAILING + _STATE), _bodies, max_leaves=5), _steps(_STATE))

_FUNCTION = st.sampled_from(
    [
        (),
        (("reduce_retracing", "True"),),
        (("memory_budget", "'1MB'"),),
        (("memory_budget", "'20kB'"),),
        (("first_call", "'interpret'"),),
        (("jit_compile", "True"),),
    ]
)


_DYNAMIC = st.sampled_from(
    [
        (True, ()),
        (False, ()),
        (False, (("reduce_retracing", "True"),)),
        (True, (("memory_budget", "'1MB'"),)),
        (True, (("jit_compile", "True"),)),
        (True, (("first_call", "'interpret'"),)),
    ]
)
"""Whether the signature has dynamic sizes, else the second size makes them so, and further options."""


@st.composite
def dynamic_programs(draw: st.DrawFn) -> Program:
    """Programs with dynamic sizes, each called at ten sizes of its first dynamic axis."""
    program = draw(programs(large=True))
    sizes = [*_EACH_SIZE, *draw(st.lists(st.sampled_from(_THRESHOLDS), min_size=4, max_size=4))]
    other, n, seed = (
        draw(st.sampled_from(_SMALL_SIZES[:6])),
        draw(st.integers(0, 5)),
        draw(st.integers(0, 99)),
    )
    calls = tuple([Call((size, other), n, seed + i) for i, size in enumerate(sizes)])
    return replace(program, calls=calls, options=Options(program.options.transform, *draw(_DYNAMIC)))


@st.composite
def programs(draw: st.DrawFn, large: bool = False) -> Program:
    """Programs of both domains: with run-time sizes, loops, derivatives, variables and several calls."""
    domain = draw(st.sampled_from(["whole", "smooth"]))
    maximum = max(_LARGE_SIZES if large else _SMALL_SIZES)
    dynamic_sizes = [DynamicSize("n0", maximum), DynamicSize("n1", 7 if large else maximum)]
    sizes = st.lists(
        st.sampled_from(
            [*dynamic_sizes, 3, 1, 2, 0] if not large else [dynamic_sizes[0], 1, 3, dynamic_sizes[1], 16]
        ),
        max_size=2 if large else 3,
    )
    if large:
        sizes = sizes.filter(lambda axes: axes.count(dynamic_sizes[0]) < 2)  # two large axes are gigabytes
    dtypes = (
        ("float32", "float64")
        if domain == "smooth"
        else ("float32", "int32", *(dtype for dtype in DTYPES if dtype != "bfloat16"))
    )
    inputs = draw(
        st.lists(st.builds(Input, st.sampled_from(dtypes), sizes.map(tuple)), min_size=1, max_size=3)
    )
    if not any(n in x.sizes for x in inputs for n in dynamic_sizes):
        inputs[0] = Input(inputs[0].dtype, (dynamic_sizes[0], *inputs[0].sizes[:1]))
    stateful = draw(st.integers(0, 3)) == 3 and not large
    steps = draw(st.lists(_WITH_STATE if stateful else _STEPS, min_size=1, max_size=3 if large else 7))
    transform = "values" if stateful else draw(st.sampled_from(["values", "gradient", "jvp", "gradient"]))
    numbers = [st.sampled_from(_LARGE_SIZES if large else _SMALL_SIZES), st.sampled_from(_SMALL_SIZES[:6])]
    calls = draw(
        st.lists(
            st.builds(Call, st.tuples(*numbers), st.integers(0, 5), st.integers(0, 99)),
            min_size=1,
            max_size=4 if large else 3,
        )
    )
    return Program(
        domain,
        tuple(inputs),
        tuple(steps),
        tuple(draw(st.lists(st.integers(0, 5), min_size=1, max_size=2))),
        tuple(calls),
        Options(transform, draw(st.booleans()), draw(_FUNCTION)),
    )

"""Programs on disk: another process runs them as it would compile them, and finds none that differs."""

from __future__ import annotations

import ctypes
import gc
import logging
import os
import platform
import subprocess
import sys
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dualflow as df
from dualflow.backends.llvm import early_compile, program_cache
from dualflow.backends.llvm.compile_graph import lowered
from dualflow.backends.llvm.program_cache import ProgramEntry, program_entry
from dualflow.backends.llvm.runtime import elf, jit
from dualflow.backends.runtime import object_cache, switches, thread_count
from dualflow.core.records import compared_fields, replace
from dualflow.function.calls.compiled_graph import CompiledGraph
from dualflow.graph.capabilities import Capabilities
from dualflow.graph.cost_model import CostModel
from dualflow.graph.ir import Graph
from dualflow.graph.options import CompileOptions
from dualflow.graph.passes.pipeline import optimise

Array = np.ndarray[Any, Any]
SOURCE_ROOT = Path(df.__file__).parents[1]

pytestmark = pytest.mark.skipif(bool(elf.unavailable_reason()), reason="LLVM links the objects here")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache, from which this process loads programs; it has no code of earlier tests either."""
    monkeypatch.setattr(switches, "named", frozenset)
    monkeypatch.setattr(early_compile, "libraries", weakref.WeakValueDictionary())
    monkeypatch.setattr(jit, "_loaded", weakref.WeakValueDictionary())
    monkeypatch.setenv("DUALFLOW_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


def matrix(*shape: int) -> df.Tensor:
    return df.constant(np.random.default_rng(0).normal(size=shape).astype(np.float32))


# A program from the disk has the same results.


def plain(x: df.Tensor) -> Any:
    return 0.5 * x * (1.0 + df.tanh(x + 0.044715 * x * x * x))


def several(x: df.Tensor) -> Any:
    return df.nn.softmax(x @ x), df.reduce_sum(x, axis=0), x


def folded(x: df.Tensor) -> Any:
    return x + df.reshape(df.cast(df.range(9), df.float32) * 2.0, [3, 3])[:, :1]


def loop(x: df.Tensor) -> Any:
    for _ in df.range(5):
        x = df.tanh(x @ x) + 1.0
    return x


def until(x: df.Tensor) -> Any:
    rows = df.TensorArray(df.float32, size=0, dynamic_size=True)
    i = 0
    while df.reduce_sum(x) < 1000.0 and i < 50:
        x = df.abs(x) * 1.5
        rows = rows.write(i, x)
        i += 1
    return rows.stack(), i


def branch(x: df.Tensor) -> Any:
    return x * 2.0 if df.reduce_sum(x) > 0.0 else x - 1.0


def gradient(x: df.Tensor) -> Any:
    with df.GradientTape() as tape:
        tape.watch(x)
        y = df.reduce_sum(df.sin(x @ x))
    return tape.gradient(y, x)


def by_data(x: df.Tensor) -> Any:
    return df.boolean_mask(x, x[:, 0] > 0.0) * 2.0


def random(x: df.Tensor) -> Any:
    return x + df.random.stateless_normal([3, 3], seed=[1, 2])


PROGRAMS: list[Callable[..., Any]] = [
    plain, several, folded, loop, until, branch, gradient, by_data, random,
]  # fmt: skip


def arrays(result: Any) -> list[tuple[Any, bytes]]:
    return [(x.shape, x.numpy().tobytes()) for x in df.nest.flatten(result) if isinstance(x, df.Tensor)]


SPEC = df.TensorSpec([3, 3])


def compiled(function: Any) -> CompiledGraph:
    """The compiled graph that runs calls with a tensor of :data:`SPEC`."""
    concrete, *_ = function.concrete_functions or [function.get_concrete_function(SPEC)]
    graph: CompiledGraph = concrete.compiled_for([SPEC])
    return graph


def is_loaded(function: Any) -> bool:
    """Whether the program that runs calls with a tensor of :data:`SPEC` is from the disk."""
    executable: Any = compiled(function).executable
    loaded: bool = executable.loaded
    return loaded


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_a_loaded_program_has_the_results_of_a_compiled_one(program: Callable[..., Any]) -> None:
    first, second = df.function(program), df.function(program)
    x = matrix(3, 3)
    expected = [arrays(first(x)) for _ in range(3)]
    assert [arrays(second(x)) for _ in range(3)] == expected
    assert [is_loaded(f) for f in (first, second)] == [False, True]


def test_a_loaded_program_of_dynamic_sizes_serves_all_sizes() -> None:
    spec = [df.TensorSpec([None, 3])]
    first, second = (df.function(several_rows, input_signature=spec) for _ in range(2))
    for rows in (1, 0, 33, 2, 1000):
        assert arrays(first(matrix(rows, 3))) == arrays(second(matrix(rows, 3)))
    executables: list[Any] = [f.get_concrete_function().compiled.executable for f in (first, second)]
    assert [executable.loaded for executable in executables] == [False, True]


def test_loaded_programs_of_one_and_of_all_sizes_share_their_code() -> None:
    """The second program is stored without the code of the first, which is an object of its own."""
    programs: list[Any] = []
    for sizes in ("exact", "automatic") * 2:
        f = df.function(several_rows, sizes=sizes)
        f(matrix(4, 3))
        (concrete,) = f.concrete_functions
        programs.append(concrete.compiled_for([matrix(4, 3)]).executable)
    static, dynamic = programs[2:]
    assert static.loaded
    assert dynamic.loaded
    assert set(static.libraries) == set(dynamic.libraries)


def several_rows(x: df.Tensor) -> Any:
    return df.nn.softmax(x), df.reduce_sum(x * 2.0, axis=0)


def test_a_loaded_program_updates_variables() -> None:
    def step(x: df.Tensor, v: df.Variable) -> df.Tensor:
        return v.assign_sub(0.1 * x) + x

    results = []
    for loaded in (False, True):
        variable = df.Variable(df.ones([3, 3]))
        f = df.function(lambda x, variable=variable: step(x, variable), name="step")
        results.append([arrays((f(matrix(3, 3)), df.identity(variable))) for _ in range(3)])
        assert is_loaded(f) is loaded
    assert results[0] == results[1]


def test_a_loaded_program_goes_with_its_function() -> None:
    df.function(plain, sizes="exact")(matrix(3, 3))
    f = df.function(plain, sizes="exact")
    f(matrix(3, 3))
    executable: Any = compiled(f).executable
    references = [weakref.ref(x) for x in (executable, *executable.libraries)]
    assert executable.loaded
    del f, executable
    gc.collect()
    assert [reference() for reference in references] == [None, None]


# What only errors and reports read is computed from the graph.


def divided(x: df.Tensor, n: df.Tensor) -> df.Tensor:
    df.debugging.assert_positive(n, message="n is not positive")
    return x // df.cast(n, df.float32)


def test_a_loaded_program_raises_the_error_of_a_compiled_one() -> None:
    errors = []
    for _ in range(2):
        f = df.function(divided)
        f(matrix(3, 3), df.constant(2))
        for _ in range(2):
            with pytest.raises(df.errors.InvalidArgumentError) as raised:
                f(matrix(3, 3), df.constant(-1))
            errors.append(str(raised.value))
    assert len(set(errors)) == 1
    assert "n is not positive" in errors[0]


@pytest.mark.parametrize("program", [plain, loop, gradient], ids=lambda p: p.__name__)
def test_reports_of_a_loaded_program_are_those_of_a_compiled_one(program: Callable[..., Any]) -> None:
    texts = []
    for _ in range(2):
        f = df.function(program, name="program")
        f(matrix(3, 3))
        concrete = f.get_concrete_function(SPEC)
        lines = [line for line in f.status().splitlines() if "compile" not in line]
        texts.append((lines, f.explain(), str(concrete.optimised_graph), str(concrete.kernels)))
    assert texts[0] == texts[1]


# Equal keys are equal programs.


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_programs_of_one_key_have_equal_code_and_parameters(program: Callable[..., Any]) -> None:
    entries = [entry_of(program) for _ in range(2)]
    assert entries[0].key == entries[1].key
    one, two = ([image_fields(entry), sources(entry)] for entry in entries)
    assert one == two


def entry_of(program: Callable[..., Any], options: CompileOptions | None = None) -> ProgramEntry:
    concrete = df.function(program, name="program").get_concrete_function(SPEC)
    graph: Graph = concrete.compiled.graph_with_symbolic_sizes or concrete.compiled.graph
    entry = program_entry(graph, options or concrete.compiled.options)
    assert entry is not None
    return entry


def image_fields(entry: ProgramEntry) -> Any:
    image = lowered(optimised(entry), entry.options).program.image
    return program_cache._fields(image, program_cache._constants(entry.graph, image.constants) or ())


def sources(entry: ProgramEntry) -> Any:
    return [source.text for source in lowered(optimised(entry), entry.options).program.sources]


def optimised(entry: ProgramEntry) -> Graph:
    return optimise(entry.graph, entry.options)


# The key contains what a program depends on.

OTHER_OPTIONS: dict[str, Any] = {
    "backend": "numba",
    "strict": True,
    "on_device": True,
    "soft_placement": False,
    "interpret_first": True,
    "capabilities": Capabilities(fourier=False),
    "cost_model": CostModel(addition_ns=1.0),
}
NO_ENTRY: dict[str, Any] = {"memory_budget": 1 << 20, "checking": True, "rewrites": (object(),)}


def test_each_option_is_in_the_key_or_prevents_an_entry() -> None:
    """But the memory, of which passes read the budget of stacks."""
    names = set(compared_fields(CompileOptions) or ())
    assert names == {*OTHER_OPTIONS, *NO_ENTRY, "memory", "kept_by_loops"}
    graph, options = entry_of(plain).graph, CompileOptions()
    keys = [key_of(graph, replace(options, **{name: value})) for name, value in OTHER_OPTIONS.items()]
    keys += [key_of(graph, replace(options, kept_by_loops=1 << 20)), key_of(graph, options)]
    assert len(set(keys)) == len(keys)
    assert not any(program_entry(graph, replace(options, **{name: x})) for name, x in NO_ENTRY.items())


def key_of(graph: Graph, options: CompileOptions) -> str:
    entry = program_entry(graph, options)
    assert entry is not None
    return entry.key


@pytest.mark.parametrize(
    ("owner", "name", "value"),
    [
        (switches, "named", lambda: frozenset({"product"})),
        (thread_count, "max_threads", lambda: 63),
        (jit, "context", lambda: "another processor"),
        (program_cache, "_source_times", lambda: (("/ops/module.py", 1, 1 << 60),)),
        (program_cache, "DUALFLOW", "0.0"),
        (program_cache, "capabilities", lambda: Capabilities(windows=False)),
        (program_cache, "_instruction_sets", lambda: ("SSE2",)),
        (np, "__version__", "0"),
        (sys, "version", "0"),
    ],
    ids=lambda x: x if isinstance(x, str) else None,
)
def test_the_process_is_in_the_key(
    owner: Any, name: str, value: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = entry_of(plain)
    monkeypatch.setattr(owner, name, value)
    monkeypatch.setattr(program_cache, "_context", program_cache._context.__wrapped__)
    assert key_of(entry.graph, entry.options) != entry.key


@contextmanager
def control_bits(bits: int) -> Iterator[None]:
    """A context in which ``bits`` are set in the control register of this thread's SSE unit."""
    c = ctypes.CDLL(None)
    before, changed = ((ctypes.c_uint32 * 8)() for _ in range(2))  # the fenv_t of glibc, the register last
    for environment in (before, changed):
        c.fegetenv(environment)
    changed[7] |= bits
    c.fesetenv(changed)
    try:
        yield
    finally:
        c.fesetenv(before)


of_sse = pytest.mark.skipif(
    sys.platform != "linux" or platform.machine() != "x86_64", reason="the register is that of x86-64"
)


@of_sse
@pytest.mark.parametrize("bits", [0x8000, 0x40, 0x2000], ids=["results", "operands", "rounding"])
def test_the_floating_point_mode_of_the_thread_is_in_the_key(bits: int) -> None:
    entry = entry_of(plain)
    with control_bits(bits):
        assert key_of(entry.graph, entry.options) != entry.key


@of_sse
def test_constants_are_folded_in_the_floating_point_mode_of_the_process() -> None:
    def scaled(x: df.Tensor) -> df.Tensor:
        return x * (df.constant(1e-30) * 1e-12)

    x = df.fill([3, 3], 1e30)
    with control_bits(0x8040):
        df.function(scaled)(x)
    assert arrays(df.function(scaled)(x)) == arrays(scaled(x))


def test_settings_of_blas_are_in_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENBLAS_CORETYPE", raising=False)
    before = program_cache._context.__wrapped__()
    monkeypatch.setenv("OPENBLAS_CORETYPE", "Haswell")
    assert program_cache._context.__wrapped__() != before


def test_the_key_changes_with_each_source_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in program_cache._COMPILING:
        (tmp_path / name).mkdir(parents=True)
    file = tmp_path / "ops" / "inside" / "module.py"
    file.parent.mkdir()
    file.write_text("x = 1")
    monkeypatch.setattr(program_cache, "_PACKAGE", str(tmp_path))
    read = program_cache._source_times.__wrapped__
    before = read()
    assert [name for name, _, _ in before] == ["/ops/inside/module.py"]
    os.utime(file, ns=(0, 0))
    changed = read()
    file.write_text("x = 10")
    assert before != changed != read() != before


def test_the_key_changes_with_the_content_of_a_file_without_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in program_cache._COMPILING:
        (tmp_path / name).mkdir(parents=True)
    file = tmp_path / "ops" / "module.py"
    monkeypatch.setattr(program_cache, "_PACKAGE", str(tmp_path))
    monkeypatch.setattr(program_cache, "_source_times", program_cache._source_times.__wrapped__)
    contents = []
    for text in ("x = 1", "x = 2"):
        file.write_text(text)
        assert program_cache._undated_source() == b""
        os.utime(file, ns=(0, 0))
        contents.append(program_cache._undated_source())
    assert b"" != contents[0] != contents[1]


@pytest.mark.parametrize(
    ("times", "reason"),
    [
        ((("/ops/module.py", 1, 1 << 62),), "the source of dualflow has changed since it was imported"),
        ((), "the source of dualflow is in no folder, where its files have times"),
    ],
)
def test_a_process_that_may_run_other_code_loads_no_program(
    times: Any, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert program_cache.unavailable_reason() == ""
    monkeypatch.setattr(program_cache, "_source_times", lambda: times)
    monkeypatch.setattr(program_cache, "_source_reason", program_cache._source_reason.__wrapped__)
    assert program_cache.unavailable_reason() == reason
    f = df.function(plain)
    assert program_entry(f.get_concrete_function(SPEC).graph, CompileOptions()) is None


# What has no entry, or a damaged one, is compiled.


def has_host_call(x: df.Tensor) -> df.Tensor:
    return df.linalg.svd(x, compute_uv=False)


def test_a_program_with_host_calls_is_not_stored(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "dualflow.cache"):
        for _ in range(2):
            f = df.function(has_host_call)
            f(matrix(3, 3))
            assert not is_loaded(f)
    assert "the program of has_host_call is not stored: it has host calls" in caplog.messages


@pytest.mark.parametrize("damage", ["junk", "another record", "no machine code", "no folder"])
def test_a_damaged_entry_is_compiled_and_stored_again(damage: str, folder: Path) -> None:
    f = df.function(plain, sizes="exact")
    x = matrix(3, 3)
    expected = arrays(f(x))
    key = entry_of_trace(f).key
    if damage == "no machine code":
        for path in folder.iterdir():
            if path.stem != key:
                path.unlink()
    elif damage == "no folder":
        for path in folder.iterdir():
            path.unlink()
        folder.rmdir()
    else:
        object_cache.store(key, b"junk" if damage == "junk" else b"i\x01\x00\x00\x00")
    for libraries in (jit._loaded, early_compile.libraries):
        libraries.clear()
    for loaded in (False, True):
        again = df.function(plain, sizes="exact")
        assert arrays(again(x)) == expected
        assert is_loaded(again) is loaded


def entry_of_trace(function: Any) -> ProgramEntry:
    entry = program_entry(compiled(function).graph, compiled(function).options)
    assert entry is not None
    return entry


# Another process.

CHILD = """
import sys
import weakref
import numpy as np
import dualflow as df
step = df.function(lambda x: df.reduce_sum(df.tanh(x @ x) + 1.0))
print(step(df.constant(np.eye(3, dtype=np.float32))).numpy())
compilers = {"dualflow.backends.llvm.program", "dualflow.backends.llvm.text", "dualflow.schedule.plan"}
compilers |= {"dualflow.graph.passes.pipeline"}
print(*sorted(compilers & set(sys.modules)))
"""


def test_another_process_runs_it_without_the_compiler(folder: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(SOURCE_ROOT)}
    outputs = [
        subprocess.run(
            [sys.executable, "-c", CHILD], env=environment, capture_output=True, text=True, check=True
        ).stdout.splitlines()
        for _ in range(2)
    ]
    assert outputs[0][0] == outputs[1][0]
    assert "dualflow.schedule.plan" in outputs[0][1]
    assert outputs[1][1] == ""

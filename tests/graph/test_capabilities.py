"""Passes and plans depend on a backend's capabilities, never on its name."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opencl_driver import use_backend

import dualflow as df
from dualflow.function.calls.lazy_backends import capabilities_of
from dualflow.function.options import BACKENDS
from dualflow.graph.capabilities import ALL, KERNEL_DTYPES, CacheBytes, Capabilities
from dualflow.graph.options import CompileOptions
from dualflow.graph.passes.fourier_tables import FOUR_STEPS
from dualflow.graph.passes.pipeline import optimise
from dualflow.schedule.operands import CallKind
from dualflow.schedule.plan import plan

ROOT = Path(df.__file__).parent
OTHER_MEANINGS = {
    "function/concrete.py": "the argument of a user's call",
    "function/tracing/numpy_use.py": "the name of a module",
}
"""Files that compare names of backends, and what they compare with them."""

capabilities = st.builds(
    Capabilities,
    dtypes=st.sets(st.sampled_from(KERNEL_DTYPES)).map(
        lambda chars: "".join([char for char in KERNEL_DTYPES if char in chars])
    ),
    strided_products=st.booleans(),
    windows=st.booleans(),
    fourier=st.booleans(),
    symbolic_sizes=st.booleans(),
    vector_bytes=st.sampled_from([None, 16, 64]),
    cache_bytes=st.sampled_from([None, CacheBytes(), CacheBytes(1 << 16, 1 << 20)]),
    threads=st.sampled_from([None, 1, 4]),
)


@given(capabilities, capabilities, capabilities)
def test_the_intersection_of_capabilities_is_associative(
    x: Capabilities, y: Capabilities, z: Capabilities
) -> None:
    assert (x & y) & z == x & (y & z)
    assert x & x == x & ALL == ALL & x == x


@pytest.mark.parametrize("name", BACKENDS)
def test_a_backend_can_do_some_of_all(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    use_backend(name, monkeypatch)
    stated = capabilities_of(name)
    assert stated & ALL == ALL & stated == stated


def test_long_transforms_are_steps_where_there_is_a_routine() -> None:
    spec = df.TensorSpec([1 << 16], "complex64")
    graph = df.function(df.signal.fft).get_concrete_function(spec).graph
    for fourier in (True, False):
        options = CompileOptions(capabilities=Capabilities(fourier=fourier))
        assert any(node.op is FOUR_STEPS for node in optimise(graph, options).nodes) is fourier


def test_complex_numbers_are_parted_where_kernels_compute_with_them() -> None:
    spec = df.TensorSpec([30], "complex64")
    graph = df.function(lambda x: df.exp(x) * x).get_concrete_function(spec).graph
    texts = [
        str(optimise(graph, CompileOptions(capabilities=Capabilities(dtypes=dtypes))))
        for dtypes in (KERNEL_DTYPES, "fd")
    ]
    assert [" exp_re" in text or "_re(" in text for text in texts] == [True, False]


@pytest.mark.parametrize(("strided", "copies"), [(True, 0), (False, 1)])
def test_operands_that_blas_cannot_read_are_copied(strided: bool, copies: int) -> None:
    specs = [df.TensorSpec([8, 12]), df.TensorSpec([6, 5])]
    graph = df.function(lambda x, y: x[:, ::2] @ y).get_concrete_function(*specs).graph
    calls = plan(optimise(graph, CompileOptions()), Capabilities(strided_products=strided)).calls
    assert sum(call.kind is CallKind.KERNEL for call in calls) == copies


@pytest.mark.parametrize("package", ["graph", "schedule", "function"])
def test_names_of_backends_are_compared_nowhere(package: str) -> None:
    places = [
        (name, node.lineno)
        for path in sorted(ROOT.glob(f"{package}/**/*.py"))
        if (name := str(path.relative_to(ROOT))) not in OTHER_MEANINGS
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Compare)
        for part in (node.left, *node.comparators)
        if isinstance(part, ast.Constant) and part.value in BACKENDS
    ]
    assert not places

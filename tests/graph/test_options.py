"""Compile options decide what a graph compiles to, and nothing else does."""

from __future__ import annotations

import re
import threading
from dataclasses import FrozenInstanceError

import pytest

import dualflow as df
from dualflow.core.errors import InternalError
from dualflow.core.spec import TensorSpec
from dualflow.function.options import compile_options
from dualflow.graph.capabilities import CacheBytes, Capabilities
from dualflow.graph.cost_model import CostModel
from dualflow.graph.ir import Graph, Value
from dualflow.graph.options import CompileOptions
from dualflow.graph.passes.over_bodies import map_bodies
from dualflow.graph.passes.pipeline import PASSES, Pass, optimise
from dualflow.ops.contraction import MATMUL
from dualflow.ops.op_kinds import Loop

ITERATIONS = 40
ROWS = 4 * 3 * ITERATIONS
"""The bytes that a batched product keeps of all iterations."""


def drawing(x):
    return df.while_loop(
        lambda i, x: i < ITERATIONS, lambda i, x: (i + 1, x + df.random.normal([3])), (0, x)
    )[1]


def multiplying(x, w):
    return df.map_fn(lambda row: df.sin(row) @ w, x)


def graph_of(function, *shapes):
    return df.function(function).get_concrete_function(*map(TensorSpec, shapes)).graph


def outside(graph):
    """The nodes outside of loops."""
    return [n for n in graph.nodes if not isinstance(n.op.kind, Loop)]


@pytest.mark.parametrize(("kept", "before"), [(ROWS, True), (ROWS - 1, False)])
def test_numbers_are_drawn_before_a_loop_if_they_fit(kept, before):
    graph = optimise(graph_of(drawing, [3]), CompileOptions(kept_by_loops=kept))
    assert any(n.op.name == "random_normal" for n in outside(graph)) is before


@pytest.mark.parametrize(("kept", "together"), [(ROWS, True), (ROWS - 1, False)])
def test_products_of_all_iterations_are_one_if_what_they_need_fits(kept, together):
    graph = optimise(graph_of(multiplying, [ITERATIONS, 1, 3], [3, 5]), CompileOptions(kept_by_loops=kept))
    assert any(n.op is MATMUL for n in outside(graph)) is together


def test_loops_may_keep_a_quarter_of_the_memory():
    for memory, before in ((4 * ROWS, True), (4 * ROWS - 4, False)):
        graph = optimise(graph_of(drawing, [3]), CompileOptions(memory=memory))
        assert any(n.op.name == "random_normal" for n in outside(graph)) is before


def test_a_trace_goes_by_the_options_of_its_compile():
    try:
        for kept, before in ((ROWS, True), (ROWS - 1, False)):
            df.config.set_loop_memory(kept)
            concrete = df.function(drawing).get_concrete_function(TensorSpec([3]))
            df.config.set_loop_memory(None)
            concrete(df.zeros([3]))
            drawn = any(n.op.name == "random_normal" for n in outside(concrete.optimised_graph))
            assert drawn is before
    finally:
        df.config.set_loop_memory(None)


@pytest.mark.parametrize(("ops", "kernels"), [(500, 1), (5, 4)])
def test_the_cost_model_bounds_the_length_of_kernels(ops, kernels):
    def chain(x):
        for _ in range(20):
            x = df.sin(x)
        return x

    costs = CostModel(max_ops=ops)
    nodes = optimise(graph_of(chain, [30]), CompileOptions(cost_model=costs)).nodes
    assert [len(node.attrs["body"].nodes) for node in nodes] == [20 // kernels] * kernels


@pytest.mark.parametrize(("stages", "kernels"), [(3, 1), (2, 2), (1, 3)])
def test_the_cost_model_bounds_the_stages_of_kernels(stages, kernels):
    costs = CostModel(max_stages=stages)
    nodes = optimise(graph_of(df.nn.softmax, [30, 40]), CompileOptions(cost_model=costs)).nodes
    assert len(nodes) == kernels


@pytest.mark.parametrize(("chunk_ns", "is_parallel"), [(1e3, True), (1e9, False)])
def test_the_cost_model_decides_which_loops_are_parallel(chunk_ns, is_parallel):
    options = CompileOptions(capabilities=Capabilities(threads=2), cost_model=CostModel(chunk_ns=chunk_ns))
    backend = pytest.importorskip("dualflow.backends.llvm.backend")
    graph = optimise(graph_of(lambda x: df.sin(x) * 2.0, [1 << 16]), options)
    assert backend.build(graph, options).image.uses_pool is is_parallel


@pytest.mark.parametrize(("far_byte_cost", "stored"), [(0.01, True), (1e3, False)])
def test_the_cost_model_reports_what_later_stages_compute_again(far_byte_cost, stored):
    without_cache = Capabilities(cache_bytes=CacheBytes(0, 0))
    options = CompileOptions(cost_model=CostModel(far_byte_cost=far_byte_cost), capabilities=without_cache)
    backend = pytest.importorskip("dualflow.backends.llvm.backend")
    graph = optimise(graph_of(df.nn.softmax, [30, 40]), options)
    (kernel,) = backend.build(graph, options).program.kernels
    assert bool(kernel.lowered_nest().scratch_values) is stored


@pytest.mark.parametrize(("near", "stored"), [(40 * 4, True), (40 * 4 - 1, False)])
def test_later_stages_load_rows_that_fit_the_nearest_cache(near, stored):
    caches = Capabilities(cache_bytes=CacheBytes(near, 1 << 25))
    options = CompileOptions(cost_model=CostModel(far_byte_cost=1e3), capabilities=caches)
    backend = pytest.importorskip("dualflow.backends.llvm.backend")
    graph = optimise(graph_of(df.nn.softmax, [30, 40]), options)
    (kernel,) = backend.build(graph, options).program.kernels
    assert bool(kernel.lowered_nest().scratch_values) is stored


def test_options_do_not_change():
    with pytest.raises(FrozenInstanceError):
        CompileOptions().memory = 1


def test_equal_options_are_equal():
    assert CompileOptions(memory=1 << 20) == CompileOptions(memory=1 << 20)
    assert hash(CompileOptions()) == hash(CompileOptions())


def broken(graph: Graph, options: CompileOptions) -> Graph:
    """A pass that forgets a node."""
    return graph.with_results([Value(v.spec) for v in graph.results])


def broken_inside(graph: Graph, options: CompileOptions) -> Graph:
    """A pass that forgets a node of each body."""
    return map_bodies(graph, lambda body: broken(body, options))


def test_checking_finds_the_pass_that_breaks_a_rule(traced):
    graph, passes = traced(df.exp, [3]), (*PASSES[:2], Pass("broken", "none", broken), *PASSES[2:])
    with pytest.raises(InternalError, match="computed by no node"):
        optimise(graph, CompileOptions(checking=True), passes=passes)


def test_checking_looks_into_bodies():
    graph, passes = graph_of(drawing, [3]), (*PASSES[:2], Pass("broken", "none", broken_inside))
    with pytest.raises(InternalError, match="computed by no node"):
        optimise(graph, CompileOptions(checking=True), passes=passes)


def test_all_passes_keep_the_rules(traced):
    options = CompileOptions(checking=True)
    for graph in (graph_of(drawing, [3]), graph_of(multiplying, [ITERATIONS, 1, 3], [3, 5])):
        optimise(graph, options)


def test_an_environment_variable_enables_the_checks(monkeypatch):
    monkeypatch.delenv("DUALFLOW_CHECK_PASSES", raising=False)
    assert not compile_options().checking
    monkeypatch.setenv("DUALFLOW_CHECK_PASSES", "1")
    assert compile_options().checking


def test_one_thread_shares_nothing():
    options = CompileOptions(capabilities=Capabilities(threads=1))
    backend = pytest.importorskip("dualflow.backends.llvm.backend")
    graph = optimise(graph_of(lambda x: df.sin(x) * 2.0, [1 << 20]), options)
    assert not backend.build(graph, options).image.uses_pool


@pytest.mark.parametrize("bits", [128, 256, 512])
def test_code_is_emitted_for_the_vector_width(bits):
    options = CompileOptions(capabilities=Capabilities(vector_bytes=bits // 8))
    backend = pytest.importorskip("dualflow.backends.llvm.backend")
    graph = optimise(graph_of(lambda x: df.sin(x) * 2.0, [1 << 10]), options)
    program = backend.build(graph, options).program
    (kernel,) = [source.text for source in program.sources if source.name in program.image.functions.values()]
    assert f'"prefer-vector-width"="{bits}"' in kernel
    widths = {int(lanes) for lanes in re.findall(r"<(\d+) x float>", kernel)}
    assert max(widths) == bits // 16, "light work runs over two registers at once"


def test_numba_shares_a_range_between_no_more_threads_than_requested():
    module = pytest.importorskip("dualflow.backends.numba.parallel_for")
    workers = set()

    def kernel(begin, end):
        workers.add(threading.get_ident())

    module.parallel_for(kernel, 1)(1 << 12, 1)
    assert workers == {threading.get_ident()}

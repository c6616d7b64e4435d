"""Ops that need sizes as numbers: programs with guards, where their code compares sizes of arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dualflow as df

N = None
Shapes = tuple[tuple[int | None, ...], ...]
FILTERS = np.random.default_rng(0).standard_normal((3, 2, 3))
IMAGE_FILTERS = np.random.default_rng(1).standard_normal((2, 3, 2, 3))
SIZES = (3, 0, 1, 2, 31, 32, 33, 64, 5)

CASES: dict[str, tuple[Callable[..., Any], Shapes, tuple[int, ...]]] = {
    "halves": (lambda x: df.split(x, 2, 0), ((N, 3),), (2, 0, 4, 6, 32, 64)),
    "thirds of an axis": (lambda x: df.concat(df.split(x, 3, 1)[::-1], 1), ((N, N),), (3, 6, 0, 9, 33)),
    "a product of all rows": (lambda x: df.einsum("bij,jk->bik", x, FILTERS[0]), ((N, 4, 2),), SIZES),
    "products of a batch": (lambda x, y: df.einsum("bij,bjk->bki", x, y), ((N, 2, N), (N, N, 2)), SIZES),
    "a sum over two axes": (lambda x: df.tensordot(x, x, [[0, 1], [0, 1]]), ((N, N, 2),), SIZES),
    "a convolution": (lambda x: df.nn.conv1d(x, FILTERS, 1, "SAME"), ((N, N, 2),), SIZES),
    "a strided convolution": (lambda x: df.nn.conv1d(x, FILTERS, 2, "SAME"), ((2, N, 2),), SIZES),
    "a convolution of images": (
        lambda x: df.nn.conv2d(x, IMAGE_FILTERS, 2, "VALID"),
        ((2, N, N, 2),),
        (3, 4, 5, 6, 31, 32, 33),
    ),
    "grouped filters": (
        lambda x: df.nn.depthwise_conv2d(x, IMAGE_FILTERS, [1, 1, 1, 1], "SAME"),
        ((N, 6, 6, 2),),
        SIZES[:4],
    ),
    "largest of windows": (lambda x: df.nn.max_pool1d(x, 2, 2, "SAME"), ((N, N, 3),), SIZES),
    "means of windows": (lambda x: df.nn.avg_pool1d(x, 3, 2, "VALID"), ((2, N, 3),), (3, 4, 5, 31, 32, 33)),
    "frames": (lambda x: df.signal.frame(x, 4, 2), ((2, N),), (4, 5, 6, 7, 31, 32, 33)),
    "a real Fourier transform": (lambda x: df.abs(df.signal.rfft(x)), ((2, N),), (3, 4, 1, 31, 32)),
    "added frames": (lambda x: df.signal.overlap_and_add(x, 2), ((2, N, 5),), SIZES),
    "mirrored edges": (lambda x: df.pad(x, [[1, 0], [2, 1]], "REFLECT"), ((N, N),), (3, 4, 31, 32)),
    "a transposed convolution": (
        lambda x: df.nn.conv1d_transpose(x, FILTERS, [2, 2 * df.shape(x)[1], 2], 2),
        ((2, N, 3),),
        (3, 1, 2, 31, 32),
    ),
    "resized images": (lambda x: df.image.resize(x, [3, 5]), ((1, N, N, 2),), (3, 4, 1, 2, 31)),
    "images of the size of others": (
        lambda x, y: df.image.resize(x, df.shape(y)[:2], "bicubic"),
        ((1, 4, N, 2), (N, N)),
        (3, 4, 1, 2, 31),
    ),
    "areas of pixels": (lambda x: df.image.resize(x, [3, 5], "area"), ((1, N, N, 2),), (3, 4, 1, 2, 31)),
    "similar images": (
        lambda x: df.image.ssim(x, x * 0.5, 1.0, filter_size=3),
        ((N, N, N, 1),),
        (3, 4, 5, 31),
    ),
    "a grid": (lambda x: df.meshgrid(x, x)[0], ((N,),), SIZES),
    "blocks of pixels": (lambda x: df.nn.space_to_depth(x, 2), ((N, N, N, 2),), (2, 4, 0, 6, 32)),
    "random numbers": (
        lambda x: x * df.random.stateless_uniform(df.shape(x), [1, 2], dtype=df.float64),
        ((N, 3),),
        SIZES,
    ),
}


def arguments(shapes: Shapes, n: int) -> list[df.Tensor]:
    rng = np.random.default_rng(n)
    sizes = [[n if d is None else d for d in shape] for shape in shapes]
    return [df.constant(rng.standard_normal(shape)) for shape in sizes]


IN_FLOAT32 = ("resized images", "images of the size of others", "areas of pixels", "similar images")
"""The cases that compute in float32."""


def assert_equal_to_eager(
    compiled: Any, function: Callable[..., Any], inputs: list[df.Tensor], name: str
) -> None:
    computed, expected = df.nest.flatten(compiled(*inputs)), df.nest.flatten(function(*inputs))
    precision = 1e-5 if name in IN_FLOAT32 else 1e-8
    for x, y in zip(computed, expected, strict=True):
        np.testing.assert_allclose(x, y, rtol=precision, atol=precision)


def with_gradient(function: Callable[..., Any]) -> Callable[..., Any]:
    def both(*inputs: Any) -> Any:
        with df.GradientTape() as tape:
            tape.watch(list(inputs))
            values = function(*inputs)
            total = df.add_n([df.reduce_sum(df.sin(y)) for y in df.nest.flatten(values)])
        return values, tape.gradient(total, list(inputs), unconnected_gradients="zero")

    return both


def specs(shapes: Shapes) -> list[df.TensorSpec]:
    return [df.TensorSpec(shape, df.float64) for shape in shapes]


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("order", [1, -1])
def test_values_are_those_of_eager_calls_at_every_size(name: str, order: int) -> None:
    function, shapes, sizes = CASES[name]
    compiled = df.function(function, input_signature=specs(shapes))
    for n in sizes[::order]:
        assert_equal_to_eager(compiled, function, arguments(shapes, n), name)


@pytest.mark.parametrize("name", CASES)
def test_gradients_are_those_of_eager_calls_at_every_size(name: str) -> None:
    function, shapes, sizes = CASES[name]
    both = with_gradient(function)
    compiled = df.function(both, input_signature=specs(shapes))
    for n in sizes:
        assert_equal_to_eager(compiled, both, arguments(shapes, n), name)


@pytest.mark.parametrize("name", CASES)
def test_gradients_under_a_tape_are_those_of_eager_calls_at_every_size(name: str) -> None:
    function, shapes, sizes = CASES[name]
    taped = with_gradient(df.function(function, input_signature=specs(shapes)))
    for n in sizes:
        assert_equal_to_eager(taped, with_gradient(function), arguments(shapes, n), name)


@pytest.mark.llvm  # Numba has no programs for sizes that depend on data
@pytest.mark.parametrize("name", CASES)
def test_sizes_that_are_decided_alike_share_a_program(name: str) -> None:
    function, shapes, _ = CASES[name]
    compiled = df.function(function, input_signature=specs(shapes))
    sizes = (6, 12, 18, 24, 36, 48)
    for n in sizes:
        compiled(*arguments(shapes, n))
    (trace,) = compiled.concrete_functions
    assert len(trace._specialisations) == 1
    for n in range(6, 60, 6):
        compiled(*arguments(shapes, n))
    assert len(trace._specialisations) == 1


@pytest.mark.llvm
@pytest.mark.parametrize("name", CASES)
def test_gradients_of_sizes_that_are_decided_alike_share_a_program(name: str) -> None:
    function, shapes, _ = CASES[name]
    compiled = df.function(with_gradient(function), input_signature=specs(shapes))
    for n in (6, 12, 18, 24, 36, 48):
        compiled(*arguments(shapes, n))
    (trace,) = compiled.concrete_functions
    assert len(trace._specialisations) == 1


@pytest.mark.llvm
@pytest.mark.parametrize(
    "name", ["a sum over two axes", "grouped filters of one image", "largest of windows"]
)
def test_an_axis_of_a_size_that_an_op_distinguishes_has_one_program_for_the_sizes_of_others(
    name: str,
) -> None:
    programs: dict[str, Callable[..., Any]] = {
        "a sum over two axes": lambda x: df.einsum("nhwc,nhwc->hw", x, x),
        "grouped filters of one image": lambda x: df.nn.depthwise_conv2d(
            x, IMAGE_FILTERS, [1, 1, 1, 1], "SAME"
        ),
        "largest of windows": lambda x: df.nn.max_pool2d(x, 2, 2, "SAME"),
    }
    function = with_gradient(programs[name])
    compiled = df.function(function, input_signature=[df.TensorSpec([N, N, N, 2], df.float64)])
    for height, width in ((4, 6), (8, 10), (6, 8), (16, 32)):
        assert_equal_to_eager(compiled, function, arguments(((1, height, width, 2),), height), name)
    (trace,) = compiled.concrete_functions
    assert len(trace._specialisations) == 1


@pytest.mark.llvm
def test_sizes_choose_the_program_whatever_calls_there_were_before() -> None:
    def results(order: tuple[int, ...]) -> dict[int, bytes]:
        function, shapes, _ = CASES["a strided convolution"]
        compiled = df.function(function, input_signature=specs(shapes))
        return {n: compiled(*arguments(shapes, n)).numpy().tobytes() for n in order}

    sizes = (32, 1, 33, 3, 2, 31, 5, 4)
    assert results(sizes) == results(sizes[::-1])


def test_sizes_that_an_op_refuses_raise_its_error() -> None:
    compiled = df.function(lambda x: df.split(x, 2, 0), input_signature=[df.TensorSpec([None])])
    for n in (2, 4, 6):
        compiled(df.ones([n]))
        with pytest.raises(df.errors.InvalidArgumentError, match="split"):
            compiled(df.ones([n + 1]))


@pytest.mark.llvm
def test_a_sum_of_products_compares_no_sizes_unless_axes_may_broadcast() -> None:
    function, shapes, sizes = CASES["a product of all rows"]
    compiled = df.function(function, input_signature=specs(shapes))
    for n in sizes:
        compiled(*arguments(shapes, n))
    (trace,) = compiled.concrete_functions
    assert len(trace._specialisations) == 1


@pytest.mark.llvm
@pytest.mark.parametrize("name", ["means of windows", "a convolution of images", "halves"])
def test_a_graph_is_verified_for_the_sizes_that_its_guards_admit(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DUALFLOW_CHECK_PASSES", "1")
    function, shapes, sizes = CASES[name]
    compiled = df.function(with_gradient(function), input_signature=specs(shapes))
    for n in sizes:
        compiled(*arguments(shapes, n))


REQUIRED: dict[str, tuple[Callable[..., Any], Shapes, tuple[int, ...]]] = {
    "a new shape": (lambda x: df.reshape(x * 2.0, [4, 6]) + 1.0, ((N, 3),), (8,)),
    "a bias": (lambda x: x + np.arange(5.0), ((2, N),), (5, 1)),
    "rows of another size": (lambda x, y: y + (x - np.ones((4, 3))), ((N, 3), (N, 3)), (4, 1)),
    "a product": (lambda x: df.matmul(x, np.ones((6, 2))), ((3, N),), (6,)),
}


@pytest.mark.parametrize("name", REQUIRED)
def test_a_size_that_an_op_requires_is_a_number_of_its_program(name: str) -> None:
    function, shapes, sizes = REQUIRED[name]
    compiled = df.function(with_gradient(function), input_signature=specs(shapes))
    for n in (*sizes, *sizes):
        assert_equal_to_eager(compiled, with_gradient(function), arguments(shapes, n), name)
    for n in {2, 3, 7} - set(sizes):
        with pytest.raises(df.errors.InvalidArgumentError):
            compiled(*arguments(shapes, n))
    assert_equal_to_eager(compiled, with_gradient(function), arguments(shapes, sizes[0]), name)


@pytest.mark.llvm
def test_the_program_for_a_size_that_an_op_requires_is_that_of_static_sizes() -> None:
    def function(x: Any) -> Any:
        return df.reduce_sum(df.sin(x) + np.ones((8, 3)), 0)

    x = df.ones([8, 3], df.float64)
    dynamic = df.function(function, input_signature=[df.TensorSpec([None, 3], df.float64)], name="f")
    dynamic(x)
    (trace,) = dynamic.concrete_functions
    (program,) = trace._specialisations
    static = df.function(function, name="f").get_concrete_function(x)
    assert str(program.compiled.optimised) == str(static.optimised_graph)


def summed_in_a_loop(x: Any, runs: Any) -> Any:
    total = df.zeros([4, 3], df.float64)
    for _ in df.range(runs):
        total += df.sin(x)
    return total


def summed_in_a_branch(x: Any, runs: Any) -> Any:
    total = df.zeros([4, 3], df.float64)
    if runs > 0:
        total += df.sin(x)
    return total


@pytest.mark.parametrize("function", [summed_in_a_loop, summed_in_a_branch])
def test_a_size_that_a_body_requires_is_a_number_of_the_program_and_of_calls_that_run_the_body(
    function: Callable[..., Any],
) -> None:
    signature = [df.TensorSpec([None, 3], df.float64), df.TensorSpec([], df.int32)]
    compiled = df.function(function, input_signature=signature)
    for n, runs in ((4, 2), (1, 2), (4, 0), (7, 0), (0, 0), (4, 1)):
        x = np.random.default_rng(n).standard_normal((n, 3))
        expected = np.zeros((4, 3)) + (
            np.sin(x) * (runs if function is summed_in_a_loop else 1) if runs else 0
        )
        np.testing.assert_allclose(compiled(x, runs), expected, rtol=1e-12)
    with pytest.raises(df.errors.InvalidArgumentError):
        compiled(np.ones((7, 3)), 1)
    fixed = trace_of_sizes(compiled, 4)
    assert "require_size" not in str(fixed)


def trace_of_sizes(compiled: Any, size: int) -> Any:
    """The graph of the program of ``compiled`` in which the first size of the first argument is ``size``."""
    (trace,) = compiled.concrete_functions
    graphs = [program.compiled.graph_with_symbolic_sizes for program in trace._specialisations]
    return next(g for g in graphs if g is not None and g.inputs[0].spec.shape[0] == size)


def unrolled(x: Any) -> Any:
    total = x[0]
    for i in (3, 1, 5, 2):
        total = df.tanh(total + x[i])
    return total


def test_reads_of_rows_by_number_are_compared_with_the_size_once() -> None:
    compiled = df.function(unrolled, input_signature=[df.TensorSpec([None, 20])])
    for n in (8, 6, 300):
        np.testing.assert_array_equal(compiled(df.ones([n, 20])), unrolled(df.ones([n, 20])))
    (trace,) = compiled.concrete_functions
    graph = trace._specialisations[0].compiled.graph_with_symbolic_sizes
    assert graph is not None
    assert [n.op.name for n in graph.nodes].count("require_size") == 1
    for n, index in ((5, 5), (3, 3), (1, 3)):
        with pytest.raises(df.errors.OutOfRangeError, match=f"index {index} is out of range"):
            compiled(df.ones([n, 20]))


def test_nodes_after_a_read_of_a_row_are_copied() -> None:
    compiled = df.function(unrolled, input_signature=[df.TensorSpec([None, 20])])
    compiled(df.ones([8, 20]))
    (trace,) = compiled.concrete_functions
    graph = trace._specialisations[0].compiled.graph_with_symbolic_sizes
    assert graph is not None
    traced = {id(node.output.spec) for node in trace.graph.nodes}
    assert all(id(n.output.spec) in traced for n in graph.nodes if n.op.name in ("add", "tanh"))

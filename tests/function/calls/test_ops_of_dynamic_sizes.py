"""Ops on arguments of dynamic sizes: one program gives the values and gradients of eager calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dualflow as df
from dualflow import array_api
from dualflow.graph.compiled import PartKind

N = None
Case = tuple[Callable[..., Any], tuple[tuple[int | None, ...], ...]]


def system(x: Any) -> Any:
    return x + 9.0 * df.eye(len(x))


def symmetric(x: Any) -> Any:
    return df.matmul(x, x, transpose_b=True) + 5.0 * df.eye(len(x))


def boxes(x: Any) -> Any:
    height, width = df.shape(x)[1], df.shape(x)[2]
    padded = df.image.pad_to_bounding_box(x, 1, 0, height + 2, 2 * width)
    return df.image.crop_to_bounding_box(padded, 1, 1, height, width)


def embeddings(x: Any, table: Any) -> Any:
    ids = df.sparse.from_dense(df.cast(x > 0, df.int64))
    return df.nn.safe_embedding_lookup_sparse(table, ids) * df.reduce_sum(x)


CASES: dict[str, Case] = {
    "the first row": (lambda x: x[0], ((N, 3),)),
    "the last row": (lambda x: x[-1] * x[1], ((N, 3),)),
    "a column": (lambda x: x[:, 1] - x[..., -1], ((N, N),)),
    "an axis of size 1": (lambda x: df.squeeze(x[:1], 0), ((N, 3),)),
    "a product of dynamic sizes": (lambda x, y: x @ y, ((N, 4), (4, N))),
    "a product with an identity": (lambda x: x @ df.eye(df.shape(x)[1]), ((N, N),)),
    "a solved system": (lambda x, y: df.linalg.solve(system(x), y), ((N, N), (N, N))),
    "a triangular system": (lambda x, y: df.linalg.triangular_solve(system(x), y), ((N, N), (N, N))),
    "a tridiagonal system": (
        lambda x: df.linalg.tridiagonal_solve(
            df.add(x, [[0.0], [9.0], [0.0]]), x[0], diagonals_format="compact"
        ),
        ((3, N),),
    ),
    "an inverse": (lambda x: df.linalg.inv(system(x)), ((N, N),)),
    "a determinant": (lambda x: df.linalg.slogdet(system(x))[1], ((N, N),)),
    "Cholesky factors": (lambda x: df.linalg.cholesky(symmetric(x)), ((N, N),)),
    "eigenvalues": (lambda x: df.linalg.eigvalsh(symmetric(x)), ((N, N),)),
    "singular values": (lambda x: df.linalg.svd(x, compute_uv=False), ((N, 3),)),
    "singular vectors": (lambda x: df.abs(df.linalg.svd(x)[1]), ((N, 2),)),
    "an orthogonal basis": (lambda x: df.abs(df.linalg.qr(x)[0]), ((N, 2),)),
    "least squares": (lambda x, y: df.linalg.lstsq(x, y), ((N, 2), (N, 1))),
    "a pseudoinverse": (lambda x: df.linalg.pinv(x), ((N, 2),)),
    "a diagonal above the main one": (lambda x: df.linalg.diag(x, k=1, padding_value=2), ((N, N),)),
    "a diagonal below the main one": (lambda x: df.linalg.diag(x[0], k=-3), ((N, N),)),
    "elements above the main diagonal": (lambda x: df.linalg.diag_part(x, k=1), ((3, N, N),)),
    "elements below the main diagonal": (lambda x: df.linalg.diag_part(x, k=-1), ((N, 3),)),
    "a replaced diagonal": (lambda x, y: df.linalg.set_diag(x, y[:-1], k=-1), ((N, N), (N,))),
    "a band of diagonals": (
        lambda x: df.linalg.diag_part(x, k=(-1, 1), padding_value=2, align="LEFT_RIGHT"),
        ((2, N, N),),
    ),
    "a band above the main diagonal": (lambda x: df.linalg.diag_part(x, k=(1, 2)), ((N, 3),)),
    "matrices of a band": (lambda x: df.linalg.diag(x, k=(-1, 2), padding_value=2), ((2, 4, N),)),
    "matrices of a band below the main diagonal": (lambda x: df.linalg.diag(x, k=(-3, -2)), ((2, N),)),
    "a replaced band": (lambda x, y: df.linalg.set_diag(x, y, k=(-1, 1)), ((N, N), (3, N))),
    "a scan": (lambda x: df.scan(lambda a, row: a * 0.5 + row, x), ((N, 3),)),
    "a map that sorts": (lambda x: df.map_fn(lambda row: df.sort(row) * 2.0, x), ((N, N),)),
    "a loop that sorts": (
        lambda x: df.while_loop(
            lambda i, y: i < 3, lambda i, y: (i + 1, df.sort(df.sin(y) + x)), (df.constant(0), x)
        )[1],
        ((N,),),
    ),
    "a branch that sorts": (
        lambda x: df.cond(df.reduce_sum(x) > 0.0, lambda: df.sort(x) ** 2, lambda: x * 2.0),
        ((N,),),
    ),
    "a branch that sorts zeros of a dynamic size": (
        lambda x: x * df.cond(df.reduce_sum(x) > 0.0, lambda: df.sort(df.zeros_like(x) + 1.0), lambda: x),
        ((N,),),
    ),
    "a trace of two axes": (lambda x: df.einsum("bii->b", x), ((3, N, N),)),
    "an update of the last row": (lambda x: df.tensor_scatter_nd_update(x, [[0]], x[-1:]), ((N, 3),)),
    "images in boxes of computed sizes": (boxes, ((1, N, N, 1),)),
    "embeddings of sparse rows": (embeddings, ((N, 3), (2, 3))),
    "scores of the best path": (
        lambda x: df.nn.ctc_greedy_decoder(x, df.fill([df.shape(x)[1]], df.shape(x)[0] - 1))[1],
        ((N, N, 3),),
    ),
    "a cross entropy of classes": (
        lambda x: df.nn.sparse_softmax_cross_entropy_with_logits(df.range(len(x)) % len(x), x),
        ((N, N),),
    ),
    "largest elements": (lambda x: df.sort(x, -1, "DESCENDING")[:, :2], ((N, N),)),
}
SIZES = (2, 3, 4, 7, 31, 32, 33)


def function_and_gradient(function: Callable[..., Any]) -> Callable[..., Any]:
    def both(*inputs: Any) -> Any:
        with df.GradientTape() as tape:
            tape.watch(list(inputs))
            value = function(*inputs)
            total = df.reduce_sum(df.sin(value))
        return value, tape.gradient(total, list(inputs))

    return both


@pytest.mark.parametrize("name", CASES)
def test_one_program_gives_the_values_and_gradients_of_eager_calls(name: str) -> None:
    function, shapes = CASES[name]
    both = function_and_gradient(function)
    compiled = df.function(both, input_signature=[df.TensorSpec(shape, df.float64) for shape in shapes])
    for n in SIZES:
        rng = np.random.default_rng(n)
        inputs = [df.constant(rng.standard_normal([n if d is None else d for d in s])) for s in shapes]
        for result, expected in zip(
            df.nest.flatten(compiled(*inputs)), df.nest.flatten(both(*inputs)), strict=True
        ):
            np.testing.assert_allclose(result, expected, rtol=1e-7, atol=1e-9)


def test_the_gradient_of_no_rows_and_a_row_of_padding_is_empty() -> None:
    def with_next(x: Any) -> Any:
        return x + df.pad(x[1:], [[0, 1]])

    compiled = df.function(function_and_gradient(with_next), input_signature=[df.TensorSpec([None])])
    for n in (2, 0, 1):
        _, (slope,) = compiled(df.ones([n]))
        np.testing.assert_allclose(slope, function_and_gradient(with_next)(df.ones([n]))[1][0], rtol=1e-5)


@pytest.mark.llvm  # Numba has no programs for sizes that depend on data
@pytest.mark.parametrize("name", CASES)
def test_all_sizes_have_one_program(name: str) -> None:
    function, shapes = CASES[name]
    signature = [df.TensorSpec(shape, df.float64) for shape in shapes]
    compiled = df.function(function_and_gradient(function), input_signature=signature)
    for n in SIZES:
        compiled(*[df.ones([n if d is None else d for d in s], df.float64) for s in shapes])
    (trace,) = compiled.concrete_functions
    assert len(trace._specialisations) == 1


def test_the_best_boxes_of_a_dynamic_number_of_boxes() -> None:
    def best(boxes: Any, scores: Any) -> Any:
        return df.nest.flatten(df.image.combined_non_max_suppression(boxes, scores, 2, 3))

    compiled = df.function(
        best, input_signature=[df.TensorSpec([1, None, 1, 4]), df.TensorSpec([1, None, 2])]
    )
    for n in (3, 1, 7):
        boxes = df.random.stateless_uniform([1, n, 1, 4], [n, 0])
        scores = df.random.stateless_uniform([1, n, 2], [n, 1])
        for result, expected in zip(compiled(boxes, scores), best(boxes, scores), strict=True):
            np.testing.assert_allclose(result, expected, rtol=1e-6)


def test_the_median_of_an_open_number_of_elements() -> None:
    median = df.function(lambda x: df.numpy.median(x), input_signature=[df.TensorSpec([None])])
    for n in (5, 4, 1, 2):
        x = np.random.default_rng(n).permutation(n).astype(np.float32)
        assert float(median(df.constant(x))) == np.median(x)


@pytest.mark.llvm
def test_a_loop_that_sorts_rows_of_a_size_from_data_is_the_only_part_that_numpy_runs() -> None:
    @df.function
    def rows(x: Any) -> Any:
        positive = df.exp(df.boolean_mask(x, x > 0.0))
        for _ in df.range(3):
            positive = df.sort(positive * 0.5 - df.reduce_mean(positive))
        return df.tanh(positive)

    for n in (3, 8, 1):
        x = np.random.default_rng(n).standard_normal(n).astype(np.float32)
        expected = np.exp(x[x > 0])
        for _ in range(3):
            expected = np.sort(expected * 0.5 - expected.mean()) if expected.size else expected
        np.testing.assert_allclose(rows(df.constant(x)), np.tanh(expected), rtol=1e-5)
    kinds = [part.kind for part in rows.concrete_functions[0].parts]
    assert kinds.count(PartKind.NATIVE) == 2
    assert len(kinds) == 3


@pytest.mark.parametrize("place", [2, -3])
def test_a_position_outside_of_a_dynamic_axis_raises_the_error_of_eager_calls(place: int) -> None:
    pick = df.function(lambda x: df.exp(x)[place], input_signature=[df.TensorSpec([None])])
    np.testing.assert_allclose(pick(df.constant([1.0, 2.0, 3.0])), np.exp([1.0, 2.0, 3.0])[place], rtol=1e-6)
    for _ in range(3):
        with pytest.raises(df.errors.OutOfRangeError, match=f"index {place} is out of range"):
            pick(df.constant([1.0, 2.0]))


def test_a_position_outside_of_an_axis_whose_size_depends_on_data_raises_an_error() -> None:
    second = df.function(lambda x: df.boolean_mask(x, x > 0.0)[1] * 2.0)
    assert float(second(df.constant([1.0, -1.0, 3.0]))) == 6.0
    for _ in range(2):
        with pytest.raises((df.errors.InvalidArgumentError, df.errors.OutOfRangeError)):
            second(df.constant([1.0, -1.0, -3.0]))


def test_a_row_of_an_assigned_part_is_checked() -> None:
    def assigned(x: Any) -> Any:
        y = array_api.asarray(df.exp(x))
        y[2] = 0.0
        return df.convert_to_tensor(y)

    set_third = df.function(assigned, input_signature=[df.TensorSpec([None])])
    np.testing.assert_allclose(set_third(df.zeros([3])), [1.0, 1.0, 0.0])
    with pytest.raises(df.errors.OutOfRangeError):
        set_third(df.zeros([2]))

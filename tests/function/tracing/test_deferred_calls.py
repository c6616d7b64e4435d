"""Ops that need sizes as numbers, in traces with symbolic sizes: same results as with static sizes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dualflow as df

Function = Callable[[Any], Any]

CASES: dict[str, tuple[Function, list[int]]] = {
    "depthwise": (
        lambda x: df.nn.depthwise_conv2d(x, df.ones([3, 3, 3, 2]), [1, 1, 1, 1], "SAME"),
        [2, 6, 6, 3],
    ),
    "grouped": (lambda x: df.nn.conv2d(x, df.ones([3, 3, 2, 4]), 1, "SAME"), [2, 6, 6, 4]),
    "transposed": (
        lambda x: df.nn.conv2d_transpose(
            x, df.ones([3, 3, 5, 2]), df.stack([df.shape(x)[0], 8, 8, 5]), strides=2
        ),
        [3, 4, 4, 2],
    ),
    "einsum": (lambda x: df.einsum("bij,jk->bik", x, df.ones([3, 2])), [2, 4, 3]),
    "product with itself": (lambda x: df.einsum("bi,bj->ij", x, x), [3, 2]),
    "diagonal": (lambda x: df.einsum("ii->i", df.matmul(x, x, transpose_b=True)), [3, 2]),
    "tensordot": (lambda x: df.tensordot(x, df.ones([3, 2]), 1), [2, 4, 3]),
    "mirrored": (lambda x: df.pad(x, [[0, 0], [1, 1]], "REFLECT"), [2, 4]),
    "mirrored rows": (lambda x: df.pad(x, [[1, 1], [0, 0]], "REFLECT"), [2, 4]),
    "zeros": (lambda x: df.zeros(df.shape(x)[0]) + df.reduce_sum(x), [3, 2]),
    "grid": (lambda x: df.meshgrid(x[0], x[:, 0])[0], [2, 3]),
    "parts": (lambda x: df.split(x, [1, -1], 0)[1], [3, 2]),
    "listed parts": (lambda x: df.split(df.transpose(x), [1, 3], 1)[1], [4, 2]),
    "listed parts of the first axis": (lambda x: df.split(x, [1, 2])[0], [3, 2]),
    "one row of four": (lambda x: df.unstack(x, 4)[1], [4, 2]),
    "halves": (lambda x: df.split(x, 2, 0)[1], [4, 2]),
    "frames": (lambda x: df.signal.frame(x, 4, 2), [2, 8]),
    "stft": (lambda x: df.math.abs(df.signal.stft(x, 4, 2)), [2, 8]),
    "rfft": (lambda x: df.math.real(df.signal.rfft(df.transpose(x))), [8, 2]),
    "blocks to channels": (lambda x: df.nn.space_to_depth(df.transpose(x, [1, 0, 2, 3]), 2), [4, 1, 4, 1]),
    "lrn": (df.nn.local_response_normalization, [2, 3, 3, 4]),
    "patches": (
        lambda x: df.image.extract_patches(x, [1, 2, 2, 1], [1, 2, 2, 1], [1, 1, 1, 1], "VALID"),
        [2, 4, 4, 1],
    ),
    "places of maxima": (
        lambda x: df.nn.max_pool_with_argmax(x, 2, 2, "VALID", include_batch_in_index=True)[0],
        [2, 4, 4, 1],
    ),
    "resized": (lambda x: df.image.resize(x[None, ..., None], df.shape(x) * 2), [3, 4]),
    "sparse cross entropy": (
        lambda x: df.nn.sparse_softmax_cross_entropy_with_logits(df.constant([0, 1]), df.transpose(x)),
        [4, 2],
    ),
    "largest": (lambda x: df.math.top_k(df.transpose(x), df.shape(x)[0])[0], [4, 3]),
    "largest two of open rows": (lambda x: df.math.top_k(df.transpose(x), 2)[0], [4, 3]),
    "map": (lambda x: df.map_fn(lambda row: row * row[0], x), [3, 2]),
    "scan": (lambda x: df.scan(lambda total, row: 0.5 * total + row * row, x), [3, 2]),
    "scan back": (lambda x: df.scan(lambda total, row: 0.5 * total + row * row, x, reverse=True), [3, 2]),
    "fold": (lambda x: df.foldl(lambda total, row: 0.5 * total + df.reduce_sum(row * row), x, 1.0), [3, 2]),
    "running product": (lambda x: df.math.cumprod(x, axis=0), [3, 2]),
    "product": (lambda x: df.reduce_prod(x, axis=0), [3, 2]),
    "blocks to batch": (lambda x: df.space_to_batch(x, [2, 1], [[0, 0], [0, 0]]), [2, 4, 2]),
    "windows": (
        lambda x: df.nn.erosion2d(x, df.ones([2, 2, 1]), [1] * 4, "SAME", "NHWC", [1] * 4),
        [1, 3, 3, 1],
    ),
    "imaginary part of real numbers": (lambda x: x + df.math.imag(x), [3, 2]),
    "flipped": (lambda x: df.image.stateless_random_flip_left_right(x, [1, 2]), [3, 2, 2, 1]),
    "cut": (lambda x: df.image.stateless_random_crop(x, [2, 2], [1, 2]), [3, 4]),
    "gathered": (lambda x: df.gather(x, df.cast(x[:, :1] * 0, df.int32), axis=1, batch_dims=1), [3, 2]),
}
RANDOM: dict[str, Function] = {
    "normal": lambda x: df.random.normal(df.shape(x)),
    "many normal": lambda x: df.random.normal([df.shape(x)[0], 20_000]),
    "uniform": lambda x: df.random.uniform(df.shape(x)),
    "integers": lambda x: df.random.uniform(df.shape(x), 0, 10, df.int32),
    "truncated": lambda x: df.random.truncated_normal(df.shape(x)),
    "gamma": lambda x: df.random.gamma(df.shape(x), [0.5, 1.5]),
    "gamma for each": lambda x: df.random.gamma([2], x),
    "poisson": lambda x: df.random.poisson(df.shape(x), 1.5),
    "dropout": lambda x: df.nn.dropout(x, 0.5),
    "dropout of rows": lambda x: df.nn.dropout(x, 0.5, noise_shape=[None, 1]),
    "flipped": lambda x: df.image.random_flip_left_right(df.reshape(x, [-1, 1, 2, 1])),
    "two": lambda x: df.random.normal([df.shape(x)[0]]) * df.random.uniform([df.shape(x)[0]]),
    "stateless truncated": lambda x: df.random.stateless_truncated_normal(df.shape(x), [1, 2]),
    "stateless gamma": lambda x: df.random.stateless_gamma(df.shape(x), [1, 2], 0.5),
}


_Sizes = Callable[[Any, Any], Any]
SIZED_BY_NUMBERS: dict[str, _Sizes] = {
    "the 3 largest, or all": lambda x, n: df.math.top_k(x, df.minimum(n, 3))[0],
    "the largest of an odd number": lambda x, n: df.math.top_k(x, n % 2)[0],
    "the largest but 5": lambda x, n: df.math.top_k(x, df.maximum(n - 5, 0))[0],
    "two halves": lambda x, n: df.split(x, [n // 2, n - n // 2], 0),
    "all and nothing": lambda x, n: df.split(x, [n, df.shape(x)[0] - n], 0),
    "long frames": lambda x, n: df.signal.frame(x, 60, 10),
    "frames of half the length": lambda x, n: df.signal.frame(x, n // 2 + 1, 1),
    "a spectrum of a part": lambda x, n: df.math.abs(df.signal.rfft(x, [n // 2])),
    "singular values": lambda x, n: df.linalg.svd(df.stack([x, x + 1.0, x * x]), compute_uv=False) > 0.0,
    "an orthogonal basis": lambda x, n: df.shape(df.linalg.qr(df.stack([x, x + 1.0, x * x]))[0]),
    "classes": lambda x, n: df.math.in_top_k([0], df.reshape(x, [1, -1]), n // 2),
    "histogram": lambda x, n: df.histogram_fixed_width(x, [0.0, 2.0], n + 1),
}


def _values(shape: list[int]) -> Any:
    return df.constant(np.random.default_rng(0).uniform(0.5, 1.5, shape).astype(np.float32))


def _kept(x: Any) -> Any:
    """``x``, of a size known only at run time."""
    return df.boolean_mask(x, df.reduce_sum(x, list(range(1, len(x.shape)))) > 0.0)


@pytest.mark.parametrize("name", CASES)
def test_a_dynamic_size_of_an_argument(name: str) -> None:
    function, shape = CASES[name]
    traced = df.function(function, input_signature=[df.TensorSpec([None, *shape[1:]])])
    x = _values(shape)
    np.testing.assert_allclose(traced(x), function(x), rtol=1e-5, atol=1e-6)
    assert traced.get_concrete_function().graph.outputs[0].spec.is_compatible_with(function(x))


@pytest.mark.parametrize("name", CASES)
def test_a_size_that_depends_on_data(name: str) -> None:
    function, shape = CASES[name]
    x = _values(shape)
    traced = df.function(lambda x: function(_kept(x)))
    np.testing.assert_allclose(traced(x), function(x), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", sorted(CASES.keys() - {"zeros"}))
@pytest.mark.parametrize("masked", [False, True])
def test_gradients_of_dynamic_sizes(name: str, masked: bool) -> None:
    function, shape = CASES[name]
    gradient = df.autodiff.grad(lambda x: df.reduce_sum(function(_kept(x) if masked else x) ** 2))
    spec = df.TensorSpec(shape if masked else [None, *shape[1:]])
    x = _values(shape)
    np.testing.assert_allclose(
        df.function(gradient, input_signature=[spec])(x), gradient(x), rtol=1e-4, atol=1e-5
    )


@pytest.mark.parametrize("rows", [np.s_[2:], np.s_[-2:], np.s_[::2]], ids=["from", "last", "every second"])
def test_the_gradient_by_an_outer_tape_of_a_call_on_rows_of_dynamic_size(rows: slice) -> None:
    def products(x: df.Tensor) -> df.Tensor:
        return df.tanh(df.math.cumprod(x[rows]))

    def gradient(function: Function, x: df.Tensor) -> Any:
        with df.GradientTape() as tape:
            tape.watch(x)
            y = function(x)
        return tape.gradient(y, x)

    traced = df.function(products)
    for n in (7, 3, 40, 2):
        x = df.linspace(0.5, 1.5, n)
        np.testing.assert_allclose(gradient(traced, x), gradient(products, x), rtol=1e-5)


@pytest.mark.parametrize("name", RANDOM)
@pytest.mark.parametrize("masked", [False, True])
def test_random_numbers_of_dynamic_sizes_are_those_of_known_ones(name: str, masked: bool) -> None:
    function = RANDOM[name]
    spec = df.TensorSpec([3, 2] if masked else [None, 2])
    traced = df.function((lambda x: function(_kept(x))) if masked else function, input_signature=[spec])
    x = _values([3, 2])
    df.random.set_seed(7)
    expected = [function(x) for _ in range(2)]
    df.random.set_seed(7)
    for numbers in expected:
        np.testing.assert_allclose(traced(x), numbers, rtol=1e-6)


@pytest.mark.parametrize(
    "draw",
    [
        lambda g, shape: g.normal(shape),
        lambda g, shape: g.truncated_normal(shape),
        lambda g, shape: g.uniform(shape, 0, 9, df.int32),
        lambda g, shape: g.binomial(shape, 5.0, 0.5),
    ],
)
def test_a_generator_draws_numbers_of_dynamic_sizes(draw: Callable[[Any, Any], Any]) -> None:
    generator = df.random.Generator.from_seed(1)
    expected = [draw(generator, [3, 2]) for _ in range(2)]
    generator.reset_from_seed(1)
    traced = df.function(lambda x: draw(generator, df.shape(x)), input_signature=[df.TensorSpec([None, 2])])
    for numbers in expected:
        np.testing.assert_allclose(traced(df.ones([3, 2])), numbers, rtol=1e-6)


@pytest.mark.parametrize("name", SIZED_BY_NUMBERS)
@pytest.mark.parametrize("masked", [False, True])
def test_sizes_of_results_are_those_of_each_call(name: str, masked: bool) -> None:
    function = SIZED_BY_NUMBERS[name]

    def results(x: Any) -> Any:
        x = _kept(x) if masked else x
        return function(x, df.shape(x)[0])

    def shapes(x: Any) -> list[Any]:
        return [df.shape(result) for result in df.nest.flatten(results(x))]

    specs = [df.TensorSpec([None])]
    traced, shaped = df.function(results, input_signature=specs), df.function(shapes, input_signature=specs)
    for size in (3, 0, 1, 2, 7, 64, 131, 5):
        x = _values([size])
        for mine, expected in zip(df.nest.flatten(traced(x)), df.nest.flatten(results(x)), strict=True):
            np.testing.assert_allclose(mine, expected, rtol=1e-5, atol=1e-4)
        for sizes, result in zip(shaped(x), shapes(x), strict=True):
            np.testing.assert_array_equal(sizes, result)


def test_a_size_that_examples_do_not_report_is_an_error_and_no_value() -> None:
    """A quotient that is 0 for every number that a trace tries."""

    def count(x: Any) -> Any:
        return df.shape(df.math.top_k(x, df.shape(x)[0] // 1_000_000)[0])[0]

    traced = df.function(count, input_signature=[df.TensorSpec([None])])
    assert traced(df.ones([5])) == 0
    with pytest.raises(df.errors.InvalidArgumentError, match=r"top_k was traced .* one is float32\[1\]"):
        traced(df.ones([1_000_000]))


def test_a_check_that_fails_after_a_deferred_call_leaves_variables_as_eager_would() -> None:
    v = df.Variable(0.0)

    def program(x: Any, n: Any) -> Any:
        v.assign_add(1.0)
        kept = _kept(x)
        half = df.split(kept, 2, 0)[0]
        df.debugging.assert_less(n, 4)
        v.assign_add(1.0)
        return half

    traced = df.function(program, input_signature=[df.TensorSpec([None, 2]), df.TensorSpec([], df.int32)])
    with pytest.raises(df.errors.InvalidArgumentError, match="assert_less"):
        traced(df.ones([4, 2]), df.constant(5))
    assert v.numpy() == 1.0
    assert traced(df.ones([4, 2]), df.constant(3)).shape == (2, 2)
    assert v.numpy() == 3.0


@pytest.mark.parametrize("masked", [False, True])
def test_an_error_of_a_deferred_call_names_the_line_and_the_function(masked: bool) -> None:
    traced = df.function(
        lambda x: df.split(x[x > 0.0] if masked else x, 4, 0)[0], input_signature=[df.TensorSpec([None])]
    )
    with pytest.raises(df.errors.InvalidArgumentError) as caught:
        traced(df.ones([6]))
    assert any(__file__ in note and note.startswith("in split") for note in caught.value.__notes__)


def test_a_call_that_known_sizes_refuse_too_names_the_function_that_was_called() -> None:
    traced = df.function(
        lambda x: df.nn.depth_to_space(x, 3), input_signature=[df.TensorSpec([None, 2, 2, 4])]
    )
    with pytest.raises(df.errors.InvalidArgumentError, match="depth_to_space"):
        traced.get_concrete_function()


def test_sizes_that_do_not_fit_when_the_function_is_called_name_the_function() -> None:
    traced = df.function(lambda x: df.split(x, 4, 0)[0], input_signature=[df.TensorSpec([None])])
    assert traced(df.ones([8])).shape == (2,)
    with pytest.raises(df.errors.InvalidArgumentError, match=r"split.*size 6 can't be cut into 4"):
        traced(df.ones([6]))


def test_ops_with_a_dynamic_number_of_results_are_not_deferred() -> None:
    traced = df.function(lambda x: df.unstack(x)[0], input_signature=[df.TensorSpec([None, 3])])
    with pytest.raises(df.errors.InvalidArgumentError, match="axis 0 of shape"):
        traced(df.ones([4, 3]))


def test_a_random_crop_of_dynamic_sizes_names_the_function_and_the_axis() -> None:
    traced = df.function(
        lambda x: df.image.random_crop(x, [2, 2]), input_signature=[df.TensorSpec([None, 3])]
    )
    with pytest.raises(df.errors.InvalidArgumentError, match=r"random_crop: .* axis 0 of shape \(None, 3\)"):
        traced(df.ones([4, 3]))


@pytest.mark.parametrize("shape", [[None], [None, None], [None, 3]])
def test_as_many_results_as_there_are_rows_are_refused(shape: list[int | None]) -> None:
    """Without constants to compare with, sizes of 0 gave no results twice: no known number of them."""
    with pytest.raises(df.errors.InvalidArgumentError, match="unstack needs the size of axis 0"):
        df.function(df.unstack, input_signature=[df.TensorSpec(shape)])(df.ones([2, 3][: len(shape)]))


SHAPED: dict[str, Function] = {
    "reshape": lambda shape: df.reshape(df.range(8), shape),
    "zeros": df.zeros,
    "broadcast_to": lambda shape: df.broadcast_to(2.0, shape),
    "fill": lambda shape: df.fill(shape, 3.0),
}


@pytest.mark.parametrize("name", SHAPED)
def test_a_shape_with_another_number_of_axes_has_a_trace_of_its_own(name: str) -> None:
    """The rank of the result is the size of an argument; that an axis has 2 elements is a coincidence."""
    traced = df.function(SHAPED[name])
    for sizes in ([2, 4], [8], [2, 2, 2], [4, 2], [8]):
        shape = df.constant(sizes)
        assert traced(shape).numpy().tolist() == SHAPED[name](shape).numpy().tolist()


def test_indices_of_another_depth_have_a_trace_of_their_own() -> None:
    """The rank of the result depends on the last size of ``indices``, which is 3 at most."""
    x = df.reshape(df.range(126.0), [2, 7, 9])
    traced = df.function(df.gather_nd)
    for depth in (1, 2, 0, 3, 2, 1, 0):
        indices = df.zeros([2, depth], df.int32)
        assert traced(x, indices).numpy().tolist() == df.gather_nd(x, indices).numpy().tolist()

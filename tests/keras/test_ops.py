"""Keras's ops on this backend: names, dtypes, gradients, loops and random numbers, in both modes."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import inspect
from pathlib import Path

import numpy as np
import pytest
import scipy.linalg

import dualflow as df

X = np.array([[1.0, -2.0, 3.0], [0.5, 0.25, -4.0]], np.float32)
MODULES = ["numpy", "nn", "math", "linalg", "image", "random", "rnn"]


@pytest.mark.parametrize("module", MODULES)
def test_every_function_of_keras_numpy_backend_is_here(backend, module):
    folder = Path(importlib.util.find_spec("keras").origin).parent / "src" / "backend" / "numpy"
    source = folder / f"{module}.py"
    public = {
        node.name
        for node in ast.parse(source.read_text(encoding="utf-8")).body
        if isinstance(node, ast.FunctionDef) and not node.name.startswith(("_", "numpy_"))
    }
    package = "keras_dualflow.src" if module in ("random", "rnn") else "keras_dualflow.src.ops"
    own = importlib.import_module(f"{package}.{module}")
    assert {name for name in public if not hasattr(own, name)} == set()


@pytest.mark.parametrize("module", ["core", "image", "linalg", "math", "nn", "numpy"])
def test_functions_take_the_arguments_that_kerass_ops_hand_on(backend, module):
    from keras.src.ops.ops_test import op_functions_and_classes

    def arguments(function):
        return [(p.name, p.kind, p.default) for p in inspect.signature(function).parameters.values()]

    names = importlib.import_module(f"keras.src.ops.{module}")
    own = getattr(backend, module)
    differ = []
    for function, _ in op_functions_and_classes(names):
        name = function.__name__
        if hasattr(names, f"_{name}") or name in ("get_item", "multi_hot", "view_as_complex", "view_as_real"):
            continue  # Keras computes it itself
        if arguments(getattr(own, name)) != arguments(function):
            differ.append(name)
    assert differ == []


def test_a_function_that_is_missing_is_no_attribute(backend):
    assert not hasattr(backend.numpy, "no_such_function")


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("int8", "uint8", "int16"),
        ("int32", "float16", "float16"),
        ("bfloat16", "float16", "float32"),
        ("bool", "int8", "int8"),
        ("int64", "int64", "int32"),
        ("uint32", "int8", "int32"),
    ],
)
def test_operands_promote_by_keras_rules(keras, mode, one, other, expected):
    result = mode(keras.ops.multiply)(df.cast(X[0], one), df.cast(X[0], other))
    assert result.dtype == expected


def test_python_numbers_take_the_dtype_of_tensors(keras, mode):
    half = df.cast(X, "float16")
    assert mode(lambda x: keras.ops.add(x, 1))(half).dtype == "float16"
    assert mode(lambda x: keras.ops.maximum(0.5, x))(half).dtype == "float16"
    assert mode(lambda x: keras.ops.add(x, 0.5))(df.constant([1, 2])).dtype == "float32"


def test_int64_values_are_compared_whole(keras, mode):
    big = np.array([2**40, 2**40 + 1])
    assert (
        mode(keras.ops.equal)(df.constant(big), df.constant(big[::-1].copy())).numpy().tolist() == [False] * 2
    )


def test_the_gradient_of_a_cross_entropy_is_the_error_of_the_probabilities(keras, mode):
    labels = np.array([2, 0])

    def gradient(logits):
        with df.GradientTape() as tape:
            tape.watch(logits)
            loss = keras.ops.sum(keras.ops.sparse_categorical_crossentropy(labels, logits, from_logits=True))
        return tape.gradient(loss, logits)

    chances = np.exp(X) / np.exp(X).sum(1, keepdims=True)
    np.testing.assert_allclose(mode(gradient)(df.constant(X)), chances - np.eye(3)[labels], atol=1e-6)


def test_a_label_out_of_range_is_refused(keras):
    with pytest.raises(df.errors.InvalidArgumentError, match="3"):
        keras.ops.sparse_categorical_crossentropy(np.array([3, 0]), X, from_logits=True)


def counting(x, states):
    """A cell whose state is the sum of what it has seen, and its output."""
    total = states[0] + x
    return total, [total]


@pytest.mark.parametrize("unroll", [False, True])
@pytest.mark.parametrize("backwards", [False, True])
@pytest.mark.parametrize("steps", [5, 40])
def test_a_cell_passes_its_state_from_step_to_step(backend, mode, unroll, backwards, steps):
    x = np.arange(2.0 * steps, dtype=np.float32).reshape(2, steps, 1)
    last, outputs, states = mode(
        lambda x: backend.rnn(counting, x, [df.zeros([2, 1])], go_backwards=backwards, unroll=unroll)
    )(
        df.constant(x),
    )
    sums = (x[:, ::-1] if backwards else x).cumsum(1)
    np.testing.assert_allclose(outputs, sums)
    np.testing.assert_allclose(last, sums[:, -1])
    np.testing.assert_allclose(states[0], sums[:, -1])


@pytest.mark.parametrize("zeros", [False, True])
def test_masked_steps_keep_the_state(backend, mode, zeros):
    x = np.ones((1, 4, 1), np.float32)
    mask = np.array([[True, False, True, False]])
    _, outputs, states = mode(
        lambda x: backend.rnn(counting, x, [df.zeros([1, 1])], mask=mask, zero_output_for_mask=zeros)
    )(
        df.constant(x),
    )
    assert outputs.numpy().ravel().tolist() == ([1, 0, 2, 0] if zeros else [1, 1, 2, 2])
    assert states[0].numpy().item() == 2


@pytest.mark.parametrize("backwards", [False, True])
@pytest.mark.parametrize("masked", [False, True])
def test_one_trace_serves_any_number_of_time_steps(backend, backwards, masked):
    spec = df.TensorSpec([None, None, 1])

    @df.function(input_signature=[spec])
    def sums(x):
        with df.GradientTape() as tape:
            tape.watch(x)
            mask = x[..., 0] > 0 if masked else None
            start = [df.zeros_like(x[:, 0])]
            last, outputs, _ = backend.rnn(counting, x, start, mask=mask, go_backwards=backwards)
            total = df.reduce_sum(last * last)
        return outputs, tape.gradient(total, x)

    for shape in [(2, 3, 1), (1, 40, 1), (4, 1, 1)]:
        x = np.where(np.arange(np.prod(shape)) % 3, 1.5, -2.0).astype(np.float32).reshape(shape)
        unmasked = x > 0 if masked else np.ones_like(x)
        added = (x * unmasked)[:, ::-1] if backwards else x * unmasked
        outputs, gradient = sums(x)
        np.testing.assert_allclose(outputs, added.cumsum(1))
        np.testing.assert_allclose(gradient, 2 * added.sum(1, keepdims=True) * unmasked)
    assert sums.experimental_get_tracing_count() == 1


def test_dropout_keeps_the_mean_and_draws_new_masks(keras):
    seed = keras.random.SeedGenerator(1)
    drop = df.function(lambda x: keras.random.dropout(x, 0.25, seed=seed), reduce_retracing=True)
    one, other = drop(df.ones([100, 100])), drop(df.ones([100, 100]))
    assert set(np.unique(one).tolist()) == {0.0, np.float32(4 / 3)}
    assert abs(float(df.reduce_mean(one)) - 1) < 0.02
    assert not np.array_equal(one, other)


def test_dropout_takes_batches_of_any_size(keras):
    seed = keras.random.SeedGenerator(1)
    drop = df.function(
        lambda x: keras.random.dropout(x, 0.5, seed=seed), input_signature=[df.TensorSpec([None, 3])]
    )
    assert [drop(df.ones([n, 3])).shape.as_list() for n in (4, 1, 7)] == [[4, 3], [1, 3], [7, 3]]
    assert drop.experimental_get_tracing_count() == 1


def test_row_exchanges_are_lapacks(keras, mode):
    x = np.random.default_rng(0).standard_normal((2, 5, 5))
    factors, exchanges = mode(keras.ops.lu_factor)(df.constant(x))
    for i in range(2):
        expected = scipy.linalg.lu_factor(x[i])
        np.testing.assert_allclose(factors[i], expected[0], atol=1e-12)
        np.testing.assert_array_equal(exchanges[i], expected[1])


def test_segments_without_rows_have_the_neutral_element(keras, mode):
    def extremes(x):
        ids = df.constant([0, 2])
        return [f(x, ids, 3) for f in (keras.ops.segment_max, keras.ops.segment_min)]

    largest, least = mode(extremes)(df.constant([1.0, 2.0]))
    assert largest.numpy().tolist() == [1, -np.inf, 2]
    assert least.numpy().tolist() == [1, np.inf, 2]


def test_images_of_integers_are_rounded_and_stay_in_range(keras, mode):
    checks = np.tile(np.array([[0, 255], [255, 0]], np.uint8), (2, 2))[..., None]
    result = mode(lambda x: keras.ops.image.resize(x, (7, 7), "bicubic"))(df.constant(checks))
    assert result.dtype == "uint8"
    assert (result.numpy().min(), result.numpy().max()) == (0, 255)


def test_folding_what_has_been_unfolded_counts_each_pixel_as_often_as_windows_hold_it(keras, mode):
    images = np.arange(32.0, dtype=np.float32).reshape(1, 2, 4, 4)
    result = mode(lambda x: keras.ops.nn.fold(keras.ops.nn.unfold(x, 3, padding=1), (4, 4), 3, padding=1))(
        df.constant(images),
    )
    inside = np.array([2, 3, 3, 2])
    np.testing.assert_allclose(result, images * np.outer(inside, inside))


def test_a_vector_product_follows_the_chain_rule(keras, mode):
    def both(x):
        return keras.ops.jvp(lambda y: df.sin(y), (x,), (df.ones_like(x),))

    value, moved = mode(both)(df.constant(X))
    np.testing.assert_allclose(value, np.sin(X), rtol=1e-6)
    np.testing.assert_allclose(moved, np.cos(X), rtol=1e-5)


_TURN = [[0.8, -0.6, 1.5, 0.6, 0.8, -0.5, 0.0, 0.0]]
OF_DYNAMIC_SIZES = {
    "cropped and resized": lambda ops, x: ops.image.resize(x, (4, 6), crop_to_aspect_ratio=True),
    "padded and resized": lambda ops, x: ops.image.resize(x, (6, 4), pad_to_aspect_ratio=True),
    "turned": lambda ops, x: ops.image.affine_transform(x, _TURN, fill_mode="reflect"),
    "averages": lambda ops, x: ops.adaptive_average_pool(x, (2, 3)),
    "maxima": lambda ops, x: ops.adaptive_max_pool(x, (3, 2)),
}


@pytest.mark.parametrize("name", OF_DYNAMIC_SIZES)
def test_one_trace_serves_images_of_all_sizes(keras, name):
    function = OF_DYNAMIC_SIZES[name]
    traced = df.function(
        lambda x: function(keras.ops, x), input_signature=[df.TensorSpec([None, None, None, 2])]
    )
    for batch, height, width in ((1, 5, 7), (2, 8, 3), (0, 4, 4), (1, 1, 9)):
        x = df.random.stateless_normal([batch, height, width, 2], [height, width])
        np.testing.assert_allclose(traced(x), function(keras.ops, x), rtol=1e-4, atol=1e-5)

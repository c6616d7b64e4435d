"""The CTC loss against the sum over all paths, and what it refuses."""

import itertools
import math

import numpy as np
import pytest
from error_cases import ErrorCases

import dualflow as df
from dualflow.core.errors import InvalidArgumentError, OutOfRangeError

RNG = np.random.default_rng(0)
LOGITS = RNG.normal(size=(5, 3, 4))
LABELS = np.array([[1, 2, 2], [3, 0, 0], [2, 1, 0]])
LENGTHS, STEPS = np.array([3, 1, 2]), np.array([5, 4, 2])


def collapsed(path, blank):
    """A path without repetitions and blanks."""
    return tuple(label for label, _ in itertools.groupby(path) if label != blank)


def by_paths(logits, labels, lengths, steps, blank):
    """Minus the log of the sum over every path that collapses to the labels."""
    losses = []
    for row in range(logits.shape[1]):
        x = logits[: steps[row], row].astype(np.float64)
        x = x - np.log(np.exp(x).sum(-1, keepdims=True))
        target = tuple(labels[row, : lengths[row]])
        probability = sum(
            math.exp(sum(x[t, c] for t, c in enumerate(path)))
            for path in itertools.product(range(x.shape[1]), repeat=len(x))
            if collapsed(path, blank) == target
        )
        losses.append(-math.log(probability))
    return losses


@pytest.mark.parametrize("blank", [0, -1, 2])
@pytest.mark.parametrize("major", [True, False])
def test_the_loss_is_the_sum_over_all_paths(mode, blank, major):
    classes = [c for c in range(4) if c != blank % 4]
    labels = np.array(classes)[np.clip(LABELS - 1, 0, 2)]
    x = LOGITS if major else LOGITS.transpose(1, 0, 2)

    def loss(x):
        return df.nn.ctc_loss(labels, x, LENGTHS, STEPS, logits_time_major=major, blank_index=blank)

    expected = by_paths(LOGITS, labels, LENGTHS, STEPS, blank % 4)
    np.testing.assert_allclose(mode(loss)(df.constant(x)), expected, rtol=1e-9)


def test_no_labels_are_only_blanks(mode):
    def loss(x):
        return df.nn.ctc_loss(np.zeros((3, 2), int), x, [0, 0, 0], STEPS)

    expected = by_paths(LOGITS, np.zeros((3, 2), int), [0, 0, 0], STEPS, 0)
    np.testing.assert_allclose(mode(loss)(df.constant(LOGITS)), expected, rtol=1e-9)
    none = df.nn.ctc_loss(np.zeros((3, 0), int), LOGITS, [0, 0, 0], STEPS)
    np.testing.assert_allclose(none, expected, rtol=1e-9)


def gradient(x, order=1):
    with df.GradientTape() as tape:
        tape.watch(x)
        y = df.nn.ctc_loss(LABELS, x, LENGTHS, STEPS)
        if order == 2:
            with df.GradientTape() as inner:
                inner.watch(x)
                y = df.nn.ctc_loss(LABELS, x, LENGTHS, STEPS)
            y = inner.gradient(y, x) ** 2
    return tape.gradient(y, x)


@pytest.mark.parametrize("order", [1, 2])
def test_gradients_are_the_slopes(mode, order):
    u, step = RNG.normal(size=LOGITS.shape), 1e-6

    def value(x):
        if order == 1:
            return float(df.reduce_sum(df.nn.ctc_loss(LABELS, x, LENGTHS, STEPS)))
        return float(df.reduce_sum(gradient(df.constant(x)) ** 2))

    slope = (value(LOGITS + step * u) - value(LOGITS - step * u)) / (2 * step)
    result = mode(lambda x: gradient(x, order))(df.constant(LOGITS))
    np.testing.assert_allclose(np.sum(result.numpy() * u), slope, rtol=1e-6)


def test_steps_after_a_sequence_have_no_gradient(mode):
    slope = mode(gradient)(df.constant(LOGITS)).numpy()
    assert not slope[4:, 1].any()
    assert not slope[2:, 2].any()
    assert slope[:2, 2].all()


@pytest.mark.parametrize("padding", [np.nan, np.inf])
def test_values_of_steps_after_a_sequence_do_not_reach_the_gradient(mode, padding):
    padded = np.where(np.arange(5)[:, None, None] < STEPS[:, None], LOGITS, padding)
    np.testing.assert_array_equal(mode(gradient)(df.constant(padded)), mode(gradient)(df.constant(LOGITS)))


@pytest.mark.llvm
def test_the_loss_and_its_gradient_are_compiled():
    traced = df.function(gradient)
    traced(df.constant(LOGITS))
    assert "numpy:" not in str(traced.status())


@pytest.mark.llvm  # Numba has no programs for sizes that depend on data
def test_one_program_serves_batches_of_any_number_length_and_labels():
    def loss_and_slopes(labels, x, lengths, steps):
        with df.GradientTape() as tape:
            tape.watch(x)
            loss = df.nn.ctc_loss(labels, x, lengths, steps)
        return loss, tape.gradient(loss, x)

    integers = df.TensorSpec([None], df.int32)
    signature = [df.TensorSpec([None, None], df.int32), df.TensorSpec([None, None, 4], df.float64)]
    compiled = df.function(loss_and_slopes, input_signature=[*signature, integers, integers])
    for batch, count, steps in ((3, 2, 5), (2, 1, 7), (4, 3, 33), (5, 9, 2)):
        labels = df.constant(RNG.integers(1, 4, (batch, count)), df.int32)
        lengths = df.constant(RNG.integers(0, count + 1, batch), df.int32)
        ends = df.constant(RNG.integers(1, steps + 1, batch), df.int32)
        arguments = labels, df.constant(RNG.normal(size=(steps, batch, 4))), lengths, ends
        for result, expected in zip(compiled(*arguments), loss_and_slopes(*arguments), strict=True):
            np.testing.assert_allclose(result, expected, rtol=1e-9, atol=1e-12)
    (trace,) = compiled.concrete_functions
    assert len(trace._specialisations) == 1


def test_labels_that_do_not_fit_have_a_large_finite_loss(mode):
    result = mode(lambda x: df.nn.ctc_loss([[1, 1, 1]], x, [3], [4]))(df.zeros([5, 1, 4]))
    assert 700 < float(result[0]) < 720
    with df.GradientTape() as tape:
        x = df.zeros([5, 1, 4])
        tape.watch(x)
        y = df.nn.ctc_loss([[1, 1, 1]], x, [3], [4])
    assert np.isfinite(tape.gradient(y, x).numpy()).all()


def test_padding_is_ignored():
    padded = np.where(np.arange(3) < LENGTHS[:, None], LABELS, -1)
    np.testing.assert_array_equal(
        df.nn.ctc_loss(padded, LOGITS, LENGTHS, STEPS), df.nn.ctc_loss(LABELS, LOGITS, LENGTHS, STEPS)
    )


def test_sparse_labels_have_their_lengths():
    sparse = df.SparseTensor([[0, 0], [0, 1], [0, 2], [1, 0], [2, 0], [2, 1]], [1, 2, 2, 3, 2, 1], [3, 3])
    result = df.nn.ctc_loss(sparse, LOGITS, None, STEPS, blank_index=0)
    np.testing.assert_allclose(result, df.nn.ctc_loss(LABELS, LOGITS, LENGTHS, STEPS), rtol=1e-12)


def test_the_loss_has_the_dtype_of_the_logits():
    assert df.nn.ctc_loss(LABELS, LOGITS.astype(np.float32), LENGTHS, STEPS).dtype is df.float32
    half = df.nn.ctc_loss(LABELS, LOGITS.astype(np.float16), LENGTHS, STEPS)
    assert half.dtype is df.float16
    np.testing.assert_allclose(half, df.nn.ctc_loss(LABELS, LOGITS, LENGTHS, STEPS), rtol=2e-3)


def test_values_of_tensorflow():
    """Literal results of TensorFlow 2.21."""
    x = df.reshape(df.range(24.0) % 5.0, [4, 2, 3])
    result = df.nn.ctc_loss([[1, 2], [2, 2]], x, [2, 2], [4, 3], blank_index=0)
    np.testing.assert_allclose(result, [2.9234984, 4.8000527], rtol=1e-6)


CASES = {
    "a matrix": (
        lambda: df.nn.ctc_loss(LABELS, LOGITS[0], LENGTHS, STEPS),
        InvalidArgumentError,
        r"\(3, 4\)",
        "steps, batch",
    ),
    "no blank": (
        lambda: df.nn.ctc_loss(df.SparseTensor([[0, 0]], [1], [3, 3]), LOGITS, None, STEPS),
        InvalidArgumentError,
        "needs blank_index",
        "-1",
    ),
    "a blank": (
        lambda: df.nn.ctc_loss(LABELS, LOGITS, LENGTHS, STEPS, blank_index=4),
        InvalidArgumentError,
        "blank_index 4",
        "outside of the 4 classes",
    ),
    "batches": (
        lambda: df.nn.ctc_loss(LABELS[:2], LOGITS, LENGTHS, STEPS),
        InvalidArgumentError,
        r"\(2, 3\).*\(5, 3, 4\)",
        "one batch",
    ),
    "a length": (
        lambda: df.nn.ctc_loss(LABELS, LOGITS, 3, STEPS),
        InvalidArgumentError,
        "label_length",
        "each sequence",
    ),
    "a label": (
        lambda: df.nn.ctc_loss(LABELS + 2, LOGITS, LENGTHS, STEPS),
        OutOfRangeError,
        "index",
        "use 0..3",
    ),
}


class TestErrorMessages(ErrorCases):
    cases = CASES
    raised_in = ("sequences/*.py",)


def test_a_label_that_is_the_blank_is_a_state_like_others(mode):
    """The mean of TensorFlow's losses."""
    logits = (np.arange(24, dtype=np.float32).reshape(2, 4, 3) - 12) / 100
    labels = [[1, 2, 1, 0], [1, 2, 0, 2]]
    result = mode(lambda x: df.nn.ctc_loss(labels, x, [3, 3], [4, 4], logits_time_major=False))(logits)
    np.testing.assert_allclose(np.mean(result), 2.448645, rtol=1e-6)

"""Frames of signals, and their sums."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dualflow as df

frame, overlap_and_add = df.signal.frame, df.signal.overlap_and_add
X = np.arange(2 * 3 * 7.0).reshape(2, 3, 7)


def frames_of(x, length, step, pad_end=False, value=0.0):
    """Frames of the last axis, cut out one by one."""
    size = x.shape[-1]
    starts = range(0, size, step) if pad_end else range(0, size - length + 1, step)
    wide = np.pad(x, [(0, 0)] * (x.ndim - 1) + [(0, length)], constant_values=value)
    cut = [wide[..., s : s + length] for s in starts]
    return np.stack(cut, -2) if cut else np.zeros((*x.shape[:-1], 0, length))


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 9), st.integers(1, 9), st.booleans())
def test_frames_are_cut_out_of_the_signal(length, step, pad_end):
    result = frame(X, length, step, pad_end, 0.5)
    np.testing.assert_array_equal(result, frames_of(X, length, step, pad_end, 0.5))


@pytest.mark.parametrize("axis", [0, 1, 2, -1, -2])
def test_any_axis_becomes_frames(mode, axis):
    result = mode(lambda x: frame(x, 2, 1, axis=axis))(X)
    moved = frames_of(np.moveaxis(X, axis, -1), 2, 1)
    place = axis % 3
    np.testing.assert_array_equal(result, np.moveaxis(moved, [-2, -1], [place, place + 1]))


def test_frames_are_views_in_compiled_code():
    concrete = df.function(lambda x: frame(x, 4, 2) * 2.0).get_concrete_function(df.TensorSpec([5, 16]))
    assert {part.kind for part in concrete.parts} == {"native"}


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 5), st.integers(1, 7), st.integers(1, 9), st.integers(0, 2))
def test_sums_of_frames(frames, length, step, axes):
    rng = np.random.default_rng(frames)
    x = rng.standard_normal((*(2, 3)[:axes], frames, length))
    expected = np.zeros((*x.shape[:-2], max(0, (frames - 1) * step + length) if frames else 0))
    for i in range(frames):
        expected[..., i * step : i * step + length] += x[..., i, :]
    np.testing.assert_allclose(overlap_and_add(x, step), expected, atol=1e-12)


def test_sums_of_frames_are_machine_code():
    concrete = df.function(lambda x: overlap_and_add(x, 3)).get_concrete_function(df.TensorSpec([2, 6, 8]))
    assert {part.kind for part in concrete.parts} == {"native"}


def test_a_dynamic_batch():
    @df.function(input_signature=[df.TensorSpec([None, 12])])
    def there_and_back(x):
        return overlap_and_add(frame(x, 4, 2), 2)

    for rows in (1, 3):
        assert there_and_back(df.ones([rows, 12])).numpy().tolist() == [[1, 1] + [2] * 8 + [1, 1]] * rows


def test_the_number_and_the_length_of_frames_are_dynamic():
    f = df.function(lambda x: overlap_and_add(x, 1), input_signature=[df.TensorSpec([None, None])])
    for shape in ((2, 200), (129, 1), (0, 3), (3, 0), (0, 0)):
        x = df.ones(shape)
        np.testing.assert_array_equal(f(x), overlap_and_add(x, 1))


def test_gradients_go_back_to_every_frame(mode):
    def gradient(x):
        with df.GradientTape() as tape:
            tape.watch(x)
            y = overlap_and_add(frame(x, 4, 2), 2)
        return tape.gradient(y, x)

    assert mode(gradient)(df.ones([8])).numpy().tolist() == [1, 1, 2, 2, 2, 2, 1, 1]

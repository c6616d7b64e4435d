"""Diagonals other than the main one, and several at once: matrices to rows and back, in both modes."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import pytest
from error_cases import ErrorCases
from hypothesis import given
from hypothesis import strategies as st

import dualflow as df
from dualflow.core.errors import InvalidArgumentError

ALIGNMENTS = ("RIGHT_LEFT", "LEFT_RIGHT", "LEFT_LEFT", "RIGHT_RIGHT")
PADDING = -7.0
MATRIX = df.reshape(df.range(1, 7), [2, 3])


@st.composite
def banded(draw):
    """Matrices, their lowest and highest diagonal in question, and an alignment."""
    rows, columns = draw(st.integers(1, 5)), draw(st.integers(1, 5))
    low = draw(st.integers(1 - rows, columns - 1))
    high = draw(st.integers(low, columns - 1))
    batch = draw(st.sampled_from([(), (2,), (0,), (2, 3)]))
    x = np.arange(1.0, 1.0 + np.prod((*batch, rows, columns), dtype=int), dtype=np.float32)
    return x.reshape(*batch, rows, columns), low, high, draw(st.sampled_from(ALIGNMENTS))


def expected(x, low, high, align):
    """The diagonals by NumPy, each aligned as its alignment requires."""
    parts = [np.diagonal(x, d, -2, -1) for d in range(high, low - 1, -1)]
    width = max(d.shape[-1] for d in parts)
    out = np.full((*x.shape[:-2], len(parts), width), PADDING, x.dtype)
    above, below = align.split("_")
    for line, (d, values) in enumerate(zip(range(high, low - 1, -1), parts, strict=True)):
        to_right = (d >= 0 and above == "RIGHT") or (d <= 0 and below == "RIGHT")
        start = width - values.shape[-1] if to_right else 0
        out[..., line, start : start + values.shape[-1]] = values
    return out[..., 0, :] if low == high else out


@given(banded())
def test_the_parts_are_numpys_diagonals(case):
    x, low, high, align = case
    result = df.linalg.diag_part(x, k=(low, high), padding_value=PADDING, align=align)
    np.testing.assert_array_equal(result.numpy(), expected(x, low, high, align))


@given(banded())
def test_a_matrix_of_parts_is_the_band_of_the_matrix(case):
    x, low, high, align = case
    parts = df.linalg.diag_part(x, k=(low, high), align=align)
    matrix = df.linalg.diag(
        parts, k=(low, high), num_rows=x.shape[-2], num_cols=x.shape[-1], padding_value=PADDING, align=align
    )
    distance = np.arange(x.shape[-1]) - np.arange(x.shape[-2])[:, None]
    np.testing.assert_array_equal(
        matrix.numpy(), np.where((distance >= low) & (distance <= high), x, np.float32(PADDING))
    )


def test_a_single_diagonal_may_be_given_as_a_number_or_a_pair():
    for k in (1, (1, 1), [1], df.constant(1)):
        assert df.linalg.diag_part(MATRIX, k=k).numpy().tolist() == [2, 6]
        assert df.linalg.diag([2, 6], k=k).numpy().tolist() == [[0, 2, 0], [0, 0, 6], [0, 0, 0]]


def test_matrices_are_as_large_as_their_diagonals_need():
    assert df.linalg.diag([1, 2], k=-1).shape == (3, 3)
    assert df.linalg.diag([1, 2], k=1, num_rows=2).shape == (2, 3)
    assert df.linalg.diag([1, 2], num_cols=4).shape == (2, 4)
    assert df.linalg.diag([[1, 2], [3, 4]]).shape == (2, 2, 2)


def test_gradients_go_to_the_elements_that_were_taken(mode):
    x, weights = df.random.normal([2, 3, 4]), df.random.normal([2, 3, 3])

    @mode
    def gradient(x, weights):
        with df.GradientTape() as tape:
            tape.watch(x)
            y = df.reduce_sum(df.linalg.diag_part(x, k=(-1, 1)) * weights)
        return tape.gradient(y, x)

    in_band = df.linalg.diag(weights, k=(-1, 1), num_rows=3, num_cols=4)
    np.testing.assert_array_equal(gradient(x, weights).numpy(), in_band.numpy())


@pytest.mark.parametrize("k", [-2, 1, (-3, -2), (1, 2)])
def test_a_diagonal_without_elements_needs_a_matrix_of_padding(mode, k):
    shape = [0] if isinstance(k, int) else [2, 0]
    matrix = mode(lambda x: df.linalg.diag(x, k=k, padding_value=7.0))(df.zeros(shape))
    np.testing.assert_array_equal(matrix, np.full([np.abs(k).min()] * 2, 7.0, np.float32))


def test_a_diagonal_outside_of_matrices_of_dynamic_sizes_is_an_error():
    part = df.function(lambda x: df.linalg.diag_part(x, k=2), input_signature=[df.TensorSpec([None, None])])
    assert part(df.ones([2, 3])).numpy().tolist() == [1.0]
    with pytest.raises(df.errors.InvalidArgumentError, match="k=2 is outside of the matrices"):
        part(df.ones([3, 2]))


def test_another_number_of_elements_than_a_diagonal_of_dynamic_size_has_is_an_error():
    signature = [df.TensorSpec([None, None]), df.TensorSpec([None])]
    replaced = df.function(lambda x, y: df.linalg.set_diag(x, y, k=1), input_signature=signature)
    assert replaced(df.zeros([3, 3]), [1.0, 2.0]).numpy().tolist() == [[0, 1, 0], [0, 0, 2], [0, 0, 0]]
    with pytest.raises(df.errors.InvalidArgumentError, match="another number of elements than diagonal 1"):
        replaced(df.zeros([3, 3]), [1.0])


BANDS = {
    "a band outside of a matrix": (
        lambda x: df.linalg.diag_part(x, k=(0, 2)),
        [None, 3],
        ([3, 3], [2, 3]),
        ([0, 3],),
        r"k=\(0, 2\) is outside of the matrices",
    ),
    "a band of an unknown number of diagonals": (
        lambda x: df.linalg.diag(x, k=(0, 1)),
        [None, None],
        ([2, 0], [2, 1], [2, 5]),
        ([3, 2], [0, 2]),
        "shape",
    ),
    "a band that is too long for a matrix": (
        lambda x: df.linalg.set_diag(df.zeros([3, 4]), x, k=(-1, 0)),
        [2, None],
        ([2, 3],),
        ([2, 4], [2, 0]),
        "diagonals -1 to 0 have another number of elements",
    ),
}


@pytest.mark.parametrize("name", BANDS)
def test_bands_of_dynamic_sizes_that_do_not_fit_are_errors(name):
    function, signature, fitting, others, message = BANDS[name]
    compiled = df.function(function, input_signature=[df.TensorSpec(signature)])
    for shape in fitting:
        x = df.random.normal(shape)
        np.testing.assert_array_equal(compiled(x), function(x))
    for shape in others:
        for call in (function, compiled):
            with pytest.raises(df.errors.InvalidArgumentError, match=message if call is compiled else None):
                call(df.ones(shape))


def test_the_padding_has_the_dtype_of_the_elements():
    assert df.linalg.diag([1.5], k=1, padding_value=2).dtype is df.float32
    assert df.linalg.diag(df.constant([1], df.int8), padding_value=2).dtype is df.int8


CASES = {
    "three diagonals": (lambda: df.linalg.diag([1], k=(0, 1, 2)), r"k is a diagonal.*\(0, 1, 2\)"),
    "a falling pair": (lambda: df.linalg.diag_part(MATRIX, k=(1, 0)), "lowest and the highest"),
    "a diagonal outside": (lambda: df.linalg.diag_part(MATRIX, k=3), "outside of .* use -1 to 2"),
    "an alignment": (
        lambda: df.linalg.diag_part(MATRIX, k=1, align="LEFT"),
        "align is one of RIGHT_LEFT|LEFT",
    ),
    "too few rows": (lambda: df.linalg.diag([[1, 2]], k=(0, 1)), r"need 2 rows, .* shape is \(1, 2\)"),
    "a small matrix": (
        lambda: df.linalg.diag([1, 2], num_rows=1),
        "need 2 rows and 2 columns or more, not 1",
    ),
    "a large matrix": (
        lambda: df.linalg.diag([1, 2], num_rows=3, num_cols=3),
        "longest has 3; change num_rows",
    ),
}


class TestErrorMessages(ErrorCases):
    cases: ClassVar = {name: (call, InvalidArgumentError, words) for name, (call, words) in CASES.items()}
    raised_in = ("ops/linear_algebra/bands.py",)

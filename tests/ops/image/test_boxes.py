"""Boxes: drawn, and chosen without those that overlap better ones."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dualflow as df

image = df.image


def overlap(a, b):
    """The intersection of two boxes divided by their union."""
    low = np.maximum(np.minimum(a[:2], a[2:]), np.minimum(b[:2], b[2:]))
    high = np.minimum(np.maximum(a[:2], a[2:]), np.maximum(b[:2], b[2:]))
    inner = np.prod(np.maximum(high - low, 0))
    areas = sum(abs(np.prod(box[2:] - box[:2])) for box in (a, b))
    return inner / (areas - inner) if inner else 0.0


def drawn(seed, count=30):
    rng = np.random.default_rng(seed)
    start = rng.uniform(0, 1, (count, 2))
    boxes = np.hstack([start, start + rng.uniform(-0.5, 0.5, (count, 2))]).astype(np.float32)
    return boxes, rng.uniform(0, 1, count).astype(np.float32)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 999), st.sampled_from([0.1, 0.3, 0.6]), st.booleans(), st.integers(0, 40))
def test_the_choice_is_greedy(seed, threshold, all_scores, most):
    least = -np.inf if all_scores else 0.4
    boxes, scores = drawn(seed)
    chosen = image.non_max_suppression(boxes, scores, most, threshold, least).numpy()
    expected = []
    for i in np.argsort(-scores, kind="stable"):
        fits = all(overlap(boxes[i].astype(float), boxes[j].astype(float)) <= threshold for j in expected)
        if scores[i] > least and fits and len(expected) < most:
            expected.append(int(i))
    assert chosen.tolist() == expected


def test_padded_choices_have_a_number(mode):
    boxes, scores = drawn(1)
    low, high = np.minimum(boxes[:, :2], boxes[:, 2:]), np.maximum(boxes[:, :2], boxes[:, 2:])
    boxes = np.hstack([low, high])
    chosen = image.non_max_suppression(boxes, scores, 40, 0.3).numpy()
    places, count = mode(
        lambda b, s: image.non_max_suppression_padded(b, s, 40, 0.3, pad_to_max_output_size=True)
    )(boxes, scores)
    assert places.numpy().tolist() == [*chosen, *[0] * (40 - len(chosen))]
    assert int(count) == len(chosen)
    both, counts = image.non_max_suppression_padded(
        np.stack([boxes, boxes[::-1]]), np.stack([scores, scores[::-1]]), 40, 0.3, pad_to_max_output_size=True
    )
    assert both.numpy()[1, : len(chosen)].tolist() == (29 - chosen).tolist()
    assert counts.numpy().tolist() == [len(chosen)] * 2


def test_compiled_functions_choose_as_eager_code_does():
    boxes, scores = drawn(2)
    chosen = image.non_max_suppression(boxes, scores, 9, 0.3)
    np.testing.assert_array_equal(
        df.function(lambda b, s: image.non_max_suppression(b, s, 9, 0.3))(boxes, scores), chosen
    )


def test_soft_scores_fall_with_the_overlap():
    boxes = np.array([[0, 0, 1, 1], [0, 0.5, 1, 1.5], [5, 5, 6, 6]], np.float32)
    scores = np.array([0.9, 0.8, 0.1], np.float32)
    places, result = image.non_max_suppression_with_scores(boxes, scores, 3, soft_nms_sigma=0.5)
    assert places.numpy().tolist() == [0, 1, 2]
    np.testing.assert_allclose(result, [0.9, 0.8 * np.exp(-((1 / 3) ** 2)), 0.1], rtol=1e-5)


def test_overlaps_of_any_measure():
    overlaps = np.array([[1, 0.9, 0.1], [0.9, 1, 0.1], [0.1, 0.1, 1]], np.float32)
    chosen = image.non_max_suppression_overlaps(overlaps, [0.5, 0.8, 0.1], 3, 0.5)
    assert chosen.numpy().tolist() == [1, 2]


def test_equal_scores_are_taken_in_order():
    boxes = np.array([[i, 0, i + 1, 1] for i in range(4)], np.float32)
    assert image.non_max_suppression(boxes, np.ones(4, np.float32), 3).numpy().tolist() == [0, 1, 2]


def test_outlines_are_one_pixel_wide_and_end_at_the_image(mode):
    boxes = [[[0.25, 0.25, 0.75, 1.0], [-1.0, -1.0, 0.5, 0.5]]]
    colours = [[1.0], [2.0]]
    result = mode(lambda x: image.draw_bounding_boxes(x, boxes, colours))(df.zeros([1, 5, 5, 1]))
    assert result[0, ..., 0].numpy().astype(int).tolist() == [
        [0, 0, 2, 0, 0],
        [0, 1, 2, 1, 1],
        [2, 2, 2, 0, 1],
        [0, 1, 1, 1, 1],
        [0, 0, 0, 0, 0],
    ]


@pytest.mark.parametrize("channels", [1, 3, 4])
def test_boxes_without_colours_take_tensorflows(channels):
    result = image.draw_bounding_boxes(df.zeros([1, 4, 4, channels]), [[[0.0, 0.0, 1.0, 1.0]]], None)
    assert result[0, 0, 0].numpy().tolist() == {1: [1], 3: [1, 1, 0], 4: [1, 1, 0, 1]}[channels]

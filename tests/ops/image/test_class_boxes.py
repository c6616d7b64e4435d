"""The best boxes of all classes, against a loop over images and classes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dualflow as df

RNG = np.random.default_rng(0)
CORNERS = RNG.uniform(-0.2, 1.0, (2, 6, 3, 2)).astype(np.float32)
BOXES = np.concatenate([CORNERS, CORNERS + np.float32(0.4)], axis=-1)
SCORES = RNG.uniform(size=(2, 6, 3)).astype(np.float32)


def best(boxes: Any, scores: Any, limit: int, total: int) -> list[tuple[float, int, list[float]]]:
    """The scores, classes and boxes of one image, by falling score."""
    rows: list[tuple[float, int, list[float]]] = []
    for c in range(scores.shape[1]):
        own = boxes[:, c % boxes.shape[1]]
        chosen = df.image.non_max_suppression(own, scores[:, c], limit, 0.3, 0.2).numpy()
        rows += [(float(scores[i, c]), c, np.clip(own[i], 0, 1).tolist()) for i in chosen]
    return sorted(rows, key=lambda row: -row[0])[:total]


@pytest.mark.parametrize("columns", [1, 3])
@pytest.mark.parametrize("total", [4, 20])
def test_boxes_are_those_of_a_loop_over_classes(columns: int, total: int, mode: Any) -> None:
    boxes = BOXES[:, :, :columns]
    call = mode(lambda x, y: df.image.combined_non_max_suppression(x, y, 3, total, 0.3, 0.2))
    result = call(df.constant(boxes), df.constant(SCORES))
    assert result.nmsed_boxes.shape == (2, total, 4)
    for i in range(2):
        count, expected = int(result.valid_detections[i]), best(boxes[i], SCORES[i], 3, total)
        parts = [x[i, :count].numpy().tolist() for x in result[:3]]
        assert [(s, int(c), b) for b, s, c in zip(*parts, strict=True)] == expected
        assert not result.nmsed_scores[i, count:].numpy().any()


def test_the_padding_of_classes_is_bounded_on_request() -> None:
    for limit, results in ((2, 6), (7, 20)):  # there are 6 boxes
        padded = df.image.combined_non_max_suppression(BOXES, SCORES, limit, 20, pad_per_class=True)
        assert padded.nmsed_scores.shape == (2, results)


@pytest.mark.parametrize("empty", [(0, 6, 3), (2, 0, 3), (2, 6, 0)])
def test_the_results_of_no_boxes_are_padding(empty: tuple[int, int, int], mode: Any) -> None:
    call = mode(lambda x, y: df.image.combined_non_max_suppression(x, y, 2, 5, 0.3, 0.2))
    result = call(df.ones([*empty[:2], 1, 4]), df.ones(empty))
    assert [x.shape for x in result] == [(empty[0], 5, 4), (empty[0], 5), (empty[0], 5), (empty[0],)]
    assert not any(x.numpy().any() for x in result)

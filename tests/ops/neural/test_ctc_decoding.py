"""CTC decoders: greedy and beam search, and the merging of repeated labels."""

import itertools
import math

import numpy as np
import pytest

import dualflow as df

RNG = np.random.default_rng(0)
SCORES = RNG.normal(size=(6, 3, 4)).astype(np.float32)
STEPS = np.array([6, 0, 4])


def dense(decoded):
    return df.sparse.to_dense(decoded, default_value=-1).numpy().tolist()


@pytest.mark.parametrize("merge", [True, False])
@pytest.mark.parametrize("blank", [None, 0, -2])
def test_the_greedy_decoder_follows_the_best_class_of_each_step(mode, merge, blank):
    run = mode(lambda x: df.nn.ctc_greedy_decoder(x, STEPS, merge_repeated=merge, blank_index=blank))
    (decoded,), score = run(df.constant(SCORES))
    empty = {None: 3, 0: 0, -2: 2}[blank]
    for row in range(3):
        best = SCORES[: STEPS[row], row].argmax(-1).tolist()
        path = [c for c, _ in itertools.groupby(best)] if merge else best
        labels = [c for c in path if c != empty]
        at = decoded.indices.numpy()[:, 0] == row
        assert decoded.values.numpy()[at].tolist() == labels
        assert decoded.indices.numpy()[at, 1].tolist() == list(range(len(labels)))
        np.testing.assert_allclose(
            score[row, 0], -SCORES[: STEPS[row], row].max(-1, initial=-np.inf).sum(), rtol=1e-6
        )
    assert decoded.dense_shape.numpy()[0] == 3
    assert decoded.values.dtype is df.int64


def chances(scores):
    """The chance of every sequence of labels, over all paths."""
    logs = scores - np.log(np.exp(scores).sum(-1, keepdims=True))
    probabilities = {}
    for path in itertools.product(range(scores.shape[1]), repeat=len(scores)):
        labels = tuple(c for c, _ in itertools.groupby(path) if c != scores.shape[1] - 1)
        probabilities[labels] = probabilities.get(labels, 0.0) + math.exp(
            sum(logs[t, c] for t, c in enumerate(path))
        )
    return sorted(probabilities.items(), key=lambda item: -item[1])


def test_a_wide_beam_finds_the_most_likely_labels(mode):
    scores = SCORES[:4, :2, :3]
    run = mode(lambda x: df.nn.ctc_beam_search_decoder(x, [4, 3], beam_width=200, top_paths=3))
    decoded, logs = run(df.constant(scores))
    for row, steps in enumerate([4, 3]):
        expected = chances(scores[:steps, row].astype(np.float64))[:3]
        np.testing.assert_allclose(logs[row], [math.log(p) for _, p in expected], rtol=1e-5)
        for path, (labels, _) in zip(decoded, expected, strict=True):
            at = path.indices.numpy()[:, 0] == row
            assert path.values.numpy()[at].tolist() == list(labels)


def test_runs_collapse_to_one_label(mode):
    run = mode(df.nn.collapse_repeated)
    left, lengths = run(
        df.constant([[1, 1, 2, 2, 1], [3, 3, 3, 0, 0], [4, 5, 5, 5, 5]]), df.constant([5, 3, 0])
    )
    assert left.numpy().tolist() == [[1, 2, 1], [3, 0, 0], [0, 0, 0]]
    assert lengths.numpy().tolist() == [3, 1, 0]


def test_different_labels_are_numbered_in_their_order(mode):
    labels = RNG.integers(0, 4, (5, 7))
    different, which = mode(df.nn.ctc_unique_labels)(df.constant(labels))
    for row in range(5):
        order = list(dict.fromkeys(labels[row].tolist()))
        assert different.numpy()[row].tolist() == order + [0] * (7 - len(order))
        assert which.numpy()[row].tolist() == [order.index(label) for label in labels[row]]

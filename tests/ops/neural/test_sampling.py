"""Sampled softmax and noise-contrastive losses, and their candidate samples."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dualflow as df
from dualflow.compat import v1

RNG = np.random.default_rng(7)
WEIGHTS = RNG.normal(size=(20, 4)).astype(np.float32)
BIASES = RNG.normal(size=20).astype(np.float32)
INPUTS = RNG.normal(size=(3, 4)).astype(np.float32)
LABELS = np.array([[1, 2], [3, 19], [5, 0]])
SAMPLE = (
    np.array([2, 7, 0, 11, 3]),
    RNG.uniform(0.1, 1.0, (3, 2)).astype(np.float32),
    RNG.uniform(0.1, 1.0, 5).astype(np.float32),
)


def logits_and_labels(hits_count: bool) -> tuple[Any, Any]:
    """By the definition, row by row, in float64."""
    sampled, true_counts, sampled_counts = SAMPLE
    rows, targets = [], []
    for x, labels, counts in zip(INPUTS.astype(np.float64), LABELS, true_counts, strict=True):
        true = [x @ WEIGHTS[c] + BIASES[c] - np.log(n) for c, n in zip(labels, counts, strict=True)]
        others = [
            x @ WEIGHTS[c] + BIASES[c] - np.log(n) if hits_count or c not in labels else -1e37
            for c, n in zip(sampled, sampled_counts, strict=True)
        ]
        rows.append(true + others)
        targets.append([0.5, 0.5] + [0.0] * 5)
    return np.array(rows), np.array(targets)


def call(loss: Any, hits_count: bool) -> Any:
    return loss(
        *(WEIGHTS, BIASES, LABELS, INPUTS, 5, 20),
        num_true=2,
        sampled_values=tuple(map(df.constant, SAMPLE)),
        remove_accidental_hits=not hits_count,
    )


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("hits_count", [True, False])
def test_the_noise_contrastive_loss_is_its_definition(hits_count: bool, compiled: bool) -> None:
    z, targets = logits_and_labels(hits_count)
    expected = (np.maximum(z, 0) - z * targets + np.log1p(np.exp(-np.abs(z)))).sum(1)
    run = lambda: call(df.nn.nce_loss, hits_count)  # noqa: E731  # with and without compiling
    np.testing.assert_allclose((df.function(run) if compiled else run)(), expected, rtol=1e-5)


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("hits_count", [True, False])
def test_the_sampled_softmax_is_its_definition(hits_count: bool, compiled: bool) -> None:
    z, targets = logits_and_labels(hits_count)
    shifted = z - z.max(1, keepdims=True)
    expected = -(targets * (shifted - np.log(np.exp(shifted).sum(1, keepdims=True)))).sum(1)
    run = lambda: call(df.nn.sampled_softmax_loss, hits_count)  # noqa: E731  # with and without compiling
    np.testing.assert_allclose((df.function(run) if compiled else run)(), expected, rtol=1e-5)


@pytest.mark.parametrize("loss", [df.nn.nce_loss, df.nn.sampled_softmax_loss])
def test_only_the_classes_looked_at_have_gradients(loss: Any) -> None:
    weights, biases = df.Variable(WEIGHTS), df.Variable(BIASES)
    sample = tuple(map(df.constant, SAMPLE))
    with df.GradientTape() as tape:
        value = df.reduce_sum(loss(weights, biases, LABELS, INPUTS, 5, 20, 2, sample))
    slopes = tape.gradient(value, [weights, biases])
    looked_at = {*LABELS.ravel().tolist(), *SAMPLE[0].tolist()}
    for slope in slopes:
        rows = slope.numpy().reshape(20, -1)
        assert {i for i in range(20) if rows[i].any()} == looked_at


@pytest.mark.parametrize("loss", [df.nn.nce_loss, df.nn.sampled_softmax_loss])
def test_one_true_class_of_each_row_needs_no_axis(loss: Any) -> None:
    df.random.set_seed(3)
    flat = loss(WEIGHTS, BIASES, LABELS[:, 0], INPUTS, 5, 20)
    df.random.set_seed(3)
    np.testing.assert_array_equal(flat, loss(WEIGHTS, BIASES, LABELS[:, :1], INPUTS, 5, 20))


# The sample


@given(st.integers(1, 30), st.data())
def test_a_sample_holds_classes_once_each(classes: int, data: st.DataObject) -> None:
    count = data.draw(st.integers(1, classes))
    sampled, _, expected = df.random.log_uniform_candidate_sampler([[0]], 1, count, True, classes)
    sample = sampled.numpy()
    assert (sample.dtype, sample.shape) == (np.int64, (count,))
    assert len(set(sample)) == count
    assert ((sample >= 0) & (sample < classes)).all()
    assert ((expected.numpy() > 0) & (expected.numpy() <= count)).all()


def test_common_classes_are_sampled_as_often_as_is_expected() -> None:
    df.random.set_seed(11)
    every = np.arange(40)[:, None]
    runs = [df.random.log_uniform_candidate_sampler(every, 1, 12, True, 40) for _ in range(1500)]
    often = np.mean([np.bincount(sampled.numpy(), minlength=40) for sampled, _, _ in runs], axis=0)
    expected = np.mean([counts.numpy()[:, 0] for _, counts, _ in runs], axis=0)
    np.testing.assert_allclose(often, expected, atol=0.06)


def test_a_sample_with_repetitions_has_probabilities_by_zipfs_law() -> None:
    _, counts, _ = df.random.log_uniform_candidate_sampler(np.arange(20)[:, None], 1, 5, False, 20)
    classes = np.arange(20)
    chances = np.log((classes + 2) / (classes + 1)) / np.log(21)
    np.testing.assert_allclose(counts.numpy()[:, 0], 5 * chances, rtol=1e-5)


def test_a_seed_has_samples_of_its_own() -> None:
    def draw() -> list[int]:
        result: list[int] = (
            df.random.log_uniform_candidate_sampler([[0]], 1, 4, True, 50, seed=5)[0].numpy().tolist()
        )
        return result

    df.random.set_seed(1)
    first = [draw(), draw()]
    df.random.set_seed(1)
    assert [draw(), draw()] == first
    assert first[0] != first[1]


def test_a_compiled_function_draws_a_new_sample_at_each_call() -> None:
    df.random.set_seed(2)
    draw = df.function(lambda: df.random.log_uniform_candidate_sampler([[0]], 1, 5, True, 100)[0])
    assert len({tuple(draw().numpy().tolist()) for _ in range(5)}) == 5


def test_words_are_learnt_in_a_session() -> None:
    """The skip-gram program: the words of a pair come near each other."""
    with v1.Graph().as_default(), v1.Session() as session:
        v1.set_random_seed(1)
        words, contexts = v1.placeholder(v1.int32, [None]), v1.placeholder(v1.int32, [None, 1])
        embeddings = v1.Variable(v1.random_uniform([10, 4], -1.0, 1.0, seed=1))
        weights = v1.Variable(v1.truncated_normal([10, 4], stddev=0.5, seed=2))
        biases = v1.Variable(v1.zeros([10]))
        embedded = v1.nn.embedding_lookup(embeddings, words)
        loss = v1.reduce_mean(
            v1.nn.nce_loss(weights, biases, inputs=embedded, labels=contexts, num_sampled=4, num_classes=10)
        )
        step = v1.train.GradientDescentOptimizer(0.5).minimize(loss)
        session.run(v1.global_variables_initializer())
        feed = {words: [0, 1, 2, 3], contexts: [[1], [0], [3], [2]]}
        losses = [session.run([step, loss], feed)[1] for _ in range(60)]
        assert np.mean(losses[-10:]) < 0.5 * np.mean(losses[:10])


@pytest.mark.parametrize(("count", "unique"), [(0, True), (0, False), (11, True)])
def test_a_sample_of_no_size_or_too_many_is_refused(count: int, unique: bool) -> None:
    with pytest.raises(
        ValueError, match=f"A sample of {count} classes can't be drawn from 10; give num_sampled"
    ):
        df.random.log_uniform_candidate_sampler([[0]], 1, count, unique, 10)

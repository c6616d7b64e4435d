"""Candidate samplers: the sampled classes and their expected counts."""

import numpy as np
import pytest

import dualflow as df

TRUE = np.array([[1, 2], [3, 1]])
WEIGHTS = [1.0, 2.0, 3.0, 4.0]
SAMPLERS = {
    "equal": (
        lambda n, unique, seed=None: df.random.uniform_candidate_sampler(TRUE, 2, n, unique, 4, seed),
        np.full(4, 0.25),
    ),
    "zipf": (
        lambda n, unique, seed=None: df.random.log_uniform_candidate_sampler(TRUE, 2, n, unique, 4, seed),
        np.log((np.arange(4) + 2) / (np.arange(4) + 1)) / np.log(5),
    ),
    "weighted": (
        lambda n, unique, seed=None: df.random.fixed_unigram_candidate_sampler(
            TRUE, 2, n, unique, 4, unigrams=WEIGHTS, seed=seed
        ),
        np.array(WEIGHTS) / 10,
    ),
}


@pytest.fixture(params=SAMPLERS)
def sampler(request):
    return SAMPLERS[request.param]


def test_classes_are_drawn_by_their_probabilities(mode, sampler):
    draw, probabilities = sampler
    sampled, _, _ = mode(lambda: draw(20000, False))()
    assert (sampled.shape, sampled.dtype) == ((20000,), df.int64)
    np.testing.assert_allclose(np.bincount(sampled, minlength=4) / 20000, probabilities, atol=0.02)


def test_expected_counts_are_probabilities_times_draws(mode, sampler):
    draw, probabilities = sampler
    sampled, true, others = mode(lambda: draw(3, False))()
    np.testing.assert_allclose(true, 3 * probabilities[TRUE], rtol=1e-5)
    np.testing.assert_allclose(others, 3 * probabilities[sampled.numpy()], rtol=1e-5)


def test_a_unique_sample_has_each_class_once(sampler):
    draw, probabilities = sampler
    sample = draw(4, True)
    assert sorted(sample.sampled_candidates.numpy().tolist()) == [0, 1, 2, 3]
    counts = sample.true_expected_count.numpy()
    assert ((counts > 0) & (counts <= np.maximum(1, 4 * probabilities[TRUE]) + 1e-6)).all()


def test_a_seed_has_a_stream_of_its_own(sampler):
    draw, _ = sampler
    df.random.set_seed(5)
    first = draw(50, False, 3).sampled_candidates.numpy()
    df.random.set_seed(5)
    np.testing.assert_array_equal(draw(50, False, 3).sampled_candidates, first)


def test_weights_are_distorted_reserved_and_split():
    sample = df.nn.fixed_unigram_candidate_sampler
    flat = sample(TRUE, 2, 2, False, 4, unigrams=WEIGHTS, distortion=0.0).true_expected_count
    np.testing.assert_allclose(flat, np.full((2, 2), 0.5))
    kept = sample([[0, 1]], 2, 1, False, 5, unigrams=WEIGHTS, num_reserved_ids=1)
    np.testing.assert_allclose(kept.true_expected_count, [[0.0, 0.1]], rtol=1e-6)
    half = sample([[0, 1]], 2, 1, False, 2, unigrams=WEIGHTS, num_shards=2, shard=1)
    np.testing.assert_allclose(half.true_expected_count, [[1 / 3, 2 / 3]], rtol=1e-6)


def test_weights_come_from_a_file(tmp_path):
    path = tmp_path / "vocabulary.csv"
    path.write_text("the,30\n\nof,10\n", encoding="utf-8")
    sample = df.nn.fixed_unigram_candidate_sampler([[0, 1]], 2, 1, False, 2, vocab_file=str(path))
    np.testing.assert_allclose(sample.true_expected_count, [[0.75, 0.25]])


def test_a_learned_sampler_counts_what_was_true():
    def draw():
        return df.nn.learned_unigram_candidate_sampler([[3, 3]], 2, 1, False, 6, seed=12345)

    np.testing.assert_allclose(draw().true_expected_count, [[1 / 6, 1 / 6]], rtol=1e-6)
    np.testing.assert_allclose(draw().true_expected_count, [[3 / 8, 3 / 8]], rtol=1e-6)


def test_all_classes_are_a_sample_too():
    sampled, true, others = df.nn.all_candidate_sampler(TRUE, 2, 4, True)
    assert sampled.numpy().tolist() == [0, 1, 2, 3]
    np.testing.assert_array_equal(true, np.ones((2, 2)))
    np.testing.assert_array_equal(others, np.ones(4))


def test_hits_are_sampled_classes_that_are_true(mode):
    run = mode(lambda true: df.nn.compute_accidental_hits(true, [1, 3, 5], 2))
    rows, places, weights = run(df.constant(TRUE))
    assert (rows.dtype, places.dtype) == (df.int32, df.int64)
    assert rows.numpy().tolist() == [0, 1, 1]
    assert places.numpy().tolist() == [0, 1, 0]
    np.testing.assert_array_equal(weights, np.full(3, np.finfo(np.float32).min))

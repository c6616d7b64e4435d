"""Keras's preprocessing layers of words and categories, compared with their values on TensorFlow 2.21."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dualflow as df

TEXTS = ["the cat sat, on the mat!", "The dog ate the cat", "a bird"]

VECTORS = {
    "int": [
        [2, 4, 8, 10, 2, 11, 3, 14, 7, 9, 5],
        [2, 13, 17, 2, 4, 6, 12, 16, 3, 0, 0],
        [19, 15, 18, 0, 0, 0, 0, 0, 0, 0, 0],
    ],
    "multi_hot": [
        [0, 1, 1, 1, 1, 1, 0, 0, 0, 0],
        [0, 1, 1, 0, 0, 0, 1, 0, 1, 0],
        [0, 0, 0, 0, 0, 0, 0, 1, 0, 1],
    ],
    "count": [[0, 2, 1, 1, 1, 1, 0, 0, 0, 0], [0, 2, 1, 0, 0, 0, 1, 0, 1, 0], [0, 0, 0, 0, 0, 0, 0, 1, 0, 1]],
    "tf_idf": [
        [
            0.0,
            1.3862943649291992,
            0.6931471824645996,
            0.9162907600402832,
            0.9162907600402832,
            0.9162907600402832,
            0.0,
            0.0,
            0.0,
            0.0,
        ],
        [
            0.0,
            1.3862943649291992,
            0.6931471824645996,
            0.0,
            0.0,
            0.0,
            0.9162907600402832,
            0.0,
            0.9162907600402832,
            0.0,
        ],
        [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.9162907600402832, 0.0, 0.9162907600402832],
    ],
}
"""The vectors of the texts on TensorFlow, for each output mode; for int with pairs of words."""


def adapted(keras: Any, **options: Any) -> Any:
    layer = keras.layers.TextVectorization(**options)
    layer.adapt(TEXTS)
    return layer


def test_a_string_lookup_numbers_words_eagerly_in_functions_and_in_datasets(keras: Any) -> None:
    layer = keras.layers.StringLookup(vocabulary=["a", "b", "c"])
    words, expected = [["c", "a"], ["z", "b"]], [[3, 1], [0, 2]]
    assert layer(words).numpy().tolist() == expected
    assert df.function(layer)(df.constant(words)).numpy().tolist() == expected
    dataset = df.data.Dataset.from_tensor_slices(words).map(layer)
    assert [x.numpy().tolist() for x in dataset] == expected
    assert layer(df.ragged.constant([["c"], [], ["z", "b"]])).to_list() == [[3], [], [0, 2]]


def test_an_inverted_lookup_gives_the_words(keras: Any) -> None:
    layer = keras.layers.StringLookup(vocabulary=["a", "b"], invert=True)
    assert layer(df.constant([2, 0], df.int64)).numpy().tolist() == [b"b", b"[UNK]"]


def test_other_words_are_hashed_to_several_numbers(keras: Any) -> None:
    words = df.constant(["c", "a", "z", "y", "x"])
    layer = keras.layers.StringLookup(vocabulary=["a", "b", "c"], num_oov_indices=4)
    salted = keras.layers.StringLookup(vocabulary=["a", "b", "c"], num_oov_indices=4, salt=[3, 4])
    assert (layer(words).numpy().tolist(), salted(words).numpy().tolist()) == (
        [6, 4, 1, 1, 2],
        [6, 4, 3, 1, 0],
    )


def test_words_that_must_be_in_the_vocabulary_are_checked(keras: Any) -> None:
    layer = keras.layers.StringLookup(vocabulary=["a"], num_oov_indices=0)
    assert layer(["a"]).numpy().tolist() == [0]
    with pytest.raises(df.errors.InvalidArgumentError, match="all inputs should be in vocabulary"):
        layer(["b"])


def test_adapt_sorts_words_by_frequency(keras: Any) -> None:
    layer = keras.layers.StringLookup(max_tokens=3)
    layer.adapt(["b", "a", "b", "c", "c", "c"])
    assert layer.get_vocabulary() == ["[UNK]", "c", "b"]
    numbers = keras.layers.IntegerLookup()
    numbers.adapt(df.data.Dataset.from_tensor_slices([[3], [9], [9]]).batch(2))
    assert [int(x) for x in numbers.get_vocabulary()] == [-1, 9, 3]


def test_a_vocabulary_is_read_from_a_file(keras: Any, tmp_path: Path) -> None:
    path = tmp_path / "words.txt"
    path.write_text("red\ngreen\n", encoding="utf-8")
    layer = keras.layers.StringLookup(vocabulary=str(path))
    assert layer(["green", "blue"]).numpy().tolist() == [2, 0]
    assert layer.get_vocabulary() == ["[UNK]", "red", "green"]


@pytest.mark.parametrize("mode", ["int", "multi_hot", "count", "tf_idf"])
def test_text_is_vectorized_as_by_tensorflow(keras: Any, mode: str) -> None:
    layer = adapted(keras, output_mode=mode, ngrams=2 if mode == "int" else None)
    expected = VECTORS[mode]
    np.testing.assert_allclose(layer(df.constant(TEXTS)).numpy(), expected, rtol=1e-6)
    np.testing.assert_allclose(df.function(layer)(df.constant(TEXTS)).numpy(), expected, rtol=1e-6)


def test_sequences_have_the_requested_length_in_datasets_too(keras: Any) -> None:
    layer = adapted(keras, output_sequence_length=4)
    batches = df.data.Dataset.from_tensor_slices(TEXTS).batch(2).map(layer)
    assert [x.shape for x in batches] == [[2, 4], [1, 4]]
    np.testing.assert_array_equal(df.concat([*batches], 0), layer(TEXTS))


def test_a_function_that_standardizes_texts_is_traced_in_datasets(keras: Any) -> None:
    layer = keras.layers.TextVectorization(standardize=df.strings.lower, vocabulary=["cat", "the"])
    dataset = df.data.Dataset.from_tensor_slices(["The CAT", "a cat"]).batch(2).map(layer)
    assert [x.numpy().tolist() for x in dataset] == [[[3, 2], [1, 2]]]
    assert layer(["The CAT"]).numpy().tolist() == [[3, 2]]


def test_a_model_predicts_for_tensors_of_words(keras: Any) -> None:
    words = keras.Input((1,), dtype="string", name="word")
    lookup = keras.layers.StringLookup(vocabulary=["a", "b"], output_mode="one_hot")
    model = keras.Model({"word": words}, lookup(words))
    assert model.predict({"word": df.constant([["b"], ["z"]])}, verbose=0).tolist() == [[0, 0, 1], [1, 0, 0]]


def test_hashes_are_those_of_tensorflow(keras: Any) -> None:
    words = df.constant([["a"], ["b"], ["c"]])
    layers = keras.layers
    assert layers.Hashing(num_bins=10)(words).numpy().ravel().tolist() == [9, 2, 2]
    assert layers.Hashing(num_bins=10, salt=[133, 137])(words).numpy().ravel().tolist() == [4, 2, 1]
    crossed = layers.HashedCrossing(num_bins=7)
    features = df.constant(["A", "B", "A"]), df.constant([101, 102, 103])
    assert crossed(features).numpy().tolist() == [4, 0, 2]
    assert df.function(lambda a, b: crossed((a, b)))(*features).numpy().tolist() == [4, 0, 2]


def test_a_saved_model_has_its_vocabulary(keras: Any, tmp_path: Path) -> None:
    model = keras.Sequential(
        [
            keras.Input((), dtype="string"),
            adapted(keras, output_sequence_length=4),
            keras.layers.Embedding(11, 2),
        ]
    )
    path = str(tmp_path / "model.keras")
    expected = model(df.constant(TEXTS)).numpy()
    model.save(path)
    np.testing.assert_array_equal(keras.models.load_model(path)(df.constant(TEXTS)), expected)


def test_a_classifier_of_texts_is_trained(keras: Any) -> None:
    texts = ["good film", "bad film", "good book", "bad book"] * 4
    labels = [1, 0, 1, 0] * 4
    vectorize = keras.layers.TextVectorization(output_sequence_length=2)
    vectorize.adapt(texts)
    dataset = df.data.Dataset.from_tensor_slices((texts, labels)).batch(4)
    layers = keras.layers
    model = keras.Sequential(
        [layers.Embedding(vectorize.vocabulary_size(), 4), layers.GlobalAveragePooling1D(), layers.Dense(1)]
    )
    loss = keras.losses.BinaryCrossentropy(from_logits=True)
    model.compile(keras.optimizers.Adam(0.1), loss)
    losses = model.fit(dataset.map(lambda x, y: (vectorize(x), y)), epochs=8, verbose=0).history["loss"]
    assert losses[-1] < 0.1 < losses[0]

"""Lookup tables: eagerly, in functions, in datasets, in checkpoints and in saved models."""

from __future__ import annotations

import copy
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dualflow as df
from dualflow.lookup import (
    KeyValueTensorInitializer,
    StaticHashTable,
    StaticVocabularyTable,
    TextFileIndex,
    TextFileInitializer,
)
from dualflow.lookup.experimental import MutableHashTable

WORDS = st.binary(max_size=3)
LINE, NUMBER = TextFileIndex.WHOLE_LINE, TextFileIndex.LINE_NUMBER


def static_table(keys: Any, values: Any, default: Any = -1, **dtypes: Any) -> Any:
    return StaticHashTable(KeyValueTensorInitializer(keys, values, **dtypes), default)


@given(st.dictionaries(WORDS, st.integers(-99, 99)), st.lists(WORDS, max_size=6))
@settings(max_examples=40)
def test_a_static_table_of_strings_is_a_dict_with_a_default(
    entries: dict[bytes, int], searched: list[bytes]
) -> None:
    table = static_table([*entries], [*entries.values()], 7, key_dtype="string", value_dtype="int64")
    keys = [*entries, *searched]
    expected = [entries.get(key, 7) for key in keys]
    assert table.lookup(df.constant(keys, df.string)).numpy().tolist() == expected
    assert table.size().numpy() == len(entries)


@given(st.dictionaries(st.integers(-5, 5), st.integers(-99, 99)), st.lists(st.integers(-7, 7), max_size=6))
@settings(max_examples=40)
def test_a_static_table_of_integers_is_a_dict_with_a_default(
    entries: dict[int, int], searched: list[int]
) -> None:
    table = static_table([*entries], [*entries.values()], 7, key_dtype="int64", value_dtype="int64")
    lookup = df.function(table.lookup)
    keys = df.constant([*entries, *searched], df.int64)
    expected = [entries.get(key, 7) for key in [*entries, *searched]]
    assert table.lookup(keys).numpy().tolist() == lookup(keys).numpy().tolist() == expected


CHANGES = st.lists(
    st.one_of(
        st.tuples(st.just("insert"), st.lists(st.tuples(WORDS, st.integers(0, 9)), min_size=1, max_size=4)),
        st.tuples(st.just("remove"), st.lists(WORDS, min_size=1, max_size=3)),
    ),
    max_size=5,
)


@given(CHANGES)
@settings(max_examples=40)
def test_insertions_and_removals_are_those_of_a_dict(changes: list[tuple[str, list[Any]]]) -> None:
    table = MutableHashTable(df.string, df.int64, -1)
    entries: dict[bytes, int] = {}
    for kind, items in changes:
        if kind == "insert":
            table.insert([key for key, _ in items], [value for _, value in items])
            entries.update(items)
        else:
            table.remove(items)
            entries = {key: value for key, value in entries.items() if key not in items}
    keys, values = (x.numpy().tolist() for x in table.export())
    assert list(zip(keys, values, strict=True)) == sorted(entries.items())
    assert table.size().numpy() == len(entries)


def test_threads_insert_into_one_table() -> None:
    table = MutableHashTable(df.int64, df.int64, -1)

    def insert(first: int) -> None:
        for key in range(first, first + 20):
            table.insert([key], [key * key])
            assert table.lookup([key]).numpy().tolist() == [key * key]

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(insert, range(0, 80, 20)))
    keys, values = (x.numpy() for x in table.export())
    assert keys.tolist() == [*range(80)]
    assert values.tolist() == [key * key for key in range(80)]


def test_one_word_is_looked_up_as_many_are() -> None:
    keys = [f"w{i}" for i in range(0, 200, 2)]
    table = static_table(keys, range(100))
    words = [f"w{i}" for i in range(200)]
    assert [int(table.lookup(word)) for word in words] == table.lookup(words).numpy().tolist()


def test_keys_of_any_shape_are_looked_up_and_ragged_and_sparse_ones() -> None:
    table = static_table(["a", "b"], [1, 2])
    assert table[df.constant("b")].numpy() == 2
    assert table.lookup(df.constant([["a"], ["z"]])).numpy().tolist() == [[1], [-1]]
    assert table.lookup(df.constant([], df.string)).shape == [0]
    assert table.lookup(df.ragged.constant([["a"], [], ["b", "z"]])).to_list() == [[1], [], [2, -1]]
    sparse = df.SparseTensor([[0, 1], [1, 0]], ["b", "z"], [2, 2])
    assert df.sparse.to_dense(table.lookup(sparse)).numpy().tolist() == [[0, 2], [-1, 0]]


def test_values_are_strings_floats_or_bools_too() -> None:
    assert static_table([1, 2], ["one", "two"], "many")[[2, 9]].numpy().tolist() == [b"two", b"many"]
    assert static_table(["pi"], [3.5], 0.0)[["pi", ""]].numpy().tolist() == [3.5, 0.0]
    assert static_table(["yes"], [True], False)[["yes", ""]].numpy().tolist() == [True, False]


def test_a_key_may_be_repeated_with_its_value() -> None:
    assert static_table(["a", "a"], [1, 1]).size().numpy() == 1


def test_a_table_without_entries_has_only_the_default() -> None:
    table = MutableHashTable(df.int64, df.float32, 0.5)
    assert table.lookup([[1, 2]]).numpy().tolist() == [[0.5, 0.5]]
    table.remove([3])
    assert [x.shape[0] for x in table.export()] == [0, 0]


def test_functions_look_up_and_report_a_host_call() -> None:
    table = static_table(["a", "b"], [1, 2])

    @df.function(input_signature=[df.TensorSpec([None], df.string)])
    def f(words: Any) -> Any:
        return table.lookup(words) * 10

    assert f(df.constant(["b", "z"])).numpy().tolist() == [20, -10]
    assert f(df.constant(["a"])).numpy().tolist() == [10]
    assert "strings are" in str(f.status())


@pytest.mark.parametrize("dtype", ["string", "int64"])
def test_functions_change_tables_in_the_order_of_the_program(dtype: str) -> None:
    table = MutableHashTable(dtype, df.int64, 0)

    @df.function
    def count(words: Any) -> Any:
        before = table.lookup(words)
        table.insert(words, before + 1)
        return table.lookup(words), table.size()

    first, second, third = (["a", "b"], ["b", "c"], ["c"]) if dtype == "string" else ([1, 2], [2, 3], [3])
    assert count(df.constant(first, dtype))[0].numpy().tolist() == [1, 1]
    assert count(df.constant(second, dtype))[0].numpy().tolist() == [2, 1]
    values, size = count(df.constant(third, dtype))
    assert (values.numpy().tolist(), size.numpy(), table.size().numpy()) == ([2], 3, 3)


def test_a_function_exports_and_removes_entries() -> None:
    table = MutableHashTable(df.string, df.int64, 0)
    table.insert(["b", "a"], [1, 2])

    @df.function
    def f(word: Any) -> Any:
        table.remove(word)
        keys, values = table.export()
        return keys + "!", values + 1

    keys, values = f(df.constant("b"))
    assert (keys.numpy().tolist(), values.numpy().tolist()) == ([b"a!"], [3])


def test_a_table_created_in_a_function_outlives_it() -> None:
    tables = []

    @df.function
    def f(words: Any) -> Any:
        if not tables:
            with df.init_scope():
                entries = KeyValueTensorInitializer(["a"], [1])
            tables.append(StaticHashTable(entries, -1))
        return tables[0].lookup(words)

    assert f(df.constant(["a", "b"])).numpy().tolist() == [1, -1]
    assert tables[0].lookup(["a"]).numpy().tolist() == [1]


def test_datasets_look_up_words() -> None:
    table = static_table(["a", "b"], [1, 2])
    dataset = df.data.Dataset.from_tensor_slices(["b", "z", "a"]).batch(2).map(table.lookup)
    assert [x.numpy().tolist() for x in dataset] == [[2, -1], [1]]


def test_a_checkpoint_restores_the_entries(tmp_path: Path) -> None:
    table = MutableHashTable(df.string, df.int64, 0)
    table.insert(["a", "b"], [1, 2])
    path = df.train.Checkpoint(table=table).save(str(tmp_path / "saved"))
    other = MutableHashTable(df.string, df.int64, 0)
    other.insert(["z"], [9])
    df.train.Checkpoint(table=other).restore(path).assert_consumed()
    assert [x.numpy().tolist() for x in other.export()] == [[b"a", b"b"], [1, 2]]


def test_a_saved_model_has_its_tables(tmp_path: Path) -> None:
    module = df.Module()
    table = static_table(["a", "b"], [1, 2])
    module.f = df.function(table.lookup, input_signature=[df.TensorSpec([None], df.string)])
    df.saved_model.save(module, str(tmp_path / "model"))
    loaded = df.saved_model.load(str(tmp_path / "model"))
    assert loaded.f(df.constant(["b", "z"])).numpy().tolist() == [2, -1]


def test_a_copied_table_has_entries_of_its_own() -> None:
    table = MutableHashTable(df.string, df.int64, 0)
    table.insert(["a"], [1])
    copied = copy.deepcopy(table)
    copied.insert(["a"], [2])
    assert (table["a"].numpy(), copied["a"].numpy()) == (1, 2)


def test_a_default_for_each_key_is_used_where_there_is_no_entry() -> None:
    table = MutableHashTable(df.int64, df.float32, [0.0, 0.0])
    table.insert([1], [[1.0, 2.0]])
    assert table.lookup([1, 5], [[7.0, 7.0], [8.0, 9.0]]).numpy().tolist() == [[1.0, 2.0], [8.0, 9.0]]


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [((df.string, LINE), (df.int64, NUMBER), 1), ((df.string, 0), (df.float32, 1), 2.5)],
)
def test_a_text_file_has_the_entries(tmp_path: Path, key: Any, value: Any, expected: float) -> None:
    path = tmp_path / "words.txt"
    path.write_bytes(b"a,1.5\r\nb,2.5\nc,3.5")
    table = StaticHashTable(TextFileInitializer(str(path), *key, *value, delimiter=","), -1)
    assert table.size().numpy() == 3
    assert table["b,2.5" if key[1] == LINE else "b"].numpy() == expected


def test_line_numbers_can_start_at_an_offset_and_end_early(tmp_path: Path) -> None:
    path = tmp_path / "words.txt"
    path.write_text("12\n36\n7\n", encoding="utf-8")
    lines = TextFileInitializer(
        str(path), df.int64, LINE, df.int64, NUMBER, vocab_size=2, value_index_offset=5
    )
    assert StaticHashTable(lines, -1)[np.array([12, 36, 7])].numpy().tolist() == [5, 6, -1]


def test_other_keys_of_a_vocabulary_table_have_the_ids_of_buckets() -> None:
    """The ids of the four other keys are those of TensorFlow 2.21."""
    words = KeyValueTensorInitializer(["x", "y"], df.constant([0, 1], df.int64))
    table = StaticVocabularyTable(words, 5)
    assert table.lookup(["y", "q", "r", "s"]).numpy().tolist() == [1, 5, 5, 3]
    numbers = KeyValueTensorInitializer([10, 20], [0, 1], df.int64, df.int64)
    of_int32 = StaticVocabularyTable(numbers, 5, lookup_key_dtype=df.int32)
    assert of_int32.lookup([20, 7, 8, 9]).numpy().tolist() == [1, 5, 4, 2]
    assert (table.size().numpy(), of_int32.key_dtype) == (7, df.int32)

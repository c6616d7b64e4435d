"""Datasets that store elements in files, and those that read other files."""

from __future__ import annotations

import gzip
import math
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dualflow as df
from dualflow import errors

Dataset = df.data.Dataset
experimental = df.data.experimental


def elements(dataset: Any) -> list[Any]:
    """The elements as Python's numbers."""
    return [df.nest.map_structure(lambda x: np.asarray(x.numpy()).tolist(), element) for element in dataset]


def counted(calls: list[int], n: int = 4) -> Any:
    """A dataset that records each element in ``calls`` when it is computed."""

    def note(x: Any) -> Any:
        calls.append(int(x))
        return x * x

    return Dataset.range(n).map(lambda x: df.py_function(note, [x], df.int64))


# Caches


@pytest.mark.parametrize("in_file", [False, True])
def test_a_cache_computes_elements_once(tmp_path: Path, in_file: bool) -> None:
    calls: list[int] = []
    dataset = counted(calls).cache(tmp_path / "squares" if in_file else "")
    assert elements(dataset) == elements(dataset) == elements(dataset.repeat(2))[:4] == [0, 1, 4, 9]
    assert calls == [0, 1, 2, 3]


@pytest.mark.parametrize("in_file", [False, True])
def test_an_iteration_that_is_left_caches_nothing(tmp_path: Path, in_file: bool) -> None:
    calls: list[int] = []
    dataset = counted(calls).cache(tmp_path / "squares" if in_file else "")
    for _ in dataset:
        break
    assert elements(dataset) == [0, 1, 4, 9]
    assert calls == [0, 0, 1, 2, 3]
    assert len(os.listdir(tmp_path)) == in_file


def test_another_dataset_reads_a_complete_cache(tmp_path: Path) -> None:
    calls: list[int] = []
    path = str(tmp_path / "squares")
    elements(counted(calls).cache(path))
    assert elements(counted(calls).cache(path)) == [0, 1, 4, 9]
    assert len(calls) == 4


@pytest.mark.parametrize("other", [lambda x: (x, x), lambda x: x / 2, lambda x: df.ones([2])])
def test_a_cache_of_other_elements_is_refused(tmp_path: Path, other: Any) -> None:
    path = str(tmp_path / "cache")
    elements(Dataset.range(3).cache(path))
    with pytest.raises(errors.InvalidArgumentError, match=r"cache file .* but the dataset has .* Remove"):
        elements(Dataset.range(3).map(other).cache(path))


def test_a_damaged_cache_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "squares"
    path.write_bytes(b"nonsense")
    with pytest.raises(errors.DataLossError, match=r"squares.*Remove it"):
        elements(Dataset.range(3).cache(path))


def test_a_writer_that_is_killed_leaves_no_cache(tmp_path: Path) -> None:
    path = tmp_path / "numbers"
    program = (
        "import os, dualflow as df\n"
        "def stop(x):\n"
        "    if int(x) == 50: os.kill(os.getpid(), 9)\n"
        "    return x\n"
        "d = df.data.Dataset.range(100).map(lambda x: df.py_function(stop, [x], df.int64))\n"
        f"list(d.cache({str(path)!r}))\n"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == -9
    assert not path.exists()
    assert elements(Dataset.range(3).cache(path)) == [0, 1, 2]


# Saved datasets


def test_saved_elements_are_loaded_with_their_structure(tmp_path: Path) -> None:
    def ragged(n: int) -> Any:
        spec = {"b": df.TensorSpec([None], df.float16), "a": (df.TensorSpec([], df.bool),)}
        rows = [{"b": np.arange(i, dtype=np.float16), "a": (i % 2 == 0,)} for i in range(n)]
        return Dataset.from_source(rows, spec)

    path = tmp_path / "rows"
    ragged(5).save(path)
    loaded = Dataset.load(path)
    assert loaded.element_spec == ragged(5).element_spec
    assert list(next(iter(loaded))) == ["b", "a"]
    assert elements(loaded) == elements(ragged(5))
    assert elements(loaded.shuffle(5, seed=1).take(2)) == elements(ragged(5).shuffle(5, seed=1).take(2))


@pytest.mark.parametrize("dtype", ["bfloat16", "complex64", "uint8", "int64"])
def test_saved_elements_keep_their_dtype(tmp_path: Path, dtype: str) -> None:
    path = tmp_path / "rows"
    rows = df.cast(df.reshape(df.range(6), [3, 2]), dtype)
    Dataset.from_tensor_slices(rows).save(path)
    batch = next(iter(Dataset.load(path).batch(3)))
    assert batch.dtype.name == dtype
    assert bool(df.reduce_all(batch == rows))


def test_an_empty_dataset_is_saved(tmp_path: Path) -> None:
    Dataset.range(0).save(tmp_path / "none")
    assert elements(Dataset.load(tmp_path / "none")) == []


# Comma-separated values


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "table.csv"
    path.write_text('x,"n, of it",big\n1.5,3,5000000000\n,4,6\n-2,,7\n', encoding="utf-8")
    return path


def test_lines_are_tuples_of_columns(table: Path) -> None:
    dataset = experimental.CsvDataset(str(table), [0.25, np.int32(-1), df.int64], header=True)
    assert dataset.element_spec == tuple(df.TensorSpec([], t) for t in (df.float32, df.int32, df.int64))
    assert elements(dataset) == elements(dataset) == [(1.5, 3, 5000000000), (0.25, 4, 6), (-2, -1, 7)]


def test_columns_are_chosen_and_files_joined(table: Path) -> None:
    dataset = experimental.CsvDataset([table, table], [df.int64], header=True, select_cols=[2])
    assert elements(dataset) == [(5000000000,), (6,), (7,)] * 2


@pytest.mark.parametrize(
    ("defaults", "message"),
    [
        ([df.float32, 0, df.int64], r"table.csv:3, field 1, is required but missing"),
        ([0, 0, df.int64], r"table.csv:2, field 1, is not a valid int32: '1.5'"),
        ([0.0, 0, 0], r"table.csv:2, field 3, is not a valid int32"),
        ([0.0, 0, df.int64, 0], r"table.csv:2 has 3 fields, and field 4 is to be read"),
    ],
)
def test_a_bad_field_is_named_with_its_line(table: Path, defaults: list[Any], message: str) -> None:
    with pytest.raises(errors.InvalidArgumentError, match=message):
        elements(experimental.CsvDataset(table, defaults, header=True))


def test_a_table_is_batches_of_named_columns(table: Path) -> None:
    dataset = experimental.make_csv_dataset(
        str(table), 2, label_name="big", num_epochs=1, shuffle=False, na_value="?"
    )
    assert elements(dataset) == [
        ({"x": [1.5, 0.0], "n, of it": [3, 4]}, [5000000000, 6]),
        ({"x": [-2.0], "n, of it": [0]}, [7]),
    ]
    named = experimental.make_csv_dataset(
        str(table), 3, select_columns=["x"], column_defaults=[df.constant(9.0, df.float64)], shuffle=False
    )
    assert elements(named.take(1)) == [{"x": [1.5, 9.0, -2.0]}]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"label_name": "y"}, "no column 'y' to be the label"),
        ({"select_columns": ["y"]}, "no column 'y' among"),
        ({"column_defaults": [0.0]}, "3 columns and 1 column_defaults"),
        ({"compression_type": "BZ"}, "compression_type must be None, 'GZIP' or 'ZLIB'"),
    ],
)
def test_wrong_descriptions_of_tables_are_refused(table: Path, options: Any, message: str) -> None:
    with pytest.raises(errors.InvalidArgumentError, match=message):
        experimental.make_csv_dataset(str(table), 2, **options)


def columns_of(path: Path, **options: Any) -> dict[str, list[Any]]:
    """The columns of a CSV file, whose dtypes are inferred."""
    table = df.data.experimental.make_csv_dataset(str(path), 100, num_epochs=1, shuffle=False, **options)
    return {name: column.numpy().tolist() for name, column in table.get_single_element().items()}


def test_a_header_may_have_line_ends_in_quotes_and_a_byte_order_mark(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text('x,"length\nin m"\n1,2\n', encoding="utf-8-sig")
    assert columns_of(path) == {"x": [1], "length\nin m": [2]}


@pytest.mark.parametrize(
    ("text", "value"),
    [("1_2", b"1_2"), ("2147483648", 2**31), (str(2**70), 2.0**70), ("1e300", 1e300), ("inf", math.inf)],
)
def test_the_dtype_of_a_column_is_one_that_holds_its_values(tmp_path: Path, text: str, value: Any) -> None:
    path = tmp_path / "table.csv"
    path.write_text(f"x\n{text}\n", encoding="utf-8")
    assert columns_of(path) == {"x": [value]}


def test_columns_are_left_out_by_their_numbers(tmp_path: Path) -> None:
    path = tmp_path / "four.csv"
    path.write_text("0,1,2,3\n4,5,6,7\n")
    for excluded, kept in (([1], [0, 2, 3]), ([0, 3], [1, 2]), ([], [0, 1, 2, 3])):
        result = experimental.CsvDataset(path, [df.int32] * len(kept), exclude_cols=excluded)
        assert elements(result) == [tuple(kept), tuple(k + 4 for k in kept)]


def test_compressed_tables_are_those_that_were_compressed(table: Path, tmp_path: Path) -> None:
    packed = tmp_path / "table.csv.gz"
    packed.write_bytes(gzip.compress(table.read_bytes()))
    tables = [
        (
            elements(experimental.CsvDataset(path, [0.0], header=True, select_cols=[0], **options)),
            elements(experimental.make_csv_dataset(str(path), 2, num_epochs=1, shuffle=False, **options)),
        )
        for path, options in ((table, {}), (packed, {"compression_type": "GZIP"}))
    ]
    assert tables[0] == tables[1]
    packed.write_bytes(packed.read_bytes()[:-9])
    with pytest.raises(errors.DataLossError, match="is damaged"):
        elements(experimental.CsvDataset(packed, [0.0], "GZIP", header=True, select_cols=[0]))


def test_missing_files_and_columns_are_refused(table: Path) -> None:
    with pytest.raises(errors.NotFoundError, match="There is no file"):
        experimental.make_csv_dataset("/nowhere/*.csv", 2)
    with pytest.raises(errors.NotFoundError, match="There is no file"):
        elements(experimental.CsvDataset("/nowhere/x.csv", [0]))
    wrong: list[tuple[list[Any], dict[str, Any], type[Exception], str]] = [
        ([0], {"select_cols": [0, 1]}, errors.InvalidArgumentError, "2 columns and 1 record_defaults"),
        ([[1, 2]], {}, errors.InvalidArgumentError, "one value"),
        ([df.bool], {}, errors.DTypeError, "integers, floats or strings"),
        (
            [0],
            {"select_cols": [0], "exclude_cols": [1]},
            errors.InvalidArgumentError,
            "leave out select_cols or exclude_cols",
        ),
        (
            [0],
            {"compression_type": "BZ"},
            errors.InvalidArgumentError,
            "compression_type must be None, 'GZIP' or 'ZLIB'",
        ),
    ]
    for defaults, options, kind, message in wrong:
        with pytest.raises(kind, match=re.escape(message)):
            experimental.CsvDataset(table, defaults, **options)


def test_columns_of_strings_are_the_bytes_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "latin.csv"
    path.write_bytes("name,n\ncaf\u00e9,1\n".encode("latin-1"))
    rows = experimental.CsvDataset(path, [df.string, df.int32], header=True)
    assert elements(rows) == [(b"caf\xe9", 1)]
    path.write_bytes("caf\u00e9,n\nx,1\n".encode("latin-1"))
    with pytest.raises(errors.InvalidArgumentError, match=r"latin.csv:1, field 1, .*not UTF-8.*column_names"):
        experimental.make_csv_dataset(str(path), 2)
    named = experimental.make_csv_dataset(str(path), 1, column_names=["a", "b"], num_epochs=1)
    assert elements(named) == [{"a": [b"x"], "b": [1]}]


def test_a_line_that_the_csv_reader_refuses_is_named(tmp_path: Path) -> None:
    path = tmp_path / "long.csv"
    path.write_text("a\n" + "x" * 200_000)
    with pytest.raises(errors.InvalidArgumentError, match=r"long.csv:2 can't be read: field larger"):
        elements(experimental.CsvDataset(path, [df.string]))


READERS = {
    "lines": lambda path: elements(df.data.TextLineDataset(path)),
    "compressed lines": lambda path: elements(df.data.TextLineDataset(path, "GZIP")),
    "records": lambda path: elements(df.data.FixedLengthRecordDataset(path, 2)),
    "csv": lambda path: elements(experimental.CsvDataset(path, [0])),
    "arrays": Dataset.from_numpy_file,
    "elements": Dataset.load,
    "cache": lambda path: elements(Dataset.range(2).cache(path)),
    "read_file": df.io.read_file,
    "gfile": lambda path: df.io.gfile.GFile(path).read(),
}


@pytest.mark.parametrize("name", READERS)
def test_errors_of_the_system_name_the_file(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").write_text("x")
    for path in (str(tmp_path), str(tmp_path / "file" / "x"), str(tmp_path / ("x" * 300)), "a\0b"):
        with pytest.raises(errors.DualflowError) as caught:
            READERS[name](path)
        assert path in str(caught.value) or repr(path) in str(caught.value)


def test_a_text_that_is_no_utf8_is_an_error_that_names_the_file(tmp_path: Path) -> None:
    path = tmp_path / "bytes"
    path.write_bytes(b"\xff\n")
    for read in (df.io.gfile.GFile.read, df.io.gfile.GFile.readline, df.io.gfile.GFile.readlines, list):
        with pytest.raises(errors.InvalidArgumentError, match=r"bytes is no text in UTF-8.*'rb'"):
            read(df.io.gfile.GFile(path))


@pytest.mark.parametrize("saved", [False, True])
def test_rows_of_different_shapes_are_refused_by_batch(tmp_path: Path, saved: bool) -> None:
    rows = Dataset.from_source([np.zeros(n) for n in (1, 2)], df.TensorSpec([None], df.float64))
    rows.save(tmp_path / "rows")
    with pytest.raises(errors.InvalidArgumentError, match=r"shape \[1\] and element 1 had shape \[2\]"):
        elements((Dataset.load(tmp_path / "rows") if saved else rows).batch(2))


# Text


@pytest.fixture
def poems(tmp_path: Path) -> Path:
    (tmp_path / "b.txt").write_bytes(b"three\r\n\nfour")
    (tmp_path / "a.txt").write_text("one\ntwo\n", encoding="utf-8")
    with gzip.open(tmp_path / "c.gz", "wb") as file:
        file.write(b"five\nsix\n")
    return tmp_path


def lines(dataset: Any) -> list[bytes]:
    return list(dataset.as_numpy_iterator())


def test_lines_of_files_come_without_their_ends(poems: Path) -> None:
    a, b = str(poems / "a.txt"), str(poems / "b.txt")
    text = df.data.TextLineDataset
    assert lines(text(a)) == [b"one", b"two"]
    assert text(a).element_spec == df.TensorSpec([], df.string)
    both = [b"one", b"two", b"three", b"", b"four"]
    for names in ([a, b], df.constant([a, b]), Dataset.from_tensor_slices([a, b])):
        assert lines(text(names)) == both
    assert lines(text(poems / "c.gz", "GZIP")) == [b"five", b"six"]


def test_files_are_listed_and_interleaved(poems: Path) -> None:
    files = Dataset.list_files(str(poems / "*.txt"), shuffle=False)
    assert [os.path.basename(name) for name in files.as_numpy_iterator()] == [b"a.txt", b"b.txt"]
    result = files.interleave(df.data.TextLineDataset, cycle_length=2)
    assert lines(result) == [b"one", b"three", b"two", b"", b"four"]
    shuffled = Dataset.list_files([str(poems / "*.txt"), str(poems / "*.gz")], seed=1)
    assert sorted(os.path.basename(name) for name in shuffled.as_numpy_iterator()) == [
        b"a.txt",
        b"b.txt",
        b"c.gz",
    ]


def test_strings_are_batched_mapped_and_padded(poems: Path) -> None:
    text = df.data.TextLineDataset(poems / "a.txt").map(lambda line: (line, df.strings.length(line)))
    assert elements(text.batch(2)) == [([b"one", b"two"], [3, 3])]
    rows = Dataset.from_tensor_slices([b"a", b"b", b"c"]).batch(2)
    assert elements(rows.padded_batch(2)) == [[[b"a", b"b"], [b"c", b""]]]
    assert elements(Dataset.from_tensor_slices(["x", "y", "x"]).unique()) == [b"x", b"y"]
    assert elements(Dataset.from_generator(lambda: iter(["a"]), df.string)) == [b"a"]


def test_a_column_of_words_is_a_column_of_strings(tmp_path: Path) -> None:
    path = tmp_path / "words.csv"
    path.write_text("word,n\nyes,1\n,2\n", encoding="utf-8")
    assert elements(experimental.CsvDataset(path, ["?", df.int32], header=True)) == [(b"yes", 1), (b"?", 2)]
    table = experimental.make_csv_dataset(str(path), 2, num_epochs=1, shuffle=False)
    assert elements(table) == [{"word": [b"yes", b""], "n": [1, 2]}]


def test_records_have_one_length(tmp_path: Path) -> None:
    path = tmp_path / "records"
    path.write_bytes(b"HEADaabbccEND")
    records = df.data.FixedLengthRecordDataset
    assert lines(records([path, path], 2, 4, 3)) == [b"aa", b"bb", b"cc"] * 2
    with pytest.raises(errors.InvalidArgumentError, match="1 bytes beyond its last record"):
        lines(records(path, 2))
    with pytest.raises(errors.InvalidArgumentError, match="record_bytes must be greater than zero"):
        records(path, 0)


def test_a_file_without_room_for_header_and_footer_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "short"
    path.write_bytes(b"abc")
    for lengths in ({"header_bytes": 4}, {"footer_bytes": 4}, {"header_bytes": 2, "footer_bytes": 2}):
        with pytest.raises(errors.InvalidArgumentError, match="has 3 bytes, fewer than header_bytes and"):
            elements(df.data.FixedLengthRecordDataset(str(path), 2, **lengths))
    with pytest.raises(errors.InvalidArgumentError, match="header_bytes must not be negative, but is -1"):
        df.data.FixedLengthRecordDataset(str(path), 2, header_bytes=-1)


def test_parallel_reads_take_a_string_of_each_file_in_turn(poems: Path) -> None:
    names = [str(poems / "a.txt"), str(poems / "b.txt")]
    text = df.data.TextLineDataset(names, num_parallel_reads=2)
    assert lines(text) == [b"one", b"three", b"two", b"", b"four"]
    records = df.data.FixedLengthRecordDataset(names, 4, num_parallel_reads=2)
    assert lines(records) == [b"one\n", b"thre", b"two\n", b"e\r\n\n", b"four"]


@pytest.mark.parametrize("buffer_size", [1, 2, 5, 1 << 20])
def test_the_buffer_size_changes_no_string(poems: Path, buffer_size: int) -> None:
    text = df.data.TextLineDataset(poems / "c.gz", "GZIP", buffer_size)
    assert lines(text) == [b"five", b"six"]
    records = df.data.FixedLengthRecordDataset(poems / "a.txt", 4, buffer_size=buffer_size)
    assert lines(records) == [b"one\n", b"two\n"]


def test_numbers_of_bytes_and_files_are_positive(poems: Path) -> None:
    with pytest.raises(errors.InvalidArgumentError, match="buffer_size must be greater than zero"):
        df.data.TextLineDataset(poems / "a.txt", buffer_size=0)
    with pytest.raises(errors.InvalidArgumentError, match="cycle_length must be greater than zero"):
        df.data.TextLineDataset(poems / "a.txt", num_parallel_reads=0)


def test_wrong_names_of_text_files_are_refused(poems: Path) -> None:
    text = df.data.TextLineDataset
    with pytest.raises(errors.NotFoundError, match="There is no file"):
        lines(text("/nowhere/x.txt"))
    with pytest.raises(errors.InvalidArgumentError, match="compression_type must be None, 'GZIP' or 'ZLIB'"):
        text(poems / "a.txt", "ZIP")
    with pytest.raises(errors.DataLossError, match="is damaged"):
        lines(text(poems / "a.txt", "GZIP"))
    with pytest.raises(errors.DTypeError, match="names of files must be strings"):
        lines(text(Dataset.range(2)))
    with pytest.raises(errors.InvalidArgumentError, match="No files matched pattern"):
        Dataset.list_files("/nowhere/*.txt")
    with pytest.raises(errors.InvalidArgumentError, match="outside of the traced function"):
        df.function(lambda name: text(name).reduce(0, lambda s, x: s + 1))(df.constant("x"))


# Arrays in files


def test_rows_of_a_mapped_array_are_read_when_they_are_taken(tmp_path: Path) -> None:
    path = tmp_path / "rows.npy"
    np.save(path, np.arange(12.0).reshape(6, 2))
    mapped = np.load(path, mmap_mode="r+")
    dataset = Dataset.from_tensor_slices(mapped).batch(3)
    mapped[5] = 100
    assert elements(dataset) == [[[0, 1], [2, 3], [4, 5]], [[6, 7], [8, 9], [100, 100]]]


def test_arrays_of_files_are_mapped(tmp_path: Path) -> None:
    x, y = np.arange(6.0).reshape(3, 2), np.arange(3)
    np.save(tmp_path / "x.npy", x)
    np.savez(tmp_path / "both.npz", x=x, y=y)
    np.savez_compressed(tmp_path / "small.npz", x=x, y=y)
    assert elements(Dataset.from_numpy_file(tmp_path / "x.npy")) == x.tolist()
    expected = [{"x": a, "y": b} for a, b in zip(x.tolist(), y.tolist(), strict=True)]
    for name in ("both.npz", "small.npz"):
        assert elements(Dataset.from_numpy_file(tmp_path / name)) == expected
    shuffled = Dataset.from_numpy_file(tmp_path / "both.npz").shuffle(3, seed=1).batch(3)
    assert sorted(elements(shuffled)[0]["y"]) == [0, 1, 2]


def test_mapped_arrays_of_another_byte_order_are_converted(tmp_path: Path) -> None:
    path = tmp_path / "swapped.npy"
    array = np.arange(6, dtype=np.float32).reshape(3, 2)
    np.save(path, array.astype(array.dtype.newbyteorder("S")))
    (batch,) = Dataset.from_numpy_file(str(path)).batch(3)
    assert batch.dtype == df.float32
    assert batch.numpy().tolist() == array.tolist()


def test_files_that_hold_no_arrays_are_refused(tmp_path: Path) -> None:
    (tmp_path / "text.npy").write_text("no array")
    with pytest.raises(errors.DataLossError, match="not a file of NumPy arrays"):
        Dataset.from_numpy_file(tmp_path / "text.npy")
    with pytest.raises(errors.NotFoundError, match="There is no file"):
        Dataset.from_numpy_file(tmp_path / "nothing.npy")
    np.save(tmp_path / "objects.npy", np.array([{}]), allow_pickle=True)
    with pytest.raises(errors.DataLossError, match="not a file of NumPy arrays"):
        Dataset.from_numpy_file(tmp_path / "objects.npy")


# Lengths that are known otherwise


def test_a_cardinality_is_asserted_and_checked() -> None:
    odd = Dataset.range(6).filter(lambda x: x % 2 == 1)
    assert len(odd.apply(experimental.assert_cardinality(3))) == 3
    assert elements(odd.apply(experimental.assert_cardinality(3))) == [1, 3, 5]
    with pytest.raises(errors.FailedPreconditionError, match="contain 4 elements but contained only 3"):
        elements(odd.apply(experimental.assert_cardinality(4)))
    with pytest.raises(errors.FailedPreconditionError, match="contain 2 elements but contained at least 3"):
        elements(odd.apply(experimental.assert_cardinality(2)))
    with pytest.raises(errors.FailedPreconditionError, match="an infinite number"):
        elements(odd.apply(experimental.assert_cardinality(experimental.INFINITE_CARDINALITY)))

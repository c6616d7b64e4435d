"""TFRecord files: written, read by one or several readers, resumed, cut off and damaged."""

from __future__ import annotations

import gzip
import itertools
import os
import random
import struct
import threading
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import dualflow as df
from dualflow.core.status_errors import DataLossError
from dualflow.ops.records.checksums import checksum, masked
from dualflow.ops.records.record_files import framed

Dataset = df.data.Dataset
Records = df.data.TFRecordDataset
COMPRESSIONS = ["", "GZIP", "ZLIB"]


def write(path: Path, records: list[bytes], options: Any = None) -> Path:
    with df.io.TFRecordWriter(path, options) as writer:
        for record in records:
            writer.write(record)
    return path


def read(*args: Any, **kwargs: Any) -> list[bytes]:
    return list(Records(*args, **kwargs).as_numpy_iterator())


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    """Five files, of 0 to 40 records each."""
    return [
        str(write(tmp_path / f"{i}.tfrecord", [b"%d-%d" % (i, k) for k in range(10 * i)])) for i in range(5)
    ]


ALL = {b"%d-%d" % (i, k) for i in range(5) for k in range(10 * i)}


# Round trips


@pytest.mark.parametrize("compression", COMPRESSIONS)
@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(records=st.lists(st.binary(max_size=2000), max_size=20), chunk=st.sampled_from([1, 7, 16, 17, 4096]))
def test_records_come_back(tmp_path: Path, compression: str, records: list[bytes], chunk: int) -> None:
    path = write(tmp_path / "data", records, compression)
    assert read(str(path), compression_type=compression, buffer_size=chunk) == records


def test_large_and_many_records_come_back(tmp_path: Path) -> None:
    records = [os.urandom(300_000), b"", *[b"%d" % i for i in range(4500)], os.urandom(300_000)]
    for options in (None, df.io.TFRecordOptions("GZIP", compression_level=1)):
        path = write(tmp_path / "data", records, options)
        assert read(str(path), "GZIP" if options else None) == records


def test_compression_is_that_of_other_tools(tmp_path: Path) -> None:
    path = write(tmp_path / "data", [b"a", b"b"], "GZIP")
    assert gzip.decompress(path.read_bytes()) == framed([b"a", b"b"])
    with gzip.open(path, "ab") as file:
        file.write(framed([b"c"]))
    assert read(str(path), "GZIP") == [b"a", b"b", b"c"]


def test_an_empty_file_has_no_records(tmp_path: Path) -> None:
    for compression in COMPRESSIONS:
        (tmp_path / "data").write_bytes(b"")
        assert read(str(tmp_path / "data"), compression) == []
        assert read(str(write(tmp_path / "data", [], compression)), compression) == []


# The writer


@pytest.mark.parametrize("compression", ["", "ZLIB"])
def test_flushed_records_are_there_before_the_file_is_closed(tmp_path: Path, compression: str) -> None:
    writer = df.io.TFRecordWriter(tmp_path / "data", compression)
    writer.write(b"a")
    writer.flush()
    records = iter(Records(str(tmp_path / "data"), compression))
    assert next(records).numpy() == b"a"
    writer.close()
    assert read(str(tmp_path / "data"), compression) == [b"a"]


def test_a_writer_that_is_dropped_has_written(tmp_path: Path) -> None:
    df.io.TFRecordWriter(tmp_path / "data").write(b"a")
    assert read(str(tmp_path / "data")) == [b"a"]


def test_threads_share_a_writer(tmp_path: Path) -> None:
    with df.io.TFRecordWriter(tmp_path / "data") as writer:

        def repeat(record: bytes) -> None:
            for _ in range(200):
                writer.write(record)

        threads = [threading.Thread(target=repeat, args=(b"%d" % i * 50,)) for i in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    records = read(str(tmp_path / "data"))
    assert sorted(records) == sorted(b"%d" % i * 50 for i in range(4) for _ in range(200))


# Several files and readers


def test_workers_share_the_files_and_read_each_record_once(files: list[str]) -> None:
    parts = []
    for worker in range(2):
        names = Dataset.from_tensor_slices(files).shard(2, worker)
        parts.append(list(names.interleave(Records, cycle_length=2, block_length=3).as_numpy_iterator()))
    assert sorted(parts[0] + parts[1]) == sorted(ALL)
    assert {record[:1] for record in parts[1]} == {b"1", b"3"}


def test_workers_may_share_the_records_of_a_file(files: list[str]) -> None:
    parts = [list(Records(files[4]).shard(3, i).as_numpy_iterator()) for i in range(3)]
    assert sorted(itertools.chain(*parts)) == sorted(x for x in ALL if x[:1] == b"4")


@pytest.mark.parametrize("threads", [None, 2])
def test_interleaved_files_have_one_order(files: list[str], threads: int | None) -> None:
    dataset = Dataset.from_tensor_slices(files[1:3]).interleave(
        Records, cycle_length=2, block_length=4, num_parallel_calls=threads, deterministic=threads is None
    )
    expected = [
        b"%d-%d" % (i, 4 * n + k) for n in range(3) for i in (1, 2) for k in range(4) if 4 * n + k < 10 * i
    ]
    assert list(dataset.as_numpy_iterator())[: len(expected)] == expected


def test_parallel_reads_interleave_the_records_of_files(files: list[str]) -> None:
    records = read(files, num_parallel_reads=5)
    assert records[:8] == [b"1-0", b"2-0", b"3-0", b"4-0", b"1-1", b"2-1", b"3-1", b"4-1"]
    assert set(records) == ALL


def test_names_come_from_a_dataset_or_a_pattern(files: list[str], tmp_path: Path) -> None:
    assert set(read(Dataset.list_files(str(tmp_path / "*.tfrecord")))) == ALL
    assert set(Dataset.from_tensor_slices(files).flat_map(Records).as_numpy_iterator()) == ALL


# Resuming


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_an_iterator_resumes_where_it_was(tmp_path: Path, compression: str) -> None:
    names = [
        str(write(tmp_path / str(i), [b"%d-%d" % (i, k) for k in range(9)], compression)) for i in range(3)
    ]
    pipelines = [
        Records(names, compression),
        Records(names, compression, num_parallel_reads=2).batch(4),
        Dataset.from_tensor_slices(names).shuffle(3, seed=1)
        .interleave(lambda name: Records(name, compression), cycle_length=2, num_parallel_calls=2)
        .shuffle(5, seed=2).batch(2),
    ]  # fmt: skip
    for dataset in pipelines:
        for count in (0, 1, 5):
            iterator = iter(dataset)
            for _ in range(count):
                next(iterator)
            state = iterator.get_state()
            following = [df.io.serialize_tensor(x).numpy() for x in iterator]
            again = iter(dataset)
            again.set_state(state)
            assert [df.io.serialize_tensor(x).numpy() for x in again] == following


def test_a_checkpoint_has_the_position(files: list[str], tmp_path: Path) -> None:
    dataset = Records(files).batch(7)
    iterator = iter(dataset)
    next(iterator)
    path = df.train.Checkpoint(iterator=iterator).write(str(tmp_path / "checkpoint"))
    following = [df.io.serialize_tensor(x).numpy() for x in iterator]
    again = iter(dataset)
    df.train.Checkpoint(iterator=again).read(path)
    assert [df.io.serialize_tensor(x).numpy() for x in again] == following


# Damage

THREE = [b"first", b"", b"third record"]
OFFSETS = [0, 21, 37, 65]
"""Where these records begin, and the file ends."""


def damaged(path: Path, data: bytes, compression: str = "") -> tuple[list[bytes], str]:
    """The records before the damage, and the error; an empty text without one."""
    path.write_bytes(data)
    records: list[bytes] = []
    try:
        records.extend(record.numpy() for record in Records(str(path), compression))
    except DataLossError as error:
        return records, str(error)
    return records, ""


def test_a_file_that_is_cut_anywhere_has_its_whole_records_and_an_error(tmp_path: Path) -> None:
    data = framed(THREE)
    assert len(data) == OFFSETS[-1]
    for size in range(len(data)):
        records, error = damaged(tmp_path / "cut", data[:size])
        whole = sum(offset <= size for offset in OFFSETS[1:])
        assert records == THREE[:whole]
        if size in OFFSETS:
            assert error == ""
        else:
            assert f"corrupted record at {OFFSETS[whole]} in '{tmp_path}/cut'" in error


def test_a_byte_that_is_changed_anywhere_is_found(tmp_path: Path) -> None:
    data = framed(THREE)
    for place in range(len(data)):
        changed = bytearray(data)
        changed[place] ^= 1 << place % 8
        whole = sum(offset <= place for offset in OFFSETS[1:])
        records, error = damaged(tmp_path / "changed", bytes(changed))
        assert records == THREE[:whole]
        assert f"corrupted record at {OFFSETS[whole]} in" in error


@pytest.mark.parametrize("compression", ["GZIP", "ZLIB"])
def test_damaged_compressed_files_are_errors(tmp_path: Path, compression: str) -> None:
    rng = random.Random(2)
    records = [rng.randbytes(50) for _ in range(40)]
    data = write(tmp_path / "good", records, compression).read_bytes()
    for _ in range(60):
        changed = bytearray(data)
        changed[rng.randrange(12, len(data) - 8)] ^= 1 << rng.randrange(8)
        before, error = damaged(tmp_path / "changed", bytes(changed), compression)
        assert error
        assert records[: len(before)] == before
        before, error = damaged(tmp_path / "cut", data[: rng.randrange(1, len(data))], compression)
        assert "/cut'" in error
        assert records[: len(before)] == before


def test_a_length_that_is_too_large_takes_no_memory(tmp_path: Path) -> None:
    length = struct.pack("<Q", 1 << 40)
    path = tmp_path / "huge"
    path.write_bytes(framed([b"a"]) + length + struct.pack("<I", masked(checksum(length))) + b"few bytes")
    tracemalloc.start()
    try:
        with pytest.raises(DataLossError, match=r"at 17 in .*huge.* bytes of it are missing"):
            read(str(path), buffer_size=64)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 2_000_000


def test_an_element_after_the_damage_is_an_error_too_and_ignored_on_request(tmp_path: Path) -> None:
    path = tmp_path / "cut"
    path.write_bytes(framed(THREE)[:-1])
    assert list(Records(str(path)).ignore_errors().as_numpy_iterator()) == THREE[:2]

"""Checks of collectives, which all workers of a job run together."""

from __future__ import annotations

import itertools
import json
import os
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from digits_model import digits
from workers import RESULTS

import dualflow as df
from dualflow.backends.runtime import switches
from dualflow.ops.collectives.collective_ops import block_sums_over, blocks_joined_over
from dualflow.ops.op_kinds import Collective

strategy = df.distribute.MultiWorkerMirroredStrategy()
COUNT, RANK = strategy.num_replicas_in_sync, strategy.cluster_resolver.task_id
SHARED = Path(os.environ[RESULTS])
TOTAL = sum(range(1, COUNT + 1))
DTYPES = [df.float16, df.bfloat16, df.float32, df.float64, df.int8, df.int32, df.uint64, df.complex64]


def on_replica(function: Any) -> Any:
    return strategy.run(function)


def all_reduce(op: Any, value: Any) -> Any:
    context = df.distribute.get_replica_context()
    assert context is not None
    return context.all_reduce(op, value)


def check_every_worker_has_its_number() -> None:
    assert strategy.cluster_resolver.cluster_spec().num_tasks("worker") == COUNT
    assert on_replica(lambda: df.distribute.get_replica_context().replica_id_in_sync_group) == RANK  # type: ignore[union-attr]


def check_variables_begin_with_the_values_of_the_first_worker() -> None:
    values = {"float": [RANK + 0.5], "int": RANK, "bool": RANK == 0, "string": f"worker {RANK}"}
    with strategy.scope():
        variables = {name: df.Variable(value) for name, value in values.items()}
        half = df.Variable(df.fill([2, 3], df.cast(RANK, df.bfloat16)))
    assert variables["float"].numpy() == [0.5]
    assert variables["int"].numpy() == 0
    assert variables["bool"].numpy()
    assert variables["string"].numpy() == b"worker 0"
    assert not np.any(df.cast(half, df.float32).numpy())


def check_variables_outside_of_the_scope_are_the_workers_own() -> None:
    assert df.Variable(RANK).numpy() == RANK


def check_workers_draw_the_same_numbers() -> None:
    numbers = df.random.normal([4])
    assert np.array_equal(strategy.gather(numbers[None], axis=0).numpy(), np.stack([numbers.numpy()] * COUNT))


def check_sums_of_every_dtype() -> None:
    for dtype in DTYPES:
        value = df.cast(df.fill([3], RANK + 1), dtype)
        total = on_replica(lambda value=value: all_reduce("SUM", value))
        assert total.dtype is dtype
        assert df.cast(total, df.complex64).numpy().tolist() == [TOTAL] * 3


def check_means_and_sums_are_equal_in_compiled_code() -> None:
    def combined(x: Any) -> Any:
        return {"sum": all_reduce("SUM", x), "mean": all_reduce("MEAN", [x * 2.0, x[:1]])}

    x = df.constant([RANK + 1.0, 2.0])
    eager = strategy.run(combined, args=(x,))
    compiled = strategy.run(df.function(combined), args=(x,))
    assert eager["sum"].numpy().tolist() == [TOTAL, 2.0 * COUNT]
    assert eager["mean"][0].numpy().tolist() == [2 * TOTAL / COUNT, 4.0]
    for a, b in zip(df.nest.flatten(eager), df.nest.flatten(compiled), strict=True):
        assert a.numpy().tobytes() == b.numpy().tobytes()


def check_compiled_sums_of_every_dtype() -> None:
    for dtype in DTYPES:
        value = df.cast(df.fill([3], RANK + 1), dtype)
        f = df.function(lambda x: strategy.run(all_reduce, args=("SUM", x)))
        assert df.cast(f(value), df.complex64).numpy().tolist() == [TOTAL] * 3
        assert ("numpy: " in f.status()) == bool(switches.off("collectives"))


def check_compiled_sums_of_sizes_that_a_call_or_its_data_determines() -> None:
    of_call = df.function(
        lambda x: strategy.run(all_reduce, args=("SUM", x)), input_signature=[df.TensorSpec([None, 2])]
    )
    of_data = df.function(lambda x: strategy.run(all_reduce, args=("SUM", df.boolean_mask(x, x > 1.0))))
    for rows in (3, 0, 70_000):
        assert np.array_equal(of_call(df.ones([rows, 2])).numpy(), np.full([rows, 2], COUNT))
    for x in ([1.0, 2.0, 3.0], [0.0, 0.0, 0.0]):
        assert of_data(df.constant(x)).numpy().tolist() == [COUNT * n for n in x if n > 1.0]
    for f in (of_call, of_data):
        assert ("exchanges data" in f.status()) == bool(switches.off("collectives"))


def check_sums_in_loops_have_the_bits_of_eager_ones() -> None:
    def averaged(x: Any) -> Any:
        for i in df.range(20):
            if i % 3 == 0:
                x = all_reduce("MEAN", x)
            x = all_reduce("SUM", df.where(x > 0.0, x, -x)) * 0.5
        return x

    x = df.random.normal([3000]) * (RANK + 1.0)
    eager = strategy.run(averaged, args=(x,))
    compiled = strategy.run(df.function(averaged), args=(x,))
    assert eager.numpy().tobytes() == compiled.numpy().tobytes()


def check_loops_in_functions_train_as_loops_in_python() -> None:
    """With a last batch of another size, which leaves some workers no rows."""
    rows = np.random.default_rng(0).normal(size=(26, 3)).astype(np.float32)
    batches = df.data.Dataset.from_tensor_slices(rows).batch(8)

    def trained(scope: Any, loop: str) -> Any:
        w, steps = df.Variable(df.ones([3, 1])), df.Variable(0)

        def step(x: Any) -> Any:
            with df.GradientTape() as tape:
                loss = df.reduce_sum((x @ w - 1.0) ** 2) / 8.0
            w.assign_sub(0.1 * all_reduce("SUM", tape.gradient(loss, w)))
            steps.assign_add(1)
            return loss

        def of_elements(dataset: Any) -> Any:
            for x in dataset:
                scope.run(step, args=(x,))

        def of_range(x: Any, begins: Any) -> Any:
            for i in df.range(df.shape(begins)[0] - 1):
                scope.run(step, args=(x[begins[i] : begins[i + 1]],))

        def of_while(x: Any, begins: Any) -> Any:
            i = 0
            while i + 1 < df.shape(begins)[0]:
                if begins[i + 1] >= begins[i]:
                    scope.run(step, args=(x[begins[i] : begins[i + 1]],))
                i += 1

        own = scope.experimental_distribute_dataset(batches)
        parts = [x.numpy() for x in own]
        begins = np.cumsum([0, *map(len, parts)]).astype(np.int32)
        if loop == "python":
            compiled = df.function(lambda x: scope.run(step, args=(x,)), reduce_retracing=True)
            for x in own:
                compiled(x)
        elif loop == "elements":
            compiled = df.function(of_elements)
            compiled(own)
        else:
            compiled = df.function(of_range if loop == "range" else of_while)
            compiled(np.concatenate(parts), begins)
            by_python = bool(switches.off("collectives")) and scope is strategy
            assert ("exchanges data" in compiled.status()) == by_python
        assert steps.numpy() == 4
        return w.numpy()

    alone = trained(df.distribute.OneDeviceStrategy("/cpu:0"), "python")
    expected = trained(strategy, "python")
    assert np.allclose(expected, alone, rtol=0, atol=1e-5)
    for loop in ("elements", "range", "while"):
        assert np.allclose(trained(strategy, loop), expected, rtol=0, atol=1e-6), loop


def check_a_profile_has_the_collectives_of_machine_code() -> None:
    compiled = df.function(lambda x: strategy.run(all_reduce, args=("SUM", x)))
    compiled(df.ones([300]))
    with df.profiler.trace(SHARED / f"profile{RANK}") as file:
        for _ in range(3):
            compiled(df.ones([300]))
    events = json.loads(file.path.read_text(encoding="utf-8"))["traceEvents"]
    spans = [e["name"] for e in events if e.get("cat") == "collective"]
    assert spans == ["all_reduce of float32[300]"] * (0 if switches.off("collectives") else 3)


def check_threads_exchange_one_after_another() -> None:
    """By machine code and Python; tensors of one shape, as the order of threads differs between workers."""
    compiled = df.function(lambda x: strategy.run(all_reduce, args=("SUM", x)))
    sums: list[Any] = []

    def run(f: Any) -> None:
        sums.extend(f(df.ones([3000])) for _ in range(40))

    compiled(df.ones([3000]))
    functions = (compiled, compiled, lambda x: strategy.run(all_reduce, args=("SUM", x)))
    threads = [threading.Thread(target=run, args=(f,)) for f in functions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(sums) == 120
    assert all(np.array_equal(x.numpy(), np.full(3000, COUNT)) for x in sums)


def check_tensors_of_any_size_and_layout() -> None:
    for x in (df.zeros([0, 2]), df.constant(1.0), df.transpose(df.ones([2, 3])), df.ones([70_000])):
        total = on_replica(lambda x=x: all_reduce("SUM", x))
        assert total.shape == x.shape
        assert np.array_equal(total.numpy(), COUNT * x.numpy())


def check_buckets_keep_order_dtypes_and_shapes() -> None:
    parts = [df.fill([i, 2], float(i)) for i in range(5)] + [df.constant(3), df.constant([4.0])]
    totals = on_replica(lambda: all_reduce("SUM", parts))
    for part, total in zip(parts, totals, strict=True):
        assert np.array_equal(total.numpy(), COUNT * part.numpy())


def check_a_gradient_of_a_sum_is_a_sum_of_gradients() -> None:
    def gradient() -> Any:
        x = df.constant([RANK + 1.0])
        with df.GradientTape() as tape:
            tape.watch(x)
            y = all_reduce("SUM", x * x) * (RANK + 1.0)
        return tape.gradient(y, x)

    expected = [TOTAL * 2.0 * (RANK + 1.0)]
    assert on_replica(gradient).numpy().tolist() == expected
    assert on_replica(df.function(gradient)).numpy().tolist() == expected


def check_gather_of_unequal_sizes_and_its_gradient() -> None:
    own = df.fill([RANK + 1, 2], float(RANK))
    expected = np.concatenate([np.full([i + 1, 2], float(i), np.float32) for i in range(COUNT)])
    assert np.array_equal(strategy.gather(own, axis=0).numpy(), expected)
    assert np.array_equal(strategy.gather(df.transpose(own), axis=1).numpy(), expected.T)

    def gradient(x: Any) -> Any:
        with df.GradientTape() as tape:
            tape.watch(x)
            rows = df.distribute.get_replica_context().all_gather(x, axis=0)  # type: ignore[union-attr]
            y = df.reduce_sum(rows * rows)
        return tape.gradient(y, x)

    assert np.array_equal(strategy.run(gradient, args=(own,)).numpy(), 2.0 * COUNT * own.numpy())
    assert np.array_equal(strategy.run(df.function(gradient), args=(own,)).numpy(), 2.0 * COUNT * own.numpy())


def check_gathers_in_loops_are_those_of_eager_code() -> None:
    """With numbers of rows of each iteration and worker, gradients, and a dtype that MPI lacks."""

    def gathered(x: Any, steps: Any) -> Any:
        total = df.zeros([2])
        for i in df.range(steps):
            if i != 1:
                rows = df.distribute.get_replica_context().all_gather(x[: i + RANK], axis=0)  # type: ignore[union-attr]
                total += df.cast(df.reduce_sum(rows * rows, axis=0), df.float32)
        return total

    def descended(x: Any, steps: Any) -> Any:
        for i in df.range(steps):
            with df.GradientTape() as tape:
                tape.watch(x)
                rows = df.distribute.get_replica_context().all_gather(x[: i + RANK], axis=0)  # type: ignore[union-attr]
                y = df.reduce_sum(rows * rows) * (RANK + 1.0)
            x -= 0.125 * tape.gradient(y, x)
        return x

    x = df.reshape(df.range(1.0, 13.0), [6, 2]) * (RANK + 1.0)
    for f, inputs in ((gathered, [x, df.cast(x, df.bfloat16)]), (descended, [x])):
        compiled = df.function(lambda x, steps, f=f: strategy.run(f, args=(x, steps)))
        for own, steps in itertools.product(inputs, (0, 1, 4)):
            eager = strategy.run(f, args=(own, steps))
            assert np.array_equal(compiled(own, df.constant(steps)).numpy(), eager.numpy()), (
                f,
                own.dtype,
                steps,
            )
            assert "depends on data" not in compiled.status()
            assert ("exchanges data" in compiled.status()) == bool(switches.off("collectives"))


def check_gather_of_strings() -> None:
    own = df.constant([[f"{RANK}.{i}" for i in range(2)]] * RANK, df.string, [RANK, 2])
    expected = [[f"{rank}.{i}".encode() for i in range(2)] for rank in range(COUNT) for _ in range(rank)]
    assert strategy.gather(own, axis=0).numpy().tolist() == expected
    assert df.function(lambda x: strategy.gather(x, axis=0))(own).numpy().tolist() == expected
    assert strategy.gather(df.constant([["a"], ["b"]]), axis=1).numpy().tolist() == [
        [b"a"] * COUNT,
        [b"b"] * COUNT,
    ]


def check_machine_code_has_no_gather_of_strings() -> None:
    assert strategy._group.native(Collective.ALL_GATHER_ROWS, df.float32, (None, 2)) is not None
    assert strategy._group.native(Collective.ALL_GATHER_ROWS, df.string, (None, 2)) is None


def check_descriptions_have_the_dtype_and_the_sizes_that_may_differ() -> None:
    progress = strategy._group.progress
    for dtype in (df.bfloat16, df.float16):
        numpy_dtype = np.dtype(dtype.as_numpy_dtype)
        of_rows = progress.signature("all_gather", numpy_dtype, (7, 2), any_length=True)
        of_blocks = progress.signature("all_gather", numpy_dtype, (2,))
        assert progress.descriptions[of_rows] == f"all_gather of {dtype.name}[any, 2]"
        assert progress.descriptions[of_blocks] == f"all_gather of {dtype.name}[2]"


def check_indexed_slices_are_gathered() -> None:
    slices = df.IndexedSlices([[RANK + 1.0]], [RANK % 2], dense_shape=[2, 1])
    total = on_replica(lambda: all_reduce("SUM", slices))
    assert df.convert_to_tensor(total).numpy().sum() == TOTAL


def check_reduce_along_an_axis_of_unequal_sizes() -> None:
    rows = df.fill([RANK + 1], float(RANK))
    everything = np.concatenate([np.full(i + 1, float(i)) for i in range(COUNT)])
    assert strategy.reduce("SUM", rows, axis=0).numpy() == everything.sum()
    assert np.isclose(strategy.reduce("MEAN", rows, axis=0).numpy(), everything.mean())
    assert strategy.reduce("MEAN", df.constant(float(RANK)), axis=None).numpy() == (COUNT - 1) / 2
    assert strategy.reduce("MEAN", df.constant(RANK), axis=None).numpy() == (COUNT - 1) / 2


def check_values_from_a_function_reach_their_replica() -> None:
    values = strategy.experimental_distribute_values_from_function(
        lambda context: df.constant([context.replica_id_in_sync_group, context.num_replicas_in_sync])
    )
    assert strategy.run(lambda x: x + 0, args=(values,)).numpy().tolist() == [RANK, COUNT]


def check_a_merge_call_is_in_the_context_of_all_replicas() -> None:
    def merged(outer: Any, x: Any) -> Any:
        assert df.distribute.in_cross_replica_context()
        return outer.reduce("SUM", x)

    context_sum = on_replica(
        lambda: df.distribute.get_replica_context().merge_call(merged, args=(df.constant(1.0),))  # type: ignore[union-attr]
    )
    assert context_sum.numpy() == COUNT


def check_rows_of_batches_are_divided() -> None:
    """Whole batches, whatever the source, are those of one worker; a last one may leave a worker none."""
    rows = df.data.Dataset.range(17)
    for dataset in (rows.batch(8), rows.map(lambda x: x * 2).batch(8).prefetch(1), rows.batch(8).repeat(2)):
        own = list(strategy.experimental_distribute_dataset(dataset))
        whole = [strategy.gather(x, axis=0).numpy().tolist() for x in own]
        assert whole == [x.numpy().tolist() for x in dataset]
    dropped = strategy.experimental_distribute_dataset(rows.batch(8, drop_remainder=True))
    assert dropped.element_spec.shape == [8 // COUNT]


def check_shuffled_rows_are_divided_and_no_row_is_lost() -> None:
    own = strategy.experimental_distribute_dataset(df.data.Dataset.range(30).shuffle(30).batch(4))
    for _ in range(2):
        rows = np.concatenate([strategy.gather(x, axis=0).numpy() for x in own])
        assert sorted(rows.tolist()) == list(range(30))


def check_a_function_makes_each_workers_dataset() -> None:
    def own_part(context: Any) -> Any:
        size = context.get_per_replica_batch_size(8)
        rows = df.data.Dataset.range(16).shard(context.num_input_pipelines, context.input_pipeline_id)
        return rows.batch(size)

    own = strategy.distribute_datasets_from_function(own_part)
    assert [x.shape for x in own] == [[8 // COUNT]] * 2
    assert next(iter(own)).numpy()[0] == RANK


def check_a_dataset_that_is_not_sharded_is_whole() -> None:
    options = df.data.Options()
    options.experimental_distribute.auto_shard_policy = df.data.experimental.AutoShardPolicy.OFF
    dataset = df.data.Dataset.range(4).batch(2).with_options(options)
    assert [x.numpy().tolist() for x in strategy.experimental_distribute_dataset(dataset)] == [[0, 1], [2, 3]]


def written_files(name: str, lengths: list[int]) -> list[str]:
    """Files of lines, each of which is ``file.line``, written by the first worker."""
    folder = SHARED / name
    if RANK == 0:
        folder.mkdir()
        for i, length in enumerate(lengths):
            lines = [f"{i}.{line}\n" for line in range(length)]
            (folder / f"{i}.txt").write_text("".join(lines), encoding="utf-8")
    strategy.gather(df.zeros([1]), axis=0)  # the others wait
    return [str(folder / f"{i}.txt") for i in range(len(lengths))]


def line_numbers(batches: list[list[bytes]]) -> list[int]:
    """The lines of batches as 100 times the number of the file and that of the line."""
    parts = [line.split(b".") for batch in batches for line in batch]
    return [100 * int(file) + int(line) for file, line in parts]


def with_policy(dataset: Any, policy: Any) -> Any:
    options = df.data.Options()
    options.experimental_distribute.auto_shard_policy = policy
    return dataset.with_options(options)


def check_files_are_divided_among_workers() -> None:
    """All workers have as many steps, each line is used once, and by the worker that its file belongs to."""
    lengths = [7, 2, 0, 5, 1, 3]
    names = written_files("files", lengths)
    lines = [100 * i + line for i, length in enumerate(lengths) for line in range(length)]
    tensors = df.data.Dataset.from_tensor_slices(names)
    listed = df.data.Dataset.list_files(str(SHARED / "files" / "*.txt"), shuffle=False)
    sources = [
        df.data.TextLineDataset(names),
        df.data.TextLineDataset(tensors),
        df.data.TextLineDataset(names, num_parallel_reads=2),
        listed.interleave(df.data.TextLineDataset, cycle_length=2),
        listed.flat_map(lambda name: df.data.TextLineDataset(name).take(100)).map(lambda line: line),
        listed.filter(lambda name: df.strings.length(name) > 0).flat_map(df.data.TextLineDataset),
    ]
    for i, lines_of_files in enumerate(sources):
        policy = [df.data.experimental.AutoShardPolicy.AUTO, df.data.experimental.AutoShardPolicy.FILE][i % 2]
        own = strategy.experimental_distribute_dataset(with_policy(lines_of_files.batch(2 * COUNT), policy))
        batches = [batch.numpy().tolist() for batch in own]
        sizes = strategy.gather(df.constant([[len(batch) for batch in batches]]), axis=0).numpy()
        assert sizes.max() == 2
        rows = line_numbers(batches)
        assert {row // 100 % COUNT for row in rows} <= {RANK}
        assert sorted(strategy.gather(df.constant(rows, df.int64), axis=0).numpy().tolist()) == lines


def check_prefetching_threads_read_the_workers_files_and_exchange_nothing() -> None:
    names = written_files("prefetched", [9, 1, 4, 2])
    lines = df.data.TextLineDataset(names).batch(COUNT)
    own = strategy.experimental_distribute_dataset(lines)
    expected = [x.numpy().tolist() for x in own]
    total, prefetched = df.function(lambda x: strategy.reduce("SUM", x)), own.map(lambda x: x, 4).prefetch(4)
    batches = []
    for i, x in enumerate(prefetched):
        batches.append(x.numpy().tolist())
        assert total(df.fill([i], 1.0)).shape == [i]  # whose order among those of the iterator is fixed
    assert batches == expected
    iterator = iter(prefetched)
    assert [next(iterator).numpy().tolist() for _ in range(2)] == expected[:2]
    state = iterator.get_state()
    iterator.set_state(state)
    assert [x.numpy().tolist() for x in iterator] == expected[2:]


def check_lines_of_files_may_be_divided_by_rows_or_be_whole() -> None:
    names = written_files("rows", [5])
    lines = df.data.TextLineDataset(names).batch(4)
    policies = df.data.experimental.AutoShardPolicy
    own = list(strategy.experimental_distribute_dataset(with_policy(lines, policies.DATA)))
    assert [strategy.reduce("SUM", df.constant(len(x)), axis=None).numpy() for x in own] == [4, 1]
    whole = list(strategy.experimental_distribute_dataset(with_policy(lines, policies.OFF)))
    assert [len(x) for x in whole] == [4, 1]
    for policy in (policies.AUTO, policies.FILE):
        with pytest.raises(
            df.errors.InvalidArgumentError, match=f"1 file can't be divided among {COUNT} work"
        ):
            strategy.experimental_distribute_dataset(with_policy(lines, policy))


def check_a_position_in_files_is_restored_by_all_workers() -> None:
    names = written_files("positions", [9, 1, 4, 2])
    lines = df.data.TextLineDataset(names).shuffle(4).batch(COUNT)
    own = strategy.experimental_distribute_dataset(lines)
    iterator = iter(own)
    first = [next(iterator).numpy().tolist() for _ in range(3)]
    path = df.train.Checkpoint(iterator=iterator).write(SHARED / "position")
    remaining = [x.numpy().tolist() for x in iterator]
    again = iter(own)
    df.train.Checkpoint(iterator=again).restore(path).assert_consumed()
    assert [x.numpy().tolist() for x in again] == remaining
    rows = line_numbers(first + remaining)
    everything = strategy.gather(df.constant(rows, df.int64), axis=0).numpy().tolist()
    assert len(everything) == len(set(everything)) == 16


def check_blocks_of_sums_and_gathers_are_equal_in_compiled_code() -> None:
    """With odd sizes, so that parts are padded, and gradients, which are one another's."""
    shapes = [[3, 5], [], [7], [0], [4, 2]]
    tensors = [df.random.normal(shape) * (RANK + 1.0) for shape in shapes]
    group = strategy._group

    def exchanged(*values: Any) -> Any:
        own = block_sums_over(values, group, 64)
        return own, blocks_joined_over(own, [df.TensorShape(shape) for shape in shapes], group, 64)

    eager, compiled = exchanged(*tensors), df.function(exchanged)(*tensors)
    expected = on_replica(lambda: all_reduce("SUM", tensors))
    for a, b, total in zip(eager[1], compiled[1], expected, strict=True):
        assert np.allclose(a.numpy(), total.numpy(), rtol=1e-6)
        assert a.numpy().tobytes() == b.numpy().tobytes()
    for part, own in zip(eager[0], compiled[0], strict=True):
        assert part.numpy().tobytes() == own.numpy().tobytes()

    def gradients(x: Any) -> Any:
        with df.GradientTape() as tape:
            tape.watch(x)
            (own,) = block_sums_over([x], group, 64)
            y = df.reduce_sum(own * (RANK + 1.0))
        return tape.gradient(y, x)

    expected_rows = np.repeat(np.arange(1.0, COUNT + 1), 2)
    assert np.array_equal(df.function(gradients)(df.zeros([2 * COUNT])).numpy(), expected_rows)
    assert np.array_equal(gradients(df.zeros([2 * COUNT])).numpy(), expected_rows)


def check_an_iterator_ends_with_an_optional_without_a_value() -> None:
    """The last batch has other sizes on each worker."""
    dataset = df.data.Dataset.range(9).batch(4)
    iterator = iter(strategy.experimental_distribute_dataset(dataset))

    @df.function
    def total(source: Any) -> Any:
        rows, batches = df.constant(0, df.int64), 0
        for _ in df.range(5):
            optional = source.get_next_as_optional()
            if not optional.has_value():
                break
            rows += df.reduce_sum(strategy.run(lambda x: x + 0, args=(optional.get_value(),)))
            batches += 1
        return rows, batches

    rows, batches = total(iterator)
    assert batches.numpy() == 3
    assert strategy.reduce("SUM", rows, axis=None).numpy() == 36


def check_tf_config_describes_the_job() -> None:
    config = json.loads(os.environ["TF_CONFIG"])
    assert len(config["cluster"]["worker"]) == COUNT
    assert config["task"] == {"type": "worker", "index": RANK}
    resolver = df.distribute.cluster_resolver.TFConfigClusterResolver()
    same = df.distribute.MultiWorkerMirroredStrategy(cluster_resolver=resolver)
    assert (same.cluster_resolver.task_id, same.num_replicas_in_sync) == (RANK, COUNT)
    spec = df.train.ClusterSpec({"worker": ["a"] * COUNT})
    other = df.distribute.cluster_resolver.SimpleClusterResolver(spec, "", "worker", RANK + 1)
    with pytest.raises(df.errors.FailedPreconditionError, match=f"started this process as worker {RANK}"):
        df.distribute.MultiWorkerMirroredStrategy(other)


def check_checkpoints_are_written_by_the_first_worker() -> None:
    v = df.Variable([float(RANK + 1)])
    manager = df.train.CheckpointManager(df.train.Checkpoint(v=v), SHARED / "checkpoints", max_to_keep=2)
    paths = [manager.save() for _ in range(3)]
    assert manager.checkpoints == paths[1:]
    v.assign([0.0])
    assert manager.restore_or_initialize() == paths[-1]
    assert v.numpy() == [1.0]


def check_another_path_of_a_worker_is_written_by_it() -> None:
    v = df.Variable([float(RANK + 1)])
    path = df.train.Checkpoint(v=v).write(SHARED / f"own{RANK}" / "c")
    v.assign([0.0])
    df.train.Checkpoint(v=v).restore(path).assert_consumed()
    assert v.numpy() == [RANK + 1]


def check_an_error_of_the_first_worker_is_raised_by_all() -> None:
    (SHARED / "file").touch()
    with pytest.raises(df.errors.OpError, match="file"):
        df.train.Checkpoint(v=df.Variable(1.0)).write(SHARED / "file" / "c")


def check_the_digits_have_the_losses_of_one_worker() -> None:
    """500 steps of a classifier, with each batch divided among the workers; the same bits in each run."""
    images, labels = digits()
    rows = df.data.Dataset.from_tensor_slices((images.reshape(-1, 64) / 16, labels.astype(np.int32)))
    initial = np.random.default_rng(0).normal(size=(64, 32)).astype(np.float32) / 8

    def losses(scope: Any) -> list[float]:
        dataset = rows.shuffle(1797, seed=1).repeat().batch(64).take(500)
        weights = [df.Variable(initial), df.Variable(df.zeros([32, 10]))]

        def step(x: Any, y: Any) -> Any:
            with df.GradientTape() as tape:
                logits = df.tanh(x @ weights[0]) @ weights[1]
                errors = df.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits)
                loss = df.nn.compute_average_loss(errors, global_batch_size=64)
            for w, g in zip(weights, all_reduce("SUM", tape.gradient(loss, weights)), strict=True):
                w.assign_sub(0.5 * g)
            return loss

        train = df.function(lambda x, y: scope.reduce("SUM", scope.run(step, args=(x, y)), axis=None))
        return [float(train(x, y)) for x, y in scope.experimental_distribute_dataset(dataset)]

    together, alone = losses(strategy), losses(df.distribute.OneDeviceStrategy("/cpu:0"))
    assert losses(strategy) == together
    assert len(together) == 500
    assert together[-1] < 0.1
    assert np.abs(np.subtract(together, alone)).max() < 1e-5


def check_training_is_that_of_one_worker() -> None:
    """The losses of 40 steps, with the batch shared among the workers, in compiled code."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((24, 3)).astype(np.float32)
    y = x @ np.float32([[1.0], [-2.0], [0.5]])

    def losses(run: Any, x: Any, y: Any, reduce: Any) -> list[float]:
        w = df.Variable(df.zeros([3, 1]))

        def step(x: Any, y: Any) -> Any:
            with df.GradientTape() as tape:
                loss = df.reduce_sum(df.square(x @ w - y)) / 24.0
            w.assign_sub(0.1 * all_reduce("SUM", tape.gradient(loss, w)))
            return loss

        train = df.function(lambda x, y: reduce(run(step, args=(x, y))))
        return [float(train(x, y)) for _ in range(40)]

    alone = df.distribute.OneDeviceStrategy("/cpu:0")
    own = slice(RANK * 24 // COUNT, (RANK + 1) * 24 // COUNT)
    together = losses(strategy.run, x[own], y[own], lambda loss: strategy.reduce("SUM", loss))
    assert np.allclose(together, losses(alone.run, x, y, lambda loss: loss), rtol=0, atol=1e-5)

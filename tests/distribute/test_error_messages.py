"""What strategies and ``launch`` refuse: what was wrong, and what to do about it."""

from __future__ import annotations

from argparse import Namespace
from typing import Any, ClassVar

import pytest
from error_cases import ErrorCases

import dualflow as df
from dualflow.cli.call import CommandError
from dualflow.cli.launch import launch
from dualflow.core.errors import DTypeError, FailedPreconditionError, InvalidArgumentError
from dualflow.distribute.file_shards import with_file_shard

strategy = df.distribute.get_strategy()
alone = df.distribute.MultiWorkerMirroredStrategy()


def replica() -> Any:
    return df.distribute.get_replica_context()


def options(**chosen: Any) -> Namespace:
    return Namespace(
        **{"workers": 2, "file": None, "module": None, "following": [], "dry_run": True, **chosen}
    )


def of_files() -> Any:
    options = df.data.Options()
    options.experimental_distribute.auto_shard_policy = df.data.experimental.AutoShardPolicy.FILE
    return df.data.Dataset.range(4).batch(2).with_options(options)


def own_files() -> Any:
    options = df.data.Options()
    options.experimental_distribute.auto_shard_policy = df.data.experimental.AutoShardPolicy.FILE
    return strategy.experimental_distribute_dataset(
        df.data.TextLineDataset(["a"]).batch(2).with_options(options)
    )


def with_tf_config(text: str) -> Any:
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("TF_CONFIG", text)
        return df.distribute.MultiWorkerMirroredStrategy()


class TestErrors(ErrorCases):
    cases: ClassVar[dict[str, tuple[Any, ...]]] = {
        "a reduction that is neither a sum nor a mean": (
            lambda: strategy.reduce("MAX", df.constant(1.0), axis=None),
            InvalidArgumentError,
            "not 'MAX'",
            "SUM or MEAN",
        ),
        "a sum of bools": (lambda: replica().all_reduce("SUM", True), DTypeError, "dtype bool", "cast it"),
        "a sum of strings": (lambda: replica().all_reduce("SUM", "a"), DTypeError, "dtype string"),
        "a scalar to gather": (
            lambda: strategy.gather(1.0, axis=0),
            InvalidArgumentError,
            r"float32\[\] has none",
            "expand_dims",
        ),
        "run inside of run": (
            lambda: alone.run(lambda: alone.run(lambda: 1)),
            FailedPreconditionError,
            "inside of strategy.run",
            "call the function itself",
        ),
        "a strategy of TPUs": (
            lambda: df.distribute.TPUStrategy(),
            InvalidArgumentError,
            "no TPUs here",
            "use MirroredStrategy",
        ),
        "a device that is no name": (
            lambda: df.distribute.OneDeviceStrategy("fast"),
            InvalidArgumentError,
            "'fast' is no name of a device",
        ),
        "a device that there isn't": (
            lambda: df.distribute.MirroredStrategy(["/gpu:0"]),
            InvalidArgumentError,
            "/gpu:0 unknown device",
            "leave out the devices",
        ),
        "more devices than workers": (
            lambda: df.distribute.MirroredStrategy(["/cpu:0", "/cpu:1"]),
            InvalidArgumentError,
            "2 devices are listed, and this machine has 1 worker:",
            "launch -n 2",
        ),
        "no dataset": (
            lambda: strategy.experimental_distribute_dataset([1]),
            DTypeError,
            r"not \[1\]",
        ),
        "no dataset from a function": (
            lambda: strategy.distribute_datasets_from_function(lambda context: 1),
            DTypeError,
            "not 1",
        ),
        "a dataset without batches": (
            lambda: strategy.experimental_distribute_dataset(df.data.Dataset.range(3)),
            InvalidArgumentError,
            "has no rows",
            r"dataset.batch\(n\)",
        ),
        "files": (
            lambda: strategy.experimental_distribute_dataset(of_files()),
            InvalidArgumentError,
            "AutoShardPolicy.FILE divides files, and the dataset reads none",
            "Set AutoShardPolicy.DATA",
        ),
        "fewer files than workers": (
            lambda: with_file_shard(df.data.TextLineDataset(["a", "b"]).stage, 0, 3),
            InvalidArgumentError,
            r"2 files can't be divided among 3 workers \(AutoShardPolicy.FILE",
            "AutoShardPolicy.DATA",
        ),
        "a position in the files of other workers": (
            lambda: iter(own_files()).set_state(
                {"pipeline": own_files().stage.describe(), "place": [2, [0, 0]]}
            ),
            InvalidArgumentError,
            "in the files of 2 workers, and this job has 1",
            "begin a new iterator",
        ),
        "a cluster of two workers without MPI": (
            lambda: with_tf_config(
                '{"cluster": {"worker": ["a:1", "b:1"]}, "task": {"type": "worker", "index": 0}}'
            ),
            FailedPreconditionError,
            "TF_CONFIG lists 2 workers, and this job has 1: MPI starts",
            "launch -n 2",
        ),
        "a chief and another number than MPI's": (
            lambda: with_tf_config('{"cluster": {"chief": ["a:1"]}, "task": {"type": "worker", "index": 3}}'),
            FailedPreconditionError,
            "TF_CONFIG describes worker 3, and MPI has started this process as worker 0",
            "Leave TF_CONFIG to",
        ),
        "a damaged TF_CONFIG": (
            lambda: with_tf_config('{"cluster": 3}'),
            InvalidArgumentError,
            "no JSON of a cluster",
            "launch",
        ),
        "central storage on several devices": (
            lambda: df.distribute.experimental.CentralStorageStrategy(["/cpu:0", "/cpu:0"]),
            InvalidArgumentError,
            "2 compute_devices are listed",
            "use MirroredStrategy",
        ),
        "a batch that can't be divided": (
            lambda: df.distribute.InputContext(num_replicas_in_sync=3).get_per_replica_batch_size(8),
            InvalidArgumentError,
            "batch of 8 elements can't be divided among 3",
            "multiple",
        ),
        "no worker": (lambda: launch(options(workers=0)), CommandError, "not 0"),
        "no file": (lambda: launch(options(file="no.py")), CommandError, "no file 'no.py'"),
    }
    internal = ("no worker", "no file", "fewer files than workers")
    raised_in = ("distribute/*.py", "ops/collectives/*.py")
    tested_elsewhere: ClassVar[dict[str, str]] = {
        "distribute/world.py": "tests/distribute/test_strategies.py, test_faults.py",
        "distribute/group.py": "tests/distribute/test_faults.py",
    }

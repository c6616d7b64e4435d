"""Strategies in a program that trains alone: contexts, arguments, and the command that starts workers."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from forked_programs import run_forked

import dualflow as df
from dualflow.cli.launch import count_of_words, launcher_of, prefixed

STRATEGIES = {
    "default": df.distribute.get_strategy,
    "one device": lambda: df.distribute.OneDeviceStrategy("/cpu:0"),
    "mirrored": df.distribute.MirroredStrategy,
    "mirrored on a device": lambda: df.distribute.MirroredStrategy(["/device:CPU:0"]),
    "multi-worker": df.distribute.MultiWorkerMirroredStrategy,
}


@pytest.fixture(params=STRATEGIES)
def strategy(request: pytest.FixtureRequest) -> Any:
    return STRATEGIES[request.param]()  # type: ignore[no-untyped-call]  # of classes, too


def test_alone_there_is_one_replica(strategy: Any) -> None:
    assert strategy.num_replicas_in_sync == 1
    assert strategy.run(lambda: df.distribute.get_replica_context().replica_id_in_sync_group) == 0  # type: ignore[union-attr]


def test_values_of_one_replica_are_their_combination(strategy: Any) -> None:
    x = df.constant([[1.0, 3.0], [5.0, 7.0]])
    assert strategy.reduce("SUM", x, axis=None).numpy().tolist() == x.numpy().tolist()
    assert strategy.reduce("mean", {"x": x}, axis=0)["x"].numpy().tolist() == [3.0, 5.0]
    for axis, expected in ((0, 1.5), (None, [1.0, 2.0])):  # of the dtype that several replicas' means have
        integers = strategy.reduce("MEAN", df.constant([1, 2]), axis=axis)
        assert (integers.numpy().tolist(), integers.dtype) == (expected, df.float64)
    assert strategy.gather(x, axis=1).numpy().tolist() == x.numpy().tolist()
    assert strategy.experimental_local_results(x) == (x,)


def test_a_scope_is_a_context_of_all_replicas_and_run_is_one_of_a_replica(strategy: Any) -> None:
    def contexts() -> tuple[Any, ...]:
        replica = df.distribute.get_replica_context()
        return df.distribute.get_strategy(), df.distribute.in_cross_replica_context(), replica is None

    outside = contexts()
    assert outside == (df.distribute.get_strategy(), False, False)
    with strategy.scope() as entered:
        assert entered is strategy
        assert contexts() == (strategy, True, True)
        assert strategy.run(contexts) == (strategy, False, False)
        assert contexts() == (strategy, True, True)
    assert contexts() == outside


def test_a_context_ends_with_an_error_in_its_block(strategy: Any) -> None:
    with pytest.raises(ZeroDivisionError), strategy.scope():
        strategy.run(lambda: 1 / 0)
    assert not df.distribute.in_cross_replica_context()
    assert not df.distribute.has_strategy()


def test_run_converts_control_flow_of_its_function_in_a_trace(strategy: Any) -> None:
    def halved(x: Any) -> Any:
        while x > 1.0:
            x = x / 2.0
        return x

    assert df.function(lambda x: strategy.run(halved, args=(x,)))(df.constant(12.0)).numpy() == 0.75


def test_run_passes_structures_and_names(strategy: Any) -> None:
    values = strategy.experimental_distribute_values_from_function(
        lambda context: (context.replica_id_in_sync_group, context.num_replicas_in_sync)
    )
    result = strategy.run(lambda x, *, y: (x, y), args=([values, 1],), kwargs={"y": {"z": values}})
    assert result == ([(0, 1), 1], {"z": (0, 1)})


def test_strategies_are_base_classes() -> None:
    class Own(df.distribute.MirroredStrategy):
        pass

    assert Own().num_replicas_in_sync == 1


@pytest.mark.parametrize("line", ["[prterun-host-1@1,12]<stderr>: text: 1", "[1,12]<stdout>:text: 1"])
def test_the_mark_of_open_mpi_becomes_a_number(line: str) -> None:
    assert prefixed(line) == "[12] text: 1"


def test_other_lines_stay_as_they_are() -> None:
    assert prefixed("[3] text [1,2]<stdout>: ") == "[3] text [1,2]<stdout>: "


@pytest.mark.parametrize(
    ("words", "count"),
    [
        ("launch train.py -n 9", 2),
        ("launch -n 4 train.py -m x", 4),
        ("launch --dry-run -m a.b c", 4),
        ("launch", 2),
    ],
)
def test_the_arguments_of_the_program_begin_after_its_name(words: str, count: int) -> None:
    assert count_of_words(words.split()) == count


def test_launch_requires_one_program() -> None:
    for words in (["launch", "-n", "2"], ["launch", "--dry-run"]):
        ended = run_forked(["-m", "dualflow", *words])
        assert ended.returncode == 2
        assert "one of the arguments FILE -m is required" in ended.stderr


def test_launch_prints_the_commands_for_a_cluster(tmp_path: Path) -> None:
    (tmp_path / "mpiexec").write_text("#!/bin/sh\necho mpiexec of MPICH\n")
    (tmp_path / "mpiexec").chmod(0o755)
    (tmp_path / "train.py").write_text("")
    words = ["launch", "-n", "3", "--dry-run", "train.py", "--rate", "0.5 x"]
    ended = run_forked(["-m", "dualflow", *words], cwd=tmp_path, env={"PATH": str(tmp_path)})
    assert ended.returncode == 0
    assert "mpiexec -n 3 --hostfile HOSTS python -m dualflow run train.py --rate '0.5 x'" in ended.stderr
    srun = r"srun --ntasks 3 --mpi=(pmix|pmi2) python -m dualflow run train.py --rate '0.5 x'"
    assert re.search(srun, ended.stderr)


def test_slurm_starts_workers_by_the_interface_of_the_mpi_library() -> None:
    assert launcher_of("mpiexec", "HYDRA build details").slurm_interface == "pmi2"
    assert launcher_of("mpiexec", "mpiexec (Open MPI) 5.0.8").slurm_interface == "pmix"


def test_without_mpi4py_a_worker_of_several_names_the_extra(tmp_path: Path) -> None:
    program = "import sys; sys.modules['mpi4py'] = None; import dualflow as df; "
    program += "df.distribute.MultiWorkerMirroredStrategy()"
    ended = subprocess.run(
        [sys.executable, "-c", program],
        env={"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "2"},
        capture_output=True,
        text=True,
        check=False,
    )
    last = ended.stderr.strip().splitlines()[-1]
    assert "Worker 1 of 2 can't load MPI" in last
    assert "pip install 'dualflow[mpi]'" in last

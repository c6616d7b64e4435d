"""Variables that are created after a restore begin with the checkpoint's values."""

from __future__ import annotations

import gc
import shutil
import threading
from pathlib import Path
from typing import Any

import pytest

import dualflow as df
from dualflow.compat import v1
from dualflow.eager import initial_values


class Net(df.Module):
    pass


class Plain:
    pass


@pytest.fixture(autouse=True)
def nothing_waits() -> Any:
    """Each test begins and ends with no checkpoint that waits."""
    gc.collect()
    assert initial_values.restorations == []
    yield
    gc.collect()
    df.Variable(0.0).numpy()
    for restore in initial_values.restorations[:]:
        restore()
    assert initial_values.restorations == []


@pytest.fixture
def path(tmp_path: Path) -> str:
    net = Plain()
    net.w, net.list, net.dict = df.Variable([1.0, 2.0]), [df.Variable(3.0)], {"k": df.Variable(4.0)}
    net.plain = Plain()
    net.plain.v = df.Variable(5.0)
    return df.train.Checkpoint(net=net).write(tmp_path / "c")


@pytest.mark.parametrize("kind", [Net, Plain])
def test_a_new_variable_in_any_container(kind: Any, path: str) -> None:
    net = kind()
    status = df.train.Checkpoint(net=net).read(path)
    assert status.pending == ["net/w", "net/list/0", "net/dict/k", "net/plain/v"]
    net.list, net.dict = [], {}
    net.list.append(df.Variable(0.0))
    net.dict["k"] = df.Variable(0.0)
    net.plain = kind()
    net.plain.v = df.Variable(0.0)
    net.w = df.Variable([0.0, 0.0])
    assert [float(v) for v in (net.list[0], net.dict["k"], net.plain.v)] == [3.0, 4.0, 5.0]
    assert net.w.numpy().tolist() == [1.0, 2.0]
    status.assert_consumed()


READS = {
    "numpy": lambda v: v.numpy(),
    "an op": lambda v: v + 0.0,
    "a gradient": lambda v: _gradient(v),
    "a compiled call": lambda v: df.function(lambda: v * 1.0)(),
    "repr": repr,
    "float of a part": lambda v: float(v[0]),
}


def _gradient(v: Any) -> Any:
    with df.GradientTape() as tape:
        y = v * v
    return tape.gradient(y, v)


@pytest.mark.parametrize("read", READS.values(), ids=READS)
def test_any_caller_that_reads_it_first(read: Any, path: str) -> None:
    net = Net()
    df.train.Checkpoint(net=net).read(path)
    net.w = df.Variable([0.0, 0.0])
    first = read(net.w)
    other = df.Variable([1.0, 2.0])
    assert str(first) == str(read(other))


CHANGES = {
    "assign_add": (lambda v: v.assign_add([1.0, 1.0]), [2.0, 3.0]),
    "assign": (lambda v: v.assign([7.0, 7.0]), [7.0, 7.0]),
    "a part": (lambda v: v[0].assign(9.0), [9.0, 2.0]),
    "a compiled call": (lambda v: df.function(lambda: v.assign_add([1.0, 1.0]))(), [2.0, 3.0]),
}


@pytest.mark.parametrize(("change", "expected"), CHANGES.values(), ids=CHANGES)
def test_any_caller_that_changes_it_first(change: Any, expected: list[float], path: str) -> None:
    net = Net()
    df.train.Checkpoint(net=net).read(path)
    net.w = df.Variable([0.0, 0.0])
    change(net.w)
    assert net.w.numpy().tolist() == expected


def test_a_variable_that_a_function_creates(path: str) -> None:
    net = Net()
    df.train.Checkpoint(net=net).read(path)

    @df.function
    def f(x: Any) -> Any:
        if not hasattr(net, "w"):
            net.w = df.Variable([0.0, 0.0])
        return net.w * x

    assert f(2.0).numpy().tolist() == [2.0, 4.0]
    net.w.assign([5.0, 5.0])
    assert f(2.0).numpy().tolist() == [10.0, 10.0]


def test_slots_come_after_the_checkpoint_object_is_gone(tmp_path: Path) -> None:
    w, optimizer = df.Variable(1.0), v1.train.MomentumOptimizer(0.1, 0.9)
    optimizer.minimize(lambda: w * w)
    df.train.Checkpoint(w=w, o=optimizer).write(tmp_path / "c")
    optimizer.minimize(lambda: w * w)
    new, other = df.Variable(0.0), v1.train.MomentumOptimizer(0.1, 0.9)
    df.train.Checkpoint(w=new, o=other).read(tmp_path / "c")
    gc.collect()
    other.minimize(lambda: new * new)
    assert float(new) == float(w)


def test_a_list_of_the_checkpoints_own(tmp_path: Path) -> None:
    df.train.Checkpoint(layers=[df.Variable(1.0), df.Variable(2.0)]).write(tmp_path / "c")
    layers: list[Any] = []
    df.train.Checkpoint(layers=layers).read(tmp_path / "c")
    gc.collect()
    layers += [df.Variable(0.0), df.Variable(0.0)]
    assert [float(v) for v in layers] == [1.0, 2.0]


def test_an_object_that_is_given_to_the_checkpoint_later(tmp_path: Path) -> None:
    """Also a variable that was read before and isn't read again."""
    old = df.Variable(3.0)
    df.train.Checkpoint(v=old).write(tmp_path / "c")
    checkpoint, v = df.train.Checkpoint(), df.Variable(0.0)
    checkpoint.read(tmp_path / "c")
    assert float(v) == 0.0
    checkpoint.v = v
    assert float(v) == 3.0


def test_other_variables_keep_their_initial_values(path: str) -> None:
    net = Net()
    status = df.train.Checkpoint(net=net).read(path)
    net.other = df.Variable([8.0, 9.0])
    assert net.other.numpy().tolist() == [8.0, 9.0]
    assert status.missing == ["net/other"]


def test_a_later_checkpoint_decides(path: str, tmp_path: Path) -> None:
    net = Plain()
    net.w = df.Variable([10.0, 20.0])
    newer = df.train.Checkpoint(net=net).write(tmp_path / "newer")
    new = Net()
    df.train.Checkpoint(net=new).read(path)
    df.train.Checkpoint(net=new).read(newer)
    new.w = df.Variable([0.0, 0.0])
    assert new.w.numpy().tolist() == [10.0, 20.0]


def test_the_checkpoint_may_be_removed_meanwhile(path: str) -> None:
    net = Net()
    df.train.Checkpoint(net=net).read(path)
    shutil.rmtree(path)
    net.w = df.Variable([0.0, 0.0])
    assert net.w.numpy().tolist() == [1.0, 2.0]


def test_a_value_that_does_not_fit_is_reported_once_at_the_first_read(path: str) -> None:
    net = Net()
    status = df.train.Checkpoint(net=net).read(path)
    net.w = df.Variable([1, 2, 3])
    net.dict = {"k": df.Variable(0.0)}
    with pytest.raises(ValueError, match=r"net/w is float32 of shape \(2,\), and the variable .* is int32"):
        net.w.numpy()
    assert net.w.numpy().tolist() == [1, 2, 3]
    assert float(net.dict["k"]) == 4.0
    assert "net/w" in status.missing


def test_saving_while_values_are_left_saves_what_is_there(path: str, tmp_path: Path) -> None:
    net = Net()
    checkpoint = df.train.Checkpoint(net=net)
    checkpoint.read(path)
    net.w = df.Variable([0.0, 0.0])
    checkpoint.write(tmp_path / "again")
    result = df.train.load_variable(tmp_path / "again", "net/w/.ATTRIBUTES/VARIABLE_VALUE")
    assert result.tolist() == [1.0, 2.0]


def test_threads_that_read_a_new_variable_at_once_see_one_value(path: str) -> None:
    for _ in range(20):
        net = Net()
        df.train.Checkpoint(net=net).read(path)
        net.w = df.Variable([0.0, 0.0])
        begin = threading.Barrier(4)
        reads: list[Any] = []

        def read(w: Any = net.w, begin: Any = begin, reads: Any = reads) -> None:
            begin.wait()
            reads.append(w.numpy().tolist())

        threads = [threading.Thread(target=read) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert reads == [[1.0, 2.0]] * 4


def test_nothing_waits_for_objects_that_are_gone(path: str) -> None:
    for _ in range(3):
        df.train.Checkpoint(net=Net()).read(path)
    gc.collect()
    df.Variable(0.0).numpy()
    assert initial_values.restorations == []


def test_a_restored_model_is_not_kept_alive(path: str) -> None:
    net = Net()
    net.w = df.Variable([0.0, 0.0])
    reference = net.w.ref()
    status = df.train.Checkpoint(net=net).read(path)
    del net
    assert len(status.pending) == 3
    assert reference.deref().numpy().tolist() == [1.0, 2.0]

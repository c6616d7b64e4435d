"""What is saved is restored: every dtype to the bit, every kind of object, under TensorFlow's names."""

from __future__ import annotations

import os
from collections import deque
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import dualflow as df
from dualflow.compat import v1
from dualflow.train.object_graph import live_graph

DTYPES = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
DTYPES += ["float16", "float32", "float64", "complex64", "complex128"]

leaves = st.sampled_from(DTYPES).flatmap(
    lambda dtype: arrays.arrays(dtype, arrays.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=3))
)
names = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=4)
trees = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=6,
)


def with_variables(tree: Any, start: Any = lambda array: array) -> Any:
    """The tree with a variable for each array."""
    if isinstance(tree, list):
        return [with_variables(x, start) for x in tree]
    if isinstance(tree, dict):
        return {name: with_variables(x, start) for name, x in tree.items()}
    return df.Variable(start(tree), dtype=tree.dtype.name)


def values(tree: Any) -> Any:
    if isinstance(tree, list):
        return [values(x) for x in tree]
    if isinstance(tree, dict):
        return {name: values(x) for name, x in tree.items()}
    array = tree.numpy() if isinstance(tree, df.Variable) else tree
    return (array.dtype.name, array.shape, array.tobytes())


@settings(max_examples=40)
@given(tree=trees)
def test_any_tree_of_variables_comes_back_to_the_bit(
    tree: Any, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("tree") / "c"
    df.train.Checkpoint(tree=[with_variables(tree)]).write(path)
    new = [with_variables(tree, np.zeros_like)]
    df.train.Checkpoint(tree=new).read(path).assert_consumed()
    assert values(new) == [values(tree)]


@pytest.mark.parametrize("name", ["bfloat16", "float8_e5m2", "float8_e4m3fn"])
def test_narrow_floats_come_back(name: str, tmp_path: Path) -> None:
    dtype = df.as_dtype(name)
    v = df.Variable(df.cast([1.5, -2.0, 0.0], dtype))
    df.train.Checkpoint(v=v).write(tmp_path / "c")
    v.assign(df.zeros([3], dtype))
    df.train.Checkpoint(v=v).read(tmp_path / "c")
    assert v.dtype is dtype
    assert df.cast(v, df.float32).numpy().tolist() == [1.5, -2.0, 0.0]


def test_strings_come_back_with_all_their_bytes(tmp_path: Path) -> None:
    texts = [[b"a", b"", "bc\0\u00e9".encode()], [b"\xff\x00", b"\0", b"x" * 1000]]
    v = [df.Variable(texts), df.Variable("one"), df.Variable(df.zeros([2, 0], df.string))]
    df.train.Checkpoint(v=v).write(tmp_path / "c")
    v[0].assign(df.zeros([2, 3], df.string))
    v[1].assign("")
    df.train.Checkpoint(v=v).read(tmp_path / "c")
    assert v[0].numpy().tolist() == texts
    assert v[1].numpy() == b"one"
    assert v[2].shape == [2, 0]


def test_special_numbers_keep_their_bits(tmp_path: Path) -> None:
    words = np.array([0x7FC00001, 0xFFC12345, 0x80000000, 0x00000001, 0xFF800000], np.uint32)
    v = df.Variable(words.view(np.float32))
    df.train.Checkpoint(v=v).write(tmp_path / "c")
    v.assign(df.zeros([5]))
    df.train.Checkpoint(v=v).read(tmp_path / "c")
    assert v.numpy().view(np.uint32).tolist() == words.tolist()


def test_arrays_in_another_order_are_saved_as_they_read(tmp_path: Path) -> None:
    x = np.arange(12.0).reshape(3, 4)
    v = [df.Variable(np.asfortranarray(x)), df.Variable(x[::-1, ::2]), df.Variable(x.T)]
    df.train.Checkpoint(v=v).write(tmp_path / "c")
    saved = [df.train.load_variable(tmp_path / "c", f"v/{i}/.ATTRIBUTES/VARIABLE_VALUE") for i in range(3)]
    assert [f.tolist() for f in saved] == [x.tolist(), x[::-1, ::2].tolist(), x.T.tolist()]


def test_arrays_are_named_as_tensorflow_names_them(tmp_path: Path) -> None:
    net = df.Module()
    net.w = df.Variable([1.0, 2.0])
    net.layers = [df.Variable(1), {"k": df.Variable(2), "z/q.x": df.Variable(3)}]
    net.pair = (df.Variable(5),)
    path = df.train.Checkpoint(net=net, step=df.Variable(7)).save(tmp_path / "c")
    assert [name for name, _ in df.train.list_variables(path)] == [
        f"{name}/.ATTRIBUTES/VARIABLE_VALUE"
        for name in [
            "net/layers/0",
            "net/layers/1/k",
            "net/layers/1/z.Sq..x",
            "net/pair/0",
            "net/w",
            "save_counter",
            "step",
        ]
    ]


def test_slots_are_named_as_tensorflow_names_them(tmp_path: Path) -> None:
    w, optimizer = df.Variable(1.0), v1.train.AdamOptimizer(0.1)
    optimizer.minimize(lambda: w * w)
    path = df.train.Checkpoint(o=optimizer, w=w).write(tmp_path / "c")
    assert [
        name.removesuffix("/.ATTRIBUTES/VARIABLE_VALUE") for name, _ in df.train.list_variables(path)
    ] == [
        "o/beta1_power",
        "o/beta2_power",
        "w",
        "w/.OPTIMIZER_SLOT/o/m",
        "w/.OPTIMIZER_SLOT/o/v",
    ]


class Own:
    def __init__(self, start: float) -> None:
        self.w = df.Variable(start)
        self.title = "mine"


@dataclass
class Record:
    w: df.Variable
    rate: float = 0.1


CONTAINERS = {
    "an object of one's own": lambda x: Own(x),
    "a dataclass": lambda x: Record(df.Variable(x)),
    "a list": lambda x: [3, df.Variable(x)],
    "a tuple": lambda x: (df.Variable(x), "text"),
    "a deque": lambda x: deque([df.Variable(x)]),
    "a dict": lambda x: {"a": df.Variable(x), 7: df.Variable(x + 1), "text": "b"},
    "a checkpoint": lambda x: df.train.Checkpoint(v=df.Variable(x)),
    "objects in objects": lambda x: [Record(Own(x)), {"k": (Own(x + 1),)}],
}


def variables_in(thing: Any) -> list[Any]:
    if isinstance(thing, df.Variable):
        return [thing]
    if isinstance(thing, dict):
        thing = list(thing.values())
    if not isinstance(thing, list | tuple | deque):
        thing = list(vars(thing).values()) if hasattr(thing, "__dict__") else []
    return [v for child in thing for v in variables_in(child)]


@pytest.mark.parametrize("make", CONTAINERS.values(), ids=CONTAINERS)
def test_variables_are_found_in(make: Any, tmp_path: Path) -> None:
    df.train.Checkpoint(x=make(5.0)).write(tmp_path / "c")
    new = make(0.0)
    df.train.Checkpoint(x=new).read(tmp_path / "c").assert_consumed()
    assert [float(v) for v in variables_in(new)] == [float(v) for v in variables_in(make(5.0))]
    assert float(variables_in(new)[0]) == 5.0


def test_a_variable_in_several_places_is_saved_once(tmp_path: Path) -> None:
    v = df.Variable(3.0)
    a, b = Own(0.0), Own(0.0)
    a.w, b.w, a.other, b.other = v, v, b, a
    df.train.Checkpoint(a=a, b=b).write(tmp_path / "c")
    assert len(df.train.list_variables(tmp_path / "c")) == 1
    apart, also = Own(0.0), Own(0.0)
    df.train.Checkpoint(a=apart, b=also).read(tmp_path / "c")
    assert (float(apart.w), float(also.w)) == (3.0, 3.0)
    apart.w.assign_add(1.0)
    assert (float(apart.w), float(also.w)) == (4.0, 3.0)


def test_variables_that_are_merged_take_the_value_of_the_first(tmp_path: Path) -> None:
    df.train.Checkpoint(a=df.Variable(1.0), b=df.Variable(2.0)).write(tmp_path / "c")
    v = df.Variable(0.0)
    status = df.train.Checkpoint(a=v, b=v).read(tmp_path / "c")
    assert float(v) == 1.0
    assert (status.restored, status.unused) == (["a"], ["b"])
    with pytest.raises(AssertionError, match="can't be taken by the objects at their paths: b"):
        status.assert_consumed()


OPTIMIZERS = {
    "momentum": lambda: v1.train.MomentumOptimizer(0.1, 0.9),
    "adam": lambda: v1.train.AdamOptimizer(0.1),
    "adagrad": lambda: v1.train.AdagradOptimizer(0.1),
    "rmsprop": lambda: v1.train.RMSPropOptimizer(0.1, momentum=0.5, centered=True),
}


@pytest.mark.parametrize("make", OPTIMIZERS.values(), ids=OPTIMIZERS)
@pytest.mark.parametrize("fresh", [True, False], ids=["before its first step", "after a step"])
def test_a_training_goes_on_as_if_it_had_not_stopped(make: Any, fresh: bool, tmp_path: Path) -> None:
    def steps(optimizer: Any, model: Own, count: int) -> list[float]:
        for _ in range(count):
            optimizer.minimize(lambda: (model.w - 1.0) * (model.w - 1.0))
        return [float(model.w)]

    model, optimizer = Own(5.0), make()
    steps(optimizer, model, 3)
    path = df.train.Checkpoint(model=model, optimizer=optimizer).write(tmp_path / "c")
    expected = steps(optimizer, model, 3)
    other, again = Own(0.0), make()
    if not fresh:
        steps(again, other, 1)
    status = df.train.Checkpoint(model=other, optimizer=again).read(path)
    assert steps(again, other, 3) == expected
    status.assert_consumed()


def test_slots_of_variables_that_are_not_saved_are_kept_by_their_names(tmp_path: Path) -> None:
    def trained(steps: int) -> tuple[Any, list[Any]]:
        variables = [df.Variable(1.0, name="a"), df.Variable(2.0, name="b"), df.Variable(3.0, name="b")]
        optimizer = v1.train.MomentumOptimizer(0.1, 0.9)
        for _ in range(steps):
            optimizer.minimize(lambda: df.add_n([v * v for v in variables]), var_list=variables)
        return optimizer, variables

    optimizer, variables = trained(2)
    expected = [float(optimizer.get_slot(v, "momentum")) for v in variables]
    df.train.Checkpoint(optimizer=optimizer).write(tmp_path / "c")
    other, variables = trained(1)
    df.train.Checkpoint(optimizer=other).read(tmp_path / "c").assert_consumed()
    assert [float(other.get_slot(v, "momentum")) for v in variables] == expected


def test_moving_averages_are_slots_of_their_variables(tmp_path: Path) -> None:
    x, averages = df.Variable(1.0), df.train.ExponentialMovingAverage(0.5)
    averages.apply([x])
    x.assign(3.0)
    averages.apply([x])
    df.train.Checkpoint(x=x, averages=averages).write(tmp_path / "c")
    y, others = df.Variable(0.0), df.train.ExponentialMovingAverage(0.5)
    status = df.train.Checkpoint(x=y, averages=others).read(tmp_path / "c")
    others.apply([y])
    assert float(others.average(y)) == 2.5
    status.assert_consumed()


def test_a_generator_goes_on(tmp_path: Path) -> None:
    g = df.random.Generator.from_seed(3)
    g.normal([5])
    df.train.Checkpoint(g=g).write(tmp_path / "c")
    expected = g.normal([5]).numpy().tolist()
    other = df.random.Generator.from_seed(4)
    df.train.Checkpoint(g=other).read(tmp_path / "c").assert_consumed()
    assert other.normal([5]).numpy().tolist() == expected


class Counting:
    """An iterator that can be set back, as those over datasets."""

    def __init__(self) -> None:
        self.at = 0

    def get_state(self) -> Any:
        return {"at": self.at, "share": 0.1 * self.at, "seen": ["ä", None, True]}

    def set_state(self, state: Any) -> None:
        self.at = state["at"]


class Text(df.train.experimental.PythonState):
    text = ""

    def serialize(self) -> str:
        return self.text

    def deserialize(self, string_value: str) -> None:
        self.text = string_value


def test_states_that_are_no_variables_come_back(tmp_path: Path) -> None:
    iterator, text = Counting(), Text()
    iterator.at, text.text = 7, "so far"
    df.train.Checkpoint(i=iterator, t=[text]).write(tmp_path / "c")
    new, other = Counting(), Text()
    status = df.train.Checkpoint(i=new, t=[other]).read(tmp_path / "c").assert_consumed()
    assert (new.at, other.text, status.restored) == (7, "so far", ["i", "t/0"])


def test_an_iterator_over_a_dataset_goes_on(tmp_path: Path) -> None:
    def batches() -> Any:
        return iter(df.data.Dataset.range(20).shuffle(8, seed=3).batch(3).repeat(2))

    iterator, other = batches(), batches()
    for _ in range(9):
        next(iterator)
    df.train.Checkpoint(data=[iterator]).write(tmp_path / "c")
    expected = [batch.numpy().tolist() for batch in iterator]
    df.train.Checkpoint(data=[other]).read(tmp_path / "c").assert_consumed()
    assert len(expected) == 5
    assert [batch.numpy().tolist() for batch in other] == expected


def test_an_iterator_over_another_dataset_stops_the_restore(tmp_path: Path) -> None:
    df.train.Checkpoint(v=df.Variable(1.0), data=iter(df.data.Dataset.range(3))).write(tmp_path / "c")
    v, other = df.Variable(0.0), iter(df.data.Dataset.range(4))
    with pytest.raises(ValueError, match="The state is of another dataset"):
        df.train.Checkpoint(v=v, data=other).read(tmp_path / "c")
    assert (float(v), int(next(other))) == (0.0, 0)


def test_a_list_of_many_numbers_costs_nothing(tmp_path: Path) -> None:
    model = Own(1.0)
    model.history = [0.5] * 1_000_000  # type: ignore[attr-defined]
    assert len(live_graph(model)) == 3


def test_numpys_random_states_are_unchanged(tmp_path: Path) -> None:
    model = Own(1.0)
    model.random = np.random.RandomState(0)  # type: ignore[attr-defined]
    df.train.Checkpoint(model=model).write(tmp_path / "c")
    assert len(df.train.list_variables(tmp_path / "c")) == 1


def test_the_roots_children_are_the_checkpoints_own(tmp_path: Path) -> None:
    model = Own(1.0)
    checkpoint = df.train.Checkpoint(model, step=df.Variable(2))
    assert checkpoint.root is model
    assert df.train.Checkpoint().root is not model
    checkpoint.write(tmp_path / "c")
    children = [name.partition("/")[0] for name, _ in df.train.list_variables(tmp_path / "c")]
    assert children == ["step", "w"]


def test_an_attribute_that_is_given_later_is_saved_too(tmp_path: Path) -> None:
    checkpoint = df.train.Checkpoint()
    checkpoint.v = df.Variable(1.0)
    checkpoint.write(tmp_path / "c")
    assert len(df.train.list_variables(tmp_path / "c")) == 1


def test_saves_are_counted_and_the_count_is_restored(tmp_path: Path) -> None:
    v = df.Variable(0)
    checkpoint = df.train.Checkpoint(v=v)
    paths = [checkpoint.save(tmp_path / "deep" / "c") for _ in range(3)]
    assert paths == [str(tmp_path / "deep" / f"c-{i}") for i in (1, 2, 3)]
    assert df.train.latest_checkpoint(tmp_path / "deep") == paths[-1]
    again = df.train.Checkpoint(v=v)
    again.restore(paths[1]).assert_consumed()
    assert int(again.save_counter) == 2
    assert again.save(tmp_path / "deep" / "c") == paths[2]
    reading = df.train.Checkpoint(v=v)
    reading.read(paths[1]).assert_consumed()
    assert int(reading.save_counter) == 0


def test_restoring_nothing_changes_nothing() -> None:
    v = df.Variable(1.0)
    status = df.train.Checkpoint(v=v).restore(None)
    assert (status.restored, status.pending, status.unused, float(v)) == ([], [], [], 1.0)
    assert repr(status) == "<CheckpointLoadStatus: no checkpoint was given>"


def test_compiled_functions_see_restored_values(tmp_path: Path) -> None:
    v = df.Variable(df.ones([64]))
    step = df.function(lambda: v.assign_add(df.ones([64])))
    checkpoint = df.train.Checkpoint(v=v)
    checkpoint.write(tmp_path / "c")
    step()
    step()
    checkpoint.read(tmp_path / "c")
    step()
    assert float(v[0]) == 2.0


def test_a_function_writes_the_values_of_each_call(tmp_path: Path) -> None:
    v = df.Variable(0.0)
    checkpoint = df.train.Checkpoint(v=v)

    @df.function
    def step() -> Any:
        v.assign_add(1.0)
        checkpoint.write(tmp_path / "c")
        v.assign_add(10.0)
        return v.value()

    for expected in (1.0, 12.0):
        step()
        assert df.train.load_variable(tmp_path / "c", "v/.ATTRIBUTES/VARIABLE_VALUE") == expected


def test_restored_values_may_change_afterwards(tmp_path: Path) -> None:
    v = df.Variable(1.0)
    checkpoint = df.train.Checkpoint(v=v)
    checkpoint.write(tmp_path / "c")
    status = checkpoint.read(tmp_path / "c")
    v.assign(2.0)
    status.assert_consumed()
    assert (status.restored, float(v)) == (["v"], 2.0)


def test_a_checkpoint_of_other_places_reads_back_into_them_alone(tmp_path: Path) -> None:
    df.train.Checkpoint(a=df.Variable(1.0), b=df.Variable(2.0)).write(tmp_path / "c")
    b = df.Variable(0.0)
    status = df.train.Checkpoint(b=b).read(tmp_path / "c").expect_partial()
    assert (float(b), status.restored, status.pending) == (2.0, ["b"], ["a"])


def test_values_without_children_are_not_saved(tmp_path: Path) -> None:
    """Functions, classes, modules, tensors and traces are no children."""
    model = Own(1.0)
    model.things = [np, Own, test_values_without_children_are_not_saved, df.ones([2])]  # type: ignore[attr-defined]
    model.step = df.function(lambda: model.w * 2.0)  # type: ignore[attr-defined]
    model.step()  # type: ignore[attr-defined]
    df.train.Checkpoint(model=model).write(tmp_path / "c")
    assert len(df.train.list_variables(tmp_path / "c")) == 1


@pytest.mark.parametrize("path", ["", "a\0b"])
def test_a_path_that_names_nothing_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    monkeypatch.chdir(tmp_path)
    v = df.Variable(1.0, name="v")
    checkpoint, saver = df.train.Checkpoint(v=v), v1.train.Saver([v])
    saves = checkpoint.save, checkpoint.write, lambda name: saver.save(None, name)
    for save in saves:
        with pytest.raises(df.errors.InvalidArgumentError, match="can't be saved at"):
            save(path)
    assert os.listdir(tmp_path) == []
    assert int(checkpoint.save_counter) == 0

"""Saved models: what ``save`` writes, ``load`` gives back as TensorFlow's guide to SavedModels uses it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dualflow as df
from dualflow.core.errors import (
    DTypeError,
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
)


class Line(df.Module):
    """A dense layer with a traced call, as in the guide."""

    def __init__(self) -> None:
        super().__init__()
        self.w = df.Variable(np.arange(6, dtype=np.float32).reshape(2, 3), name="w")
        self.b = df.Variable([1.0, 2.0, 3.0], name="b")

    @df.function(input_signature=[df.TensorSpec([None, 2], name="x")])
    def __call__(self, x: Any) -> Any:
        return x @ self.w + self.b


X = np.array([[1.0, 2.0], [3.0, 4.0]], np.float32)


def saved_and_loaded(obj: Any, folder: Path, **options: Any) -> Any:
    df.saved_model.save(obj, folder, **options)
    return df.saved_model.load(folder)


def function_of(*specs: Any, **options: Any) -> Any:
    """A decorator: the function, traced for ``specs``."""

    def decorate(f: Any) -> Any:
        traced = df.function(f, **options)
        traced.get_concrete_function(*specs)
        return traced

    return decorate


def test_a_loaded_module_is_called_as_the_original(tmp_path):
    line = Line()
    loaded = saved_and_loaded(line, tmp_path)
    np.testing.assert_array_equal(loaded(df.constant(X)), line(df.constant(X)))
    np.testing.assert_array_equal(loaded(X), line(X))
    np.testing.assert_array_equal(loaded(X.tolist()), line(X))


def test_an_input_signature_gives_the_default_signature(tmp_path):
    infer = saved_and_loaded(Line(), tmp_path).signatures["serving_default"]
    assert list(infer(x=df.constant(X))) == ["output_0"]
    np.testing.assert_array_equal(infer(x=df.constant(X))["output_0"], Line()(X))
    assert infer.structured_input_signature == ((), {"x": df.TensorSpec([None, 2], name="x")})
    assert infer.structured_outputs == {"output_0": df.TensorSpec([None, 3])}


def test_signatures_are_named_by_the_caller(tmp_path):
    module = df.Module()
    module.f = df.function(lambda x, y: {"sum": x + y, "product": x * y})
    one = module.f.get_concrete_function(df.TensorSpec([]), df.TensorSpec([]))
    loaded = saved_and_loaded(module, tmp_path, signatures={"both": one})
    assert list(loaded.signatures) == ["both"]
    results = loaded.signatures["both"](x=df.constant(2.0), y=df.constant(3.0))
    assert {name: float(x) for name, x in results.items()} == {"sum": 5.0, "product": 6.0}


def test_a_signature_needs_one_trace(tmp_path):
    module = df.Module()
    module.f = df.function(lambda x: x)
    with pytest.raises(InvalidArgumentError, match="has 0 traces"):
        df.saved_model.save(module, tmp_path, signatures=module.f)
    assert not df.saved_model.contains_saved_model(tmp_path)


def test_variables_are_shared_trainable_and_restored_by_name(tmp_path):
    module = Line()
    module.again = [module.w, {"b": module.b}]
    module.steps = df.Variable(3, trainable=False, name="steps")
    loaded = saved_and_loaded(module, tmp_path)
    assert loaded.again[0] is loaded.w
    assert loaded.again[1]["b"] is loaded.b
    assert [v.name for v in loaded.trainable_variables] == ["w:0", "b:0"]
    assert loaded.steps.dtype is df.int32
    loaded.w.assign(df.zeros([2, 3]))
    np.testing.assert_array_equal(loaded(X), np.tile([1.0, 2.0, 3.0], (2, 1)))


def test_variables_of_dynamic_shapes_are_restored(tmp_path):
    module = df.Module()
    module.rows = df.Variable([[1.0, 2.0]], shape=[None, 2])
    loaded = saved_and_loaded(module, tmp_path)
    assert loaded.rows.shape.as_list() == [None, 2]
    loaded.rows.assign([[1.0, 2.0], [3.0, 4.0]])
    assert loaded.rows.numpy().tolist() == [[1.0, 2.0], [3.0, 4.0]]


@pytest.mark.parametrize("name", ["bfloat16", "float8_e5m2", "complex128", "uint64", "bool", "string"])
def test_variables_of_every_dtype_keep_their_bits(tmp_path, name):
    module = df.Module()
    value = ["a", "\u00e4"] if name == "string" else df.cast([0.0, 1.0], name)
    module.v = df.Variable(value)
    loaded = saved_and_loaded(module, tmp_path)
    assert loaded.v.dtype.name == name
    assert loaded.v.numpy().tolist() == module.v.numpy().tolist()


def test_plain_attributes_are_restored(tmp_path):
    module = df.Module(name="net")
    module.f = function_of(df.TensorSpec([]))(lambda x: x)
    module.rate, module.sizes, module.options = 0.5, (3, [4, None]), {"a": "b", 1: True}
    module.constant = df.constant([1.0, 2.0])
    loaded = saved_and_loaded(module, tmp_path)
    assert (loaded.rate, loaded.sizes, loaded.options, loaded.name) == (
        0.5,
        (3, [4, None]),
        {"a": "b", 1: True},
        "net",
    )
    np.testing.assert_array_equal(loaded.constant, [1.0, 2.0])


def test_objects_may_refer_to_each_other(tmp_path):
    parent, child = Line(), Line()
    parent.child, child.parent = child, parent
    loaded = saved_and_loaded(parent, tmp_path)
    assert loaded.child.parent is loaded


def test_a_loaded_function_picks_its_trace_by_the_arguments(tmp_path):
    module = df.Module()
    module.f = df.function(lambda x, n=2, *, negate=False: -x * n if negate else x * n)
    module.f(df.constant([1.0, 2.0]))
    module.f(df.constant(1), n=5)
    module.f(df.constant(1.0), negate=True)
    f = saved_and_loaded(module, tmp_path).f
    assert f(df.constant([1.0, 2.0])).numpy().tolist() == [2.0, 4.0]
    assert int(f(df.constant(2), 5)) == 10
    assert float(f(3.0, negate=True)) == -6.0
    assert f([3.0, 4.0]).numpy().tolist() == [6.0, 8.0]
    assert len(f.concrete_functions) == 3
    with pytest.raises(InvalidArgumentError, match=r"no trace .* takes \(float32\[1, 2\], 2, False\)"):
        f(df.constant([[1.0, 2.0]]))


def test_structures_of_arguments_and_results_are_kept(tmp_path):
    module = df.Module()
    module.f = df.function(lambda pair, named: {"a": [pair[0] + named["x"], None], "b": (pair[1], ())})
    arguments = (df.constant(1.0), df.constant(2)), {"x": df.constant(3.0)}
    expected = module.f(*arguments)
    result = saved_and_loaded(module, tmp_path).f(*arguments)
    assert str(result) == str(expected)


@pytest.mark.parametrize("mode", ["eager tape", "tape in a function", "second derivative"])
def test_gradients_are_those_of_the_original(tmp_path, mode):
    line = Line()
    loaded = saved_and_loaded(line, tmp_path)

    def gradient(module: Any) -> Any:
        def run(x: Any) -> Any:
            with df.GradientTape() as outer:
                with df.GradientTape() as tape:
                    y = df.reduce_sum(df.exp(module(x) * 0.1) ** 3)
                g = tape.gradient(y, module.w)
                z = df.reduce_sum(g * g)
            return outer.gradient(z, module.w) if mode == "second derivative" else g

        return (df.function(run) if mode == "tape in a function" else run)(df.constant(X))

    np.testing.assert_array_equal(gradient(loaded), gradient(line))


def test_assignments_draws_and_prints_run_at_each_call(tmp_path, capfd):
    module = df.Module()
    module.count = df.Variable(0)
    module.generator = df.random.Generator.from_seed(3)

    @df.function(input_signature=[df.TensorSpec([2])])
    def step(x: Any) -> Any:
        module.count.assign_add(1)
        df.print("count", module.count)
        return x + module.generator.uniform([2])

    module.step = step
    loaded = saved_and_loaded(module, tmp_path)
    state = df.random.Generator.from_seed(3)
    for i in range(1, 4):
        np.testing.assert_array_equal(loaded.step(df.zeros([2])), state.uniform([2]))
        assert int(loaded.count) == i
    assert int(module.count) == 0
    assert capfd.readouterr().err == "count 1\ncount 2\ncount 3\n"


def test_control_flow_is_kept(tmp_path):
    module = df.Module()

    @df.function(input_signature=[df.TensorSpec([]), df.TensorSpec([], df.int32)])
    def power(x: Any, n: Any) -> Any:
        y = df.constant(1.0)
        while n > 0:
            if n % 2 == 1:
                y = y * x
            x, n = x * x, n // 2
        return y

    module.power = power
    loaded = saved_and_loaded(module, tmp_path)
    with df.GradientTape() as tape:
        x = df.constant(3.0)
        tape.watch(x)
        y = loaded.power(x, df.constant(5))
    assert float(y) == 243.0
    assert float(tape.gradient(y, x)) == 405.0


def test_convolutions_of_dynamic_batches_are_kept_with_their_gradients(tmp_path):
    module = df.Module()
    module.w = df.Variable(np.random.default_rng(0).normal(size=(3, 3, 2, 4)).astype("f"))

    @df.function(input_signature=[df.TensorSpec([None, 8, 8, 2])])
    def net(x: Any) -> Any:
        return df.nn.max_pool2d(df.nn.relu(df.nn.conv2d(x, module.w, 1, "SAME")), 2, 2, "VALID")

    module.net = net
    loaded = saved_and_loaded(module, tmp_path)
    for batch in (1, 5):
        x = df.constant(np.random.default_rng(batch).normal(size=(batch, 8, 8, 2)).astype("f"))
        gradients = []
        for model in (module, loaded):
            with df.GradientTape() as tape:
                y = df.reduce_sum(model.net(x) ** 2)
            gradients.append(tape.gradient(y, model.w).numpy())
        np.testing.assert_array_equal(*gradients)


def test_convolutions_of_dynamic_images_are_kept_with_their_gradients(tmp_path):
    module = df.Module()
    module.w = df.Variable(np.random.default_rng(0).normal(size=(3, 3, 1, 2)).astype("f"))

    @df.function(input_signature=[df.TensorSpec([None, None, None, 1])])
    def net(x: Any) -> Any:
        return df.nn.max_pool2d(df.nn.conv2d(x, module.w, 2, [[0, 0], [1, 1], [1, 1], [0, 0]]), 2, 2, "VALID")

    module.net = net
    loaded = saved_and_loaded(module, tmp_path)
    for size in (8, 13):
        x = df.constant(np.random.default_rng(size).normal(size=(2, size, size, 1)).astype("f"))
        gradients = []
        for model in (module, loaded):
            with df.GradientTape() as tape:
                y = df.reduce_sum(model.net(x) ** 2)
            gradients.append(tape.gradient(y, model.w).numpy())
        np.testing.assert_array_equal(*gradients)


@pytest.mark.parametrize(
    "draw",
    [
        lambda x: df.nn.dropout(x, 0.5, seed=3),
        lambda x: df.random.normal(df.shape(x), seed=3),
        lambda x: df.random.truncated_normal(df.shape(x), seed=3),
        lambda x: df.random.uniform(df.shape(x), 2, 9, df.int32, seed=3),
    ],
    ids=["dropout", "normal", "truncated normal", "integers"],
)
def test_draws_of_dynamic_sizes_are_kept(tmp_path, draw):
    module = df.Module()
    module.draw = df.function(draw, input_signature=[df.TensorSpec([None, 4])])
    loaded = saved_and_loaded(module, tmp_path)
    drawn = []
    for model in (module, loaded):
        df.random.set_seed(5)
        drawn.append([model.draw(df.ones([rows, 4])).numpy() for rows in (3, 7)])
    for mine, expected in zip(*drawn, strict=True):
        np.testing.assert_array_equal(mine, expected)


def test_a_call_that_needs_other_dynamic_sizes_is_refused_with_its_line(tmp_path):
    module = df.Module()
    module.f = df.function(lambda x: df.split(x, 2), input_signature=[df.TensorSpec([None])])
    with pytest.raises(InvalidArgumentError, match=r"give it known sizes(.|\n)*test_saved_model.py"):
        df.saved_model.save(module, tmp_path)


def test_a_loaded_model_is_saved_again(tmp_path):
    loaded = saved_and_loaded(Line(), tmp_path / "one")
    again = saved_and_loaded(loaded, tmp_path / "two")
    np.testing.assert_array_equal(again(X), Line()(X))
    assert list(again.signatures) == ["serving_default"]
    texts = [next((tmp_path / name).glob("graphs-*.txt")).read_text() for name in ("one", "two")]
    assert texts[0] == texts[1]


def test_a_loaded_model_is_trained_and_checkpointed(tmp_path):
    loaded = saved_and_loaded(Line(), tmp_path / "model")
    target = X @ np.ones((2, 3), np.float32)

    @df.function
    def step() -> Any:
        with df.GradientTape() as tape:
            loss = df.reduce_mean((loaded(df.constant(X)) - target) ** 2)
        variables = loaded.trainable_variables
        for v, g in zip(variables, tape.gradient(loss, variables), strict=True):
            v.assign_sub(0.02 * g)
        return loss

    losses = [float(step()) for _ in range(50)]
    assert losses[-1] < 0.5 * losses[0]
    path = df.train.Checkpoint(model=loaded).save(tmp_path / "ckpt")
    line = Line()
    df.train.Checkpoint(model=line).restore(path).assert_consumed()
    np.testing.assert_array_equal(line.w, loaded.w)


def test_a_function_is_saved_by_itself(tmp_path):
    v = df.Variable(2.0)
    f = df.function(lambda x: x * v, input_signature=[df.TensorSpec([])])
    loaded = saved_and_loaded(f, tmp_path)
    assert float(loaded(3.0)) == 6.0
    assert float(loaded.signatures["serving_default"](x=df.constant(4.0))["output_0"]) == 8.0


def test_a_concrete_function_is_an_attribute(tmp_path):
    module = df.Module()
    module.f = df.function(lambda x: x + 1.0).get_concrete_function(df.TensorSpec([2]))
    loaded = saved_and_loaded(module, tmp_path)
    assert isinstance(loaded.f, type(module.f))
    assert loaded.f(df.zeros([2])).numpy().tolist() == [1.0, 1.0]


def test_captured_tensors_and_long_constants_are_kept(tmp_path):
    module = df.Module()
    table = df.constant(np.arange(1000.0))
    module.f = function_of(df.TensorSpec([1000], df.float64))(lambda x: x + table + np.arange(1000.0))
    loaded = saved_and_loaded(module, tmp_path)
    np.testing.assert_array_equal(loaded.f(table), 3 * np.arange(1000.0))


def test_assets_are_taken_along(tmp_path):
    source = tmp_path / "words.txt"
    source.write_text("one two")
    module = df.Module()
    module.words = df.saved_model.Asset(source)
    module.read = df.function(lambda: df.io.read_file(module.words.asset_path), input_signature=[])
    df.saved_model.save(module, tmp_path / "model")
    source.unlink()
    (tmp_path / "model").rename(tmp_path / "moved")
    loaded = df.saved_model.load(tmp_path / "moved")
    assert loaded.read().numpy() == b"one two"
    assert loaded.words.path.parent.parent == tmp_path / "moved"


def test_another_process_loads_it_without_the_code(tmp_path):
    df.saved_model.save(Line(), tmp_path)
    program = (
        "import sys, dualflow as df; m = df.saved_model.load(sys.argv[1]); "
        "print(m(df.ones([1, 2])).numpy().tolist())"
    )
    command = [sys.executable, "-c", program, str(tmp_path)]
    ended = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    assert ended.stdout.strip() == str(Line()(df.ones([1, 2])).numpy().tolist())


def test_a_save_replaces_an_earlier_one_and_its_files(tmp_path):
    df.saved_model.save(Line(), tmp_path)
    first = {p.name for p in tmp_path.iterdir()}
    line = Line()
    line.b.assign([7.0, 8.0, 9.0])
    loaded = saved_and_loaded(line, tmp_path)
    assert loaded.b.numpy().tolist() == [7.0, 8.0, 9.0]
    assert len(list(tmp_path.iterdir())) == 3
    assert len(first & {p.name for p in tmp_path.iterdir()}) == 1


def test_a_failed_save_leaves_the_earlier_model(tmp_path):
    df.saved_model.save(Line(), tmp_path)
    before = {p.name for p in tmp_path.iterdir()}
    module = Line()
    module.f = function_of(df.TensorSpec([2]))(lambda x: df.py_function(lambda v: v, [x], df.float32))
    with pytest.raises(InvalidArgumentError, match=r"py_function can't be saved(.|\n)*test_saved_model.py"):
        df.saved_model.save(module, tmp_path)
    assert {p.name for p in tmp_path.iterdir()} == before
    df.saved_model.load(tmp_path)


def test_contains_saved_model(tmp_path):
    assert not df.saved_model.contains_saved_model(tmp_path)
    df.saved_model.save(Line(), tmp_path)
    assert df.saved_model.contains_saved_model(tmp_path)
    assert df.saved_model.contains_saved_model(str(tmp_path))


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: [df.Variable(1.0)], DTypeError, "assign it to an attribute of a df.Module"),
        (lambda: 3, DTypeError, "assign it to an attribute of a df.Module"),
        (lambda: df.Variable(1.0), DTypeError, "assign it to an attribute of a df.Module"),
    ],
)
def test_an_object_that_can_not_be_saved_is_an_error(tmp_path, make, error, message):
    with pytest.raises(error, match=message):
        df.saved_model.save(make(), tmp_path / "model")
    assert not (tmp_path / "model").exists()


def test_variables_as_arguments_are_an_error(tmp_path):
    module = df.Module()
    module.f = df.function(lambda v: v + 1.0)
    module.f(df.Variable(1.0))
    with pytest.raises(DTypeError, match="its argument v is a variable"):
        df.saved_model.save(module, tmp_path)


def test_saving_and_loading_in_a_trace_is_an_error(tmp_path):
    with pytest.raises(FailedPreconditionError, match="by eager code"):
        df.function(lambda: df.saved_model.save(Line(), tmp_path))()
    with pytest.raises(FailedPreconditionError, match="by eager code"):
        df.function(lambda: df.saved_model.load(tmp_path))()


def test_loading_nothing_names_what_is_there_instead(tmp_path):
    with pytest.raises(NotFoundError, match=r"has no file saved_model\.json"):
        df.saved_model.load(tmp_path)
    (tmp_path / "saved_model.pb").write_bytes(b"")
    with pytest.raises(NotFoundError, match="a SavedModel of TensorFlow"):
        df.saved_model.load(tmp_path)


def test_options_of_tensorflow_are_accepted_or_refused(tmp_path):
    options = df.saved_model.SaveOptions(save_debug_info=True, experimental_image_format=False)
    df.saved_model.save(Line(), tmp_path, options=options)
    df.saved_model.load(tmp_path, tags="serve", options=df.saved_model.LoadOptions())
    with pytest.raises(InvalidArgumentError, match="function_aliases=None alone"):
        df.saved_model.SaveOptions(function_aliases={"f": 1})
    with pytest.raises(InvalidArgumentError, match="no option 'nothing'"):
        df.saved_model.LoadOptions(nothing=1)
    with pytest.raises(InvalidArgumentError, match="omit tags"):
        df.saved_model.load(tmp_path, tags=["train"])

"""Extension types, ragged and sparse tensors as arguments, results and attributes of saved models."""

from __future__ import annotations

import subprocess
import sys
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import dualflow as df
from dualflow.core.errors import DTypeError, InvalidArgumentError


class Masked(df.experimental.ExtensionType):
    __name__ = "test_saved_composites.Masked"
    values: df.Tensor
    mask: df.Tensor
    unit: str = "m"

    def filled(self, value: float) -> Any:
        return df.where(self.mask, self.values, value)


class Everything(df.experimental.ExtensionType):
    __name__ = "test_saved_composites.Everything"
    inner: Masked
    rows: df.RaggedTensor
    pair: tuple[df.Tensor, int]
    table: Mapping[str, df.Tensor]
    size: df.TensorShape
    kind: df.DType
    nothing: df.Tensor | None = None


class Unnamed(df.experimental.ExtensionType):
    values: df.Tensor


def masked(*values: float, unit: str = "m") -> Masked:
    return Masked(list(values), [x > 0 for x in values], unit)


def everything() -> Everything:
    rows = df.ragged.constant([[1.0, 2.0], [3.0]])
    return Everything(masked(1.0, -1.0), rows, (2.0, 3), {"b": 4.0, "a": 5.0}, [2, None], df.int32)


def saved_and_loaded(folder: Path, **attributes: Any) -> Any:
    module = df.Module()
    for name, attribute in attributes.items():
        setattr(module, name, attribute)
    df.saved_model.save(module, folder)
    return df.saved_model.load(folder)


def test_a_function_takes_and_returns_extension_types(tmp_path):
    weight = df.Variable(3.0)
    scale = df.function(lambda x: Masked(x.values * weight, x.mask, x.unit))
    scale(masked(1.0, -2.0))
    loaded = saved_and_loaded(tmp_path, scale=scale, weight=weight)
    result = loaded.scale(masked(1.0, -2.0))
    assert type(result) is Masked
    assert result.filled(0.0).numpy().tolist() == [3.0, 0.0]
    loaded.weight.assign(2.0)
    assert loaded.scale(masked(5.0, 6.0)).values.numpy().tolist() == [10.0, 12.0]


def test_gradients_flow_through_a_loaded_function_of_extension_types(tmp_path):
    square = df.function(lambda x: Masked(x.values**2, x.mask))
    square(masked(1.0, 2.0))
    loaded = saved_and_loaded(tmp_path, square=square)
    values = df.constant([3.0, 4.0])
    with df.GradientTape() as tape:
        tape.watch(values)
        y = loaded.square(Masked(values, [True, False])).filled(0.0)
    assert tape.gradient(y, values).numpy().tolist() == [6.0, 0.0]


def test_every_kind_of_field_is_restored(tmp_path):
    same = df.function(lambda x: x)
    same(everything())
    result = saved_and_loaded(tmp_path, same=same).same(everything())
    assert bool(result.rows.to_list() == [[1.0, 2.0], [3.0]])
    assert (result.size, result.kind, result.nothing, result.pair[1]) == ([2, None], df.int32, None, 3)
    assert {name: float(x) for name, x in result.table.items()} == {"b": 4.0, "a": 5.0}
    assert list(result.table) == ["b", "a"]
    assert result.inner.unit == "m"


def test_a_trace_for_a_spec_takes_any_size(tmp_path):
    spec = Masked.Spec(df.TensorSpec([None]), df.TensorSpec([None], df.bool), "m")
    filled = df.function(lambda x: x.filled(9.0), input_signature=[spec])
    loaded = saved_and_loaded(tmp_path, filled=filled)
    assert loaded.filled(masked(1.0, -1.0, 2.0)).numpy().tolist() == [1.0, 9.0, 2.0]
    assert loaded.filled.input_signature == (spec,)


def test_python_values_of_fields_select_the_trace(tmp_path):
    scale = df.function(lambda x: x.values * (1.0 if x.unit == "m" else 1000.0))
    scale(masked(1.0))
    scale(masked(1.0, unit="km"))
    loaded = saved_and_loaded(tmp_path, scale=scale)
    assert float(loaded.scale(masked(2.0, unit="km"))[0]) == 2000.0
    with pytest.raises(InvalidArgumentError, match="no trace that was saved takes"):
        loaded.scale(masked(2.0, unit="mile"))


@pytest.mark.parametrize(
    "value",
    [
        df.ragged.constant([[1.0], [], [2.0, 3.0]]),
        df.ragged.constant([[[1, 2], [3]], [[]]]),
        df.SparseTensor([[0, 1], [2, 0]], [5.0, 6.0], [3, 4]),
        df.IndexedSlices([[1.0, 2.0]], [3]),
        df.IndexedSlices([[1.0, 2.0]], [3], [5, 2]),
    ],
    ids=["ragged", "doubly ragged", "sparse", "slices", "slices of a shape"],
)
def test_composites_of_dualflow_are_saved(tmp_path, value):
    same = df.function(lambda x: {"y": [x]})
    same(value)
    loaded = saved_and_loaded(tmp_path, same=same, value=value)
    for result in (loaded.same(value)["y"][0], loaded.value):
        assert type(result) is type(value)
        for restored, original in zip(
            df.nest.flatten(result, True), df.nest.flatten(value, True), strict=True
        ):
            assert restored.numpy().tolist() == original.numpy().tolist()


def test_a_ragged_signature_takes_any_rows(tmp_path):
    spec = df.RaggedTensorSpec([None, None])
    total = df.function(lambda x: df.reduce_sum(x, axis=1), input_signature=[spec])
    loaded = saved_and_loaded(tmp_path, total=total)
    assert loaded.total(df.ragged.constant([[1.0], [2.0, 3.0]])).numpy().tolist() == [1.0, 5.0]
    assert loaded.total.input_signature == (spec,)


def test_attributes_and_captured_values_share_their_tensors(tmp_path):
    value = masked(1.0, -1.0)
    add = df.function(lambda x: x + value.filled(0.0))
    add(df.constant([1.0, 1.0]))
    loaded = saved_and_loaded(tmp_path, add=add, value=value, nested={"deep": [everything()]})
    assert loaded.add(df.constant([1.0, 1.0])).numpy().tolist() == [2.0, 1.0]
    assert type(loaded.value) is Masked
    assert loaded.value.unit == "m"
    assert loaded.nested["deep"][0].rows.to_list() == [[1.0, 2.0], [3.0]]


LOAD_WITHOUT_THE_CLASS = """
import sys, warnings
import dualflow as df
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    loaded = df.saved_model.load(sys.argv[1])
print(caught[0].message)
result = loaded.double(loaded.value)
print(type(result).__name__, result.unit, result.values.numpy().tolist())
print(loaded.double(result).values.numpy().tolist())
module = df.Module()
module.double = loaded.double
df.saved_model.save(module, sys.argv[2])
print(df.saved_model.load(sys.argv[2]).double(result).values.numpy().tolist())
"""


def test_without_its_class_an_extension_type_has_its_fields(tmp_path):
    double = df.function(lambda x: Masked(x.values * 2, x.mask, x.unit))
    double(masked(1.0, -1.0))
    saved_and_loaded(tmp_path / "first", double=double, value=masked(1.0, -1.0))
    folders = [str(tmp_path / "first"), str(tmp_path / "second")]
    shown = subprocess.run(
        [sys.executable, "-c", LOAD_WITHOUT_THE_CLASS, *folders], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    assert shown[0].startswith("The extension type test_saved_composites.Masked is not available: import")
    assert shown[1:] == [
        "AnonymousExtensionType m [2.0, -2.0]",
        "[4.0, -4.0]",
        "[4.0, -4.0]",
    ]


def test_a_class_that_is_defined_again_is_the_one_that_is_loaded(tmp_path):
    def define() -> Any:
        class Cell(df.experimental.ExtensionType):
            __name__ = "test_saved_composites.Cell"
            x: df.Tensor

        return Cell

    first = define()
    same = df.function(lambda x: x)
    same(first(1.0))
    second = define()
    result = saved_and_loaded(tmp_path, same=same).same(second(2.0))
    assert type(result) is second


def test_a_class_with_other_fields_is_refused(tmp_path):
    def define(**annotations: Any) -> Any:
        names = {"__annotations__": annotations, "__name__": "test_saved_composites.Changed"}
        return type("Changed", (df.experimental.ExtensionType,), names)

    before = define(x=df.Tensor, n=int)
    same = df.function(lambda x: x)
    same(before(1.0, 2))
    module = df.Module()
    module.same = same
    df.saved_model.save(module, tmp_path)
    for fields in ({"x": df.Tensor}, {"x": df.Tensor, "n": str}, {"n": int, "x": df.Tensor}):
        after = define(**fields)
        with pytest.raises(InvalidArgumentError, match="is not the one that was saved"):
            df.saved_model.load(tmp_path)
        del after


def test_an_extension_type_without_a_name_is_refused(tmp_path):
    module = df.Module()
    module.same = df.function(lambda x: x)
    module.same(Unnamed(1.0))
    with pytest.raises(DTypeError, match=r'__name__ = "project.Unnamed"'):
        df.saved_model.save(module, tmp_path)


def test_a_signature_has_the_tensors_of_a_composite_argument_by_name(tmp_path):
    spec = Masked.Spec(df.TensorSpec([None]), df.TensorSpec([None], df.bool), "m")
    module = df.Module()
    module.filled = df.function(lambda x: x.filled(0.0), input_signature=[spec])
    df.saved_model.save(module, tmp_path)
    serve = df.saved_model.load(tmp_path).signatures["serving_default"]
    result = serve(x_values=df.constant([1.0, 2.0]), x_mask=df.constant([True, False]))
    assert result["output_0"].numpy().tolist() == [1.0, 0.0]


def test_a_signature_that_returns_a_composite_is_refused(tmp_path):
    module = df.Module()
    module.f = df.function(lambda x: Masked(x, x > 0.0), input_signature=[df.TensorSpec([2])])
    with pytest.raises(DTypeError, match="a signature returns tensors alone"):
        df.saved_model.save(module, tmp_path, signatures=module.f)


def test_a_loaded_model_is_saved_again(tmp_path):
    same = df.function(lambda x: x)
    same(everything())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        loaded = saved_and_loaded(tmp_path / "first", same=same, value=masked(1.0))
        again = saved_and_loaded(tmp_path / "second", same=loaded.same, value=loaded.value)
    assert again.same(everything()).rows.to_list() == [[1.0, 2.0], [3.0]]
    assert again.value == masked(1.0)

"""bfloat16 in every op: computed in float32 and rounded, eager and compiled; and floats of 8 bits."""

from __future__ import annotations

import copy
import itertools
import math
import os
import pickle
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from op_cases import check_each

import dualflow as df
from dualflow.core import dispatch
from dualflow.core.dtypes import float32, promote
from dualflow.ops.record import REGISTRY
from dualflow.ops.testing.cases import Case, cases

BRAIN = np.dtype(ml_dtypes.bfloat16)
E5M2, E4M3 = df.dtypes.experimental.float8_e5m2, df.dtypes.experimental.float8_e4m3fn
LAYOUTS = ("contiguous", "plain", "transposed", "empty", "scalar", "special values")


def rounded(array: Any) -> Any:
    """Floats as bfloat16, anything else as it is."""
    x = np.asarray(array)
    return x.astype(BRAIN) if x.dtype == np.float32 else x


def widened(x: Any) -> Any:
    """bfloat16 as float32, anything else as it is."""
    array = np.asarray(x)
    return array.astype(np.float32) if array.dtype == BRAIN else array


def brain_cases() -> Iterator[Case]:
    """Each op that takes float32, on such inputs in some layouts."""
    for op in REGISTRY.values():
        for case in cases(op):
            floats = [x for x in case.inputs if x.dtype == np.float32]
            if floats and op.effect is None and case.label.split("float32-")[-1] in LAYOUTS and taken(case):
                yield case


def taken(case: Case) -> bool:
    """Whether the op's rule takes floats of 16 bits, which linear algebra does not."""
    try:
        case.op.specs([df.constant(rounded(x)).spec for x in case.inputs], case.attrs)
    except df.errors.DTypeError:
        return False
    return True


BY_OP = {name: list(of_op) for name, of_op in itertools.groupby(brain_cases(), lambda case: case.op.name)}


def applied(case: Case, inputs: Any) -> list[Any]:
    result = dispatch.current().apply(case.op, tuple(inputs), case.attrs)
    return list(result) if isinstance(result, tuple) else [result]


def expected_of(case: Case, wide: list[Any]) -> list[Any]:
    """The op's result for float32, rounded where its rule requires it."""
    tensors = [df.constant(x) for x in wide]
    specs = case.op.specs([df.constant(rounded(x)).spec for x in wide], case.attrs)
    return [
        rounded(y) if spec.dtype == BRAIN else np.asarray(y)
        for y, spec in zip(applied(case, tensors), specs, strict=True)
    ]


@pytest.mark.parametrize("name", BY_OP)
def test_an_op_computes_in_float32_and_rounds(name: str) -> None:
    check_each(BY_OP[name], check_rounding)


def check_rounding(case: Case) -> None:
    wide = [rounded(x).astype(x.dtype) for x in case.inputs]
    expected = expected_of(case, wide)
    result = applied(case, [df.constant(rounded(x)) for x in case.inputs])
    for ours, theirs in zip(result, expected, strict=True):
        assert ours.dtype == np.asarray(theirs).dtype
        np.testing.assert_array_equal(widened(ours), widened(theirs))


ONCE = [
    case
    for of_op in BY_OP.values()
    for case in [case for case in of_op if case.label.endswith(("contiguous", "plain"))][-1:]
]


@pytest.mark.parametrize("case", ONCE, ids=str)
def test_a_compiled_op_gives_what_the_eager_one_does(case: Case) -> None:
    tensors = [df.constant(rounded(x)) for x in case.inputs]
    if not all(s.shape.is_static for s in case.op.specs([x.spec for x in tensors], case.attrs)):
        pytest.skip("its size is known only when it runs")
    compiled = df.function(lambda *xs: applied(case, xs))(*tensors)
    for ours, theirs in zip(compiled, applied(case, tensors), strict=True):
        assert ours.dtype == theirs.dtype
        if ours.dtype == "string":
            np.testing.assert_array_equal(ours, theirs)
            continue
        a, b = widened(ours).astype(np.complex128), widened(theirs).astype(np.complex128)
        for x, y in ((a.real, b.real), (a.imag, b.imag)):
            np.testing.assert_allclose(x, y, rtol=2.0**-7, atol=2.0**-120)  # one unit in the last place


# Casts


def bits(x: Any) -> Any:
    return np.asarray(x).view(np.uint16)


@given(st.lists(st.integers(0, 2**32 - 1), min_size=1, max_size=30))
def test_a_compiled_cast_rounds_to_nearest_even_whatever_the_bits(patterns: list[int]) -> None:
    x = np.array(patterns, np.uint32).view(np.float32)
    ours, theirs = bits(TO_BRAIN(df.constant(x))), x.astype(BRAIN)
    number = ~np.isnan(x)
    assert np.array_equal(ours[number], bits(theirs)[number])
    assert np.isnan(ours.view(BRAIN)[~number].astype(np.float32)).all()


TO_BRAIN = df.function(lambda x: df.cast(x, df.bfloat16), input_signature=[df.TensorSpec([None])])


def test_a_compiled_cast_back_is_exact() -> None:
    every = np.arange(1 << 16, dtype=np.uint16).view(BRAIN)
    result = df.function(lambda x: df.cast(x, float32))(df.constant(every))
    np.testing.assert_array_equal(result, every.astype(np.float32))


@pytest.mark.parametrize(
    "dtype", ["bool", "int8", "uint8", "int32", "int64", "float16", "float64", "complex64"]
)
def test_casts_of_other_dtypes(dtype: str) -> None:
    x = np.array([0, 1, 3, 100]).astype(dtype)
    there = df.function(lambda x: df.cast(x, df.bfloat16))(df.constant(x))
    assert there.numpy().astype(np.float32).tolist() == x.real.astype(np.float32).tolist()
    assert np.array_equal(df.function(lambda y: df.cast(y, dtype))(there), x)
    assert np.array_equal(df.cast(there, dtype), x)


# Programs


@pytest.mark.parametrize("offset", [-(2.0**-40), 0.0, 2.0**-40])
def test_a_compiled_cast_of_float64_rounds_by_way_of_float32_as_ml_dtypes_does(offset: float) -> None:
    lower = np.arange(0x7F81, dtype=np.uint16).view(BRAIN).astype(np.float64)
    x = lower * (1 + 2.0**-8 + offset)  # for powers of two, near the middle of two bfloat16
    there = df.function(lambda x: df.cast(x, df.bfloat16))(df.constant(x))
    np.testing.assert_array_equal(bits(there), x.astype(BRAIN).view(np.uint16))


def test_machine_code_computes_with_it() -> None:
    f = df.function(lambda x: df.nn.softmax(df.exp(x) * 2 + x))
    f(df.ones([3, 5], df.bfloat16))
    assert "native" in f.status()
    assert "NumPy" not in f.status()


def test_a_gradient_has_the_dtype_of_its_source(mode: Any) -> None:
    def slope(x: Any) -> Any:
        with df.GradientTape() as tape:
            tape.watch(x)
            y = df.reduce_sum(x**3)
        return tape.gradient(y, x)

    gradient = mode(slope)(df.constant([1.0, 2.0], df.bfloat16))
    assert gradient.dtype == df.bfloat16
    assert gradient.numpy().tolist() == [3.0, 12.0]


def test_a_variable_is_updated_in_it() -> None:
    v = df.Variable(df.constant([1.0, 2.0], df.bfloat16))
    step = df.function(lambda g: v.assign_sub(g * 0.5))
    for _ in range(3):
        step(df.constant([1.0, -1.0], df.bfloat16))
    assert v.dtype == df.bfloat16
    assert v.numpy().tolist() == [-0.5, 3.5]


def test_a_loop_carries_it() -> None:
    @df.function
    def power(x: Any, n: Any) -> Any:
        y = df.ones_like(x)
        for _ in df.range(n):
            y = y * x
        return y

    assert power(df.constant(2.0, df.bfloat16), df.constant(5)).numpy() == 32


def test_constants_and_creation() -> None:
    for x in (
        df.zeros([2], df.bfloat16),
        df.ones([2], "bfloat16"),
        df.fill([2], df.constant(1.5, df.bfloat16)),
        df.eye(2, dtype=df.bfloat16),
        df.one_hot([1, 0], 2, dtype=df.bfloat16),
        df.zeros_like(df.ones([2], df.bfloat16)),
        df.random.normal([2], dtype=df.bfloat16),
        df.random.uniform([2], dtype=df.bfloat16),
    ):
        assert x.dtype == df.bfloat16
        assert x.shape[0] == 2


# The dtype


def test_the_dtype_has_many_names() -> None:
    assert df.bfloat16 is df.as_dtype("bfloat16") is df.as_dtype(14) is df.as_dtype(ml_dtypes.bfloat16)
    assert df.bfloat16 is df.dtypes.bfloat16 is df.as_dtype(BRAIN)
    assert repr(df.bfloat16) == "tf.bfloat16"
    assert (df.bfloat16.size, df.bfloat16.is_floating, df.bfloat16.as_datatype_enum) == (2, True, 14)
    assert df.bfloat16.as_numpy_dtype is ml_dtypes.bfloat16
    assert float(df.bfloat16.max) == float(ml_dtypes.finfo(BRAIN).max) == -float(df.bfloat16.min)
    assert (E5M2.as_datatype_enum, E4M3.as_datatype_enum) == (24, 25)


def test_it_promotes_with_other_dtypes() -> None:
    brain = df.bfloat16
    assert promote(brain, df.float32) is promote(df.float32, brain) is df.float32
    assert promote(brain, df.float16) is promote(df.float16, brain) is df.float32
    assert promote(brain, df.float64) is df.float64
    assert promote(brain, df.complex64) is df.complex64
    assert promote(brain, df.int32) is promote(df.bool, brain) is brain
    assert promote(brain, E5M2) is brain
    x = df.constant([1.0], brain)
    assert (x + 1.5).dtype == (1 + x).dtype == (x + np.float32(1)).dtype == brain
    assert (x + df.constant(1.0)).dtype == df.float32


def test_numpy_takes_it_and_gives_it() -> None:
    x = np.array([1.5, 2.5], BRAIN)
    assert df.constant(x).dtype == df.bfloat16
    assert np.asarray(df.constant(x)).dtype == BRAIN
    assert df.constant(x).numpy().tolist() == [1.5, 2.5]


def test_it_prints_as_tensorflows() -> None:
    assert str(df.constant([1.5, 2.0], df.bfloat16)) == "tf.Tensor([1.5 2], shape=(2,), dtype=bfloat16)"
    assert repr(df.constant(1.5, df.bfloat16)) == "<tf.Tensor: shape=(), dtype=bfloat16, numpy=1.5>"


def test_copies_are_equal() -> None:
    x = df.constant([1.5, 2.5], df.bfloat16)
    for y in (copy.copy(x), copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
        assert y.dtype == df.bfloat16
        assert y.numpy().tolist() == [1.5, 2.5]


def test_another_process_reads_it(tmp_path: Any) -> None:
    file = tmp_path / "x.pickle"
    file.write_bytes(pickle.dumps(df.constant([1.5], df.bfloat16) * 2))
    program = f"import pickle; print(repr(pickle.load(open({os.fspath(file)!r}, 'rb')) + 1))"
    output = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    ).stdout
    assert output == "<tf.Tensor: shape=(1,), dtype=bfloat16, numpy=array([4], dtype=bfloat16)>\n"


# Floats of 8 bits


@pytest.mark.parametrize("dtype", [E5M2, E4M3])
def test_floats_of_8_bits_are_cast_and_moved(mode: Any, dtype: Any) -> None:
    x = np.array([0.3, 1.0, -3.3, 240.0], np.float32)
    stored = mode(lambda x: df.cast(x, dtype))(df.constant(x))
    assert stored.dtype == dtype
    np.testing.assert_array_equal(stored.numpy(), x.astype(dtype.dtype))
    back = mode(lambda y: df.cast(df.reshape(df.concat([y, y[1:]], 0), [-1, 1]), df.float32))(stored)
    again = x.astype(dtype.dtype).astype(np.float32)
    np.testing.assert_array_equal(back[:, 0], [*again, *again[1:]])


@pytest.mark.parametrize("dtype", [E5M2, E4M3])
def test_nothing_computes_with_floats_of_8_bits(mode: Any, dtype: Any) -> None:
    x = df.cast([1.0, 2.0], dtype)
    for compute in (lambda x: x + x, df.exp, df.reduce_sum, lambda x: df.matmul(x[None], x[:, None])):
        with pytest.raises(df.errors.DTypeError, match=f"{dtype.name}.* cast it to bfloat16 or float32"):
            mode(compute)(x)


def test_two_floats_of_8_bits_do_not_promote() -> None:
    with pytest.raises(df.errors.DTypeError, match="cast them to bfloat16 or float32"):
        promote(E5M2, E4M3)


def test_narrow_floats_masked_outside_of_a_gradient() -> None:
    x = df.constant([[1.0, -math.inf], [2.0, 2.0]], df.bfloat16)
    result = df.reduce_logsumexp(x, 1)
    assert result.dtype is df.bfloat16
    assert widened(result.numpy()).tolist() == [1.0, 2.6875]  # 2 + log(2), to 8 bits

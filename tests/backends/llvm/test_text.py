"""The LLVM IR writer: the effect of each instruction, checked by running it."""

from __future__ import annotations

import ctypes
import functools
import operator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dualflow.backends.llvm.runtime.compiler import assembly
from dualflow.backends.llvm.runtime.jit import compile_text
from dualflow.backends.llvm.runtime.target import vector_bits
from dualflow.backends.llvm.text import BOOL, F16, F32, F64, I8, I32, I64, PTR, U64, VOID, LlvmModule, Type
from dualflow.core.errors import DTypeError, InternalError

DTYPES = [np.dtype(c) for c in "?bBhHiIqQefd"]
FLOATS = [d for d in DTYPES if d.kind == "f"]
INTEGERS = [d for d in DTYPES if d.kind in "iu"]
LANES = [1, 4, 16]


def run(module: LlvmModule, name: str, restype: Any, *args: Any) -> Any:
    """Compile a module and call a function of integers and pointers."""
    library = compile_text(module.text(), [name], {})
    argtypes = [ctypes.c_void_p if isinstance(a, np.ndarray) else ctypes.c_int64 for a in args]
    call = ctypes.CFUNCTYPE(restype, *argtypes)(library.address(name))
    return call(*[a.ctypes.data if isinstance(a, np.ndarray) else a for a in args])


def any_bits(dtype: np.dtype[Any], count: int) -> np.ndarray:
    """Random bit patterns: for floats, every exponent, denormals, infinities and NaN."""
    bits = np.random.default_rng(7).integers(0, 256, count * dtype.itemsize, dtype=np.uint8)
    return bits % 2 == 1 if dtype.kind == "b" else bits.view(dtype)


def same(left: np.ndarray, right: np.ndarray) -> None:
    """Equal, NaN and the sign of zero included."""
    np.testing.assert_array_equal(left, right, strict=True)
    if left.dtype.kind == "f":
        np.testing.assert_array_equal(np.signbit(left) | np.isnan(left), np.signbit(right) | np.isnan(right))


# Types and constants


def test_types_are_interned_so_that_equal_means_identical():
    assert Type("f", 32, 8) is F32.vector(8)
    assert F32.vector(8).scalar is F32
    assert F64.vector(4).as_int is I64.vector(4)


def test_dtype_without_a_register_is_refused_by_name():
    with pytest.raises(DTypeError, match="datetime64"):
        Type.of_dtype(np.datetime64)


@given(st.floats(width=64), st.sampled_from(FLOATS))
def test_float_constant_is_the_number_rounded_to_its_type(number, dtype):
    with np.errstate(over="ignore"):
        expected = np.array(number).astype(dtype)
    digits = Type.of_dtype(dtype).literal(number)
    if dtype.itemsize == 2:
        written = np.array(int(digits[3:], 16), np.uint16).view(np.float16)
    else:
        written = np.array(int(digits, 16), np.uint64).view(np.float64).astype(dtype)
    same(written, expected)


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_integer_constant_wraps_to_its_width(dtype, elementwise):
    for number in (-1, 255, 2**40 + 3):
        add = elementwise(lambda module, n=number: lambda x: x + n, [dtype], dtype, 1)
        same(add(np.zeros(1, dtype)), np.array([number]).astype(dtype))


def test_fraction_is_no_integer_constant():
    x = LlvmModule().function("f", VOID, [("x", I64)]).args[0]
    with pytest.raises(DTypeError, match=r"0\.5 is not an integer"):
        x + 0.5


# Operators


ARITHMETIC = [operator.add, operator.sub, operator.mul]
COMPARISONS = [operator.lt, operator.le, operator.gt, operator.ge]
BITWISE = [operator.and_, operator.or_, operator.xor]


@pytest.mark.parametrize("lanes", LANES)
@pytest.mark.parametrize("op", ARITHMETIC + COMPARISONS, ids=lambda op: op.__name__)
def test_arithmetic_and_comparison_are_numpys(op, lanes, elementwise):
    for dtype in DTYPES[1:]:
        x, y = np.split(any_bits(dtype, 2000), 2)
        y[:10] = x[:10]
        with np.errstate(all="ignore"):
            expected = op(x, y)
        same(elementwise(lambda _: op, [dtype, dtype], expected.dtype, lanes)(x, y), expected)


@pytest.mark.parametrize("op", BITWISE, ids=lambda op: op.__name__)
def test_bitwise_operators_are_numpys(op, elementwise):
    for dtype in (DTYPES[0], *INTEGERS):
        x, y = np.split(any_bits(dtype, 2000), 2)
        same(elementwise(lambda _: op, [dtype, dtype], dtype, 4)(x, y), op(x, y))


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_integer_division_is_pythons(dtype, elementwise):
    x, y = np.split(any_bits(dtype, 2000), 2)
    y[(y == 0) | (y == dtype.type(-1 if dtype.kind == "i" else 0))] = 3
    same(elementwise(lambda _: operator.floordiv, [dtype, dtype], dtype, 4)(x, y), x // y)
    same(elementwise(lambda _: operator.mod, [dtype, dtype], dtype, 4)(x, y), x % y)
    whole = elementwise(lambda _: lambda a, b: a.quotient(b) * b + a.remainder(b), [dtype, dtype], dtype, 4)
    same(whole(x, y), x)


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_right_shift_keeps_the_sign_of_signed_integers(dtype, elementwise):
    x = any_bits(dtype, 1000)
    same(elementwise(lambda _: lambda v: v >> 3, [dtype], dtype, 16)(x), x >> dtype.type(3))
    same(elementwise(lambda _: lambda v: v << 3, [dtype], dtype, 16)(x), x << dtype.type(3))


@pytest.mark.parametrize("dtype", DTYPES[1:], ids=str)
def test_unary_operators_are_numpys(dtype, elementwise):
    x = any_bits(dtype, 1000)
    same(elementwise(lambda _: operator.neg, [dtype], dtype, 4)(x), -x)
    same(elementwise(lambda _: abs, [dtype], dtype, 4)(x), abs(x))


def test_nan_is_unequal_and_never_equal(elementwise):
    x = np.array([1.0, np.nan])
    same(elementwise(lambda _: lambda v: v.eq(v), [float], bool, 1)(x), np.array([True, False]))
    same(elementwise(lambda _: lambda v: v.ne(v), [float], bool, 1)(x), np.array([False, True]))


def test_number_on_the_left_of_an_operator(elementwise):
    f = elementwise(lambda _: lambda x: (1.0 - x) / (np.float64(2.0) * x) + (3 + x), [float], float, 4)
    x = np.arange(1.0, 9.0)
    same(f(x), (1.0 - x) / (2.0 * x) + (3 + x))


def test_a_scalar_is_splatted_to_a_vector(elementwise):
    f = elementwise(lambda _: lambda x: x.lane(0) * x, [float], float, 4)
    same(f(np.arange(8.0)), np.array([0.0, 0, 0, 0, 16, 20, 24, 28]))


@pytest.mark.parametrize("lanes", [1, 4])
def test_a_cast_keeps_the_lanes_of_a_vector(lanes):
    x = LlvmModule().function("f", VOID, [("x", F32.vector(8))]).args[0]
    with pytest.raises(DTypeError, match=f"cannot be spread to {lanes} lanes"):
        x.cast(F64.vector(lanes))


def test_different_types_must_be_cast():
    x, y = LlvmModule().function("f", VOID, [("x", F32), ("y", F64)]).args
    with pytest.raises(DTypeError, match="float and double: cast one of them"):
        x + y


def test_emitted_condition_has_no_python_truth():
    x = LlvmModule().function("f", VOID, [("x", F32)]).args[0]
    with pytest.raises(DTypeError, match="no truth value"):
        bool(x < 1)


def test_fma_rounds_once(elementwise):
    x = np.float64(1 + 2.0**-30)
    fused = elementwise(lambda _: lambda a, b, c: a.fma(b, c), [float] * 3, float, 1)(x, x, -1 - 2.0**-29)
    assert fused == 2.0**-60


# Conversions


@pytest.mark.parametrize("lanes", [1, 16])
@pytest.mark.parametrize("source", DTYPES, ids=str)
def test_cast_is_numpys_astype(source, lanes, elementwise):
    for target in DTYPES:
        x = any_bits(source, 2000)
        if source.kind == "f" and target.kind in "iu":
            x = np.linspace(-120 if target.kind == "i" else 0, 120, 1000).astype(source)
        with np.errstate(all="ignore"):
            expected = x.astype(target)
        same(elementwise(lambda _: lambda v: v, [source], target, lanes)(x), expected)


def test_double_to_half_rounds_once(elementwise):
    halfway = 1 + 2.0**-11
    near = [halfway, halfway + 2.0**-40, halfway - 2.0**-40, -halfway - 2.0**-40]
    x = np.array([*near, 65520 - 2.0**-30, 2.0**-25])
    same(elementwise(lambda _: lambda v: v, [float], np.float16, 1)(x), x.astype(np.float16))


@pytest.mark.parametrize("lanes", [1, 16])
def test_halves_are_cast_alike_without_instructions_for_it(lanes, elementwise):
    halves = np.arange(2**16, dtype=np.uint16).view(np.float16)
    with np.errstate(all="ignore"):
        ties = (halves.astype(np.float32) + np.nextafter(halves, np.float16(np.inf)).astype(np.float32)) / 2
        singles = np.concatenate([ties, np.nextafter(ties, np.float32(0)), any_bits(np.dtype("f4"), 20000)])
        doubles = np.concatenate([singles.astype(np.float64), any_bits(np.dtype("f8"), 20000)])
        for x, target in (
            (halves, np.float32),
            (halves, np.float64),
            (singles, np.float16),
            (doubles, np.float16),
        ):
            plain = elementwise(lambda _: lambda v: v, [x.dtype], target, lanes, bits=128)
            same(plain(x), x.astype(target))


@pytest.mark.parametrize("lanes", [1, 16])
def test_float_beyond_the_integers_is_still_a_number(lanes, elementwise):
    x = np.array([np.nan, np.inf, -np.inf, 3e9, -3e9, -1.0], np.float32)
    to_i32 = elementwise(lambda _: lambda v: v, [np.float32], np.int32, lanes)
    low, high = np.iinfo(np.int32).min, np.iinfo(np.int32).max
    assert to_i32(x).tolist() == [0, high, low, high, low, -1]
    to_u8 = elementwise(lambda _: lambda v: v, [np.float32], np.uint8, lanes)
    assert to_u8(np.float32([-1, 257.5])).tolist() == [0, 255]
    to_u64 = elementwise(lambda _: lambda v: v, [np.float32], np.uint64, lanes)
    assert to_u64(np.float32([-1, 2.0**63])).tolist() == [0, 2**63]


def test_bitcast_keeps_the_bits(elementwise):
    x = any_bits(np.dtype(np.float32), 1000)
    f = elementwise(lambda _: lambda v: v.bitcast(v.type.as_int), [np.float32], np.int32, 16)
    same(f(x), x.view(np.int32))


# Lanes


@pytest.mark.parametrize("lanes", [1, 2, 4, 16])
def test_reduce_combines_every_lane(lanes, elementwise):
    f = elementwise(lambda _: lambda v: v.reduce(operator.add).splat(lanes), [np.int64], np.int64, lanes)
    x = np.arange(32)
    same(f(x), np.repeat(x.reshape(-1, lanes).sum(1), lanes))


@pytest.mark.parametrize("lanes", [1, 8, 32])
def test_any_and_all_see_every_lane(lanes, elementwise):
    x = np.ones((4, lanes), np.float32)
    x[1:3, -1] = 0
    x[2] = 0
    some = elementwise(lambda _: lambda v: v.ne(0).any().splat(lanes), [np.float32], bool, lanes)
    every = elementwise(lambda _: lambda v: v.ne(0).all().splat(lanes), [np.float32], bool, lanes)
    same(some(x)[:, 0], x.any(1))
    same(every(x)[:, 0], x.all(1))


def test_insert_and_shuffle_move_lanes(elementwise):
    f = elementwise(lambda _: lambda v: v.insert(0, v.lane(3)).shuffle([1, 0, 3, 2]), [int], int, 4)
    same(f(np.arange(4)), np.array([1, 3, 3, 2]))


def test_select_takes_numbers_and_splats(elementwise):
    f = elementwise(lambda _: lambda v: (v > 2).select(v.lane(0), 7), [float], float, 4)
    same(f(np.array([9.0, 1.0, 3.0, np.nan])), np.array([9.0, 7.0, 9.0, 7.0]))


# Memory


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("count", [0, 1, 7, 16])
def test_masked_store_leaves_the_other_lanes_alone(dtype, count):
    module = LlvmModule()
    f = module.function("copy", VOID, [("x", PTR), ("y", PTR), ("n", I64)])
    b, (x, y, n) = f.builder, f.args
    mask = b.first_lanes(n, 16)
    b.store(b.load(x, 0, Type.of_dtype(dtype, 16), mask), y, 0, mask)
    b.ret()
    source, target = any_bits(dtype, 16), np.ones(16, dtype)
    expected = np.concatenate([source[:count], target[count:]])
    run(module, "copy", None, source[:count].copy(), target, count)
    same(target, expected)


@pytest.mark.parametrize("dtype", [np.bool_, np.float16, np.float32, np.int64], ids=lambda d: d.__name__)
def test_gather_and_scatter_reach_any_element(dtype):
    module = LlvmModule()
    f = module.function("reverse", VOID, [("x", PTR), ("y", PTR)])
    b, (x, y) = f.builder, f.args
    lane = b.iota(I64.vector(8))
    b.scatter(b.gather(x, 14 - lane * 2, Type.of_dtype(dtype, 8)), y, lane * 3, lane < 5)
    b.ret()
    source, target = any_bits(np.dtype(dtype), 64)[:16].copy(), np.zeros(24, dtype)
    run(module, "reverse", None, source, target)
    expected = np.zeros(24, dtype)
    expected[0:15:3] = source[14:4:-2]
    same(target, expected)


def test_streaming_store_writes_the_same():
    module = LlvmModule()
    f = module.function("fill", VOID, [("y", PTR)])
    f.builder.store(f.builder.constant(F32.vector(16), 1.5), f.args[0], 0, streaming=True)
    f.builder.ret()
    target = np.zeros(32, np.float32)
    aligned = target[-target.ctypes.data // 4 % 16 :][:16]
    run(module, "fill", None, aligned)
    assert (aligned == 1.5).all()


def test_the_stack_can_be_read_back():
    module = LlvmModule()
    f = module.function("sum", I64, [])
    b = f.builder
    scratch = b.alloca(I64, 4)
    b.store(b.iota(I64.vector(4)) + 10, scratch, 0)
    b.ret(b.load(scratch, 0, I64.vector(4)).reduce(operator.add))
    assert run(module, "sum", ctypes.c_int64) == 46


# Control flow


@pytest.mark.parametrize("count", [0, 1, 10])
def test_loop_carries_accumulators_and_runs_exactly_its_range(count):
    module = LlvmModule()
    f = module.function("sums", I64, [("n", I64)])
    b, (n,) = f.builder, f.args
    with b.loop(0, n, 2, carried=[b.constant(I64, 0), b.constant(I64, 1)]) as loop:
        total, product = loop.carried
        with b.loop(0, loop.index, carried=[total]) as inner:
            inner.next(inner.carried[0] + inner.index)
        loop.next(inner.results[0], product * 3)
    b.ret(loop.results[0] * 1000 + loop.results[1])
    expected = 1000 * sum(j for i in range(0, count, 2) for j in range(i)) + 3 ** len(range(0, count, 2))
    assert run(module, "sums", ctypes.c_int64, count) == expected


@pytest.mark.parametrize("count", [0, 1, 5, 8])
def test_a_frozen_loop_runs_as_another(count):
    module = LlvmModule()
    f = module.function("f", I64, [("n", I64)])
    b, n = f.builder, f.args[0]
    with b.loop(1, n, 3, carried=[b.constant(I64, 0)], frozen=True) as loop:
        loop.next(loop.carried[0] * 10 + loop.index)
    b.ret(loop.results[0])
    expected = functools.reduce(lambda total, i: 10 * total + i, range(1, count, 3), 0)
    assert run(module, "f", ctypes.c_int64, count) == expected


@pytest.mark.parametrize("frozen", [False, True])
def test_llvm_replaces_products_of_an_index_by_increments_unless_the_loop_is_frozen(frozen):
    module = LlvmModule()
    f = module.function("f", VOID, [("x", PTR), ("n", I64), ("stride", I64)])
    b, (x, n, stride) = f.builder, f.args
    with b.loop(0, n, frozen=frozen) as loop:
        b.store(loop.index, x, loop.index * stride)
    b.ret()
    assert ("mul" in assembly(module.text(), vector_bits())) == frozen


def test_innermost_loops_begin_at_32_bytes():
    module = LlvmModule()
    f = module.function("f", VOID, [("x", PTR), ("n", I64)])
    b, (x, n) = f.builder, f.args
    with b.loop(0, n) as rows, b.loop(0, n) as columns:
        b.store(rows.index + columns.index, x, rows.index * n + columns.index)
    b.ret()
    assert assembly(module.text(), vector_bits()).count(".p2align\t5") == 1


def test_while_loop_stops_at_its_test():
    module = LlvmModule()
    f = module.function("collatz", I64, [("n", U64)])
    b = f.builder
    with b.while_loop([f.args[0], b.constant(I64, 0)]) as loop:
        n, steps = loop.carried
        loop.test(n.ne(1))
        (following,) = b.if_else((n & 1).eq(0), lambda: [n >> 1], lambda: [n * 3 + 1])
        loop.next(following, steps + 1)
    b.ret(loop.results[1])
    assert [run(module, "collatz", ctypes.c_int64, n) for n in (1, 6, 27)] == [0, 8, 111]


def test_if_then_runs_only_where_the_condition_holds():
    module = LlvmModule()
    f = module.function("clamp", VOID, [("x", PTR), ("n", I64)])
    b, (x, n) = f.builder, f.args
    with b.loop(0, n) as loop:
        value = b.load(x, loop.index, F64)
        with b.if_then(value > 1):
            b.store(b.constant(F64, 1), x, loop.index)
    b.ret()
    array = np.array([0.5, 2.0, np.nan, -3.0])
    run(module, "clamp", None, array, 4)
    same(array, np.array([0.5, 1.0, np.nan, -3.0]))


def test_functions_call_each_other_and_the_outside():
    module = LlvmModule()
    square = module.function("square", F64, [("x", F64)], "noinline", internal=True)
    square.builder.ret(square.args[0] * square.args[0])
    module.declare("cbrt", F64, [F64])
    f = module.function("f", I64, [("x", I64)])
    b = f.builder
    result = b.call("cbrt", [b.call("square", [f.args[0].cast(F64)])])
    b.ret(b.call_pointer(b.address("square"), F64, [result]).cast(I64))
    assert run(module, "f", ctypes.c_int64, 8) == 16


def test_call_with_the_wrong_types_names_both():
    module = LlvmModule()
    f = module.function("f", VOID, [("x", I32)])
    with pytest.raises(DTypeError, match=r"f takes \[i32\], not \[i64\]"):
        f.builder.call("f", [f.builder.constant(I64, 1)])


def test_loop_must_be_given_what_it_carries():
    b = LlvmModule().function("f", VOID, []).builder
    with b.while_loop([b.constant(I8, 0)]) as loop:
        loop.test(loop.carried[0] < 3)
        with pytest.raises(DTypeError, match="carries"):
            loop.next(b.constant(F16, 0))
        loop.next(loop.carried[0] + 1)


def test_two_functions_of_one_name_are_refused():
    module = LlvmModule()
    module.function("f", VOID, [])
    with pytest.raises(InternalError, match="f is defined twice"):
        module.function("f", VOID, [])


def test_code_of_any_size_is_accepted(elementwise):
    def chain(x):
        for _ in range(3000):
            x = x * 0.5 + 1.0
        return x

    x = np.linspace(0, 1, 8)
    np.testing.assert_allclose(elementwise(lambda _: chain, [float], float, 8)(x), chain(x), rtol=0)


def test_boolean_memory_reads_any_nonzero_byte_as_true():
    module = LlvmModule()
    f = module.function("truth", VOID, [("x", PTR), ("y", PTR)])
    b, (x, y) = f.builder, f.args
    b.store(b.load(x, 0, BOOL.vector(4)), y, 0)
    b.ret()
    out = np.zeros(4, np.uint8)
    run(module, "truth", None, np.array([0, 1, 2, 255], np.uint8), out)
    assert out.tolist() == [0, 1, 1, 1]

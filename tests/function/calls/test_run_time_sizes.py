"""Sizes that depend on data: one trace and one program of machine code serve them all."""

from __future__ import annotations

import pickle
import threading

import numpy as np
import pytest
from forked_programs import run_forked
from hypothesis import given, settings
from hypothesis import strategies as st

import dualflow as df
from dualflow.core.tree import leaves
from dualflow.graph.compiled import PartKind

WHOLE = [PartKind.NATIVE] if df.config.get_backend() == "llvm" else [PartKind.NATIVE, PartKind.NUMPY]
"""Only the default backend compiles data-dependent sizes."""
X = np.arange(12, dtype=np.float32) - 5
ROWS = X.reshape(4, 3)
BOUNDS = [(X, np.float32(t)) for t in (-100, 100, 5.5, 0, 3)]
NUMBERS = [(np.int32(n),) for n in (0, 1, 7, 100)]
COUNTS = [(X, np.int32(n)) for n in (0, 1, 5, 12)]
ENDS = [(X, np.int32(a), np.int32(b)) for a, b in ((0, 0), (2, 5), (3, 30), (-4, -1), (5, 2), (-90, 4))]


def normalised(x, t):
    y = df.boolean_mask(x, x > df.cast(t, x.dtype))
    return (y - df.reduce_mean(y)) / (df.math.reduce_std(y) + 1.0)


def two_masks(x, t):
    kept = x > df.cast(t, x.dtype)
    return df.reduce_sum(df.boolean_mask(x, kept) * df.boolean_mask(x * 2, kept))


def masked_product(x, t):
    y = df.reshape(x, [4, 3])
    z = df.boolean_mask(y, y[:, 0] > df.cast(t, x.dtype))
    return df.matmul(z, z, transpose_a=True), df.matmul(z, z, transpose_b=True)


def zeros_beside(x, n):
    part = x[:n]
    return part + df.zeros(df.shape(part)), df.ones_like(part)


PROGRAMS = {
    "zeros": (lambda n: df.reduce_sum(df.zeros([n]) + 1.0), NUMBERS),
    "ones of two axes": (lambda n: df.ones([n, 3]) * 2.0, NUMBERS),
    "fill": (lambda n: df.fill([2, n], 2.5), NUMBERS),
    "fill by a tensor": (lambda n: df.fill(df.stack([n, n + 1]), 2.5), NUMBERS[:3]),
    "range": (lambda n: df.range(n), NUMBERS),
    "reshape of an empty tensor": (lambda n: df.reshape(df.zeros([n]), df.stack([n, 1])), NUMBERS),
    "rows of a multiple": (lambda n: df.reshape(df.range(n * 3), [n, 3]), NUMBERS),
    "reshape with -1": (lambda n: df.reshape(df.range(n * 3), [3, -1]), NUMBERS),
    "uniform numbers": (lambda n: df.random.stateless_uniform([n, 3], (1, 2)), NUMBERS),
    "uniform float64": (lambda n: df.random.stateless_uniform([n], (1, 2), dtype=df.float64), NUMBERS),
    "normal numbers": (lambda n: df.random.stateless_normal(df.stack([n, n]), (1, 2)), NUMBERS[:3]),
    "random integers": (lambda n: df.random.stateless_uniform([n], (1, 2), 0, 9, df.int64), NUMBERS),
    "dropout": (lambda x, n: x[:n] * df.random.stateless_uniform(df.shape(x[:n]), (1, 2)), COUNTS),
    "a sum over a range": (lambda n: df.reduce_sum(df.range(n) ** 2), NUMBERS),
    "range of three": (lambda n: df.range(2, n, 3), NUMBERS),
    "range backwards": (lambda n: df.range(n, -3, -2), NUMBERS),
    "range of floats": (lambda n: df.range(0.0, df.cast(n, df.float32) / 10, 0.1), NUMBERS),
    "range by a step": (lambda n: df.range(0, 20, n + 1), NUMBERS),
    "slice to": (lambda x, n: df.reduce_sum(df.exp(x[:n])), COUNTS),
    "slice from": (lambda x, n: x[n:] * 2, COUNTS),
    "slice between": (lambda x, a, b: x[a:b], ENDS),
    "slice by a step": (lambda x, a, b: x[a:b:2] + 1, ENDS),
    "slice backwards": (lambda x, a, b: x[b:a:-1] + 1, ENDS),
    "slice of columns": (lambda x, n: df.reshape(x, [3, 4])[1:, :n, None] * 2, COUNTS),
    "zeros next to a slice": (zeros_beside, COUNTS),
    "mask": (lambda x, t: x[x > t], BOUNDS),
    "mask of rows": (lambda x, t: df.boolean_mask(df.reshape(x, [4, 3]), x[:4] > t), BOUNDS),
    "mask of columns": (lambda x, t: df.boolean_mask(df.reshape(x, [3, 4]), x[:4] > t, axis=1), BOUNDS),
    "mask and a chain": (normalised, [BOUNDS[0], BOUNDS[2]]),
    "softmax of a mask": (lambda x, t: df.nn.softmax(df.boolean_mask(x, x > t)), BOUNDS),
    "two masks": (two_masks, BOUNDS),
    "products of rows": (masked_product, BOUNDS),
    "where": (lambda x, t: df.where(df.reshape(x, [3, 2, 2]) > t), BOUNDS),
    "gather where": (lambda x, t: df.gather(x, df.where(x > t)[:, 0]) * 3.0, BOUNDS),
    "how many": (lambda x, t: df.shape(df.boolean_mask(x, x > t))[0] * 2, BOUNDS),
    "mask of a mask": (lambda x, t: (y := x[x > t])[y < 4.0], BOUNDS),
    "parts joined": (lambda x, t: df.concat([x[x > t], x[x < t], x[:1]], 0), BOUNDS),
    "parts stacked": (lambda x, t: df.stack([(y := x[x > t]), y * 2], 1), BOUNDS),
    "parts transposed": (
        lambda x, t: df.transpose(df.boolean_mask(df.reshape(x, [4, 3]), x[:4] > t)),
        BOUNDS,
    ),
    "sums of columns": (
        lambda x, t: df.reduce_sum(df.boolean_mask(df.reshape(x, [4, 3]), x[:4] > t), 0),
        BOUNDS,
    ),
    "reshape by a number": (lambda x, n: df.reduce_sum(df.reshape(x, [n, -1]), 1), COUNTS[1:2] + COUNTS[3:]),
    "reshape by a tensor": (lambda x, n: df.reshape(x, df.stack([-1, n])), COUNTS[1:2] + COUNTS[3:]),
    "flattened": (lambda x, n: df.reshape(df.reshape(x, [3, 4])[:, :n], [-1]), COUNTS),
    "padding": (lambda x, n: df.pad(x, [[n, 1]], constant_values=2.0), COUNTS),
    "tile": (lambda x, n: df.tile(df.reshape(x, [3, 4]), [n, 2]), COUNTS),
    "broadcast": (lambda x, n: df.broadcast_to(x, [n, 12]), COUNTS),
    "repeat": (lambda x, n: df.repeat(x, n), COUNTS),
    "repeat each": (lambda x, n: df.repeat(x[:3], df.stack([n, 0, 2])), COUNTS),
    "sequence mask": (lambda x, n: df.sequence_mask(df.stack([n, 1, 3])), COUNTS),
    "one hot": (lambda x, n: df.one_hot([0, 1, 2], n), COUNTS),
    "identity": (lambda x, n: df.eye(n), COUNTS),
    "linspace": (lambda x, n: df.linspace(0.0, 1.0, n + 1), COUNTS),
}


def traced(name):
    return df.function(PROGRAMS[name][0])


def as_tensors(values):
    return [df.constant(x) for x in values]


def assert_same(result, expected):
    for a, b in zip(leaves(result), leaves(expected), strict=True):
        assert a.dtype is b.dtype
        assert a.shape == b.shape
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", PROGRAMS)
def test_one_trace_of_machine_code_gives_what_eager_gives_for_all_sizes(name):
    program, cases = PROGRAMS[name]
    f = traced(name)
    for values in cases:
        inputs = as_tensors(values)
        assert_same(f(*inputs), program(*inputs))
    assert f.experimental_get_tracing_count() == 1
    (concrete,) = f.concrete_functions
    assert [part.kind for part in concrete.parts] == WHOLE


GRADIENT_CASES = [
    "slice to",
    "slice between",
    "slice by a step",
    "slice backwards",
    "mask",
    "mask of rows",
    "mask and a chain",
    "two masks",
    "products of rows",
    "gather where",
    "parts joined",
    "flattened",
    "padding",
    "tile",
    "broadcast",
    "repeat",
]


@pytest.mark.parametrize("name", GRADIENT_CASES)
def test_gradients_are_those_of_eager(name):
    program, cases = PROGRAMS[name]

    def slope(x, *others):
        with df.GradientTape() as tape:
            tape.watch(x)
            total = sum(df.reduce_sum(df.sin(y)) for y in leaves(program(x, *others)))
        return tape.gradient(total, x)

    f = df.function(slope)
    for values in cases:
        inputs = as_tensors([values[0].astype(np.float64), *values[1:]])
        assert_same(f(*inputs), slope(*inputs))
    assert [part.kind for part in f.concrete_functions[0].parts] == WHOLE


@pytest.mark.parametrize("name", ["mask", "slice between", "repeat"])
def test_a_tape_outside_differentiates_the_compiled_call(name):
    program, cases = PROGRAMS[name]
    f = traced(name)
    for values in cases:
        x, *others = as_tensors(values)
        slopes = []
        for called in (f, program):
            with df.GradientTape() as tape:
                tape.watch(x)
                y = df.reduce_sum(called(x, *others) ** 2)
            slopes.append(tape.gradient(y, x))
        assert_same(*slopes)


STEPS = {
    "mask": lambda x, n, t: x[x > t],
    "head": lambda x, n, t: x[:n],
    "tail": lambda x, n, t: x[n:],
    "backwards": lambda x, n, t: x[::-1],
    "every other": lambda x, n, t: x[n::2],
    "exp": lambda x, n, t: df.exp(-df.abs(x)),
    "twice": lambda x, n, t: df.concat([x, x], 0),
    "repeated": lambda x, n, t: df.repeat(x, 2),
    "with zeros": lambda x, n, t: x + df.zeros(df.shape(x)),
    "by its sum": lambda x, n, t: x / (1.0 + df.reduce_sum(df.abs(x))),
    "padded": lambda x, n, t: df.pad(x, [[1, n]]),
    "positions": lambda x, n, t: df.cast(df.range(df.shape(x)[0]), df.float32) * x,
    "where": lambda x, n, t: df.cast(df.where(x > t)[:, 0], df.float32),
    "rows": lambda x, n, t: df.reduce_sum(df.reshape(df.tile(x, [2]), [2, -1]), 0),
}


@settings(max_examples=settings.default.max_examples * 3 // 5, deadline=None)
@given(
    steps=st.lists(st.sampled_from(sorted(STEPS)), min_size=1, max_size=5),
    sizes=st.lists(st.tuples(st.integers(0, 6), st.floats(-2, 2, width=32)), min_size=1, max_size=3),
)
def test_random_programs_give_what_eager_gives(steps, sizes):
    def program(x, n, t):
        for step in steps:
            x = STEPS[step](x, n, t)
        return x, df.reduce_sum(x)

    f = df.function(program)
    for n, t in sizes:
        inputs = df.constant(X), df.constant(n), df.constant(np.float32(t))
        assert_same(f(*inputs), program(*inputs))
    kinds = [part.kind for part in f.concrete_functions[0].parts]
    assert kinds in ([PartKind.NATIVE], WHOLE)  # a program may have no such size


# Failures


@pytest.mark.parametrize(
    ("size", "error"),
    [
        (-1, df.errors.InvalidArgumentError),
        (1 << 40, df.errors.ResourceExhaustedError),
        (1 << 50, df.errors.ResourceExhaustedError),
    ],
)
def test_an_impossible_size_raises_and_variables_hold_what_eager_code_assigned(size, error):
    v, w = df.Variable(1.0), df.Variable(1.0)

    @df.function
    def f(n):
        v.assign_add(2.0)
        result = df.ones([n]) * v
        w.assign_add(2.0)
        return result

    with pytest.raises(error):
        f(df.constant(size))
    assert (v.numpy(), w.numpy()) == (3.0, 1.0)
    f(df.constant(3, df.int64 if size > 1 << 31 else df.int32))
    assert (v.numpy(), w.numpy()) == (5.0, 3.0)


NO_SCRATCH_MEMORY = """
import dualflow as df

programs = {
    "partial sums": lambda n: df.reduce_sum(df.ones([n, n])),
    "a row": lambda n: df.reduce_sum(df.nn.softmax(df.broadcast_to(df.ones([2, 1]), [2, n * 1024]))),
}
for name, program in programs.items():
    f = df.function(program)
    for n in (3, 1 << 30, 1 << 32, 5):
        try:
            print(name, n, f(df.constant(n, df.int64)).shape)
        except df.errors.ResourceExhaustedError:
            print(name, n, "no memory")
"""


def test_a_kernel_of_more_elements_than_memory_holds_does_not_run():
    """In a process of its own, which an invalid access would end; the largest square is 0 in 64 bits."""
    ran = run_forked(["-c", NO_SCRATCH_MEMORY])
    assert ran.returncode == 0, ran.stderr
    outcomes = ("3 ()", "1073741824 no memory", "4294967296 no memory", "5 ()")
    assert ran.stdout.splitlines() == [f"{name} {o}" for name in ("partial sums", "a row") for o in outcomes]


def test_sizes_that_do_not_fit_together_are_an_error():
    f = df.function(lambda x, n, m: df.zeros([n]) + x[:m])
    x = df.constant(X)
    assert f(x, df.constant(3), df.constant(3)).shape == [3]
    with pytest.raises(df.errors.InvalidArgumentError):
        f(x, df.constant(3), df.constant(4))


def test_a_size_of_one_is_repeated():
    f = df.function(lambda x, n, m: (x[:n] + x[:m] * 2.0, x[:n] * df.reshape(x, [3, 4])[:, :m]))
    x = df.constant(X)
    for n, m in ((3, 3), (1, 4), (4, 1), (1, 1), (1, 0), (0, 1), (0, 0)):
        inputs = x, df.constant(n), df.constant(m)
        assert_same(f(*inputs), f.python_function(*inputs))
    assert [part.kind for part in f.concrete_functions[0].parts] == WHOLE


def test_an_index_outside_of_a_part_is_an_error_of_the_users_line():
    f = df.function(lambda x, n: df.gather(x[:n], 3))
    x = df.constant(X)
    assert f(x, df.constant(4)).numpy() == X[3]
    with pytest.raises(df.errors.OutOfRangeError):
        f(x, df.constant(3))


def test_counts_below_zero_are_an_error():
    f = df.function(lambda x, r: df.repeat(x, r))
    with pytest.raises(df.errors.InvalidArgumentError, match="0 times or more"):
        f(df.constant([1.0, 2.0]), df.constant([3, -1]))


ROWS_OF_4 = df.reshape(df.range(8), [4, 2])
REFUSED = {
    "one size of a shape": (lambda n: df.reshape(X, [n]), 5, 12),
    "one size of two": (lambda n: df.reshape(X, [n, 3]), -3, 4),
    "a mask longer than the rows": (lambda n: df.boolean_mask(ROWS_OF_4, df.range(n) < 2), 6, 4),
    "a mask shorter than the rows": (lambda n: ROWS_OF_4[df.range(n) < 2], 3, 4),
    "fewer rows than a mask has": (lambda n: df.boolean_mask(df.ones([n, 2]), ROWS_OF_4 < 3), 3, 4),
    "partitions": (lambda n: df.dynamic_partition(ROWS_OF_4, df.zeros([n], df.int32), 2)[0], 3, 4),
    "classes": (lambda n: df.one_hot([0, 1], n), -1, 2),
    "rows and columns": (lambda n: df.eye(n), -1, 2),
    "the length of masks": (lambda n: df.sequence_mask([1, 2], n), -1, 2),
    "normal numbers": (lambda n: df.random.stateless_normal([n], [1, 2]), -1, 3),
    "a least number of counts": (lambda n: df.math.bincount([0, 1], minlength=n), -1, 3),
    "the place of the largest of none": (lambda n: df.argmax(df.ones([n])), 0, 3),
}


@pytest.mark.parametrize("name", REFUSED)
def test_eager_errors_are_raised_at_run_time(name):
    program, wrong, right = REFUSED[name]
    f = df.function(program)
    assert_same(f(df.constant(right)), program(df.constant(right)))
    for call in (program, f):
        with pytest.raises(df.errors.InvalidArgumentError):
            call(df.constant(wrong))


def test_a_range_without_a_step_is_an_error():
    f = df.function(lambda n: df.range(0, 5, n))
    with pytest.raises(df.errors.InvalidArgumentError, match="delta other than 0"):
        f(df.constant(0))


MISFITS = {
    "a negative size": (lambda n: df.ones([-n, 2]), "no negative sizes"),
    "a negative number of copies": (lambda n: df.tile(X, [-n]), "no negative sizes"),
    "a negative number of random numbers": (
        lambda n: df.random.stateless_uniform([-n], (1, 2)),
        "no negative sizes",
    ),
    "elements under another shape": (lambda n: df.reshape(X, [n, -1]), "12 is no multiple of 5"),
    "two operands": (lambda n: df.range(n) + df.range(n + 1), "sizes 5 and 6 meet"),
    "two factors": (lambda n: df.matmul(df.zeros([2, n]), df.zeros([3, 2])), "inner sizes 5 and 3 differ"),
    "joined parts": (lambda n: df.concat([df.zeros([2, n]), ROWS], 0), "differ on axis 1"),
    "stacked parts": (lambda n: df.stack([df.zeros([n]), X]), "differ on axis 0"),
}


@pytest.mark.parametrize("name", MISFITS)
def test_numpy_backend_raises_eagers_error_with_the_users_line_for_mismatched_sizes(name):
    program, words = MISFITS[name]
    n = df.constant(5)
    with pytest.raises(df.errors.InvalidArgumentError) as eager:
        program(n)
    with pytest.raises(df.errors.InvalidArgumentError) as compiled:
        df.function(program, backend="numpy")(n)
    if name != "a negative number of copies":  # eager code sees the number of copies, not the size
        assert words in str(eager.value)
    assert words in str(compiled.value)
    assert __file__ in "".join(compiled.value.__notes__)


def test_numpy_reports_sizes_that_no_memory_holds_and_the_op():
    f = df.function(lambda n: df.zeros([n, n]) + 1.0, backend="numpy")
    with pytest.raises(df.errors.ResourceExhaustedError, match="more elements than memory can hold"):
        f(df.constant(1 << 40))
    with pytest.raises(df.errors.ResourceExhaustedError, match=r"^add\(float32\[8388608, 8388608\]"):
        f(df.constant(1 << 23, df.int64))


@pytest.mark.parametrize(("old", "new"), [((0, 3), [0, -1]), ((4, 0), [-1, 0]), ((4, 0, 3), [0, -1, 3])])
def test_a_free_size_next_to_a_size_of_zero_is_that_of_eager_code(old, new):
    f = df.function(lambda x: df.reshape(x, new), input_signature=[df.TensorSpec([None] * len(old))])
    x = df.zeros(old)
    assert f(x).shape == df.reshape(x, new).shape


@pytest.mark.parametrize("shape", [(0, 3), (2, 3)])
@pytest.mark.parametrize("new_shape", [[8], [4, 2]])
def test_a_result_is_copied_from_an_argument_after_the_check_of_its_size(shape, new_shape):
    x = np.zeros(shape, np.float32)
    with pytest.raises(df.errors.InvalidArgumentError, match=f"{x.size} elements are not the 8 of the new"):
        df.function(df.reshape)(x, df.constant(new_shape))


WRAPPING = {
    "a sum of uint8": (lambda n: df.zeros([n + n]), np.uint8(200)),
    "a product of int16": (lambda n: df.zeros([n * n]), np.int16(300)),
    "a reduction of uint8": (lambda n: df.zeros([df.reduce_sum(df.stack([n, n]))]), np.uint8(130)),
    "a narrower dtype": (lambda n: df.zeros([df.cast(n, df.uint8)]), np.int32(300)),
    "a slice up to a sum": (lambda n: df.constant(X)[: n + n] + 1.0, np.uint8(130)),
}


@pytest.mark.parametrize("name", WRAPPING)
def test_sizes_computed_in_narrow_integers_wrap_around(name):
    program, n = WRAPPING[name]
    assert_same(df.function(program)(df.constant(n)), program(df.constant(n)))


@pytest.mark.llvm  # the one backend that compiles data-dependent sizes
@pytest.mark.parametrize(
    ("bound", "n"),
    [
        (lambda n: n + 1, 2**31 - 1),
        (lambda n: n * n, 65536),
        (lambda n: -n, -(2**31)),
        (lambda n: 2 * n, 2**30),
    ],
)
def test_a_bound_that_int32_does_not_hold_is_an_error(bound, n):
    f = df.function(lambda x, n: x[: bound(n)] + 1.0)
    assert_same(f(df.constant(X), df.constant(1)), df.constant(X)[: bound(1)] + 1.0)
    with pytest.raises(df.errors.InvalidArgumentError, match=f"int32 does not hold {bound(n)}; use int64"):
        f(df.constant(X), df.constant(n))
    assert_same(f(df.constant(X), df.constant(n, df.int64)), df.constant(X)[: bound(n)] + 1.0)


@pytest.mark.parametrize("bound", [5, 2**63 - 1, 2**63, 2**63 + 5, 2**64 - 3])
def test_unsigned_bounds_of_slices_are_not_negative(bound):
    n = df.constant(np.uint64(bound))
    for program in (lambda x, n: x[n:] + 1.0, lambda x, n: x[:n] + 1.0):
        assert_same(df.function(program)(df.constant(X), n), program(df.constant(X), n))


SHIFTS = [
    np.int64(-(2**63)),
    np.int64(-(2**63) + 5),
    np.int64(2**63 - 1),
    np.uint64(2**63 + 5),
    np.int8(-128),
]


@pytest.mark.parametrize("shift", SHIFTS, ids=str)
def test_a_roll_by_any_integer_is_a_permutation(shift):
    rolled = df.function(lambda x, n: df.roll(x, n, 0))(X, df.constant(shift))
    assert rolled.numpy().tolist() == np.roll(X, int(shift) % len(X)).tolist()


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_counts_up_to_a_limit_leave_out_the_largest_integer(dtype):
    integers = np.array([0, np.iinfo(dtype).max], dtype)
    count = df.function(lambda x: df.math.bincount(x, minlength=3, maxlength=4))
    assert count(integers).numpy().tolist() == [1, 0, 0, 0]


HUGE = {
    "zeros(": lambda n: df.zeros([n]),
    "zeros([n, n]": lambda n: df.zeros([n, n]) + 1.0,
    "zeros([n, 0, n]": lambda n: df.zeros([n, 0, n]),
    "range(": lambda n: df.range(n),
    "tile(": lambda n: df.tile(df.ones([3]), [n]),
    "repeat(": lambda n: df.repeat(df.ones([3]), n),
    "repeat(df.ones([2])": lambda n: df.repeat(df.ones([2]), df.stack([n, n])),
    "eye(": lambda n: df.eye(n),
    "eye(n, batch": lambda n: df.eye(n, batch_shape=[3]),
    "fill(": lambda n: df.fill([n, 2], 1.0),
    "one_hot(": lambda n: df.one_hot([0, 1], n),
    "broadcast_to(": lambda n: df.broadcast_to(df.ones([1]), [n]) * 2.0,
    "pad(": lambda n: df.pad(df.ones([1]), [[n, 0]]),
    "TensorArray(": lambda n: df.TensorArray(df.float32, size=n, element_shape=[3]).stack(),
}


@pytest.mark.parametrize("number", [1 << 47, 1 << 62, (1 << 64) // 3 + 1, (1 << 63) - 1])
@pytest.mark.parametrize("name", HUGE)
def test_sizes_that_no_memory_holds_are_errors_of_the_line(name, number):
    """``(1 << 64) // 3 + 1``: three copies overflow 64 bits to two elements."""
    program = HUGE[name]
    f = df.function(program, input_signature=[df.TensorSpec([], df.int64)])
    for call in (f, f):  # the first and a kept one
        with pytest.raises((df.errors.ResourceExhaustedError, df.errors.InvalidArgumentError)) as caught:
            call(df.constant(number, df.int64))
        text = "\n".join([str(caught.value), *getattr(caught.value, "__notes__", ())])
        assert __file__ in text
        assert name.split("(")[0] in text or "called at" in text  # the line's text, or NumPy's op
        assert not any(word in text for word in ("fused", "bind_size", "copy:", "required:", "report this"))
    with pytest.raises((df.errors.ResourceExhaustedError, df.errors.InvalidArgumentError)):
        program(df.constant(number, df.int64))


# Memory and threads


def test_results_keep_their_memory():
    f = traced("mask")
    inputs = as_tensors(BOUNDS[3])
    results = [f(*inputs) for _ in range(3)]
    for x in results:
        np.testing.assert_array_equal(x, X[X > 0])
    f(df.constant(-X), df.constant(np.float32(0)))
    np.testing.assert_array_equal(results[0], X[X > 0])


def test_a_part_of_a_variable_is_what_it_was_before_the_update():
    v = df.Variable(X)

    @df.function
    def f(n):
        part = v[:n]
        v.assign(v * 0.0)
        return part

    np.testing.assert_array_equal(f(df.constant(4)), X[:4])
    assert not v.numpy().any()


def test_threads_share_the_program():
    f = df.function(lambda n: df.reduce_sum(df.cast(df.range(n), df.float64)))
    f(df.constant(1))
    wrong = []

    def call(first):
        sums = {n: f(df.constant(n)).numpy() for n in range(first, 3000, 7)}
        wrong.extend(n for n, result in sums.items() if result != n * (n - 1) / 2)

    threads = [threading.Thread(target=call, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_large_sizes_are_shared_between_threads_and_small_ones_are_not_wrong():
    f = df.function(lambda n: df.reduce_sum(df.sqrt(df.cast(df.range(n), df.float64))))
    for n in (0, 1, 10, 1000, 1_000_000):
        np.testing.assert_allclose(f(df.constant(n)), np.sqrt(np.arange(n)).sum(), rtol=1e-12)


# Seen from outside


@pytest.mark.llvm  # about the steps that measure sizes
def test_the_graph_and_the_program_can_be_printed():
    f = traced("mask")
    f(*as_tensors(BOUNDS[0]))
    (concrete,) = f.concrete_functions
    assert "bind_size" in str(concrete.optimised_graph)
    assert "boolean_mask" in concrete.kernels


@pytest.mark.parametrize("backend", [None, "numpy"])
def test_the_graph_can_be_pickled(backend):
    f = df.function(lambda x, n: df.exp(x[:n]) + x[: n * 2][:n], backend=backend)
    f(df.constant(X), df.constant(3))
    graph = f.concrete_functions[0].optimised_graph
    assert str(pickle.loads(pickle.dumps(graph))) == str(graph)


@pytest.mark.parametrize("backend", ["numba", "numpy"])
def test_other_backends_give_the_same(backend):
    program, cases = PROGRAMS["mask and a chain"]
    f = df.function(program, backend=backend)
    for values in cases:
        inputs = as_tensors(values)
        assert_same(f(*inputs), program(*inputs))


@pytest.mark.llvm  # other backends leave the whole of such a function to NumPy
def test_a_host_call_between_native_parts():
    f = df.function(lambda x, t: df.reduce_sum(df.sort(x[x > t]) * 2.0))
    for x, t in BOUNDS:
        assert f(df.constant(x), df.constant(t)).numpy() == 2 * x[x > t].sum()
    kinds = [part.kind for part in f.concrete_functions[0].parts]
    assert set(kinds) == {PartKind.NATIVE, PartKind.NUMPY}


def test_known_rows_broadcast_to_a_number_known_only_at_run_time():
    f = df.function(lambda n: df.broadcast_to(ROWS, df.stack([n, 3])))
    np.testing.assert_array_equal(f(df.constant(4)), ROWS)
    with pytest.raises(df.errors.InvalidArgumentError, match="do not broadcast"):
        f(df.constant(5))


@pytest.mark.parametrize("of_list", [True, False])
def test_rows_scatter_into_a_shape_that_is_known_at_run_time(of_list):
    def scattered(x):
        rows = df.shape(x)[0]
        shape = [rows + 2, 2] if of_list else df.concat([[rows + 2], df.shape(x)[1:]], 0)
        return df.scatter_nd(df.range(rows)[:, None] + 1, x, shape)

    f = df.function(scattered, input_signature=[df.TensorSpec([None, 2])])
    for rows in (0, 3):
        x = np.arange(2.0 * rows, dtype=np.float32).reshape(rows, 2)
        np.testing.assert_array_equal(f(x).numpy(), np.pad(x, [[1, 1], [0, 0]]))


def test_no_rows_are_rolled():
    specs = [df.TensorSpec([None])]
    f = df.function(lambda x: df.roll(df.numpy_function(lambda a: a, [x], df.float32), 1, 0), specs)
    for x in ([], [1.0, 2.0, 3.0]):
        assert f(df.constant(x, df.float32)).numpy().tolist() == np.roll(x, 1).tolist()


def test_reshape_flattens_a_masked_tensor_with_an_empty_static_axis():
    def flat(x):
        return df.reshape(x[df.reduce_sum(x, [1, 2]) >= 0.0], [-1]) + 1.0

    assert df.function(flat)(df.zeros([2, 3, 0])).shape == (0,)
    assert df.function(flat)(df.zeros([2, 3, 1])).shape == (6,)

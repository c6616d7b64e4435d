"""Eager ops: result dtypes are those of the records, no NumPy warnings, and errors name the op."""

import itertools
import threading
import warnings

import numpy as np
import pytest
from op_cases import check_each

import dualflow as df
from dualflow.eager import engine
from dualflow.ops.record import REGISTRY

REAL = [df.int8, df.int16, df.int32, df.int64, df.uint8, df.float16, df.float32, df.float64]
NUMBERS = [1, -3, 2.5, True, 7]


@pytest.mark.parametrize("name", ["add", "multiply", "divide", "maximum", "pow", "less", "atan2"])
def test_every_pair_of_dtypes_gives_the_dtype_of_the_record(name):
    op = REGISTRY[name]

    def check(dtypes):
        x, y = (df.ones([2], dtype) for dtype in dtypes)
        result = engine.EAGER.binary(op, x, y)
        prepared = op.prepare((x, y), engine.EAGER)
        assert result.spec == op.specs([t.spec for t in prepared], {})[0]

    check_each(itertools.product(REAL, REAL), check)


@pytest.mark.parametrize("x", REAL, ids=lambda t: t.name)
@pytest.mark.parametrize("number", NUMBERS)
def test_a_number_next_to_a_tensor_adapts_whatever_came_before(x, number):
    tensor = df.ones([2], x)
    if x is df.uint8 and number < 0:
        with pytest.raises(ValueError, match="-3 is outside of uint8"):
            tensor + number
        return
    for _ in range(2):
        for result in (tensor + number, number + tensor):
            wide = isinstance(number, float) and not x.is_floating
            assert result.dtype is (df.float32 if wide else x)
            np.testing.assert_array_equal(result.numpy(), np.asarray(1 + number).astype(result.dtype.dtype))


def test_numbers_that_are_equal_but_differ_are_kept_apart():
    x = df.constant([1.0])
    assert np.signbit((x * 0.0).numpy()[0]) == np.False_
    assert np.signbit((x * -0.0).numpy()[0]) == np.True_
    i = df.constant([1])
    assert ((i * 2).dtype, (i * 2.0).dtype, (i * 2).dtype) == (df.int32, df.float32, df.int32)
    assert np.isnan((x + float("nan")).numpy()[0])
    assert (x + float("inf")).numpy()[0] == np.inf


def test_many_different_numbers_do_not_pile_up():
    x = df.constant(1.0)
    for i in range(5000):
        x * (i + 0.5)
    assert all(len(table) <= 1024 for table in engine._floats.values())


@pytest.mark.parametrize("action", ["error", "always"])
def test_floating_point_is_quiet_whatever_the_warnings_filter(action):
    zero, big = df.constant([0.0]), df.constant([3e38])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter(action)
        assert np.isnan((zero / zero).numpy()[0])
        assert (1 / zero).numpy()[0] == np.inf
        assert (big * big).numpy()[0] == np.inf
        assert np.isnan(df.sqrt(df.constant(-1.0)).numpy())
        df.cast(df.constant([np.nan]), df.int32)
        df.math.log(zero)
    assert not caught


def test_numpys_own_warnings_stay_as_they_were():
    df.constant([1.0]) / df.constant([0.0])
    with pytest.warns(RuntimeWarning, match="divide by zero"):
        np.ones(1) / np.zeros(1)


def test_a_kernels_error_is_reported_in_the_ops_words():
    with pytest.raises(ValueError, match=r"add\(float32\[2\], float32\[3\]\).*do not broadcast"):
        df.ones([2]) + df.ones([3])
    with pytest.raises(ValueError, match="inner sizes 3 and 2 differ"):
        df.matmul(df.ones([2, 3]), df.ones([2, 3]))
    with pytest.raises(TypeError, match="other than bools"):
        df.constant([True]) - df.constant([True])


def test_an_error_that_shapes_and_dtypes_do_not_explain_names_the_op():
    with pytest.raises(Exception, match="power") as caught:
        df.constant([2]) ** df.constant([-1])
    assert any("pow" in note for note in getattr(caught.value, "__notes__", [str(caught.value)]))


def test_strings_and_none_are_no_operands():
    for wrong in ("a", None, {1}, object()):
        with pytest.raises(TypeError):
            df.constant(1.0) + wrong


def test_inputs_are_never_written_to():
    x = df.constant([3.0, 1.0, 2.0])
    for f in (lambda: x + 1, lambda: -x, lambda: df.sort(x), lambda: df.reverse(x, [0]), lambda: x[::-1] * 2):
        f()
    assert x.numpy().tolist() == [3.0, 1.0, 2.0]


def test_variables_and_tensors_mix():
    v, t = df.Variable([1.0, 2.0]), df.constant([3.0, 4.0])
    for x, y in itertools.product((v, t), repeat=2):
        assert isinstance(x + y, df.Tensor)
        assert isinstance(df.stack([x, y]), df.Tensor)
    assert df.matmul(df.Variable([[2.0]]), [[3.0]]).numpy().tolist() == [[6.0]]
    assert (v * 2).numpy().tolist() == [2.0, 4.0]
    assert (-v).numpy().tolist() == [-1.0, -2.0]


def test_threads_compute_at_the_same_time():
    def work(results, i):
        x = df.constant(np.full(1000, float(i)))
        for _ in range(200):
            x = x * 1.5 / 1.5
        results[i] = x.numpy()

    results = {}
    threads = [threading.Thread(target=work, args=(results, i)) for i in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    for i in range(8):
        np.testing.assert_allclose(results[i], i)


def test_execution_is_eager():
    assert df.executing_eagerly()

"""Eager tensors under Python's and NumPy's operators and functions."""

import contextlib
import copy
import ctypes
import operator
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import dualflow as df

DTYPES = [t.name for t in df.core.dtypes.ALL]
arrays = st.sampled_from(DTYPES).flatmap(
    lambda t: hnp.arrays(t, hnp.array_shapes(min_dims=0, min_side=0, max_side=3))
)


@given(arrays)
def test_the_value_goes_in_and_out_unchanged(array):
    tensor = df.constant(array)
    assert tensor.dtype == array.dtype
    assert tensor.shape == array.shape
    np.testing.assert_array_equal(tensor.numpy(), array)
    np.testing.assert_array_equal(np.asarray(tensor), array)


@given(arrays)
def test_the_view_of_a_tensor_can_not_be_written_to(array):
    view = np.asarray(df.constant(array))
    with pytest.raises(ValueError, match="read-only"):
        view[...] = 0


@given(arrays)
def test_the_array_of_a_tensor_belongs_to_the_caller(array):
    for holder in (df.constant(array), df.Variable(array)):
        own = holder.numpy()
        if isinstance(own, np.ndarray):
            own[...] = 0
        np.testing.assert_array_equal(holder.numpy(), array)


def test_the_source_array_is_not_shared():
    array = np.zeros(3)
    tensor = df.constant(array)
    array[0] = 1
    assert tensor.numpy()[0] == 0


def test_a_copy_for_numpy_is_the_callers():
    tensor = df.constant([1.0, 2.0])
    mine = np.array(tensor)
    mine[0] = 9
    assert tensor.numpy().tolist() == [1.0, 2.0]
    with pytest.raises(ValueError, match="copy"):
        np.array(tensor, dtype=np.float64, copy=False)


def test_numpy_may_request_another_dtype():
    tensor = df.constant([1.5, 2.0])
    assert np.asarray(tensor, dtype=np.int64).tolist() == [1, 2]
    assert np.asarray(tensor, dtype=object).tolist() == [1.5, 2.0]
    assert np.asarray(tensor, dtype=df.float64).dtype == np.float64


def test_numpy_of_a_scalar_is_a_numpy_scalar():
    assert type(df.constant(3.0).numpy()) is np.float32
    assert type(df.constant([3.0]).numpy()) is np.ndarray


def test_text_is_as_tensorflow_prints_it():
    assert str(df.constant([[4.0]])) == "tf.Tensor([[4.]], shape=(1, 1), dtype=float32)"
    assert repr(df.constant([[4.0]])) == (
        "<tf.Tensor: shape=(1, 1), dtype=float32, numpy=array([[4.]], dtype=float32)>"
    )
    assert str(df.constant(3)) == "tf.Tensor(3, shape=(), dtype=int32)"
    assert repr(df.constant(3.0)) == "<tf.Tensor: shape=(), dtype=float32, numpy=3.0>"
    assert str(df.constant([[1, 2], [3, 4]])) == "tf.Tensor(\n[[1 2]\n [3 4]], shape=(2, 2), dtype=int32)"


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (df.constant(1.6), "1.6"),
        (df.constant(1.6, df.float16), "1.6"),
        (df.constant(2**0.5, df.float64), "1.4142135623730951"),
        (df.constant(3), "3"),
        (df.constant(True), "True"),
        (df.constant(1 + 2j), "(1+2j)"),
        (df.constant([1.0, 2.0]), "[1. 2.]"),
        (df.constant([[1, 2], [3, 4]]), "[[1 2]\n [3 4]]"),
        (df.zeros([0]), "[]"),
    ],
)
def test_f_strings_and_format_show_the_value_alone(value, shown):
    assert f"{value}" == "{}".format(value) == format(value) == shown  # noqa: UP032


def test_one_number_takes_the_formats_of_python_numbers():
    assert f"{df.constant(2.5):.2f} {df.constant(7):>3d} {df.constant(0.25):.0%}" == "2.50   7 25%"
    assert f"{df.Variable(2.5):6.2f}" == "  2.50"
    with pytest.raises(ValueError, match="Unknown format code"):
        format(df.constant(1.5), "d")


def test_several_numbers_take_no_number_format():
    with pytest.raises(TypeError, match=r"shape is \(2,\)"):
        format(df.constant([1.0, 2.0]), ".2f")


def test_a_variable_is_formatted_as_it_is_printed():
    v = df.Variable(1.5)
    assert f"{v}" == str(v) == "<tf.Variable 'Variable:0' shape=() dtype=float32, numpy=1.5>"


@pytest.mark.parametrize("convert", [int, float, complex])
def test_a_vector_is_no_number(convert):
    with pytest.raises(TypeError, match=r"shape \(2,\) has 2 elements and can't become"):
        convert(df.constant([1, 2]))


def test_conversions_of_one_element():
    assert int(df.constant(3)) == 3
    assert float(df.constant([2.5])) == 2.5
    assert complex(df.constant(1 + 2j)) == 1 + 2j
    assert bool(df.constant(1))
    assert not df.constant([[0.0]])
    assert operator.index(df.constant(2)) == 2
    assert [10, 20, 30][df.constant(1)] == 20
    assert list(range(df.constant(3))) == [0, 1, 2]
    assert df.constant(7).item() == 7


@pytest.mark.parametrize("use", [bool, int, float, complex])
def test_several_elements_are_not_one(use):
    with pytest.raises(ValueError, match=r"shape \(2,\)"):
        use(df.constant([1, 2]))


def test_only_one_integer_is_an_index():
    for wrong in (df.constant(1.0), df.constant([1])):
        with pytest.raises(TypeError, match="one integer"):
            operator.index(wrong)


def test_length_iteration_and_membership():
    matrix = df.constant([[1, 2], [3, 4]])
    assert len(matrix) == 2
    assert [row.numpy().tolist() for row in matrix] == [[1, 2], [3, 4]]
    first, _ = matrix
    assert isinstance(first, df.Tensor)
    assert 3 in matrix
    assert 5 not in matrix


def test_a_tensor_without_axes_has_no_length():
    with pytest.raises(TypeError, match="no len"):
        len(df.constant(1))
    with pytest.raises(TypeError, match="iterated"):
        iter(df.constant(1))


def test_there_is_no_hash_but_a_reference():
    x, y = df.constant(1.0), df.constant(1.0)
    with pytest.raises(TypeError, match=r"x\.ref\(\)"):
        hash(x)
    assert {x.ref(): "x"}[x.ref()] == "x"
    assert x.ref() != y.ref()
    assert x.ref().deref() is x


def test_numpy_functions_give_arrays_and_operators_give_tensors():
    array, tensor = np.array([1.0, 2.0], np.float32), df.constant([3.0, 4.0])
    assert type(np.multiply(tensor, tensor)) is np.ndarray
    assert type(np.concatenate([tensor, tensor])) is np.ndarray
    for result in (array + tensor, tensor + array, array[None] @ df.ones([2, 1]), np.float32(2) * tensor):
        assert isinstance(result, df.Tensor)


def test_sizes_are_numpys(mode):
    sizes = []
    mode(lambda x: sizes.append((x.size, x.ndim, x.shape, x.dtype.itemsize)))(df.zeros([2, 3], df.int16))
    assert sizes == [(6, 2, (2, 3), 2)]
    assert df.Variable([1.0, 2.0]).size == 2
    assert df.constant(1.0).size == 1
    assert df.zeros([0, 5]).size == 0


def test_a_size_that_is_left_open_is_none():
    sizes = []
    f = df.function(lambda x: sizes.append(x.size), input_signature=[df.TensorSpec([None, 3])])
    f(df.ones([2, 3]))
    assert sizes == [None]


@given(arrays)
def test_bytes_are_those_of_the_elements(array):
    assert bytes(df.constant(array)) == array.tobytes()


def test_copies_are_other_tensors_of_the_same_value():
    x = df.constant([1.0, 2.0])
    for other in (copy.copy(x), copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
        assert other is not x
        assert other.dtype is x.dtype
        assert (x + other).numpy().tolist() == [2.0, 4.0]


def test_dlpack_hands_the_values_over():
    assert np.from_dlpack(df.constant([1.0, 2.0])).tolist() == [1.0, 2.0]
    assert np.from_dlpack(df.constant([[1, 2], [3, 4]])[:, 1]).tolist() == [2, 4]
    assert np.from_dlpack(df.constant(5)).shape == ()


READ_ONLY = 1


def exported(capsule):
    """What a consumer of DLPack reads out of ``capsule``: the address of the elements, and the flags."""
    named, pointer_of = ctypes.pythonapi.PyCapsule_IsValid, ctypes.pythonapi.PyCapsule_GetPointer
    named.argtypes = pointer_of.argtypes = [ctypes.py_object, ctypes.c_char_p]
    pointer_of.restype = ctypes.c_void_p
    versioned = named(capsule, b"dltensor_versioned")
    start = pointer_of(capsule, b"dltensor_versioned" if versioned else b"dltensor")
    words = ctypes.cast(start, ctypes.POINTER(ctypes.c_uint64))
    flags, data = (
        (words[3], words[4]) if versioned else (0, words[0])
    )  # version, manager, deleter, flags, tensor
    return data, flags


@pytest.mark.parametrize("options", [{}, {"max_version": (1, 0)}, {"max_version": (1, 0), "copy": True}])
def test_a_tensor_is_unchanged_by_writes_of_a_dlpack_consumer(options):
    """Some consumers write even if the flags forbid it."""
    x = df.constant([1.0, 2.0])
    capsule = x.__dlpack__(**options)
    ctypes.cast(exported(capsule)[0], ctypes.POINTER(ctypes.c_float))[0] = 9.0
    assert x.numpy().tolist() == [1.0, 2.0]


def test_dlpack_without_a_copy_is_marked_as_read_only():
    x = df.constant([1.0, 2.0])
    data, flags = exported(x.__dlpack__(copy=False, max_version=(1, 0)))
    assert (data, flags & READ_ONLY) == (np.asarray(x).ctypes.data, READ_ONLY)
    with pytest.raises(BufferError):
        x.__dlpack__(copy=False)
    shared = np.from_dlpack(x, copy=False)
    assert np.shares_memory(shared, np.asarray(x))
    assert not shared.flags.writeable


@pytest.mark.parametrize("look", [np.asarray, memoryview, lambda x: x.numpy(), np.frombuffer, np.from_dlpack])
def test_no_view_of_a_tensor_can_be_written_through(look):
    x = df.constant(np.arange(3.0))
    with contextlib.suppress(TypeError, ValueError):  # no such view, or one for reading
        look(x)[0] = 9.0
    assert x.numpy().tolist() == [0.0, 1.0, 2.0]


MASKED = np.ma.array([1.0, 2.0, 3.0], mask=[False, True, False])


@pytest.mark.parametrize(
    "use",
    [
        df.constant,
        df.Variable,
        df.square,
        lambda m: df.ones([3], df.float64) + m,
        lambda m: m + df.ones([3], df.float64),
        lambda m: df.constant([m, m]),
        lambda m: df.function(df.square)(m),
        lambda m: df.numpy_function(lambda x: m, [df.ones([3])], df.float64),
        lambda m: df.py_function(lambda x: m, [df.ones([3])], df.float64),
        lambda m: df.eager.py_func(lambda x: m, [df.ones([3])], df.float64),
        lambda m: df.constant(m[1]),
    ],
)
def test_masked_elements_are_refused(use):
    with pytest.raises(ValueError, match=r"filled\(value\)"):
        use(MASKED)


def test_a_numpy_function_gets_numpys_scalars(mode):
    """As TensorFlow calls them in graphs: an array of strings without axes is of no use to Python."""
    text = mode(lambda x: df.numpy_function(lambda s: s.decode().upper(), [x], df.string))(df.constant("a"))
    is_float = mode(lambda x: df.numpy_function(lambda n: type(n) is np.float32, [x], df.bool))
    assert (text.numpy(), bool(is_float(df.constant(1.0)))) == (b"A", True)


def test_a_masked_array_without_masked_elements_is_an_array():
    assert df.constant(np.ma.array([1.0, 2.0])).numpy().tolist() == [1.0, 2.0]
    assert df.constant(MASKED[:1]).numpy().tolist() == [1.0]
    assert df.constant(MASKED.filled(0.0)).numpy().tolist() == [1.0, 0.0, 3.0]


def test_only_parts_of_variables_have_assign():
    assert not hasattr(df.constant(1.0), "assign")
    with pytest.raises(TypeError, match="do not change"):
        df.constant([1.0])[0] = 2.0


def test_the_device_is_the_cpu():
    assert df.constant(1).device.endswith("CPU:0")


@pytest.mark.parametrize("owner", [type(df.constant(0.0)), df.Variable], ids=["tensor", "variable"])
def test_attributes_are_looked_up_without_a_fallback(owner):
    """Python reads attributes of a class with ``__getattr__`` by a slower way: all of them."""
    assert not hasattr(owner, "__getattr__")


def test_names_of_arrays_that_tensors_lack_are_not_shown():
    shown = set(dir(df.constant([1.0])))
    assert {"shape", "numpy"} <= shown
    assert shown.isdisjoint({"sum", "astype", "argsort", "strides"})


def test_operators_that_can_be_overloaded_are_methods():
    assert {"__add__", "__radd__", "__getitem__", "__matmul__"} < df.Tensor.OVERLOADABLE_OPERATORS
    assert [name for name in df.Tensor.OVERLOADABLE_OPERATORS if not hasattr(df.Tensor, name)] == []

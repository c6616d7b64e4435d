"""Variables: reads, whole and sliced assignments, and errors."""

import copy
import pickle

import numpy as np
import pytest

import dualflow as df


def test_initial_values():
    assert df.Variable(3).dtype is df.int32
    assert df.Variable(np.float64(3)).dtype is df.float64
    assert df.Variable([1, 2], dtype=df.float64).numpy().tolist() == [1.0, 2.0]
    assert df.Variable(lambda: df.ones([2])).shape == (2,)
    assert df.Variable(df.Variable(5.0)).numpy() == 5.0
    with pytest.raises(ValueError, match="needs an initial value"):
        df.Variable()
    with pytest.raises(ValueError, match="float32 was given where float64"):
        df.Variable(df.constant(1.0), dtype=df.float64)


def test_names_need_not_be_unique():
    assert df.Variable(1.0).name == "Variable:0"
    assert df.Variable(1.0, name="w").name == df.Variable(2.0, name="w").name == "w:0"


def test_text():
    assert repr(df.Variable(2.5, name="w")) == "<tf.Variable 'w:0' shape=() dtype=float32, numpy=2.5>"
    assert "numpy=array([1, 2], dtype=int32)" in str(df.Variable([1, 2]))


def test_it_is_read_like_a_tensor():
    v = df.Variable([1.0, 2.0])
    assert (v + v).numpy().tolist() == [2.0, 4.0]
    assert (3.0 - v).numpy().tolist() == [2.0, 1.0]
    assert (np.ones(2, np.float32) * v).numpy().tolist() == [1.0, 2.0]
    assert v[1].numpy() == 2.0
    assert len(v) == 2
    assert [float(x) for x in v] == [1.0, 2.0]
    assert 2.0 in v
    assert np.asarray(v).tolist() == [1.0, 2.0]
    assert df.reduce_sum(v).numpy() == 3.0
    assert (v == v).numpy().tolist() == [True, True]
    assert v.ndim == 1


def test_one_element_is_a_python_number():
    v = df.Variable(2)
    assert (int(v), float(v), bool(v), complex(v)) == (2, 2.0, True, 2 + 0j)
    assert [0, 1, 2][v] == 2
    assert f"{df.Variable(1.25):.1f}" == "1.2"


def test_assigning():
    v = df.Variable(10.0)
    assert v.assign(2) is v
    v.assign_add(1.0)
    v.assign_sub(df.constant(0.5))
    assert v.numpy() == 2.5
    assert v.assign(1.0, read_value=False) is None


def test_a_value_that_was_read_stays():
    v = df.Variable([1.0, 2.0])
    before, array = v.value(), v.numpy()
    v.assign([3.0, 4.0])
    v[0].assign(9.0)
    v.assign_add([1.0, 1.0])
    assert before.numpy().tolist() == [1.0, 2.0]
    assert array.tolist() == [1.0, 2.0]


def test_the_assigned_value_is_not_shared():
    array = np.zeros(2, np.float32)
    v = df.Variable(array)
    array[0] = 5
    assert v.numpy()[0] == 0
    v.assign(array)
    array[0] = 7
    assert v.numpy()[0] == 5


@pytest.mark.parametrize("change", ["assign", "assign_add", "assign_sub"])
def test_shape_and_dtype_stay(change):
    v = df.Variable([1.0, 2.0], name="w")
    with pytest.raises(ValueError, match=r"w has shape \(2,\) and can't hold a value of shape \(\)"):
        getattr(v, change)(1.0)
    with pytest.raises(ValueError, match="dtype float32 and can't hold a value of dtype float64"):
        getattr(v, change)(df.constant([1.0, 2.0], df.float64))
    with pytest.raises(TypeError):
        getattr(df.Variable([1, 2]), change)([1.5, 2.5])


def test_a_looser_shape_lets_values_vary():
    v = df.Variable([1.0], shape=[None])
    v.assign([1.0, 2.0, 3.0])
    assert v.shape == (None,)
    assert v.numpy().tolist() == [1.0, 2.0, 3.0]
    with pytest.raises(ValueError, match="shape"):
        v.assign([[1.0]])


def test_parts_are_assigned():
    v = df.Variable(np.zeros((3, 4), np.float32))
    v[1].assign([1.0, 2.0, 3.0, 4.0])
    v[:, 0].assign(9.0)
    v[-1, 1:3].assign_add([5.0, 6.0])
    v[0, 3].assign_sub(1.0)
    assert v.numpy().tolist() == [[9, 0, 0, -1], [9, 2, 3, 4], [9, 5, 6, 0]]
    with pytest.raises(ValueError, match=r"replace\(.*do not broadcast"):
        v[0].assign([1.0, 2.0])
    with pytest.raises(TypeError, match="assign"):
        v[0] = 1.0


def test_parts_are_scattered():
    v = df.Variable([1.0, 2.0, 3.0, 4.0])
    v.scatter_nd_update([[0], [2]], [10, 30])
    v.scatter_nd_add([[1], [1]], [1.0, 1.0])
    v.scatter_nd_sub([[3]], [0.5])
    assert v.numpy().tolist() == [10.0, 4.0, 30.0, 3.5]


@pytest.mark.parametrize("operator", ["+=", "-=", "*=", "/=", "//=", "%=", "**="])
def test_changing_in_place_is_refused(operator):
    names = {"v": df.Variable(1.0)}
    with pytest.raises(RuntimeError, match="assign_add"):
        exec(f"v {operator} 1.0", names)


def test_there_is_no_hash_but_a_reference():
    v = df.Variable(1.0)
    with pytest.raises(TypeError, match=r"v\.ref\(\)"):
        hash(v)
    assert {v.ref(): 1}[v.ref()] == 1


def test_a_deep_copy_is_another_variable():
    v = df.Variable([1.0], name="w", trainable=False, aggregation=df.VariableAggregation.SUM)
    w, again = copy.deepcopy([v, v])
    v.assign([2.0])
    assert w is again
    assert (w.numpy().tolist(), w.name, w.trainable) == ([1.0], "w:0", False)
    assert w.aggregation is df.VariableAggregation.SUM


def test_a_pickled_variable_comes_back():
    v = df.Variable([1.0, 2.0], name="w", trainable=False)
    w = pickle.loads(pickle.dumps(v))
    w.assign_add([1.0, 1.0])
    assert (w.numpy().tolist(), w.name, w.trainable, w.dtype) == ([2.0, 3.0], "w:0", False, df.float32)
    assert v.numpy().tolist() == [1.0, 2.0]


def test_parts_are_read_by_their_indices():
    v = df.Variable([[1.0, 2.0], [3.0, 4.0]])
    assert v.gather_nd([[1, 0]]).numpy().tolist() == [3.0]
    assert v.sparse_read([1, 1]).numpy().tolist() == [[3.0, 4.0], [3.0, 4.0]]
    with df.GradientTape() as tape:
        y = df.reduce_sum(v.sparse_read([0, 0]))
    assert tape.gradient(y, v).numpy().tolist() == [[2.0, 2.0], [0.0, 0.0]]


SPARSE = {
    "scatter_update": None,
    "scatter_add": np.add,
    "scatter_sub": np.subtract,
    "scatter_max": np.maximum,
    "scatter_min": np.minimum,
    "scatter_mul": np.multiply,
    "scatter_div": np.divide,
}


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
@pytest.mark.parametrize("indices", [[2, 0], [1, 1], []], ids=["distinct", "repeated", "none"])
@pytest.mark.parametrize("method", SPARSE)
def test_slices_are_scattered_as_by_numpys_ufuncs(method, indices, compiled):
    start, ufunc = np.arange(6, dtype=np.float32).reshape(3, 2) + 1, SPARSE[method]
    values = np.full((len(indices), 2), 2.0, np.float32)
    expected = start.copy()
    if ufunc is None:
        expected[indices] = values
    else:
        ufunc.at(expected, np.array(indices, np.int64), values)
    v = df.Variable(start)

    def scatter(values, indices):
        return getattr(v, method)(df.IndexedSlices(values, indices)).value()

    run = df.function(scatter) if compiled else scatter
    result = run(df.constant(values), df.constant(indices, df.int64))
    assert result.numpy().tolist() == v.numpy().tolist() == expected.tolist()


@pytest.mark.parametrize("index", [-1, 3])
@pytest.mark.parametrize("method", SPARSE)
def test_slices_outside_of_the_variable_are_refused(method, index):
    v = df.Variable([1.0, 2.0, 4.0])
    with pytest.raises(df.errors.OutOfRangeError):
        getattr(v, method)(df.IndexedSlices([2.0], [index]))
    assert v.numpy().tolist() == [1.0, 2.0, 4.0]


def test_a_sparse_tensor_holds_no_slices():
    with pytest.raises(df.errors.DTypeError, match=r"not a SparseTensor"):
        df.Variable([1.0, 2.0]).scatter_add(df.SparseTensor([[0]], [1.0], [2]))


def test_elements_take_the_maximum_or_minimum():
    v = df.Variable([[1, 5], [7, 3]])
    v.scatter_nd_max([[0, 0], [1, 0]], [4, 4])
    v.scatter_nd_min([[1]], [[5, 5]])
    assert v.numpy().tolist() == [[4, 5], [5, 3]]


def test_choices_for_replicas_are_read_back():
    v = df.Variable(0.0, aggregation=df.VariableAggregation.MEAN)
    assert v.aggregation is df.VariableAggregation.MEAN
    assert v.synchronization is df.VariableSynchronization.AUTO
    assert df.Variable(0.0).aggregation is df.VariableAggregation.NONE


def test_a_library_freezes_a_variable_by_the_internal_name() -> None:
    module = df.Module()
    module.weight = df.Variable(1.0)
    module.weight._trainable = False
    assert not module.weight.trainable
    assert module.trainable_variables == ()
    module.weight._trainable = True
    assert len(module.trainable_variables) == 1

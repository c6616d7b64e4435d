"""String tensors: construction, display, and the ops that accept them."""

import copy
import pickle
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dualflow as df

TEXTS = st.lists(st.binary(max_size=8), max_size=6)


@given(TEXTS)
def test_bytes_come_out_as_they_went_in(values):
    tensor = df.constant(values, df.string)
    assert tensor.numpy().tolist() == values
    assert tensor.dtype is df.string
    assert tensor.shape == (len(values),)


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=6), min_size=1, max_size=4))
def test_text_is_held_in_utf_8(values):
    assert df.constant(values).numpy().tolist() == [text.encode() for text in values]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("a", b"a"),
        (b"\xff\x00", b"\xff\x00"),
        (np.str_("é"), b"\xc3\xa9"),
        (np.bytes_(b"a"), b"a"),
        (np.array("a"), b"a"),
        (["a", b"b"], [b"a", b"b"]),
        ([["a"], ["b"]], [[b"a"], [b"b"]]),
        (np.array(["a", "bc"]), [b"a", b"bc"]),
        (np.array([b"a", b"bc"]), [b"a", b"bc"]),
        (np.array(["a", b"x"], object), [b"a", b"x"]),
        (np.array(["a"], np.dtypes.StringDType()), [b"a"]),
        ([np.array(["a"]), np.array(["b"])], [[b"a"], [b"b"]]),
        (np.array([], "U1"), []),
        (np.array([], object), []),
    ],
    ids=repr,
)
def test_values_that_convert_to_string_tensors(value, expected):
    tensor = df.constant(value)
    assert tensor.dtype == "string"
    result = tensor.numpy()
    assert (result if isinstance(result, bytes) else result.tolist()) == expected


def test_empty_lists_are_strings_where_the_dtype_is_reported():
    assert df.constant([[], []], df.string).shape == (2, 0)
    assert df.zeros([2], df.string).numpy().tolist() == [b"", b""]


def test_a_tensor_of_strings_looks_as_in_tensorflow():
    scalar, vector = df.constant("é"), df.constant(["a", "bc"])
    assert repr(scalar) == r"<tf.Tensor: shape=(), dtype=string, numpy=b'\xc3\xa9'>"
    assert repr(vector) == "<tf.Tensor: shape=(2,), dtype=string, numpy=array([b'a', b'bc'], dtype=object)>"
    assert str(vector) == "tf.Tensor([b'a' b'bc'], shape=(2,), dtype=string)"
    assert f"{scalar}" == r"b'\xc3\xa9'"
    assert (str(df.string), df.string.size, df.string.as_datatype_enum) == ("<dtype: 'string'>", 0, 7)
    assert df.string.as_numpy_dtype is object


def test_python_sees_strings_as_it_sees_its_own():
    x = df.constant(["a", "bc"])
    assert [s.numpy().decode() for s in x] == ["a", "bc"]
    assert "a" in x
    assert b"bc" in x
    assert "b" not in x
    assert bool(df.constant("a"))
    assert not df.constant("")
    assert int(df.constant("12")) == 12
    assert float(df.constant("1.5")) == 1.5
    assert bytes(df.constant("é")) == b"\xc3\xa9"
    assert np.array(x).tolist() == [b"a", b"bc"]


def test_copies_hold_the_same_strings():
    x = df.constant(["a", b"\xff\x00"])
    for same in (pickle.loads(pickle.dumps(x)), copy.copy(x), copy.deepcopy(x)):
        assert same.numpy().tolist() == [b"a", b"\xff\x00"]
        assert same.dtype is df.string


@pytest.mark.parametrize("other", ["a", b"a", np.str_("a"), "constant"])
def test_strings_are_equal_byte_for_byte(other):
    other = df.constant("a") if other == "constant" else other
    x = df.constant([["a"], ["b"]])
    assert (x == other).numpy().tolist() == [[True], [False]]
    assert (x != other).numpy().tolist() == [[False], [True]]
    assert (other == x).numpy().tolist() == [[True], [False]]


def test_comparisons_broadcast():
    assert (df.constant(["a", "b"]) == df.constant([["a"], ["b"]])).numpy().tolist() == [
        [True, False],
        [False, True],
    ]
    assert (df.constant(["a", "b"]) == np.array(["a", "c"])).numpy().tolist() == [True, False]
    assert not (df.constant(["a", "b"]) == df.constant(["a", "b", "c"])).numpy()
    assert (df.constant("a") == None) is False  # noqa: E711  what tensors make of None


def test_a_sum_puts_one_after_the_other():
    assert (df.constant("a") + "b").numpy() == b"ab"
    assert ("b" + df.constant("a")).numpy() == b"ba"
    assert (np.array(["x", "y"]) + df.constant("a")).numpy().tolist() == [b"xa", b"ya"]
    assert df.add(["a", "b"], "x").numpy().tolist() == [b"ax", b"bx"]


AB = ["a", "b"]
MOVES = {
    "reshape": (lambda x: df.reshape(x, [2, 1]), [[b"a"], [b"b"]]),
    "expand_dims": (lambda x: df.expand_dims(x, 0), [[b"a", b"b"]]),
    "squeeze": (lambda x: df.squeeze([x]), [b"a", b"b"]),
    "transpose": (lambda x: df.transpose([x]), [[b"a"], [b"b"]]),
    "stack": (lambda x: df.stack([x, ["c", "d"]], 1), [[b"a", b"c"], [b"b", b"d"]]),
    "concat": (lambda x: df.concat([x, ["c"]], 0), [b"a", b"b", b"c"]),
    "split": (lambda x: df.split(x, 2)[1], [b"b"]),
    "unstack": (lambda x: df.unstack(x)[1], b"b"),
    "tile": (lambda x: df.tile(x, [2]), [b"a", b"b", b"a", b"b"]),
    "repeat": (lambda x: df.repeat(x, 2), [b"a", b"a", b"b", b"b"]),
    "broadcast_to": (lambda x: df.broadcast_to(x, [2, 2]), [[b"a", b"b"], [b"a", b"b"]]),
    "fill": (lambda x: df.fill([2], x[0]), [b"a", b"a"]),
    "reverse": (lambda x: df.reverse(x, [0]), [b"b", b"a"]),
    "roll": (lambda x: df.roll(x, 1, 0), [b"b", b"a"]),
    "an index": (lambda x: x[1], b"b"),
    "a slice": (lambda x: x[::-1], [b"b", b"a"]),
    "slice": (lambda x: df.slice(x, [1], [1]), [b"b"]),
    "a mask": (lambda x: x[x == "b"], [b"b"]),
    "boolean_mask": (lambda x: df.boolean_mask(x, [True, False]), [b"a"]),
    "gather": (lambda x: df.gather(x, [1, 0, 1]), [b"b", b"a", b"b"]),
    "gather of one": (lambda x: df.gather(x, 1), b"b"),
    "gather_nd": (lambda x: df.gather_nd([x, x], [[1, 1]]), [b"b"]),
    "where": (lambda x: df.where(x == "a", "A", x), [b"A", b"b"]),
    "pad": (lambda x: df.pad(x, [[1, 0]]), [b"", b"a", b"b"]),
    "pad with another": (lambda x: df.pad(x, [[0, 1]], constant_values="z"), [b"a", b"b", b"z"]),
    "pad with a mirror": (lambda x: df.pad(x, [[1, 1]], "REFLECT"), [b"b", b"a", b"b", b"a"]),
    "scatter_nd": (lambda x: df.scatter_nd([[2], [0]], x, [3]), [b"b", b"", b"a"]),
    "an update": (lambda x: df.tensor_scatter_nd_update(x, [[1]], ["z"]), [b"a", b"z"]),
    "identity": (lambda x: df.identity(x), [b"a", b"b"]),
    "stop_gradient": (lambda x: df.stop_gradient(x), [b"a", b"b"]),
    "ensure_shape": (lambda x: df.ensure_shape(x, [2]), [b"a", b"b"]),
    "zeros_like": (lambda x: df.zeros_like(x), [b"", b""]),
    "unique": (lambda x: df.unique(df.concat([x[::-1], x], 0)).y, [b"b", b"a"]),
    "counts": (lambda x: df.unique_with_counts(df.concat([x, x[:1]], 0)).count, [2, 1]),
    "count_nonzero": (lambda x: df.math.count_nonzero(df.concat([x, [""]], 0)), 2),
    "dynamic_partition": (lambda x: df.dynamic_partition(x, [1, 0], 2)[0], [b"b"]),
    "one_hot": (lambda x: df.one_hot([0], 2, on_value=x[0], off_value=x[1]), [[b"a", b"b"]]),
    "map_fn": (lambda x: df.map_fn(lambda s: s + "!", x), [b"a!", b"b!"]),
    "foldl": (lambda x: df.foldl(lambda a, b: a + b, x), b"ab"),
    "size": (lambda x: df.size(x), 2),
    "cast": (lambda x: df.cast(x, df.string), [b"a", b"b"]),
    "sparse": (
        lambda x: df.sparse.to_dense(df.SparseTensor([[0], [2]], x, [3])),
        [b"a", b"", b"b"],
    ),
}


@pytest.mark.parametrize("move", MOVES)
def test_ops_that_move_elements_move_strings(move, mode):
    function, expected = MOVES[move]
    result = mode(function)(df.constant(AB)).numpy()
    assert (result if isinstance(result, bytes) else result.tolist()) == expected


REFUSED = {
    "subtract": lambda x: x - x,
    "multiply": lambda x: x * "b",
    "negative": lambda x: -x,
    "less": lambda x: x < "b",
    "maximum": lambda x: df.maximum(x, x),
    "exp": lambda x: df.exp(x),
    "reduce_sum": lambda x: df.reduce_sum(x),
    "reduce_max": lambda x: df.reduce_max(x),
    "matmul": lambda x: df.matmul([x], [x]),
    "sort": lambda x: df.sort(x),
    "argmax": lambda x: df.argmax(x),
    "a number": lambda x: x + 1,
    "a number before": lambda x: 1 + x,
    "an equal number": lambda x: df.equal(x, 1),
    "concat": lambda x: df.concat([x, [1]], 0),
    "logical_not": lambda x: df.logical_not(x),
    "ones_like": lambda x: df.ones_like(x),
    "where_true": lambda x: df.where(x),
    "bitcast": lambda x: df.bitcast(x, df.int8),
}


@pytest.mark.parametrize("op", REFUSED)
def test_ops_on_numbers_refuse_strings(op, mode):
    with pytest.raises(df.errors.DTypeError, match=r"string"):
        mode(REFUSED[op])(df.constant(AB))


def test_casts_between_strings_and_numbers_are_refused(mode):
    with pytest.raises(df.errors.UnimplementedError, match="Cast string to float32 is not supported"):
        mode(lambda x: df.cast(x, df.float32))(df.constant("1"))
    with pytest.raises(df.errors.UnimplementedError, match="Cast int32 to string is not supported"):
        mode(lambda x: df.cast(x, df.string))(df.constant(1))


def test_checks_show_the_strings_that_differ(mode):
    with pytest.raises(df.errors.InvalidArgumentError, match="x = b'b', y = b'c'"):
        mode(lambda x: df.debugging.assert_equal(x, ["a", "c"]))(df.constant(AB))
    with pytest.raises(df.errors.InvalidArgumentError, match="x = b'a', y = b'b'"):
        mode(lambda x: df.debugging.assert_equal(x[0], x[1]))(df.constant(AB))


def test_a_variable_holds_strings(mode):
    variable = df.Variable(["a", "b"])
    assert repr(variable).endswith("dtype=string, numpy=array([b'a', b'b'], dtype=object)>")

    def change(x):
        variable.assign(x)
        return variable + "!"

    assert mode(change)(df.constant(["long text", ""])).numpy().tolist() == [b"long text!", b"!"]
    assert variable.numpy().tolist() == [b"long text", b""]


def test_no_gradient_flows_through_strings():
    text = df.constant("2")
    with df.GradientTape() as tape:
        with pytest.warns(UserWarning, match="floating"):
            tape.watch(text)
        y = df.strings.to_number(text) * 3.0
    assert tape.gradient(y, text) is None
    with df.GradientTape() as tape:
        x = df.constant(2.0)
        tape.watch(x)
        y = df.strings.to_number(df.as_string(x)) * 3.0
    assert tape.gradient(y, x) is None


def test_strings_are_printed_as_text(capsys, mode):
    def show(x):
        df.print("is", x[0], x, [x[1]], output_stream=sys.stdout)

    mode(show)(df.constant(['a"\n', "é"]))
    assert capsys.readouterr().out == 'is a"\n ["a\\"\\n" "é"] ["é"]\n'
    mode(show)(df.constant([b"\xff", b"\x01"]))
    assert capsys.readouterr().out == 'is \ufffd ["\ufffd" "\\001"] ["\\001"]\n'

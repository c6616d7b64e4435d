"""Strings in traced functions: host calls, which status() reports."""

import numpy as np
import pytest

import dualflow as df


def test_a_condition_on_strings_is_a_branch():
    @df.function
    def f(s):
        if s == "a":
            return s + "!"
        return "no"

    assert f(df.constant("a")).numpy() == b"a!"
    assert f(df.constant("b")).numpy() == b"no"


def test_loops_carry_strings_and_run_over_them():
    @df.function
    def f(s, text):
        count = 0
        for word in s:
            if word == "b":
                count += 1
            text = text + word
        while df.strings.length(text) < 6:
            text = text + "."
        return count, text

    count, text = f(df.constant(["a", "b", "b"]), "")
    assert (count.numpy(), text.numpy()) == (2, b"abb...")
    assert f(df.constant([], df.string), df.constant("x"))[1].numpy() == b"x....."


def test_a_signature_takes_strings_of_any_number():
    traces = []

    @df.function(input_signature=[df.TensorSpec([None], df.string)])
    def f(s):
        traces.append(1)
        return df.strings.length(s), df.boolean_mask(s, s != ""), df.concat([s, ["é"]], 0)

    for words in (["a", "", "b"], np.array(["x"]), df.constant([], df.string)):
        lengths, kept, more = f(words)
        expected = [w.encode() for w in np.asarray(words, str).tolist()]
        assert lengths.numpy().tolist() == [len(w) for w in expected]
        assert kept.numpy().tolist() == [w for w in expected if w]
        assert more.numpy().tolist() == [*expected, b"\xc3\xa9"]
    assert traces == [1]
    with pytest.raises(df.errors.DTypeError, match="dtype string"):
        f([1])


def test_a_python_string_is_a_value_of_the_trace_and_a_tensor_is_none():
    traces = []

    @df.function
    def f(s):
        traces.append(type(s))
        return df.strings.length(s)

    assert [f("a").numpy(), f("bc").numpy(), f(df.constant("d")).numpy(), f(np.array("ef")).numpy()] == [
        1,
        2,
        1,
        2,
    ]
    assert len(traces) == 3


def test_status_reports_that_strings_are_host_calls():
    @df.function
    def f(s):
        return df.strings.lower(s)

    f(df.constant("A"))
    assert "strings are Python's objects" in str(f.status())


def test_a_function_without_strings_is_native_when_strings_are_in_use():
    @df.function
    def f(x):
        return x * 2.0 + 1.0

    df.constant("a")
    f(df.constant([1.0]))
    assert "native: 1 kernel" in str(f.status())


def test_a_strict_function_refuses_strings():
    @df.function(strict=True)
    def f(s):
        return df.strings.lower(s)

    with pytest.raises(df.errors.DualflowError, match="strings are Python's objects"):
        f(df.constant("A"))


def test_gradients_flow_past_strings():
    @df.function
    def f(s, x):
        with df.GradientTape() as tape:
            tape.watch(x)
            y = x * x if s == "square" else x * df.strings.to_number(s)
        return tape.gradient(y, x)

    assert f(df.constant("square"), df.constant(3.0)).numpy() == 6.0
    assert f(df.constant("5"), df.constant(3.0)).numpy() == 5.0

    with df.GradientTape() as tape:
        x = df.constant(3.0)
        tape.watch(x)
        y = df.function(lambda s, x: x * df.strings.to_number(s))(df.constant("7"), x)
    assert tape.gradient(y, x).numpy() == 7.0


@pytest.mark.parametrize("call", [df.py_function, df.numpy_function])
def test_python_functions_take_and_return_strings(call, mode):
    def twice(x):
        x = x.numpy() if hasattr(x, "numpy") else x
        return np.array([(s * 2).decode() for s in x.tolist()])

    f = mode(lambda s: call(twice, [s], df.TensorSpec([2], df.string)))
    assert f(df.constant(["a", "é"])).numpy().tolist() == [b"aa", "éé".encode()]


def test_random_draws_and_variables_go_with_strings():
    count = df.Variable(0)

    @df.function
    def f(s):
        count.assign_add(1)
        df.print("never", output_stream=lambda text: None)
        return df.strings.join([s, df.as_string(count)])

    assert [f(df.constant("n")).numpy() for _ in range(3)] == [b"n1", b"n2", b"n3"]


def test_an_unused_part_that_would_fail_is_not_run():
    @df.function
    def f(s):
        df.strings.to_number(s)
        return s

    assert f(df.constant("no number")).numpy() == b"no number"


def test_an_error_names_the_users_line():
    @df.function
    def f(s):
        return df.strings.to_number(s)

    with pytest.raises(df.errors.InvalidArgumentError, match="b'x'") as caught:
        f(df.constant("x"))
    assert any("test_in_functions.py" in note for note in caught.value.__notes__)


def test_strings_of_any_number_have_one_trace_for_numpy_and_the_errors_of_eager_calls():
    @df.function(input_signature=[df.TensorSpec([None], df.string)] * 2)
    def joined(a, b):
        return df.strings.join([a, b])

    for n in (0, 1, 2, 3):
        assert joined(df.constant(["x"] * n, df.string), df.constant(["y"] * n, df.string)).shape == (n,)
    (concrete,) = joined.concrete_functions
    assert len(concrete._specialisations) == 1
    with pytest.raises(df.errors.InvalidArgumentError, match="one shape"):
        joined(df.constant(["x"]), df.constant(["y", "z"]))

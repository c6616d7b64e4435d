"""Tracebacks of errors that pass through dualflow: they show the user's lines, and those alone."""

from __future__ import annotations

import copy
import inspect
import logging
import pickle
import subprocess
import sys
import traceback
import types

import numpy as np
import pytest

import dualflow as df
from dualflow.compat import v1
from dualflow.core.errors import DualflowError, InternalError
from dualflow.core.tracebacks import entry, hide_frames

X, M = df.constant([1.0, 2.0, 3.0]), df.ones([2, 2])


class Mine(Exception):
    """What the user's own code raises in these tests."""


def refuse(*_):
    raise Mine("no")


def files(error):
    """Where the frames of an error's traceback are."""
    return [frame.filename for frame in traceback.extract_tb(error.__traceback__)]


def raised_by(call):
    with pytest.raises(Exception) as caught:  # noqa: PT011  which one is not the matter here
        call()
    return caught.value


@df.function
def divided(x, y):
    return x // y


@df.function
def mistaken(x):
    return df.reshape(x, [7])


@df.function
def nested(x):
    return mistaken(x + 1.0)


@df.function
def raising(x):
    refuse()
    return x


@df.function
def calling(x):
    return df.py_function(refuse, [x], df.float32)


@df.function(input_signature=[df.TensorSpec([2])])
def signed(x):
    return x


@df.custom_gradient
def without_gradient(x):
    return x * 1.0, refuse


def taped(function):
    with df.GradientTape() as tape:
        tape.watch(X)
        y = function(X)
    return tape.gradient(y, X)


def session_run():
    with v1.Graph().as_default(), v1.Session() as session:
        x = v1.placeholder(v1.float32, [2])
        session.run(x + 1.0)


def session_build():
    with v1.Graph().as_default():
        v1.get_variable("weight", shape=[2], initializer=df.zeros([3]))


ERRORS = {
    "a session": session_run,
    "an optimizer": lambda: v1.train.GradientDescentOptimizer(0.1).apply_gradients(
        [(None, df.Variable(1.0))]
    ),
    "a comparison": lambda: df.compare(raising, X),
    "an explicit graph": session_build,
    "an operator": lambda: X + M,
    "an operator from the right": lambda: np.ones(7) - X,
    "a power": lambda: X ** df.ones([2]),
    "an elementwise function": lambda: df.add(X, M),
    "a matrix product": lambda: M @ X,
    "another op": lambda: df.reshape(X, [7]),
    "an op with keywords": lambda: df.concat(values=[X, M], axis=0),
    "an op in a module": lambda: df.nn.softmax(X, axis=5),
    "an index": lambda: X[7],
    "a conversion": lambda: df.constant([[1], [1, 2]]),
    "the truth of a tensor": lambda: bool(X),
    "a number of a tensor": lambda: float(X),
    "the length of a scalar": lambda: len(df.constant(1.0)),
    "random numbers": lambda: df.random.normal([-1]),
    "an assignment": lambda: df.Variable(X).assign(M),
    "a part of a variable": lambda: df.Variable(X)[7].assign(1.0),
    "a new variable": lambda: df.Variable(object()),
    "a tape": lambda: taped(lambda x: 1.0),
    "a user's gradient": lambda: taped(without_gradient),
    "a trace": lambda: mistaken(X),
    "a trace by name": lambda: mistaken(x=X),
    "a trace in a trace": lambda: nested(X),
    "a user's error in a trace": lambda: raising(X),
    "a run": lambda: divided(df.constant(1), df.constant(0)),
    "Python that a run calls": lambda: calling(X),
    "Python that an op calls": lambda: df.py_function(refuse, [X], df.float32),
    "a gradient of a function": lambda: taped(calling),
    "a signature": lambda: signed(X),
    "arguments": lambda: signed(X, X),
    "a concrete function": lambda: signed.get_concrete_function()(M),
    "a branch": lambda: df.cond(True, refuse, refuse),
    "a loop": lambda: df.while_loop(refuse, lambda i: i, [0]),
    "a map": lambda: df.map_fn(refuse, X),
    "an array of tensors": lambda: df.TensorArray(df.float32, 2).read(5),
}


@pytest.mark.parametrize("how", ERRORS)
def test_only_the_users_frames_are_shown(how):
    frames = files(raised_by(ERRORS[how]))
    assert set(frames) == {__file__}


@pytest.mark.parametrize("how", ["a run", "a trace", "Python that a run calls"])
def test_a_repeated_call_shows_no_more(how):
    assert len({len(files(raised_by(ERRORS[how]))) for _ in range(4)}) == 1


@pytest.mark.parametrize("how", ERRORS)
def test_no_other_error_of_dualflow_is_shown_next_to_it(how):
    error = raised_by(ERRORS[how])
    shown = "".join(traceback.format_exception(error))
    assert shown.count("Traceback (most recent call last)") == 1


def hides_its_frames(function):
    """Whether an error of ours that wrong arguments raise, if any, has no frames of dualflow."""
    arguments = [p for p in inspect.signature(function).parameters.values() if p.default is p.empty]
    try:
        function(*[object()] * len(arguments))
    except DualflowError as error:
        return set(files(error)) == {__file__}
    except Exception:
        pass
    return True


@pytest.mark.parametrize("module", [df, df.math, df.nn, df.linalg, df.random], ids=lambda m: m.__name__)
def test_every_function_hides_its_frames(module):
    functions = {name: getattr(module, name) for name in dir(module)}
    with_name = {
        name: value
        for name, value in functions.items()
        if isinstance(value, types.FunctionType) and "name" in inspect.signature(value).parameters
    }
    assert [name for name, function in with_name.items() if not hides_its_frames(function)] == []


def test_the_users_frames_are_all_there_in_their_order():
    def outer():
        return inner()

    def inner():
        return nested(X)

    names = [frame.name for frame in traceback.extract_tb(raised_by(outer).__traceback__)]
    assert names[-4:] == ["outer", "inner", "nested", "mistaken"]


def test_the_users_own_chain_of_errors_stays():
    @df.function
    def f(x):
        try:
            refuse()
        except Mine as error:
            raise KeyError("other") from error
        return x

    error = raised_by(lambda: f(X))
    assert isinstance(error, KeyError)
    assert isinstance(error.__cause__, Mine)


def test_an_error_keeps_the_handled_error_as_context():
    def handled():
        try:
            refuse()
        except Mine:
            return X + M

    assert isinstance(raised_by(handled).__context__, Mine)


def test_libraries_that_the_user_calls_are_shown():
    @df.function
    def f(x):
        np.linalg.inv(np.ones((2, 3)))
        return x

    assert any("numpy" in file for file in files(raised_by(lambda: f(X))))


def test_an_internal_error_shows_all():
    @entry
    def broken():
        raise InternalError("a promise")

    assert len(files(raised_by(broken))) > len(files(raised_by(refuse)))


def test_an_error_raised_by_mistake_shows_all_frames():
    error = raised_by(lambda: df.custom_gradient(lambda x: 3)(X))
    assert any("dualflow" in file for file in files(error)) or isinstance(error, DualflowError)


def test_filtering_can_be_switched_off_and_on():
    assert df.debugging.is_traceback_filtering_enabled()
    df.debugging.disable_traceback_filtering()
    try:
        assert not df.debugging.is_traceback_filtering_enabled()
        assert set(files(raised_by(lambda: X + M))) != {__file__}
    finally:
        df.debugging.enable_traceback_filtering()
    assert set(files(raised_by(lambda: X + M))) == {__file__}


def test_logs_and_the_interpreter_show_the_same(caplog):
    try:
        X + M
    except ValueError:
        logging.getLogger("user").exception("failed")
    assert "dualflow/" not in caplog.text.replace("\\", "/")
    program = "import dualflow as df\ndf.constant([1.0, 2.0]) + df.constant([1.0, 2.0, 3.0])\n"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert [line for line in done.stderr.splitlines() if line.strip().startswith("File")] == [
        '  File "<string>", line 2, in <module>'
    ]


def test_an_error_without_a_traceback_is_left_alone():
    error = ValueError("fresh")
    hide_frames(error)
    assert error.__traceback__ is None


@pytest.mark.parametrize(
    ("function", "parameters"),
    [
        (df.size, ["input", "out_type", "name"]),
        (df.reduce_sum, ["input_tensor", "axis", "keepdims", "name"]),
        (df.linalg.det, ["input", "name"]),
        (df.Variable.assign, ["self", "value", "use_locking", "name", "read_value"]),
        (df.TensorArray.read, ["self", "index", "name"]),
    ],
    ids=["op", "reduction", "lazy name", "method", "wrapped method"],
)
def test_a_wrapped_function_has_its_parameters(function, parameters):
    """``getfullargspec`` does not follow ``__wrapped__``; libraries choose arguments by it."""
    assert inspect.getfullargspec(function).args == list(inspect.signature(function).parameters) == parameters


def test_a_signature_is_copied_and_bound():
    signature = copy.deepcopy(inspect.signature(df.size))
    assert signature == inspect.signature(df.size.__wrapped__)
    assert pickle.loads(pickle.dumps(signature.replace(return_annotation=None))).return_annotation is None
    assert next(iter(inspect.signature(df.Variable(1.0).assign).parameters)) == "value"


def test_all_public_functions_show_their_parameters():
    spaces = (df, df.math, df.nn, df.linalg, df.random, df.strings, df.image, df.signal, df.sparse)
    functions = {
        f"{space.__name__}.{name}": value
        for space in spaces
        for name in dir(space)
        if inspect.isfunction(value := getattr(space, name))
    }
    hidden = [n for n, f in functions.items() if inspect.getfullargspec(f)[:3] == ([], "args", "kwargs")]
    assert len(functions) > 300
    assert hidden == []


def test_a_function_of_code_without_a_module_has_an_entry():
    namespace: dict = {}
    exec("def count(x): return len(x)", namespace)
    assert namespace["count"].__module__ is None
    assert entry(namespace["count"])([1, 2]) == 2

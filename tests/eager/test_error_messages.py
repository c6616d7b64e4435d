"""Errors of tensors, variables, tapes and custom gradients: what is wrong and what to do."""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import pytest
from error_cases import ErrorCases, Frames

import dualflow as df
from dualflow.core.errors import (
    DTypeError,
    FailedPreconditionError,
    InvalidArgumentError,
    UnsupportedValueError,
)
from dualflow.eager import updates
from dualflow.eager.updates import VariableUpdate

V, M, ONE = df.constant([1.0, 2.0]), df.ones([2, 2]), df.constant(1.0)
autodiff = df.autodiff
PACKAGE = str(Path(df.__file__).parent)
WEIGHT = df.Variable(V, name="weight")


def taped(function, **options):
    """The error of a tape around ``function`` of one watched vector."""
    with df.GradientTape(**options) as tape:
        tape.watch(V)
        y = function(V)
    return tape, y


def derived(function, source=V, **options):
    tape, y = taped(function)
    return tape.gradient(y, source, **options)


def jacobian(function, source=V):
    tape, y = taped(function)
    return tape.jacobian(y, source)


def batch_jacobian():
    with df.GradientTape() as tape:
        tape.watch(M)
        y = df.concat([M, M], 0)
    return tape.batch_jacobian(y, M)


def twice():
    tape, y = taped(lambda x: x * x)
    return tape.gradient(y, V), tape.gradient(y, V)


def watching(x):
    with df.GradientTape() as tape:
        tape.watch(x)


def accumulating_twice():
    acc = autodiff.ForwardAccumulator(V, V)
    with acc, acc:
        pass


def entered_twice():
    with df.GradientTape() as tape, tape:
        pass


def on_device(name):
    with df.device(name):
        pass


def strictly(call):
    """``call`` where a block on a device that isn't there is an error."""
    df.config.set_soft_device_placement(False)
    try:
        call()
    finally:
        df.config.set_soft_device_placement(True)


def stopped_late():
    tape = df.GradientTape()
    with tape.stop_recording():
        pass


def changed_inside():
    """Python code that changes a variable, called by a compiled function that changes it."""

    def change(x):
        WEIGHT.assign_add(x)
        return x

    df.function(lambda: WEIGHT.assign_add(df.py_function(change, [V], df.float32)))()


def waited_for():
    """This thread changes ``a`` and reads ``b``, another thread the other way round."""
    a, b = df.Variable(0.0), df.Variable(0.0)

    def other():
        update = VariableUpdate([b])
        with update.running, update:
            a.assign(1.0)

    thread = threading.Thread(target=other)
    try:
        update = VariableUpdate([a])
        with update.running, update:
            thread.start()
            while len(updates._updates) < 3:
                pass
            b.assign(1.0)
    finally:
        thread.join()


def escaped():
    """A symbol that has left its trace."""
    kept = []
    df.function(lambda x: kept.append(x))(ONE)
    return kept[0]


def called(result, declared=df.float32, *inputs, through=df.py_function):
    """A Python function with this result, where another one is declared."""
    return through(lambda *_: result, list(inputs) or [V], declared)


def in_graph(function, *shapes):
    return df.function(function).get_concrete_function(*[df.TensorSpec(s) for s in shapes])


@df.custom_gradient
def unaware(x):
    return x * WEIGHT, lambda g: g


@df.custom_gradient
def of_another_dtype(x):
    return x * 1.0, lambda g: df.complex(g, g)


@df.custom_gradient
def generous(x):
    return x * 1.0, lambda g: (g, g)


CASES = {
    "a tape that was never entered": (
        lambda: df.GradientTape().gradient(ONE, ONE),
        FailedPreconditionError,
        "never entered",
        r"with df\.GradientTape\(\) as tape",
    ),
    # generators
    "a seed that is a text": (
        lambda: df.random.set_seed("seven"),
        DTypeError,
        "A seed is an integer",
        "'seven'",
    ),
    "a generator of nothing": (
        lambda: df.random.Generator(),
        InvalidArgumentError,
        "needs exactly one of copy_from and state",
        "Generator.from_seed",
    ),
    "a generator's state of two": (
        lambda: df.random.Generator.from_state([1, 2], "philox"),
        InvalidArgumentError,
        "three int64 numbers",
        "Generator.from_seed",
    ),
    "a generator's seed of floats": (
        lambda: df.random.create_rng_state([1.0], "philox"),
        DTypeError,
        "must be one or more integers, not",
        "integer",
    ),
    # names
    "a scope of a number": (
        lambda: df.name_scope(3),
        InvalidArgumentError,
        "must be a string, not 3",
        "name_scope",
    ),
    # tensors
    "a vector as a float": (
        lambda: float(V),
        UnsupportedValueError,
        r"shape \(2,\) has 2 elements",
        "reduce it or index it",
    ),
    "a float as an index": (lambda: [1, 2][ONE], DTypeError, r"one integer .* not float32", r"int\(x\)"),
    "the length of a scalar": (lambda: len(ONE), DTypeError, "no len", r"df\.size"),
    "the elements of a scalar": (lambda: iter(ONE), DTypeError, "can't be iterated over", r"df\.reshape"),
    "a number's format for a vector": (
        lambda: f"{V:.2f}",
        DTypeError,
        r"'\.2f' is for one number, but the tensor's shape is \(2,\)",
        "np.array2string",
    ),
    "the truth of a vector": (
        lambda: bool(V),
        InvalidArgumentError,
        "ambiguous",
        "df.reduce_any or df.reduce_all",
    ),
    "a device": (
        lambda: on_device("fast"),
        InvalidArgumentError,
        "'fast' is not the name of a device",
        "such as '/cpu:0' or '/gpu:0'",
    ),
    "a device where none may stand in": (
        lambda: strictly(lambda: on_device("/gpu:0")),
        InvalidArgumentError,
        "'/gpu:0' is not available",
        "set_soft_device_placement",
    ),
    "no device": (
        lambda: df.config.set_visible_devices([]),
        InvalidArgumentError,
        r"The visible devices can't be \[\]",
        "choose from",
    ),
    "a copy on a GPU": (
        lambda: V.gpu(),
        FailedPreconditionError,
        "GPU:0 unknown device",
        r"an OpenCL driver and pyopencl.*leave out the call",
    ),
    "an argument of no name": (
        lambda: df.eager.gradients_function(lambda x: x, params=["z"]),
        InvalidArgumentError,
        "no argument 'z'",
        r"there are \['x'\]",
    ),
    "Python without its inputs": (
        lambda: df.py_function(called),
        DTypeError,
        "py_function needs the tensors",
        r"@df.py_function\(Tout=df.float32\)",
    ),
    "NumPy without its inputs": (
        lambda: df.numpy_function(called),
        DTypeError,
        "numpy_function needs the tensors",
        r"@df.numpy_function\(Tout=df.float32\)",
    ),
    "a symbol outside": (
        lambda: escaped() + 1.0,
        df.errors.InaccessibleTensorError,
        "symbolic tensor of a traced",
        "return it",
    ),
    # variables
    "a part of a variable": (
        lambda: WEIGHT.__setitem__(0, 1.0),
        DTypeError,
        "Assign a part",
        r"v\[key\]\.assign",
    ),
    "a variable in place": (
        lambda: WEIGHT.__iadd__(1.0),
        FailedPreconditionError,
        r"does not change by \+=",
        r"v\.assign_add\(x\)",
    ),
    "slices that are none": (
        lambda: WEIGHT.scatter_add(V),
        DTypeError,
        r"is a df\.IndexedSlices\(values, indices\), not a EagerTensor",
        "scatter_nd_update",
    ),
    "a quotient of integers": (
        lambda: df.Variable([4, 5]).scatter_div(df.IndexedSlices([2], [0])),
        DTypeError,
        "divides floats, not int32",
        r"v\[i\]\.assign",
    ),
    "a variable's hash": (lambda: hash(WEIGHT), DTypeError, "no hash", r"v\.ref\(\)"),
    "a variable without a value": (
        lambda: df.Variable(),
        InvalidArgumentError,
        "needs an initial value",
        r"df\.Variable\(initial",
    ),
    "a value of another dtype": (
        lambda: WEIGHT.assign(df.constant([1, 2])),
        InvalidArgumentError,
        "weight .* int32",
        "df.cast",
    ),
    "a value of another shape": (
        lambda: WEIGHT.assign(M),
        InvalidArgumentError,
        r"weight .* shape \(2, 2\)",
        "must be equal",
    ),
    "a variable that a compiled call changes": (
        changed_inside,
        FailedPreconditionError,
        "weight:0 is being changed by a compiled call",
        "Change it after the call",
    ),
    "threads that wait for each other": (
        waited_for,
        FailedPreconditionError,
        "Two threads wait for each other",
        "after the",
    ),
    # tapes
    "an entered tape": (entered_twice, InvalidArgumentError, "still recording", "re-enter an active tape"),
    "a stopped tape": (stopped_late, InvalidArgumentError, "Tape is not recording\\.", "in its with block"),
    "a target of None": (
        lambda: derived(lambda x: None),
        DTypeError,
        "received None",
        "Tensors or Variables",
    ),
    "a target that is no tensor": (
        lambda: derived(lambda x: "y"),
        DTypeError,
        "not 'y'",
        "must be a tensor or variable",
    ),
    "a source that is no tensor": (
        lambda: derived(lambda x: x * x, "x"),
        DTypeError,
        "not 'x'",
        "tensors and variables",
    ),
    "a second gradient": (
        twice,
        FailedPreconditionError,
        "only be used to compute one set",
        "persistent=True",
    ),
    "weights of another dtype": (
        lambda: derived(lambda x: x * x, output_gradients=df.constant([1j, 1j, 1j])),
        DTypeError,
        "output_gradients of dtype complex128",
        "df.cast",
    ),
    "a written gradient of another dtype": (
        lambda: derived(of_another_dtype),
        DTypeError,
        "returned a gradient of dtype complex64",
        "df.cast",
    ),
    "too few weights": (
        lambda: derived(lambda x: [x, x * x], output_gradients=[V]),
        InvalidArgumentError,
        "2 targets",
        "give None for ones",
    ),
    "what is unconnected": (
        lambda: derived(lambda x: x, unconnected_gradients="nan"),
        InvalidArgumentError,
        "'nan'",
        "use 'none' or 'zero'",
    ),
    "watching a number": (
        lambda: watching(1.0),
        InvalidArgumentError,
        "1.0 of type 'float'",
        "df.constant",
    ),
    "watching too late": (
        lambda: df.GradientTape().watch(V),
        FailedPreconditionError,
        "not recording",
        "in its with block",
    ),
    "a jacobian of dynamic size": (
        lambda: in_graph(lambda x: open_jacobian(x), [None]),
        InvalidArgumentError,
        "static shape",
        "static shapes",
    ),
    "a jacobian of several tensors": (
        lambda: jacobian(lambda x: df.linalg.LinearOperatorBlockDiag([df.linalg.LinearOperatorDiag(x)] * 2)),
        DTypeError,
        "of one tensor by another, and <LinearOperatorBlockDiag .* consists of 2",
        "pass one of them",
    ),
    "rows that are not alike": (
        batch_jacobian,
        InvalidArgumentError,
        r"target shape \(\(4, 2\)\)",
        "to match",
    ),
    # functions of gradients
    "a parameter that is not given": (
        lambda: df.eager.gradients_function(lambda x: x * x, params=[1])(V),
        InvalidArgumentError,
        r"params is \[1\], but 1 arguments",
        "given arguments",
    ),
    "no result": (
        lambda: df.eager.implicit_gradients(lambda: None)(),
        InvalidArgumentError,
        "returns None",
        "forget to return",
    ),
    "no variables": (
        lambda: df.eager.implicit_gradients(lambda: V * V)(),
        InvalidArgumentError,
        "No trainable variables",
        "accessed",
    ),
    "py_func in a graph": (
        lambda: in_graph(lambda x: df.eager.py_func(np.sin, [x], df.float32), []),
        FailedPreconditionError,
        "runs eagerly",
        "df.numpy_function",
    ),
    "a gradient without variables": (
        lambda: taped(unaware),
        DTypeError,
        "reads weight",
        "'variables' keyword",
    ),
    "a gradient too many": (
        lambda: derived(generous),
        InvalidArgumentError,
        "gradient function of generous .* returned 2",
        "each of",
    ),
    # Python as ops
    "too few results": (
        lambda: called([V], [df.float32] * 2),
        InvalidArgumentError,
        "returned 1 values",
        "as many as it lists",
    ),
    "no result of Python": (lambda: called(None), DTypeError, "returned None", "return a tensor, an array"),
    "another dtype of NumPy": (
        lambda: called(np.zeros(2), through=df.numpy_function),
        InvalidArgumentError,
        "dtype float64",
        r"\.astype",
    ),
    "another shape": (
        lambda: df.function(lambda x: called(np.zeros(3, np.float32), df.float32, x))(V),
        InvalidArgumentError,
        r"returned shape \(3,\)",
        r"df\.TensorSpec\(\(3,\), df\.float32\)",
    ),
    "no common shape": (
        lambda: df.function(lambda x, y: called(x, df.float32, x, y))(V, df.ones([3])),
        InvalidArgumentError,
        "no common one",
        "df.TensorSpec",
    ),
}
CASES |= {
    "tangents of another structure": (
        lambda: autodiff.ForwardAccumulator([V], [V, V]),
        InvalidArgumentError,
        "the same structure",
        "give each primal one tangent",
    ),
    "a tangent of another shape": (
        lambda: autodiff.ForwardAccumulator(V, M),
        InvalidArgumentError,
        r"not float32\(2, 2\)",
        "must have that dtype and shape",
    ),
    "a primal twice": (
        lambda: autodiff.ForwardAccumulator([V, V], [V, V]),
        InvalidArgumentError,
        "twice",
        "sum of its",
    ),
    "a primal of Python": (
        lambda: autodiff.ForwardAccumulator(2.0, 1.0),
        DTypeError,
        "not 2.0",
        r"convert it with df\.constant",
    ),
    "an accumulator inside of itself": (
        accumulating_twice,
        InvalidArgumentError,
        "already recording",
        "inside itself",
    ),
    "the gradient of a vector": (
        lambda: autodiff.grad(lambda x: x)(V),
        InvalidArgumentError,
        "needs a scalar",
        r"df\.autodiff\.jacobian",
    ),
    "a gradient for what is not given": (
        lambda: autodiff.grad(df.reduce_sum, argnums=1)(V),
        InvalidArgumentError,
        r"argnums is \[1\]",
        "positions of given",
    ),
    "a jacobian of another mode": (
        lambda: autodiff.jacobian(df.sin, mode="sideways"),
        InvalidArgumentError,
        "not 'sideways'",
        "'auto', 'forward' or 'reverse'",
    ),
    "a jacobian for a list": (
        lambda: autodiff.jacobian(lambda x: x[0])([V, V]),
        InvalidArgumentError,
        "needs tensors",
        "stack the parts",
    ),
    "a jacobian of dynamic sizes": (
        lambda: df.function(
            autodiff.jacobian(df.sin), input_signature=[df.TensorSpec([None])]
        ).get_concrete_function(),
        InvalidArgumentError,
        "static shape",
        "give static shapes",
    ),
}
OTHERWISE_TESTED = {
    "eager/device_tensor.py": "tests/backends/opencl/test_device_tensors.py",
    "eager/placed_ops.py": "tests/backends/opencl/test_device_tensors.py",
    "eager/engine.py": "short memory, and variables of explicit graphs, in tests of both",
}


def open_jacobian(x):
    with df.GradientTape() as tape:
        tape.watch(x)
        y = x * x
    return tape.jacobian(y, x)


class TestErrorMessages(ErrorCases):
    cases = CASES
    frames = Frames.NOT_OF_DUALFLOW
    tested_elsewhere = OTHERWISE_TESTED
    raised_in = ("eager/*.py", "gradient/*.py")


@pytest.mark.parametrize("holder", [V, WEIGHT], ids=["tensor", "variable"])
@pytest.mark.parametrize("name", ["sum", "copy", "astype", "all", "flatten", "argsort"])
def test_numpys_methods_name_the_switch(holder, name):
    with pytest.raises(AttributeError, match=rf"no attribute '{name}'.*experimental_enable_numpy_behavior"):
        getattr(holder, name)
    assert not hasattr(holder, name)


def test_an_unknown_attribute_is_pythons_error():
    with pytest.raises(AttributeError, match=r"^'EagerTensor' object has no attribute 'summ'$"):
        _ = V.summ

"""Errors of functions and graphs: what is wrong, where, and what to do.

What is wrong in the user's code inside of a function is refused with the user's line.
"""

from __future__ import annotations

import pickle

import numpy as np
from error_cases import ErrorCases, Frames

import dualflow as df
from dualflow.core.errors import (
    DTypeError,
    FailedPreconditionError,
    InaccessibleTensorError,
    InvalidArgumentError,
    OutOfRangeError,
)
from dualflow.function import RecursiveTraceError, SymbolicValueError
from dualflow.function.tracing.tracer import Tracer, tracing

V, ONE, SPEC = df.constant([1.0, 2.0]), df.constant(1.0), df.TensorSpec([2])
HERE = f'File "{__file__}", line'


def traced(function, *shapes, **options):
    return df.function(function, **options).get_concrete_function(*[df.TensorSpec(s) for s in shapes])


def run(function, *args, **options):
    return df.function(function, **options)(*args)


def method_of_nothing():
    class Model:
        @df.function
        def call(self, x):
            return x

    model = Model()
    bound = model.call.__wrapped__
    del model
    bound(ONE)


def slotted_method():
    class Model:
        __slots__ = ()

        @df.function
        def call(self, x):
            return x

    Model().call(ONE)


@df.rewrite.rule
def unchanged(node, make):
    """x = x"""


async def later(x):
    return x


class Later:
    async def __call__(self, x):
        return x


def items(x):
    yield x


async def items_later(x):
    yield x


def endless(x):
    return again(x)


again = df.function(endless)


@df.function
def in_place(x):
    return x


def kept(x):
    KEPT.append(x)
    return x


KEPT = []


def leaked():
    run(kept, ONE)
    return run(lambda x: x + KEPT[-1], V)


def created_twice():
    @df.function
    def make(x):
        return df.Variable(1.0) + x

    return make(ONE)


def coinciding():
    v, w = df.Variable(1.0), df.Variable(2.0)
    both = df.function(lambda a, b: a + b).get_concrete_function(v, v)
    return both(v, w)


def second_derivative_of_noise():
    @df.function
    def f(x):
        return df.py_function(lambda v: v * v, [x], df.float32) * x

    with df.GradientTape() as outer:
        outer.watch(ONE)
        with df.GradientTape() as inner:
            inner.watch(ONE)
            y = f(ONE)
        slope = inner.gradient(y, ONE)
    return outer.gradient(slope, ONE)


def created_in_passing():
    with tracing(Tracer("a span")):
        df.Variable(1.0)


def gradient_of_an_assigned_variable():
    variable = df.Variable(1.0)

    @df.function
    def f():
        variable.assign_add(1.0)
        return df.compat.v1.gradients(variable * variable, variable)

    return f()


def same(x):
    return x


PLAIN = df.function(same)


def checked():
    df.debugging.enable_check_numerics()
    try:
        return df.math.log(-ONE)
    finally:
        df.debugging.disable_check_numerics()


def called(function):
    function(V)
    return function


CASES = {
    # gradients by name
    "a gradient for a variable that has been assigned": (
        gradient_of_an_assigned_variable,
        InvalidArgumentError,
        "Variable.* has been assigned in 'f', and has several values",
        r"x = v.value\(\)",
        HERE,
    ),
    # signatures
    "an argument without a hash": (
        lambda: run(lambda x: x, {1}),
        DTypeError,
        r"\{1\}: .* has no hash",
        "Pass a tuple",
    ),
    "an argument that is modified": (
        lambda: run(lambda d: d.update(y=d["x"]), {"x": V}),
        InvalidArgumentError,
        r"<lambda>\(d\) should not modify .* modified: d\.",
        "Return the new values",
    ),
    "a function without a name, pickled": (
        lambda: pickle.dumps(df.function(lambda x: x)),
        DTypeError,
        "no module has .*<lambda>. under that name",
        "Define it at the top of a module",
    ),
    "a concrete function, pickled": (
        lambda: pickle.dumps(in_place.get_concrete_function(SPEC)),
        DTypeError,
        "ConcreteFunction in_place.* can't be pickled",
        "Pickle the function that it was traced from",
    ),
    "a backend that isn't there": (
        lambda: df.function(lambda x: x, backend="cuda"),
        InvalidArgumentError,
        "no backend 'cuda'",
        "one of llvm, numba, opencl, numpy",
    ),
    "a first call that does something else": (
        lambda: df.function(lambda x: x, first_call="guess"),
        InvalidArgumentError,
        "no first_call='guess'",
        "one of 'compile', 'interpret'",
    ),
    "an export to another language": (
        lambda: df.function(lambda x: x).get_concrete_function(df.TensorSpec([])).export("folder", to="java"),
        InvalidArgumentError,
        "no export to 'java'",
        "use 'c', 'library', 'wasm', 'html' or 'onnx'",
    ),
    "an export of strings": (
        lambda: (
            df.function(df.strings.upper).get_concrete_function(df.TensorSpec([], df.string)).export("folder")
        ),
        InvalidArgumentError,
        "computes with strings",
    ),
    "an export of a function of which an op needs sizes as numbers": (
        lambda: (
            df.function(lambda x: df.split(x, 2, 1)[0])
            .get_concrete_function(df.TensorSpec([3, None]))
            .export("folder")
        ),
        InvalidArgumentError,
        "can't be exported for all sizes",
    ),
    "sizes that are neither automatic nor exact": (
        lambda: df.function(lambda x: x, sizes="open"),
        InvalidArgumentError,
        "no sizes='open'",
        "one of 'automatic', 'exact'",
    ),
    "a strict function that is to be interpreted": (
        lambda: df.function(lambda x: x, first_call="interpret", strict=True),
        InvalidArgumentError,
        "function that is strict can't have first_call='interpret'",
        "Leave out one of the two",
    ),
    "a budget that NumPy would not keep": (
        lambda: df.function(lambda x: x, first_call="interpret", memory_budget="1MB"),
        InvalidArgumentError,
        "function that is within a memory budget can't have first_call='interpret'",
        "Leave out one of the two",
    ),
    "a budget that is no number of bytes": (
        lambda: df.function(lambda x: x, memory_budget="a lot"),
        InvalidArgumentError,
        "positive number of bytes.* not 'a lot'",
        "'2GB' or '512 MiB'",
    ),
    "a budget that can't be kept": (
        lambda: df.function(lambda x: df.sin(x), memory_budget="3 B")(V),
        df.errors.ResourceExhaustedError,
        r"'<lambda>' can't run in a memory_budget of 3 bytes: .*it takes \d+ bytes",
        "a smaller batch, or compute in parts.\n.*test_error_messages.py",
    ),
    "a budget for sizes that data decide": (
        lambda: df.function(lambda x: df.boolean_mask(x, x > 0.0), memory_budget="1MB")(V),
        df.errors.FailedPreconditionError,
        "memory of '<lambda>' can't be planned: the size of the result of .* depends on data",
        "Leave memory_budget out",
    ),
    "a budget for strings": (
        lambda: df.function(lambda x: df.strings.length(x), memory_budget="1MB")(df.constant(["a"])),
        df.errors.FailedPreconditionError,
        "has strings",
        "outside of the function",
    ),
    "a budget for strings whose number depends on data": (
        lambda: df.function(lambda x: df.strings.as_string(df.where(x > 0.0)), memory_budget="1MB")(V),
        df.errors.FailedPreconditionError,
        "memory of '<lambda>' can't be planned",
        "outside of the function",
    ),
    "the memory of dynamic sizes": (
        lambda: (
            df.function(lambda x: x, input_signature=[df.TensorSpec([None])]).get_concrete_function().memory
        ),
        df.errors.FailedPreconditionError,
        "has dynamic sizes",
        "Call it first",
    ),
    "eager kernels that aren't there": (
        lambda: df.config.set_eager_kernels("cuda"),
        InvalidArgumentError,
        "no eager kernels 'cuda'",
        "one of compiled, numpy",
    ),
    "the source of another backend": (
        lambda: in_place.get_concrete_function(SPEC).source("llvm"),
        InvalidArgumentError,
        "no source for the backend 'llvm'",
        "use 'numba'",
    ),
    "arguments that do not bind": (
        lambda: run(lambda x: x, V, V),
        DTypeError,
        "too many positional",
        r"for signature: .*\(x\)",
    ),
    "a signature that is a spec": (
        lambda: df.function(lambda x: x, input_signature=SPEC),
        DTypeError,
        "a list with a df.TensorSpec for each argument",
        "write it in brackets",
    ),
    "a signature too long": (
        lambda: df.function(lambda x: x, input_signature=[SPEC] * 2),
        DTypeError,
        "has 2",
        "takes 1",
    ),
    "a signature too short": (
        lambda: df.function(lambda x, y: x, input_signature=[SPEC]),
        DTypeError,
        "missing",
        "for y",
    ),
    "a signature of shapes": (
        lambda: df.function(lambda x: x, input_signature=[[2]]),
        DTypeError,
        "not 2",
        "TensorSpec objects",
    ),
    "a value of another shape": (
        lambda: run(lambda x: x, ONE, input_signature=[SPEC]),
        DTypeError,
        "Can not cast",
        r"shape=\(2,\)",
    ),
    "a variable for a tensor": (
        lambda: run(lambda x: x, df.Variable(V), input_signature=[SPEC]),
        DTypeError,
        "Can not cast",
        "read_value",
    ),
    "another structure": (
        lambda: run(lambda x: x, V, input_signature=[[SPEC] * 2]),
        DTypeError,
        "not have the structure of a list",
        "2 leaves",
    ),
    "another structure for a concrete function": (
        lambda: df.function(lambda pair: pair[0]).get_concrete_function([SPEC, SPEC])({}),
        DTypeError,
        "The argument pair, {} does not have the structure of a list with 2 leaves",
        "one by one",
    ),
    "a changed Python value": (
        lambda: df.function(lambda x, n: x).get_concrete_function(SPEC, 3)(V, 4),
        DTypeError,
        "traced with n = 3 and can't be called with 4",
        "another concrete function",
    ),
    "another shape for a trace": (
        lambda: traced(lambda x: x, [2])(ONE),
        InvalidArgumentError,
        r"traced with x: float32\[2\]",
        "another trace",
    ),
    "arguments of a trace": (
        lambda: traced(lambda x: x, [2])(V, V),
        DTypeError,
        "too many positional",
        "traced as",
    ),
    "variables that coincided": (
        coinciding,
        DTypeError,
        "other arguments are the same variable",
        "get another",
    ),
    "sizes not known yet": (
        lambda: traced(lambda x: x, [None]).parts,
        FailedPreconditionError,
        "has dynamic sizes",
        "call it",
    ),
    # results and state
    "a result that is no tensor": (
        lambda: run(lambda x: object(), ONE),
        DTypeError,
        "an object of type object",
        "Return the tensors in it",
    ),
    "an async function": (
        lambda: df.function(later),
        DTypeError,
        "later is an async function",
        "a plain function",
    ),
    "an async method": (
        lambda: df.function(Later()),
        DTypeError,
        "__call__ is an async function",
        "plain function",
    ),
    "a generator function": (
        lambda: df.function(items),
        DTypeError,
        "items is a generator function",
        "Return a list",
    ),
    "an async generator": (
        lambda: df.function(items_later),
        DTypeError,
        "generator function",
        "Return a list",
    ),
    "an array's method": (
        lambda: run(lambda x: x.sum(), V),
        df.errors.MissingAttributeError,
        "no attribute 'sum'",
        "use df.reduce_sum",
    ),
    "a variable each time": (
        created_twice,
        InvalidArgumentError,
        "singleton df.Variables created on the first call",
        "Keep it in an attribute",
    ),
    "an initial value from an argument": (
        lambda: run(lambda x: df.Variable(x), ONE),
        InaccessibleTensorError,
        "depends on an argument",
        "outside",
    ),
    "a variable in a branch": (
        lambda: run(lambda x: df.cond(x > 0, lambda: df.Variable(1.0) + x, lambda: x), ONE),
        InvalidArgumentError,
        "creates one each time it is traced",
        "create it only while that is None",
    ),
    "a variable where nothing is kept": (
        created_in_passing,
        InaccessibleTensorError,
        "can't create variables",
        "create it before",
    ),
    "a variable of dynamic shape": (
        lambda: run(lambda: OPEN + 1.0),
        InvalidArgumentError,
        "tensors of other shapes",
        "Give the variable a full shape",
    ),
    "a method of nothing": (
        method_of_nothing,
        FailedPreconditionError,
        "no longer exists",
        "keep it in a variable",
    ),
    "a method of a slotted object": (
        slotted_method,
        DTypeError,
        "supports weak references",
        "'__weakref__' to the __slots__ of Model",
    ),
    "an endless recursion": (
        lambda: again(ONE),
        RecursiveTraceError,
        "called itself",
        "Count down a Python argument",
    ),
    "a second derivative through Python": (
        second_derivative_of_noise,
        InvalidArgumentError,
        "second derivative .* py_function",
        "outside of",
    ),
    # symbols
    "a tensor from another trace": (
        leaked,
        InaccessibleTensorError,
        "out of scope",
        "Return it from that function",
    ),
    "the value of a symbol": (
        lambda: run(lambda x: x.numpy(), ONE),
        AttributeError,
        "no .numpy",
        "df.py_function",
    ),
    "a symbol for NumPy": (
        lambda: run(lambda x: np.asarray(x), ONE),
        SymbolicValueError,
        "Cannot convert a symbolic",
        "df.numpy_function",
    ),
    "the length of a symbol": (
        lambda: run(lambda x: len(x), ONE, autograph=False),
        DTypeError,
        "no len",
        r"df\.size",
    ),
    "the op of a symbol": (lambda: run(lambda x: x.op, ONE), AttributeError, "no .op", "tensors of a Graph"),
    "a symbol in a session": (
        lambda: run(lambda x: x.eval(), ONE),
        FailedPreconditionError,
        "can't be evaluated",
        "tensors of a Graph",
    ),
    # conditionals and loops
    "a conditional by a vector": (
        lambda: df.cond(V, lambda: 1, lambda: 2),
        InvalidArgumentError,
        r"shape \(2,\)",
        "use df.where",
    ),
    "a conditional of nothing": (
        lambda: df.switch_case(0, []),
        InvalidArgumentError,
        "switch_case",
        "at least one branch",
    ),
    "a case of nothing": (lambda: df.case([]), InvalidArgumentError, "case takes", "one pair of a predicate"),
    "a condition that is a vector": (
        lambda: run(lambda x: df.while_loop(lambda i: x > 0.0, lambda i: i, [ONE]), V),
        InvalidArgumentError,
        r"shape \(2,\)",
        "a scalar",
    ),
    "an iteration of another structure": (
        lambda: run(lambda x: df.while_loop(lambda i: i < x, lambda i: [i, i], [x]), ONE),
        InvalidArgumentError,
        "loop_vars has structure",
        "after one iteration",
    ),
    "an iteration of another dtype": (
        lambda: run(lambda x: df.while_loop(lambda i: i < 1.0, lambda i: df.cast(i, df.float64), [x]), ONE),
        DTypeError,
        "dtype float32 before the loop, but dtype float64",
        "cast it",
    ),
    "an iteration of another shape": (
        lambda: run(lambda x: df.while_loop(lambda i: i[0] < 1.0, lambda i: df.concat([i, i], 0), [x]), V),
        InvalidArgumentError,
        r"shape \(2,\) before the loop, but shape \(4,\)",
        "",
    ),
    "branches of other structures": (
        lambda: run(lambda x: df.cond(x > 0, lambda: x, lambda: [x, x]), ONE),
        InvalidArgumentError,
        r"result has structure .* in one branch, but structure .* in another",
        "the same types",
    ),
    "branches of other dtypes": (
        lambda: run(lambda x: df.cond(x > 0, lambda: x, lambda: df.constant(1)), ONE),
        DTypeError,
        "dtype (int32|float32) in one branch",
        "cast one",
    ),
    "branches of other shapes": (
        lambda: run(lambda x: df.cond(x > 0, lambda: x, lambda: V), ONE),
        InvalidArgumentError,
        "shape .* in one branch",
        "",
    ),
    "no memory for loops": (
        lambda: df.config.set_loop_memory(0),
        InvalidArgumentError,
        "not 0",
        "a positive number of bytes",
    ),
    # looking inside
    "comparing in a trace": (
        lambda: run(lambda x: df.compare(same, x), ONE),
        FailedPreconditionError,
        "can't be traced",
        "outside of functions",
    ),
    "comparing no function": (
        lambda: df.compare(3, ONE),
        DTypeError,
        "3 can't be called",
        "takes a function and its arguments",
    ),
    "comparing with the CPU": (
        lambda: df.compare(same, ONE, devices=["/CPU:0"]),
        InvalidArgumentError,
        "'/CPU:0' is no device to compare",
        "such as '/GPU:0'",
    ),
    "comparing with a device that is not there": (
        lambda: df.compare(same, ONE, devices=["/GPU:0"]),
        InvalidArgumentError,
        "'/GPU:0' is not available",
        "OpenCL driver and dualflow",
    ),
    "a comparison saved as a picture": (
        lambda: df.compare(same, ONE).save("report.png"),
        InvalidArgumentError,
        "'report.png' doesn't end with",
        "saved as a page",
    ),
    "a drawing at a stage that does not exist": (
        lambda: df.function(same).get_concrete_function(ONE).graph.draw("graph.svg", stage="fused"),
        InvalidArgumentError,
        "There is no stage 'fused'",
        "use 'traced', 'optimised', 'kernels'",
    ),
    "a drawing of kernels as they were traced": (
        lambda: df.function(df.nn.softmax).get_concrete_function(V).optimised_graph.draw("g.svg", "traced"),
        InvalidArgumentError,
        "has kernels",
        "Draw the .graph",
    ),
    "verifying in a trace": (
        lambda: run(lambda x: df.verify(same, x), ONE),
        FailedPreconditionError,
        "can't be traced",
        "outside of functions",
    ),
    "verifying no function": (
        lambda: df.verify(3, ONE),
        DTypeError,
        "3 can't be called",
        "takes a function and its arguments",
    ),
    "debugging in a trace": (
        lambda: run(lambda x: PLAIN.debug(x), ONE),
        FailedPreconditionError,
        "can't be traced",
        "outside of functions",
    ),
    "a step that is no function": (lambda: PLAIN.debug(ONE, step=3), DTypeError, "not 3", "takes a function"),
    "checks in a trace": (
        lambda: run(lambda x: df.debugging.enable_check_numerics() or x, ONE),
        FailedPreconditionError,
        "while a function is traced",
        "call them before",
    ),
    "a number that is none": (checked, InvalidArgumentError, "log.* computed", HERE),
    "a part that is not native": (
        lambda: run(lambda x: df.py_function(same, [x], df.float32), ONE, strict=True),
        FailedPreconditionError,
        "py_function",
        "Without strict=True",
    ),
    "a rewrite that is none": (
        lambda: df.function(df.exp, rewrites=[print]),
        DTypeError,
        "print.*, which is no rewrite",
        "df.rewrite.rule",
    ),
    "two rewrites of one name": (
        lambda: df.function(df.exp, rewrites=[unchanged, unchanged]),
        InvalidArgumentError,
        "have one name",
        "name=",
    ),
    "a decorator after a trace": (
        lambda: called(df.function(lambda x: x))._decorate(df.function),
        FailedPreconditionError,
        "has been traced, so it can't be decorated",
        "decorate it first",
    ),
    # at run time
    "a division by zero": (
        lambda: run(lambda x: 1 // x, df.constant(0)),
        InvalidArgumentError,
        "division by zero",
        HERE,
    ),
    "an index that is too large": (
        lambda: run(lambda x, i: df.gather(x, i), V, [7]),
        OutOfRangeError,
        "gather: an index is out of range .* 0 to the size of the axis less 1",
        HERE,
    ),
}
OTHERWISE_TESTED = {
    "function/calls/integer_values.py": "never leaves the function: the value is then none of integers",
    "function/dependence_pattern.py": "test_sparse_jacobian.py",
    "function/sparse_jacobian.py": "test_sparse_jacobian.py",
    "function/inspect/check_gradients.py": "inspect/test_check_gradients.py",
    "function/tracing/deferred_calls.py": "tracing/test_deferred_calls.py",
    "function/tracing/deferred_ops.py": "../saved/test_hostile.py, as only texts of graphs have other values",
    "function/control/array_ops.py": "control/test_error_messages.py",
    "function/control/element_shapes.py": "control/test_error_messages.py",
    "function/control/loop_gradient.py": "control/test_control_flow.py",
    "function/control/shape_invariants.py": "control/test_run_time_sizes_control.py",
    "function/control/unequal_elements.py": "control/test_error_messages.py",
    "function/control/maps.py": "control/test_error_messages.py",
    "function/control/scan_loop.py": "control/test_error_messages.py",
    "function/control/tensor_array.py": "control/test_error_messages.py",
    "function/control/graph_exceptions.py": "autograph/test_raising.py",
}
OPEN = df.Variable(V, shape=[None])
FOLDERS = ("", "arguments/", "calls/", "control/", "inspect/", "tracing/")


class TestErrorMessages(ErrorCases):
    cases = CASES
    frames = Frames.ENDING_IN_THE_TEST
    tested_elsewhere = OTHERWISE_TESTED
    raised_in = tuple(f"function/{folder}*.py" for folder in FOLDERS)

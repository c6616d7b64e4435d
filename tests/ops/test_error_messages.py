"""Errors of ops: each names the op, the rejected input, and what to do."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
from error_cases import ErrorCases

import dualflow as df
from dualflow.core import dispatch
from dualflow.core.errors import DTypeError, InvalidArgumentError, OutOfRangeError
from dualflow.core.spec import TensorSpec
from dualflow.ops import static
from dualflow.ops.checks import assigned
from dualflow.ops.operand_attributes import OperandInteger, apply_sized, operand_form
from dualflow.ops.record import REGISTRY

V, M, C, B = df.ones([3]), df.ones([2, 3]), df.constant([1j]), df.constant([True, False, True])
NUMBERS, Q, H = df.constant([1, 2, 3]), df.ones([3, 3]), df.ones([3], df.float16)
nn, math = df.nn, df.math
DIRECT = {"inferred", "kernel", "of_symbol", "operand_form"}  # cases that call no public function
PART = df.Variable(V)


def traced(function, *shapes):
    """Trace ``function`` with tensors of these shapes, where None is a dynamic size."""
    return df.function(function).get_concrete_function(*[df.TensorSpec(s) for s in shapes])


def set_while_recorded(x):
    """The size of a tensor that a tape may watch."""
    with df.GradientTape():
        x.set_shape([2])


def gradient(function, *shapes):
    """Trace the gradient of ``function``."""

    def taken(*xs):
        with df.GradientTape() as tape:
            tape.watch(xs)
            y = function(*xs)
        return tape.gradient(y, xs)

    return traced(taken, *shapes)


def inferred(name, *specs, **attrs):
    """The error of an op's spec rule for inputs of these shapes and dtypes."""
    return REGISTRY[name].specs([TensorSpec(*spec) for spec in specs], attrs)


def of_symbol(function):
    """Calls a function that reads a tensor as a Python number, outside of any op that could defer it."""
    return traced(lambda x: function(df.cast(x, df.int32)), [])


CASES = {
    "a number for a list": (lambda: df.add_n(3), DTypeError, "inputs is a list of tensors", "not 3"),
    "lengths that are words": (
        lambda: df.sequence_mask("a"),
        DTypeError,
        "lengths are integers",
        "not string",
    ),
    "a real number that is a symbol": (
        lambda: df.function(lambda x: df.image.random_brightness(M[None], x))(df.constant(0.5)),
        DTypeError,
        "max_delta must be known while tracing, but it is symbolic",
        "Pass a Python float",
    ),
    "a list for a real number": (
        lambda: df.image.central_crop(df.ones([2, 2, 1]), [0.5, 1.0]),
        DTypeError,
        "central_fraction is a number",
        r"not \[0.5, 1.0\]",
    ),
    "a matrix for a shape": (
        lambda: df.zeros(df.constant([[2, 3]])),
        InvalidArgumentError,
        r"shape is a list of integers or a tensor of one axis, not one of shape \(1, 2\)",
        "df.reshape",
    ),
    "a method of arrays": (
        lambda: V.argsort(),
        AttributeError,
        "no attribute 'argsort'",
        "experimental_enable_numpy_behavior",
    ),
    "an attribute that nothing has": (lambda: V.argsorted, AttributeError, "no attribute", "'argsorted'"),
    "a number that is a symbol": (
        lambda: of_symbol(lambda n: static.static_int(n, "k")),
        DTypeError,
        "k must be known while tracing, but it is symbolic",
        "Pass a Python int",
    ),
    "numbers that are symbols": (
        lambda: of_symbol(lambda n: static.ints(n, "axis")),
        DTypeError,
        "axis must be known while tracing, but it is symbolic",
        "Pass Python ints",
    ),
    "a shape that is a symbol": (
        lambda: of_symbol(static.shape_argument),
        DTypeError,
        "shape must be known while tracing, but it is symbolic",
        "Pass a list of ints",
    ),
    "a size that is a symbol": (
        lambda: of_symbol(lambda n: static.static_shape([n, 2])),
        DTypeError,
        r"must be known while tracing, but got \(None, 2\)",
        "",
    ),
    "a dynamic size": (
        lambda: of_symbol(lambda n: static.require_static_sizes([None, 2], "split")),
        InvalidArgumentError,
        r"split needs the size of axis 0 of shape \(None, 2\) as a number",
        "give known shapes",
    ),
    "unstacking a dynamic axis": (
        lambda: df.function(df.unstack, input_signature=[df.TensorSpec([None, 2])])(df.ones([3, 2])),
        InvalidArgumentError,
        r"unstack needs the size of axis 0 of shape \(None, 2\) as a number",
        "give num",
    ),
    "several dynamic sizes": (
        lambda: of_symbol(lambda n: static.require_static_sizes([None, 2, None], "split")),
        InvalidArgumentError,
        r"the size of axes 0, 2 of shape \(None, 2, None\)",
        "give known shapes",
    ),
    "a later Array API": (
        lambda: V.__array_namespace__(api_version="2035.12"),
        InvalidArgumentError,
        "has not version '2035.12'",
        "leave it out",
    ),
    # records
    "an op that is not registered, pickled": (
        lambda: pickle.dumps(replace(REGISTRY["add"], name="own")),
        DTypeError,
        "The op own can't be pickled",
        "register it",
    ),
    "an op that is not registered here, unpickled": (
        lambda: pickle.loads(pickle.dumps(REGISTRY["add"]).replace(b"\x03add", b"\x03own")),
        InvalidArgumentError,
        "the op own, which is not registered here",
        "import the module",
    ),
    # strings
    "an op that takes no strings": (
        lambda: df.exp(df.constant("a")),
        DTypeError,
        r"exp\(string\[\]\): exp doesn't support strings",
        "df.strings",
    ),
    "a string as a number": (
        lambda: df.cast("1", df.int32),
        df.errors.UnimplementedError,
        "Cast string to int32 is not supported",
        "df.strings.to_number",
    ),
    "ones of strings": (
        lambda: df.ones([2], df.string),
        DTypeError,
        "no string that stands for 1",
        "df.fill",
    ),
    # elementwise
    "an empty add_n": (lambda: df.add_n([]), InvalidArgumentError, "list is empty", "one tensor or more"),
    "division by zero": (
        lambda: NUMBERS // 0,
        InvalidArgumentError,
        "integer division by zero",
        "Replace the zeros",
    ),
    "a negative power": (
        lambda: NUMBERS ** df.constant([-1, 1, 1]),
        InvalidArgumentError,
        "negative",
        "float",
    ),
    "erf of complex": (
        lambda: df.erf(C),
        DTypeError,
        r"erf\(complex128\[1\]\): takes real numbers",
        "df.cast",
    ),
    "bits of floats": (
        lambda: df.bitwise.bitwise_and(V, V),
        DTypeError,
        "takes integers or bools",
        "df.cast",
    ),
    "integers of a float step": (
        lambda: df.range(0, 3, 0.5, dtype=df.int32),
        DTypeError,
        "makes int32 of integers",
        "cast its result",
    ),
    "counting in complex in a graph": (
        lambda: traced(lambda x: df.range(df.cast(x, df.complex64)), []),
        DTypeError,
        "real numbers",
        "df.cast",
    ),
    "an array outside its dtype": (
        lambda: NUMBERS + np.array([1 << 40]),
        InvalidArgumentError,
        "outside of int32",
        "df.cast",
    ),
    "a number outside its dtype": (
        lambda: NUMBERS + (1 << 40),
        InvalidArgumentError,
        "outside of int32",
        "df.cast",
    ),
    "parts of halves": (lambda: df.complex(H, H), DTypeError, "not float16", "df.cast"),
    "the angle of reals": (lambda: inferred("real", ([3],)), DTypeError, "takes complex numbers", "df.real"),
    "a condition of numbers": (
        lambda: df.where(NUMBERS, 1.0, 2.0),
        DTypeError,
        "of bools, not int32",
        "x > 0",
    ),
    "one side of where": (lambda: df.where(B, 1.0), DTypeError, "both x and y", "or neither"),
    "a shape that is not so": (
        lambda: df.ensure_shape(V, [4]),
        InvalidArgumentError,
        r"shape \(3,\)",
        r"should have shape \(4,\)",
    ),
    # shapes
    "a shape that does not fill": (
        lambda: df.reshape(V, [2, 2]),
        InvalidArgumentError,
        "3 elements of shape",
        "which has 4",
    ),
    "no multiple": (lambda: df.reshape(V, [2, -1]), InvalidArgumentError, "3 elements", "no multiple of 2"),
    "two free sizes": (
        lambda: df.reshape(V, [-1, -1]),
        InvalidArgumentError,
        "Only one size",
        "as Python ints",
    ),
    "a size beyond int32": (
        lambda: df.shape(df.zeros([1 << 31, 0])),
        InvalidArgumentError,
        "2147483648 is outside of int32",
        "out_type=df.int64",
    ),
    "a negative size": (lambda: df.reshape(V, [-2]), InvalidArgumentError, "no shape", "one may be -1"),
    "an axis that is a word": (
        lambda: df.reduce_sum(M, "rows"),
        DTypeError,
        "axis is an integer, not",
        "'rows'",
    ),
    "squeezing a size": (lambda: df.squeeze(M, 0), InvalidArgumentError, "axis 0 of shape", "index it first"),
    "half a permutation": (
        lambda: df.transpose(M, [0, 0]),
        InvalidArgumentError,
        r"perm \(0, 0\)",
        "each axis .* once",
    ),
    "a transposed vector": (
        lambda: df.linalg.matrix_transpose(V),
        InvalidArgumentError,
        r"the shape is \(3,\)",
        "two or more",
    ),
    "T of a vector": (lambda: V.T, InvalidArgumentError, r"the shape is \(3,\)", "use .mT or df.transpose"),
    "mT of a vector": (lambda: V.mT, InvalidArgumentError, r"the shape is \(3,\)", "df.expand_dims"),
    "no broadcast": (
        lambda: df.broadcast_to(V, [1]),
        InvalidArgumentError,
        r"shape \(3,\) does not",
        "reshape it",
    ),
    "a filling that is no number": (
        lambda: df.fill([2], V),
        InvalidArgumentError,
        r"shape \(3,\)",
        "df.broadcast_to",
    ),
    "another dtype": (
        lambda: df.convert_to_tensor(V, df.int32),
        InvalidArgumentError,
        "dtype float32 .* int32",
        "df.cast",
    ),
    # reductions
    "a sum of bools": (lambda: df.reduce_sum(B), DTypeError, "not bools", "count_nonzero"),
    "a sum of bools in a graph": (
        lambda: df.function(df.reduce_sum)(B),
        DTypeError,
        r"reduce_sum\(bool\[3\].*not bools",
        "count_nonzero",
    ),
    "a maximum of complex": (lambda: df.reduce_max(C), DTypeError, "does not take complex128", "df.cast"),
    "a position in nothing": (lambda: df.argmax(df.ones([0])), InvalidArgumentError, "no elements", "empty"),
    "a position among complex": (
        lambda: df.argmax(C),
        DTypeError,
        "takes real numbers, not complex128",
        "df.cast",
    ),
    "a running sum of bools": (lambda: df.cumsum(B), DTypeError, "not bools", "df.cast"),
    "no tensors for a norm": (
        lambda: df.global_norm([None]),
        InvalidArgumentError,
        "every entry is None",
        "one tensor or more",
    ),
    # products
    "a product of bools": (
        lambda: df.matmul(df.ones([2, 2], df.bool), df.ones([2, 2], df.bool)),
        DTypeError,
        "not bools",
        "cast",
    ),
    "a product of vectors": (lambda: V @ V, InvalidArgumentError, r"\(3,\) and \(3,\)", "df.linalg.matvec"),
    "inner sizes": (lambda: M @ M, InvalidArgumentError, "inner sizes 3 and 2 differ", "transpose_b=True"),
    "axes of tensordot": (
        lambda: df.tensordot(M, M, [[0], [0, 1]]),
        InvalidArgumentError,
        "one to one",
        "as many of each",
    ),
    "one list of axes": (lambda: df.tensordot(M, M, [1]), InvalidArgumentError, r"not \[1\]", "both lists"),
    "a negative number of axes": (lambda: df.tensordot(M, M, -1), InvalidArgumentError, "pair -1", "0 to 2"),
    "a repeated axis": (
        lambda: df.tensordot(M, M, [[0, 0], [0, 1]]),
        InvalidArgumentError,
        "each axis once",
        "remove the repeated axis",
    ),
    "letters of einsum": (
        lambda: df.einsum("i,j", V),
        InvalidArgumentError,
        "with 1 inputs",
        "one group of letters",
    ),
    "letters of the result": (
        lambda: df.einsum("i->j", V),
        InvalidArgumentError,
        "'j' has letters that no input",
        "or one twice",
    ),
    "letters for axes": (
        lambda: df.einsum("ij->i", V),
        InvalidArgumentError,
        "does not fit shape",
        "one letter",
    ),
    "one letter for two sizes": (
        lambda: df.einsum("i,i->", V, df.ones([2])),
        InvalidArgumentError,
        "'i' is both 3 and 2",
        "einsum",
    ),
    "the axes of dots that are lost": (
        lambda: df.einsum("...i->i", M),
        InvalidArgumentError,
        "must stay",
        "in the result",
    ),
    # joining and cutting
    "joining shapes": (
        lambda: df.concat([M, Q], 1),
        InvalidArgumentError,
        "differ on axis 0",
        "along which they are joined",
    ),
    "joining ranks": (lambda: df.concat([V, M], 0), InvalidArgumentError, "one rank", "df.stack"),
    "joining scalars": (
        lambda: df.concat([df.constant(1), df.constant(2)], 0),
        InvalidArgumentError,
        "one axis or more",
        "df.stack",
    ),
    "stacking a number": (lambda: df.stack(1.5), DTypeError, "takes a list of tensors", "not 1.5"),
    "joining nothing": (
        lambda: df.concat([], 0),
        InvalidArgumentError,
        "the list is empty",
        "one tensor or more",
    ),
    "stacking shapes": (lambda: df.stack([V, M]), InvalidArgumentError, "have one shape", "df.concat"),
    "unstacking too many": (
        lambda: df.unstack(V, num=2),
        InvalidArgumentError,
        "does not unstack into 2",
        "leave num out",
    ),
    "sizes that do not add up": (
        lambda: df.split(V, [1, 1]),
        InvalidArgumentError,
        r"\[1, 1\] do not make up the size 3",
        "add up",
    ),
    "parts that are not equal": (
        lambda: df.split(V, 2),
        InvalidArgumentError,
        "size 3 .* 2 equal parts",
        "list of sizes",
    ),
    # picking
    "an index too far": (
        lambda: V[7],
        OutOfRangeError,
        "index 7 is out of range for axis 0",
        "which has size 3",
    ),
    "an index too far for a dynamic size": (
        lambda: df.function(lambda x: x[1], input_signature=[df.TensorSpec([None])])(V[:1]),
        OutOfRangeError,
        "index 1 is out of range for an axis of size 1",
        "check the arguments",
    ),
    "too many indices": (lambda: V[0, 0], InvalidArgumentError, "2 indices", "one index an axis"),
    "a text as an index": (lambda: V["a"], DTypeError, "'a' is no index", "integers in an array"),
    "a step of 0": (lambda: V[::0], InvalidArgumentError, "step can't be 0", "leave it out"),
    "a part that does not fit": (
        lambda: df.Variable(V)[:1].assign(V),
        InvalidArgumentError,
        "does not broadcast to the part",
        "reshape",
    ),
    "a part at a symbol": (
        lambda: traced(lambda i: PART[df.cast(i, df.int32)].assign(1.0), []),
        DTypeError,
        "integers known while tracing",
        "use scatter_nd_update",
    ),
    "a slice of another rank": (
        lambda: df.slice(V, [0, 0], [1, 1]),
        InvalidArgumentError,
        "one number for each axis",
        "begin",
    ),
    "a slice too far": (
        lambda: df.slice(V, [2], [2]),
        InvalidArgumentError,
        "leave shape",
        "-1 takes what is left",
    ),
    "rows by floats": (lambda: df.gather(V, [0.0]), DTypeError, "integers, not float32", "df.cast"),
    "a row too far": (lambda: df.gather(V, [5]), OutOfRangeError, "index 5 is out of range", r"use 0\.\.2"),
    "a batch of another size": (
        lambda: df.gather(M, [0], batch_dims=1),
        InvalidArgumentError,
        "the first 1 sizes",
        "should be equal",
    ),
    "a batch after the axis": (
        lambda: df.gather(M, [0], axis=0, batch_dims=1),
        InvalidArgumentError,
        "picks along axis 0",
        "before the axis",
    ),
    "gather_nd in batches": (
        lambda: df.gather_nd(M, [[0]], batch_dims=1),
        InvalidArgumentError,
        "batch_dims=1",
        "known and equal",
    ),
    "indices of floats": (
        lambda: df.gather_nd(Q, df.zeros([2, 2])),
        DTypeError,
        "indices are integers, not float32",
        "df.cast",
    ),
    "a mask of another shape": (
        lambda: df.boolean_mask(V, [True, False]),
        InvalidArgumentError,
        "mask of shape",
        "must be equal",
    ),
    "a mask of numbers": (lambda: df.boolean_mask(V, NUMBERS), DTypeError, "of bools, not int32", "x > 0"),
    "positions by floats": (
        lambda: df.scatter_nd([[0.5]], [1], [3]),
        DTypeError,
        "integers, not float32",
        "df.cast",
    ),
    "positions too deep": (
        lambda: df.scatter_nd([[0, 0]], [1], [3]),
        InvalidArgumentError,
        "do not name positions",
        "one index for each axis",
    ),
    "updates of another shape": (
        lambda: df.scatter_nd([[0]], [1, 2], [3]),
        InvalidArgumentError,
        "updates of shape",
        "should have shape",
    ),
    "updates of another dtype": (
        lambda: df.tensor_scatter_nd_update(V, [[0]], df.constant([1], df.int64)),
        DTypeError,
        "int64 should be float32",
        "df.cast",
    ),
    # making
    "counting in complex": (
        lambda: df.range(C[0]),
        DTypeError,
        r"range\(.*complex128.*real numbers",
        "df.cast",
    ),
    "counting to a vector": (
        lambda: df.range(V),
        InvalidArgumentError,
        r"float32\[3\].*takes scalars",
        "index or reduce",
    ),
    "counting on the spot to a dynamic limit": (
        lambda: traced(lambda x: df.range(0, df.cast(x, df.int32), 0), []),
        InvalidArgumentError,
        "delta other than 0",
        "never end",
    ),
    "counting on the spot": (
        lambda: df.range(0, 5, 0),
        InvalidArgumentError,
        "delta other than 0",
        "never end",
    ),
    "no numbers": (lambda: df.linspace(0.0, 1.0, 0), InvalidArgumentError, "not 0", "1 number or more"),
    "classes in floats": (lambda: df.one_hot([0.5], 3), DTypeError, "not float32", "df.cast"),
    "shifts for other axes": (
        lambda: df.roll(M, [1], [0, 1]),
        InvalidArgumentError,
        "not 1 for 2",
        "a shift for each",
    ),
    "a shape that is set": (
        lambda: traced(set_while_recorded, [None]),
        InvalidArgumentError,
        r"can't change shape \(None,\) to \(2,\)",
        "df.ensure_shape",
    ),
    "a grid": (lambda: df.meshgrid(V, V, indexing="ab"), InvalidArgumentError, "not 'ab'", "'xy' or 'ij'"),
    "a size that is a text": (
        lambda: df.zeros(np.array([1.5])),
        DTypeError,
        "not array",
        "is made of integers",
    ),
    "a size that is a fraction": (lambda: df.zeros([1.5]), DTypeError, "1.5", "integer"),
    "a number that is none": (lambda: df.one_hot([0], 0.5), DTypeError, "not 0.5", "is an integer"),
    "an open slice without a step": (
        lambda: traced(lambda x: x[: df.cast(x[0], df.int32) : 0], [3]),
        InvalidArgumentError,
        "a slice's step can't be 0",
        "leave it out",
    ),
    "an open slice to a fraction": (
        lambda: traced(lambda x: x[: x[0]], [3]),
        DTypeError,
        "a slice's bound is an integer",
        "cast it",
    ),
    # padding and repeating
    "open padding of another rank": (
        lambda: traced(lambda x: df.pad(x, df.cast(x, df.int32)), [3]),
        InvalidArgumentError,
        "paddings known at run time only",
        "as Python ints",
    ),
    "negative padding of open numbers": (
        lambda: operand_form(REGISTRY["pad"]).kernel(
            np.zeros(2), np.array(-1), paddings=((OperandInteger(1), 0),), value=0
        ),
        InvalidArgumentError,
        "paddings",
        "0 or more",
    ),
    # attributes with operands
    "operands of an op whose attributes are numbers": (
        lambda: operand_form(REGISTRY["exp"]),
        InvalidArgumentError,
        "hold numbers",
        "not operands",
    ),
    "an operand that is not an input": (
        lambda: traced(
            lambda x: dispatch.current().apply(
                operand_form(REGISTRY["pad"]), (x,), {"paddings": ((OperandInteger(1), 0),), "value": 0}
            ),
            [2],
        ),
        InvalidArgumentError,
        r"operands \[1\]",
        "the last inputs",
    ),
    "an operand that is a fraction": (
        lambda: traced(
            lambda n: apply_sized(REGISTRY["iota"], (), {"shape": [n], "axis": 0, "dtype": df.int32}), []
        ),
        DTypeError,
        "an integer scalar",
        "df.cast",
    ),
    "an index next to a bound of an operand": (
        lambda: traced(
            lambda x: apply_sized(
                REGISTRY["getitem"], (x,), {"key": (1, (0, df.cast(x[0, 0], df.int32), 1))}
            ),
            [2, 3],
        ),
        InvalidArgumentError,
        "a slice for each of 2 axes",
        "",
    ),
    "counts that are fractions": (
        lambda: traced(lambda x: df.repeat(x, x), [3]),
        DTypeError,
        "counts are integers or bools",
        "not float32",
    ),
    "padding of another rank": (
        lambda: df.pad(V, [1, 1]),
        InvalidArgumentError,
        "not \\[1, 1\\]",
        r"\[before, after\]",
    ),
    "negative padding": (lambda: df.pad(V, [[-1, 0]]), InvalidArgumentError, "paddings", "of 0 or more"),
    "a mode of padding": (
        lambda: df.pad(V, [[1, 1]], "WRAP"),
        InvalidArgumentError,
        "not 'WRAP'",
        "CONSTANT, REFLECT or SYMMETRIC",
    ),
    "a short axis": (lambda: df.pad(V, [[3, 0]], "REFLECT"), InvalidArgumentError, "too short", "mirror 3"),
    "padding with a tensor": (
        lambda: df.pad(V, [[1, 1]], constant_values=V),
        DTypeError,
        "constant_values",
        "one number",
    ),
    "tiles": (lambda: df.tile(V, [1, 2]), InvalidArgumentError, "multiples", "each axis"),
    "repeats": (lambda: df.repeat(V, [1, 2]), InvalidArgumentError, "repeats", "each of 3 slices"),
    "repeats without end": (
        lambda: df.repeat(V, 1 << 62),
        InvalidArgumentError,
        "more often than memory",
        "fewer times",
    ),
    "infinite repeats known at run time": (
        lambda: df.function(lambda r: df.repeat(V, r), backend="numpy")(df.constant([1 << 62] * 3, df.int64)),
        InvalidArgumentError,
        "more often than memory",
        "fewer times",
    ),
    "repeats known at run time": (
        lambda: df.function(lambda r: df.repeat(V, r), backend="numpy")(df.constant([3, -1, 0])),
        InvalidArgumentError,
        "an element is repeated",
        "0 times or more",
    ),
    # sorting
    "sorting complex": (lambda: df.argsort(C), DTypeError, "real numbers, not complex128", "df.cast"),
    "a direction": (
        lambda: df.argsort(V, direction="UP"),
        InvalidArgumentError,
        "not 'UP'",
        "'ASCENDING' or 'DESCENDING'",
    ),
    "sorting complex numbers": (lambda: df.sort([1j]), DTypeError, "not complex128", "cast"),
    "along by floats": (
        lambda: inferred("take_along_axis", ([3],), ([3],), axis=0),
        DTypeError,
        "integers",
        "df.cast",
    ),
    "along another rank": (
        lambda: inferred("take_along_axis", ([3],), ([3, 1], df.int32), axis=0),
        InvalidArgumentError,
        "differ in rank",
        "reshape",
    ),
    # losses
    # output
    "a stream": (lambda: df.print(V, output_stream=3), DTypeError, "not 3", "an open text file"),
    "floats of 8 bits": (
        lambda: df.exp(df.cast(V, "float8_e5m2")),
        DTypeError,
        "exp does not compute with float8_e5m2",
        "cast it to bfloat16 or float32",
    ),
    # tensors
    "a tensor's hash": (lambda: hash(V), DTypeError, "have no hash", "use x.ref()"),
    "a tensor's part": (lambda: V.__setitem__(0, 1.0), DTypeError, "do not change", "a df.Variable"),
    "two exclusive predicates": (
        lambda: df.case([(B[0], lambda: V), (B[2], lambda: V)], exclusive=True),
        InvalidArgumentError,
        "several predicates",
        "exclude each other",
    ),
    "a variable that no iteration has assigned": (
        lambda: assigned(V, df.constant(False), "last"),
        UnboundLocalError,
        "'last' has no value",
        "before the loop",
    ),
    "assigning to a tensor": (lambda: V.assign(V), AttributeError, "does not change", "variables"),
}
OTHERWISE_TESTED = {
    "ops/advanced_indexing.py": "in test_advanced_indexing.py",
    "ops/item_assignment.py": "in tests/array_api/test_error_messages.py",
    "ops/size_formulas.py": "in tests/graph/test_parser.py, as only texts of graphs are parsed",
    "ops/equal_sizes.py": "with the texts of its callers, in ragged/test_error_messages.py",
    "ops/cotangent_shapes.py": "in tests/gradient/test_cotangent_shapes.py",
    "ops/integer_product.py": "quantization/test_error_messages.py",
    "ops/contraction.py": "product_add is made by the compiler alone",
    "ops/maths_reference.py": "checks of elements, by the ops that make them",
}


ASKED_DIRECTLY = [case for case, (call, *_) in CASES.items() if DIRECT & {*call.__code__.co_names}]


class TestErrorMessages(ErrorCases):
    cases = CASES
    internal = ASKED_DIRECTLY
    tested_elsewhere = OTHERWISE_TESTED
    raised_in = ("ops/*.py",)

"""Errors of ``map_fn``, ``scan`` and ``TensorArray``: what is wrong and what to do."""

from __future__ import annotations

from error_cases import ErrorCases, Frames

import dualflow as df
from dualflow.core.errors import DTypeError, InvalidArgumentError, OutOfRangeError

V, ONE = df.constant([1.0, 2.0]), df.constant(1.0)
ROWS = df.TensorSpec([None])


def traced(function, *shapes):
    return df.function(function).get_concrete_function(*[df.TensorSpec(s) for s in shapes])


def run(function, *args):
    return df.function(function)(*args)


def growing():
    """A function that returns a longer list at each iteration."""
    answer = []

    def grow(x):
        answer.append(None)
        return [df.unique(x[None]).y for _ in answer]

    return grow


def array(**options):
    return df.TensorArray(df.float32, 2, **options)


def sized(function, x):
    return df.function(function, input_signature=[df.TensorSpec([None] * len(x.shape))])(x)


def filled(x, element):
    rows = df.TensorArray(df.float32, len(x))
    for i in df.range(len(x)):
        rows = rows.write(i, element(i))
    return rows.stack()


def unequal(x, finish):
    """``finish`` of an array of which a loop writes one element of ``x.shape[0]``, then one of one, rows."""
    rows = array(infer_shape=False)
    for i in df.range(2):
        rows = rows.write(i, x[i:])
    return finish(rows)


def unwritten(x):
    rows = array(infer_shape=False)
    for i in df.range(1):
        rows = rows.write(i, x[i:])
    return rows.read(df.size(x) // 2)


def read_twice():
    rows = array().unstack(V)
    return rows.read(0), rows.read(0)


CASES = {
    "a ragged tensor in a structure without a signature": (
        lambda: df.map_fn(lambda x: x[0], (df.ragged.constant([[1], []]), V)),
        InvalidArgumentError,
        "a RaggedTensor alone and of two axes",
        "Without fn_output_signature",
    ),
    "a scalar for a ragged row": (
        lambda: df.map_fn(df.reduce_sum, df.ragged.constant([[1], []])),
        InvalidArgumentError,
        r"returned int32\[\], not a vector",
        "fn_output_signature",
    ),
    # rows
    "rows of a scalar": (
        lambda: df.map_fn(lambda x: x, ONE),
        InvalidArgumentError,
        "not scalars",
        r"1\+ dimensional",
    ),
    "rows of two counts": (
        lambda: df.map_fn(lambda x: x[0], [V, df.ones([3])]),
        InvalidArgumentError,
        "equal first sizes",
        "not",
    ),
    "rows of two dynamic counts": (
        lambda: df.function(
            lambda x, y: df.map_fn(lambda row: row[0] + row[1], (x, y), fn_output_signature=df.float32),
            input_signature=[ROWS, ROWS],
        )(df.ones([4]), df.ones([3])),
        InvalidArgumentError,
        r"equal first sizes, but one has shape \(4,\), another \(3,\)",
        "",
    ),
    "unequal elements in a stack": (
        lambda: sized(lambda x: unequal(x, lambda rows: rows.stack()), V),
        InvalidArgumentError,
        "that are stacked have one shape",
        "pad them",
    ),
    "an unwritten element among unequal ones": (
        lambda: sized(unwritten, V),
        InvalidArgumentError,
        "no shape before it is written",
    ),
    "elements of two ranks": (
        lambda: sized(lambda x: unequal(x, lambda rows: rows.write(0, x[None])).stack(), V),
        InvalidArgumentError,
        r"shapes \(None,\) and \(1, None\)",
        "one rank",
    ),
    "no first row": (
        lambda: df.foldl(lambda a, x: a + x, df.ones([0])),
        InvalidArgumentError,
        "no rows",
        "give an initializer",
    ),
    "no first row of a dynamic number": (
        lambda: df.function(lambda x: df.scan(lambda a, y: a + y, x), input_signature=[ROWS])(df.ones([0])),
        InvalidArgumentError,
        "no rows",
        "give an initializer",
    ),
    "no last row of a dynamic number": (
        lambda: df.function(lambda x: df.foldr(lambda a, y: a + y, x), input_signature=[ROWS])(df.ones([0])),
        InvalidArgumentError,
        "no rows",
        "give an initializer",
    ),
    "a map of another structure": (
        lambda: df.map_fn(lambda x: x, V, fn_output_signature=(df.float32, df.float32)),
        InvalidArgumentError,
        "not the expected structure",
        "fn_output_signature",
    ),
    "rows of changing structure": (
        lambda: df.vectorized_map(growing(), V, warn=False),
        InvalidArgumentError,
        "structure for each row",
        "the same",
    ),
    "a map of another dtype": (
        lambda: df.map_fn(lambda x: df.cast(x, df.int32), V),
        InvalidArgumentError,
        "not",
        "fn_output_signature",
    ),
    "a step of another dtype": (
        lambda: run(lambda x: df.foldl(lambda a, b: df.cast(a, df.float64), x), V),
        DTypeError,
        "dtype float32 before the loop, but dtype float64",
        "cast it",
    ),
    "a step of another shape": (
        lambda: run(lambda x: df.foldl(lambda a, b: V, x), V),
        InvalidArgumentError,
        r"shape \(\) before the loop, but shape \(2,\)",
        "",
    ),
    # arrays of tensors
    "an array of dynamic size and shape": (
        lambda: run(lambda n: df.TensorArray(df.float32, n).stack(), df.constant(2)),
        InvalidArgumentError,
        "Nothing has been written",
        "element_shape",
    ),
    "joining scalars": (
        lambda: run(lambda n: df.TensorArray(df.float32, n, element_shape=[]).concat(), df.constant(2)),
        InvalidArgumentError,
        "are scalars",
        "use stack",
    ),
    "writing too far when it runs": (
        lambda: run(
            lambda n: df.TensorArray(df.float32, n, element_shape=[]).write(n, 1.0).stack(), df.constant(2)
        ),
        OutOfRangeError,
        "index 2",
        "not resizeable",
    ),
    "reading too far": (lambda: array().read(5), OutOfRangeError, "index 5", "array size is: 2"),
    "reading twice": (
        read_twice,
        InvalidArgumentError,
        "Could not read index 0 twice",
        "clear_after_read = false",
    ),
    "writing too far": (lambda: array().write(5, ONE), OutOfRangeError, "index 5", "not resizeable"),
    "unstacking too many": (
        lambda: array().unstack(df.ones([3])),
        InvalidArgumentError,
        "3 tensors",
        "static size 2",
    ),
    "unstacking too many when it runs": (
        lambda: sized(lambda x: array().unstack(x).stack(), df.ones([3])),
        InvalidArgumentError,
        "3 tensors",
        "static size 2",
    ),
    "writing another size when it runs": (
        lambda: sized(lambda x: filled(x, lambda i: x[: i + 1]), V),
        InvalidArgumentError,
        r"of shape \(2,\) is written",
        r"shape \(1,\)",
    ),
    "elements of the size of random numbers": (
        lambda: sized(lambda x: filled(x, lambda i: df.random.uniform(df.shape(x))), V),
        InvalidArgumentError,
        "sizes depend on ops with effects",
        "write an element before",
    ),
    "writing another dtype": (
        lambda: array().write(0, df.constant(1)),
        InvalidArgumentError,
        "dtype is float32",
        "dtype int32",
    ),
    "writing another shape": (
        lambda: array().write(0, ONE).write(1, V),
        InvalidArgumentError,
        "Incompatible shape",
        "expected",
    ),
    "an array that was never written": (
        lambda: array().stack(),
        InvalidArgumentError,
        "Nothing has been written",
        "element_shape",
    ),
}


class TestErrorMessages(ErrorCases):
    cases = CASES
    frames = Frames.ENDING_IN_THE_TEST
    raised_in = tuple(
        f"function/control/{name}.py"
        for name in ("maps", "scan_loop", "tensor_array", "array_ops", "element_shapes")
    )

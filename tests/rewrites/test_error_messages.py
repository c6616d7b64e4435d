"""Errors of rewrites: each names the rewrite and where it is defined, and the user's line of the op."""

from __future__ import annotations

from typing import Any

from error_cases import ErrorCases, Frames

import dualflow as df
from dualflow.core.errors import DTypeError, FailedPreconditionError, InvalidArgumentError

MATRIX = df.ones([32, 32])
HERE_CALLED = f'File "{__file__}", line'
X = df.constant([1.0, 2.0])
HERE = f'defined at File "{__file__}", line'
CALLED = f'applied to File "{__file__}", line'
VARIABLE = df.Variable(1.0)


def equation(function: Any, doc: str = "an example", **options: Any) -> Any:
    function.__doc__ = doc
    return df.rewrite.equation(function, **options)


def rule(function: Any, doc: str = "an example") -> Any:
    function.__doc__ = doc
    return df.rewrite.rule(function)


def graph_pass(function: Any) -> Any:
    function.__doc__ = "an example"
    return df.rewrite.graph_pass(function)


def run(rewrite: Any, function: Any = df.exp) -> Any:
    return df.function(lambda x: function(x), rewrites=[rewrite])(X)


def printing(x: Any) -> Any:
    df.print(x)
    return df.exp(x)


def without_print(node: Any, make: Any) -> Any:
    return () if node.op.name == "print" else None


def of_exp(replacement: Any) -> Any:
    return rule(lambda node, make: replacement(node, make) if node.op.name == "exp" else None)


def registered_twice() -> None:
    first = equation(lambda x: (df.exp(x), x), name="twice")
    second = equation(lambda x: (df.exp(x), x), name="twice")
    df.rewrite.register(first)
    try:
        df.rewrite.register(second)
    finally:
        df.rewrite.unregister("twice")


def reversed_nodes(graph: Any) -> Any:
    return type(graph)(graph.name, graph.inputs, graph.nodes[::-1], graph.outputs)


def without_outputs(graph: Any) -> Any:
    return type(graph)(graph.name, graph.inputs, graph.nodes, ())


def without_inputs(graph: Any) -> Any:
    return type(graph)(graph.name, (), graph.nodes, graph.outputs)


def other_result(graph: Any) -> Any:
    shorter = df.function(lambda x: x[:1]).get_concrete_function(df.TensorSpec([2])).graph
    return type(graph)(graph.name, graph.inputs, graph.nodes, shorter.outputs)


def choosing(x: Any, twice: bool) -> Any:
    return x @ MATRIX @ MATRIX if twice else x @ MATRIX


CASES = {
    "no docstring": (lambda: rule(lambda node, make: None, ""), InvalidArgumentError, "no docstring", "log"),
    "no rewrite registered": (lambda: df.rewrite.register(print), DTypeError, "is no rewrite", "equation"),
    "two of one name": (
        registered_twice,
        InvalidArgumentError,
        "'twice' is registered already",
        "Unregister",
    ),
    "unregistered": (lambda: df.rewrite.unregister("none"), InvalidArgumentError, "No rewrite 'none'"),
    "disabled without being one": (
        lambda: df.rewrite.disable("nothing"),
        InvalidArgumentError,
        "There is no .*'nothing'",
    ),
    "enabled without being disabled": (
        lambda: df.rewrite.enable("log"),
        InvalidArgumentError,
        "is not disabled",
    ),
    "another dtype": (
        lambda: run(of_exp(lambda node, make: make(lambda x: df.cast(x, df.float64), node.inputs[0]))),
        InvalidArgumentError,
        r"replaced exp, which returns float32\[2\], by float64\[2\]",
        HERE,
        CALLED,
    ),
    "another shape by an equation": (
        lambda: run(equation(lambda x: (df.exp(x), df.reduce_sum(x)))),
        InvalidArgumentError,
        r"by float32\[\]",
        CALLED,
    ),
    "no value": (
        lambda: run(of_exp(lambda node, make: 3)),
        InvalidArgumentError,
        "returned 3 for exp",
        CALLED,
    ),
    "an error of the rule": (
        lambda: run(of_exp(lambda node, make: make(lambda x: x @ x, node.inputs[0]))),
        InvalidArgumentError,
        "takes matrices",
        HERE,
        f'in exp, called at File "{__file__}"',
    ),
    "a variable": (
        lambda: run(of_exp(lambda node, make: make(lambda x: x * VARIABLE, node.inputs[0]))),
        InvalidArgumentError,
        "reads a variable",
        "numpy",
    ),
    "an effect removed": (
        lambda: run(rule(without_print), printing),
        InvalidArgumentError,
        "removed, added or moved an effect, that of print",
        CALLED,
    ),
    "an effect added": (
        lambda: run(of_exp(lambda node, make: make(printing, node.inputs[0]))),
        InvalidArgumentError,
        "added or moved an effect",
    ),
    "no graph": (
        lambda: run(graph_pass(lambda graph: None)),
        InvalidArgumentError,
        "returned NoneType, not a graph",
    ),
    "other inputs": (lambda: run(graph_pass(without_inputs)), InvalidArgumentError, "changed the inputs"),
    "other results": (lambda: run(graph_pass(without_outputs)), InvalidArgumentError, "number of results"),
    "a result of another shape": (
        lambda: run(graph_pass(other_result)),
        InvalidArgumentError,
        r"by float32\[1\]",
    ),
    "a broken graph": (
        lambda: run(graph_pass(reversed_nodes), lambda x: df.exp(df.sin(x))),
        InvalidArgumentError,
        "has broken the graph: .* before it is computed",
        HERE,
    ),
    "an error of the pass": (lambda: run(graph_pass(lambda graph: graph.no)), AttributeError, "no", HERE),
    "no pair": (lambda: run(equation(lambda x: df.exp(x))), InvalidArgumentError, "pattern, replacement"),
    "a pattern without an op": (
        lambda: run(equation(lambda x: (x, df.exp(x)))),
        InvalidArgumentError,
        "simplified",
    ),
    "a pattern with an effect": (
        lambda: run(equation(lambda x: (x + df.random.normal([3, 3]), x)), lambda x: x + 1.0),
        InvalidArgumentError,
        "pattern with an effect",
    ),
    "a pattern that takes no matrices": (
        lambda: run(equation(lambda x: (df.nn.conv2d(x, x), x))),
        InvalidArgumentError,
        "conv2d",
        "signature=",
    ),
    "what can't be called": (lambda: df.rewrite.freeze(3), DTypeError, "3, which can't be called"),
    "a function that assigns": (
        lambda: df.rewrite.freeze(lambda: VARIABLE.assign_add(1.0))(),
        FailedPreconditionError,
        "assigns variables",
        "training=False",
    ),
    "no data": (
        lambda: df.quantization.calibrate(df.exp, []),
        InvalidArgumentError,
        "no data to calibrate 'exp'",
    ),
    "a nan in the data": (
        lambda: df.quantization.calibrate(lambda x: x @ MATRIX, [MATRIX * float("nan")]),
        InvalidArgumentError,
        "reads nan",
        HERE_CALLED,
    ),
    "other products than calibrated": (
        lambda: df.quantization.int8(choosing, df.quantization.calibrate(choosing, [(MATRIX, False)]))(
            MATRIX, True
        ),
        InvalidArgumentError,
        r"weights \[\[32, 32\], \[32, 32\]\] in this call, and \[\[32, 32\]\]",
        "calibrate it",
    ),
    "a signature of another length": (
        lambda: equation(lambda x: (df.exp(x), x), signature=[]),
        InvalidArgumentError,
        "0 specs for 1 variables",
    ),
}


class TestErrorMessages(ErrorCases):
    cases = CASES
    frames = Frames.ANY
    raised_in = ("rewrites/*.py", "graph/user_rewrites.py")

"""Runs each op's first plain case of some dtypes on the OpenCL device, and prints the number of its kernels.

A program of its own, so that it can run under a simulator of devices: ``oclgrind python kernels_of_ops.py``.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import dualflow as df
from dualflow.backends.opencl import tile_selection
from dualflow.backends.opencl.devices import current_device
from dualflow.backends.opencl.executable import OpenCLExecutable
from dualflow.backends.opencl.products import LARGE
from dualflow.backends.opencl.steps import Launch, walk_steps
from dualflow.core import dispatch
from dualflow.eager.engine import EAGER
from dualflow.ops.families import load_families
from dualflow.ops.op_kinds import Literal
from dualflow.ops.record import REGISTRY
from dualflow.ops.testing.cases import Case, cases

LARGE_SIDE = 130
"""Side of the smallest product that has a large tile here: a simulator takes seconds for that of devices."""
DTYPES = ("float32", "int32", "bool", "complex64")


def plain_cases() -> Iterator[Case]:
    """Each op's first plain case of each of :data:`DTYPES`, without those whose sizes depend on data."""
    load_families()
    for op in REGISTRY.values():
        if isinstance(op.kind, Literal):
            continue
        remaining = set(DTYPES)
        for case in cases(op):
            _, dtype, layout = case.label.split("-")
            if dtype in remaining and layout in ("plain", "contiguous") and _is_static(case):
                remaining.discard(dtype)
                yield case


def _is_static(case: Case) -> bool:
    specs = case.op.specs([x.spec for x in case.op.prepare(case.inputs, EAGER)], case.attrs)
    return all(spec.shape.is_static for spec in specs)


def applied(case: Case, *tensors: Any) -> Any:
    """The results of a case's op."""
    return dispatch.current().apply(case.op, tensors, case.attrs)


def run(case: Case) -> int:
    """Run a case on the device, unless it has no kernels there; returns the number of its kernels."""
    inputs = case.op.prepare(case.inputs, EAGER)
    function = df.function(partial(applied, case), backend="opencl", autograph=False)
    concrete = function.get_concrete_function(*[df.TensorSpec(x.shape, x.dtype) for x in inputs])
    executable = concrete.compiled.executable
    if not isinstance(executable, OpenCLExecutable):
        return 0  # NumPy runs graphs of strings
    steps = walk_steps(executable.program.steps)
    kernels = sum(isinstance(step, Launch) for step in steps)
    if kernels:
        function(*inputs)
    return kernels


def fail_to_scatter() -> None:
    """Scatter a row out of bounds, after which the host hasn't read yet that the check has failed."""
    function = df.function(lambda at: df.scatter_nd(at, df.ones([1, 2]), [3, 2]), backend="opencl")
    for position in (3, -1):
        try:
            function(df.constant([[position]]))
        except df.errors.OutOfRangeError:
            continue
        raise AssertionError(f"position {position} of 3 was accepted")


def reduce_by_groups() -> int:
    """Run reductions of long rows and of all elements; returns the number of their kernels."""

    def normalised(x: Any) -> Any:
        return df.nn.softmax(x), df.argmax(x, 1), df.reduce_sum(x, 1), df.reduce_sum(x * x)

    function = df.function(normalised, backend="opencl", autograph=False)
    for shape in ((3, 40), (1, 8300), (2, 20_000)):
        x = df.random.stateless_normal(shape, [1, 2])
        softmax, *_ = function(x)
        assert abs(df.reduce_sum(softmax) - shape[0]).numpy() < 1e-4
    variable = df.Variable(df.random.stateless_normal([2, 8300], [3, 4]))
    df.function(lambda: variable.assign(df.nn.softmax(variable)), backend="opencl")()
    return len(function.concrete_functions)


def multiply() -> int:
    """Run products with large tiles and with the small one; returns the number of their traces."""
    function = df.function(
        lambda x, y: (df.tanh(x @ y + x[:, :1] * y[:1]), df.matmul(y, x)), backend="opencl", autograph=False
    )
    for side, tile in enumerate(LARGE[::2], LARGE_SIDE):
        current_device().tiles["f"] = tile
        function(_normal(side, 3), _normal(3, side))
    return len(function.concrete_functions)


def scan() -> None:
    """Scan rows of several chunks."""
    df.function(lambda x: df.cumsum(x, 1, reverse=True), backend="opencl")(_normal(2, 2500))


def convolve() -> None:
    """Run convolutions with the small tile and the narrow one, and gradients of one."""

    def convolutions(image: Any, filters: Any) -> Any:
        with df.GradientTape() as tape:
            tape.watch([image, filters])
            loss = df.reduce_sum(df.nn.conv2d(image, filters, 2, "SAME"))
        slopes = tape.gradient(loss, [image, filters])
        return df.nn.depthwise_conv2d(image, filters[..., :1], [1] * 4, "SAME"), slopes

    df.function(convolutions, backend="opencl", autograph=False)(_normal(1, 5, 6, 16), _normal(3, 3, 16, 2))
    df.function(lambda x, k: df.nn.conv2d(x, k, 1, "SAME"), backend="opencl")(
        _normal(1, 16, 18, 16), _normal(1, 3, 16, 64)
    )


def _normal(*shape: int) -> Any:
    return df.random.stateless_normal(shape, [1, 2])


if __name__ == "__main__":
    tile_selection.LARGE_SIDE = LARGE_SIDE
    fail_to_scatter()
    convolve()
    scan()
    print(reduce_by_groups() + multiply() + sum(map(run, plain_cases())))

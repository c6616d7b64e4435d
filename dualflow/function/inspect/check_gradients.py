"""``df.test.check_gradients``: compares the derivatives of a function with numerical ones.

Derivatives of both modes are compared with central differences along random directions. If one differs, each
op that ran is checked by itself, in the order of execution: its gradient rule against its kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import numpy as np

from dualflow.core import dispatch, tree
from dualflow.core.dispatch import AbstractTensor
from dualflow.core.dtypes import complex128, float64
from dualflow.core.errors import FailedPreconditionError, GradientCheckError, InvalidArgumentError
from dualflow.core.locks import imported
from dualflow.core.records import NamedTuple
from dualflow.core.tracebacks import entry
from dualflow.eager.derivatives import jvp, vjp
from dualflow.eager.engine import EAGER
from dualflow.function.inspect.measure import CountingEngine
from dualflow.gradient.custom import UserGradient
from dualflow.gradient.sweep import Record, sweep
from dualflow.graph.ir import Origin
from dualflow.graph.origin import caller
from dualflow.ops.conversion import cast
from dualflow.ops.creation import convert_to_tensor
from dualflow.ops.custom_vjp import CUSTOM
from dualflow.ops.record import Op

Array = np.ndarray[Any, Any]
_STEP: Final = 6e-6
"""About the cube root of float64's epsilon, where rounding errors and truncation errors are equal."""
_MODES: Final = ("fwd", "rev")


@entry
def check_gradients(
    f: Callable[..., Any],
    *args: Any,
    order: int = 1,
    modes: Sequence[str] = _MODES,
    rtol: float = 1e-4,
) -> None:
    """Compare the derivatives of ``f`` at ``args`` with differences of its values.

    Floats among the arguments are converted to float64, so that differences are precise. The function must be
    differentiable at ``args``.

    Args:
        f: a plain function or a ``df.function`` of tensors or structures of them, which returns floats
            or complex numbers. It runs about ten times, and must return the same values each time.
        args: the arguments; derivatives are checked for the floats and complex numbers among them.
        order: 2 also checks the second derivatives, as derivatives of the first.
        modes: "fwd" (``ForwardAccumulator``), "rev" (``GradientTape``) or both.
        rtol: the largest error of a derivative, relative to the larger of it, the difference quotient and 1.

    Raises:
        GradientCheckError: a derivative differs. The message has the error, the first op whose rule differs
            from its values, and the line that called it.
        InvalidArgumentError: another ``order`` or mode, or no argument is differentiable.
        FailedPreconditionError: called while a function is traced or a tape records.

    >>> import dualflow as df
    >>> df.test.check_gradients(lambda x: df.sin(x) * x, [0.5, 2.0], order=2)
    >>> @df.custom_gradient
    ... def doubled(x):
    ...     return x * 2.0, lambda g: g * 3.0
    >>> df.test.check_gradients(doubled, 1.0)
    Traceback (most recent call last):
    ...
    dualflow.core.errors.GradientCheckError: The derivative of doubled in mode fwd ...: the gradient written
    for doubled is not that of its values ...
    """
    if dispatch.current() is not EAGER:
        raise FailedPreconditionError(
            "check_gradients runs a function several times, which can't be traced or recorded: call it "
            "outside of functions and tapes."
        )
    unknown = [m for m in modes if m not in _MODES]
    if order not in (1, 2) or unknown or not modes:
        raise InvalidArgumentError(
            f"check_gradients takes order 1 or 2 and modes of 'fwd' and 'rev', not {order!r} and {modes!r}."
        )
    point = _Point(f, args)
    for mode in modes:
        point.check(point.outputs, mode, "derivative", rtol)
    if order == 2:
        for mode in modes:
            point.check(point.gradients, mode, "second derivative", rtol)


class _Point:
    """A function, and the point of its check: the floats and complex numbers of the arguments."""

    def __init__(self, f: Callable[..., Any], args: tuple[Any, ...]) -> None:
        leaves, self._structure = tree.flatten(args)
        self._f = f
        self._leaves = [_in_double(x) for x in leaves]
        self._inexact_indices = [i for i, x in enumerate(self._leaves) if _is_inexact(x)]
        self.name = getattr(f, "__name__", "the function")
        self.x = [self._leaves[i] for i in self._inexact_indices]
        if not self.x:
            raise InvalidArgumentError(
                "check_gradients requires an argument to differentiate for: floats or complex numbers."
            )

    def outputs(self, *x: Any) -> list[Any]:
        """The float and complex results, as a flat list."""
        leaves = list(self._leaves)
        for i, value in zip(self._inexact_indices, x, strict=True):
            leaves[i] = value
        results = tree.leaves(self._f(*tree.unflatten(self._structure, leaves)))
        return [y for y in map(convert_to_tensor, results) if y.dtype.is_inexact]

    def gradients(self, *x: Any) -> list[Any]:
        """The gradient of the weighted outputs."""
        outputs, vjp_function = vjp(self.outputs, *x)
        return list(vjp_function([convert_to_tensor(w) for w in _directions(outputs, seed=1)]))

    def check(self, function: Callable[..., list[Any]], mode: str, what: str, rtol: float) -> None:
        """Compare one weighted derivative along one direction with the difference quotient."""
        direction = _directions(self.x, seed=2)
        weights = _directions(function(*self.x), seed=3)
        slope = _slope(lambda arrays: function(*map(convert_to_tensor, arrays)), self.x, direction, weights)
        if mode == "fwd":
            derivative = _inner_product(
                jvp(function, self.x, list(map(convert_to_tensor, direction)))[1], weights
            )
        else:
            _, vjp_function = vjp(function, *self.x)
            derivative = _inner_product(vjp_function(list(map(convert_to_tensor, weights))), direction)
        if _differ(derivative, slope, rtol):
            raise GradientCheckError(
                f"The {what} of {self.name} in mode {mode} is {derivative:.6g} along a random direction, but "
                f"differences of its values give {slope:.6g}: {self._diagnosis(function, rtol)}"
            )

    def _diagnosis(self, function: Callable[..., list[Any]], rtol: float) -> str:
        """A sentence on the first op whose rule is wrong."""
        recorder = _OpRecorder()
        with dispatch.using(recorder):
            function(*self.x)
        for recorded in recorder.ops_run:
            difference = "" if recorded.record.op is CUSTOM else _rule_error(recorded.record, rtol)
            if difference:
                name = recorded.record.op.name
                return f"the rule of {name} is wrong{_at(recorded.origin)}\n  {difference}"
        for recorded in recorder.ops_run:
            written = recorded.record.attrs.get("grad")
            if isinstance(written, UserGradient):
                line = _at(recorded.origin)
                return f"the gradient written for {written.name} is not that of its values{line}"
        return (
            "the rule of each op is correct. The function may have a kink at this point, draw random "
            "numbers, or stop a gradient on purpose; if it does not, this is a bug of dualflow."
        )


class _RecordedOp(NamedTuple):
    """An op that ran, and the user's line that called it."""

    record: Record
    origin: Origin | None


class _OpRecorder(CountingEngine):
    """The eager engine, which also records each op."""

    __slots__ = ("ops_run",)

    def __init__(self) -> None:
        super().__init__()
        self.ops_run: list[_RecordedOp] = []

    def run(self, op: Op, inputs: tuple[Any, ...], attrs: dict[str, Any]) -> Any:
        result = super().run(op, inputs, attrs)
        outputs = result if isinstance(result, tuple) else (result,)
        self.ops_run.append(_RecordedOp(Record(op, inputs, outputs, attrs), caller()))
        return result


def _rule_error(record: Record, rtol: float) -> str:
    """The error of an op's gradient, compared with slopes of its kernel, as text; empty if there is none."""
    op, inputs, outputs, attrs = record
    if op.effect is not None or not all(y.dtype.is_inexact for y in outputs):
        return ""
    for i, x in _sources(record):
        (direction,) = _directions([x], seed=4)
        weights = _directions(outputs, seed=5)

        def kernel(arrays: Sequence[Array], index: int = i) -> list[Any]:
            arguments = [arrays[0] if k == index else y._array for k, y in enumerate(inputs)]
            with np.errstate(all="ignore"):
                results = op.kernel(*arguments, **attrs)
            return list(results) if isinstance(results, tuple | list) else [results]

        slope = _slope(kernel, [x], [direction], weights)
        cotangents = [np.conj(w) for w in weights]
        # copies, so that a tensor that is two inputs is differentiated as one of them
        distinct = [cast(y, y.dtype) if k != i else x for k, y in enumerate(inputs)]
        (cotangent,) = sweep(
            [Record(op, tuple(distinct), outputs, attrs)],
            outputs,
            list(map(convert_to_tensor, cotangents)),
            [x],
        )
        derivative = 0.0 if cotangent is None else _inner_product([cotangent], [np.conj(direction)])
        if _differ(derivative, slope, rtol):
            shown = ", ".join(str(y.spec) for y in inputs)
            return f"{op.name}({shown}): for input {i} it gives {derivative:.6g}, the slope is {slope:.6g}"
    return ""


def _sources(record: Record) -> Iterator[tuple[int, Any]]:
    for i, x in enumerate(record.inputs):
        if x.dtype.is_inexact and x.dtype.size >= 8 and record.op.differentiable(i):
            yield i, x


def _slope(
    function: Callable[[Sequence[Array]], Sequence[Any]],
    x: Sequence[Any],
    direction: Sequence[Array],
    weights: Sequence[Array],
) -> float:
    """The central difference of the weighted results along a direction."""
    sides = []
    for sign in (_STEP, -_STEP):
        shifted = [np.asarray(a) + sign * v for a, v in zip(x, direction, strict=True)]
        sides.append(_inner_product(function(shifted), weights))
    return (sides[0] - sides[1]) / (2 * _STEP)


def _inner_product(values: Sequence[Any], weights: Sequence[Array]) -> float:
    """The real part of ``sum(conj(weights) values)``, as TensorFlow's gradients pair complex numbers."""
    with np.errstate(all="ignore"):
        parts = [np.sum(np.conj(w) * np.asarray(y)).real for y, w in zip(values, weights, strict=True)]
        return float(sum(parts))


def _differ(derivative: float, slope: float, rtol: float) -> bool:
    return not abs(derivative - slope) <= rtol * max(1.0, abs(derivative), abs(slope))


def _directions(like: Sequence[Any], seed: int) -> list[Array]:
    """For each tensor a random array of its shape and dtype."""
    numpy_random = imported("numpy.random")
    random = numpy_random.Generator(numpy_random.Philox(seed))
    directions = []
    for x in like:
        values = random.uniform(-1, 1, x.shape)
        if x.dtype.is_complex:
            values = values + 1j * random.uniform(-1, 1, x.shape)
        directions.append(np.asarray(values, x.dtype.dtype))
    return directions


def _in_double(x: Any) -> Any:
    """A leaf of the arguments, with floats and complex numbers in double precision."""
    if not isinstance(x, AbstractTensor | np.ndarray | np.generic | float | complex) or isinstance(x, bool):
        return x
    tensor = convert_to_tensor(x)
    if not tensor.dtype.is_inexact:
        return x
    return cast(tensor, complex128 if tensor.dtype.is_complex else float64)


def _is_inexact(x: Any) -> bool:
    return isinstance(x, AbstractTensor) and x.dtype.is_inexact


def _at(origin: Origin | None) -> str:
    return "" if origin is None else f" at\n  {origin}"

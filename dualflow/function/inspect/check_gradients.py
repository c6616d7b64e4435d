"""``df.test.check_gradients``: are the derivatives of a function its slopes? If not, whose rule is wrong?

Derivatives of both modes are held against central differences, along random directions. Where one is off,
each op that ran is checked by itself, in the order in which they ran: its gradient rule against its kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import numpy as np

from dualflow.core import dispatch, tree
from dualflow.core.dispatch import AbstractTensor
from dualflow.core.dtypes import complex128, float64
from dualflow.core.errors import FailedPreconditionError, GradientCheckError, InvalidArgumentError
from dualflow.core.records import NamedTuple
from dualflow.core.tracebacks import entry
from dualflow.eager.derivatives import jvp, vjp
from dualflow.eager.engine import EAGER
from dualflow.function.inspect.measure import Counting
from dualflow.gradient.custom import WrittenGradient
from dualflow.gradient.sweep import Record, sweep
from dualflow.graph.ir import Origin
from dualflow.graph.origin import caller
from dualflow.ops.conversion import cast
from dualflow.ops.creation import convert_to_tensor
from dualflow.ops.custom_vjp import CUSTOM
from dualflow.ops.record import Op

Array = np.ndarray[Any, Any]
_STEP: Final = 6e-6
"""About the cube root of float64's precision: where rounding and curvature weigh the same."""
_MODES: Final = ("fwd", "rev")


@entry
def check_gradients(
    f: Callable[..., Any],
    *args: Any,
    order: int = 1,
    modes: Sequence[str] = _MODES,
    rtol: float = 1e-4,
) -> None:
    """Hold the derivatives of ``f`` at ``args`` against differences of its values.

    Floats among the arguments are taken in float64, so that differences are precise. The point should not be
    one where the function has a kink.

    Args:
        f: takes tensors or structures of them, and returns a tensor or a structure of them: a plain function
            or a ``df.function``. It runs some ten times, and must give the same values each time.
        args: as for a call; derivatives are checked for the floats and complex numbers among them.
        order: 2 checks the second derivatives too, as derivatives of the first.
        modes: "fwd" (``ForwardAccumulator``), "rev" (``GradientTape``) or both.
        rtol: how far a derivative may be off, as a share of the larger of it, its slope and 1.

    Raises:
        GradientCheckError: a derivative is off; it says by how much, and which op's rule is the first that
            disagrees with the op's values, with the line that asked for it.
        InvalidArgumentError: another ``order`` or mode, or no argument to differentiate for.
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
    """A function and where its derivatives are checked: the parts of the arguments that are inexact."""

    def __init__(self, f: Callable[..., Any], args: tuple[Any, ...]) -> None:
        leaves, self._structure = tree.flatten(args)
        self._f = f
        self._leaves = [_precise(x) for x in leaves]
        self._places = [i for i, x in enumerate(self._leaves) if _is_inexact(x)]
        self.name = getattr(f, "__name__", "the function")
        self.x = [self._leaves[i] for i in self._places]
        if not self.x:
            raise InvalidArgumentError(
                "check_gradients needs an argument to differentiate for: floats or complex numbers."
            )

    def outputs(self, *x: Any) -> list[Any]:
        """The inexact results, as a flat list."""
        leaves = list(self._leaves)
        for i, value in zip(self._places, x, strict=True):
            leaves[i] = value
        results = tree.leaves(self._f(*tree.unflatten(self._structure, leaves)))
        return [y for y in map(convert_to_tensor, results) if y.dtype.is_inexact]

    def gradients(self, *x: Any) -> list[Any]:
        """The gradient of the weighted outputs."""
        outputs, pull = vjp(self.outputs, *x)
        return list(pull([convert_to_tensor(w) for w in _directions(outputs, seed=1)]))

    def check(self, function: Callable[..., list[Any]], mode: str, what: str, rtol: float) -> None:
        """Compare one weighted derivative along one direction with its slope."""
        along = _directions(self.x, seed=2)
        weights = _directions(function(*self.x), seed=3)
        slope = _slope(lambda arrays: function(*map(convert_to_tensor, arrays)), self.x, along, weights)
        if mode == "fwd":
            found = _paired(jvp(function, self.x, list(map(convert_to_tensor, along)))[1], weights)
        else:
            _, pull = vjp(function, *self.x)
            found = _paired(pull(list(map(convert_to_tensor, weights))), along)
        if _apart(found, slope, rtol):
            raise GradientCheckError(
                f"The {what} of {self.name} in mode {mode} is {found:.6g} along a random direction, where "
                f"differences of its values give {slope:.6g}: {self._blamed(function, rtol)}"
            )

    def _blamed(self, function: Callable[..., list[Any]], rtol: float) -> str:
        """Whose rule is wrong, as far as that can be told."""
        noting = _Noting()
        with dispatch.using(noting):
            function(*self.x)
        for ran in noting.ran:
            wrong = "" if ran.record.op is CUSTOM else _wrong_rule(ran.record, rtol)
            if wrong:
                return f"the rule of {ran.record.op.name} is wrong{_at(ran.origin)}\n  {wrong}"
        for ran in noting.ran:
            written = ran.record.attrs.get("grad")
            if isinstance(written, WrittenGradient):
                return f"the gradient written for {written.name} is not that of its values{_at(ran.origin)}"
        return (
            "each op's own rule is right. It may have a kink there, draw random numbers, or stop a gradient "
            "on purpose; if it does not, this is a fault of dualflow."
        )


class _Noted(NamedTuple):
    """An op that ran, and the user's line that asked for it."""

    record: Record
    origin: Origin | None


class _Noting(Counting):
    """The eager engine, with a note of each op that ran."""

    __slots__ = ("ran",)

    def __init__(self) -> None:
        super().__init__()
        self.ran: list[_Noted] = []

    def run(self, op: Op, inputs: tuple[Any, ...], attrs: dict[str, Any]) -> Any:
        made = super().run(op, inputs, attrs)
        outputs = made if isinstance(made, tuple) else (made,)
        self.ran.append(_Noted(Record(op, inputs, outputs, attrs), caller()))
        return made


def _wrong_rule(record: Record, rtol: float) -> str:
    """How an op's gradient differs from its kernel's slopes; nothing if it doesn't, or can't be told."""
    op, inputs, outputs, attrs = record
    if op.effect is not None or not all(y.dtype.is_inexact for y in outputs):
        return ""
    for i, x in _sources(record):
        (along,) = _directions([x], seed=4)
        weights = _directions(outputs, seed=5)

        def moved(arrays: Sequence[Array], place: int = i) -> list[Any]:
            given = [arrays[0] if k == place else y._array for k, y in enumerate(inputs)]
            with np.errstate(all="ignore"):
                made = op.kernel(*given, **attrs)
            return list(made) if isinstance(made, tuple | list) else [made]

        slope = _slope(moved, [x], [along], weights)
        cotangents = [np.conj(w) for w in weights]
        # a tensor that is two inputs is two here
        own = [cast(y, y.dtype) if k != i else x for k, y in enumerate(inputs)]
        (flow,) = sweep(
            [Record(op, tuple(own), outputs, attrs)], outputs, list(map(convert_to_tensor, cotangents)), [x]
        )
        found = 0.0 if flow is None else _paired([flow], [np.conj(along)])
        if _apart(found, slope, rtol):
            shown = ", ".join(str(y.spec) for y in inputs)
            return f"{op.name}({shown}): for input {i} it gives {found:.6g}, the slope is {slope:.6g}"
    return ""


def _sources(record: Record) -> Iterator[tuple[int, Any]]:
    for i, x in enumerate(record.inputs):
        if x.dtype.is_inexact and x.dtype.size >= 8 and record.op.differentiable(i):
            yield i, x


def _slope(
    function: Callable[[Sequence[Array]], Sequence[Any]],
    x: Sequence[Any],
    along: Sequence[Array],
    weights: Sequence[Array],
) -> float:
    """The central difference of the weighted results along a direction."""
    sides = []
    for sign in (_STEP, -_STEP):
        moved = [np.asarray(a) + sign * v for a, v in zip(x, along, strict=True)]
        sides.append(_paired(function(moved), weights))
    return (sides[0] - sides[1]) / (2 * _STEP)


def _paired(values: Sequence[Any], weights: Sequence[Array]) -> float:
    """The real part of ``sum(conj(weights) values)``, as TensorFlow's gradients pair complex numbers."""
    with np.errstate(all="ignore"):
        parts = [np.sum(np.conj(w) * np.asarray(y)).real for y, w in zip(values, weights, strict=True)]
        return float(sum(parts))


def _apart(found: float, slope: float, rtol: float) -> bool:
    return not abs(found - slope) <= rtol * max(1.0, abs(found), abs(slope))


def _directions(like: Sequence[Any], seed: int) -> list[Array]:
    """For each tensor an array of its shape and dtype without symmetry, of about unit length in all."""
    random = np.random.Generator(np.random.Philox(seed))
    found = []
    for x in like:
        values = random.uniform(-1, 1, x.shape)
        if x.dtype.is_complex:
            values = values + 1j * random.uniform(-1, 1, x.shape)
        found.append(np.asarray(values, x.dtype.dtype))
    return found


def _precise(x: Any) -> Any:
    """A leaf of the arguments: floats and complex numbers in double precision, the rest as it is."""
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

"""The constructor of elementwise ops from a dtype rule and the scalar code of one element."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, Required, TypedDict, Unpack, cast, overload

import numpy as np

from dualflow.core import dispatch
from dualflow.core.api_dispatch import FUNCTIONS
from dualflow.core.dtypes import DType, bool_
from dualflow.core.errors import DTypeError
from dualflow.core.records import dataclass
from dualflow.core.shape import broadcast
from dualflow.core.spec import TensorSpec
from dualflow.core.tracebacks import hide_frames_of
from dualflow.ops import maths_reference
from dualflow.ops.docstrings import EXAMPLE, elementwise_sections
from dualflow.ops.op_kinds import Elementwise
from dualflow.ops.record import Op, Promotion, register
from dualflow.ops.samples import Domain, Sample

if TYPE_CHECKING:
    from dualflow.core.argument_types import TensorLike
    from dualflow.ops.tensor import Tensor


class OpFunction(Protocol):
    """The function that users call, with its op record."""

    op: Op
    __name__: str
    __qualname__: str


class UnaryFunction(OpFunction, Protocol):
    """The function of an op of one input."""

    def __call__(self, x: TensorLike, name: str | None = None) -> Tensor: ...


class InputFunction(OpFunction, Protocol):
    """The function of an op whose input is called ``input``."""

    def __call__(self, input: TensorLike, name: str | None = None) -> Tensor: ...


class FeaturesFunction(OpFunction, Protocol):
    """The function of an op whose input is called ``features``."""

    def __call__(self, features: TensorLike, name: str | None = None) -> Tensor: ...


class PointFunction(OpFunction, Protocol):
    """The function of an op of a point's coordinates, the second one first."""

    def __call__(self, y: TensorLike, x: TensorLike, name: str | None = None) -> Tensor: ...


class BinaryFunction(OpFunction, Protocol):
    """The function of an op of two inputs."""

    def __call__(self, x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor: ...


class TernaryFunction(OpFunction, Protocol):
    """The function of an op of three inputs."""

    def __call__(self, x: TensorLike, y: TensorLike, z: TensorLike, name: str | None = None) -> Tensor: ...


@dataclass(frozen=True, slots=True)
class DTypeRule:
    """How the inputs are promoted to a common dtype, which kinds they may have, and the result's dtype.

    Attributes:
        promotion: how the inputs agree.
        kinds: NumPy's letters of the kinds that the op takes.
        takes: the same in words, for docstrings and errors.
        result: the result's dtype, from the inputs' common one.
        returns: the same in words, where ``result`` is not the common dtype.
    """

    promotion: Promotion
    kinds: str
    takes: str
    result: Callable[[DType], DType] = lambda dtype: dtype
    returns: str | None = None


def _real_part(dtype: DType) -> DType:
    return dtype.real


# The kinds of a rule are those that its ops' NumPy functions take: the eager engine has no other check.
number = DTypeRule(Promotion.TOGETHER, "biufc", "numbers")
signed = DTypeRule(Promotion.TOGETHER, "iufc", "numbers other than bools")
ordered = DTypeRule(Promotion.TOGETHER, "biuf", "real numbers")
real = DTypeRule(Promotion.TOGETHER, "iuf", "real numbers other than bools")
as_float = DTypeRule(Promotion.FLOAT, "fc", "numbers")
as_real_float = DTypeRule(Promotion.FLOAT, "f", "real numbers")
as_quotient = DTypeRule(Promotion.DIVIDE, "fc", "numbers")
magnitude = DTypeRule(
    Promotion.TOGETHER,
    "biufc",
    "numbers",
    _real_part,
    "the dtype of ``x``; for complex numbers, that of their parts",
)
comparison = DTypeRule(Promotion.TOGETHER, "biufc", "numbers", lambda dtype: bool_, "dtype bool")
equality = DTypeRule(Promotion.TOGETHER, "biufcO", "numbers or strings", lambda dtype: bool_, "dtype bool")
sum_or_join = DTypeRule(Promotion.TOGETHER, "biufcO", "numbers or strings")
anything = DTypeRule(Promotion.NONE, "biufcO", "numbers or strings")
test = DTypeRule(Promotion.FLOAT, "fc", "numbers", lambda dtype: bool_, "dtype bool")
bits = DTypeRule(Promotion.TOGETHER, "biu", "integers or bools")
integral = DTypeRule(Promotion.TOGETHER, "iu", "integers")


class _Rules(TypedDict, total=False):
    """The keyword arguments of :func:`elementwise` on which the type of its result does not depend."""

    dtype: Required[DTypeRule]
    code: Required[Callable[..., Any]]
    eager: Callable[..., Any] | None
    vjp: Callable[..., Any] | tuple[Callable[..., Any] | None, ...] | None
    cost: float
    raises: str | None
    example: tuple[str, str] | None


@overload
def elementwise(
    name: str, doc: str, *, samples: Domain, inputs: Literal["input"], **options: Unpack[_Rules]
) -> InputFunction: ...
@overload
def elementwise(
    name: str,
    doc: str,
    *,
    samples: Domain,
    inputs: Literal["features"],
    **options: Unpack[_Rules],
) -> FeaturesFunction: ...
@overload
def elementwise(
    name: str,
    doc: str,
    *,
    samples: tuple[Domain, Domain],
    inputs: Literal["y, x"],
    **options: Unpack[_Rules],
) -> PointFunction: ...
@overload
def elementwise(name: str, doc: str, *, samples: Domain, **options: Unpack[_Rules]) -> UnaryFunction: ...
@overload
def elementwise(
    name: str, doc: str, *, samples: tuple[Domain, Domain], **options: Unpack[_Rules]
) -> BinaryFunction: ...
@overload
def elementwise(
    name: str, doc: str, *, samples: tuple[Domain, Domain, Domain], **options: Unpack[_Rules]
) -> TernaryFunction: ...
def elementwise(
    name: str,
    doc: str,
    *,
    dtype: DTypeRule,
    code: Callable[..., Any],
    samples: Domain | tuple[Domain, ...],
    eager: Callable[..., Any] | None = None,
    vjp: Callable[..., Any] | tuple[Callable[..., Any] | None, ...] | None = None,
    cost: float = 1.0,
    raises: str | None = None,
    example: tuple[str, str] | None = None,
    inputs: Literal["x", "input", "features", "x, y", "y, x", "x, y, z"] | None = None,
) -> Any:
    """Register an elementwise op and return its function.

    Args:
        name: the op's name, and the function's.
        doc: one line: the result.
        dtype: the rule for the common dtype of the inputs and the dtype of the result.
        code: ``code(m, *elements)``: one element, see :class:`~dualflow.ops.op_kinds.Elementwise`.
        samples: the domain of each input; their number is the number of inputs.
        eager: the NumPy kernel; ``code`` run on arrays when not given.
        vjp: one rule for a one-input op, a tuple of rules for others: ``rule(g, out, *inputs)``.
        cost: the work of one element in additions.
        raises: when the op raises an InvalidArgumentError, other than for shapes, for the docstring.
        example: a call and the list that is its result, for the function's docstring.
        inputs: TensorFlow's names of the inputs, where they are not ``x``, ``x, y`` or ``x, y, z``.
    """
    domains = (samples,) if isinstance(samples, Domain) else samples
    kernel = eager if eager is not None else (lambda *arrays: code(maths_reference, *arrays))
    if not isinstance(kernel, np.ufunc) and dtype.kinds not in (number.kinds, anything.kinds):
        kernel = _checked(kernel, dtype)
    op = register(
        Op(
            name=name,
            doc=doc,
            infer=lambda *specs: _infer(dtype, specs),
            kernel=kernel,
            kind=Elementwise(code, cost),
            vjp=(vjp,) if callable(vjp) else vjp,
            promotion=dtype.promotion,
            strings="O" in dtype.kinds,
            samples=(Sample(domains),),
        )
    )
    names = inputs or _INPUTS[len(domains)]
    function = _function(op, names)
    sections = elementwise_sections(dtype.takes, dtype.promotion, dtype.returns, names, raises)
    shown = f"\n{EXAMPLE}>>> {example[0]}.numpy().tolist()\n{example[1]}\n" if example else ""
    function.__doc__ = f"{doc}\n\n{sections}{shown}"
    function.__module__ = code.__module__
    FUNCTIONS[name] = function
    return function


def _checked(kernel: Callable[..., Any], rule: DTypeRule) -> Callable[..., Any]:
    """``kernel`` with a check: it raises a TypeError, as a ufunc does, for dtypes that ``rule`` excludes."""

    def checked(*arrays: Any) -> Any:
        if arrays[0].dtype.kind not in rule.kinds:
            raise TypeError(f"takes {rule.takes}, not {arrays[0].dtype}")
        return kernel(*arrays)

    return checked


def _infer(rule: DTypeRule, specs: tuple[TensorSpec, ...]) -> TensorSpec:
    dtype = specs[0].dtype
    if dtype.kind not in rule.kinds:
        raise DTypeError(f"takes {rule.takes}, not {dtype.name}; convert the input with df.cast.")
    return TensorSpec.of(broadcast([s.shape for s in specs]), rule.result(dtype))


_INPUTS = {1: "x", 2: "x, y", 3: "x, y, z"}


def _unary(op: Op) -> Any:
    def unary(x: TensorLike, name: str | None = None) -> Any:
        try:
            return dispatch.current().unary(op, x)
        except Exception as error:
            hide_frames_of(unary, error)
            raise

    return unary


def _input_function(op: Op) -> Any:
    def of_input(input: TensorLike, name: str | None = None) -> Any:
        try:
            return dispatch.current().unary(op, input)
        except Exception as error:
            hide_frames_of(of_input, error)
            raise

    return of_input


def _features_function(op: Op) -> Any:
    def of_features(features: TensorLike, name: str | None = None) -> Any:
        try:
            return dispatch.current().unary(op, features)
        except Exception as error:
            hide_frames_of(of_features, error)
            raise

    return of_features


def _binary(op: Op) -> Any:
    def binary(x: TensorLike, y: TensorLike, name: str | None = None) -> Any:
        try:
            return dispatch.current().binary(op, x, y)
        except Exception as error:
            hide_frames_of(binary, error)
            raise

    return binary


def _ternary(op: Op) -> Any:
    def ternary(x: TensorLike, y: TensorLike, z: TensorLike, name: str | None = None) -> Any:
        try:
            return dispatch.current().apply(op, (x, y, z), {})
        except Exception as error:
            hide_frames_of(ternary, error)
            raise

    return ternary


def _point_function(op: Op) -> Any:
    def of_point(y: TensorLike, x: TensorLike, name: str | None = None) -> Any:
        try:
            return dispatch.current().binary(op, y, x)
        except Exception as error:
            hide_frames_of(of_point, error)
            raise

    return of_point


_FACTORIES: Final[dict[str, Callable[[Op], Any]]] = {
    "x": _unary,
    "input": _input_function,
    "features": _features_function,
    "x, y": _binary,
    "y, x": _point_function,
    "x, y, z": _ternary,
}
"""Creates the function of an op, by the names of its arguments, which are written out to make calls fast."""


def _function(op: Op, inputs: str) -> OpFunction:
    """The public Python function of ``op``, with parameters of these names."""
    function = cast(OpFunction, _FACTORIES[inputs](op))
    function.op = op
    function.__name__ = function.__qualname__ = op.name
    return function

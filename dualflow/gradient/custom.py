"""Functions with a custom gradient."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from dualflow.core import dispatch, tree
from dualflow.core.delegating_engine import DelegatingEngine
from dualflow.core.dispatch import AbstractTensor, AbstractVariable, Engine
from dualflow.core.errors import DTypeError, InvalidArgumentError
from dualflow.core.records import dataclass
from dualflow.core.tracebacks import entry
from dualflow.gradient.sweep import filled
from dualflow.ops.complex_numbers import conj
from dualflow.ops.cotangent_shapes import matched
from dualflow.ops.creation import convert_to_tensor
from dualflow.ops.custom_vjp import CUSTOM


def custom_gradient(f: Callable[..., Any]) -> Callable[..., Any]:
    """Decorator of a function that returns its result and a function that computes its gradient.

    ``f(*args)`` returns ``(result, grad)``; ``grad(*dresult)`` takes the gradients of all outputs and returns
    those of all arguments, or None for an argument without one. If ``f`` reads trainable variables that are
    not arguments, ``grad`` takes a list of them as ``variables=`` and returns a pair: the gradients of the
    arguments, and those of the variables.

    Higher-order gradients differentiate ``grad``; keyword arguments of ``f`` have no gradient.

    Raises:
        DTypeError: ``f`` reads variables and ``grad`` has no parameter ``variables``; when the gradient is
            computed, ``grad`` returns one of another dtype than its argument has.
        InvalidArgumentError: when the gradient is computed, ``grad`` returns too few or too many, or one of
            another shape than its argument has.

    >>> import dualflow as df
    >>> @df.custom_gradient
    ... def doubled_gradient(x):
    ...     return df.identity(x), lambda dy: 2 * dy
    >>> x = df.constant(3.0)
    >>> with df.GradientTape() as tape:
    ...     tape.watch(x)
    ...     y = doubled_gradient(x)
    >>> float(tape.gradient(y, x))
    2.0
    """

    @entry
    @functools.wraps(f)
    def decorated(*args: Any, **kwargs: Any) -> Any:
        engine = dispatch.current()
        leaves = tree.leaves(args[1:] if _is_method(args, decorated) else args)
        inputs = {i: dispatch.operand(engine, x) for i, x in enumerate(leaves) if _has_gradient(x)}
        reader = ReadRecordingEngine(engine)
        with dispatch.using(reader):
            result, grad = f(*args, **kwargs)
            flat, structure = tree.flatten(result)
            results = [convert_to_tensor(y) for y in flat]
        argument_ids = {id(x) for x in leaves}
        variables = [v for v in reader.variables.values() if v.trainable and id(v) not in argument_ids]
        if variables and not _takes_variables(grad):
            raise DTypeError(
                "If using @custom_gradient with a function that uses variables, then grad_fn must accept a "
                f"'variables' keyword argument; {f.__name__} reads {', '.join(v.name for v in variables)}."
            )
        rule = UserGradient(f.__name__, grad, tuple(inputs), len(leaves), tuple(variables))
        operands = (*results, *inputs.values(), *[engine.read(v) for v in variables])
        if len(operands) == len(results):
            return result
        outputs = engine.apply(CUSTOM, operands, {"grad": rule, "outputs": len(results)})
        return tree.unflatten(structure, tuple(outputs))

    return decorated


class ReadRecordingEngine(DelegatingEngine):
    """An engine that runs ops on ``base`` and records the variables that are read."""

    __slots__ = ("variables",)

    def __init__(self, base: Engine) -> None:
        super().__init__(base)
        self.variables: dict[int, Any] = {}

    @property
    def unrecorded(self) -> Engine:
        return self.base.unrecorded

    def read(self, variable: Any) -> Any:
        self.variables[id(variable)] = variable
        return self.base.read(variable)


@dataclass(frozen=True, slots=True, eq=False)
class UserGradient:
    """A user's gradient function as the vjp rule of one call; it may capture tensors of this call.

    TensorFlow's gradients are conjugates of the sweep's cotangents, so both arguments and results are
    conjugated.

    Attributes:
        name: the name of the decorated function.
        grad: the user's function.
        positions: the positions of the arguments that are tensors, and so inputs of the op.
        arguments: the number of arguments.
        variables: the variables that the function reads; they are inputs after the arguments.
    """

    name: str
    grad: Callable[..., Any]
    positions: tuple[int, ...]
    arguments: int
    variables: tuple[Any, ...]

    def __call__(self, needed: Sequence[bool], g: Any, out: Any, *inputs: Any) -> list[Any]:
        gradients = [conj(x) for x in filled(g, out)]
        if self.variables:
            of_arguments, of_variables = self.grad(*gradients, variables=list(self.variables))
        else:
            of_arguments, of_variables = self.grad(*gradients), []
        returned = _flattened(of_arguments)
        self._check(returned, self.arguments, "arguments")
        self._check(list(of_variables), len(self.variables), "variables")
        cotangents = [*[returned[i] for i in self.positions], *of_variables]
        owners = [f"argument {i + 1}" for i in self.positions] + [v.name for v in self.variables]
        return [
            None if cotangent is None else conj(self._gradient(cotangent, x, of))
            for cotangent, x, of in zip(cotangents, inputs, owners, strict=True)
        ]

    def _gradient(self, cotangent: Any, x: Any, of: str) -> Any:
        """A returned gradient, converted to the dtype of the input ``x`` and checked against its shape."""
        tensor = convert_to_tensor(cotangent, dtype_hint=x.dtype)
        whose = f"The gradient function of {self.name} returned a gradient of"
        if tensor.dtype is not x.dtype and x.dtype.is_inexact:
            raise DTypeError(
                f"{whose} dtype {tensor.dtype.name} for {of}, which has dtype {x.dtype.name}; cast it with "
                "df.cast."
            )
        message = (
            f"{whose} shape {{0}} for {of}, which has shape {{1}}; a gradient has the shape of its argument."
        )
        return matched(tensor, x, message)

    def _check(self, gradients: list[Any], count: int, what: str) -> None:
        if len(gradients) != count:
            raise InvalidArgumentError(
                f"The gradient function of {self.name} must return a gradient for each of its {count} "
                f"{what} (None where there is none), but returned {len(gradients)}."
            )


def _flattened(returned: Any) -> list[Any]:
    """The gradients that a gradient function returned, flattened; None is a leaf."""
    if isinstance(returned, list | tuple):
        return [x for part in returned for x in _flattened(part)]
    if isinstance(returned, Mapping):
        return [x for key in sorted(returned) for x in _flattened(returned[key])]
    return [returned]


def _is_method(args: Sequence[Any], function: Callable[..., Any]) -> bool:
    """Whether the first argument of a call is the instance whose method ``function`` is."""
    if not args or isinstance(args[0], AbstractTensor | AbstractVariable):
        return False
    return any(value is function for parent in type(args[0]).__mro__ for value in vars(parent).values())


def _has_gradient(x: Any) -> bool:
    return isinstance(x, AbstractTensor | AbstractVariable)


def _takes_variables(grad: Callable[..., Any]) -> bool:
    parameters = inspect.signature(grad).parameters
    return "variables" in parameters or any(p.kind is p.VAR_KEYWORD for p in parameters.values())

"""Function transformations for gradients, by the names of early TensorFlow Eager (``tfe``)."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dualflow.core import dispatch, tree
from dualflow.core.convert import reject_mask
from dualflow.core.dispatch import AbstractVariable
from dualflow.core.dtypes import as_dtype
from dualflow.core.errors import FailedPreconditionError, InvalidArgumentError
from dualflow.core.tracebacks import entry
from dualflow.eager import recording
from dualflow.eager.recording import Tape
from dualflow.ops.conversion import identity
from dualflow.ops.creation import convert_to_tensor, ones_like

Gradients = list[Any]


@entry
def value_and_gradients_function(
    f: Callable[..., Any], params: Sequence[int | str] | None = None
) -> Callable[..., Any]:
    """A function that computes ``f(*args)`` and its gradient for each argument.

    Args:
        f: takes tensors, or values that can be converted, and returns a tensor or a structure of them, whose
            gradients are summed.
        params: the positions or the names of the arguments to differentiate for; all by default.

    Returns:
        A function that returns ``(value, gradients)``: a list of tensors, None if ``f`` does not depend on
        the argument. Integer tensors have gradients too, in integers; integer variables have none. Its
        keyword ``dy`` weights the value.

    Raises:
        InvalidArgumentError: there are no arguments, or no argument of a position or name.

    >>> import dualflow as df
    >>> value, gradients = value_and_gradients_function(lambda x: x * x)(3.0)
    >>> float(value), float(gradients[0])
    (9.0, 6.0)
    """

    selected = None if params is None else [_argument_position(f, p) for p in params]

    @entry
    @functools.wraps(f)
    def wrapper(*args: Any, dy: Any = None, **kwargs: Any) -> tuple[Any, Gradients]:
        positions = range(len(args)) if selected is None else selected
        if not args or any(not 0 <= p < len(args) for p in positions):
            raise InvalidArgumentError(
                f"params is {list(positions)}, but {len(args)} arguments were given; params must be "
                "positions or names of given arguments."
            )
        inputs = _copy_repeated(
            [a if isinstance(a, AbstractVariable) else convert_to_tensor(a) for a in args]
        )
        tape = Tape(accessed=True)
        for a in inputs:
            (tape.watch_variable if isinstance(a, AbstractVariable) else tape.watch)(a)
        value = _recorded(tape, f, inputs, kwargs)
        return value, _gradients(tape, value, dy, [inputs[p] for p in positions])

    return wrapper


def _argument_position(f: Callable[..., Any], param: int | str) -> int:
    """The position of the argument ``param``, a position or a name."""
    if not isinstance(param, str):
        return param
    names = list(inspect.signature(f).parameters)
    if param not in names:
        raise InvalidArgumentError(f"There is no argument {param!r} to differentiate for: there are {names}.")
    return names.index(param)


@entry
def gradients_function(
    f: Callable[..., Any], params: Sequence[int | str] | None = None
) -> Callable[..., Gradients]:
    """A function that computes the gradient of ``f(*args)`` for each argument.

    See :func:`value_and_gradients_function`.

    >>> import dualflow as df
    >>> [int(g) for g in gradients_function(lambda x, y: x * y)(3, 4)]
    [4, 3]
    """
    return _without_value(value_and_gradients_function(f, params))


def implicit_value_and_gradients(f: Callable[..., Any]) -> Callable[..., Any]:
    """A function that computes ``f(*args)`` and its gradient for each trainable variable that ``f`` reads.

    Returns:
        A function that returns ``(value, pairs)``, a pair of gradient and variable for each variable in the
        order of their creation. Its keyword ``dy`` weights the value.

    Raises:
        InvalidArgumentError: ``f`` returns None, or reads no trainable variable.
    """

    @entry
    @functools.wraps(f)
    def wrapper(*args: Any, dy: Any = None, **kwargs: Any) -> tuple[Any, list[tuple[Any, Any]]]:
        tape = Tape(accessed=True)
        value = _recorded(tape, f, args, kwargs)
        if value is None:
            raise InvalidArgumentError(
                "Cannot differentiate a function that returns None; did you forget to return?"
            )
        variables = recording.by_creation(tape.variables.values())
        if not variables:
            raise InvalidArgumentError(
                "No trainable variables were accessed while the function was being computed."
            )
        return value, list(zip(_gradients(tape, value, dy, variables), variables, strict=True))

    return wrapper


def implicit_gradients(f: Callable[..., Any]) -> Callable[..., list[tuple[Any, Any]]]:
    """A function that computes the gradient of ``f(*args)`` for each trainable variable that ``f`` reads.

    See :func:`implicit_value_and_gradients`.
    """
    return _without_value(implicit_value_and_gradients(f))


def _copy_repeated(arguments: Sequence[Any]) -> list[Any]:
    """The arguments, with repeated tensors copied, so that each has a gradient of its own."""
    ids: set[int] = set()
    distinct = []
    for argument in arguments:
        distinct.append(identity(argument) if id(argument) in ids else argument)
        ids.add(id(argument))
    return distinct


def _recorded(tape: Tape, f: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    recording.start_recording(tape)
    try:
        return f(*args, **kwargs)
    finally:
        recording.stop_recording(tape)


def _gradients(tape: Tape, value: Any, dy: Any, sources: Sequence[Any]) -> Gradients:
    targets = [convert_to_tensor(t) for t in tree.leaves(value)]
    weights = [ones_like(t) if dy is None else convert_to_tensor(dy, t.dtype) for t in targets]
    return recording.gradients(tape, targets, weights, sources, integers=True)


def _without_value(f: Callable[..., tuple[Any, Any]]) -> Callable[..., Any]:
    @entry
    @functools.wraps(f)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return f(*args, **kwargs)[1]

    return wrapper


@entry
def py_func(
    func: Callable[..., Any], inp: Sequence[Any], Tout: object, stateful: bool = True, name: str | None = None
) -> Any:
    """The results of a Python function of NumPy arrays, as tensors; not differentiable.

    Args:
        func: takes arrays and returns one, or one for each dtype in ``Tout``.
        inp: the tensors to call it with.
        Tout: the dtype of the result, or a list of dtypes.
        stateful: ignored; as in TensorFlow.
        name: ignored; as in TensorFlow.

    Raises:
        FailedPreconditionError: it is called in a traced function; use :func:`dualflow.numpy_function` there.
    """
    if not dispatch.current().eager:
        raise FailedPreconditionError("py_func runs eagerly; in a traced function use df.numpy_function.")
    result = func(*[np.array(convert_to_tensor(x)) for x in inp])
    if not isinstance(Tout, list | tuple):
        return _result(result, Tout)
    return [_result(r, t) for r, t in zip(result, Tout, strict=True)]


def _result(value: Any, dtype: Any) -> Any:
    reject_mask(value)
    return convert_to_tensor(np.asarray(value, as_dtype(dtype).dtype))

"""``py_function`` and ``numpy_function``: Python functions as ops, callable from compiled functions."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from dualflow.core import dispatch
from dualflow.core.convert import Array, as_array, reject_mask
from dualflow.core.dispatch import AbstractVariable
from dualflow.core.errors import DTypeError, InvalidArgumentError
from dualflow.core.records import dataclass
from dualflow.core.shape import Shape, broadcast
from dualflow.core.spec import TensorSpec
from dualflow.core.tracebacks import entry
from dualflow.eager.engine import EAGER
from dualflow.eager.tape import GradientTape
from dualflow.eager.tensor import wrap
from dualflow.gradient.sweep import filled
from dualflow.ops.complex_numbers import conj
from dualflow.ops.creation import convert_to_tensor
from dualflow.ops.op_kinds import Opaque
from dualflow.ops.record import Effect, Op

Specs = tuple[TensorSpec, ...]
_KIND: Final = Opaque("it calls Python")


def _specs(*inputs: TensorSpec, function: Callable[..., Any], specs: Specs) -> Specs:
    return specs


def _tensor_kernel(*arrays: Array, function: Callable[..., Any], specs: Specs) -> tuple[Array, ...]:
    with dispatch.using(EAGER):
        results = _results(function, function(*[wrap(a.copy()) for a in arrays]), specs)
    return tuple([_copied(function, x._array, spec) for x, spec in zip(results, specs, strict=True)])


def _array_kernel(*arrays: Array, function: Callable[..., Any], specs: Specs) -> tuple[Array, ...]:
    with dispatch.using(EAGER):
        results = _result_sequence(function, function(*[a.copy()[()] for a in arrays]), len(specs))
    converted = [_checked_array(function, x, spec) for x, spec in zip(results, specs, strict=True)]
    return tuple([_copied(function, x, spec) for x, spec in zip(converted, specs, strict=True)])


def _joint_vjp(
    needed: Sequence[bool], g: Any, out: Any, *inputs: Any, function: Callable[..., Any], specs: Specs
) -> list[Any]:
    """The vjp, which is a Python call, too: it runs the function again under a tape."""
    differentiable = tuple([i for i, x in enumerate(inputs) if needed[i] and x.dtype.is_inexact])
    cotangents = [c for c, spec in zip(filled(g, out), specs, strict=True) if spec.dtype.is_inexact]
    gradients_of_inputs: list[Any] = [None] * len(inputs)
    if not differentiable or not cotangents:
        return gradients_of_inputs
    backward = _Backward(function, specs, len(inputs), differentiable)
    attrs = {
        "function": backward,
        "specs": tuple([TensorSpec.of(inputs[i].shape, inputs[i].dtype) for i in differentiable]),
    }
    gradients = dispatch.current().apply(PY_FUNCTION, (*inputs, *cotangents), attrs)
    for i, gradient in zip(differentiable, gradients, strict=True):
        gradients_of_inputs[i] = gradient
    return gradients_of_inputs


@dataclass(frozen=True, slots=True, eq=False)
class _Backward:
    """Computes the cotangents of inputs from a function's inputs and the cotangents of its float results.

    Attributes:
        function: the Python function.
        specs: the specs of its results.
        count: the number of its inputs.
        sources: the positions of the inputs to differentiate for.
    """

    function: Callable[..., Any]
    specs: Specs
    count: int
    sources: tuple[int, ...]

    def __call__(self, *tensors: Any) -> list[Any]:
        inputs, cotangents = tensors[: self.count], tensors[self.count :]
        sources = [inputs[i] for i in self.sources]
        with GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(sources)
            outputs = _results(self.function, self.function(*inputs), self.specs)
        targets = [y for y in outputs if y.dtype.is_inexact]
        weights = [conj(c) for c in cotangents]
        gradients = tape.gradient(targets, sources, output_gradients=weights, unconnected_gradients="zero")
        return [conj(x) for x in gradients]


PY_FUNCTION: Final = Op(
    name="py_function",
    doc="The results of a Python function of eager tensors, of the shapes and dtypes ``specs``.",
    infer=_specs,
    kernel=_tensor_kernel,
    kind=_KIND,
    joint_vjp=_joint_vjp,
    outputs=None,
    effect=Effect.PYTHON,
)

NUMPY_FUNCTION: Final = Op(
    name="numpy_function",
    doc="The results of a Python function of NumPy arrays, of the shapes and dtypes ``specs``.",
    infer=_specs,
    kernel=_array_kernel,
    kind=_KIND,
    outputs=None,
    effect=Effect.PYTHON,
)


@entry
def py_function(
    func: Callable[..., Any] | None = None,
    inp: Sequence[Any] | None = None,
    Tout: object = None,
    name: str | None = None,
) -> Any:
    """The results of a Python function of eager tensors, called now or, in a graph, at each run.

    It is differentiable: in a traced function the gradient runs ``func`` once more, under a tape. A variable
    that ``func`` reads has its value from before the call of the traced function.

    Args:
        func: takes eager tensors and returns a value that can be converted to a tensor, or a sequence of
            them. Without it, ``py_function(Tout=...)`` is a decorator, whose function takes the inputs as
            separate arguments.
        inp: the tensors to call it with.
        Tout: the dtype of the result, or a list of dtypes, or None for a function without results. In a
            traced function a result has the shape to which the inputs broadcast; for another one give a
            :class:`dualflow.TensorSpec` instead of the dtype, or call ``set_shape`` of the result first.
        name: ignored; as in TensorFlow.

    Returns:
        A tensor; a list of them if ``Tout`` is a list; None if it is None. Without results, in an explicit
        graph, the operation for a session to run.

    Raises:
        InvalidArgumentError: the results are too few, too many, of another dtype or, in a traced function, of
            another shape.
        FailedPreconditionError: ``func`` changes a variable that the traced function changes.
        Exception: any error that ``func`` raises.

    >>> import dualflow as df
    >>> f = df.function(lambda x: df.py_function(lambda v: v.numpy()[::-1], [x], df.float32))
    >>> f(df.constant([1.0, 2.0])).numpy()
    array([2., 1.], dtype=float32)
    """
    if func is None:
        return _decorator(py_function, Tout, name)
    if inp is None:
        raise DTypeError(_WITHOUT_INPUTS.format(py_function.__name__))
    engine = dispatch.current()
    inputs = [convert_to_tensor(x) for x in inp]
    if engine.eager:
        specs = _declared(Tout, None)
        return _packed(Tout, _results(func, func(*inputs), specs))
    attrs = {"function": func, "specs": _declared(Tout, inputs)}
    return _packed(Tout, engine.apply(PY_FUNCTION, tuple(inputs), attrs))


@entry
def numpy_function(
    func: Callable[..., Any] | None = None,
    inp: Sequence[Any] | None = None,
    Tout: object = None,
    stateful: bool = True,
    name: str | None = None,
) -> Any:
    """The results of a Python function of NumPy arrays, called now or, in a graph, at each run.

    It is not differentiable.

    Args:
        func: takes arrays, which are copies, and returns an array or a number; or a sequence of them. Without
            it this is a decorator, like :func:`py_function`.
        inp: the tensors to call it with.
        Tout: as in :func:`py_function`.
        stateful: ignored: ``func`` is called exactly once in each run.
        name: ignored; as in TensorFlow.

    Raises:
        InvalidArgumentError: the results are too few, too many, of another dtype or, in a traced function, of
            another shape.
        Exception: any error that ``func`` raises.

    >>> import dualflow as df
    >>> df.numpy_function(np.sort, [df.constant([2.0, 1.0])], df.float32).numpy()
    array([1., 2.], dtype=float32)
    """
    if func is None:
        return _decorator(numpy_function, Tout, name)
    if inp is None:
        raise DTypeError(_WITHOUT_INPUTS.format(numpy_function.__name__))
    engine = dispatch.current()
    inputs = tuple([convert_to_tensor(x) for x in inp])
    specs = _declared(Tout, None if engine.eager else inputs)
    attrs = {"function": func, "specs": specs}
    return _packed(Tout, engine.apply(NUMPY_FUNCTION, inputs, attrs))


_WITHOUT_INPUTS: Final = (
    "{0} needs the tensors to call the function with: {0}(f, [x], Tout). As a decorator it takes Tout by "
    "name: @df.{0}(Tout=df.float32)."
)


def _decorator(call: Callable[..., Any], tout: Any, name: str | None) -> Callable[..., Any]:
    """A decorator that makes a Python function a function of tensors."""

    def decorate(func: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(func)
        def decorated(*inp: Any) -> Any:
            return call(func, inp, tout, name=name)

        return entry(decorated)

    return decorate


class _AssumedSpec(TensorSpec):
    """The spec of a result of a dtype alone, in a trace: the shape to which the inputs broadcast."""

    __slots__ = ()


def with_declared_shape(specs: Specs, index: int, shape: Shape) -> Specs | None:
    """The specs of a call's results with the shape of one that was declared by its dtype alone.

    None if the result has a declared shape already.
    """
    spec = specs[index]
    if not isinstance(spec, _AssumedSpec):
        return None
    return (*specs[:index], TensorSpec.of(shape, spec.dtype), *specs[index + 1 :])


def _declared(Tout: Any, inputs: Sequence[Any] | None) -> Specs:
    """The specs of the results; a dtype without ``inputs``, as in eager calls, has any number of axes."""
    entries = () if Tout is None else tuple(Tout) if isinstance(Tout, list | tuple) else (Tout,)
    return tuple([e if isinstance(e, TensorSpec) else _broadcast_spec(e, inputs) for e in entries])


def _broadcast_spec(dtype: Any, inputs: Sequence[Any] | None) -> TensorSpec:
    if inputs is None:
        return TensorSpec(None, dtype)
    try:
        shape = broadcast([x.shape for x in inputs]) if inputs else Shape()
    except InvalidArgumentError:
        raise InvalidArgumentError(
            "The shape of a Python function's result must be known while tracing, and these inputs have no "
            f"common one: {', '.join(str(x.spec) for x in inputs)}. Give Tout as df.TensorSpec(shape, dtype)."
        ) from None
    return _AssumedSpec(shape, dtype)


def _packed(Tout: Any, results: Any) -> Any:
    if not isinstance(results, list | tuple):  # the operation of an explicit graph
        return results
    if Tout is None:
        return None
    return list(results) if isinstance(Tout, list | tuple) else results[0]


def _results(function: Callable[..., Any], result: Any, specs: Specs) -> list[Any]:
    """The value that a Python function returned, as a list of tensors of the declared dtypes."""
    tensors = []
    for x, spec in zip(_result_sequence(function, result, len(specs)), specs, strict=True):
        if x is None or isinstance(x, AbstractVariable):
            raise DTypeError(
                f"{_name(function)} returned {x!r}, where a tensor of dtype {spec.dtype.name} was declared; "
                "return a tensor, an array or a number (a variable's value is v.read_value())."
            )
        tensors.append(convert_to_tensor(x, spec.dtype))
    return tensors


def _result_sequence(function: Callable[..., Any], result: Any, count: int) -> Sequence[Any]:
    """The results as a sequence; a single one needn't be in a list, and undeclared results are dropped."""
    if count == 0:
        return ()
    if count == 1 and not (isinstance(result, list | tuple) and len(result) == 1):
        return (result,)
    if not isinstance(result, list | tuple) or len(result) != count:
        returned = len(result) if isinstance(result, list | tuple) else 1
        raise InvalidArgumentError(
            f"{_name(function)} returned {returned} values, but Tout declares {count}; return as many as it "
            "lists."
        )
    return result


def _checked_array(function: Callable[..., Any], value: Any, spec: TensorSpec) -> Array:
    dtype = spec.dtype.dtype
    if spec.dtype.is_string:
        return as_array(value, spec.dtype)
    if isinstance(value, np.ndarray | np.generic) and value.dtype != dtype:
        raise InvalidArgumentError(
            f"{_name(function)} returned an array of dtype {value.dtype}, but Tout declares "
            f"{spec.dtype.name}; convert it with .astype, or declare its own dtype."
        )
    reject_mask(value)
    return np.array(value, dtype)


def _copied(function: Callable[..., Any], array: Array, spec: TensorSpec) -> Array:
    """A copy of ``array``, checked to have the declared shape."""
    if not spec.shape.is_compatible_with(array.shape):
        raise InvalidArgumentError(
            f"{_name(function)} returned shape {array.shape}, but {spec.shape} was declared or, without a "
            f"declaration, is the shape of its inputs; give Tout as df.TensorSpec({array.shape}, "
            f"df.{spec.dtype.name})."
        )
    return array.copy()


def _name(function: Callable[..., Any]) -> str:
    return getattr(function, "__name__", type(function).__name__)

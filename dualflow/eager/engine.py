"""The eager engine: runs each op immediately, by its NumPy kernel.

``binary`` is the fast path of ``t + t``: two exact type checks, one dtype check, the kernel, one new object.
All other operands take the slow path, ``Op.run_on``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from dualflow.core import dispatch
from dualflow.core.convert import Array, as_result
from dualflow.core.device_names import CPU
from dualflow.core.dispatch import AbstractTensor, Engine
from dualflow.core.dtypes import ALL, UNCOMMON, of_array
from dualflow.core.errors import InaccessibleTensorError
from dualflow.core.memory_errors import is_out_of_memory, out_of_memory
from dualflow.core.numpy_warnings import quiet, run_quietly
from dualflow.eager import initial_values, updates
from dualflow.eager.device_tensor import DeviceTensor, placed_like, to_host
from dualflow.eager.kernel_slot import KERNELS
from dualflow.eager.placed_ops import run_function_placed, run_placed
from dualflow.eager.placement import BLOCK_DEVICE
from dualflow.eager.replicas import INITIAL_VALUE
from dualflow.eager.tensor import EagerTensor, wrap
from dualflow.eager.variable import Variable
from dualflow.eager.variable_slots import GIL, replace, store
from dualflow.ops.indexing import is_plain
from dualflow.ops.op_kinds import View
from dualflow.ops.record import COMPILED_ABOVE, Op, Promotion, operand
from dualflow.sizes.abstract_size import AbstractSize

_TO_FLOAT: Final = (Promotion.FLOAT, Promotion.DIVIDE)
_asarray: Final = np.asarray
_ndarray: Final = np.ndarray
_float32: Final = np.dtype("float32")
_SEVERAL: Final = (tuple, list)
_object: Final = np.dtype(object)
_NO_ATTRS: Final[dict[str, Any]] = {}
_FLOATS: Final = "efdFD"
"""The characters of NumPy's own floating and complex dtypes."""


class EagerEngine(Engine):
    """Runs ops on :class:`EagerTensor`."""

    __slots__ = ()
    eager = True

    def unary(self, op: Op, x: Any) -> Any:
        if type(x) is Variable:
            try:
                x = x._tensor
            except AttributeError:
                x = self.read(x)
        if type(x) is EagerTensor:
            array = x._array
            dtype = array.dtype
            if (
                dtype is _float32
                or dtype.char in _FLOATS
                or (op.promotion not in _TO_FLOAT and dtype.num < UNCOMMON)
            ):
                if (
                    array.size > op.compiled_above
                    and (compiled := KERNELS.value(op, (x,), _NO_ATTRS)) is not None
                ):
                    return compiled
                try:
                    result = run_quietly(op.kernel, array)
                except Exception as error:
                    result = retry_in_own_context(error, op, (x,))
                tensor = EagerTensor()
                tensor._array = result if type(result) is _ndarray else _asarray(result)
                return tensor
        return op.run_on(self, (x,), {})

    def binary(self, op: Op, x: Any, y: Any) -> Any:
        if type(x) is not EagerTensor or type(y) is not EagerTensor:
            x, y = convert_operands(self, x, y)
            if type(x) is not EagerTensor or type(y) is not EagerTensor:
                return op.run_on(self, (x, y), {})
        a, b = x._array, y._array
        dtype = a.dtype
        if dtype is b.dtype and (
            dtype is _float32
            or dtype.char in _FLOATS
            or (op.promotion not in _TO_FLOAT and dtype.num < UNCOMMON)
        ):
            if (a.size > op.compiled_above or b.size > op.compiled_above) and (
                compiled := KERNELS.value(op, (x, y), _NO_ATTRS)
            ) is not None:
                return compiled
            try:
                result = run_quietly(op.kernel, a, b)
            except Exception as error:
                result = retry_in_own_context(error, op, (x, y))
            tensor = EagerTensor()
            tensor._array = result if type(result) is _ndarray else _asarray(result)
            return tensor
        return op.run_on(self, (x, y), {})

    def apply(self, op: Op, inputs: tuple[Any, ...], attrs: dict[str, Any]) -> Any:
        if not is_promoted(op, inputs):
            inputs = tuple([self.read(x) if type(x) is Variable else x for x in inputs])
            if not is_promoted(op, inputs):
                return op.run_on(self, inputs, attrs)
        return self.run(op, inputs, attrs)

    def run(self, op: Op, inputs: tuple[Any, ...], attrs: dict[str, Any]) -> Any:
        arrays = []
        large = False
        for x in inputs:
            if type(x) is not EagerTensor:
                return run_placed(op, inputs, attrs, self.run)
            array = x._array
            arrays.append(array)
            if array.size > op.compiled_above:
                large = True
        if large and type(op.kind) is not View:
            compiled = KERNELS.value(op, inputs, attrs)
            if compiled is not None:
                return compiled
        if op.effect is not None:
            result = op.kernel(*arrays, **attrs)
        else:
            try:
                result = quiet().run(op.kernel, *arrays, **attrs)
            except Exception as error:
                explain(error, op, inputs, attrs)
                raise
        if type(result) is _ndarray:
            return wrap(result)
        if isinstance(result, _SEVERAL):
            return tuple([wrap(as_result(r)) for r in result])
        return wrap(as_result(result))

    def composite(self, rule: Callable[..., Any], x: Any, attrs: dict[str, Any]) -> Any:
        large = type(x) is EagerTensor and x._array.size > COMPILED_ABOVE
        if large and (compiled := KERNELS.value(rule, (x,), attrs)) is not None:
            return compiled
        if type(x) is DeviceTensor and (placed := run_function_placed(rule, (x,), attrs)) is not None:
            return placed
        return rule(x, **attrs)

    def generated(
        self, rule: Callable[..., Any], inputs: tuple[Any, ...], count: int, attrs: dict[str, Any]
    ) -> Any:
        if count > COMPILED_ABOVE and all(type(x) is EagerTensor for x in inputs):
            compiled = KERNELS.value(rule, inputs, attrs, count)
            if compiled is not None:
                return compiled
        return rule(*inputs, count=count, **attrs)

    def part(self, rule: Callable[[Any, Any], Any], x: Any, key: Any) -> Any:
        if type(x) is Variable:
            x = self.read(x)
        if type(x) is EagerTensor and is_plain(key):
            array = x._array
            try:
                view = array[key]
                if type(view) is not _ndarray:  # a NumPy scalar; with ``...`` it is a view
                    view = array[(*key, ...) if type(key) is tuple else (key, ...)]
                tensor = EagerTensor()
                tensor._array = view
                return tensor
            except (IndexError, ValueError):
                pass  # the rule raises the error
        return rule(x, key)

    def constant(self, array: Array) -> AbstractTensor:
        return wrap(array)

    def lift(self, tensor: AbstractTensor) -> AbstractTensor:
        if type(tensor) is EagerTensor or type(tensor) is DeviceTensor:
            return tensor
        if isinstance(tensor, AbstractSize) and tensor.is_constant:
            constant: EagerTensor = tensor.as_tensor()
            return constant
        raise InaccessibleTensorError(
            f"{tensor!r} is a symbolic tensor of a traced function and has no value outside of it; return it "
            "from the function."
        )

    def shallow_copy(self, tensor: Any) -> Any:
        if type(tensor) is EagerTensor:
            copy = EagerTensor()
            copy._array = tensor._array
            return copy
        return to_host(tensor) if BLOCK_DEVICE.get() == CPU else tensor.__copy__()

    def read(self, variable: Any) -> EagerTensor:
        try:
            tensor: EagerTensor = variable._tensor
        except AttributeError:
            (tensor,) = updates.values_of([variable])
        return tensor

    def assign(self, variable: Any, value: Any) -> None:
        tensor = updates.owned(value)
        if tensor is value:
            tensor = wrap(value._array) if type(value) is EagerTensor else value.__copy__()
        if not store(variable, tensor):
            updates.assign(variable, tensor)

    def change(self, variable: Any, rule: Callable[[Any], Any]) -> None:
        try:
            # compiled code doesn't write to a tensor with another reference
            before = variable._tensor if GIL else None
        except AttributeError:
            before = None
        if before is not None:
            after = rule(before)
            if type(after) is not type(before):
                after = placed_like(after, before)
            if replace(variable, before, updates.owned(after)):
                return
        updates.change(variable, rule)

    def create_variable(self, variable: Any, initial: Any) -> None:
        shared = INITIAL_VALUE.get()
        if shared is not None:
            initial = placed_like(wrap(shared(initial._array)), initial)
        tensor = updates.owned(initial)
        initial_values.set_initial_value(variable, initial.__copy__() if tensor is initial else tensor)


class UniformEagerEngine(EagerEngine):
    """An eager engine without fast paths: each op comes to :meth:`run`, which a subclass overrides."""

    __slots__ = ()
    unary = Engine.unary
    apply = Engine.apply

    def binary(self, op: Op, x: Any, y: Any) -> Any:
        return op.run_on(self, convert_operands(self, x, y), {})


def needs_float(op: Op, dtype: np.dtype[Any]) -> bool:
    """Whether ``op`` converts inputs of ``dtype`` to floats first: integers, or narrow floats."""
    if dtype is _float32 or dtype.char in _FLOATS:
        return False
    return op.promotion in _TO_FLOAT or dtype.num >= UNCOMMON


def is_promoted(op: Op, inputs: tuple[Any, ...]) -> bool:
    """Whether ``inputs`` are eager tensors that ``op`` needn't promote."""
    first = None
    for x in inputs:
        if type(x) is not EagerTensor:
            return False
        dtype = x._array.dtype
        if dtype is first:
            continue
        if first is None:
            if dtype.num >= UNCOMMON and dtype.char != "e":
                return False
            first = dtype
        elif op.promotion is not Promotion.NONE or (dtype.num >= UNCOMMON and dtype.char != "e"):
            return False
    return first is _float32 or (first is not None and not needs_float(op, first))


_MAX_CACHED_SCALARS: Final = 1024
_floats: Final[dict[np.dtype[Any], dict[float, EagerTensor]]] = {t.dtype: {} for t in ALL if t.is_inexact}
_ints: Final[dict[np.dtype[Any], dict[float, EagerTensor]]] = {t.dtype: {} for t in ALL if not t.is_bool}


def convert_operands(engine: Engine, x: Any, y: Any) -> tuple[Any, Any]:
    """Both operands, after reading variables; a Python number adapts to the dtype of a tensor next to it."""
    if type(x) is Variable:
        x = engine.read(x)
    if type(y) is Variable:
        y = engine.read(y)
    if type(x) is EagerTensor:
        if type(y) is not EagerTensor:
            y = adapt_to_dtype(y, x._array.dtype)
    elif type(y) is EagerTensor:
        x = adapt_to_dtype(x, y._array.dtype)
    return x, y


def adapt_to_dtype(value: Any, dtype: np.dtype[Any]) -> Any:
    """``value`` as a tensor of ``dtype`` if it is a Python number or adapting array; otherwise ``value``.

    Tensors of numbers are cached, in one table for each type of number, since 2 == 2.0.
    """
    kind = type(value)
    table = _floats.get(dtype) if kind is float else _ints.get(dtype) if kind is int else None
    if table is None:
        plain = kind is _ndarray and value.dtype is dtype and dtype is not _object
        return wrap(value.copy()) if plain else value
    cached = table.get(value)
    return cached if cached is not None else _remember(value, dtype, table)


def _remember(number: float, dtype: np.dtype[Any], table: dict[float, EagerTensor]) -> EagerTensor:
    """A new tensor of a number. It is cached unless the number is zero (0.0 == -0.0) or not finite."""
    tensor = wrap(operand(number, of_array(dtype)))
    if number and math.isfinite(number):
        if len(table) >= _MAX_CACHED_SCALARS:
            table.clear()
        table[number] = tensor
    return tensor


def retry_in_own_context(error: Exception, op: Op, inputs: tuple[EagerTensor, ...]) -> Any:
    """The op's result, run again in a new context if the shared one was in use; else raises ``error``."""
    if type(error) is RuntimeError:
        try:
            return quiet().run(op.kernel, *[x._array for x in inputs])
        except Exception as second_error:
            error = second_error
    explain(error, op, inputs, _NO_ATTRS)
    raise error


def explain(error: Exception, op: Op, inputs: tuple[EagerTensor, ...], attrs: dict[str, Any]) -> None:
    """Raise the error of the op's shape and dtype rule, if there is one; else add a note to ``error``."""
    shown = ", ".join(str(x.spec) for x in inputs)
    if is_out_of_memory(error):
        raise out_of_memory(f"{op.name}({shown})", error) from error
    op.specs([x.spec for x in inputs], attrs)
    error.add_note(f"in the dualflow op {op.name}({shown})")


EAGER: Final = EagerEngine()
dispatch.install(EAGER)

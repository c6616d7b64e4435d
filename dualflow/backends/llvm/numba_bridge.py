"""Makes compiled graphs callable from ``@numba.njit`` code; the only module here that imports Numba.

The bridge is one Numba intrinsic: it checks shapes, allocates outputs, fills the buffer table and calls the
graph's entry, all in machine code. Numba's compiled callers are never freed, so neither are these graphs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numba
import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.core.errors import NumbaError, TypingError
from numba.extending import intrinsic

from dualflow.backends.llvm.executable import Executable
from dualflow.backends.runtime import switches
from dualflow.backends.runtime.numba_version_check import require_numba
from dualflow.core.errors import DTypeError, InvalidArgumentError
from dualflow.core.records import dataclass
from dualflow.core.spec import TensorSpec
from dualflow.graph.compiled import PartKind
from dualflow.schedule.arena import ALIGNMENT
from dualflow.schedule.operands import CallKind

Array = np.ndarray[Any, Any]
_POINTER = ir.IntType(8).as_pointer()
_WORD = ir.IntType(64)
_ENTRY = ir.FunctionType(ir.VoidType(), [_POINTER] * 3).as_pointer()

_bridged: dict[int, tuple[_Bridge, Any]] = {}


def as_njit(executable: Executable, captured: Sequence[Array] = ()) -> Any:
    """A compiled graph as a function that ``@numba.njit`` code can call.

    It takes C-contiguous arrays of the shapes and dtypes that the graph was compiled for, and plain numbers
    too where the rank is 0. It returns new arrays, numbers where the rank is 0: one, or a tuple of several.
    Each call allocates its own memory, so it may be in a ``prange`` loop. Other types raise a TypingError
    when Numba compiles the caller. Other shapes, and integers outside the range of their dtype, raise an
    InvalidArgumentError when the call runs. The exception of a signal handler ends a loop of the graph.

    Args:
        executable: a compiled graph with one native part and no variables.
        captured: a C-contiguous array for each tensor that the graph captures.

    Returns:
        A Numba dispatcher, the same one for the same executable. Python can call it too.

    Raises:
        InvalidArgumentError: the graph needs NumPy, Python or a variable.
        DTypeError: Numba has no such dtype.
    """
    bridged = _bridged.get(id(executable))
    if bridged is None:
        require_numba()
        bridge = _Bridge.of(executable, captured)
        bridged = _bridged[id(executable)] = bridge, bridge.dispatcher()
    return bridged[1]


@dataclass(frozen=True, slots=True, eq=False)
class _Bridge:
    """The signature and the fixed buffers of one graph.

    Attributes:
        names: the names of the arguments.
        arguments: the specs of the arguments.
        fixed: the captured tensors, then the constants.
        results: a Numba type for each output.
    """

    executable: Executable
    names: tuple[str, ...]
    arguments: tuple[TensorSpec, ...]
    fixed: tuple[Array, ...]
    results: tuple[types.Type, ...]

    @classmethod
    def of(cls, executable: Executable, captured: Sequence[Array]) -> _Bridge:
        _require_native(executable)
        graph = executable.graph
        specs = tuple(v.spec for v in graph.arguments)
        for spec in specs:
            _numba_type(spec)
        return cls(
            executable,
            tuple(spec.name or f"argument {i}" for i, spec in enumerate(specs)),
            specs,
            (*captured, *executable.plan.constants),
            tuple(map(_numba_type, executable.plan.outputs)),
        )

    @property
    def result(self) -> types.Type:
        if len(self.results) == 1:
            return self.results[0]
        return types.Tuple(self.results) if self.results else types.none

    def dispatcher(self) -> Any:
        """A Numba function whose body is the intrinsic."""

        def typed(typing_context: Any, arguments: Any) -> Any:
            argument_types = [types.unliteral(t) for t in arguments.types]
            self.check(argument_types)

            def emit(context: Any, builder: Any, signature: Any, values: Any) -> Any:
                call = _Call(self, context, builder)
                return call.emit(argument_types, cgutils.unpack_tuple(builder, values[0]))

            return self.result(arguments), emit

        run: Any = intrinsic(typed)

        def call(*arguments):  # type: ignore[no-untyped-def]  # Numba infers them
            return run(arguments)

        call.__name__ = call.__qualname__ = self.executable.graph.name
        return numba.njit(call)

    def check(self, argument_types: Sequence[types.Type]) -> None:
        """Raise TypingError unless ``argument_types`` can be the arguments."""
        name = self.executable.graph.name
        if len(argument_types) != len(self.arguments):
            raise TypingError(f"{name!r} takes {len(self.arguments)} arguments, not {len(argument_types)}")
        for argument, spec, type in zip(self.names, self.arguments, argument_types, strict=True):
            if not _fits(type, spec):
                raise TypingError(f"{name!r} takes {argument} as a C-contiguous {spec}, not {type}")


@dataclass(frozen=True, slots=True)
class _Call:
    """Emits one call into a function that Numba compiles."""

    bridge: _Bridge
    context: Any
    builder: Any

    def emit(self, argument_types: Sequence[types.Type], values: Sequence[Any]) -> Any:
        """Emit the call; returns a value of the bridge's result type."""
        bridge, builder, context = self.bridge, self.builder, self.context
        arguments = zip(bridge.names, bridge.arguments, argument_types, values, strict=True)
        pointers = [self._input(*argument) for argument in arguments]
        pointers += [self._address(array.__array_interface__["data"][0]) for array in bridge.fixed]
        outputs = [
            self._empty(t, s) for t, s in zip(bridge.results, bridge.executable.plan.outputs, strict=True)
        ]
        pointers += [pointer for _, pointer in outputs]
        arena, pointer = self._arena(bridge.executable.image.arena_bytes)
        status = self._run([*pointers, pointer])
        context.nrt.decref(builder, _BYTES, arena)
        self._raise(status, outputs)
        results = [self._result(type, *output) for type, output in zip(bridge.results, outputs, strict=True)]
        if len(results) == 1:
            return results[0]
        return context.make_tuple(builder, bridge.result, results) if results else context.get_dummy_value()

    def _run(self, pointers: Sequence[Any]) -> Any:
        """Emit the call of the graph's entry; returns the status word."""
        builder, executable = self.builder, self.bridge.executable
        table = cgutils.alloca_once(builder, _POINTER, size=len(pointers))
        for i, pointer in enumerate(pointers):
            builder.store(pointer, builder.gep(table, [ir.Constant(_WORD, i)]))
        status = cgutils.alloca_once_value(builder, ir.Constant(_WORD, 0))
        builder.store(ir.Constant(_WORD, 0), status)
        entry = self._address(executable.entry(executable.image.parts[0].entry or ""))
        params = self._address(executable.params.__array_interface__["data"][0])
        arguments = [builder.bitcast(table, _POINTER), params, builder.bitcast(status, _POINTER)]
        builder.call(builder.bitcast(entry, _ENTRY), arguments)
        return builder.load(status)

    def _address(self, address: int) -> Any:
        """An address in this process, which prevents Numba from caching the caller on disk."""
        return self.context.add_dynamic_addr(self.builder, address, info="dualflow")

    def _input(self, name: str, spec: TensorSpec, type: types.Type, value: Any) -> Any:
        """The address of an argument's elements; emits the check of its shape."""
        builder, context = self.builder, self.context
        if not isinstance(type, types.Array):
            target = numba.from_dtype(spec.dtype.dtype)
            number = context.cast(builder, value, type, target)
            if isinstance(type, types.Integer) and isinstance(target, types.Integer):
                with builder.if_then(self._wraps(value, type, number, target), likely=False):
                    graph_name = self.bridge.executable.graph.name
                    self._raise_now(
                        InvalidArgumentError(
                            f"{graph_name!r} takes {name}: {spec}, not an integer outside its range"
                        )
                    )
            stored = context.data_model_manager[target].as_data(builder, number)
            return builder.bitcast(cgutils.alloca_once_value(builder, stored), _POINTER)
        array = context.make_array(type)(context, builder, value)
        sizes = cgutils.unpack_tuple(builder, array.shape)
        for size, expected in zip(sizes, spec.shape, strict=True):
            with builder.if_then(
                builder.icmp_signed("!=", size, ir.Constant(size.type, expected)), likely=False
            ):
                graph_name = self.bridge.executable.graph.name
                self._raise_now(
                    InvalidArgumentError(f"{graph_name!r} was compiled for {name}: {spec}, not another shape")
                )
        return builder.bitcast(array.data, _POINTER)

    def _wraps(self, value: Any, source: Any, number: Any, target: Any) -> Any:
        """Whether ``number``, which is ``value`` cast from ``source`` to ``target``, is another integer."""
        builder = self.builder
        back = self.context.cast(builder, number, target, source)
        signs = [
            builder.icmp_signed("<", x, ir.Constant(x.type, 0)) if t.signed else cgutils.false_bit
            for x, t in ((value, source), (number, target))
        ]
        return builder.or_(builder.icmp_unsigned("!=", back, value), builder.xor(*signs))

    def _empty(self, type: types.Type, spec: TensorSpec) -> tuple[Any, Any]:
        """A new array and the address of its elements; for a number, the address of stack memory."""
        builder, context = self.builder, self.context
        if not isinstance(type, types.Array):
            slot = cgutils.alloca_once(builder, context.get_data_type(type))
            return slot, builder.bitcast(slot, _POINTER)
        return self._new_array(type, tuple(spec.shape))  # type: ignore[arg-type]  # compiled graphs are static

    def _arena(self, nbytes: int) -> tuple[Any, Any]:
        """An array of bytes that contains ``nbytes`` aligned bytes, and their address."""
        builder = self.builder
        array, pointer = self._new_array(_BYTES, (nbytes + ALIGNMENT,))
        address = builder.add(builder.ptrtoint(pointer, _WORD), ir.Constant(_WORD, ALIGNMENT - 1))
        aligned = builder.and_(address, ir.Constant(_WORD, -ALIGNMENT))
        return array, builder.inttoptr(aligned, _POINTER)

    def _new_array(self, type: types.Array, shape: Sequence[int]) -> tuple[Any, Any]:
        builder, context = self.builder, self.context
        dtype = numba.np.numpy_support.as_dtype(type.dtype)

        def empty(shape):  # type: ignore[no-untyped-def]  # Numba infers it
            return np.empty(shape, dtype)

        sizes = types.UniTuple(types.intp, len(shape))
        packed = context.make_tuple(builder, sizes, [context.get_constant(types.intp, n) for n in shape])
        array = context.compile_internal(builder, empty, type(sizes), [packed])
        data = context.make_array(type)(context, builder, array).data
        return array, builder.bitcast(data, _POINTER)

    def _result(self, type: types.Type, output: Any, pointer: Any) -> Any:
        if isinstance(type, types.Array):
            return output
        stored = self.builder.load(output)
        return self.context.data_model_manager[type].from_data(self.builder, stored)

    def _raise(self, status: Any, outputs: Sequence[Any]) -> None:
        """Emit the error of a failed check, whose number is the status; frees the outputs first."""
        executable, builder = self.bridge.executable, self.builder
        with builder.if_then(builder.icmp_signed("!=", status, ir.Constant(_WORD, 0)), likely=False):
            for type, (array, _) in zip(self.bridge.results, outputs, strict=True):
                if isinstance(type, types.Array):
                    self.context.nrt.decref(builder, type, array)
            for number in range(1, len(executable.program.messages) + 1):
                failed = builder.icmp_signed("==", status, ir.Constant(_WORD, number))
                with builder.if_then(failed):
                    self._raise_now(executable.failure(number))
            # The only other status: a signal handler raised, and Python's error is set.
            self.context.call_conv.return_exc(self.builder)

    def _raise_now(self, error: BaseException) -> None:
        self.context.call_conv.return_user_exc(self.builder, type(error), error.args)


_BYTES = types.Array(types.uint8, 1, "C")
_ACCEPTED_NUMBERS: Final = {
    types.Boolean: (types.Boolean,),
    types.Integer: (types.Boolean, types.Integer),
    types.Float: (types.Boolean, types.Integer, types.Float),
    types.Complex: (types.Boolean, types.Integer, types.Float, types.Complex),
}
"""The types of numbers that an argument of a type accepts: those that Numba can convert to it."""


def _require_native(executable: Executable) -> None:
    graph = executable.graph
    if switches.checked_side():
        raise InvalidArgumentError(
            f"Numba can't call {graph.name!r} while {switches.CHECK_MEMORY} is set: its code allocates "
            "memory. Unset the variable."
        )
    hosts = [part for part in executable.parts if part.kind is not PartKind.NATIVE]
    if hosts:
        reasons = ", ".join(f"{part.what} ({part.reason})" for part in hosts)
        raise InvalidArgumentError(
            f"Numba can't call {graph.name!r}, which is not all native code: it needs {reasons}. "
            "Leave these to the Python around it."
        )
    if executable.plan.has_dynamic_sizes or executable.plan.argument_sizes:
        raise InvalidArgumentError(
            f"Numba can't call {graph.name!r}, in which sizes depend on data: the caller allocates the "
            "results. Move operations with dynamic sizes out of the function, or give them static sizes."
        )
    if any(call.kind is CallKind.CHECK for call in executable.plan.walk()):
        raise InvalidArgumentError(
            f"Numba can't call {graph.name!r}, which raises exceptions that Python creates. Return a flag, "
            "and raise in the code around it."
        )
    if any(capture.variable for capture in graph.captures):
        raise InvalidArgumentError(
            f"Numba can't call {graph.name!r}, which reads or assigns variables. Pass their values as "
            "arguments and return what is to be assigned."
        )


def _numba_type(spec: TensorSpec) -> types.Type:
    """The Numba type of an array of ``spec``; a number's type for rank 0."""
    try:
        element = numba.from_dtype(spec.dtype.dtype)
    except NumbaError:
        raise DTypeError(
            f"Numba has no {spec.dtype.name}; cast it with df.cast inside the function."
        ) from None
    return types.Array(element, spec.rank, "C") if spec.rank else element


def _fits(type: types.Type, spec: TensorSpec) -> bool:
    """Whether a value of ``type`` can be an argument of ``spec``, regardless of its sizes."""
    target = numba.from_dtype(spec.dtype.dtype)
    if isinstance(type, types.Array):
        return (
            (type.dtype, type.ndim) == (target, spec.rank)
            and (type.layout == "C" or not type.ndim)
            and type.aligned
        )
    if spec.rank:
        return False
    return any(
        isinstance(target, kind) and isinstance(type, accepted)
        for kind, accepted in _ACCEPTED_NUMBERS.items()
    )

"""The C fast call: compiled graphs as built-in functions whose C side is machine code of this backend.

``entry.ll`` reads the arrays from the arguments, allocates the outputs and calls the kernel, without the
interpreter. It depends on the memory layout of CPython's and NumPy's objects. ``probe`` verifies the layout
on real objects of this process, and returns None if anything differs: graphs are then called through ctypes.
"""

from __future__ import annotations

import ctypes
import functools
import math
import platform
import struct
import sys
import types
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dualflow.backends.llvm.runtime import block_allocator, entry_code, jit, numpy_api
from dualflow.backends.llvm.runtime.call_memory import CallMemory, GrowingCallMemory
from dualflow.backends.runtime import switches
from dualflow.core.errors import InternalError
from dualflow.core.records import dataclass


@dataclass(frozen=True, slots=True)
class InterpreterLayout:
    """The offsets and addresses that differ between versions and processes, which ``entry.ll`` reads.

    Attributes:
        tensor_class: the type of tensors.
        array_slot: the offset of a tensor's array.
        tuple_items: the offset of a tuple's first item; CPython 3.14 stores a hash before it.
        empty: the address of PyArray_Empty.
    """

    tensor_class: type
    array_slot: int
    tuple_items: int
    empty: int


@dataclass(frozen=True, slots=True)
class ArraySpec:
    """The array of an input, a variable or an output: C-contiguous, of exactly this dtype and shape.

    A negative size ``-1 - index`` is symbolic: the size of an input is stored in parameter ``index`` of the
    call; the size of an output is read from it.
    """

    dtype: np.dtype[Any]
    shape: tuple[int, ...]

    @property
    def is_static(self) -> bool:
        return min(self.shape, default=0) >= 0


@dataclass(frozen=True, slots=True)
class VariableSlots:
    """The byte offsets of a variable's slots: its tensor, and its tensor while a heavy kernel updates it.

    Then the slot ``tensor`` is empty, and ``borrower`` has the identifier of the thread that runs the kernel.
    """

    tensor: int
    substitute: int
    borrower: int


@dataclass(frozen=True, slots=True)
class VariableUse:
    """A variable that the kernel reads, or also updates in place (``updated``).

    ``holder`` is the object with the slots ``Descriptor.slots``. If an updated variable doesn't own its
    buffer, or has not the only reference to it, the fallback is called.
    """

    holder: object
    spec: ArraySpec
    updated: bool = False


@dataclass(frozen=True, slots=True)
class Fixed:
    """An argument that must be the object ``value``: a Python value that is compiled into the graph."""

    value: object


@dataclass(frozen=True, slots=True)
class Descriptor:
    """One compiled graph, as the entry code reads it.

    Attributes:
        name: the name of the built-in function.
        kernel: the address of ``void (ptr buffers, ptr params, ptr status)``. ``buffers`` are
            those of inputs, variables, constants, outputs and the arena, in this order. ``params`` are 64-bit
            integers; ``status`` is an i64 that is 0 on entry.
        inputs, outputs: the arrays of inputs and outputs.
        variables: the variables that the kernel reads or updates.
        constants: the arrays of constants.
        params: the parameters; an array of them is not copied.
        arena: the memory of intermediates, aligned to 64 bytes.
        heavy: whether the GIL is released while the kernel runs.
        result: "none", "tensor" (one output), "tuple", or "packed" for ``pack(tuple of tensors)``.
        on_error: ``on_error(number, params, *args)`` is called if the kernel stores a ``number`` other than 0
            in the status, after the outputs are freed; it must raise. ``params`` is the address of the call's
            parameter table, which is valid until it returns. A negative number means that Python's error is
            set: then it may return, and that error is raised.
        pack: builds the result of a "packed" call.
        slots: the offsets of the slots of variables.
        keep: objects to keep alive, such as the kernel's Library.
        arguments: the number of the input of each argument, each once; None for the inputs in order.
        sizes: with symbolic sizes, the address of ``void (ptr params, ptr status)``, which computes the other
            parameters from the sizes of inputs, in a table for each call; a status other than 0 is an error.
        arena_place: with symbolic sizes, the index of the parameter that is the size of the arena in bytes.
    """

    name: str
    kernel: int
    inputs: Sequence[ArraySpec]
    variables: Sequence[VariableUse]
    constants: Sequence[np.ndarray[Any, Any]]
    outputs: Sequence[ArraySpec]
    params: Sequence[int] | np.ndarray[Any, Any]
    arena: CallMemory | GrowingCallMemory
    heavy: bool
    result: str
    on_error: Callable[..., object]
    pack: Callable[[tuple[Any, ...]], object] | None = None
    slots: VariableSlots | None = None
    keep: tuple[object, ...] = ()
    arguments: Sequence[int | Fixed] | None = None
    sizes: int = 0
    arena_place: int = 0


@functools.cache
def probe(tensor_class: type) -> InterpreterLayout | None:
    """The layout of this process for tensors of ``tensor_class``; None if the C fast call is unavailable.

    ``tensor_class`` stores its ndarray in a slot named ``_array``.

    >>> class Tensor:
    ...     __slots__ = ("_array",)
    >>> layout = probe(Tensor)
    >>> layout is None or layout.array_slot
    16
    """
    slot = slot_offset(tensor_class, "_array")
    if slot is None or unavailable_reason(tensor_class):
        return None
    return InterpreterLayout(tensor_class, slot, tuple.__basicsize__, _array_empty())


@functools.cache
def unavailable_reason(tensor_class: type) -> str:
    """The reason that the C fast call is unavailable in this process; the empty string if it is available.

    >>> class Plain:
    ...     pass
    >>> bool(unavailable_reason(Plain))
    True
    """
    switched_off = switches.off("c_fast_call")
    if switched_off:
        return switched_off
    slot = slot_offset(tensor_class, "_array")
    if slot is None:
        return "tensors don't store their array in a slot"
    if not _is_plain_cpython():
        return "it requires 64-bit CPython with the GIL"
    if not _objects_are_as_assumed():
        return f"Python {platform.python_version()} has an unsupported layout of objects"
    if not _references_are_counted(tensor_class, slot):
        return f"Python {platform.python_version()} has an unsupported reference count"
    if not _arrays_are_as_assumed() or not _array_empty():
        return f"NumPy {np.__version__} has an unsupported layout of arrays"
    return ""


def slot_offset(owner: type, name: str) -> int | None:
    """The byte offset of a slot in the instances of a class; None if there is no such slot.

    >>> class Pair:
    ...     __slots__ = ("left", "right")
    >>> slot_offset(Pair, "right") - slot_offset(Pair, "left")
    8
    """
    member = getattr(owner, name, None)
    if not isinstance(member, types.MemberDescriptorType):
        return None
    instance: Any = object.__new__(owner)
    sentinel = object()
    member.__set__(instance, sentinel)
    words = (ctypes.c_size_t * (owner.__basicsize__ // 8)).from_address(id(instance))
    offsets = [8 * i for i in range(2, len(words)) if words[i] == id(sentinel)]
    return offsets[0] if len(offsets) == 1 else None


def variable_slots(owner: type) -> VariableSlots | None:
    """The offsets of the slots ``_tensor``, ``_substitute`` and ``_borrower``; None if a class lacks them."""
    offsets = [slot_offset(owner, name) for name in ("_tensor", "_substitute", "_borrower")]
    return None if None in offsets else VariableSlots(*[number or 0 for number in offsets])


def builtin(
    layout: InterpreterLayout, descriptor: Descriptor, fallback: Callable[..., Any]
) -> Callable[..., Any]:
    """A built-in function that runs the graph on tensors of exactly the expected dtypes and shapes.

    Other arguments are passed to ``fallback``. It takes positional arguments only, and keeps everything that
    it uses alive.
    """
    record, parts = _encode(layout, descriptor, fallback)
    name = descriptor.name.encode()
    library = entry_library(layout)
    method = struct.pack("<QQQQ", _bytes_address(name), library.address("df_entry"), _METH_FASTCALL, 0)
    owner = (record, method, name, library, fallback, descriptor, layout, parts)
    function: Callable[..., Any] = _new_method(_bytes_address(method), owner, None, None)
    return function


def entry_library(layout: InterpreterLayout) -> jit.Library:
    """The machine code of all these functions, compiled or loaded from the disk by the first call.

    >>> class Tensor:
    ...     __slots__ = ("_array",)
    >>> layout = probe(Tensor)
    >>> layout is None or "df_entry" in entry_library(layout).exports
    True
    """
    return entry_code.library(layout.tuple_items, layout.empty)


_METH_FASTCALL = 0x80
_C_CONTIGUOUS, _OWNS_DATA, _ALIGNED, _WRITEABLE = 0x1, 0x4, 0x100, 0x400  # NumPy's flags
_NO_ARRAY = ArraySpec(np.dtype(np.bool_), ())
_RESULT_KINDS = {"none": 0, "tensor": 1, "tuple": 2, "packed": 3}
_new_method = ctypes.PYFUNCTYPE(
    ctypes.py_object, ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p, ctypes.c_void_p
)(("PyCMethod_New", ctypes.pythonapi))


def _encode(
    layout: InterpreterLayout, descriptor: Descriptor, fallback: object
) -> tuple[bytes, tuple[object, ...]]:
    """The bytes of a ``%descriptor`` of ``entry.ll``, and the objects that own the memory it points to."""
    params = np.ascontiguousarray(descriptor.params, np.int64)
    constants = _int64_bytes([array.ctypes.data for array in descriptor.constants])
    order = range(len(descriptor.inputs)) if descriptor.arguments is None else descriptor.arguments
    arguments = _operands([_argument_operand(x, descriptor.inputs) for x in order])
    variables = _operands([_variable_operand(use) for use in descriptor.variables])
    outputs = _operands([_output_operand(spec) for spec in descriptor.outputs])
    if descriptor.result == "tensor" and len(descriptor.outputs) != 1:
        raise InternalError(f"{descriptor.name} has {len(descriptor.outputs)} outputs: it can't return one")
    slots = descriptor.slots or VariableSlots(0, 0, 0)
    if descriptor.variables and descriptor.slots is None:
        raise InternalError(f"{descriptor.name} has variables, but no offsets of their slots")
    record = struct.pack(
        "<26Q",
        descriptor.kernel,
        params.ctypes.data,
        id(layout.tensor_class),
        layout.array_slot,
        slots.tensor,
        len(order),
        _bytes_address(arguments[0]),
        len(descriptor.variables),
        _bytes_address(variables[0]),
        len(descriptor.constants),
        _bytes_address(constants),
        len(descriptor.outputs),
        _bytes_address(outputs[0]),
        descriptor.arena.nbytes,
        descriptor.arena.cell,
        descriptor.heavy,
        _RESULT_KINDS[descriptor.result],
        id(fallback),
        id(descriptor.on_error),
        id(descriptor.pack),
        len(descriptor.inputs),
        slots.substitute,
        slots.borrower,
        descriptor.sizes,
        len(params),
        descriptor.arena_place,
    )
    return record, (params, constants, arguments, variables, outputs)


def _argument_operand(argument: int | Fixed, inputs: Sequence[ArraySpec]) -> tuple[int, ArraySpec, int, int]:
    if isinstance(argument, Fixed):
        return id(argument.value), _NO_ARRAY, 0, 0
    return 0, inputs[argument], _C_CONTIGUOUS | _ALIGNED, argument


def _variable_operand(use: VariableUse) -> tuple[int, ArraySpec, int, int]:
    flags = _C_CONTIGUOUS | _ALIGNED
    if use.updated:
        flags |= _OWNS_DATA | _WRITEABLE
    return id(use.holder), use.spec, flags, int(use.updated)


def _output_operand(spec: ArraySpec) -> tuple[int, ArraySpec, int, int]:
    if not spec.is_static:  # the entry code compares the bytes of each call
        return block_allocator.allocator(), spec, _C_CONTIGUOUS | _ALIGNED, spec.dtype.itemsize
    large = math.prod(spec.shape) * spec.dtype.itemsize >= block_allocator.LARGE
    return block_allocator.allocator() if large else 0, spec, _C_CONTIGUOUS | _ALIGNED, 0


def _operands(rows: Sequence[tuple[int, ArraySpec, int, int]]) -> tuple[bytes, tuple[bytes, ...]]:
    """The bytes of an array of ``%operand`` structs, and the shape arrays to which they point."""
    pack = struct.Struct("<QQQiiQ").pack
    dims = tuple(_int64_bytes(spec.shape) for _, spec, _, _ in rows)
    table = b"".join(
        pack(holder, id(spec.dtype), _bytes_address(sizes), len(spec.shape), flags, exclusive)
        for (holder, spec, flags, exclusive), sizes in zip(rows, dims, strict=True)
    )
    return table, dims


def _int64_bytes(values: Sequence[int]) -> bytes:
    return struct.pack(f"<{len(values)}q", *values)


def _bytes_address(content: bytes) -> int:
    """The address of the content of a bytes object, valid as long as the object lives."""
    return id(content) + bytes.__basicsize__ - 1


def _is_plain_cpython() -> bool:
    """Whether this is CPython with the GIL, 64-bit, little-endian, without reference tracing."""
    return (
        sys.implementation.name == "cpython"
        and sys.maxsize == (1 << 63) - 1
        and sys.byteorder == "little"
        and getattr(sys, "_is_gil_enabled", lambda: True)()
        and (object.__basicsize__, bytes.__basicsize__) == (16, 33)
    )


def _objects_are_as_assumed() -> bool:
    """Whether the layout of objects, tuples and bytes is as assumed."""
    probe: Any = object.__new__(type("Probe", (), {}))
    content = bytes([3, 141, 59])
    head = ctypes.c_uint32.from_address(id(probe))
    before = head.value
    pair = (probe, content)
    items = id(pair) + tuple.__basicsize__
    return (
        head.value == before + 1
        and _word(id(probe) + 8) == id(type(probe))
        and [_word(items), _word(items + 8)] == [id(probe), id(content)]
        and ctypes.string_at(_bytes_address(content), 3) == content
    )


def _references_are_counted(tensor_class: type, slot: int) -> bool:
    """Whether the count is 1 for an array that only the slot refers to, and each other reference adds 1."""
    tensor: Any = object.__new__(tensor_class)
    tensor._array = np.zeros(3)
    count = ctypes.c_uint32.from_address(_word(id(tensor) + slot))
    by_slot = count.value
    second = tensor._array
    by_two = count.value
    view = second[1:]
    del second
    by_a_view = count.value
    del view
    return (by_slot, by_two, by_a_view, count.value) == (1, 2, 2, 1)


def _arrays_are_as_assumed() -> bool:
    """Whether ndarray's fields have the assumed offsets, tested with arrays that differ in each field."""
    cube = np.zeros((3, 5, 7), np.float32)
    frozen = np.arange(4)
    frozen.flags.writeable = False
    samples = (cube, cube[1:, ::2], cube.T, np.zeros((), np.bool_), np.zeros((0, 2), np.complex128), frozen)
    return all(_header_matches(array) for array in samples)


def _header_matches(array: np.ndarray[Any, Any]) -> bool:
    at = id(array)
    flags = ctypes.c_int32.from_address(at + 64).value
    dims = (ctypes.c_int64 * array.ndim).from_address(_word(at + 32)) if array.ndim else ()
    return (
        _word(at + 8) == id(np.ndarray)
        and _word(at + 16) == array.ctypes.data
        and ctypes.c_int32.from_address(at + 24).value == array.ndim
        and tuple(dims) == array.shape
        and _word(at + 56) == id(array.dtype)
        and bool(flags & _C_CONTIGUOUS) == array.flags.c_contiguous
        and bool(flags & _OWNS_DATA) == array.flags.owndata
        and bool(flags & _ALIGNED) == array.flags.aligned
        and bool(flags & _WRITEABLE) == array.flags.writeable
    )


def _array_empty() -> int:
    """The address of PyArray_Empty; 0 if NumPy's C API has another version."""
    return numpy_api.table().get("PyArray_Empty", 0)


def _word(address: int) -> int:
    return ctypes.c_size_t.from_address(address).value

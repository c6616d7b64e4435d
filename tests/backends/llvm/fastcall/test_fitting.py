"""Arguments that pass the fast call's checks run the kernel; all others go unchanged to the fallback."""

from __future__ import annotations

import ctypes
import gc
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from dualflow.backends.llvm.runtime.fastcall import ArraySpec, Fixed
from dualflow.core.errors import InternalError

# A call that fits.


def test_the_kernel_computes_a_tensor(fast: Any, heavy: bool) -> None:
    result = fast.function("plus_one", heavy=heavy)(fast.tensor())
    assert type(result) is fast.Tensor
    assert result._array.dtype == np.float64
    assert (result._array == fast.vector(1)).all()


def test_each_call_has_a_fresh_output(fast: Any) -> None:
    call = fast.function("plus_one")
    first, second = call(fast.tensor()), call(fast.tensor(10))
    assert (first._array == fast.vector(1)).all()
    assert first._array.flags.owndata
    assert first._array.flags.writeable
    assert not np.shares_memory(first._array, second._array)


def test_constants_and_several_outputs(fast: Any) -> None:
    outputs = [fast.vector_spec] * 2
    call = fast.function("multiply", constants=[fast.vector(3)], outputs=outputs, result="tuple")
    product, difference = call(fast.tensor())
    assert (product._array == fast.vector() * fast.vector(3)).all()
    assert (difference._array == -3).all()


def test_a_structured_result_is_packed(fast: Any) -> None:
    call = fast.function(
        "multiply",
        constants=[fast.vector(3)],
        outputs=[fast.vector_spec] * 2,
        result="packed",
        pack=lambda tensors: {"product": tensors[0], "difference": tensors[1]},
    )
    result = call(fast.tensor())
    assert (result["product"]._array == fast.vector() * fast.vector(3)).all()
    assert (result["difference"]._array == -3).all()


def test_no_output_is_none(fast: Any) -> None:
    assert fast.function("nothing", outputs=[], result="none")(fast.tensor()) is None


def test_no_input_is_no_argument(fast: Any) -> None:
    call = fast.function("nothing", inputs=[])
    assert call()._array.shape == (fast.n,)
    assert call(fast.tensor())[0] == "fallback"


@pytest.mark.parametrize(
    ("dtype", "shape"), [("f4", ()), ("i1", (0,)), ("c16", (2, 3)), ("?", (1, 2, 3, 4)), ("u8", (3, 0, 2))]
)
def test_outputs_have_the_stated_dtype_and_shape(fast: Any, dtype: str, shape: tuple[int, ...]) -> None:
    spec = ArraySpec(np.dtype(dtype), shape)
    call = fast.function("nothing", inputs=[spec], outputs=[fast.vector_spec, spec], result="tuple")
    _, result = call(fast.Tensor(np.zeros(shape, dtype)))
    assert (result._array.dtype, result._array.shape) == (np.dtype(dtype), shape)


def test_read_only_inputs_are_welcome(fast: Any) -> None:
    frozen = fast.vector()
    frozen.flags.writeable = False
    assert (fast.function("plus_one")(fast.Tensor(frozen))._array == frozen + 1).all()


@pytest.mark.parametrize("arena_bytes", [56, 4096, 16384, 16385, 1 << 20])
def test_the_arena_is_aligned_and_large_enough(fast: Any, heavy: bool, arena_bytes: int) -> None:
    call = fast.function("through_arena", params=[fast.n, arena_bytes], arena_bytes=arena_bytes, heavy=heavy)
    for _ in range(3):
        assert (call(fast.tensor(5))._array == fast.vector(5)).all()


# Calls that don't fit.


class Subarray(np.ndarray[Any, Any]):
    """Not exactly an ndarray."""


def subclassed(fast: Any) -> object:
    class Subtensor(fast.Tensor):  # type: ignore[misc]  # the class comes from a fixture
        __slots__ = ()

    return Subtensor(fast.vector())


def without_array(fast: Any) -> object:
    tensor = fast.tensor()
    del tensor._array
    return tensor


MISFITS: dict[str, Callable[[Any], Sequence[object]]] = {
    "nothing": lambda fast: (),
    "too many": lambda fast: (fast.tensor(), fast.tensor()),
    "a number": lambda fast: (1.5,),
    "None": lambda fast: (None,),
    "an array": lambda fast: (fast.vector(),),
    "a variable": lambda fast: (fast.variable(),),
    "a subclass": lambda fast: (subclassed(fast),),
    "no array": lambda fast: (without_array(fast),),
    "an array subclass": lambda fast: (fast.Tensor(fast.vector().view(Subarray)),),
    "a list for an array": lambda fast: (fast.Tensor([1.0] * 7),),
    "another float": lambda fast: (fast.Tensor(fast.vector().astype(np.float32)),),
    "integers as wide": lambda fast: (fast.Tensor(fast.vector().astype(np.int64)),),
    "another byte order": lambda fast: (fast.Tensor(fast.vector().astype(">f8")),),
    "shorter": lambda fast: (fast.Tensor(np.zeros(6)),),
    "longer": lambda fast: (fast.Tensor(np.zeros(8)),),
    "another rank": lambda fast: (fast.Tensor(np.zeros((7, 1))),),
    "a scalar": lambda fast: (fast.Tensor(np.zeros(())),),
    "strided": lambda fast: (fast.Tensor(np.zeros(14)[::2]),),
    "backwards": lambda fast: (fast.Tensor(fast.vector()[::-1]),),
    "broadcast": lambda fast: (fast.Tensor(np.broadcast_to(1.0, (7,))),),
    "misaligned": lambda fast: (fast.Tensor(np.frombuffer(bytes(57), np.uint8)[1:].view(np.float64)),),
}


@pytest.mark.parametrize("misfit", MISFITS.values(), ids=MISFITS)
def test_anything_else_goes_to_the_fallback_unchanged(
    fast: Any, misfit: Callable[[Any], Sequence[object]]
) -> None:
    args = misfit(fast)
    name, received = fast.function("plus_one")(*args)
    assert name == "fallback"
    assert len(received) == len(args)
    assert all(got is arg for got, arg in zip(received, args, strict=True))


def test_each_dimension_counts(fast: Any) -> None:
    call = fast.function("nothing", inputs=[ArraySpec(np.dtype(np.float64), (2, 3, 4))])
    assert type(call(fast.Tensor(np.zeros((2, 3, 4))))) is fast.Tensor
    for shape in [(3, 2, 4), (2, 4, 3), (4, 3, 2), (6, 4), (2, 3, 4, 1), (24,)]:
        assert call(fast.Tensor(np.zeros(shape)))[0] == "fallback"


def test_each_argument_counts(fast: Any) -> None:
    call = fast.function("nothing", inputs=[fast.vector_spec] * 3)
    assert type(call(*[fast.tensor()] * 3)) is fast.Tensor
    for place in range(3):
        args = [fast.tensor() for _ in range(3)]
        args[place] = fast.Tensor(np.zeros(8))
        assert call(*args)[0] == "fallback"


def test_arguments_may_come_in_another_order(fast: Any) -> None:
    rows = [ArraySpec(np.dtype(np.float64), (n,)) for n in (2, 7, 3)]
    call = fast.function("nothing", inputs=rows, arguments=[2, 0, 1])
    two, seven, three = (fast.Tensor(np.zeros(n)) for n in (2, 7, 3))
    assert type(call(three, two, seven)) is fast.Tensor
    assert call(two, seven, three)[0] == "fallback"


def test_the_order_is_that_of_the_kernels_buffers(fast: Any) -> None:
    both = [fast.vector_spec] * 2
    call = fast.function("multiply", inputs=both, outputs=both, result="tuple", arguments=[1, 0])
    _, difference = call(fast.tensor(3.0), fast.tensor(5.0))
    assert difference._array.tolist() == [2.0] * fast.n


def test_a_fixed_argument_is_that_object_and_no_input(fast: Any) -> None:
    call = fast.function("plus_one", arguments=[Fixed(True), 0, Fixed(None)])
    x = fast.tensor()
    assert call(True, x, None)._array.tolist() == fast.vector(1.0).tolist()
    for others in [(1, x, None), (True, x, False), (True, x), (True, x, None, x), (x, True, None)]:
        assert call(*others) == ("fallback", others)


def test_a_fixed_argument_lives_as_long_as_the_function(fast: Any) -> None:
    class Thing:
        pass

    thing = Thing()
    gone = weakref.ref(thing)
    call = fast.function("plus_one", arguments=[0, Fixed(thing)])
    assert type(call(fast.tensor(), thing)) is fast.Tensor
    del thing
    assert gone() is not None
    del call
    gc.collect()
    assert gone() is None


def test_an_error_of_the_fallback_is_the_callers(fast: Any) -> None:
    def refuse(*_: object) -> None:
        raise TypeError("not like this")

    with pytest.raises(TypeError, match="not like this"):
        fast.function("plus_one", refuse)(3)


def test_keywords_are_refused(fast: Any) -> None:
    with pytest.raises(TypeError, match=r"plus_one\(\) takes no keyword arguments"):
        fast.function("plus_one")(x=fast.tensor())


# Errors.


def test_a_status_is_handed_to_on_error_with_the_arguments(fast: Any, heavy: bool) -> None:
    call = fast.function("fail", params=[fast.n, 17], heavy=heavy)
    x = fast.tensor()
    with pytest.raises(fast.KernelFailed) as caught:
        call(x)
    assert caught.value.args == (17, x)


def test_on_error_reads_the_parameters_of_the_call(fast: Any) -> None:
    def table(status: int, params: int, x: object) -> list[int]:
        return list((ctypes.c_int64 * 3).from_address(params))

    assert fast.function("fail", params=[fast.n, 17, 4], on_error=table)(fast.tensor()) == [fast.n, 17, 4]


@pytest.mark.parametrize("shape", [(1 << 40, 1 << 10), (1 << 44,)])
def test_an_output_too_large_for_memory_goes_to_the_fallback(fast: Any, shape: tuple[int, ...]) -> None:
    huge = ArraySpec(np.dtype(np.float64), shape)
    call = fast.function("plus_one", outputs=[fast.vector_spec, huge], result="tuple")
    x = fast.tensor()
    assert call(x) == ("fallback", (x,))


def test_an_error_of_pack_is_the_callers(fast: Any) -> None:
    def refuse(_: object) -> object:
        raise KeyError("structure")

    with pytest.raises(KeyError, match="structure"):
        fast.function("plus_one", result="packed", pack=refuse)(fast.tensor())


def test_one_tensor_needs_one_output(fast: Any) -> None:
    with pytest.raises(InternalError, match="plus_one has 0 outputs"):
        fast.function("plus_one", outputs=[])

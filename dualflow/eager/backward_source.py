"""The steps of a backward program as a Python function with a line for each.

Python then neither looks up what a step is nor calls kernels with dictionaries of attributes, which takes a
quarter of the time of a small pass.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from typing import Any, Final

from dualflow.core.convert import Array, as_result
from dualflow.core.records import NamedTuple
from dualflow.core.tracebacks import PROGRAM
from dualflow.ops.record import Op

FIRST_LINE: Final = 4
"""The line of the first step."""

BackwardFunction = Callable[[list[Any]], tuple[Any, ...]]
"""A function of the list of the operands' arrays, which it empties; it returns the arrays of the results."""


class Returns(Enum):
    """What a kernel returns."""

    ARRAY = "{results} = {call}"
    SCALAR = "{results} = as_result({call})"
    SEVERAL = "{results}, = map(as_result, {call})"


class BackwardStep(NamedTuple):
    """One kernel of a program.

    Attributes:
        kernel: the kernel.
        attrs: its attributes.
        inputs: the slots of its operands.
        outputs: the slots of its results, which may be those of operands.
        released: the slots of arrays that no later step reads, but for those that its results replace.
        returns: what the kernel returns: an array, a NumPy scalar or array, or several of them.
        op: the op, for error messages; None if its engine writes them.
    """

    kernel: Callable[..., Any]
    attrs: dict[str, Any]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    released: tuple[int, ...]
    returns: Returns
    op: Op | None


def slot(number: int) -> str:
    """The variable of a slot."""
    return f"s{number}"


def function_of(
    steps: Sequence[BackwardStep], operands: int, constants: Sequence[Array], results: Sequence[int | None]
) -> BackwardFunction:
    """The function of the steps; step ``i`` is its line ``FIRST_LINE + i``.

    Args:
        steps: the kernels in order.
        operands: the number of operands, which are in the first slots.
        constants: the arrays of the next slots.
        results: the slot of each result; None for a source without a gradient.
    """
    names: dict[str, Any] = {"as_result": as_result}
    names |= {slot(operands + i): array for i, array in enumerate(constants)}
    lines = [_step(i, step, names) for i, step in enumerate(steps)]
    gradients = ["None" if number is None else slot(number) for number in results]
    text = [
        "def backward(arrays):",
        f"[{', '.join(map(slot, range(operands)))}] = arrays",
        "arrays.clear()",
        *lines,
        f"return ({''.join(f'{name}, ' for name in gradients)})",
    ]
    exec(compile("\n ".join(text), f"{PROGRAM} of a backward pass>", "exec"), names)
    function: BackwardFunction = names.pop("backward")
    return function


def _step(number: int, step: BackwardStep, names: dict[str, Any]) -> str:
    """The line of a step, whose kernel and attributes are added to the global names of the function."""
    kernel = f"k{number}"
    attrs = {f"{kernel}_{name}": (name, value) for name, value in step.attrs.items()}
    names[kernel] = step.kernel
    names |= {variable: value for variable, (_, value) in attrs.items()}
    arguments = [*map(slot, step.inputs), *[f"{name}={variable}" for variable, (name, _) in attrs.items()]]
    results = ", ".join(map(slot, step.outputs))
    line = step.returns.value.format(results=results, call=f"{kernel}({', '.join(arguments)})")
    return "; ".join([line, *[f"{slot(released)} = None" for released in step.released]])

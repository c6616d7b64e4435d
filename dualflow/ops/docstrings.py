"""Sections of docstrings that functions of one kind share: written once, added when a function is defined."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from types import FunctionType
from typing import Any, Final, TypeVar

from dualflow.ops.record import Promotion

F = TypeVar("F", bound=Callable[..., Any])
EXAMPLE: Final = ">>> import dualflow as df\n"


def documented(sections: str, **values: str) -> Callable[[F], F]:
    """A decorator that adds shared sections to a function's docstring, before its example.

    Args:
        sections: the text, not indented, with placeholders such as ``{takes}``.
        values: the text for each placeholder.

    >>> @documented("Args:\\n    x: {takes}.", takes="numbers")
    ... def double(x):
    ...     '''Twice ``x``.'''
    >>> print(double.__doc__)
    Twice ``x``.
    <BLANKLINE>
    Args:
        x: numbers.
    <BLANKLINE>
    """

    def add_sections(function: F) -> F:
        if isinstance(function, FunctionType) and function.__doc__:  # python -OO removes docstrings
            head, start, example = dedented(function.__doc__).partition(EXAMPLE)
            added = (sections.format(**values) if values else sections).strip()
            function.__doc__ = f"{head.rstrip()}\n\n{added}\n\n{start}{example}".rstrip() + "\n"
        return function

    return add_sections


def dedented(text: str) -> str:
    """A docstring without the indentation of its second paragraph, which compilers from 3.13 on remove."""
    following = text.partition("\n")[2].lstrip("\n")
    indentation = following[: len(following) - len(following.lstrip(" "))]
    return text.replace(f"\n{indentation}", "\n")


@cache
def elementwise_sections(
    takes: str, promotion: Promotion, returns: str | None, inputs: str, raises: str | None
) -> str:
    """Arguments, result and errors of an elementwise op, as its dtype rule decides them.

    Args:
        takes: the kinds of values that it takes, in words.
        promotion: how its inputs agree on a dtype.
        returns: the dtype of the result in words; None for that on which the inputs agree.
        inputs: the names of its inputs, separated by commas.
        raises: when it raises an InvalidArgumentError, other than for shapes.
    """
    first, *later = inputs.split(", ")
    arguments = "".join([f"    {other}: as ``{first}``; the shapes broadcast.\n" for other in later])
    dtype = returns or _common_dtype(promotion, first, bool(later))
    if later:
        arguments += f"    Dtypes: {promotion.value}.\n"
        reasons = f"shapes that do not broadcast; or {raises}" if raises else "shapes that do not broadcast"
    else:
        reasons = raises or ""
    shape = "to which the inputs broadcast" if later else f"of ``{first}``"
    unequal = ", or the inputs have no common dtype" if later else ""
    refused = f"    InvalidArgumentError: {reasons}.\n" if reasons else ""
    return f"""Args:
    {first}: {takes}, of any shape: a tensor, an array, a Python value or a list of them.
{arguments}
Returns:
    A tensor with the shape {shape} and {dtype}.

Raises:
    DTypeError: an input doesn't hold {takes}{unequal}.
{refused}"""


def _common_dtype(promotion: Promotion, first: str, several: bool) -> str:
    """The dtype on which the inputs agree, in words."""
    common = "the common dtype of the inputs" if several else f"the dtype of ``{first}``"
    if promotion is Promotion.FLOAT:
        return f"{common}; float32 for integers and bools"
    if promotion is Promotion.DIVIDE:
        return f"{common}; float64 for integers, float32 for those of up to 16 bits and bools"
    return common


REDUCTION: Final = """Args:
    {input}: {takes}, of any shape.
    axis: the axes to reduce: an integer or a list; negative ones count from the end. None for all axes.
    keepdims: whether the reduced axes stay, with size 1.

Returns:
    A tensor with the shape of ``{input}`` without the reduced axes, and {returns}.

Raises:
    DTypeError: ``{input}`` doesn't hold {takes}, or ``axis`` is not of integers.
    InvalidArgumentError: an axis is out of range or occurs twice.
"""
SCAN: Final = """Args:
    x: {takes}, of one axis or more.
    axis: the axis along which to accumulate; a negative one counts from the end.
    exclusive: whether each result leaves out its own element: the first one is {neutral}.
    reverse: whether to accumulate from the end of the axis.

Returns:
    A tensor with the shape of ``x`` and {returns}.

Raises:
    DTypeError: ``x`` doesn't hold {takes}.
    InvalidArgumentError: ``axis`` is out of range{or_gradient}.
"""

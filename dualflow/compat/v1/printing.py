"""``v1.Print``: an identity that prints when it is computed."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from dualflow.core.tracebacks import entry
from dualflow.graph_mode import control_dependencies
from dualflow.ops.conversion import identity
from dualflow.ops.creation import convert_to_tensor
from dualflow.ops.printing import print as print_values

if TYPE_CHECKING:
    from dualflow.core.argument_types import TensorLike
    from dualflow.ops.tensor import Tensor


@entry
def Print(
    input_: TensorLike,
    data: Sequence[TensorLike],
    message: str | None = None,
    first_n: int | None = None,
    summarize: int | None = 3,
    name: str | None = None,
) -> Tensor:
    """``input_``; whenever it is computed, ``data`` is printed to stderr, as by :func:`dualflow.print`.

    Args:
        input_: a tensor.
        data: tensors to print.
        message: the beginning of the line.
        first_n: how many times to print; by default always.
        summarize: the number of elements to print at each end of an axis.
        name: of the result, in a graph.

    >>> from dualflow.compat import v1
    >>> with v1.Graph().as_default(), v1.Session() as session:
    ...     x = v1.Print(v1.constant(2.0), [v1.constant([1, 2])], "values: ")
    ...     print(session.run(x * 2.0))
    4.0
    """
    x = convert_to_tensor(input_)
    values = [part for value in data for part in ("[", value, "]")]
    stream = None if first_n is None or first_n < 0 else _first_calls(first_n)
    printed = print_values(message or "", *values, output_stream=stream, summarize=summarize, sep="")
    with control_dependencies([printed]):
        return identity(x)


def _first_calls(count: int) -> Callable[[str], Any]:
    """A stream to stderr that writes the first ``count`` texts."""
    calls = itertools.count()

    def write(text: str) -> None:
        if next(calls) < count:
            sys.stderr.write(text)

    return write

"""Printing at run time: a compiled function prints on each call, in the order of its effects."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dualflow.core import dispatch
from dualflow.core.convert import Array
from dualflow.core.dispatch import TENSORS
from dualflow.core.errors import DTypeError
from dualflow.core.spec import TensorSpec
from dualflow.ops.op_kinds import Opaque
from dualflow.ops.record import Effect, Op, register

if TYPE_CHECKING:
    pass

_FILE: Final = "file://"
_STREAMS: Final = ("stdout", "stderr")
_EDGE: Final = 3


def _print(
    *arrays: Array, texts: tuple[str, ...], stream: Any, edge: int, bare: tuple[int, ...] = ()
) -> tuple[()]:
    shown = [
        as_text(a.item()) if i in bare and not a.ndim else _printable(a, edge) for i, a in enumerate(arrays)
    ]
    _write(stream, texts[0] + "".join(s + t for s, t in zip(shown, texts[1:], strict=True)))
    return ()


def _no_specs(*specs: TensorSpec, **attrs: Any) -> tuple[TensorSpec, ...]:
    return ()


PRINT: Final = register(
    Op(
        name="print",
        doc="Writes the inputs between ``texts``, of which there is one more; strings at ``bare`` unquoted.",
        infer=_no_specs,
        kernel=_print,
        kind=Opaque("text is written by Python"),
        outputs=None,
        effect=Effect.PRINT,
    )
)


def print(
    *inputs: Any,
    output_stream: object = None,
    summarize: int | None = _EDGE,
    sep: str = " ",
    end: str = "\n",
    name: str | None = None,
) -> Any:
    """Print tensors and other objects at run time: in a traced function at every call.

    Args:
        *inputs: strings, tensors, variables, other objects, and lists, tuples and dicts of them.
        output_stream: an open text file, a function that takes the text (such as ``logging.info``), or
            ``"file://"`` and the path of a file to append to; None for ``sys.stderr``.
        summarize: the number of elements to print at each end of an axis; -1 for all.
        sep: the text between the inputs.
        end: the text after the last one.

    Returns:
        None; in an explicit graph the operation that prints.

    Raises:
        DTypeError: ``output_stream`` is something else.

    >>> import dualflow as df
    >>> df.print("sum is", df.reduce_sum([1.0, 2.0]), {"x": df.range(9)}, output_stream=sys.stdout)
    sum is 3 {'x': [0 1 2 ... 6 7 8]}
    """
    tensors: list[Any] = []
    texts = [""]
    bare: list[int] = []
    for i, x in enumerate(inputs):
        texts[-1] += sep if i else ""
        if isinstance(x, TENSORS) and x.dtype.is_string:
            bare.append(len(tensors))
        if isinstance(x, str):
            texts[-1] += x
        else:
            _template(x, texts, tensors)
    texts[-1] += end
    edge = _EDGE if summarize is None else int(summarize)
    attrs = {"texts": tuple(texts), "stream": _stream(output_stream), "edge": edge}
    if bare:
        attrs["bare"] = tuple(bare)
    return dispatch.current().apply(PRINT, tuple(tensors), attrs) or None


def _template(x: Any, texts: list[str], tensors: list[Any]) -> None:
    """Append ``x`` to the last text; a tensor is appended to ``tensors`` and starts another text."""
    if isinstance(x, TENSORS):
        tensors.append(x)
        texts.append("")
    elif isinstance(x, Mapping):
        _members([(f"{k!r}: ", v) for k, v in x.items()], "{", "}", texts, tensors)
    elif type(x) is list:
        _members([("", v) for v in x], "[", "]", texts, tensors)
    elif isinstance(x, tuple):
        fields = getattr(x, "_fields", None)
        opening = f"{type(x).__name__}(" if fields else "("
        closing = ",)" if len(x) == 1 and not fields else ")"
        labels = [f"{f}=" for f in fields] if fields else [""] * len(x)
        _members(list(zip(labels, x, strict=True)), opening, closing, texts, tensors)
    else:
        texts[-1] += repr(x)


def _members(
    members: list[tuple[str, Any]], opening: str, closing: str, texts: list[str], tensors: list[Any]
) -> None:
    texts[-1] += opening
    for i, (label, value) in enumerate(members):
        texts[-1] += (", " if i else "") + label
        _template(value, texts, tensors)
    texts[-1] += closing


def _stream(stream: Any) -> Any:
    """The standard streams by name: which file they are is looked up at each print."""
    if stream is None or stream is sys.stderr:
        return "stderr"
    if stream is sys.stdout:
        return "stdout"
    if callable(stream) or hasattr(stream, "write") or (isinstance(stream, str) and stream.startswith(_FILE)):
        return stream
    raise DTypeError(
        f"output_stream is an open text file, a function of a text, or 'file://' and a path, not {stream!r}."
    )


def _write(stream: Any, text: str) -> None:
    if isinstance(stream, str) and stream.startswith(_FILE):
        with open(stream.removeprefix(_FILE), "a", encoding="utf-8") as file:
            file.write(text)
    elif callable(stream):
        stream(text)
    else:
        file = getattr(sys, stream) if stream in _STREAMS else stream
        file.write(text)
        file.flush()


def format_array(array: Array, edge: int = _EDGE) -> str:
    """``array`` as TensorFlow prints tensors; ``edge`` elements at each end of an axis, all if it is -1.

    >>> format_array(np.eye(2))
    '[[1 0]\\n [0 1]]'
    """
    return _axis(array, 0, edge, _ELEMENTS.get(array.dtype.kind, str))


def _axis(array: Array, axis: int, edge: int, element: Callable[[Any], str]) -> str:
    if array.ndim == 0:
        return element(array[()])
    size = len(array)
    deeper = array.ndim - 1
    gap = "\n" * deeper + " " * (axis + 1) if deeper else " "
    cut = edge >= 0 and size > 2 * edge
    shown = [*range(edge), *range(size - edge, size)] if cut else list(range(size))
    rows = [_axis(np.asarray(array[i]), axis + 1, edge, element) for i in shown]
    if cut:
        rows.insert(edge, "...")
    return f"[{gap.join(rows)}]"


def _float(x: Any) -> str:
    """A float as C prints it: with 6 digits if these identify it, else with 9; float64 with 15 or 17."""
    wide = x.dtype == np.float64
    short = f"{float(x):.{15 if wide else 6}g}"
    if not np.isfinite(x) or x.dtype.type(float(short)) == x:
        return short
    return f"{float(x):.{17 if wide else 9}g}"


def _complex(x: Any) -> str:
    return f"({_float(x.real)},{_float(x.imag)})"


def as_text(x: bytes) -> str:
    """A string as text; each byte that is not UTF-8 becomes U+FFFD."""
    return x.decode("utf-8", "replace")


def _printable(array: Array, edge: int) -> str:
    shown = format_array(array, edge)
    return as_text(shown.encode("utf-8", "surrogateescape")) if array.dtype.kind == "O" else shown


def _quoted(x: bytes) -> str:
    """A string in quotes with C's escapes; letters of all languages stay as they are.

    Bytes that aren't UTF-8 become surrogates, as in Python's file names.
    """
    text = x.decode("utf-8", "surrogateescape").translate(_ESCAPES)
    return f'"{text}"'


_NAMED_ESCAPES: Final = {"\n": "\\n", "\r": "\\r", "\t": "\\t", '"': '\\"', "'": "\\'", "\\": "\\\\"}
_ESCAPES: Final = str.maketrans({chr(i): f"\\{i:03o}" for i in (*range(32), 127)} | _NAMED_ESCAPES)
_ELEMENTS: Final[dict[str, Callable[[Any], str]]] = {
    "b": lambda x: str(int(x)),
    "f": _float,
    "c": _complex,
    "O": _quoted,
}

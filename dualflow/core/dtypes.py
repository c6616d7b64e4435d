"""The element types of tensors, and how two of them combine.

``DType`` is a thin, interned name for a NumPy dtype that prints and compares as TensorFlow's does.
"""

from __future__ import annotations

from typing import Any, Final, TypeAlias

import numpy as np

from dualflow.core.errors import DTypeError
from dualflow.core.locks import imported

DTypeLike: TypeAlias = "DType | str | type[Any] | np.dtype[Any]"
"""A dtype, its name, or the equivalent type of Python or NumPy."""


class DType:
    """An element type, such as ``dualflow.float32``.

    Equal to all values that :func:`as_dtype` converts to it: its name, its NumPy dtype, a Python type. NumPy
    accepts it as a dtype.

    Attributes:
        narrow: whether it is a float of the package ml_dtypes, which ops compute in float32.
        is_inexact: whether it is floating or complex: gradients flow through these dtypes.
        is_string: whether the elements are strings: Python's ``bytes`` in a NumPy array of objects.
        computes: whether floating functions compute in it as it is.
        size: bytes of one element; 0 for strings, of which each has its own length.

    >>> float32 == "float32", float32 == np.float32, float32.size
    (True, True, 4)
    >>> np.zeros(2, dtype=float32).dtype
    dtype('float32')
    """

    __slots__ = (
        "_hash",
        "char",
        "computes",
        "dtype",
        "is_bool",
        "is_complex",
        "is_floating",
        "is_inexact",
        "is_integer",
        "is_string",
        "is_unsigned",
        "kind",
        "name",
        "narrow",
        "size",
    )

    def __init__(self, numpy_dtype: np.dtype[Any] | type[Any] | str, name: str | None = None) -> None:
        dtype: np.dtype[Any] = np.dtype(numpy_dtype)
        self.dtype: Final = dtype
        self.name: Final[str] = name or dtype.name
        self.narrow: Final = dtype.name in _NARROW
        self.kind: Final[str] = "f" if self.narrow else dtype.kind
        self.char: Final[str] = dtype.char
        self.is_floating: Final = self.kind == "f"
        self.is_integer: Final = dtype.kind in "iu"
        self.is_unsigned: Final = dtype.kind == "u"
        self.is_complex: Final = dtype.kind == "c"
        self.is_string: Final = dtype.kind == "O"
        self.is_bool: Final = self.kind == "b"
        self.is_inexact: Final = self.kind in "fc"
        self.computes: Final = self.kind in "fc" and not self.narrow
        self.size: Final = 0 if self.is_string else int(dtype.itemsize)
        self._hash: Final = hash(dtype)

    @property
    def as_numpy_dtype(self) -> type[Any]:
        """The NumPy scalar type: ``np.float32`` for ``float32``; for strings it is ``object``."""
        return object if self.is_string else self.dtype.type

    @property
    def is_numpy_compatible(self) -> bool:
        """Whether NumPy's arrays can have it: True for each dtype here; TensorFlow has others."""
        return True

    @property
    def real(self) -> DType:
        """The dtype of a complex number's parts; a real dtype's own."""
        return _TYPES[np.dtype(f"f{self.size // 2}")] if self.is_complex else self

    @property
    def real_dtype(self) -> DType:
        """``real``, by TensorFlow's name."""
        return self.real

    def is_compatible_with(self, other: DTypeLike | int) -> bool:
        """Whether ``other`` names this dtype."""
        return as_dtype(other) is self

    @property
    def itemsize(self) -> int:
        """Bytes of one element, by NumPy's name."""
        return self.size

    @property
    def as_datatype_enum(self) -> int:
        """TensorFlow's number of the dtype: 1 for ``float32``."""
        return next(number for number, dtype in _NUMBERS.items() if dtype is self)

    @property
    def base_dtype(self) -> DType:
        """The dtype itself: TensorFlow has others for references."""
        return self

    @property
    def min(self) -> Any:
        """The smallest finite value; strings have none, which is a DTypeError."""
        return self._limits.min

    @property
    def max(self) -> Any:
        """The largest finite value; strings have none, which is a DTypeError."""
        return self._limits.max

    @property
    def _limits(self) -> Any:
        if self.is_string:
            raise DTypeError("Strings have no smallest and no largest value; use a dtype of numbers.")
        return finfo(self) if self.is_inexact else np.iinfo(self.dtype)

    def __eq__(self, other: object) -> bool:
        return self is (other if isinstance(other, DType) else _find(other))

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        return f"tf.{self.name}"

    def __str__(self) -> str:
        return f"<dtype: '{self.name}'>"

    def __reduce__(self) -> tuple[Any, ...]:
        return as_dtype, (self.name,)


UNCOMMON: Final = 17
"""The smallest ``num`` of NumPy's dtypes that are no plain numbers: objects (strings, here), and dtypes
of packages. Of NumPy's own numbers only float16 is among them."""
_NARROW: Final = {"bfloat16": 14, "float8_e5m2": 24, "float8_e4m3fn": 25}
_LATE: Final = {**_NARROW, "string": 7}
"""Names and numbers of the dtypes that are registered at their first use."""
uncommon_in_use: Final[list[str]] = []
"""Names of the registered dtypes of ``_LATE``; while it is empty, checks for them are skipped."""
_TEXT: Final = "SUOT"
"""The kinds of NumPy's dtypes whose arrays hold strings, or may."""


def _numeric_types() -> dict[np.dtype[Any], DType]:
    names = (
        "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 complex64 complex128"
    )
    return {t.dtype: t for t in map(DType, names.split())}


_TYPES: Final = _numeric_types()
bool_ = _TYPES[np.dtype("bool")]
int8, int16, int32, int64 = (_TYPES[np.dtype(f"int{n}")] for n in (8, 16, 32, 64))
uint8, uint16, uint32, uint64 = (_TYPES[np.dtype(f"uint{n}")] for n in (8, 16, 32, 64))
float16, float32, float64 = (_TYPES[np.dtype(f"float{n}")] for n in (16, 32, 64))
complex64, complex128 = _TYPES[np.dtype("complex64")], _TYPES[np.dtype("complex128")]
ALL: Final = tuple(_TYPES.values())
of_array: Final = _TYPES.__getitem__
"""The dtype of a NumPy dtype that tensors are known to have, without the checks of :func:`as_dtype`."""
_NUMBERS: Final = {
    1: float32,
    2: float64,
    3: int32,
    4: uint8,
    5: int16,
    6: int8,
    8: complex64,
    9: int64,
    10: bool_,
    17: uint16,
    18: complex128,
    19: float16,
    22: uint32,
    23: uint64,
}
"""TensorFlow's numbers of dtypes, which its saved graphs and old programs use."""
_BY_NUMBER: Final = {number: name for name, number in _LATE.items()}
_NAMED: Final[dict[Any, DType]] = {
    **{t.name: t for t in ALL},
    **_NUMBERS,
    "float": float32,
    "double": float64,
    "half": float16,
    bool: bool_,
    int: int32,
    float: float32,
    complex: complex128,
}


def as_dtype(type_value: DTypeLike | int) -> DType:
    """The dtype for a name, a number, a NumPy dtype or scalar type, or a Python type.

    Names are those of the dtypes, and ``"float"`` (float32), ``"double"`` and ``"half"``; not those of NumPy,
    to which ``"float"`` has 64 bits and ``"int"`` as many as the machine. Python's ``int`` and ``float`` mean
    the defaults int32 and float32. A number is TensorFlow's, such as 1 for float32.

    Raises:
        DTypeError: ``type_value`` is not a dtype that tensors can have.

    >>> as_dtype("float"), as_dtype(np.int8), as_dtype(float), as_dtype(9)
    (tf.float32, tf.int8, tf.float32, tf.int64)
    """
    if type(type_value) is DType:
        return type_value
    dtype = _find(type_value)
    if dtype is None:
        names = ", ".join([*(t.name for t in ALL), *_LATE])
        raise DTypeError(f"{type_value!r} is not a dtype that tensors can have; use one of {names}.")
    return dtype


def late_dtype(name: str) -> DType:
    """The dtype of strings or of a narrow float, registered at the first call, which may import ml_dtypes.

    >>> late_dtype("bfloat16").max > late_dtype("float8_e5m2").max
    np.True_
    """
    registered = _NAMED.get(name)
    if registered is None:
        numbers = name in _NARROW
        dtype = DType(getattr(imported("ml_dtypes"), name)) if numbers else DType(object, name)
        registered = _TYPES.setdefault(dtype.dtype, dtype)
        _NUMBERS[_LATE[name]] = registered
        _NAMED.update({name: registered, _LATE[name]: registered})
        uncommon_in_use.append(name)
    return registered


def is_narrow(dtype: np.dtype[Any]) -> bool:
    """Whether a dtype of NumPy's is a narrow float."""
    return dtype.num >= UNCOMMON and dtype.name in _NARROW


def holds_text(dtype: np.dtype[Any]) -> bool:
    """Whether arrays of a dtype of NumPy's hold strings; or objects, which may be strings."""
    return dtype.kind in _TEXT


def finfo(dtype: DType) -> Any:
    """The limits of a floating or complex dtype, as ``np.finfo``."""
    return imported("ml_dtypes").finfo(dtype.dtype) if dtype.narrow else np.finfo(dtype.dtype)


def _find(value: Any) -> DType | None:
    """The dtype that ``value``, of any type, refers to; None if it refers to none."""
    if isinstance(value, np.dtype):
        return _TYPES.get(value) or _of_other_package(value)
    if isinstance(value, str | int | None):
        registered = None if isinstance(value, bool) else _NAMED.get(value)
        named = _BY_NUMBER.get(value, value) if isinstance(value, int) else value
        return late_dtype(named) if registered is None and named in _LATE else registered
    if isinstance(value, type) and value in _NAMED:
        return _NAMED[value]
    if value in (str, bytes):  # NumPy has dtypes for them, TensorFlow has none
        return None
    try:
        dtype = np.dtype(value)
    except (TypeError, ValueError):
        return None
    is_any_class = dtype.hasobject and isinstance(value, type) and value not in (object, np.object_)
    return None if is_any_class else _find(dtype)


def _of_other_package(dtype: np.dtype[Any]) -> DType | None:
    """The dtype for a NumPy dtype of another byte order, of strings, or of another package."""
    if dtype.kind in _TEXT:
        return late_dtype("string")
    native = _TYPES.get(dtype.newbyteorder("="))
    return late_dtype(dtype.name) if native is None and dtype.name in _NARROW else native


def promote(x: DType, y: DType) -> DType:
    """The common dtype to which tensors of dtypes ``x`` and ``y`` are promoted.

    Floats meet in the wider float, integers in the integer that holds both, and an integer with a float takes
    the float (the Array API's rules; int with float as Keras, JAX and PyTorch do).

    Raises:
        DTypeError: no common dtype exists (``uint64`` with a signed integer, strings with numbers).

    >>> promote(int64, float32), promote(uint8, int8), promote(float32, float64)
    (tf.float32, tf.int16, tf.float64)
    """
    if x is y:
        return x
    if x.is_string or y.is_string:
        raise DTypeError(
            f"{x.name} and {y.name} have no common dtype; df.strings.to_number makes numbers of strings, and "
            "df.as_string strings of numbers."
        )
    if x.is_inexact and not y.is_inexact:
        return x
    if y.is_inexact and not x.is_inexact:
        return y
    if x.narrow or y.narrow:
        return _promote_narrow(x, y)
    meet = _TYPES[np.result_type(x.dtype, y.dtype)]
    if meet.is_inexact and x.is_integer:
        raise DTypeError(f"{x.name} and {y.name} have no common integer dtype; cast one of them first.")
    return meet


def _promote_narrow(x: DType, y: DType) -> DType:
    """The common dtype of a narrow float and another float: the wider, or float32 for the two of 16 bits."""
    if x.size == y.size == 1:
        raise DTypeError(
            f"{x.name} and {y.name} have no common dtype; cast them to bfloat16 or float32 first."
        )
    if x.size == y.size:
        return float32
    return x if x.size > y.size else y


def float_for(dtype: DType) -> DType:
    """The dtype in which a real function of ``dtype`` is computed: float32 for integers and bools."""
    return dtype if dtype.is_inexact else float32

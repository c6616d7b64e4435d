"""Whether a function may ask for the value of a tensor, seen from its source before it runs.

A trace of a function as it is written ends where Python wants the value of a tensor. It would have to begin
again with the converted function, and what the Python did by then, such as printing, would happen twice. So a
function is converted first, unless its source, and that of what it calls, shows that nothing that is tested,
iterated or unpacked can be a tensor. Most functions show that, and loading the converter takes longer than
most traces.

A wrong guess costs time, or a second run of the same Python, and never a wrong result.
"""

from __future__ import annotations

import ast
import builtins
import dis
import inspect
import textwrap
import weakref
from collections import ChainMap
from collections.abc import Callable, Mapping, Sequence
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any, Final

from dualflow.core.dispatch import AbstractTensor, AbstractVariable
from dualflow.core.source_lines import source_lines
from dualflow.core.spec import TensorSpec
from dualflow.function.autograph.do_not_convert import python_function
from dualflow.function.autograph.following import Following
from dualflow.function.autograph.kinds import HOLDER, TENSOR, Kind, Known, known
from dualflow.function.autograph.lambdas import is_lambda, isolated
from dualflow.function.autograph.results import Tested
from dualflow.function.bound_method import WeakMethod

_DEPTH: Final = 12
_TAKING_APART: Final = frozenset(
    code
    for name, code in dis.opmap.items()
    if ("JUMP" in name and "_IF_" in name)
    or name.startswith(("UNPACK_", "FOR_ITER", "UNARY_NOT", "LIST_EXTEND", "CONTAINS_OP", "CALL_FUNCTION_EX"))
)
"""Instructions that want a tensor's value, or hide what is called with it."""
_HARMLESS: Final = (AbstractTensor, AbstractVariable, TensorSpec, int, float, complex, str, type(None))
_HARMLESS_BUILTINS: Final = frozenset({abs, pow, len, isinstance, print, type, repr, str, id, hasattr})


def needs_conversion(function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
    """Whether ``function``, called so, may test, iterate or otherwise look into a tensor.

    Args:
        function: what is to be traced.
        args: what it is to be called with, where specs, too, stand for tensors.
        kwargs: likewise.

    >>> import dualflow as df
    >>> x = df.ones([2])
    >>> needs_conversion(lambda x: x + 1, [x], {})
    False
    """
    if isinstance(function, WeakMethod):
        function = MethodType(function.__func__, function.__self__)
    found = python_function(function)
    if found is None:
        return False
    python, leading = found
    if not leading and _is_simple(python, [*args, *kwargs.values()]):
        return False
    given = [known(x) for x in (*leading, *args)]
    named = {name: known(x) for name, x in kwargs.items()}
    try:
        _Reader().returned(python, given, named, loose=False)
    except Tested:
        return True
    return False


class _Reader:
    """Reads functions, each once for each kind of arguments: closures of one code are several."""

    def __init__(self) -> None:
        self._seen: dict[tuple[FunctionType, tuple[Any, ...]], Known] = {}
        self._arguments: list[Mapping[str, Known]] = []
        self._depth = 0

    def returned(
        self, function: FunctionType, given: Sequence[Known], named: Mapping[str, Known], *, loose: bool
    ) -> Known:
        """What a call of the function returns.

        Args:
            function: the user's.
            given: the positional arguments.
            named: the keyword arguments.
            loose: whether there are more arguments, which nobody knows.

        Raises:
            Tested: the function, or one that it calls, may look into a tensor.
        """
        arguments = _bound(function, given, named, loose)
        key = function, tuple((name, _outline(x)) for name, x in sorted(arguments.items()))
        if key in self._seen:
            return self._seen[key]
        if self._depth >= _DEPTH:
            raise Tested
        self._seen[key] = TENSOR  # of a recursive call
        self._arguments.append(arguments)  # keys have their ids
        tree = _tree(function)
        if tree is None:
            return TENSOR  # without source there is no conversion
        self._depth += 1
        try:
            found = Following(self, _known_names(function), arguments).run(tree)
        finally:
            self._depth -= 1
        if inspect.isgeneratorfunction(function):
            found = HOLDER
        self._seen[key] = found
        return found


def _bound(
    function: FunctionType, given: Sequence[Known], named: Mapping[str, Known], loose: bool
) -> dict[str, Known]:
    """What each parameter is.

    Raises:
        Tested: the arguments don't fit, so that what they are is not known.
    """
    signature = inspect.signature(function, follow_wrapped=False)
    try:
        bound = (signature.bind_partial if loose else signature.bind)(*given, **named)
    except TypeError:
        raise Tested from None
    found = {}
    for name, parameter in signature.parameters.items():
        if name in bound.arguments:
            value = bound.arguments[name]
        elif parameter.kind is parameter.VAR_POSITIONAL:
            value = HOLDER if loose else ()
        elif parameter.kind is parameter.VAR_KEYWORD:
            value = HOLDER if loose else {}
        else:
            value = Known(Kind.UNKNOWN) if loose else parameter.default
        found[name] = _packed(value)
    return found


def _packed(value: Any) -> Known:
    """An argument, where those of ``*args`` and ``**kwargs`` come packed."""
    if isinstance(value, tuple) and value and all(isinstance(x, Known) for x in value):
        return Known(Kind.HOLDER, parts=value)
    return known(value)


def _outline(value: Known) -> tuple[Any, ...]:
    parts = None if value.parts is None else tuple(map(_outline, value.parts))
    return value.kind, tuple(map(id, value.objects)), parts


def _known_names(function: FunctionType) -> Mapping[str, Any]:
    """What the function's names stand for before it runs."""
    return ChainMap(_closure(function), function.__globals__, vars(builtins))


def _closure(function: FunctionType) -> dict[str, Any]:
    found = {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            found[name] = cell.cell_contents
        except ValueError:  # assigned later
            continue
    return found


def _is_simple(function: FunctionType, arguments: Sequence[Any]) -> bool:
    """Whether the bytecode alone shows that the function only calls this package with tensors and numbers."""
    code = function.__code__
    names = _known_names(function)
    used = [names[name] for name in (*code.co_names, *code.co_freevars) if name in names]
    return (
        all(isinstance(x, _HARMLESS) for x in (*arguments, *(function.__defaults__ or ())))
        and _TAKING_APART.isdisjoint(code.co_code[::2])
        and not any(isinstance(c, CodeType) for c in code.co_consts)
        and all(map(_is_harmless, used))
    )


def _is_harmless(x: Any) -> bool:
    if isinstance(x, ModuleType):
        return x.__name__.partition(".")[0] == __name__.partition(".")[0]
    if isinstance(x, BuiltinFunctionType | type):
        return x in _HARMLESS_BUILTINS
    return isinstance(x, _HARMLESS)


def _tree(function: FunctionType) -> ast.AST | None:
    """The function's source, parsed once; None where there is none.

    Raises:
        Tested: there is, but it is no program by itself, as that of a lambda in the middle of an expression.
    """
    code = function.__code__
    if code not in _trees:
        _trees[code] = _parsed(function)
    return _trees[code]


def _parsed(function: FunctionType) -> ast.AST | None:
    if not source_lines(function.__code__, function.__globals__):
        return None
    try:
        alone = isolated(function) if is_lambda(function) else None
        source = inspect.getsource(function if alone is None else alone)
    except (OSError, TypeError):
        return None
    try:
        return ast.parse(textwrap.dedent(source))
    except SyntaxError:
        raise Tested from None


_trees: Final[weakref.WeakKeyDictionary[CodeType, ast.AST | None]] = weakref.WeakKeyDictionary()

"""Signatures, which bind the arguments of a call, flatten them, and compute the key of their trace."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Hashable, Mapping, Sequence
from itertools import islice
from typing import Any

import numpy as np

from dualflow.core.convert import as_array
from dualflow.core.dispatch import AbstractTensor, AbstractVariable
from dualflow.core.errors import DTypeError, InvalidArgumentError
from dualflow.core.exact_equality import exact
from dualflow.core.records import NamedTuple, dataclass, replace
from dualflow.core.shape import UNKNOWN_RANK
from dualflow.core.spec import TensorSpec
from dualflow.core.tree import Keys, Structure, consists_of, flatten, unflatten
from dualflow.eager.tensor import wrap
from dualflow.function.arguments.match_structure import as_tensor, match_structure
from dualflow.function.arguments.trace_key import Leaf, TensorLeaf, static_leaf, variable_leaf

_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


class Key(NamedTuple):
    """The key of a trace.

    Attributes:
        structure: the structure of the tuple of all parameters' values.
        leaves: the leaves of this structure.
        dict_keys: the keys of each dict in its order, by type and bits: Python code may read them, but for
            structures ``{1: x, 2: y}`` equals ``{2: y, True: x}``.
    """

    structure: Structure
    leaves: tuple[Leaf, ...]
    dict_keys: tuple[Hashable, ...]


@dataclass(frozen=True, slots=True, eq=False)
class CallArguments:
    """The arguments of one call, flattened.

    Attributes:
        structure: the structure of the tuple of all parameters' values.
        leaves: its leaves, with arrays converted to tensors.
        inputs: the tensors and variables among the leaves, each variable once.
        key: the key of the traces that serve the call.
    """

    structure: Structure
    leaves: tuple[Any, ...]
    inputs: list[Any]
    key: Key


class Signature:
    """The parameters of a Python function, with the specs of an input signature.

    Args:
        function: the Python function.
        specs: for each parameter a structure of TensorSpec that its argument is converted to; None accepts
            any arguments.
        skip_first: whether the first parameter is the ``self`` of a method.

    Attributes:
        parameters: the parameters that a call passes.
        python: the same as an :class:`inspect.Signature`.

    Raises:
        DTypeError: a parameter without a spec has no default either.
    """

    def __init__(
        self, function: Callable[..., Any], specs: Sequence[Any] | None = None, *, skip_first: bool = False
    ) -> None:
        self.name: str = getattr(function, "__name__", type(function).__name__)
        parameters = _parameters_of(function)
        # As in TensorFlow, an input signature has no spec for a parameter self: the function is a method.
        unbound = specs is not None and bool(parameters) and parameters[0].name == "self"
        named = bool(parameters) and parameters[0].kind in _POSITIONAL  # else self is one of ``*args``
        self.parameters = tuple(parameters[(skip_first and named) or unbound :])
        self.specs = None if specs is None else _by_parameter(tuple(specs), self.parameters)
        self.python = inspect.Signature(self.parameters)
        if self.specs is not None:
            _check_specs(self.name, self.specs, self.parameters)

    def bind(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> CallArguments:
        """The flattened arguments of ``f(*args, **kwargs)``.

        Raises:
            DTypeError: the arguments do not fit the parameters or the input signature, or one has no hash.
        """
        values = list(self.arguments(args, kwargs).values())
        if self.specs is None:
            return self.call(tuple(values))
        return self._as_specified(self.call(tuple(self._converted(values, args, kwargs))))

    def _as_specified(self, call: CallArguments) -> CallArguments:
        """``call``, keyed by the specs of the input signature instead of those of its arguments."""
        specs = [
            TensorLeaf(_of_rank(s, x)) for s, x in zip(flatten(self.specs)[0], call.leaves, strict=False)
        ]
        key = call.key._replace(leaves=(*specs, *call.key.leaves[len(specs) :]))
        return replace(call, key=key)

    def call(self, values: tuple[Any, ...]) -> CallArguments:
        """The flattened arguments for one value of each parameter."""
        flat, structure = flatten(values)
        aliases: dict[int, int] = {}
        key_leaves, arguments, inputs = [], [], []
        for value in flat:
            variables = len(aliases)
            leaf, argument = _leaf(value, aliases)
            key_leaves.append(leaf)
            arguments.append(argument)
            if isinstance(leaf, TensorLeaf) or len(aliases) > variables:
                inputs.append(argument)
        key = Key(structure, tuple(key_leaves), _dict_keys(structure))
        return CallArguments(structure, tuple(arguments), inputs, key)

    def arguments(
        self,
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        received: tuple[Sequence[Any], Mapping[str, Any]] | None = None,
    ) -> dict[str, Any]:
        """Each parameter's value, with defaults.

        ``received`` are the arguments that errors show, by default ``args`` and ``kwargs``.
        """
        try:
            bound = self.python.bind(*args, **kwargs)
        except TypeError as error:
            args, kwargs = received or (args, kwargs)
            raise DTypeError(
                f"Binding inputs to df.function failed due to `{error}`. Received args: {tuple(args)} and "
                f"kwargs: {dict(kwargs)} for signature: {self.name}{self.python}."
            ) from None
        bound.apply_defaults()
        return bound.arguments

    def argument_indices(self, count: int, names: Sequence[str]) -> list[int]:
        """The indices of a call's values in the order of the parameters.

        ``count`` of the values are positional.

        >>> Signature(lambda x, y, z=0: x).argument_indices(1, ["z", "y"])
        [0, 2, 1]
        """
        if not names:
            return list(range(count))
        named = {name: count + i for i, name in enumerate(names)}
        return flatten(tuple(self.python.bind(*range(count), **named).arguments.values()))[0]

    def completed(
        self, args: Sequence[Any], kwargs: Mapping[str, Any], static: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Each parameter's value; the call may omit ``static`` ones, even before positional arguments."""
        try:
            bound = self.python.bind_partial(*args, **kwargs).arguments
        except TypeError:
            bound = {}
        names = [p.name for p in self.parameters]
        if all(n in bound or n in static for n in names) and len(bound) >= len(args) + len(kwargs):
            return {n: bound.get(n, static.get(n)) for n in names}
        free = [p.name for p in self.parameters if p.kind in _POSITIONAL and p.name not in {*static, *kwargs}]
        if len(args) > len(free):
            return self.arguments(args, kwargs)
        completed = {**static, **dict(zip(free, args, strict=False)), **kwargs}
        return self.arguments((), completed, (args, kwargs))

    def spread(self, values: Sequence[Any]) -> tuple[list[Any], dict[str, Any]]:
        """The positional and keyword arguments of the Python function, for one value of each parameter."""
        args: list[Any] = []
        kwargs: dict[str, Any] = {}
        for parameter, value in zip(self.parameters, values, strict=True):
            if parameter.kind in _POSITIONAL:
                args.append(value)
            elif parameter.kind is inspect.Parameter.VAR_POSITIONAL:
                args.extend(value)
            elif parameter.kind is inspect.Parameter.VAR_KEYWORD:
                kwargs.update(value)
            else:
                kwargs[parameter.name] = value
        return args, kwargs

    def check_unmodified(self, values: Sequence[Any], structure: Structure, leaves: Sequence[Any]) -> None:
        """Raise an error if the function has modified ``values``, which had this structure and these leaves.

        Raises:
            InvalidArgumentError: a list, a dict or an object among them was modified.
        """
        remaining = iter(leaves)
        modified = []
        for parameter, value, child in zip(self.parameters, values, structure.children, strict=True):
            if not consists_of(value, child, iter(list(islice(remaining, child.leaves)))):
                modified.append(parameter.name)
        if modified:
            names = ", ".join(modified)
            raise InvalidArgumentError(
                f"{self.name}{self.python} should not modify its Python input arguments. Modifying a copy "
                f"is allowed. The following parameter(s) were modified: {names}. The trace has copies of "
                "lists, dicts and objects, so the caller's are unchanged. Return the new values."
            )

    def leaf_names(self, structure: Structure) -> list[str]:
        """The name of each leaf: ``x``, ``pair[0]``, ``options['rate']``."""
        names: list[str] = []
        for parameter, child in zip(self.parameters, structure.children, strict=True):
            _name_leaves(parameter.name, child, names)
        return names

    def _converted(self, values: list[Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Any]:
        """``values`` as tensors of the input signature, in its structure."""
        assert self.specs is not None, "called with an input signature"
        specs, structure = flatten(self.specs)
        try:
            leaves = match_structure(structure, tuple(values[: len(self.specs)]))
            head = unflatten(structure, [as_tensor(s, x) for s, x in zip(specs, leaves, strict=True)])
        except (DTypeError, InvalidArgumentError) as error:
            raise DTypeError(
                f"Binding inputs to df.function failed due to `{error}`. Received args: {tuple(args)} and "
                f"kwargs: {dict(kwargs)} for signature: {self.name}{self.specs}."
            ) from None
        return [*head, *values[len(head) :]]


def _dict_keys(structure: Structure) -> tuple[Hashable, ...]:
    """The keys of each dict of a structure in the dict's order, by type and bits."""
    keys = structure.keys
    own = (exact(keys.order),) if isinstance(keys, Keys) else ()
    inner = [_dict_keys(child) for child in structure.children if child.kind is not None]
    return (*own, *[keys for several in inner for keys in several])


def _of_rank(spec: TensorSpec, value: Any) -> TensorSpec:
    """``spec``; if its rank is unknown, with the rank of ``value`` and dynamic sizes."""
    if spec.shape is not UNKNOWN_RANK or value.shape is UNKNOWN_RANK:
        return spec
    return TensorSpec([None] * len(value.shape), spec.dtype, spec.name)


def _leaf(value: Any, aliases: dict[int, int]) -> tuple[Leaf, Any]:
    """The leaf of an argument, and the argument; an array is converted to a tensor."""
    if isinstance(value, AbstractTensor):
        return TensorLeaf(value.spec), value
    if isinstance(value, AbstractVariable):
        return variable_leaf(value, aliases), value
    if isinstance(value, TensorSpec):
        return TensorLeaf(value), value
    if isinstance(value, np.ndarray) or (hasattr(value, "__array__") and not isinstance(value, type)):
        tensor = wrap(as_array(value))
        return TensorLeaf(tensor.spec), tensor
    return static_leaf(value), value


def _by_parameter(specs: tuple[Any, ...], parameters: Sequence[inspect.Parameter]) -> tuple[Any, ...]:
    """The specs of an input signature by parameter; ``*args`` have one tuple."""
    at = next((i for i, p in enumerate(parameters) if p.kind is inspect.Parameter.VAR_POSITIONAL), None)
    return specs if at is None or len(specs) <= at else (*specs[:at], specs[at:])


def signature_specs(input_signature: Any) -> tuple[Any, ...]:
    """The entries of an input signature.

    Raises:
        DTypeError: it is not a list or a tuple, but for example a single spec.
    """
    if not isinstance(input_signature, Sequence) or isinstance(input_signature, str):
        raise DTypeError(
            "input_signature is a list with a df.TensorSpec for each argument, not "
            f"{input_signature!r}; write it in brackets."
        )
    return tuple(input_signature)


def _check_specs(name: str, specs: Sequence[Any], parameters: Sequence[inspect.Parameter]) -> None:
    if len(specs) > len(parameters):
        raise DTypeError(
            f"input_signature has {len(specs)} entries, but {name!r} takes {len(parameters)} arguments."
        )
    missing = [p.name for p in parameters[len(specs) :] if p.default is p.empty and p.kind not in _VARIADIC]
    if missing:
        raise DTypeError(f"input_signature missing type constraint for {', '.join(missing)}")
    for spec in flatten(specs)[0]:
        if not isinstance(spec, TensorSpec):
            raise DTypeError(f"input_signature holds TensorSpec objects, not {spec!r}.")


_VARIADIC = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


def _name_leaves(path: str, structure: Structure, names: list[str]) -> None:
    if structure.kind is None:
        names.append(path)
        return
    named = hasattr(structure.kind, "_fields") or not (
        structure.kind is type(None)
        or (isinstance(structure.kind, type) and issubclass(structure.kind, Mapping | list | tuple))
    )
    keys = structure.keys or range(len(structure.children))
    for key, child in zip(keys, structure.children, strict=True):
        _name_leaves(f"{path}.{key}" if named else f"{path}[{key!r}]", child, names)


def _parameters_of(function: Callable[..., Any]) -> list[inspect.Parameter]:
    """The parameters of a function; for a ufunc its inputs, since calls can't pass its options' defaults."""
    wrapped = inspect.unwrap(function)  # as inspect.signature does
    if isinstance(wrapped, np.ufunc):
        names = ["x"] if wrapped.nin == 1 else [f"x{i + 1}" for i in range(wrapped.nin)]
        inputs = [inspect.Parameter(name, inspect.Parameter.POSITIONAL_ONLY) for name in names]
        return [*inputs, inspect.Parameter("options", inspect.Parameter.VAR_KEYWORD)]
    try:
        return list(inspect.signature(function).parameters.values())
    except ValueError:  # some built-in functions can't be inspected
        return [inspect.Parameter("args", inspect.Parameter.VAR_POSITIONAL)]

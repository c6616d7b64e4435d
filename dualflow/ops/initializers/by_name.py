"""Initializers by their names."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from dualflow.core.errors import DTypeError, InvalidArgumentError
from dualflow.core.tracebacks import entry
from dualflow.ops.initializers.base import Initializer
from dualflow.ops.initializers.drawn import (
    GlorotNormal,
    GlorotUniform,
    HeNormal,
    HeUniform,
    LecunNormal,
    LecunUniform,
    RandomNormal,
    RandomUniform,
    TruncatedNormal,
    VarianceScaling,
)
from dualflow.ops.initializers.fixed import Constant, Identity, Ones, Zeros
from dualflow.ops.initializers.orthogonal import Orthogonal

if TYPE_CHECKING:
    from collections.abc import Callable

_CLASSES: Final = {
    kind.__name__: kind
    for kind in (
        Constant,
        GlorotNormal,
        GlorotUniform,
        HeNormal,
        HeUniform,
        Identity,
        LecunNormal,
        LecunUniform,
        Ones,
        Orthogonal,
        RandomNormal,
        RandomUniform,
        TruncatedNormal,
        VarianceScaling,
        Zeros,
    )
}


def _short(name: str) -> str:
    return re.sub("(?<=[a-z])(?=[A-Z])", "_", name).lower()


_NAMES: Final = {**_CLASSES, **{_short(name): kind for name, kind in _CLASSES.items()}}


@entry
def get(identifier: str | dict[str, Any] | Callable[..., Any] | None) -> Any:
    """The initializer for ``identifier``: a name, a config, a class or a function.

    Args:
        identifier: a name ("glorot_uniform" or "GlorotUniform"), what :func:`serialize` returns, a class, a
            function of a shape and a dtype, or None.

    Returns:
        An :class:`Initializer`, or the function or None as they are.

    Raises:
        InvalidArgumentError: an unknown name.
        DTypeError: none of these.

    >>> import dualflow as df
    >>> df.initializers.get("he_normal")
    HeNormal(seed=None, dtype=tf.float32)
    """
    if identifier is None:
        return None
    if isinstance(identifier, Mapping):
        return deserialize(identifier)
    if isinstance(identifier, str):
        return deserialize({"class_name": identifier, "config": {}})
    if inspect.isclass(identifier):
        return identifier()
    if callable(identifier):
        return identifier
    raise DTypeError(
        f"an initializer is a name, a function of a shape and a dtype, or None, not {identifier!r}."
    )


@entry
def serialize(initializer: Initializer) -> dict[str, Any]:
    """The name and the options of an initializer, from which :func:`deserialize` constructs an equal one.

    Args:
        initializer: an initializer.

    Returns:
        A dict with the keys ``class_name`` and ``config``.

    Raises:
        AttributeError: ``initializer`` is not an initializer.

    >>> import dualflow as df
    >>> df.initializers.serialize(df.initializers.Constant(2.0))
    {'class_name': 'Constant', 'config': {'value': 2.0}}
    """
    return {"class_name": type(initializer).__name__, "config": initializer.get_config()}


@entry
def deserialize(config: Mapping[str, Any]) -> Initializer:
    """The initializer with a name and options.

    Args:
        config: a dict as :func:`serialize` returns it.

    Returns:
        An initializer.

    Raises:
        InvalidArgumentError: the name is unknown.

    >>> import dualflow as df
    >>> df.initializers.deserialize({"class_name": "Constant", "config": {"value": 2.0}})
    Constant(value=2.0, dtype=tf.float32)
    """
    kind = _NAMES.get(config["class_name"])
    if kind is None:
        raise InvalidArgumentError(
            f"there is no initializer {config['class_name']!r}; there are {', '.join(sorted(_CLASSES))}."
        )
    return kind.from_config(dict(config["config"]))

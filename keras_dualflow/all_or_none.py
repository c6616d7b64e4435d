"""Changes of many weights that are made whole, or not at all."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any


@contextmanager
def all_or_none(model: Any) -> Iterator[None]:
    """Give each variable of ``model`` back the value that it had, where the block raises."""
    held = [(v._value, v._value.read_value()) for v in model.variables if v._value is not None]
    try:
        yield
    except BaseException:
        for variable, value in held:
            variable.assign(value)
        raise


def loading_all_or_none(load_weights: Callable[..., Any]) -> Callable[..., Any]:
    """Keras's ``load_weights``, which changes a model as it reads, made to change nothing where it fails."""

    @wraps(load_weights)
    def load(model: Any, *args: Any, **kwargs: Any) -> Any:
        with all_or_none(model):
            return load_weights(model, *args, **kwargs)

    return load

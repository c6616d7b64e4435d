"""Atomic updates of many weights: all are applied, or none."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any


@contextmanager
def all_or_none(model: Any) -> Iterator[None]:
    """Restore the value of each variable of ``model`` if the block raises."""
    previous = [(v._value, v._value.read_value()) for v in model.variables if v._value is not None]
    try:
        yield
    except BaseException:
        for variable, value in previous:
            variable.assign(value)
        raise


def loading_all_or_none(load_weights: Callable[..., Any]) -> Callable[..., Any]:
    """``load_weights`` of Keras, with the weights restored if it fails."""

    @wraps(load_weights)
    def load(model: Any, *args: Any, **kwargs: Any) -> Any:
        with all_or_none(model):
            return load_weights(model, *args, **kwargs)

    return load

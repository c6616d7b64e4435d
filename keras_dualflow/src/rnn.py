"""Loops over time steps."""

from typing import Any


def rnn(*args: Any, **kwargs: Any) -> Any:
    """A cell over the time steps of a sequence."""
    raise NotImplementedError


def lstm(*args: Any, **kwargs: Any) -> Any:
    """A fused LSTM: there is none, so Keras takes its cell over :func:`rnn`."""
    raise NotImplementedError


def gru(*args: Any, **kwargs: Any) -> Any:
    """A fused GRU: there is none, so Keras takes its cell over :func:`rnn`."""
    raise NotImplementedError


def cudnn_ok(*args: Any, **kwargs: Any) -> bool:
    """Whether cuDNN could run this layer: never."""
    return False

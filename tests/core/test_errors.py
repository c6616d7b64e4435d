"""Errors that programs raise themselves, as they raise TensorFlow's."""

import pickle

import pytest

import dualflow as df

ERRORS = [
    df.errors.InvalidArgumentError,
    df.errors.OutOfRangeError,
    df.errors.FailedPreconditionError,
    df.errors.NotFoundError,
    df.errors.ResourceExhaustedError,
    df.errors.InternalError,
]


@pytest.mark.parametrize("kind", ERRORS)
@pytest.mark.parametrize(
    "make",
    [
        lambda kind: kind("too long"),
        lambda kind: kind(None, None, "too long"),
        lambda kind: kind(node_def=None, op=None, message="too long"),
    ],
    ids=["a message", "TensorFlow's three", "by name"],
)
def test_an_error_has_its_message(kind, make):
    error = make(kind)
    assert str(error) == error.message == "too long"
    assert error.op is error.node_def is None
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is kind
    assert again.message == "too long"


def test_an_error_without_a_message_has_an_empty_one():
    assert df.errors.InvalidArgumentError().message == ""

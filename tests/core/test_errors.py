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


CODES = {
    "Cancelled": 1,
    "Unknown": 2,
    "InvalidArgument": 3,
    "DeadlineExceeded": 4,
    "NotFound": 5,
    "AlreadyExists": 6,
    "PermissionDenied": 7,
    "ResourceExhausted": 8,
    "FailedPrecondition": 9,
    "Aborted": 10,
    "OutOfRange": 11,
    "Unimplemented": 12,
    "Internal": 13,
    "Unavailable": 14,
    "DataLoss": 15,
    "Unauthenticated": 16,
}


@pytest.mark.parametrize("name", CODES)
def test_an_error_has_tensorflows_number(name):
    kind = getattr(df.errors, f"{name}Error")
    error = kind("node", "op", "too long")
    assert issubclass(kind, df.errors.OpError)
    assert (error.node_def, error.op, error.message) == ("node", "op", "too long")
    assert error.error_code == CODES[name]
    constant = "".join(f"_{c}" if c.isupper() else c for c in name).upper().strip("_")
    assert getattr(df.errors, constant) == CODES[name]


def test_an_error_of_an_unknown_kind_takes_a_code():
    error = df.errors.OpError(None, None, "busy", df.errors.UNAVAILABLE)
    assert (error.error_code, pickle.loads(pickle.dumps(error)).error_code) == (14, 14)
    assert df.errors.OK == 0


def test_errors_are_the_built_in_ones_too():
    assert issubclass(df.errors.PermissionDeniedError, PermissionError)
    assert issubclass(df.errors.DeadlineExceededError, TimeoutError)
    assert issubclass(df.errors.UnimplementedError, NotImplementedError)

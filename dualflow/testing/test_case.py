"""``TestCase``: the base class of TensorFlow's unit tests."""

from __future__ import annotations

import random
import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Final

import numpy as np

from dualflow.core.device_names import is_cpu
from dualflow.core.dispatch import TENSORS, AbstractComposite
from dualflow.core.errors import DTypeError, DualflowError, FailedPreconditionError
from dualflow.core.tree import map_structure
from dualflow.eager import executing_eagerly
from dualflow.eager.seeds import set_seed
from dualflow.graph_mode import Session, get_default_graph, get_default_session, reset_default_graph
from dualflow.graph_mode.graph import ExplicitGraph, innermost_graph
from dualflow.testing.array_assertions import ArrayAssertions
from dualflow.testing.temporary_files import TemporaryFiles

SEED: Final = 87654321
"""The seed of all random numbers of a test, which is TensorFlow's."""
Predicate = Callable[[Exception], bool]
ErrorClasses = type[BaseException] | tuple[type[BaseException], ...]


class EagerSession:
    """The session of a test that runs eagerly and needs none: its ``run`` raises an error."""

    def run(self, *args: object, **kwargs: object) -> Any:
        """Raises an error.

        Raises:
            FailedPreconditionError: always.
        """
        raise FailedPreconditionError(
            "A session runs a graph, and this test runs eagerly: call self.evaluate(x), which works in both "
            "modes, or build in a block `with Graph().as_default():`."
        )


class TestCase(ArrayAssertions, TemporaryFiles):
    """A class of unit tests whose assertions take tensors; it works eagerly and in sessions.

    Before each test the seeds of Python, NumPy and dualflow are set, and the default graph is emptied.

    >>> import dualflow as df
    >>> class SquareTest(df.test.TestCase):
    ...     def test_squares(self):
    ...         self.assertAllClose(df.square([1.0, 2.0]), [1.0, 4.0])
    >>> SquareTest("test_squares").run().wasSuccessful()
    True
    """

    def setUp(self) -> None:
        super().setUp()
        random.seed(SEED)
        np.random.seed(SEED)  # programs under test draw from NumPy's global generator
        if innermost_graph.get() is None:
            reset_default_graph()
        set_seed(SEED)
        self._cached: Session | None = None

    def tearDown(self) -> None:
        if self._cached is not None:
            self._cached.close()
            self._cached = None
        super().tearDown()

    def evaluate(self, tensors: object) -> Any:
        """The values of tensors: of eager ones at once, of a graph's in the default or the cached session.

        Args:
            tensors: a structure of tensors, variables, operations and other values.

        Returns:
            The structure with arrays in place of the tensors.
        """
        if executing_eagerly():
            return map_structure(_value, tensors)
        session = get_default_session()
        if session is None:
            with self.cached_session() as cached:
                return cached.run(tensors)
        return session.run(tensors)

    # Sessions

    @contextmanager
    def session(
        self,
        graph: ExplicitGraph | None = None,
        config: object = None,
        use_gpu: bool = True,
        force_gpu: bool = False,
    ) -> Iterator[Any]:
        """A context with a new session, whose graph is the default one in it.

        Args:
            graph: the graph; None for the default graph.
            config: as of a session.
            use_gpu, force_gpu: ignored; ops run where df.device places them.
        """
        if executing_eagerly():
            yield EagerSession()
            return
        with Session(graph=graph, config=config) as session:
            yield session

    @contextmanager
    def cached_session(
        self,
        graph: ExplicitGraph | None = None,
        config: object = None,
        use_gpu: bool = True,
        force_gpu: bool = False,
    ) -> Iterator[Any]:
        """A context with a session that all such blocks of a test share, with the values of its variables.

        Args:
            graph, config, use_gpu, force_gpu: as of :meth:`session`.

        Raises:
            FailedPreconditionError: the test has used another graph before.
        """
        if executing_eagerly():
            yield EagerSession()
            return
        session_graph = get_default_graph() if graph is None else graph
        if self._cached is None:
            self._cached = Session(graph=session_graph, config=config)
        elif self._cached.graph is not session_graph:
            raise FailedPreconditionError(
                "The graph used to get the cached session is different from that of the first call; use "
                "self.session() for more than one graph."
            )
        with session_graph.as_default(), self._cached.as_default():
            yield self._cached

    def test_session(
        self,
        graph: ExplicitGraph | None = None,
        config: object = None,
        use_gpu: bool = True,
        force_gpu: bool = False,
    ) -> AbstractContextManager[Any]:
        """:meth:`cached_session`; with a graph, :meth:`session`.

        Args:
            graph, config, use_gpu, force_gpu: as of :meth:`session`.
        """
        if self._testMethodName == "test_session":  # which unittest finds by its name
            self.skipTest("Not a test.")
        block = self.cached_session if graph is None else self.session
        return block(graph, config, use_gpu, force_gpu)

    test_session.__test__ = False  # type: ignore[attr-defined]  # pytest's mark of a method that is no test

    # Errors

    @contextmanager
    def assertRaisesWithPredicateMatch(
        self, exception_type: ErrorClasses, expected_err_re_or_predicate: str | Predicate
    ) -> Iterator[None]:
        """A context that must raise an error of a class that satisfies a condition.

        Args:
            exception_type: the class, or a tuple of classes.
            expected_err_re_or_predicate: a regular expression to search for in the message, or a function of
                the error that returns a bool.
        """
        try:
            yield
        except Exception as error:
            if not isinstance(error, exception_type) or not _matches(error, expected_err_re_or_predicate):
                raise self.failureException(
                    f"Exception of type {type(error)}: {error}, expected {exception_type} that matches "
                    f"{expected_err_re_or_predicate!r}"
                ) from error
        else:
            self.fail(f"{exception_type} not raised")

    def assertRaisesOpError(
        self, expected_err_re_or_predicate: str | Predicate
    ) -> AbstractContextManager[None]:
        """A context that must raise an error of an op.

        Args:
            expected_err_re_or_predicate: as of :meth:`assertRaisesWithPredicateMatch`.
        """
        return self.assertRaisesWithPredicateMatch(DualflowError, expected_err_re_or_predicate)

    def assertRaisesIncompatibleShapesError(
        self,
        exception_type: ErrorClasses = DualflowError,
        expected_err_re_or_predicate: str | Predicate = "shape",
    ) -> AbstractContextManager[None]:
        """A context that must raise an error about shapes.

        Args:
            exception_type, expected_err_re_or_predicate: as of :meth:`assertRaisesWithPredicateMatch`.
        """
        return self.assertRaisesWithPredicateMatch(exception_type, expected_err_re_or_predicate)

    # Devices, threads

    def assertDeviceEqual(self, device1: str, device2: str, msg: str | None = None) -> None:
        """Check that two names are of the same device.

        Args:
            device1, device2: names such as "cpu:0" or the full name of a device.
            msg: the beginning of the error's message.
        """
        same = device1 == device2 or (is_cpu(device1) and is_cpu(device2))
        self.assertTrue(same, self._formatMessage(msg, f"Devices {device1} and {device2} are not equal."))

    def checkedThread(
        self, target: Callable[..., Any], args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> CheckedThread:
        """A thread whose ``join`` fails the test if ``target`` raised an error.

        Args:
            target: the function to run.
            args, kwargs: its arguments.
        """
        return CheckedThread(self, target, args, kwargs or {})


class CheckedThread:
    """A thread of a test: its failure is the test's.

    Args:
        test: the test.
        target: the function to run.
        args: its arguments.
        kwargs: its arguments with names.
    """

    def __init__(
        self, test: TestCase, target: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> None:
        self._test = test
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, args=(target, args, kwargs))

    def _run(self, target: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        try:
            target(*args, **kwargs)
        except BaseException as error:
            self._error = error

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def join(self) -> None:
        """Wait for the end of the thread; an error that it raised fails the test."""
        self._thread.join()
        if self._error is not None:
            raise self._test.failureException(f"Error in checkedThread: {self._error}") from self._error

    def is_alive(self) -> bool:
        """Whether the thread runs."""
        return self._thread.is_alive()


def _value(x: Any) -> Any:
    if isinstance(x, TENSORS):
        tensor: Any = x
        return tensor.numpy()
    if isinstance(x, AbstractComposite):
        raise DTypeError(f"evaluate() takes tensors, not {x!r}; give its parts.")
    return x


def _matches(error: Exception, condition: str | Predicate) -> bool:
    if callable(condition):
        return bool(condition(error))
    return re.search(condition, str(error)) is not None

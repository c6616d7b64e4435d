"""Sessions: they hold the values of a graph's variables, and run parts of the graph."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, Final, NoReturn, Self, cast

import numpy as np

from dualflow.core import dispatch
from dualflow.core.errors import DTypeError, FailedPreconditionError
from dualflow.core.tracebacks import entry, hide_frames
from dualflow.core.tree import flatten
from dualflow.eager.engine import EAGER
from dualflow.eager.tensor import wrap
from dualflow.graph_mode.default_graph import get_default_graph
from dualflow.graph_mode.default_session import innermost_session
from dualflow.graph_mode.graph import ExplicitGraph, innermost_graph
from dualflow.graph_mode.graph_def import GraphDef
from dualflow.graph_mode.growth_warning import Growth
from dualflow.graph_mode.run_metadata import RunMetadata
from dualflow.graph_mode.run_plan import RunPlan, log_placement, plan, session_variable
from dualflow.graph_mode.run_request import Request, resolve_request
from dualflow.graph_mode.running_session import SessionState, SessionVariable, running

Array = np.ndarray[Any, Any]
_MAX_CACHED: Final = 256
_NO_FEEDS: Final[dict[Any, Any]] = {}


class Session:
    """Runs parts of one graph, and holds the values of its variables.

    Threads may share a session, whose runs are serialised. Different sessions run concurrently.

    Args:
        target: TensorFlow's, and ignored.
        graph: the graph; by default the current default graph.
        config: TensorFlow's. Without ``allow_soft_placement``, the default, an op in a block of a GPU that
            has no code for it is an error. ``log_device_placement`` prints each op with its device to stderr
            when it is compiled. All else is ignored.

    >>> from dualflow.compat import v1
    >>> with v1.Graph().as_default():
    ...     count = v1.Variable(0)
    ...     step = v1.assign_add(count, 1)
    ...     with v1.Session() as session:
    ...         session.run(v1.global_variables_initializer())
    ...         print([int(session.run(step)) for _ in range(3)])
    [1, 2, 3]
    """

    def __init__(self, target: str = "", graph: ExplicitGraph | None = None, config: object = None) -> None:
        self.graph = get_default_graph() if graph is None else graph
        self._state = SessionState()
        self._requests: dict[Any, Request] = {}
        self._growth = Growth(self.graph.engine)
        self._lock = threading.RLock()
        self._closed = False
        self._blocks: list[ExitStack] = []
        self._logs_placement = bool(getattr(config, "log_device_placement", False))
        self._soft_placement = bool(getattr(config, "allow_soft_placement", False))

    def __enter__(self) -> Self:
        block = ExitStack()
        block.enter_context(self.graph.as_default())
        block.enter_context(self.as_default())
        self._blocks.append(block)
        return self

    def __exit__(self, *exc: object) -> None:
        self._blocks.pop().close()
        self.close()

    @entry
    def __reduce__(self) -> NoReturn:
        raise DTypeError(
            "A session can't be pickled or copied: it runs a graph of this process. Pickle the values of its "
            "variables, session.run(tf.global_variables()), and load them into another session's."
        )

    @property
    def graph_def(self) -> GraphDef:
        """The definition of the graph; see :meth:`Graph.as_graph_def`."""
        return self.graph.as_graph_def()

    @contextmanager
    def as_default(self) -> Iterator[Session]:
        """A context in which ``tensor.eval()`` and ``operation.run()`` use this session; it is not closed."""
        token = innermost_session.set(self)
        try:
            yield self
        finally:
            innermost_session.reset(token)

    def close(self) -> None:
        """Release the values of variables. A closed session can't run."""
        self._closed = True
        self._state = SessionState()
        self._requests.clear()

    def run(
        self,
        fetches: object,
        feed_dict: Mapping[Any, Any] | None = None,
        options: object = None,
        run_metadata: object = None,
    ) -> Any:
        """The values of ``fetches`` as NumPy arrays, in their structure; None for an operation.

        In one run, a random op that several fetches depend on draws once, variables are read and assigned in
        program order, and assignments that no fetch depends on don't run. The first run of fetches with some
        shapes of feeds compiles them; later runs only call the compiled graph.

        Args:
            fetches: tensors, variables, operations or names of tensors, in lists, tuples and dicts.
            feed_dict: values of placeholders, or of any other tensors, which are then not computed; a
                ``SparseTensorValue`` of a sparse placeholder.
            options: a :class:`RunOptions`, whose ``trace_level`` decides whether the run is measured.
            run_metadata: a :class:`RunMetadata`, which then has the time of the run.

        Raises:
            InvalidArgumentError: a placeholder is not fed, the shape of a fed value is wrong, or a fetch
                belongs to another graph.
            DTypeError: a fetch or a key is of the wrong type, or a fed value is a tensor.
            FailedPreconditionError: a variable has no value yet, or the session is closed.
        """
        try:
            if self._closed:
                raise FailedPreconditionError(
                    "Attempted to use a closed Session. Its variables' values are released: run in the block "
                    "`with Session() as sess:`, or make a new session and initialize the variables."
                )
            feeds = _NO_FEEDS if feed_dict is None else feed_dict
            request = self._requests.get(_shallow_key(fetches, feeds)) or self._request(fetches, feeds)
            self._growth.record_run()
            if isinstance(run_metadata, RunMetadata) and getattr(options, "trace_level", None):
                with run_metadata.measuring(request.first_operation(self.graph)):
                    results = self._execute(request, request.fed(feeds))
            else:
                results = self._execute(request, request.fed(feeds))
            return request.assembled(results)
        except Exception as error:
            hide_frames(error)
            raise

    def make_callable(self, fetches: object, feed_list: Sequence[Any] | None = None) -> Callable[..., Any]:
        """A function of the values of ``feed_list`` that returns the values of ``fetches``; see :meth:`run`.

        >>> from dualflow.compat import v1
        >>> with v1.Graph().as_default(), v1.Session() as session:
        ...     x = v1.placeholder(v1.float32, [])
        ...     double = session.make_callable(x * 2.0, [x])
        ...     print(double(4.0))
        8.0
        """
        keys = list(feed_list or ())

        def call(*values: Any) -> Any:
            return self.run(fetches, dict(zip(keys, values, strict=True)))

        return call

    def _request(self, fetches: Any, feeds: Mapping[Any, Any]) -> Request:
        """The request for these fetches and feeds, from the cache or resolved.

        Keys are the identities of objects that the request keeps alive. They are not those of lists and
        dicts, which may change.
        """
        leaves, structure = flatten(fetches)
        key = structure, structure.orders, tuple(map(id, leaves)), tuple(map(id, feeds))
        with self._lock:
            request = self._requests.get(key)
            if request is None:
                request = self._cache(key, resolve_request(self.graph, fetches, feeds))
            if structure.kind in _SHALLOW and request.flat:
                self._cache(_shallow_key(fetches, feeds), request)
        return request

    def _cache(self, key: Any, request: Request) -> Request:
        if len(self._requests) >= _MAX_CACHED:
            del self._requests[next(iter(self._requests))]
        self._requests[key] = request
        return request

    def _execute(self, request: Request, fed: list[Any]) -> list[Any]:
        graph = self.graph
        arrays = [feed.array(value, graph) for feed, value in zip(request.feeds, fed, strict=True)]
        shapes = tuple([a.shape for a in arrays])
        with self._lock, dispatch.using(EAGER), running(self._state):
            run_plan = request.plans.get(shapes) or self._plan(request, arrays, shapes)
            for variable, state in run_plan.reads:
                if not state.initialised:
                    raise self._uninitialized(variable)
            if run_plan.calls_python:  # Python code may keep references to arrays, which belong to the caller
                tensors = run_plan.compiled.current(*[wrap(a.copy()) for a in arrays])
                results = [np.array(t._array) for t in tensors]
            else:
                results = [t._array for t in run_plan.compiled.current(*[wrap(a) for a in arrays])]
            for state in run_plan.writes:
                state.initialised = True
        return [
            _numpy_result(a) for a in (results if run_plan.tail is None else run_plan.tail.results(results))
        ]

    def _plan(self, request: Request, arrays: list[Array], shapes: tuple[tuple[int, ...], ...]) -> RunPlan:
        specs = {f.value: f.check(a, self.graph) for f, a in zip(request.feeds, arrays, strict=True)}
        run_plan = plan(
            self.graph.engine,
            request.values,
            request.nodes,
            specs,
            self._session_variable,
            soft_placement=self._soft_placement,
        )
        if len(request.plans) >= _MAX_CACHED:
            del request.plans[next(iter(request.plans))]
        request.plans[shapes] = run_plan
        if self._logs_placement:
            log_placement(run_plan.compiled, self.graph.engine.on_device)
        return run_plan

    def _session_variable(self, variable: Any) -> SessionVariable:
        state = self._state.variables.get(id(variable))
        if state is None:
            state = self._state.variables[id(variable)] = session_variable(
                variable, self.graph.engine.on_device
            )
        return state

    def _uninitialized(self, variable: Any) -> FailedPreconditionError:
        value = self.graph.engine.value_of(variable)
        line = None if value is None else self.graph.engine.origin(value)
        return FailedPreconditionError(
            f"Error while reading resource variable {variable.name.partition(':')[0]}: it is uninitialized "
            "in this session. Run global_variables_initializer(), or its .initializer, before reading it."
            + (f"\n  {line}" if line else "")
        )


class InteractiveSession(Session):
    """A session that is the default one until :meth:`close`, for interpreters and notebooks.

    >>> from dualflow.compat import v1
    >>> graph = v1.Graph()
    >>> session = v1.InteractiveSession(graph=graph)
    >>> print((v1.constant(2.0) * 3.0).eval())
    6.0
    >>> session.close()
    """

    def __init__(self, target: str = "", graph: ExplicitGraph | None = None, config: object = None) -> None:
        super().__init__(target, graph, config)
        self._installed = ExitStack()
        if innermost_graph.get() is not self.graph:
            self._installed.enter_context(self.graph.as_default())
        self._installed.enter_context(self.as_default())

    def close(self) -> None:
        """Release the values of variables, and stop being the default session, if it is still the default."""
        if innermost_session.get() is self:
            self._installed.close()
        super().close()


def get_default_session() -> Session | None:
    """The session of the innermost block ``with session:`` or ``with session.as_default():``, or None.

    >>> from dualflow.compat import v1
    >>> with v1.Session() as session:
    ...     v1.get_default_session() is session
    True
    """
    return cast("Session | None", innermost_session.get())


_SHALLOW: Final = (None, list, tuple, dict)
"""The structures of fetches whose requests are cached by shallow keys: a tensor, or one level of them."""


def _shallow_key(fetches: Any, feeds: Mapping[Any, Any]) -> Any:
    """A cache key: the ids of the fetches, one level deep, and of the keys of the feeds."""
    kind = type(fetches)
    fed = tuple(map(id, feeds))
    if kind is list or kind is tuple:
        return kind, *map(id, fetches), fed
    if kind is dict:
        return kind, *fetches, *map(id, fetches.values()), fed
    return id(fetches), fed


def _numpy_result(array: Array) -> Any:
    """The array, or a NumPy scalar if it has no axes."""
    return array if array.ndim else array[()]

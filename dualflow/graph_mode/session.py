"""Sessions: they hold the values of a graph's variables and run the parts of it that are asked for."""

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
from dualflow.graph_mode.growth_warning import Growth
from dualflow.graph_mode.run_plan import Cell, RunPlan, plan
from dualflow.graph_mode.run_request import Request, look_up
from dualflow.graph_mode.streams import Streams, drawing

Array = np.ndarray[Any, Any]
_KEPT: Final = 256
_NO_FEEDS: Final[dict[Any, Any]] = {}


class Session:
    """Runs parts of one graph, and holds the values of its variables.

    Threads may share a session: its runs take turns. Sessions run at the same time.

    Args:
        target: ignored: there is one machine.
        graph: by default the one that is the default now.
        config: ignored.

    >>> from dualflow.compat import v1
    >>> with v1.Graph().as_default():
    ...     count = v1.Variable(0)
    ...     step = v1.assign_add(count, 1)
    ...     with v1.Session() as session:
    ...         session.run(v1.global_variables_initializer())
    ...         print([int(session.run(step)) for _ in range(3)])
    [1, 2, 3]
    """

    def __init__(self, target: str = "", graph: ExplicitGraph | None = None, config: Any = None) -> None:
        self.graph = get_default_graph() if graph is None else graph
        self._cells: dict[int, Cell] = {}
        self._requests: dict[Any, Request] = {}
        self._streams: Streams = {}
        self._growth = Growth(self.graph.engine)
        self._lock = threading.RLock()
        self._closed = False
        self._blocks: list[ExitStack] = []

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

    @contextmanager
    def as_default(self) -> Iterator[Session]:
        """The block in which ``tensor.eval()`` and ``operation.run()`` use this session; it stays open."""
        token = innermost_session.set(self)
        try:
            yield self
        finally:
            innermost_session.reset(token)

    def close(self) -> None:
        """Let the variables' values go. A closed session runs nothing."""
        self._closed = True
        self._cells.clear()
        self._requests.clear()

    def run(
        self,
        fetches: Any,
        feed_dict: Mapping[Any, Any] | None = None,
        options: Any = None,
        run_metadata: Any = None,
    ) -> Any:
        """The values of ``fetches`` as NumPy arrays, in their structure; None for an operation.

        One run sees one state: a random op that several fetches depend on draws once, variables are read and
        assigned in program order, and the assignments that no fetch depends on don't happen. The first run of
        some fetches for some shapes of feeds compiles; the next ones add nothing to the graph and only call.

        Args:
            fetches: tensors, variables, operations or names of tensors, in lists, tuples and dicts.
            feed_dict: values for placeholders, or for any other tensors in the place of computing them.
            options, run_metadata: ignored; as in TensorFlow.

        Raises:
            InvalidArgumentError: a placeholder is not fed, a value doesn't fit what it is fed for, or a fetch
                belongs to another graph.
            DTypeError: a fetch or a key is of the wrong kind, or a value is a tensor.
            FailedPreconditionError: a variable has no value yet, or the session is closed.
        """
        try:
            if self._closed:
                raise FailedPreconditionError(
                    "Attempted to use a closed Session. Its variables' values are gone: run in the block "
                    "`with Session() as sess:`, or make a new session and initialize the variables."
                )
            feeds = _NO_FEEDS if feed_dict is None else feed_dict
            request = self._requests.get(_shallow_key(fetches, feeds)) or self._request(fetches, feeds)
            self._growth.look()
            return request.assembled(self._execute(request, list(feeds.values())))
        except Exception as error:
            hide_frames(error)
            raise

    def make_callable(self, fetches: Any, feed_list: Sequence[Any] | None = None) -> Callable[..., Any]:
        """A function of values for ``feed_list`` that does what :meth:`run` of ``fetches`` does.

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

    # inside

    def _request(self, fetches: Any, feeds: Mapping[Any, Any]) -> Request:
        """What a run asks for, from the table or looked up, and then kept there.

        Keys are identities, of objects that the request keeps alive; lists and dicts themselves may change.
        """
        leaves, structure = flatten(fetches)
        key = structure, structure.orders, tuple(map(id, leaves)), tuple(map(id, feeds))
        with self._lock:
            request = self._requests.get(key)
            if request is None:
                request = self._keep(key, look_up(self.graph, fetches, feeds))
            if structure.kind in _SHALLOW and request.flat:
                self._keep(_shallow_key(fetches, feeds), request)
        return request

    def _keep(self, key: Any, request: Request) -> Request:
        if len(self._requests) >= _KEPT:
            del self._requests[next(iter(self._requests))]
        self._requests[key] = request
        return request

    def _execute(self, request: Request, given: list[Any]) -> list[Any]:
        graph = self.graph
        arrays = [feed.array(value, graph) for feed, value in zip(request.feeds, given, strict=True)]
        shapes = tuple([a.shape for a in arrays])
        with self._lock, dispatch.using(EAGER), drawing(self._streams):
            planned = request.plans.get(shapes) or self._plan(request, arrays, shapes)
            for variable, cell in planned.reads:
                if not cell.started:
                    raise self._uninitialized(variable)
            if planned.calls_python:  # Python code may keep the arrays, which belong to the caller
                results = planned.compiled(*[wrap(a.copy()) for a in arrays])
                found = [_shown(np.array(t._array)) for t in results]
            else:
                found = [_shown(t._array) for t in planned.compiled(*[wrap(a) for a in arrays])]
            for cell in planned.writes:
                cell.started = True
        return found

    def _plan(self, request: Request, arrays: list[Array], shapes: tuple[tuple[int, ...], ...]) -> RunPlan:
        specs = {f.value: f.check(a, self.graph) for f, a in zip(request.feeds, arrays, strict=True)}
        found = plan(self.graph.engine, request.values, request.nodes, specs, self._cell)
        if len(request.plans) >= _KEPT:
            del request.plans[next(iter(request.plans))]
        request.plans[shapes] = found
        return found

    def _cell(self, variable: Any) -> Cell:
        found = self._cells.get(id(variable))
        if found is None:
            found = self._cells[id(variable)] = Cell.of(variable)
        return found

    def _uninitialized(self, variable: Any) -> FailedPreconditionError:
        value = self.graph.engine.value_of(variable)
        line = None if value is None else self.graph.engine.origin(value)
        return FailedPreconditionError(
            f"Error while reading resource variable {variable.name.partition(':')[0]}: it is uninitialized "
            "in this session. Run global_variables_initializer(), or its .initializer, before what reads it."
            + (f"\n  {line}" if line else "")
        )


class InteractiveSession(Session):
    """A session that is the default from the start, until :meth:`close`: for interpreters and notebooks.

    >>> from dualflow.compat import v1
    >>> graph = v1.Graph()
    >>> session = v1.InteractiveSession(graph=graph)
    >>> print((v1.constant(2.0) * 3.0).eval())
    6.0
    >>> session.close()
    """

    def __init__(self, target: str = "", graph: ExplicitGraph | None = None, config: Any = None) -> None:
        super().__init__(target, graph, config)
        self._installed = ExitStack()
        if innermost_graph.get() is not self.graph:
            self._installed.enter_context(self.graph.as_default())
        self._installed.enter_context(self.as_default())

    def close(self) -> None:
        """Let the variables' values go, and be the default no more, unless another has become it since."""
        if innermost_session.get() is self:
            self._installed.close()
        super().close()


def get_default_session() -> Session | None:
    """The session of the innermost block ``with session:`` or ``with session.as_default():``; None without.

    >>> from dualflow.compat import v1
    >>> with v1.Session() as session:
    ...     v1.get_default_session() is session
    True
    """
    return cast("Session | None", innermost_session.get())


_SHALLOW: Final = (None, list, tuple, dict)
"""The kinds of fetches whose requests are found without a walk: a tensor, or one level of them."""


def _shallow_key(fetches: Any, feeds: Mapping[Any, Any]) -> Any:
    """The identities of what is fetched, one level deep, and of the keys of feeds."""
    kind = type(fetches)
    fed = tuple(map(id, feeds))
    if kind is list or kind is tuple:
        return kind, *map(id, fetches), fed
    if kind is dict:
        return kind, *fetches, *map(id, fetches.values()), fed
    return id(fetches), fed


def _shown(array: Array) -> Any:
    """A result for NumPy: a scalar for what has no axes."""
    return array if array.ndim else array[()]

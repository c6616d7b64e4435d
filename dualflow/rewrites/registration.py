"""The registered rewrites: ``register``, ``unregister``, ``disable``, ``enable``, ``disabled``."""

from __future__ import annotations

from contextlib import AbstractContextManager

from dualflow.core.errors import DTypeError
from dualflow.core.tracebacks import entry
from dualflow.graph.user_rewrites import REWRITES, Rewrite


@entry
def register(rewrite: Rewrite) -> Rewrite:
    """Apply ``rewrite`` to all functions, at the next call of each; also usable as a decorator.

    Registered rewrites run in the order of registration, each once over a graph, after the optimiser's
    simplifications and before it fuses ops. Functions that were called before are not traced again: their
    graphs are optimised and compiled again.

    Args:
        rewrite: what :func:`rule`, :func:`equation` or :func:`graph_pass` returns.

    Returns:
        ``rewrite``.

    Raises:
        DTypeError: it is no rewrite.
        InvalidArgumentError: another one of its name is registered.

    >>> import dualflow as df
    >>> @df.rewrite.register
    ... @df.rewrite.equation
    ... def sine_over_cosine(x):
    ...     '''sin(x) / cos(x) = tan(x)'''
    ...     return df.sin(x) / df.cos(x), df.tan(x)
    >>> f = df.function(lambda x: df.sin(x) / df.cos(x))
    >>> f(df.constant(0.5)).numpy()
    np.float32(0.5463025)
    >>> print(f.explain())
    <lambda> was traced 1 time...
    <ConcreteFunction <lambda>(x: ...)>: rewritten by sine_over_cosine (sin(x) / cos(x) = tan(x)) at ...
    >>> df.rewrite.unregister("sine_over_cosine")
    """
    if not isinstance(rewrite, Rewrite):
        raise DTypeError(
            f"{rewrite!r} is no rewrite. Decorate the function with df.rewrite.equation, df.rewrite.rule or "
            "df.rewrite.graph_pass first."
        )
    REWRITES.add(rewrite)
    return rewrite


@entry
def unregister(name: str) -> None:
    """Remove a registered rewrite; the next call of each function runs without it.

    Args:
        name: its name.

    Returns:
        None.

    Raises:
        InvalidArgumentError: no rewrite of this name is registered.

    >>> import dualflow as df
    >>> def unchanged(node, make):
    ...     '''x = x'''
    >>> df.rewrite.register(df.rewrite.rule(unchanged))
    <rewrite unchanged: x = x>
    >>> df.rewrite.unregister("unchanged")
    """
    REWRITES.remove(name)


def registered() -> tuple[Rewrite, ...]:
    """The registered rewrites in the order in which they run, the disabled ones included. Raises nothing.

    Returns:
        A tuple of rewrites, with ``name``, ``algebra`` and ``origin``.

    >>> import dualflow as df
    >>> df.rewrite.registered()
    ()
    """
    return REWRITES.registered


@entry
def disable(name: str) -> None:
    """Disable a rewrite, registered or of one function, in all threads, until it is enabled.

    The environment variable ``DUALFLOW_DISABLE_REWRITES`` disables rewrites in the process: it has their
    names, separated by commas, or ``all``.

    Args:
        name: its name. If it is disabled twice, it has to be enabled twice.

    Returns:
        None.

    Raises:
        InvalidArgumentError: there is no rewrite of this name.

    >>> import dualflow as df
    >>> @df.rewrite.rule
    ... def off(node, make):
    ...     '''x = x'''
    >>> df.rewrite.disable("off")
    >>> df.rewrite.enable("off")
    """
    REWRITES.turn_off([name])


@entry
def enable(name: str) -> None:
    """Undo one call of :func:`disable`.

    Args:
        name: the name of the rewrite.

    Returns:
        None.

    Raises:
        InvalidArgumentError: it is not disabled.

    >>> import dualflow as df
    >>> @df.rewrite.rule
    ... def off(node, make):
    ...     '''x = x'''
    >>> df.rewrite.disable("off")
    >>> df.rewrite.enable("off")
    """
    REWRITES.turn_on([name])


def disabled(*names: str) -> AbstractContextManager[None]:
    """A context in which rewrites are left out, in all threads.

    Args:
        *names: the names of rewrites.

    Returns:
        A context manager.

    Raises:
        InvalidArgumentError: there is no rewrite of a name; raised when the block is entered.

    >>> import dualflow as df
    >>> @df.rewrite.equation
    ... def wrong(x):
    ...     '''exp(x) = x, which is wrong'''
    ...     return df.exp(x), x
    >>> f = df.function(lambda x: df.exp(x), rewrites=[wrong])
    >>> with df.rewrite.disabled("wrong"):
    ...     f(df.constant(0.0)).numpy()
    np.float32(1.0)
    >>> f(df.constant(0.0)).numpy()
    np.float32(0.0)
    """
    return REWRITES.off(*names)

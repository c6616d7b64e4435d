"""The one door to the native room, opened at the first compile: what is behind it takes time to import."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from dualflow.core.locks import UNFORKABLE, imported
from dualflow.eager.tensor import EagerTensor
from dualflow.graph.ir import Graph

if TYPE_CHECKING:
    from dualflow.function.outputs import Packer
    from dualflow.function.runner import Runner
    from dualflow.native.executable import Executable
    from dualflow.native.facilities import Facility


def make_executable(graph: Graph) -> Executable:
    """``graph``, which all passes have gone over, as machine code, with host calls for what has none.

    A fork waits for it: a child would inherit the locks of what is imported on the way.
    """
    with UNFORKABLE:
        found: Executable = imported("dualflow.native.executable").build(graph)
        return found


def short_way(
    runner: Runner,
    long_way: Callable[..., Any],
    pack: Packer | None = None,
    places: Sequence[int] | None = None,
    values: Sequence[Any] = (),
) -> Callable[..., Any]:
    """``runner`` as a function of positional values; see :func:`dualflow.function.fast.short_way`."""
    module = imported("dualflow.function.fast")
    found: Callable[..., Any] = module.short_way(runner, long_way, pack, places, values)
    return found


def facilities() -> Sequence[Facility]:
    """See :func:`dualflow.native.facilities.facilities`."""
    found: Sequence[Facility] = imported("dualflow.native.facilities").facilities(EagerTensor)
    return found


def kernel_text(executable: Executable) -> str:
    """See :func:`dualflow.native.pseudocode.kernels`."""
    found: str = imported("dualflow.native.pseudocode").kernels(executable)
    return found


def numba_function(executable: Executable, captured: Sequence[Any]) -> Any:
    """See :func:`dualflow.native.numba_bridge.as_njit`."""
    return imported("dualflow.native.numba_bridge").as_njit(executable, captured)

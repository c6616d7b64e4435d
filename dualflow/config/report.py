"""The configuration of this process: versions, processor, backend, fast paths, cache."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator, Mapping
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any, Final, Literal, overload

from dualflow.core.errors import InvalidArgumentError
from dualflow.core.own_files import FOLDER
from dualflow.core.report_text import size
from dualflow.core.tracebacks import entry
from dualflow.function.calls.lazy_backends import features, machine
from dualflow.function.options import backend_choice, eager_kernels_choice
from dualflow.version import DUALFLOW

if TYPE_CHECKING:
    from dualflow.backends.llvm.features import FastPathReport

_NEEDED: Final = ("numpy", "llvmlite", "numba", "networkx", "scipy", "ml_dtypes")
_OPTIONAL: Final = ("matplotlib", "scikit-learn", "pandas")


@overload
def show_config(mode: Literal["stdout"] = "stdout") -> None: ...
@overload
def show_config(mode: Literal["dicts"]) -> dict[str, Any]: ...
@entry
def show_config(mode: str = "stdout") -> dict[str, Any] | None:
    """Print the configuration of this process, for questions about speed and for bug reports.

    It has:

    * the versions of all packages;
    * the processor, and the width of the vectors that kernels use;
    * the backend, and which setting chose it;
    * what computes large eager ops, and why;
    * each fast path: whether it is available in this process, and the reason if it isn't;
    * the cache folder, and the number and size of its objects;
    * the environment variables of dualflow that are set.

    Args:
        mode: ``"stdout"`` prints a line for each; ``"dicts"`` returns the same as plain data.

    Returns:
        None, or a dict: the ``folder`` of the package, and dicts ``versions``, ``optional`` (None for what is
        not installed), ``backend``, ``eager_kernels``, ``processor``, ``threads``, ``llvm``, ``blas`` (None
        where none is found), ``cache``, ``parts`` by their names in ``DUALFLOW_DISABLE``, and
        ``environment``.

    Raises:
        InvalidArgumentError: there is no such mode, or an environment variable has a value that it can't
            have.

    >>> import dualflow as df
    >>> df.show_config()
    dualflow        ...
    backend         ...
    C fast call     ...
    >>> configured = df.show_config(mode="dicts")
    >>> sorted(configured["parts"])  # doctest: +NORMALIZE_WHITESPACE
    ['blocks', 'c_fast_call', 'cache', 'collectives', 'concurrency', 'linker', 'pool',
     'product', 'programs']
    >>> configured["processor"]["vector_bits"] in (128, 256, 512)
    True
    """
    if mode not in ("stdout", "dicts"):
        raise InvalidArgumentError(f"There is no mode {mode!r}; it is 'stdout' or 'dicts'.")
    configured = configuration()
    if mode == "dicts":
        return configured
    print(table(configured))
    return None


def configuration() -> dict[str, Any]:
    """The configuration as nested dicts, as ``show_config(mode="dicts")`` returns it."""
    backend, reason = backend_choice()
    kernels, why = eager_kernels_choice()
    needed = {name: _version(name) or "not installed" for name in _NEEDED}
    return {
        "folder": FOLDER,
        "versions": {"dualflow": DUALFLOW, "python": platform.python_version(), **needed},
        "optional": {name: _version(name) for name in _OPTIONAL},
        "backend": {"name": backend, "chosen_by": reason},
        "eager_kernels": {"name": kernels, "chosen_by": why},
        **machine(),
        "parts": {feature.switch: _part(feature) for feature in features()},
        "environment": {n: v for n, v in sorted(os.environ.items()) if n.startswith("DUALFLOW_")},
    }


def table(config: Mapping[str, Any]) -> str:
    """The lines that :func:`show_config` prints."""
    return "\n".join(f"{name:<16}{value}" for name, value in _rows(config))


def _rows(config: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    versions, processor, llvm, blas = (config[name] for name in ("versions", "processor", "llvm", "blas"))
    yield "dualflow", f"{versions['dualflow']} in {config['folder']}"
    yield "Python", f"{versions['python']} ({platform.python_implementation()}, {platform.system()})"
    yield from ((name, versions[name]) for name in _NEEDED)
    is_matching_version = llvm["installed"].split(".")[0] == llvm["needed"]
    yield (
        "LLVM",
        llvm["installed"] + ("" if is_matching_version else f" (kernels are written for {llvm['needed']})"),
    )
    yield (
        "optional",
        ", ".join(f"{name} {v or '(not installed)'}" for name, v in config["optional"].items()),
    )
    yield "backend", f"{config['backend']['name']} ({config['backend']['chosen_by']})"
    yield (
        "large eager ops",
        f"{config['eager_kernels']['name']} ({config['eager_kernels']['chosen_by']})",
    )
    yield "processor", f"{processor['name']}, {processor['logical']} logical"
    yield "vectors", _vectors(processor["vector_bits"], processor["widest_vector_bits"])
    yield from ((part["name"], part["state"]) for part in config["parts"].values())
    yield "cached", f"{config['cache']['objects']} objects, {size(config['cache']['bytes'])}"
    yield "BLAS", "not found" if blas is None else f"{blas['name']}, {blas['integer_bits']}-bit integers"
    if config["environment"]:
        yield "environment", " ".join(f"{name}={value}" for name, value in config["environment"].items())


def _part(feature: FastPathReport) -> dict[str, Any]:
    return {
        "name": feature.name,
        "on": feature.on,
        "detail": feature.detail,
        "state": feature.state,
    }


def _vectors(bits: int, widest: int) -> str:
    return f"{bits} bits" + ("" if bits == widest else f" (DUALFLOW_VECTOR_BITS; the processor has {widest})")


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None

"""Jupyter kernels as forks of one process, the template, which has imported what most notebooks import.

These imports take seconds.

``forked_kernels.py SOCKET ARGUMENT...`` is the command of the kernel: it requests a fork, and ends when
the fork does. ``forked_kernels.py NUMBER``, with the descriptor of a socket, is the template.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

PRELOADED = (
    "ipykernel.kernelapp",
    "matplotlib.pyplot",
    "sklearn.datasets",
    "dualflow.backends.llvm.backend",
    "dualflow.keras",
)
"""What most notebooks import; nothing of it starts threads or compiles."""


@contextlib.contextmanager
def forked_kernels() -> Iterator[dict[str, str]]:
    """An environment in which the kernel ``python3`` is a fork of a template, which ends with the block."""
    with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX) as listener:
        address = str(Path(folder, "template"))
        listener.bind(address)
        listener.listen()
        spec = Path(folder, "kernels", "python3", "kernel.json")
        spec.parent.mkdir(parents=True)
        command = [sys.executable, "-S", __file__, address, "-f", "{connection_file}"]
        kernel = {"argv": command, "display_name": "Python 3", "language": "python"}
        spec.write_text(json.dumps(kernel), encoding="utf-8")
        template = subprocess.Popen(
            [sys.executable, __file__, str(listener.fileno())],
            env=os.environ | {"MPLBACKEND": "module://matplotlib_inline.backend_inline"},
            pass_fds=[listener.fileno()],
        )
        try:
            yield os.environ | {"JUPYTER_PATH": folder}
        finally:
            template.terminate()
            template.wait()


def start_kernel(address: str, arguments: Sequence[str]) -> None:
    """Request a fork of the template with this process's folder and environment; returns when it ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Jupyter sends it before it shuts the kernel down
    with socket.socket(socket.AF_UNIX) as template:
        template.connect(address)
        request = json.dumps([arguments, os.getcwd(), dict(os.environ)])
        template.sendall(request.encode() + b"\n")
        template.recv(1)  # the kernel holds the other end, and sends nothing


def serve(listener: socket.socket) -> None:
    """Fork for each connection; a fork runs its kernel and then returns, the template never does."""
    del sys.path[0]  # the folder of this file
    for name in PRELOADED:
        importlib.import_module(name)
    gc.collect()
    gc.freeze()
    while True:
        connection, _ = listener.accept()
        if not os.fork():
            listener.close()
            run_kernel(connection)
            return
        connection.close()
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass


def run_kernel(connection: socket.socket) -> None:
    """Run the kernel that a connection requests; the connection ends with this process."""
    from ipykernel.kernelapp import IPKernelApp  # which the template has imported

    with connection.makefile(encoding="utf-8") as lines:
        arguments, folder, variables = json.loads(lines.readline())
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(variables)
    # The kernel ends when the template does.
    IPKernelApp.launch_instance([*arguments, f"--IPKernelApp.parent_handle={os.getppid()}"])


if __name__ == "__main__":
    if len(sys.argv) == 2:
        serve(socket.socket(fileno=int(sys.argv[1])))
    else:
        start_kernel(sys.argv[1], sys.argv[2:])

"""Headless Chromium, driven through its DevTools protocol over a pipe."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from required_tools import require_tool

OPTIONS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --remote-debugging-pipe"
)
LAUNCH = """
import fcntl, os, sys
commands, events = [fcntl.fcntl(int(end), fcntl.F_DUPFD, 10) for end in sys.argv[1:3]]
os.dup2(commands, 3)
os.dup2(events, 4)
os.execv(sys.argv[3], sys.argv[3:])
"""
"""A program that becomes the browser, whose file descriptors 3 and 4 are the ends of the pipes."""


class Page:
    """A tab of the browser.

    Attributes:
        errors: uncaught exceptions, and errors in the console.
    """

    def __init__(self, commands: int, events: int) -> None:
        self.commands, self.events = commands, events
        self.errors: list[str] = []
        self.buffer = b""
        self.last = 0
        self.session: str | None = None
        target = self.command("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.command("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.command(f"{domain}.enable")

    def command(self, method: str, **parameters: Any) -> dict[str, Any]:
        """The result of a command."""
        self.last += 1
        message: dict[str, Any] = {"id": self.last, "method": method, "params": parameters}
        if self.session is not None:
            message["sessionId"] = self.session
        os.write(self.commands, json.dumps(message).encode() + b"\0")
        while True:
            reply = self._message()
            if reply.get("id") == self.last:
                assert "error" not in reply, reply["error"]
                result: dict[str, Any] = reply["result"]
                return result

    def _message(self) -> dict[str, Any]:
        while b"\0" not in self.buffer:
            piece = os.read(self.events, 1 << 16)
            assert piece, "the browser has ended"
            self.buffer += piece
        text, _, self.buffer = self.buffer.partition(b"\0")
        message: dict[str, Any] = json.loads(text)
        if message.get("method") == "Runtime.exceptionThrown":
            details = message["params"]["exceptionDetails"]
            self.errors.append(details.get("exception", {}).get("description", details["text"]))
        if message.get("method") == "Log.entryAdded" and message["params"]["entry"]["level"] == "error":
            self.errors.append(message["params"]["entry"]["text"])
        return message

    def open(self, path: Path, query: str = "") -> None:
        """Load a file, with a query such as ``?q=word``, and wait until it has run its scripts."""
        self.command("Page.navigate", url=path.as_uri() + query)
        while self._message().get("method") != "Page.loadEventFired":
            pass
        self.value("new Promise((done) => setTimeout(done, 0))")

    def value(self, expression: str) -> Any:
        """The value of a JavaScript expression, or of its promise."""
        result = self.command(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in result, result
        return result["result"].get("value")

    def appearance(self, *, scheme: str, width: int, height: int = 900) -> None:
        """Let the page be shown light or dark, with a viewport of this size."""
        feature = {"name": "prefers-color-scheme", "value": scheme}
        self.command("Emulation.setEmulatedMedia", features=[feature])
        self.command(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )

    def drag(self, points: Sequence[tuple[float, float]]) -> None:
        """Press the mouse at the first point, move it to the others, and release it."""
        kinds = ["mousePressed", *["mouseMoved"] * (len(points) - 1), "mouseReleased"]
        for kind, (x, y) in zip(kinds, [*points, points[-1]], strict=True):
            self.command(
                "Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", buttons=1, clickCount=1
            )

    def key(self, key: str) -> None:
        """Press and release a key."""
        text = {"text": key} if len(key) == 1 else {}
        self.command("Input.dispatchKeyEvent", type="keyDown", key=key, **text)
        self.command("Input.dispatchKeyEvent", type="keyUp", key=key)

    def screenshot(self, path: Path, *, whole: bool = True) -> None:
        """Write a picture of the whole page, or of what the viewport shows."""
        data = self.command("Page.captureScreenshot", format="png", captureBeyondViewport=whole)["data"]
        path.write_bytes(base64.b64decode(data))


@contextmanager
def chromium(folder: Path) -> Iterator[Page]:
    """A page of a new browser, whose profile is in ``folder``."""
    program = require_tool("chromium")
    (read_commands, commands), (events, write_events) = os.pipe(), os.pipe()
    launch = [sys.executable, "-S", "-c", LAUNCH, str(read_commands), str(write_events)]
    browser = subprocess.Popen(
        [*launch, program, *OPTIONS.split(), f"--user-data-dir={folder}"],
        pass_fds=(read_commands, write_events),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    os.close(read_commands)
    os.close(write_events)
    try:
        yield Page(commands, events)
    finally:
        browser.terminate()
        browser.wait(30)
        os.close(commands)
        os.close(events)

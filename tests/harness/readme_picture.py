"""Writes ``docs/step.png``, the picture of the README: the page that its first example saves.

``python tests/harness/readme_picture.py``, on an idle machine. The text of the example is part of the file,
so that a test notices when it has changed.
"""

from __future__ import annotations

import doctest
import os
import re
import struct
import tempfile
import zlib
from pathlib import Path

from chromium import chromium

ROOT = Path(__file__).parents[2]
PICTURE = ROOT / "docs" / "step.png"
WIDTH, HEIGHT = 1200, 1385
END = b"\x00\x00\x00\x00IEND"


def main() -> None:
    """Run the example, and write the picture of its page."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    block = re.search(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    assert block is not None
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder, "step.py")
        script.write_text("".join(e.source for e in doctest.DocTestParser().get_examples(block[1])))
        os.chdir(folder)
        exec(compile(script.read_text(), str(script), "exec"), {})
        with chromium(Path(folder, "profile")) as page:
            page.command("Emulation.setScrollbarsHidden", hidden=True)
            page.appearance(scheme="light", width=WIDTH, height=HEIGHT)
            page.open(Path(folder, "step.html"))
            page.value("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
            page.screenshot(PICTURE, whole=False)
    PICTURE.write_bytes(with_text(PICTURE.read_bytes(), block[1]))


def with_text(picture: bytes, text: str) -> bytes:
    """The PNG file with a text, uncompressed, before its end."""
    content = b"tEXtSource\x00" + text.encode()
    length, check = struct.pack(">I", len(content) - 4), struct.pack(">I", zlib.crc32(content))
    return picture.replace(END, length + content + check + END)


if __name__ == "__main__":
    main()

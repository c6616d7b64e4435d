"""A Sphinx extension that writes the pages which are derived from the code: reference, errors, clients.

They are in ``docs/reference``, which git ignores. A page whose text is the same as before is left alone, so
that Sphinx doesn't read it again.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from api_reference import namespace_pages
from client_table import clients_page
from error_index import error_page
from sphinx.application import Sphinx


def setup(app: Sphinx) -> dict[str, Any]:
    """Let Sphinx write the pages before it looks for pages."""
    app.connect("builder-inited", write_pages)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def write_pages(app: Sphinx) -> None:
    """Write the pages, and remove those that are no longer generated."""
    folder = Path(app.confdir, "reference")
    folder.mkdir(exist_ok=True)
    pages = {f"{name}.rst": text for name, text in namespace_pages().items()}
    pages |= {"errors.md": error_page(), "clients.md": clients_page()}
    for path in folder.iterdir():
        if path.name not in pages:
            path.unlink()
    for name, text in pages.items():
        path = folder / name
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")

"""A Sphinx extension that leaves names without a description out of the search for what they link to.

Signatures have tens of thousands of names of types, such as ``Any`` and ``Callable``. For each that the site
doesn't describe, Sphinx would compare the ends of all described names: a fifth of the time of a build.
"""

from __future__ import annotations

from typing import Any

from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform


class UndescribedNames(SphinxPostTransform):
    """Replaces references to Python names by their text if no described name ends with them."""

    default_priority = 5  # before that of Sphinx's ReferencesResolver, 10

    def run(self, **kwargs: Any) -> None:
        described = {name.rpartition(".")[2] for name in self.env.domains.python_domain.objects}
        for node in list(self.document.findall(pending_xref)):
            is_name = node.get("refdomain") == "py" and node.get("reftype") in ("class", "obj")
            if is_name and len(node) == 1 and node["reftarget"].rpartition(".")[2] not in described:
                node.replace_self(node.children)


def setup(app: Sphinx) -> dict[str, Any]:
    """Let Sphinx run the transform on each page before it is written."""
    app.add_post_transform(UndescribedNames)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

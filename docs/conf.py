"""The settings of the documentation site: ``sphinx-build -W -c docs . build/site`` builds it."""

from __future__ import annotations

import gc
import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "docs" / "extensions")]

gc.disable()  # the trees of pages stay: to search them takes a fifth of the time, and their garbage is 1.2 GB

project = "dualflow"
author = copyright = "the dualflow authors"
extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_copybutton"]
extensions += ["annotation_links", "generated_pages"]  # of docs/extensions

# The source folder is the project, so that pages link each other as they do on GitHub.
root_doc = "docs/index"
include_patterns = [
    "*.md",
    "docs/**",
    "examples/notebooks/*",
    "*dualflow/**/README.md",
    "*dualflow/README.md",
]
exclude_patterns = ["README.md"]  # the start page of the repository, docs/index.md is that of the site

myst_enable_extensions = ["colon_fence", "html_image"]
myst_heading_anchors = 4

nb_execution_mode = "auto"  # a notebook is executed when its page is read; none has outputs
nb_execution_raise_on_error = True
nb_execution_timeout = 300
nb_execution_in_temp = True
nb_merge_streams = True
os.environ["DUALFLOW_PROGRESS"] = "0"

autodoc_typehints = "signature"
autodoc_typehints_format = "short"
python_maximum_signature_line_length = 88
toc_object_entries = False  # they would be thousands of entries in the navigation of each page

smartquotes_action = "D"  # dashes; quotes on the pages are those of code
html_theme = "furo"
html_title = "dualflow"
html_extra_path = ["redirect"]  # the site's index.html, which leads to docs/index.html
html_show_search_summary = False  # it would fetch the pages, which browsers refuse for files
html_copy_source = html_show_sourcelink = False

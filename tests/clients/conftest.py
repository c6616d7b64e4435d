"""No file here is a test: programs import libraries that ``run.py`` installs in their own environments."""

from __future__ import annotations

collect_ignore_glob = ["*.py", "programs/*.py"]

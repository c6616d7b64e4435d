"""``python -m dualflow``: see :mod:`dualflow.cli`."""

import sys

from dualflow.cli import main

if __name__ == "__main__":
    sys.exit(main())

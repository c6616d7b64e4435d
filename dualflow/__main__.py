"""``python -m dualflow``: see :mod:`dualflow.function.cli`."""

import sys

from dualflow.function.cli import main

if __name__ == "__main__":
    sys.exit(main())

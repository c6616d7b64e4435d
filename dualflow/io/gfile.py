"""Files and folders: ``df.io.gfile``."""

from typing import TYPE_CHECKING

from dualflow.core.namespace import publish as _publish

if TYPE_CHECKING:
    from dualflow.ops.files.filesystem import GFile as GFile
    from dualflow.ops.files.filesystem import copy as copy
    from dualflow.ops.files.filesystem import exists as exists
    from dualflow.ops.files.filesystem import get_registered_schemes as get_registered_schemes
    from dualflow.ops.files.filesystem import glob as glob
    from dualflow.ops.files.filesystem import isdir as isdir
    from dualflow.ops.files.filesystem import join as join
    from dualflow.ops.files.filesystem import listdir as listdir
    from dualflow.ops.files.filesystem import makedirs as makedirs
    from dualflow.ops.files.filesystem import mkdir as mkdir
    from dualflow.ops.files.filesystem import remove as remove
    from dualflow.ops.files.filesystem import rename as rename
    from dualflow.ops.files.filesystem import rmtree as rmtree
    from dualflow.ops.files.filesystem import stat as stat
    from dualflow.ops.files.filesystem import walk as walk

_publish(
    globals(),
    lazy={
        "dualflow.ops.files.filesystem": (
            "GFile copy exists get_registered_schemes glob isdir join listdir makedirs mkdir remove rename "
            "rmtree stat walk"
        ),
    },
)

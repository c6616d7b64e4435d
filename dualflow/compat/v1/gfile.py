"""Files and folders by TensorFlow 1's names: ``v1.gfile``."""

from dualflow.core.namespace import publish as _publish
from dualflow.ops.files.filesystem import GFile as GFile
from dualflow.ops.files.filesystem import (
    copy,
    exists,
    glob,
    isdir,
    listdir,
    makedirs,
    mkdir,
    remove,
    rename,
    rmtree,
    stat,
    walk,
)

Copy = copy
DeleteRecursively = rmtree
Exists = exists
FastGFile = GFile
Glob = glob
IsDirectory = isdir
ListDirectory = listdir
MakeDirs = makedirs
MkDir = mkdir
Open = GFile
Remove = remove
Rename = rename
Stat = stat
Walk = walk

_publish(
    globals(),
    internal=(
        "copy",
        "exists",
        "glob",
        "isdir",
        "listdir",
        "makedirs",
        "mkdir",
        "remove",
        "rename",
        "rmtree",
        "stat",
        "walk",
    ),
)

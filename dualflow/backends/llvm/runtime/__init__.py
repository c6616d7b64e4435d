"""From LLVM text to a running call: compiler, linker, object cache, threads, the builtin call."""

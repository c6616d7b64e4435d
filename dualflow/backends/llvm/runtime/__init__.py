"""Compiles LLVM text, links objects and calls them: compiler, linker, threads, allocator, the C fast call."""

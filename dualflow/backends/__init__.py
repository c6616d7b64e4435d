"""Backends: from loop programs to executables, in a package for each renderer."""

"""Loop programs in, executables out: a folder for each renderer."""

"""What every backend shares of a process: its switches, its number of threads, its cache on disk."""

"""Random programs as frozen records, their Python source, and the processes that run and check it."""

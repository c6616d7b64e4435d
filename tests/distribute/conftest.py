"""Settings of the tests of several workers."""

collect_ignore = ["programs"]

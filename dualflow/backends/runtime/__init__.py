"""Process-wide state that all backends share: switches, the number of threads, the object cache on disk."""

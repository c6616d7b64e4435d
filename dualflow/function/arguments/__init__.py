"""Arguments in, a trace's key out: what a call binds, which trace serves it, and why a new one is made."""

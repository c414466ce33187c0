"""The exact tier: counters of the kernel's block tracepoints as additional tables."""

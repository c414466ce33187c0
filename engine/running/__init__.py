"""A run from its targets to its end: driver, supervisor, and readers of its counters."""

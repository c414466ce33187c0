"""A run from its targets to its end: who drives it, who looks after it, who may read its counters."""

"""Common parts of all readers: the reading of a tick, threads, schedule, settings."""

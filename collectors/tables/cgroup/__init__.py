"""Control groups: I/O on each device, limits, and waiting times."""

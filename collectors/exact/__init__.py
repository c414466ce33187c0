"""The exact tier: what the kernel's block tracepoints count, as tables beside those of the disks."""

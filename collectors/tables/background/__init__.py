"""What the kernel does beneath the I/O of programs: resync, recovery, check and reshape of md arrays."""

"""Readers of procfs, sysfs and uevents: raw counters and facts of devices, hosts and processes."""

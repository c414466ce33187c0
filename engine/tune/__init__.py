"""Tunables of devices and control groups: described once, changed all together or not at all, and restored."""

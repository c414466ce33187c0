"""Processes that do I/O."""

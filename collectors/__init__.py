"""Kernel counters into samples, samples into frames, sessions, exports and reports; never imports tui."""

"""Sweeps: which load to measure, how long, and what the curve says. Pure but for `runner.py`, which turns knobs."""

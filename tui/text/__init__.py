"""Figures, times, names and marks as text of exact width."""

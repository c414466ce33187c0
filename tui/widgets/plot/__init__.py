"""Plots of figures over each other: a canvas of cells, and axes with round values."""

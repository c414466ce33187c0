"""Statistics of measured series that sweeps and comparisons share; pure."""

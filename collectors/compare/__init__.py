"""Comparison of two recordings, parts of them, or results of runs, figure by figure."""

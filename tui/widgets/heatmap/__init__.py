"""Latencies over time as a heat map."""

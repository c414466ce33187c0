"""Distributions of latencies: percentiles, heat maps, peaks, the slowest I/Os, and latency by stage."""

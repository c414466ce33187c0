"""Metrics for Prometheus: samples to families by subject; pure but for the sums kept over the life of the process."""

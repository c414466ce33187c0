"""The Latency screen: heat map, peaks, slowest I/Os."""

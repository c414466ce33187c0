"""What the latency screen shows, apart from drawing it."""

"""Several hosts as one source: the agent on each, its protocol, the clock between hosts, and the merged samples."""

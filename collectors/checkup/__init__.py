"""What works on this host, and what would lift it."""

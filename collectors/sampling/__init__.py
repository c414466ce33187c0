"""What all readers share: what one hands over at a tick, threads, due times, settings."""
